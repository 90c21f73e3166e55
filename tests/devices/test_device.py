"""Memory, modules and launches of the emulated device: what is refused, and in which words."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.devices.device import DeviceError, LaunchError
from codegen.devices.emulated import EmulatedDevice
from codegen.devices.reports import EmulationError, Fault
from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.errors import CompileError

_ADD = r"""
extern "C" __global__ void add(int n, float by, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i] + by;
}
"""


@pytest.fixture
def device(cache: KernelCache) -> EmulatedDevice:
    return EmulatedDevice(cache)


def test_memory_goes_there_and_back(device: EmulatedDevice) -> None:
    buffer = device.allocate(24, "b")
    device.upload(buffer, np.arange(6, dtype="f4").reshape(2, 3).T)
    device.upload(buffer, np.array([9], "f4"), offset=4)
    out = np.empty((3, 2), "f4")
    device.download(buffer, out)
    assert out.reshape(-1).tolist() == [0, 9, 1, 4, 2, 5]
    device.fill(buffer)
    device.download(buffer, out)
    assert not out.any()
    assert buffer.address % 256 == 0
    device.fill(buffer, 1, offset=8)
    other = device.allocate(24, "c")
    device.fill(other)
    device.copy(other, buffer, 12)
    device.download(other, out.view("u1"))
    assert out.view("u1").reshape(-1).tolist() == [0] * 8 + [1] * 4 + [0] * 12
    with pytest.raises(DeviceError, match="bytes 0 to 24 of buffer b, found 0 to 25"):
        device.copy(device.allocate(32), buffer, 25)


def test_copies_beyond_the_end_are_refused(device: EmulatedDevice) -> None:
    buffer = device.allocate(8, "b")
    with pytest.raises(DeviceError, match="bytes 0 to 8 of buffer b, found 4 to 12"):
        device.upload(buffer, np.zeros(1), offset=4)
    with pytest.raises(DeviceError, match="lie one after the other"):
        device.download(buffer, np.zeros((2, 2), "i1").T[:1])


def test_a_freed_buffer_is_refused(device: EmulatedDevice) -> None:
    buffer, other = device.allocate(4, "gone"), device.allocate(4, "y")
    buffer.free()
    with pytest.raises(DeviceError, match="gone, 4 bytes, freed"):
        device.fill(buffer)
    with pytest.raises(LaunchError, match="in use for x, found <buffer gone"):
        device.load(_ADD).launch("add", 1, 1, 0, [np.int32(1), np.float32(1), buffer, other])


def test_a_buffer_of_another_device_is_refused(device: EmulatedDevice, cache: KernelCache) -> None:
    other = EmulatedDevice(cache).allocate(4, "x")
    with pytest.raises(DeviceError, match="of another one"):
        device.fill(other)
    with pytest.raises(LaunchError, match="of another"):
        device.load(_ADD).launch("add", 1, 1, 0, [np.int32(1), np.float32(1), other, other])


@pytest.mark.parametrize(
    ("grid", "block", "shared", "message"),
    [
        (0, 1, 0, "Expected a grid of 1 to 2147483647 along x, found 0"),
        ((1, 70000), 1, 0, "grid of 1 to 65535 along y, found 70000"),
        (1, 1025, 0, "block of 1 to 1024 along x, found 1025"),
        (1, (64, 32), 0, "at most 1024 threads a block, found 2048"),
        (1, 1, 300000, "at most 232448 bytes of shared memory, found 300000"),
    ],
)
def test_launches_beyond_the_limits(
    device: EmulatedDevice, grid: int, block: int, shared: int, message: str
) -> None:
    with pytest.raises(LaunchError, match=message) as caught:
        device.load(_ADD).launch("add", grid, block, shared)
    assert caught.value.kernel == "add"
    assert "add<<<(" in str(caught.value)


def test_too_many_shared_variables(device: EmulatedDevice) -> None:
    text = 'extern "C" __global__ void k(void) { __shared__ double a[7000]; a[0] = 1; }'
    with pytest.raises(LaunchError, match=r"at most 49152 bytes of shared variables.*56000"):
        device.load(text).launch("k", 1, 1)


def test_shared_variables_are_those_of_one_kernel(device: EmulatedDevice) -> None:
    """Two kernels of 40 KB each fit, as they do not run at once; those of functions are of both."""
    text = r"""
