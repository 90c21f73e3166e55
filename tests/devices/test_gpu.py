"""The same kernels and programs of streams on a GPU, where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from codegen.devices.cuda.cuda_device import CudaDevice
from codegen.devices.device import LaunchError
from codegen.devices.open_device import Devices
from codegen.runtime.kernel_cache import KernelCache
from tests.devices.fake_driver import SCALE
from tests.devices.kernels import CASES, Case, run
from tests.devices.names import EVERY_NAME
from tests.devices.test_cuda_streams import PROGRAM, Machine, run_program
from tests.devices.test_driver import get, put

MISSING = Devices(KernelCache()).why_not("cuda")
pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture(scope="module")
def gpu(cache: KernelCache) -> CudaDevice:
    return Devices(cache).cuda()


@pytest.mark.parametrize("case", (*CASES, EVERY_NAME), ids=lambda case: case.name)
def test_kernels_agree_with_numpy(case: Case, gpu: CudaDevice) -> None:
    for seed in range(5):
        run(gpu, case, np.random.default_rng(seed))
    module = gpu.load(case.text)
    report = module.binary.report(case.name)
    facts = module.facts(case.name)
    assert report is not None
    assert (facts.registers, facts.shared_bytes) == (report.registers, report.shared_bytes)
    assert 0 < module.occupancy(case.name, 64) <= 1


@settings(max_examples=100, deadline=None, suppress_health_check=(HealthCheck.too_slow,
          HealthCheck.function_scoped_fixture))  # fmt: skip
@given(program=PROGRAM)
def test_streams_in_any_order(program: list[tuple[int, tuple[Any, ...]]], gpu: CudaDevice) -> None:
    run_program(Machine(gpu, 2), program)  # the default stream of this thread


def test_shared_memory_beyond_48_kilobytes(gpu: CudaDevice) -> None:
    text = """
extern "C" __global__ void turn(float *x, int n)
{
    extern __shared__ float tile[];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        tile[n - 1 - i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        x[i] = tile[i];
}
"""
    count = gpu.limits.shared_memory // 4
    values = np.arange(count, dtype="f4")
    x = put(gpu, values)
    gpu.load(text).launch("turn", 1, 256, 4 * count, [x, np.int32(count)])
    np.testing.assert_array_equal(get(gpu, x), values[::-1])


def test_memory_is_used_again(gpu: CudaDevice) -> None:
    gpu.clear_memory()
    free = gpu.memory()[0]
    for _ in range(4):
        gpu.allocate(free // 3)
    gpu.clear_memory()
    assert gpu.memory()[0] >= free - (64 << 20)


def test_events_time_a_copy(gpu: CudaDevice) -> None:
    x, y = gpu.allocate(1 << 28), gpu.allocate(1 << 28)
    gpu.copy(y, x)
    on = gpu.stream_of(None)
    start = on.record()
    gpu.copy(y, x)
    end = on.record()
    end.wait()
    assert 1e-6 < end.seconds_since(start) < 1


def test_tensors_of_torch(gpu: CudaDevice) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this torch has no CUDA")
    scale = gpu.load(SCALE)
    with torch.cuda.stream(torch.cuda.Stream()):
        tensor = torch.arange(1 << 20, dtype=torch.float32, device="cuda") * 2
        array = gpu.adopt(tensor)
        arguments = [array.pointer, np.float32(3), np.int32(1 << 20)]
        scale.launch("scale", 512, 256, 0, arguments, array.stream)
        assert torch.equal(tensor.cpu(), torch.arange(1 << 20, dtype=torch.float32) * 6)
    ours = put(gpu, np.arange(12, dtype="f4")).array((3, 4), "f4")
    for taken in (torch.from_dlpack(ours), torch.as_tensor(ours, device="cuda")):
        assert taken.data_ptr() == ours.buffer.address
        np.testing.assert_array_equal(taken.cpu().numpy(), np.arange(12).reshape(3, 4))


def test_arrays_of_cupy(gpu: CudaDevice) -> None:
    cupy = pytest.importorskip("cupy")
    array = cupy.arange(100, dtype="f4").reshape(10, 10).T
    np.testing.assert_array_equal(gpu.adopt(array).to_host(), array.get())
    ours = put(gpu, np.arange(12, dtype="f4")).array((3, 4), "f4")
    np.testing.assert_array_equal(cupy.asarray(ours).get(), np.arange(12).reshape(3, 4))


def test_arrays_of_numba(gpu: CudaDevice) -> None:
    cuda = pytest.importorskip("numba.cuda")
    array = cuda.to_device(np.arange(100, dtype="f4").reshape(10, 10))
    np.testing.assert_array_equal(gpu.adopt(array).to_host(), array.copy_to_host())
    ours = put(gpu, np.arange(12, dtype="f4")).array((3, 4), "f4")
    taken = cuda.as_cuda_array(ours)
    np.testing.assert_array_equal(taken.copy_to_host(), np.arange(12).reshape(3, 4))


def test_arrays_of_jax(gpu: CudaDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("this JAX has no CUDA")
    array = jax.numpy.arange(100, dtype="float32").reshape(10, 10) * 2
    np.testing.assert_array_equal(gpu.adopt(array).to_host(), np.asarray(array))
    ours = put(gpu, np.arange(12, dtype="f4")).array((3, 4), "f4")
    taken = jax.dlpack.from_dlpack(ours)
    np.testing.assert_array_equal(np.asarray(taken), np.arange(12).reshape(3, 4))


def test_launches_that_the_device_refuses(gpu: CudaDevice) -> None:
    x = gpu.allocate(4)
    with pytest.raises(LaunchError, match="threads a block"):
        gpu.load(SCALE).launch("scale", 1, 2048, 0, [x, np.float32(1), np.int32(1)])


def _illegal(pipe: Any) -> None:
    from codegen.devices.device import DeviceError

    device = Devices(KernelCache()).cuda()
    text = 'extern "C" __global__ void far(float *x) { x[1ll << 40] = 1; }'
    module = device.load(text)
    x = device.allocate(4)
    said = []
    module.launch("far", 1, 1, 0, [x])
    for call in (device.synchronize, lambda: device.allocate(4)):
        try:
            call()
        except DeviceError as error:
            said.append(str(error))
    pipe.send(said)


def test_an_illegal_address_is_told(gpu: CudaDevice) -> None:
    """In a process of its own, which it leaves without the device."""
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    mine, other = context.Pipe()
    process = context.Process(target=_illegal, args=(other,))
    process.start()
    first, second = mine.recv()
    process.join()
    assert "far<<<(1, 1, 1), (1, 1, 1), 0>>>: Expected the kernel to end, found CUDA_ERROR" in first
    assert "lost by CUDA_ERROR" in second
