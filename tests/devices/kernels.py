"""Hand-written kernels of CUDA, each with data and what NumPy says of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sps
from numpy.typing import NDArray

from codegen.devices.device import Argument, Buffer, Device, Size

Array = NDArray[np.generic]


@dataclass(frozen=True)
class Launching:
    """What a kernel is launched with; a number is passed as int32 and an array as a buffer.

    outputs  what arrays hold afterwards, by the names of the arguments
    """

    grid: Size
    block: Size
    arguments: dict[str, Array | int]
    outputs: dict[str, Array]
    shared_bytes: int = 0
    empty: frozenset[str] = frozenset()
    unordered: bool = False


@dataclass(frozen=True)
class Case:
    """A text of one kernel, and how to draw data for it."""

    name: str
    text: str
    draw: Callable[[np.random.Generator], Launching]


def run(
    device: Device,
    case: Case,
    rng: np.random.Generator,
    text: str | None = None,
    options: tuple[str, ...] = (),
) -> object:
    """Launch `case` (with another text, if one is given) and compare what it computes."""
    launching = case.draw(rng)
    module = device.load(case.text if text is None else text, options)
    buffers: dict[str, Buffer] = {}
    arguments: list[Argument] = []
    for name, value in launching.arguments.items():
        if isinstance(value, np.ndarray):
            buffers[name] = device.allocate(value.nbytes, name)
            if name not in launching.empty:
                device.upload(buffers[name], value)
            arguments.append(buffers[name])
        else:
            arguments.append(np.int32(value))
    record = module.launch(
        case.name, launching.grid, launching.block, launching.shared_bytes, arguments
    )
    for name, want in launching.outputs.items():
        got = np.empty_like(want)
        device.download(buffers[name], got)
        if launching.unordered:
            got = np.sort(got)
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
        else:
            np.testing.assert_array_equal(got, want)
    return record


def _csr(rng: np.random.Generator, n: int, m: int) -> sps.csr_array:
    matrix = sps.random_array((n, m), density=0.1, rng=rng, format="csr", dtype=np.float64)
    matrix.indices, matrix.indptr = matrix.indices.astype("i4"), matrix.indptr.astype("i4")
    return matrix


def _spmv(grid: int, block: int) -> Callable[[np.random.Generator], Launching]:
    def draw(rng: np.random.Generator) -> Launching:
        matrix, x = _csr(rng, 150, 90), rng.standard_normal(90)
        y = matrix @ x
        arguments: dict[str, Array | int] = {
            "n": 150, "pos": matrix.indptr, "crd": matrix.indices, "vals": matrix.data, "x": x,
            "y": np.zeros(150),
        }  # fmt: skip
        return Launching(grid, block, arguments, {"y": y}, empty=frozenset({"y"}))

    return draw


SPMV_ROWS = Case(
    "spmv_rows",
    r"""
extern "C" __global__ void __launch_bounds__(64)
spmv_rows(int n, const int *__restrict__ pos, const int *__restrict__ crd,
          const double *__restrict__ vals, const double *__restrict__ x, double *__restrict__ y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double sum = 0;
    for (int p = pos[i]; p < pos[i + 1]; p++)
        sum += vals[p] * x[crd[p]];
    y[i] = sum;
}
""",
    _spmv(3, 64),
)

SPMV_WARPS = Case(
    "spmv_warps",
    r"""
__device__ static inline double warp_sum(double value)
{
    for (int d = 16; d > 0; d >>= 1)
        value += __shfl_down_sync(0xffffffffu, value, d);
    return value;
}

extern "C" __global__ void __launch_bounds__(128)
spmv_warps(int n, const int *__restrict__ pos, const int *__restrict__ crd,
           const double *__restrict__ vals, const double *__restrict__ x, double *__restrict__ y)
{
    int lane = threadIdx.x & 31;
    for (int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < n;
         i += gridDim.x * blockDim.x / 32) {
        double sum = 0;
        for (int p = pos[i] + lane; p < pos[i + 1]; p += 32)
            sum += vals[p] * __ldg(&x[crd[p]]);
        sum = warp_sum(sum);
        if (lane == 0)
            y[i] = sum;
    }
}
""",
    _spmv(7, 128),
)


def _block_sum(rng: np.random.Generator) -> Launching:
    x = rng.standard_normal(1000).astype("f4")
    total = np.array([x.astype("f8").sum()], "f4")
    return Launching(3, 128, {"n": 1000, "x": x, "total": np.zeros(1, "f4")}, {"total": total})


BLOCK_SUM = Case(
    "block_sum",
    r"""