__device__ static inline int last(int n)
{
    __shared__ int common[10];
    common[threadIdx.x] = n;
    return common[threadIdx.x];
}
extern "C" __global__ void one(int *x)
{
    __shared__ int a[10000], b[2];
    b[0] = a[3] = last(7);
    x[0] = b[0];
}
extern "C" __global__ void two(int *x)
{
    __shared__ int a[10000];
    __shared__ short c[2];
    c[1] = a[3] = last(8);
    x[1] = c[1];
}
"""
    x = device.allocate(8, "x")
    module = device.load(text)
    assert module.kernels == ("one", "two")
    assert (module.shared_bytes("one"), module.shared_bytes("two")) == (40048, 40044)
    for kernel in module.kernels:
        module.launch(kernel, 1, 1, 0, [x])
    out = np.empty(2, "i4")
    device.download(x, out)
    assert out.tolist() == [7, 8]


def test_arguments_are_compared_with_parameters(device: EmulatedDevice) -> None:
    module, x = device.load(_ADD), device.allocate(4, "x")
    with pytest.raises(LaunchError, match=r"4 arguments \(n, by, x, y\), found 1"):
        module.launch("add", 1, 1, 0, [x])
    with pytest.raises(LaunchError, match=r"numpy\.int32 for the parameter n, found numpy\.int64"):
        module.launch("add", 1, 1, 0, [np.int64(1), np.float32(1), x, x])
    with pytest.raises(LaunchError, match=r"numpy\.float32 for the parameter by, found a buffer"):
        module.launch("add", 1, 1, 0, [np.int32(1), x, x, x])
    with pytest.raises(LaunchError, match="a buffer for the parameter x, found float"):
        module.launch("add", 1, 1, 0, [np.int32(1), np.float32(1), 1.0, x])  # type: ignore[list-item]
    with pytest.raises(LaunchError, match="one of add, found sub"):
        module.launch("sub", 1, 1)


def test_all_types_of_scalars_arrive(device: EmulatedDevice) -> None:
    text = r"""
#include <stdint.h>
extern "C" __global__ void put(bool a, signed char b, unsigned short c, unsigned d, int64_t e,
                               unsigned long long f, float g, double h, double *y)
{
    y[0] = a, y[1] = b, y[2] = c, y[3] = d, y[4] = e, y[5] = f, y[6] = g, y[7] = h;
}
"""
    y = device.allocate(64, "y")
    scalars = [
        np.bool_(True), np.int8(-2), np.uint16(3), np.uint32(2**32 - 1), np.int64(-5),
        np.uint64(6), np.float32(0.5), np.float64(-0.25),
    ]  # fmt: skip
    device.load(text).launch("put", 1, 1, 0, [*scalars, y])
    out = np.empty(8)
    device.download(y, out)
    assert out.tolist() == [float(value) for value in scalars]


def test_pointers_into_buffers(device: EmulatedDevice) -> None:
    x, y = device.allocate(16, "x"), device.allocate(4, "y")
    device.upload(x, np.arange(4, dtype="f4"))
    module = device.load(_ADD)
    module.launch("add", 1, 1, 0, [np.int32(1), np.float32(1), x.at(8), y])
    out = np.empty(1, "f4")
    device.download(y, out)
    assert out == 3
    with pytest.raises(LaunchError, match="found byte 17 of 16"):
        module.launch("add", 1, 1, 0, [np.int32(1), np.float32(1), x.at(17), y])


@pytest.mark.parametrize(
    ("grid", "block"),
    [((3, 2, 4), (5, 3, 2)), ((2, 1), (1024,)), ((70000,), (1,)), ((2,), (33, 31))],
)
def test_each_thread_has_its_own_place(
    device: EmulatedDevice, grid: tuple[int, ...], block: tuple[int, ...]
) -> None:
    """Also behind a barrier, where all threads of a block are under way at once."""
    text = r"""
