/* spmv, by hand */

#include "taco_runtime.h"

int32_t spmv(
    const int32_t *restrict A2_pos,
    const int32_t *restrict A2_crd,
    const double *restrict A_vals,
    const double *restrict x,
    double *restrict y,
    int64_t n_i,
    int32_t threads)
{
    #pragma omp parallel for schedule(dynamic, 1 + n_i / (16 * threads)) \
        num_threads(threads) if (threads > 1)
    for (int64_t i = 0; i < n_i; i++) {
        double total = 0.0;
        int64_t rest = A2_pos[i];
        const int64_t stop = A2_pos[i + 1];
        if (stop - rest >= 64) {
            const int64_t first = rest;
            rest = first + (stop - first) / 8 * 8;
            double total_1 = 0.0;
            double total_2 = 0.0;
            double total_3 = 0.0;
            for (int64_t p = first; p < rest; p += 8) {
                __builtin_prefetch(A_vals + p + 384);
                __builtin_prefetch(A2_crd + p + 384);
                total += A_vals[p] * x[A2_crd[p]];
                total_1 += A_vals[p + 1] * x[A2_crd[p + 1]];
                total_2 += A_vals[p + 2] * x[A2_crd[p + 2]];
                total_3 += A_vals[p + 3] * x[A2_crd[p + 3]];
                total += A_vals[p + 4] * x[A2_crd[p + 4]];
                total_1 += A_vals[p + 5] * x[A2_crd[p + 5]];
                total_2 += A_vals[p + 6] * x[A2_crd[p + 6]];
                total_3 += A_vals[p + 7] * x[A2_crd[p + 7]];
            }
            total += total_1 + total_2 + total_3;
        }
        for (int64_t p = rest; p < stop; p++) {
            const int64_t j = A2_crd[p];
            total += A_vals[p] * x[j];
        }
        y[i] = total;
    }
    return 0;
}
