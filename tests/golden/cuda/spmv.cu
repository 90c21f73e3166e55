/*
 * y[i] = sum(j, A[i,j] * x[j]) with A: ds/float64/int32, x: d/float64, y: d/float64/o
 *
 * forall i GPUBlock
 *   y[i] = t
 *   where t[]: scalar workspace of float64
 *     forall j GPUThread (Atomics)
 *       t += A[i,j] * x[j]
 */

#include <stdint.h>

static __device__ inline double taco_warps_add_f64(double value)
{
    __shared__ double parts[32];
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = parts[0];
    for (int warp = 1; warp < blockDim.x / 32; warp++) {
        const double other = parts[warp];
        value += other;
    }
    return value;
}

static __device__ inline double taco_lanes_add_f64(double value)
{
    for (int step = 16; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(0xffffffff, value, step);
        value += other;
    }
    return value;
}

static __device__ inline double taco_threads_add_f64(double value)
{
    return taco_warps_add_f64(taco_lanes_add_f64(value));
}

extern "C" __global__ void __launch_bounds__(256) evaluate_1(
    double *__restrict__ y_vals,
    const int32_t *__restrict__ A2_pos,
    const int32_t *__restrict__ A2_crd,
    const double *__restrict__ A_vals,
    const double *__restrict__ x_vals,
    int64_t n_i)
{
    for (int64_t i = blockIdx.x; i < n_i; i += gridDim.x) {
        double t = 0.0;
        for (int64_t pA2 = A2_pos[i] + threadIdx.x; pA2 < A2_pos[i + 1]; pA2 += blockDim.x) {
            const int64_t j = A2_crd[pA2];
            t += A_vals[pA2] * x_vals[j];
        }
        t = taco_threads_add_f64(t);
        if (threadIdx.x == 0) {
            y_vals[i] = t;
        }
    }
}