extern "C" __global__ void place(unsigned long long *y)
{
    unsigned b = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned t = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    unsigned i = b * blockDim.x * blockDim.y * blockDim.z + t;
    y[i] = threadIdx.x + 100000ull * blockIdx.z;
    __syncthreads();
    y[i] += 10000000ull * (threadIdx.y + 100 * threadIdx.z + 10000ull * (blockIdx.x + blockIdx.y));
}
"""
    blocks, threads = int(np.prod(grid)), int(np.prod(block))
    b, t = np.arange(blocks)[:, None], np.arange(threads)
    (gx, gy, _), (bx, by, _) = (*grid, 1, 1)[:3], (*block, 1, 1)[:3]
    want = (
        t % bx
        + 100000 * (b // gx // gy)
        + 10000000 * (t // bx % by + 100 * (t // bx // by) + 10000 * (b % gx + b // gx % gy))
    )
    y = device.allocate(8 * blocks * threads, "y")
    device.load(text).launch("place", grid, block, 0, [y])
    out = np.empty((blocks, threads), "u8")
    device.download(y, out)
    assert (out == want.astype("u8")).all()


def test_a_report_says_where_and_who(device: EmulatedDevice) -> None:
    x, y = device.allocate(40, "x"), device.allocate(48, "y")
    device.upload(x, np.zeros(10, "f4"))
    with pytest.raises(EmulationError) as caught:
        device.load(_ADD).launch("add", 3, (4, 1), 0, [np.int32(11), np.float32(1), x, y])
    (report,) = caught.value.reports
    assert report.fault is Fault.OUT_OF_BOUNDS
    assert (report.buffer, report.offset, report.size, report.line) == ("x", 40, 4, 6)
    assert report.who is not None
    assert (report.who.block, report.who.thread) == ((2, 0, 0), (2, 0, 0))
    assert report.source == "y[i] = x[i] + by;"
    assert "read of 4 bytes at byte 40 of x" in str(caught.value)
    assert "line 6 of add" in str(caught.value)
    assert "hint: compare the index" in str(caught.value)


def test_a_download_of_what_nobody_wrote_is_reported(device: EmulatedDevice) -> None:
    y, z, found = device.allocate(40, "y"), device.allocate(40, "z"), np.empty(10, "f4")
    device.upload(y, np.arange(6, dtype="f4"))
    device.upload(y, np.arange(2, dtype="f4"), 32)
    device.copy(z, y, 36)  # with what is not there
    for buffer, empty in ((y, 8), (z, 12)):
        with pytest.raises(EmulationError, match="first one at byte 24") as caught:
            device.download(buffer, found)
        (report,) = caught.value.reports
        assert report.fault is Fault.UNINITIALISED and report.who is None
        assert (report.buffer, report.offset, report.size) == (buffer.name, 24, empty)
        device.download(buffer, found[:6])


def test_structures_that_functions_return_into_memory_are_writes(device: EmulatedDevice) -> None:
    text = r"""
__device__ static inline double2 f(double2 z)
{
    for (int i = 0; i < 9; i++)
        z.x = z.x > 4 ? z.x / z.y : z.x * z.x - z.y;
    return z;
}
extern "C" __global__ void k(double2 *y, const double2 *x) { y[0] = f(x[0]); y[1] = f(x[1]); }
"""
    x, y = device.allocate(32, "x"), device.allocate(32, "y")
    device.upload(x, np.array([1, 2, 3, 4.0]))
    device.load(text).launch("k", 1, 1, 0, [y, x])
    found = np.empty(4)
    device.download(y, found)
    assert found[1] == 2 and found[3] == 4


def test_a_buffer_that_is_no_argument_is_out_of_bounds(device: EmulatedDevice) -> None:
    """Its address came by another way."""
    text = r"""
