"""Tensors that live on a device: what calls over them return, what is copied, and bad input."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.devices.device import Buffer
from codegen.devices.emulated import EmulatedDevice
from taco_py.compiler.devices import device_of

EMULATED = "cuda-emulated"
RNG = np.random.default_rng(11)
A = sp.random_array((30, 20), density=0.2, rng=RNG, format="csr")
MASK = sp.random_array((30, 20), density=0.1, rng=RNG, format="csr")
X = RNG.random(20)
WIDE = RNG.random((20, 6))
TENSOR = tp.Tensor.from_coo(([0, 1, 1], [2, 0, 1], [1, 1, 0]), [1.0, 2.0, 3.0], (3, 3, 2))
TWICE = sp.coo_array(([1.0, 2.0, 3.0], ([0, 0, 1], [1, 1, 0])), shape=(3, 3))
UNSORTED = sp.csr_array(
    (np.array([1.0, 2.0, 3.0]), np.array([2, 0, 1]), np.array([0, 2, 3, 3])), shape=(3, 3)
)
TYPED = tp.tensor(A)

CALLS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "rows": ("y[i] = A[i,j] * x[j]", {"A": A, "x": X}, {}),
    "columns of COO": ("y[j] = A[i,j]", {"A": sp.coo_array(A)}, {}),
    "matrix class": ("C[i,j] = 2 * A[i,j]", {"A": sp.csr_matrix(A)}, {}),
    "transposed": ("C[i,j] = A[j,i]", {"A": A}, {"format": "csr"}),
    "view": ("C[i,j] = A[j,i]", {"A": sp.coo_array(A)}, {}),
    "product": ("C[i,j] = A[i,k] * B[k,j]", {"A": A, "B": sp.csc_array(A.T)}, {}),
    "blocks": ("C[i,j] = A[i,k] * B[k,j]", {"A": A, "B": sp.bsr_array(A.T)}, {}),
    "order": ("C[i,k] = A[i,j] * X[k,j]", {"A": A, "X": WIDE.T}, {}),
    "gaps": ("C[i,k] = A[i,j] * X[k,j]", {"A": A, "X": np.asfortranarray(WIDE.T)[::2, ::-1]}, {}),
    "half": ("s = x[i] * x[i]", {"x": X.astype(np.float16)}, {}),
    "types": (
        "y[i] = A[i,j] * x[j]",
        {"A": A.astype(np.float32), "x": X.astype(np.complex64)},
        {},
    ),
    "wide sums": ("y[i] = A[i,j]", {"A": A.astype(np.int8)}, {}),
    "fill": ("C[i,j] = A[i,j] + 1", {"A": TYPED}, {}),
    "third order": (
        "M[i,r] = T[i,k,l] * C[k,r] * D[l,r]",
        {"T": TENSOR, "C": WIDE[:3], "D": WIDE[3:5]},
        {"format": "dd"},
    ),
    "number": ("M[i,k] = T[i,k,l] * c", {"T": TENSOR, "c": np.float64(3)}, {}),
    "twice": ("C[i,j] = A[i,j] * A[i,j]", {"A": TWICE}, {}),
    "unsorted": ("C[i,j] = A[i,j] * B[j,i]", {"A": UNSORTED, "B": UNSORTED}, {}),
    "diagonal": ("d[i] = A[i,i]", {"A": UNSORTED}, {}),
    "gathered": ("y[i] = x[p[i]]", {"x": X, "p": RNG.integers(0, 20, 9)}, {}),
    "stored elements": ("y[i] = x[2*i+1]", {"x": tp.tensor(X, "s")}, {}),
    "windows": ("y[i] = x[i+k] * w[k]", {"x": tp.tensor(X, "s"), "w": X[:3]}, {}),
    "rows of it": ("C[i,j] = A[p[i],j]", {"A": sp.csc_matrix(A), "p": np.array([3, 3, 0])}, {}),
    "beside the diagonal": ("d[i] = A[i,i+1]", {"A": UNSORTED}, {}),
    "stretched": ("C[i,j] = A[i,j] * D[i,j]", {"A": A[:1], "D": RNG.random((4, 20))}, {}),
    "strided": ("y[2*i] = x[i]", {"x": X}, {}),
    "semiring": ("y[i] = A[i,j] * x[j]", {"A": A, "x": X}, {"semiring": "min_plus"}),
    "mask": ("C[i,j] = 2 * A[i,j]", {"A": A}, {"mask": MASK}),
    "several": (
        "m[i] = A[i,j] * x[j]; z[j] = A[i,j] * m[i]",
        {"A": A, "x": X},
        {"outputs": ("m", "z")},
    ),
    "chain": (
        "M[i,l] = A[i,k] * B[j,k] * E[j,m] * F[l,m]",
        {"A": A, "B": A, "E": RNG.random((30, 7)), "F": WIDE[:, :6] @ RNG.random((6, 7))},
        {},
    ),
}


def on_device(operands: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tp.device(each, EMULATED) for name, each in operands.items()}


def plain(found: Any) -> np.ndarray[Any, Any]:
    if isinstance(found, tp.Tensor):
        return found.to_numpy()
    return np.asarray(found.toarray() if sp.issparse(found) else found)


@pytest.mark.parametrize("name", CALLS)
def test_results_stay_and_are_those_of_the_host(name: str) -> None:
    text, operands, options = CALLS[name]
    wanted = tp.evaluate(text, operands, **options)
    given = on_device(operands)
    for _ in range(2):  # planned, then remembered
        found = tp.evaluate(text, given, **options)
        pairs = zip(found, wanted, strict=True) if name == "several" else [(found, wanted)]
        for one, other in pairs:
            assert isinstance(one, tp.DeviceTensor) and one.target == EMULATED
            came = one.to_host()
            assert type(came) is type(other) and came.dtype == other.dtype
            rough = 1e-2 if other.dtype == np.float16 else 1e-6
            np.testing.assert_allclose(plain(came), plain(other), rtol=rough)


@pytest.mark.parametrize(
    "obj",
    [A, sp.csc_matrix(A), sp.coo_array(A), TENSOR, WIDE, WIDE.T[::2], np.float32(3), 2, TYPED],
    ids=lambda obj: f"{type(obj).__name__} {getattr(obj, 'shape', '')}",
)
def test_what_goes_over_comes_back(obj: Any) -> None:
    back = tp.device(obj, EMULATED).to_host()
    assert type(back) is (type(obj) if not isinstance(obj, int) else np.int64)
    np.testing.assert_array_equal(plain(back), plain(obj))
    if not isinstance(obj, tp.Tensor) and not np.isscalar(obj):
        assert (back.data if sp.issparse(obj) else back).flags.writeable


class Transfers:
    """The bytes that calls copy to a device and from it."""

    def __init__(self) -> None:
        self.up = self.down = 0


@pytest.fixture
def transfers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Transfers]:
    seen = Transfers()
    up, down = EmulatedDevice.upload, EmulatedDevice.download

    def upload(device: EmulatedDevice, buffer: Buffer, array: Any, offset: int = 0) -> None:
        seen.up += array.nbytes
        up(device, buffer, array, offset)

    def download(device: EmulatedDevice, buffer: Buffer, array: Any, offset: int = 0) -> None:
        seen.down += array.nbytes
        down(device, buffer, array, offset)

    monkeypatch.setattr(EmulatedDevice, "upload", upload)
    monkeypatch.setattr(EmulatedDevice, "download", download)
    yield seen


@pytest.mark.parametrize("name", ["rows", "order", "third order", "several", "chain", "semiring"])
def test_nothing_is_copied_between_calls(name: str, transfers: Transfers) -> None:
    text, operands, options = CALLS[name]
    given = on_device(operands)
    tp.evaluate(text, given, **options)  # a plan may look at coordinates once
    for _ in range(3):
        transfers.up = transfers.down = 0
        tp.evaluate(text, given, **options)
        assert (transfers.up, transfers.down) == (0, 0)


def test_of_a_sparse_result_only_its_numbers_of_entries_come_back(transfers: Transfers) -> None:
    given = on_device({"A": A, "B": sp.csr_array(A.T)})
    product = tp.evaluate("C[i,j] = A[i,k] * B[k,j]", given)
    transfers.down = 0
    tp.evaluate("C[i,j] = A[i,k] * B[k,j]", given)
    assert transfers.down <= 64 < product.nbytes


def test_steps_of_a_plan_leave_what_they_make_on_the_device(transfers: Transfers) -> None:
    text, operands, _ = CALLS["chain"]
    found = tp.evaluate(text, operands, target=EMULATED)
    once = sum(
        each.nbytes if isinstance(each, np.ndarray)
        else each.data.nbytes + each.indices.nbytes + each.indptr.nbytes
        for each in {id(each): each for each in operands.values()}.values()
    )  # fmt: skip
    assert transfers.down == found.nbytes
    assert transfers.up <= once


def test_later_changes_of_the_host_mean_nothing() -> None:
    own = A.copy()
    there = tp.device(own, EMULATED)
    own.data[:], own.indptr[:] = 0, 0
    np.testing.assert_allclose(tp.einsum("ij,j->i", there, X).to_host(), A @ X)


def test_memory_is_given_back_when_nothing_refers_to_a_tensor() -> None:
    device = device_of(EMULATED)
    assert isinstance(device, EmulatedDevice)
    operands = on_device({"A": A, "x": X})
    for _ in range(2):
        tp.evaluate("y[i] = A[i,j] * x[j]", operands)
    del operands
    gc.collect()
    assert not [b for b in device.buffers() if b.size in (A.data.nbytes, X.nbytes)]


def test_operands_of_the_host_go_over_beside_those_of_the_device() -> None:
    found = tp.einsum("ij,j->i", tp.device(A, EMULATED), X)
    np.testing.assert_allclose(found.to_host(), A @ X)
    told = tp.explain("y[i] = A[i,j] * x[j]", A=tp.device(A, EMULATED), x=X)
    assert "A on cuda-emulated; x over there in each call; the result stays there" in told


def test_out_takes_the_result_to_the_host() -> None:
    out = np.zeros(30)
    assert tp.einsum("ij,j->i", tp.device(A, EMULATED), X, out=out) is out
    np.testing.assert_allclose(out, A @ X)


@pytest.mark.parametrize("outputs", [None, ("m", "z")])
def test_kernels_take_them(outputs: Any) -> None:
    text = "m[i] = A[i,j] * x[j]" + ("; z[j] = A[i,j] * m[i]" if outputs else "")
    kernel = tp.compile(text, A=tp.CSR, x=tp.dense(1), target=EMULATED, outputs=outputs)
    found = kernel(**on_device({"A": A, "x": X}))
    first = found[0] if outputs else found
    assert isinstance(first, tp.DeviceTensor)
    np.testing.assert_allclose(first.to_host(), A @ X)
    assert isinstance(kernel(A=A, x=X)[0] if outputs else kernel(A=A, x=X), np.ndarray)


def test_kernels_of_subscripts_take_them() -> None:
    picked = np.array([3, 1, 2])
    given = on_device({"x": X, "p": picked})
    kernel = tp.compile("y[i] = x[p[i]]", given)
    found = kernel(**given)
    assert isinstance(found, tp.DeviceTensor)
    np.testing.assert_array_equal(found.to_host(), X[picked])


def freed() -> tp.DeviceTensor:
    gone = tp.device(X, EMULATED)
    gone.free()
    return gone


BROKEN = sp.csr_array((np.ones(2), np.array([0, 9]), np.array([0, 1, 2])), shape=(2, 3))
ENDS = sp.csr_array((np.ones(2), np.array([0, 1]), np.array([0, 2, 2])), shape=(2, 3))
ENDS.indptr[1] = 7
FILLED = tp.Tensor.from_coo(([0], [1]), [2.0], (2, 3), format="ds", fill_value=1.0)
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "another target": (
        lambda d: tp.einsum("ij,j->i", d, X, target="c"), tp.DeviceError, "operand 0 on cuda-emul",
    ),
    "another device": (
        lambda d: tp.einsum("ij,j->i", d, X, target="cuda"), tp.DeviceError, "tp.device",
    ),
    "a kernel of the CPU": (
        lambda d: tp.compile("y[i] = A[i,j]", A=tp.CSR)(A=d), tp.DeviceError, r"\.to_host\(\)",
    ),
    "coordinates": (
        lambda d: tp.device(BROKEN, EMULATED), tp.StructureError, r"found indices\[1\] = 9",
    ),
    "positions": (lambda d: tp.device(ENDS, EMULATED), tp.StructureError, "to ascend"),
    "coordinates that go over": (
        lambda d: tp.einsum("ij->i", BROKEN, target=EMULATED),
        tp.StructureError, r"operand .*found indices\[1\] = 9",
    ),
    "a fill value": (
        lambda d: tp.evaluate(
            "y[i] = T[i,j] * x[j]",
            {"T": tp.device(FILLED, EMULATED), "x": np.ones(3)},
            semiring="max_times",
        ),
        tp.OperandError, "fill value that is the zero",
    ),
    "a number": (lambda d: float(tp.einsum("ij->", d)), tp.OperandTypeError, "to_host"),
    "a truth": (lambda d: bool(d), tp.OperandTypeError, "to_host"),
    "a pickle": (lambda d: pickle.dumps(d), tp.OperandTypeError, "to_host"),
    "a copy": (lambda d: copy.deepcopy(d), tp.OperandTypeError, "to_host"),
    "freed": (lambda d: tp.einsum("ij,j->i", d, freed()), tp.DeviceError, "that was freed"),
    "freed, to the host": (lambda d: freed().to_host(), tp.DeviceError, "that was freed"),
    "an array": (lambda d: np.asarray(d), tp.OperandTypeError, "to_host"),
    "a Tensor": (lambda d: tp.tensor(d), tp.OperandTypeError, "to_host"),
    "no GPU": (lambda d: tp.device(A, target="c"), tp.OperandTypeError, "name of a GPU"),
    "no target": (lambda d: tp.device(A, target="gpu"), tp.OperandTypeError, "one of c, cuda"),
    "no tensor": (lambda d: tp.device("A", EMULATED), tp.OperandTypeError, "found str"),
    "a mask elsewhere": (
        lambda d: tp.evaluate("C[i,j] = A[i,j]", A=A, mask=d, target="c"),
        tp.DeviceError, "the mask on cuda-emulated",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input(name: str) -> None:
    call, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        call(tp.device(A, EMULATED))