extern "C" __global__ void __launch_bounds__(128)
block_sum(int n, const float *__restrict__ x, float *__restrict__ total)
{
    __shared__ float part[128];
    int t = threadIdx.x;
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
        sum += x[i];
    part[t] = sum;
    __syncthreads();
    for (int d = blockDim.x / 2; d > 0; d >>= 1) {
        if (t < d)
            part[t] += part[t + d];
        __syncthreads();
    }
    if (t == 0)
        atomicAdd(total, part[0]);
}
""",
    _block_sum,
)


def _gemm(rng: np.random.Generator) -> Launching:
    n, m, k = 40, 35, 50
    a, b = rng.standard_normal((n, k)).astype("f4"), rng.standard_normal((k, m)).astype("f4")
    return Launching(
        ((m + 15) // 16, (n + 15) // 16),
        (16, 16),
        {"n": n, "m": m, "k": k, "A": a, "B": b, "C": np.zeros((n, m), "f4")},
        {"C": a @ b},
        empty=frozenset({"C"}),
    )


GEMM = Case(
    "gemm",
    r"""
extern "C" __global__ void __launch_bounds__(256)
gemm(int n, int m, int k, const float *__restrict__ A, const float *__restrict__ B,
     float *__restrict__ C)
{
    __shared__ float a[16][17];
    __shared__ float b[16][17];
    int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    float sum = 0.0f;
    for (int l = 0; l < k; l += 16) {
        a[threadIdx.y][threadIdx.x] =
            i < n && l + threadIdx.x < k ? A[i * k + l + threadIdx.x] : 0.0f;
        b[threadIdx.y][threadIdx.x] =
            j < m && l + threadIdx.y < k ? B[(l + threadIdx.y) * m + j] : 0.0f;
        __syncthreads();
        for (int q = 0; q < 16; q++)
            sum += a[threadIdx.y][q] * b[q][threadIdx.x];
        __syncthreads(); // before the next tile
    }
    if (i < n && j < m)
        C[i * m + j] = sum;
}
""",
    _gemm,
)


def _scan(rng: np.random.Generator) -> Launching:
    x = rng.integers(0, 9, 4 * 64).astype("i4")
    want = np.cumsum(x.reshape(4, 64), axis=1).reshape(-1).astype("i4")
    return Launching(
        4, 64, {"x": x, "y": np.zeros(256, "i4")}, {"y": want}, 2 * 64 * 4, frozenset({"y"})
    )


SCAN = Case(
    "scan",
    r"""
extern "C" __global__ void __launch_bounds__(64)
scan(const int *__restrict__ x, int *__restrict__ y)
{
    extern __shared__ int sums[];
    int t = threadIdx.x, from = 0;
    sums[t] = x[blockIdx.x * blockDim.x + t];
    __syncthreads();
    for (int d = 1; d < blockDim.x; d *= 2) {
        int to = blockDim.x - from;
        sums[to + t] = sums[from + t] + (t >= d ? sums[from + t - d] : 0);
        from = to;
        __syncthreads();
    }
    y[blockIdx.x * blockDim.x + t] = sums[from + t];
}
""",
    _scan,
)


def _histogram(rng: np.random.Generator) -> Launching:
    x = rng.integers(0, 20, 700).astype("i4")
    want = np.bincount(x, minlength=20).astype("u4")
    return Launching(3, 96, {"n": 700, "x": x, "counts": np.zeros(20, "u4")}, {"counts": want})


HISTOGRAM = Case(
    "histogram",
    r"""
