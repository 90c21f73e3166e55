/*
 * s = sum(i, a[i] * b[i]) with a: d/float64, b: d/float64, s: /float64/
 *
 * s = t
 * where t[]: scalar workspace of float64
 *   forall i parallel (Atomics)
 *     t += a[i] * b[i]
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
        value = value + other;
    }
    return value;
}

static __device__ inline double taco_lanes_add_f64(double value)
{
    for (int step = 16; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(0xffffffff, value, step);
        value = value + other;
    }
    return value;
}

static __device__ inline double taco_threads_add_f64(double value)
{
    return taco_warps_add_f64(taco_lanes_add_f64(value));
}

static __device__ inline void taco_atomic_add_f64(double *place, double value)
{
    atomicAdd(place, value);
}

extern "C" __global__ void __launch_bounds__(1) evaluate_1(
    double *__restrict__ t_cell,
    double *__restrict__ t_sum)
{
    t_cell[0] = 0.0;
    t_sum[0] = 0.0;
}

extern "C" __global__ void __launch_bounds__(256) evaluate_2(
    const double *__restrict__ a_vals,
    const double *__restrict__ b_vals,
    double *__restrict__ t_sum,
    int64_t n_i)
{
    double t_sum_own = 0.0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
         i < n_i;
         i += (int64_t)gridDim.x * blockDim.x) {
        t_sum_own += a_vals[i] * b_vals[i];
    }
    t_sum_own = taco_threads_add_f64(t_sum_own);
    if (threadIdx.x == 0) {
        taco_atomic_add_f64(&t_sum[0], t_sum_own);
    }
}

extern "C" __global__ void __launch_bounds__(1) evaluate_3(
    double *__restrict__ s_vals,
    double *__restrict__ t_cell,
    double *__restrict__ t_sum)
{
    t_cell[0] += t_sum[0];
    s_vals[0] = t_cell[0];
}
