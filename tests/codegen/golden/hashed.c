/* hashed, by hand */

#include "taco_runtime.h"

int32_t hashed(
    const int32_t *restrict A2_pos,
    const int32_t *restrict A2_crd,
    const double *restrict A_vals,
    double *restrict out,
    int64_t n_i,
    int64_t n_j,
    int32_t threads)
{
    int32_t status = 0;
    #pragma omp parallel for schedule(dynamic, 1 + n_i / (16 * threads)) \
        num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < n_i; i++) {
        {
            taco_local_table taco_table t;
            if (taco_unlikely(taco_table_init(&t))) {
                taco_fail(&status, 1);
                goto stop;
            }
            taco_local double *sums = taco_alloc_zero(n_j, sizeof(double));
            if (taco_unlikely(sums == NULL)) {
                taco_fail(&status, 1);
                goto stop;
            }
            for (int64_t p = A2_pos[i]; p < A2_pos[i + 1]; p++) {
                const int64_t e = taco_table_insert(&t, A2_crd[p]);
                if (taco_unlikely(e < 0)) {
                    taco_fail(&status, 1);
                    goto stop;
                }
                sums[e] += A_vals[p];
            }
            taco_table_sort(&t);
            for (int64_t r = 0; r < t.count; r++) {
                out[i * n_j + t.keys[t.ranked[r]]] = sums[t.ranked[r]];
            }
            taco_table_clear(&t);
        }
        stop:;
    }
    if (status != 0) {
        return status;
    }
    return 0;
}
