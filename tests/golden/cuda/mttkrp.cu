/*
 * M[i,r] = sum(k, j, T[i,j,k] * B[j,r] * C[k,r]) with T: sss/float64/int32, B: dd/float64, C: dd/float64, M: dd/float64/oo
 *
 * forall i GPUBlock
 *   forall r GPUThread
 *     M[i,r] = t
 *     where t[]: scalar workspace of float64
 *       forall j
 *         forall k
 *           t += T[i,j,k] * B[j,r] * C[k,r]
 */

#include <stdint.h>

extern "C" __global__ void __launch_bounds__(256) evaluate_1(
    double *__restrict__ M_vals,
    const int32_t *__restrict__ T1_pos,
    const int32_t *__restrict__ T1_crd,
    const int32_t *__restrict__ T2_pos,
    const int32_t *__restrict__ T2_crd,
    const int32_t *__restrict__ T3_pos,
    const int32_t *__restrict__ T3_crd,
    const double *__restrict__ T_vals,
    const double *__restrict__ B_vals,
    const double *__restrict__ C_vals,
    int64_t n_r,
    int64_t M1_stride,
    int64_t B1_stride,
    int64_t C1_stride)
{
    for (int64_t pT1 = T1_pos[0] + blockIdx.x; pT1 < T1_pos[1]; pT1 += gridDim.x) {
        const int64_t i = T1_crd[pT1];
        const int64_t pM1 = i * M1_stride;
        for (int64_t r = threadIdx.x; r < n_r; r += blockDim.x) {
            const int64_t pM2 = pM1 + r;
            double t = 0.0;
            for (int64_t pT2 = T2_pos[pT1]; pT2 < T2_pos[pT1 + 1]; pT2++) {
                const int64_t j = T2_crd[pT2];
                const int64_t pB1 = j * B1_stride;
                const int64_t pB2 = pB1 + r;
                for (int64_t pT3 = T3_pos[pT2]; pT3 < T3_pos[pT2 + 1]; pT3++) {
                    const int64_t k = T3_crd[pT3];
                    const int64_t pC1 = k * C1_stride;
                    const int64_t pC2 = pC1 + r;
                    t += T_vals[pT3] * B_vals[pB2] * C_vals[pC2];
                }
            }
            M_vals[pM2] = t;
        }
    }
}
