"""Whole calls on a driver of CUDA in host memory, over arrays of other libraries too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import taco_py as tp
import taco_py.compiler.devices
from codegen.devices.cuda.cuda_device import CudaDevice
from taco_py.data.kernels import KERNELS
from tests.devices.fake_driver import FakeDriver
from tests.devices.test_foreign_arrays import Tensor

ROWS, COLUMNS = 6, 4
MATRIX = np.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS)
VECTOR = np.arange(ROWS, dtype="f4")
TEXT = "y[i] = 2 * x[i]"


@pytest.fixture
def gpu(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> CudaDevice:
    """The first GPU of this process: kernels of TEXT are run there."""

    def double(_: list[int], arguments: list[int]) -> None:
        n = int(fake.value(arguments[2], "i8"))
        fake.memory(arguments[0], "f4", n)[:] = 2 * fake.memory(arguments[1], "f4", n)

    fake.kernel("evaluate_1", (8, 8, 8), double)
    device = fake.device()
    there = SimpleNamespace(cuda=lambda name: device, open=lambda name: device)
    monkeypatch.setattr(taco_py.compiler.devices, "devices", lambda: there)
    KERNELS.memo.clear()
    yield device
    KERNELS.memo.clear()


def test_an_array_of_another_library_is_read_in_place_and_its_call_stays(gpu: CudaDevice) -> None:
    theirs = Tensor(gpu, VECTOR)
    found = tp.evaluate(TEXT, x=theirs)
    assert isinstance(found, tp.DeviceTensor) and found.target == "cuda"
    np.testing.assert_array_equal(found.to_host(), 2 * VECTOR)
    again = tp.evaluate(TEXT, x=found)
    np.testing.assert_array_equal(again.to_host(), 4 * VECTOR)


def test_nothing_is_uploaded_for_it(gpu: CudaDevice, fake: FakeDriver) -> None:
    theirs = Tensor(gpu, VECTOR)
    tp.evaluate(TEXT, x=theirs)
    before = [name for name in fake.calls if "HtoD" in name]
    tp.evaluate(TEXT, x=theirs)
    assert [name for name in fake.calls if "HtoD" in name] == before


def test_changes_of_the_other_library_are_seen(gpu: CudaDevice) -> None:
    theirs = Tensor(gpu, VECTOR)
    there = tp.device(theirs)
    np.testing.assert_array_equal(there.to_host(), VECTOR)
    gpu.upload(theirs.buffer, VECTOR + 1)
    np.testing.assert_array_equal(there.to_host(), VECTOR + 1)
    np.testing.assert_array_equal(tp.evaluate(TEXT, x=there).to_host(), 2 * VECTOR + 2)


def test_results_are_lent_to_other_libraries(gpu: CudaDevice) -> None:
    found = tp.evaluate(TEXT, x=tp.device(VECTOR))
    facts = found.__cuda_array_interface__
    assert (facts["shape"], facts["typestr"]) == ((ROWS,), "<f4")
    assert found.__dlpack_device__() == (2, 0)
    sparse = tp.device(tp.tensor(MATRIX, "ds"))
    assert not hasattr(sparse, "__cuda_array_interface__")
    assert not hasattr(sparse, "__dlpack__")


def test_an_array_on_another_gpu_is_refused(gpu: CudaDevice) -> None:
    class Elsewhere:
        def __dlpack_device__(self) -> tuple[int, int]:
            return (2, 1)

        def __dlpack__(self, **_: Any) -> object:
            raise AssertionError("nothing is asked of it")

    with pytest.raises(tp.DeviceError, match="cuda:1"):
        tp.evaluate(TEXT, x=Elsewhere())


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"typestr": "<c16", "shape": (1,), "offset": 8}, "multiples of 16"),
        ({"typestr": "<f4", "shape": (2,), "strides": (6,)}, "multiples of 4"),
        ({"typestr": "<U1", "shape": (2,)}, "of dtype"),
    ],
)
def test_arrays_that_kernels_cannot_read_are_refused(
    gpu: CudaDevice, facts: dict[str, Any], words: str
) -> None:
    theirs = Tensor(gpu, np.zeros(16, "f4"), **facts)
    theirs.facts["data"] = (theirs.buffer.address + theirs.facts.pop("offset", 0), False)
    with pytest.raises(tp.OperandTypeError, match=words):
        tp.evaluate(TEXT, x=theirs)


@pytest.mark.parametrize("target", ["c", "cuda-emulated"])
def test_targets_that_are_not_theirs_are_refused(gpu: CudaDevice, target: str) -> None:
    with pytest.raises(tp.DeviceError, match="found x on cuda"):
        tp.evaluate(TEXT, x=Tensor(gpu, VECTOR), target=target)