extern "C" __global__ void histogram(int n, const int *__restrict__ x,
                                     unsigned *__restrict__ counts)
{
    __shared__ unsigned bins[20];
    if (threadIdx.x < 20)
        bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[x[i]], 1u);
    __syncthreads();
    if (threadIdx.x < 20)
        atomicAdd(&counts[threadIdx.x], bins[threadIdx.x]);
}
""",
    _histogram,
)


def _hash(rng: np.random.Generator) -> Launching:
    keys = rng.integers(1, 60, 200).astype("i4")
    want = np.zeros(64, "i4")
    unique = np.unique(keys)
    want[64 - unique.size :] = unique
    return Launching(
        2, 100, {"n": 200, "keys": keys, "table": np.zeros(64, "i4")}, {"table": want},
        unordered=True,
    )  # fmt: skip


HASH = Case(
    "hash_insert",
    r"""
extern "C" __global__ void hash_insert(int n, const int *__restrict__ keys,
                                       int *__restrict__ table)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int key = keys[i];
    unsigned slot = ((unsigned)key * 2654435761u) >> 26;
    for (;;) {
        int old = atomicCAS(&table[slot], 0, key);
        if (old == 0 || old == key)
            break;
        slot = (slot + 1) & 63u;
    }
}
""",
    _hash,
)


def _float_max(rng: np.random.Generator) -> Launching:
    x = rng.standard_normal(300).astype("f4")
    most = np.full(3, -np.inf, "f4")
    want = np.array([x[i::3].max() for i in range(3)], "f4")
    return Launching(2, 96, {"n": 300, "x": x, "most": most}, {"most": want})


FLOAT_MAX = Case(
    "float_max",
    r"""
__device__ static inline void atomic_max(float *place, float value)
{
    int old = atomicAdd((int *)place, 0);
    while (__int_as_float(old) < value) {
        int seen = atomicCAS((int *)place, old, __float_as_int(value));
        if (seen == old)
            break;
        old = seen;
    }
}

extern "C" __global__ void float_max(int n, const float *__restrict__ x, float *__restrict__ most)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomic_max(&most[i % 3], x[i]);
}
""",
    _float_max,
)


def _transpose(rng: np.random.Generator) -> Launching:
    n, m = 70, 45
    a = rng.integers(0, 100, (n, m)).astype("i2")
    return Launching(
        ((m + 31) // 32, (n + 31) // 32),
        (32, 8),
        {"n": n, "m": m, "A": a, "B": np.zeros((m, n), "i2")},
        {"B": a.T.copy()},
        empty=frozenset({"B"}),
    )


TRANSPOSE = Case(
    "transpose",
    r"""
extern "C" __global__ void __launch_bounds__(256)
transpose(int n, int m, const short *__restrict__ A, short *__restrict__ B)
{
    __shared__ short tile[32][33];
    int row = blockIdx.y * 32, column = blockIdx.x * 32;
    for (int r = threadIdx.y; r < 32; r += 8)
        if (row + r < n && column + threadIdx.x < m)
            tile[r][threadIdx.x] = A[(row + r) * m + column + threadIdx.x];
    __syncthreads();
    for (int r = threadIdx.y; r < 32; r += 8)
        if (column + r < m && row + threadIdx.x < n)
            B[(column + r) * n + row + threadIdx.x] = tile[threadIdx.x][r];
}
""",
    _transpose,
)


def _rotate(rng: np.random.Generator) -> Launching:
    x = rng.standard_normal(128)
    want = np.concatenate([np.roll(w, -1) + np.roll(w, 3) for w in x.reshape(4, 32)])
    return Launching(2, 64, {"x": x, "y": np.zeros(128)}, {"y": want}, empty=frozenset({"y"}))


ROTATE = Case(
    "rotate",
    r"""
