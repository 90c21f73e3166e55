/* dot, by hand */

#include "taco_runtime.h"

int32_t dot(const double *restrict x, const double *restrict z, double *restrict y, int64_t n_i)
{
    double total = 0.0;
    #pragma omp simd reduction(+:total)
    for (int64_t i = 0; i < n_i; i++) {
        total += x[i] * z[i];
    }
    y[0] = total;
    return 0;
}
