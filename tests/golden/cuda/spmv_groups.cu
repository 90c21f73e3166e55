/*
 * y[i] = sum(j, A[i,j] * x[j]) with A: ds/float64/int32, x: d/float64, y: d/float64/o
 *
 * forall block GPUBlock
 *   forall warp GPUWarp
 *     forall i GPUThread
 *       y[i] = t
 *       where t[]: scalar workspace of float64
 *         forall j GPUThread (Atomics)
 *           t += A[i,j] * x[j]
 */

#include <stdint.h>

static __device__ inline int64_t taco_min_i64(int64_t a, int64_t b)
{
    const int64_t least = a < b ? a : b;
    return a == a ? least : a;
}

static __device__ inline double taco_lanes8_add_f64(double value)
{
    const unsigned group = 0xffu << threadIdx.x % 32 / 8 * 8;
    for (int step = 4; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(group, value, step);
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
    for (int64_t block = blockIdx.x; block < (n_i + 31) / 32; block += gridDim.x) {
        const int64_t warp = threadIdx.x / 32;
        const int64_t i_begin = block * 32 + warp * 4;
        const int64_t i_end = taco_min_i64(block * 32 + warp * 4 + 4, n_i);
        const int64_t i = i_begin + threadIdx.x % 32 / 8;
        if (i < i_end) {
            double t = 0.0;
            for (int64_t pA2 = A2_pos[i] + threadIdx.x % 8; pA2 < A2_pos[i + 1]; pA2 += 8) {
                const int64_t j = A2_crd[pA2];
                t += A_vals[pA2] * x_vals[j];
            }
            t = taco_lanes8_add_f64(t);
            if (threadIdx.x % 8 == 0) {
                y_vals[i] = t;
            }
        }
    }
}