extern "C" __global__ void rotate(const double *__restrict__ x, double *__restrict__ y)
{
    __shared__ double lanes[2][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    lanes[warp][lane] = x[i];
    __syncwarp(); // all are written
    double next = lanes[warp][(lane + 1) % 32];
    __syncwarp(); // all are read
    lanes[warp][lane] = x[i] + 1;
    __syncwarp(); // all are written again
    y[i] = next + lanes[warp][(lane + 29) % 32] - 1;
}
""",
    _rotate,
)


def _compact(rng: np.random.Generator) -> Launching:
    x = rng.integers(-50, 50, 320).astype("i4")
    kept = np.sort(x[x > 0])
    out = np.zeros(320, "i4")
    want = np.concatenate([np.zeros(320 - kept.size, "i4"), kept])
    return Launching(
        3, 128, {"n": 320, "x": x, "out": out, "count": np.zeros(1, "i4")}, {"out": want},
        unordered=True,
    )  # fmt: skip


COMPACT = Case(
    "compact",
    r"""
extern "C" __global__ void compact(int n, const int *__restrict__ x, int *__restrict__ out,
                                   int *__restrict__ count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    int value = i < n ? x[i] : 0;
    unsigned kept = __ballot_sync(0xffffffffu, value > 0);
    int first = 0;
    if (lane == 0)
        first = atomicAdd(count, __popc(kept));
    first = __shfl_sync(0xffffffffu, first, 0);
    if (value > 0)
        out[first + __popc(kept & ((1u << lane) - 1))] = value;
}
""",
    _compact,
)


def _halves(rng: np.random.Generator) -> Launching:
    x = rng.integers(0, 1000, 64).astype("i4")
    want = np.repeat([x[i : i + 16].max() for i in range(0, 64, 16)], 16).astype("i4")
    return Launching(1, 64, {"x": x, "y": np.zeros(64, "i4")}, {"y": want}, empty=frozenset({"y"}))


HALVES = Case(
    "halves",
    r"""
extern "C" __global__ void halves(const int *__restrict__ x, int *__restrict__ y)
{
    int t = threadIdx.x, value = x[t];
    unsigned mask = (t & 16) ? 0xffff0000u : 0x0000ffffu;
    if (t & 16) {
        for (int d = 8; d > 0; d >>= 1)
            value = max(value, __shfl_xor_sync(mask, value, d));
    } else {
        value = __reduce_max_sync(mask, value);
    }
    y[t] = value;
}
""",
    _halves,
)


def _scale4(rng: np.random.Generator) -> Launching:
    x = rng.standard_normal(400).astype("f4")
    return Launching(
        2, 64, {"n": 100, "x": x, "y": np.zeros(400, "f4")}, {"y": 3 * x}, empty=frozenset({"y"})
    )


SCALE4 = Case(
    "scale4",
    r"""
extern "C" __global__ void scale4(int n, const float *__restrict__ x, float *__restrict__ y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 v = ((const float4 *)(x))[i];
        ((float4 *)(y))[i] = make_float4(3 * v.x, 3 * v.y, 3 * v.z, 3 * v.w);
    }
}
""",
    _scale4,
)


def _mark(rng: np.random.Generator) -> Launching:
    x = rng.integers(0, 2, 130).astype("u1")
    return Launching(
        3, 64, {"n": 130, "x": x, "y": np.zeros(130, "u1"), "some": np.zeros(1, "i4")},
        {"y": 1 - x, "some": np.array([int(x.sum())], "i4")}, empty=frozenset({"y"}),
    )  # fmt: skip


MARK = Case(
    "mark",
    r"""
__constant__ unsigned char flipped[2] = {1, 0};

extern "C" __global__ void mark(int n, const unsigned char *__restrict__ x,
                                unsigned char *__restrict__ y, int *__restrict__ some)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = flipped[x[i]];
    int found = __syncthreads_count(i < n && x[i] != 0);
    if (threadIdx.x == 0)
        atomicAdd(some, found);
}
""",
    _mark,
)


def _largest(rng: np.random.Generator) -> Launching:
    x = rng.integers(1, 100, (40, 8)).astype("i4")
    want = (np.sort(x, axis=1)[:, :-4:-1].sum(axis=1) // x[:, 0]).astype("i4")
    return Launching(
        2, 32, {"n": 40, "x": x, "y": np.zeros(40, "i4")}, {"y": want}, empty=frozenset({"y"})
    )


LARGEST = Case(
    "largest",
    r"""
