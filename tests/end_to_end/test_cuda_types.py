"""Kernels of a GPU on elements of all types: on the emulated device, against the dense oracle."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.functions import where
from tests.corpus.data import dense_result, initial, operands
from tests.corpus.expressions import CASES, Case

EMULATED = "cuda-emulated"
NVCC = shutil.which("nvcc")
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "complex64", "complex128",
)  # fmt: skip
NAMES = (
    "SpMV", "transposed SpMV", "axpby", "dot product", "column sums", "matrix add", "SDDMM",
    "vector divide", "accumulate SpMV", "plus one",
)  # fmt: skip
SELECTION = [case for case in CASES if case.name in NAMES]


def of_type(name: str) -> np.dtype[Any]:
    if name == "bfloat16":
        return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    return np.dtype(name)


@pytest.mark.rotating(4)
@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("case", SELECTION, ids=lambda case: case.name)
def test_corpus_of_types(case: Case, name: str) -> None:
    dtype = of_type(name)
    arrays, start = operands(case, "mixed", dtype), initial(case, dtype)
    for form in ("csr", "dd"):
        given = {n: tp.tensor(a, format=form) if a.ndim == 2 else a for n, a in arrays.items()}
        if start is not None:
            given[case.target[0]] = start.copy()
        wanted = dense_result(case.text, arrays, start)
        result = "d" * len(case.result_shape) if case.result_shape else None
        found = np.asarray(tp.evaluate(case.text, given, format=result, target=EMULATED))
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


OF_BLOCKS = (
    None,
    "parallelize(i,GPUBlock), parallelize(j,GPUWarp,Atomics), parallelize(k,GPUThread)",
    "reorder(i,j,k), parallelize(i,GPUBlock), parallelize(j,GPUThread,Atomics)",
    "reorder(i,j,k), fuse(i,j,f), pos(f,p,A(i,j)), split(p,b,t,4), parallelize(b,GPUBlock,Atomics)",
)


@pytest.mark.parametrize("schedule", OF_BLOCKS)
@pytest.mark.parametrize("name", ["bool", "int8", "uint8", "int16", "float16"])
def test_rows_that_end_within_a_word(name: str, schedule: str | None) -> None:
    """Neighbouring rows have elements in one word, which blocks zero and update."""
    rng = np.random.default_rng(4)
    a = ((rng.random((9, 7)) < 0.5) * rng.integers(1, 4, (9, 7))).astype(name)
    b = rng.integers(0, 3, (7, 5)).astype(name)
    for form in ("csr", "dd") if schedule is None or "pos" not in schedule else ("csr",):
        found = tp.evaluate(
            "C[i,k] = A[i,j] * B[j,k]", A=tp.tensor(a, format=form), B=b,
            format="dd", dtype=name, schedule=schedule, target=EMULATED,
        )  # fmt: skip
        np.testing.assert_array_equal(found, np.einsum("ij,jk->ik", a, b))
        truths = tp.evaluate(
            "C[i,k] = A[i,j] * B[j,k]", A=tp.tensor(a, format=form), B=b,
            format="dd", semiring="or_and", schedule=schedule, target=EMULATED,
        )  # fmt: skip
        np.testing.assert_array_equal(truths, np.einsum("ij,jk->ik", a != 0, b != 0))


@pytest.mark.rotating(3)
@pytest.mark.parametrize("name", [n for n in DTYPES if n not in ("float16", "bfloat16")])
def test_reductions_of_columns(name: str) -> None:
    """Rows are shared, so that many threads update an element."""
    rng = np.random.default_rng(3)
    a = ((rng.random((9, 7)) < 0.6) * rng.integers(1, 4, (9, 7))).astype(name)
    text = "y[j] = {}(i, A[i,j])"
    for op, wanted in (("prod", a.prod(0)), ("any", a.any(0)), ("all", a.all(0))):
        found = reduced(text.format(op), a)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
    if a.dtype.kind != "c":
        np.testing.assert_array_equal(reduced(text.format("max"), a), a.max(0))
        np.testing.assert_array_equal(reduced(text.format("min"), a), a.min(0))


def reduced(text: str, a: Any, form: str = "csr") -> Any:
    result = tp.evaluate(text, A=tp.tensor(a, format=form), format="d", target=EMULATED)
    return np.asarray(result)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_every_number_of_16_bits(name: str) -> None:
    """As it is read, and rounded when it is written: the same bits as in kernels in C."""
    x = np.arange(2**16, dtype=np.uint16).view(of_type(name))
    for text in ("y[i] = 3 * x[i]", "y[i] = x[i] / 7"):
        found, wanted = (tp.evaluate(text, x=x, target=t) for t in (EMULATED, "c"))
        np.testing.assert_array_equal(found.view(np.uint16), wanted.view(np.uint16))


def test_functions_of_users() -> None:
    softsign = tp.function(
        "softsign_of_devices", numpy=lambda x: x / (1 + abs(x)), c="x / (1 + fabs(x))"
    )
    huber = tp.function("huber_of_devices", lambda x: where(abs(x) < 1, x * x / 2, abs(x) - 0.5))
    tp.function(
        "gcd_of_devices", numpy=np.gcd, c="while (y) { T t = x % y; x = y; y = t; } return x;",
        dtypes="uint64", associative=True, commutative=True, identity=0,
    )  # fmt: skip
    a = np.random.default_rng(1).normal(size=(6, 5))
    for name, function in (("softsign", softsign), ("huber", huber)):
        found = tp.evaluate(f"Y[i,j] = {name}_of_devices(A[i,j])", A=a, target=EMULATED)
        np.testing.assert_allclose(np.asarray(found), function(a), rtol=1e-15)
    whole = (6 * np.arange(1, 31).reshape(6, 5)).astype(np.uint64)
    for form in ("csr", "csc"):
        found = reduced("y[j] = gcd_of_devices(i, A[i,j])", whole, form)
        np.testing.assert_array_equal(found, np.gcd.reduce(whole))


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_functions_of_users_reduce_complex_numbers(name: str) -> None:
    tp.function(
        "either_of_devices", lambda x, y: x + y - x * y,
        associative=True, commutative=True, identity=0,
    )  # fmt: skip
    rng = np.random.default_rng(2)
    a = ((rng.random((9, 7)) < 0.6) * (rng.random((9, 7)) + 1j)).astype(name)
    found = reduced("y[j] = either_of_devices(i, A[i,j])", a)
    np.testing.assert_allclose(found, 1 - (1 - a).prod(0), rtol=1e-5)


def test_c_text_of_complex_numbers_is_refused() -> None:
    tp.function("turned_of_devices", numpy=lambda z: z * 1j, c="z * I", dtypes=["complex128"])
    with pytest.raises(tp.DeviceError, match="no C text of complex numbers"):
        tp.evaluate("y[i] = turned_of_devices(x[i])", x=np.ones(3, complex), target=EMULATED)


WORDS = (("new", "this"), ("threadIdx", "blockIdx"), ("int64_t", "float2"), ("min", "atomicAdd"))


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_words_of_cuda_are_names_of_texts(words: tuple[str, str], tmp_path: Path) -> None:
    i, j = words
    a, x = np.arange(12.0).reshape(3, 4), np.ones(4)
    text = f"y[{i}] = warpSize[{i},{j}] * host[{j}]"
    found = tp.evaluate(text, warpSize=a, host=x, target=EMULATED)
    np.testing.assert_array_equal(np.asarray(found), a @ x)
    kernel = tp.compile(text, warpSize=tp.CSR, host=tp.dense(1), y=tp.dense(1), target="cuda")
    if NVCC is not None:
        (tmp_path / "words.cu").write_text(kernel.source)
        command = [NVCC, "-arch=sm_80", "-cubin", "-Werror", "all-warnings", "words.cu"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_python_words_are_names_of_texts() -> None:
    a = np.arange(24.0).reshape(2, 3, 4)
    text = "Y[lambda,host] = sum(is, range[lambda,host,is])"
    found = tp.evaluate(text, range=tp.tensor(a, format="sss"), format="dd", target=EMULATED)
    np.testing.assert_array_equal(np.asarray(found), a.sum(2))
