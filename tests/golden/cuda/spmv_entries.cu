/*
 * y[i] = sum(j, A[i,j] * x[j]) with A: ds/float64/int32, x: d/float64, y: d/float64/o
 *
 * forall block GPUBlock (Atomics)
 *   forall warp GPUWarp (Atomics)
 *     forall each
 *       forall i GPUThread (Atomics)
 *         y[i] += t
 *         where t[]: scalar workspace of float64
 *           forall j
 *             t += A[i,j] * x[j]
 */

#include <stdint.h>

static __device__ inline int64_t taco_min_i64(int64_t a, int64_t b)
{
    const int64_t least = a < b ? a : b;
    return a == a ? least : a;
}

static __device__ inline int64_t taco_search_int32(const int32_t *a, int64_t start, int64_t stop, int64_t value)
{
    while (start < stop) {
        int64_t middle = start + (stop - start) / 2;
        if (a[middle] < value)
            start = middle + 1;
        else
            stop = middle;
    }
    return start;
}

static __device__ inline bool taco_any_lane(bool condition)
{
    return __any_sync(0xffffffff, condition);
}

static __device__ inline void taco_atomic_add_f64(double *place, double value)
{
    atomicAdd(place, value);
}

static __device__ inline void taco_runs_add_f64(double *array, int64_t place, double value)
{
    if (!__any_sync(0xffffffff, place >= 0))
        return;
    const int lane = threadIdx.x % 32;
    const int64_t before = __shfl_up_sync(0xffffffff, place, 1);
    const unsigned heads = __ballot_sync(0xffffffff, lane == 0 || before != place);
    const int behind = __clz(heads << (31 - lane));
    for (int step = 1; step < 32; step *= 2) {
        const double other = __shfl_up_sync(0xffffffff, value, step);
        if (step <= behind)
            value = other + value;
    }
    if (place >= 0 && (lane == 31 || heads >> (lane + 1) & 1))
        taco_atomic_add_f64(&array[place], value);
}

extern "C" __global__ void __launch_bounds__(256) evaluate_1(
    double *__restrict__ y_vals,
    const int32_t *__restrict__ A2_pos,
    const int32_t *__restrict__ A2_crd,
    const double *__restrict__ A_vals,
    const double *__restrict__ x_vals,
    int64_t n_i)
{
    const int64_t p_begin = A2_pos[0];
    const int64_t p_end = A2_pos[n_i];
    for (int64_t block = blockIdx.x;
         block < (p_end - p_begin + 1023) / 1024;
         block += gridDim.x) {
        const int64_t warp = threadIdx.x / 32;
        const int64_t p_from = p_begin + block * 1024 + warp * 128;
        const int64_t p_to = taco_min_i64(p_begin + block * 1024 + warp * 128 + 128, p_end);
        if (p_from < p_to) {
            const int64_t pA1_first = taco_search_int32(A2_pos, 1, n_i, p_from + 1) - 1;
            const int64_t pA1_last = taco_search_int32(A2_pos, pA1_first + 1, n_i, p_to) - 1;
            int64_t at = -1;
            double sum = 0.0;
            for (int32_t each = 0; each < 4; each++) {
                int64_t place = at;
                double term = 0.0;
                {
                    const int32_t lane = threadIdx.x % 32;
                    const int64_t pA2 = p_from + (each * 32 + lane);
                    if (pA2 < p_to) {
                        const int64_t pA1 = taco_search_int32(A2_pos, pA1_first + 1, pA1_last + 1, pA2 + 1) - 1;
                        double t = 0.0;
                        const int64_t j = A2_crd[pA2];
                        t += A_vals[pA2] * x_vals[j];
                        place = pA1;
                        term = t;
                    }
                }
                if (taco_any_lane(place != at)) {
                    taco_runs_add_f64(y_vals, at, sum);
                    at = place;
                    sum = 0.0;
                }
                sum += term;
            }
            taco_runs_add_f64(y_vals, at, sum);
        }
    }
}
