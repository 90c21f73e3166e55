/*
 * s = sum(i, a[i] * b[i]) with a: d/float64, b: d/float64, s: /float64/
 *
 * s = t
 * where t[]: scalar workspace of float64
 *   forall i parallel (Atomics)
 *     t += a[i] * b[i]
 */

#include <stdint.h>

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
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
         i < n_i;
         i += (int64_t)gridDim.x * blockDim.x) {
        taco_atomic_add_f64(&t_sum[0], a_vals[i] * b_vals[i]);
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
