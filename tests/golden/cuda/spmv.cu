/*
 * y[i] = sum(j, A[i,j] * x[j]) with A: ds/float64/int32, x: d/float64, y: d/float64/o
 *
 * forall i parallel
 *   y[i] = t
 *   where t[]: scalar workspace of float64
 *     forall j
 *       t += A[i,j] * x[j]
 */

#include <stdint.h>

extern "C" __global__ void __launch_bounds__(256) evaluate_1(
    double *__restrict__ y_vals,
    const int32_t *__restrict__ A2_pos,
    const int32_t *__restrict__ A2_crd,
    const double *__restrict__ A_vals,
    const double *__restrict__ x_vals,
    int64_t n_i)
{
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
         i < n_i;
         i += (int64_t)gridDim.x * blockDim.x) {
        double t = 0.0;
        for (int64_t pA2 = A2_pos[i]; pA2 < A2_pos[i + 1]; pA2++) {
            const int64_t j = A2_crd[pA2];
            t += A_vals[pA2] * x_vals[j];
        }
        y_vals[i] = t;
    }
}
