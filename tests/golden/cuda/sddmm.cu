/*
 * C[i,j] = sum(k, S[i,j] * U[i,k] * V[j,k]) with S: ds/float64/int32, U: dd/float64, V: dd/float64, C: ds/float64/int32/oo
 *
 * forall i GPUBlock
 *   forall j GPUWarp
 *     C[i,j] = t
 *     where t[]: scalar workspace of float64
 *       forall k GPUThread (Atomics)
 *         t += S[i,j] * U[i,k] * V[j,k]
 */

#include <stdint.h>

static __device__ inline double taco_lanes_add_f64(double value)
{
    for (int step = 16; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(0xffffffff, value, step);
        value = value + other;
    }
    return value;
}

extern "C" __global__ void __launch_bounds__(256) evaluate_1(
    int32_t *__restrict__ C2_pos,
    const int32_t *__restrict__ S2_pos,
    int64_t n_i)
{
    for (int64_t p = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
         p < n_i + 1;
         p += (int64_t)gridDim.x * blockDim.x) {
        C2_pos[p] = S2_pos[p];
    }
}

extern "C" __global__ void __launch_bounds__(256) evaluate_2(
    int32_t *__restrict__ C2_crd,
    const int32_t *__restrict__ S2_pos,
    const int32_t *__restrict__ S2_crd,
    int64_t n_i)
{
    const int64_t C2_crd_total = S2_pos[n_i];
    for (int64_t p_1 = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
         p_1 < C2_crd_total;
         p_1 += (int64_t)gridDim.x * blockDim.x) {
        C2_crd[p_1] = S2_crd[p_1];
    }
}

extern "C" __global__ void __launch_bounds__(256) evaluate_3(
    double *__restrict__ C_vals,
    const int32_t *__restrict__ S2_pos,
    const int32_t *__restrict__ S2_crd,
    const double *__restrict__ S_vals,
    const double *__restrict__ U_vals,
    const double *__restrict__ V_vals,
    int64_t n_i,
    int64_t n_k,
    int64_t U1_stride,
    int64_t V1_stride)
{
    for (int64_t i = blockIdx.x; i < n_i; i += gridDim.x) {
        const int64_t pU1 = i * U1_stride;
        for (int64_t pS2 = S2_pos[i] + threadIdx.x / 32;
             pS2 < S2_pos[i + 1];
             pS2 += blockDim.x / 32) {
            const int64_t j = S2_crd[pS2];
            const int64_t pV1 = j * V1_stride;
            double t = 0.0;
            for (int64_t k = threadIdx.x % 32; k < n_k; k += 32) {
                const int64_t pU2 = pU1 + k;
                const int64_t pV2 = pV1 + k;
                t += S_vals[pS2] * U_vals[pU2] * V_vals[pV2];
            }
            t = taco_lanes_add_f64(t);
            if (threadIdx.x % 32 == 0) {
                C_vals[pS2] = t;
            }
        }
    }
}
