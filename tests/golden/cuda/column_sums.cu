/*
 * y[j] = sum(i, A[i,j]) with A: ds/float64/int32, y: d/float64/o
 *
 * forall i GPUBlock (Atomics)
 *   forall j GPUThread
 *     y[j] += A[i,j]
 */

#include <stdint.h>

static __device__ inline void taco_atomic_add_f64(double *place, double value)
{
    atomicAdd(place, value);
}

extern "C" __global__ void __launch_bounds__(256) evaluate_1(
    double *__restrict__ y_vals,
    const int32_t *__restrict__ A2_pos,
    const int32_t *__restrict__ A2_crd,
    const double *__restrict__ A_vals,
    int64_t n_i)
{
    for (int64_t i = blockIdx.x; i < n_i; i += gridDim.x) {
        for (int64_t pA2 = A2_pos[i] + threadIdx.x; pA2 < A2_pos[i + 1]; pA2 += blockDim.x) {
            const int64_t j = A2_crd[pA2];
            taco_atomic_add_f64(&y_vals[j], A_vals[pA2]);
        }
    }
}