extern "C" __global__ void largest(int n, const int *__restrict__ x, int *__restrict__ y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, best[3] = {0, 0, 0}, place = 0;
    if (i >= n)
        return;
    for (int j = 0; j < 8; j++) {
        int value = x[i * 8 + j];
        for (place = 0; place < 3; place++)
            if (value > best[place]) {
                int other = best[place];
                best[place] = value;
                value = other;
            }
    }
    y[i] = (best[0] + best[1] + best[2]) / x[i * 8];
}
""",
    _largest,
)


def _last_block(rng: np.random.Generator) -> Launching:
    x = rng.integers(0, 100, 6 * 64).astype("i4")
    return Launching(
        6,
        64,
        {
            "x": x, "partial": np.zeros(6, "i4"), "count": np.zeros(1, "u4"),
            "total": np.zeros(1, "i4"),
        },
        {"total": x.sum(keepdims=True, dtype="i4"), "count": np.zeros(1, "u4")},
        empty=frozenset({"partial", "total"}),
    )  # fmt: skip


LAST_BLOCK = Case(
    "last_block",
    r"""
extern "C" __global__ void last_block(const int *__restrict__ x, int *__restrict__ partial,
                                      unsigned *__restrict__ count, int *__restrict__ total)
{
    __shared__ int sums[2];
    __shared__ bool last;
    int t = threadIdx.x, sum = __reduce_add_sync(0xffffffffu, x[blockIdx.x * 64 + t]);
    if (t % 32 == 0)
        sums[t / 32] = sum;
    __syncthreads();
    if (t == 0) {
        partial[blockIdx.x] = sums[0] + sums[1];
        __threadfence(); // it is known before it is counted
        last = atomicAdd(count, 1u) == gridDim.x - 1;
        __threadfence(); // what was counted is known
    }
    __syncthreads();
    if (!last)
        return;
    if (t < 6)
        sum = partial[t];
    else
        sum = 0;
    if (t < 32)
        sum = __reduce_add_sync(0xffffffffu, sum);
    if (t == 0) {
        *total = sum;
        *count = 0;
    }
}
""",
    _last_block,
)


def _chained_scan(rng: np.random.Generator) -> Launching:
    x = rng.integers(0, 100, 7 * 32).astype("i4")
    return Launching(
        7,
        32,
        {
            "x": x, "y": np.zeros(7 * 32, "i4"), "sums": np.zeros(7, "i4"),
            "flags": np.zeros(7, "i4"), "next": np.zeros(1, "i4"), "done": np.zeros(1, "i4"),
        },
        {"y": np.cumsum(x).astype("i4"), "done": np.array([7], "i4")},
        empty=frozenset({"y", "sums"}),
    )  # fmt: skip


CHAINED_SCAN = Case(
    "chained_scan",
    r"""
extern "C" __global__ void chained_scan(const int *__restrict__ x, int *__restrict__ y, int *sums,
                                        int *flags, int *next, int *done)
{
    int t = threadIdx.x, b = 0, before = 0;
    if (t == 0)
        b = atomicAdd(next, 1);
    b = __shfl_sync(0xffffffffu, b, 0);
    int sum = x[b * 32 + t];
    for (int d = 1; d < 32; d *= 2) {
        int other = __shfl_up_sync(0xffffffffu, sum, d);
        if (t >= d)
            sum += other;
    }
    if (t == 31) {
        if (b > 0) {
            while (*(volatile int *)&flags[b - 1] == 0)
                ;
            __threadfence();
            before = sums[b - 1];
        }
        sums[b] = before + sum;
        __threadfence();
        *(volatile int *)&flags[b] = 1;
        atomicAdd(done, 1);
    }
    y[b * 32 + t] = sum + __shfl_sync(0xffffffffu, before, 31);
}
""",
    _chained_scan,
)

CASES = (
    SPMV_ROWS, SPMV_WARPS, BLOCK_SUM, GEMM, SCAN, HISTOGRAM, HASH, FLOAT_MAX, TRANSPOSE, ROTATE,
    COMPACT, HALVES, SCALE4, MARK, LARGEST, LAST_BLOCK, CHAINED_SCAN,
)  # fmt: skip