extern "C" __global__ void peek(unsigned long long address, float *y) { y[0] = *(float *)address; }
"""
    x, y = device.allocate(4, "x"), device.allocate(4, "y")
    device.fill(x)
    with pytest.raises(EmulationError, match="out of bounds: read of 4 bytes at byte 0 of x"):
        device.load(text).launch("peek", 1, 1, 0, [np.uint64(x.address), y])
    with pytest.raises(EmulationError, match="at address 0x10, which is in no buffer"):
        device.load(text).launch("peek", 1, 1, 0, [np.uint64(16), y])


def test_what_another_launch_did_is_no_race(device: EmulatedDevice) -> None:
    x = device.allocate(4 * 64, "x")
    device.fill(x)
    module = device.load(_ADD)
    for _ in range(3):
        module.launch("add", 1, 64, 0, [np.int32(64), np.float32(1), x, x])
    out = np.empty(64, "f4")
    device.download(x, out)
    assert (out == 3).all()


def test_the_same_seed_is_the_same_order(cache: KernelCache) -> None:
    """Floats that are added by atomics tell the order."""
    text = r"""
extern "C" __global__ void total(const float *x, float *y)
{
    atomicAdd(y, x[blockIdx.x * blockDim.x + threadIdx.x]);
}
"""
    values = np.random.default_rng(0).standard_normal(1000).astype("f4")

    def total(seed: int) -> float:
        device = EmulatedDevice(cache, seed=seed)
        x, y = device.allocate(4000, "x"), device.allocate(4, "y")
        device.upload(x, values)
        device.fill(y)
        device.load(text).launch("total", 10, 100, 0, [x, y])
        out = np.empty(1, "f4")
        device.download(y, out)
        return float(out[0])

    sums = [total(seed) for seed in range(6)]
    assert sums == [total(seed) for seed in range(6)]
    assert len(set(sums)) > 1


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("atomicAdd(a, 1)", "long long"), ("atomicMax(a, 1.0f)", "float"),
        ("atomicSub(a, 1)", "double"), ("atomicAnd(a, 1)", "long long"),
        ("atomicCAS(a, 0, 1)", "float"), ("atomicExch(a, 1)", "double"),
        ("atomicAdd(a, 1)", "short"), ("__reduce_add_sync(0xffffffffu, *a)", "float"),
    ],
)  # fmt: skip
def test_atomics_that_cuda_lacks_do_not_compile(
    device: EmulatedDevice, call: str, kind: str
) -> None:
    with pytest.raises(CompileError, match=r"kernel\.cu:1:"):
        device.load(f'extern "C" __global__ void k({kind} *a) {{ {call}; }}')


def test_text_without_a_kernel(device: EmulatedDevice) -> None:
    with pytest.raises(DeviceError, match="Expected a kernel, found none"):
        device.load("__device__ int f(int x) { return x; }")


def test_bounds_are_checked_without_the_other_checks(cache: KernelCache) -> None:
    device = EmulatedDevice(cache, checks=False)
    x = device.allocate(40, "x")
    with pytest.raises(EmulationError, match="out of bounds"):
        device.load(_ADD).launch("add", 1, 32, 0, [np.int32(11), np.float32(1), x, x])


def test_a_stack_that_is_too_small(cache: KernelCache) -> None:
    text = r"""
__device__ __noinline__ int deep(int n, int *x)
{
    volatile int here[900];
    here[n % 900] = x[0];
    return n == 0 ? here[0] : deep(n - 1, x) + here[n % 900];
}
extern "C" __global__ void k(int *x) { x[0] = deep(40, x); }
"""
    device = EmulatedDevice(cache)
    x = device.allocate(4, "x")
    device.fill(x)
    with pytest.raises(EmulationError, match="stack overflow"):
        device.load(text).launch("k", 1, 1, 0, [x])
    larger = EmulatedDevice(cache, stack=2**20)
    x = larger.allocate(4, "x")
    larger.fill(x)
    larger.load(text).launch("k", 1, 1, 0, [x])
