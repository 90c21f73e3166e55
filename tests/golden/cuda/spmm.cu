/*
 * Y[i,k] = sum(j, A[i,j] * X[j,k]) with A: ds/float64/int32, X: dd/float64, Y: dd/float64/oo
 *
 * forall i GPUBlock
 *   forall k GPUThread
 *     Y[i,k] = t
 *     where t[]: scalar workspace of float64
 *       forall j
 *         t += A[i,j] * X[j,k]
 */

#include <stdint.h>

extern "C" __global__ void __launch_bounds__(256) evaluate_1(
    double *__restrict__ Y_vals,
    const int32_t *__restrict__ A2_pos,
    const int32_t *__restrict__ A2_crd,
    const double *__restrict__ A_vals,
    const double *__restrict__ X_vals,
    int64_t n_i,
    int64_t n_k,
    int64_t Y1_stride,
    int64_t X1_stride)
{
    for (int64_t i = blockIdx.x; i < n_i; i += gridDim.x) {
        const int64_t pY1 = i * Y1_stride;
        for (int64_t k = threadIdx.x; k < n_k; k += blockDim.x) {
            const int64_t pY2 = pY1 + k;
            double t = 0.0;
            for (int64_t pA2 = A2_pos[i]; pA2 < A2_pos[i + 1]; pA2++) {
                const int64_t j = A2_crd[pA2];
                const int64_t pX1 = j * X1_stride;
                const int64_t pX2 = pX1 + k;
                t += A_vals[pA2] * X_vals[pX2];
            }
            Y_vals[pY2] = t;
        }
    }
}
