"""What launches count: bytes, sectors that warps touch, accesses of each thread."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import taco_py as tp
from codegen.devices.device import Argument
from codegen.devices.emulated import EmulatedDevice
from codegen.devices.launch_record import Launch
from codegen.runtime.kernel_cache import KernelCache
from taco_py.compiler.devices import device_of

_TEXT = r"""
extern "C" __global__ void copy(int n, int stride, int shift, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = x[i * stride + shift];
}

extern "C" __global__ void strides(int n, const double *x, double *y)
{
    double sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += x[i];
    y[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void broadcast(const float *x, float *y)
{
    if (threadIdx.x % 2 == 0)
        y[threadIdx.x] = x[0];
}

extern "C" __global__ void uneven(int n, int *y)
{
    for (int i = 0; i < n; i++)
        if (threadIdx.x == 0 || i == 0)
            atomicAdd(&y[threadIdx.x], 1);
}
"""


def _launch(cache: KernelCache, kernel: str, threads: int, *arguments: object) -> Launch:
    device = EmulatedDevice(cache, seed=1, counting=True)
    values: list[Argument] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            buffer = device.allocate(argument.nbytes)
            device.upload(buffer, argument)
            values.append(buffer)
        else:
            assert isinstance(argument, np.generic)
            values.append(argument)
    return device.load(_TEXT).launch(kernel, (threads + 63) // 64, 64, 0, values)


@pytest.mark.parametrize(
    ("stride", "shift", "sectors"),
    [(1, 0, 4), (1, 1, 5), (1, 8, 4), (2, 0, 8), (8, 0, 32), (0, 3, 1)],
)
def test_sectors_of_a_strided_read(
    cache: KernelCache, stride: int, shift: int, sectors: int
) -> None:
    """A warp's 32 floats fill 4 sectors of 32 bytes; with gaps they are in more."""
    x, y = np.zeros(8 * 128 + 8, "f4"), np.zeros(128, "f4")
    sizes = np.int32(128), np.int32(stride), np.int32(shift)
    record = _launch(cache, "copy", 128, *sizes, x, y)
    read, write = (next(p for p in record.places if p.kind == kind) for kind in ("read", "write"))
    assert (read.accesses, read.bytes, read.requests) == (128, 512, 4)
    assert read.sectors == 4 * sectors
    assert read.ideal_sectors == (4 if stride == 0 else 16)
    assert (write.sectors, write.ideal_sectors) == (16, 16)
    assert (record.bytes_read, record.bytes_written) == (512, 512)
    assert (record.sectors, record.ideal_sectors) == (4 * sectors + 16, read.ideal_sectors + 16)
    assert read.line == write.line == 6


def test_each_turn_of_a_loop_is_a_request(cache: KernelCache) -> None:
    """5 turns of each of 4 warps, the last one of 2 warps."""
    n = 4 * 128 + 64
    record = _launch(cache, "strides", 128, np.int32(n), np.ones(n), np.zeros(128))
    read = next(place for place in record.places if place.kind == "read")
    assert read.requests == 4 * 4 + 2
    assert read.sectors == read.ideal_sectors == n * 8 // 32
    assert record.imbalance == pytest.approx(6 / (4.5 + 1))


def test_lanes_that_read_one_place_share_a_sector(cache: KernelCache) -> None:
    record = _launch(cache, "broadcast", 32, np.zeros(1, "f4"), np.zeros(64, "f4"))
    read, write = record.places
    assert (read.accesses, read.sectors, read.ideal_sectors) == (32, 2, 2)
    assert (write.sectors, write.ideal_sectors) == (8, 4)


def test_accesses_of_each_thread(cache: KernelCache) -> None:
    record = _launch(cache, "uneven", 64, np.int32(9), np.zeros(64, "i4"))
    assert record.accesses_per_thread is not None
    assert record.accesses_per_thread.tolist() == [9] + [1] * 63
    assert record.atomics == 9 + 63
    assert record.imbalance == pytest.approx(9 / (72 / 64))
    assert (record.bytes_read, record.bytes_written, record.sectors) == (0, 0, 0)


@pytest.mark.parametrize(("stride", "shift", "sectors"), [(1, 0, 16), (1, 1, 20), (8, 0, 128)])
def test_bytes_of_sectors(cache: KernelCache, stride: int, shift: int, sectors: int) -> None:
    x, y = np.zeros(8 * 128 + 8, "f4"), np.zeros(128, "f4")
    sizes = np.int32(128), np.int32(stride), np.int32(shift)
    record = _launch(cache, "copy", 128, *sizes, x, y)
    assert (record.sector_bytes_read, record.sector_bytes_written) == (32 * sectors, 512)
    assert record.sector_bytes == 32 * sectors + 512


def test_atomics_read_and_write_their_sectors(cache: KernelCache) -> None:
    """Two warps of 32 integers each are in 8 sectors; 8 more atomics are of thread 0 alone."""
    record = _launch(cache, "uneven", 64, np.int32(9), np.zeros(64, "i4"))
    assert record.sector_bytes_read == record.sector_bytes_written == 32 * (8 + 8)


def test_launches_are_listed_within_a_context(cache: KernelCache) -> None:
    device = EmulatedDevice(cache)
    x, y = device.allocate(512), device.allocate(512)
    device.fill(x)
    module, sizes = device.load(_TEXT), (np.int32(128), np.int32(1), np.int32(0))
    module.launch("copy", 2, 64, 0, [*sizes, x, y])
    with device.counted_launches() as launches:
        module.launch("copy", 2, 64, 0, [*sizes, x, y])
        with device.counted_launches() as inner:
            module.launch("copy", 2, 64, 0, [*sizes, x, y])
        module.launch("copy", 2, 64, 0, [*sizes, x, y])
    assert [launch.sector_bytes for launch in launches] == [1024, 1024]
    assert [launch.sector_bytes for launch in inner] == [1024]
    assert module.launch("copy", 2, 64, 0, [*sizes, x, y]).sector_bytes == 0
    assert len(launches) == 2


def test_sectors_of_a_call(cache: KernelCache) -> None:
    """The launches of a call for the emulated device, made before or not, are counted."""
    x = np.random.default_rng(0).random((64, 128), np.float32)
    call = partial(tp.evaluate, "y[i,j] = 2 * A[i,j] + b[j]", A=x, b=x[0], target="cuda-emulated")
    call()
    device = device_of("cuda-emulated")
    assert isinstance(device, EmulatedDevice)
    with device.counted_launches() as launches:
        result = call()
    np.testing.assert_allclose(result, 2 * x + x[0], rtol=1e-6)
    (launch,) = launches
    assert launch.sector_bytes_written == x.nbytes
    assert x.nbytes < launch.sector_bytes_read <= 2 * x.nbytes
