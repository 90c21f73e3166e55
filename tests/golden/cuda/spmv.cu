/*
 * y[i] = sum(j, A[i,j] * x[j]) with A: ds/float64/int32, x: d/float64, y: d/float64/o
 *
 * forall i_block GPUBlock
 *   forall i GPUWarp
 *     y[i] = t
 *     where t[]: scalar workspace of float64
 *       forall j GPUThread (Atomics)
 *         t += A[i,j] * x[j]
 */

#include <stdint.h>

static __device__ inline int64_t taco_min_i64(int64_t a, int64_t b)
{
    const int64_t least = a < b ? a : b;
    return a == a ? least : a;
}

static __device__ inline double taco_lanes_add_f64(double value)
{
    for (int step = 16; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(0xffffffff, value, step);
        value = value + other;
    }
    return value;
}

extern "C" __global__ void __launch_bounds__(256) evaluate_1(
    double *__restrict__ y_vals,
    const int32_t *__restrict__ A2_pos,
    const int32_t *__restrict__ A2_crd,
    const double *__restrict__ A_vals,
    const double *__restrict__ x_vals,
    int64_t n_i)
{
    for (int64_t i_block = blockIdx.x; i_block < (n_i + 7) / 8; i_block += gridDim.x) {
        const int64_t i_begin = i_block * 8;
        const int64_t i_end = taco_min_i64(i_block * 8 + 8, n_i);
        for (int64_t i = i_begin + threadIdx.x / 32; i < i_end; i += blockDim.x / 32) {
            double t = 0.0;
            for (int64_t pA2 = A2_pos[i] + threadIdx.x % 32; pA2 < A2_pos[i + 1]; pA2 += 32) {
                const int64_t j = A2_crd[pA2];
                t += A_vals[pA2] * x_vals[j];
            }
            t = taco_lanes_add_f64(t);
            if (threadIdx.x % 32 == 0) {
                y_vals[i] = t;
            }
        }
    }
}
