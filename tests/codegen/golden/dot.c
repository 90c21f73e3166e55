/* dot, by hand */

#include "taco_runtime.h"

int32_t dot(const double *restrict x, const double *restrict z, double *restrict y, int64_t n_i)
{
    double total = 0.0;
    const int64_t part = n_i < 128 ? 0 : n_i / 64 * 16;
    if (0 < part) {
        double total_1 = 0.0;
        double total_2 = 0.0;
        double total_3 = 0.0;
        #pragma omp simd reduction(+:total) reduction(+:total_1) reduction(+:total_2) reduction(+:total_3)
        for (int64_t i = 0; i < part; i++) {
            total += x[i] * z[i];
            total_1 += x[i + part] * z[i + part];
            total_2 += x[i + part * 2] * z[i + part * 2];
            total_3 += x[i + part * 3] * z[i + part * 3];
        }
        total += total_1 + total_2 + total_3;
    }
    #pragma omp simd reduction(+:total)
    for (int64_t i = part * 4; i < n_i; i++) {
        total += x[i] * z[i];
    }
    y[0] = total;
    return 0;
}
