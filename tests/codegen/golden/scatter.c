/* scatter, by hand */

#include "taco_runtime.h"

int32_t scatter(
    const int32_t *restrict A2_pos,
    const int32_t *restrict A2_crd,
    const double *restrict A_vals,
    double *restrict y,
    int64_t n_i,
    int32_t threads)
{
    #pragma omp parallel for schedule(dynamic, 1 + A2_pos[n_i] / (16 * threads)) \
        num_threads(threads) if (threads > 1)
    for (int64_t p = 0; p < A2_pos[n_i]; p++) {
        #pragma omp atomic
        y[A2_crd[p]] += A_vals[p];
    }
    return 0;
}
