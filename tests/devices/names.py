"""A kernel that uses the names of CUDA that the emulated device has, and what it computes."""

from __future__ import annotations

import numpy as np

from tests.devices.kernels import Case, Launching

_TEXT = r"""
__device__ static inline float square(float x) { return x * x; }

extern "C" __global__ void __launch_bounds__(64)
every_name(const float *__restrict__ x, const int *__restrict__ k, float *__restrict__ f,
           int *__restrict__ i, unsigned *__restrict__ u, unsigned long long *__restrict__ l,
           double *__restrict__ d, long long *__restrict__ s, unsigned short *__restrict__ h)
{
    int t = threadIdx.x + blockDim.x * threadIdx.y, lane = t % warpSize;
    const unsigned all = 0xffffffffu;
    float v = x[t];
    int n = k[t];

    /* arithmetic of one thread */
    f[t] = rsqrtf(v) + fmaf(v, v, 1.0f) + min(v, 2.0f) + max(v, 0.5f) + fminf(v, 1.0f)
         + square(v) + __int_as_float(__float_as_int(v)) + __uint_as_float(__float_as_uint(v))
         + __fmul_rn(v, 2.0f) + __fadd_rn(v, 1.0f) + fabsf(v) + sqrtf(v) + floorf(v);
    d[t] = rsqrt((double)v) + __longlong_as_double(__double_as_longlong((double)v))
         + fma((double)v, 2.0, 1.0) + exp((double)v) + __dadd_rn((double)v, 1.0);
    u[t] = __popc(n) + __popcll((unsigned long long)n) + __clz(n) + __clzll((long long)n)
         + __ffs(n) + __ffsll((long long)n) + (__brev((unsigned)n) >> 24)
         + __umulhi((unsigned)n, 0x80000000u) + (unsigned)abs(-n) + (unsigned)min(n, 3);

    /* lanes */
    int sum = n;
    for (int by = 16; by > 0; by /= 2)
        sum += __shfl_xor_sync(all, sum, by);
    sum += __shfl_sync(all, n, 3) + __shfl_up_sync(all, n, 1) + __shfl_down_sync(all, n, 2, 8);
    double far = __shfl_sync(all, (double)v, 31 - lane);
    long long wide = __shfl_sync(all, (long long)n << 33, 5);
    sum += (int)(far > 1.0) + (int)(wide >> 33) + __any_sync(all, n == 7) + __all_sync(all, n > 0);
    sum += __popc(__ballot_sync(all, n & 1)) + __popc(__match_any_sync(all, n));
    sum += __reduce_add_sync(all, n) + __reduce_min_sync(all, n) + __reduce_max_sync(all, n);
    sum += (int)__reduce_or_sync(all, (unsigned)n) + (int)__reduce_and_sync(all, (unsigned)n | 1u);
    sum += (__activemask() >> lane) & 1;
    i[t] = sum;
    int both = __syncthreads_count(n & 1) + __syncthreads_or(n > 8) + __syncthreads_and(n > 0);
    i[t] += both;

    /* atomics */
    __threadfence();
    atomicAdd(&i[64], n), atomicSub(&i[65], n), atomicMin(&i[66], -n), atomicMax(&i[67], n);
    atomicAnd(&u[64], ~(unsigned)n), atomicOr(&u[65], (unsigned)n), atomicXor(&u[66], (unsigned)n);
    atomicInc(&u[67], 100u), atomicAdd(&u[68], 1u), atomicDec(&u[69], 100u);
    atomicAdd(&l[0], (unsigned long long)n), atomicMax(&l[1], (unsigned long long)n);
    atomicMin(&s[0], -(long long)n), atomicMax(&s[1], (long long)n);
    atomicAdd(&f[64], 1.0f), atomicAdd(&d[64], 0.5), atomicExch(&f[65], 2.0f);
    atomicCAS(&u[70], 0u, 5u), atomicCAS(&h[0], (unsigned short)0, (unsigned short)6);
    atomicCAS(&l[2], 0ull, 7ull), atomicExch(&i[68], 9);
}
"""


def _draw(rng: np.random.Generator) -> Launching:
    x = rng.uniform(0.1, 3, 64).astype("f4")
    k = rng.integers(1, 10, 64).astype("i4")
    warps = k.reshape(2, 32)
    wide = x.astype("f8")
    one = np.float32(1)
    f = np.concatenate([
        1 / np.sqrt(x) + (x * x + one) + np.minimum(x, 2) + np.maximum(x, np.float32(0.5))
        + np.minimum(x, one) + x * x + x + x + 2 * x + (x + one) + x + np.sqrt(x) + np.floor(x),
        [64, 2],
    ]).astype("f4")  # fmt: skip
    d = np.concatenate([1 / np.sqrt(wide) + wide + (2 * wide + 1) + np.exp(wide) + wide + 1, [32]])
    return Launching(
        1,
        (32, 2),
        {
            "x": x, "k": k, "f": np.zeros(66, "f4"), "i": np.zeros(69, "i4"),
            "u": np.array([0] * 64 + [15] + [0] * 6, "u4"), "l": np.zeros(3, "u8"),
            "d": np.zeros(65), "s": np.zeros(2, "i8"), "h": np.zeros(2, "u2"),
        },
        {
            "f": f, "d": d, "u": _unsigned(k), "i": _signed(warps, x),
            "l": np.array([k.sum(), k.max(), 7], "u8"), "s": np.array([-k.max(), k.max()], "i8"),
            "h": np.array([6, 0], "u2"),
        },
    )  # fmt: skip


def _unsigned(k: np.ndarray) -> np.ndarray:
    ones = np.array([int(n).bit_count() for n in k])
    length = np.array([int(n).bit_length() for n in k])
    first = np.array([(int(n) & -int(n)).bit_length() for n in k])
    turned = np.array([int(f"{int(n):032b}"[::-1], 2) >> 24 for n in k])
    each = 2 * ones + (32 - length) + (64 - length) + 2 * first + turned + k // 2 + k
    each += np.minimum(k, 3)
    down = -64 % 101
    tail = [
        int(np.bitwise_and.reduce(~k.astype("u4") & 15)), int(np.bitwise_or.reduce(k)),
        int(np.bitwise_xor.reduce(k)), 64, 64, down, 5,
    ]  # fmt: skip
    return np.concatenate([each, tail]).astype("u4")


def _signed(warps: np.ndarray, x: np.ndarray) -> np.ndarray:
    k = warps.reshape(-1)
    rows = []
    for warp, values in zip(warps, x.reshape(2, 32), strict=True):
        lanes = np.arange(32)
        down = np.where(lanes % 8 < 6, np.roll(warp, -2), warp)
        same = np.array([(warp == n).sum() for n in warp])
        total = warp.sum() + warp[3] + np.where(lanes > 0, np.roll(warp, 1), warp) + down
        total = total + (values[::-1] > 1.0) + warp[5] + (warp == 7).any() + 1
        total = total + (warp & 1).sum() + same + warp.sum() + warp.min() + warp.max()
        total = total + np.bitwise_or.reduce(warp) + np.bitwise_and.reduce(warp | 1) + 1
        rows.append(total)
    each = np.concatenate(rows) + (k & 1).sum() + int((k > 8).any()) + 1
    tail = [k.sum(), -k.sum(), -k.max(), k.max(), 9]
    return np.concatenate([each, tail]).astype("i4")


EVERY_NAME = Case("every_name", _TEXT, _draw)
