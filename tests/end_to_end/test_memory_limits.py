"""`memory_limit=`: each kind of array is counted, and calls that fit are what they are without."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.room import stored_most
from taco_py.tool.cli import main
from tests.corpus.formats import to_dense

N = 300
A = sp.random_array((N, N), density=0.02, format="csr", rng=0)
B = sp.random_array((N, N), density=0.02, format="csr", rng=1)
X = np.random.default_rng(2).random((N, N))
SPGEMM = "C[i,j] = A[i,k] * B[k,j]"


@pytest.fixture(autouse=True)
def no_limit() -> Iterator[None]:
    yield
    tp.set_memory_limit(None)


def refused(call: Callable[[], Any]) -> str:
    """The message of the call, which is refused for its limit."""
    with pytest.raises(tp.OutOfMemoryError, match="found a limit of") as caught:
        call()
    assert "memory_limit=" in str(caught.value)
    return str(caught.value).splitlines()[0]


# ---------------------------------------------------------------- what is said


@pytest.mark.parametrize(
    ("said", "meant"),
    [("2GB", 2 * 10**9), ("512MiB", 512 * 2**20), (" 1.5 kB ", 1500), ("7", 7), (8, 8),
     (np.int64(9), 9), ("3tib", 3 * 2**40)],
)  # fmt: skip
def test_numbers_of_bytes(said: Any, meant: int) -> None:
    tp.set_memory_limit(said)
    assert tp.get_memory_limit() == meant


@pytest.mark.parametrize("said", ["", "GB", "2 GX", "-1GB", 0, -5, True, 1.5, "1e9", [1]])
def test_what_is_no_number_of_bytes_is_refused(said: Any) -> None:
    with pytest.raises(tp.OperandError, match="positive number of bytes"):
        tp.set_memory_limit(said)
    with pytest.raises(tp.OperandError, match="positive number of bytes"):
        tp.evaluate("y[i] = A[i,j]", A=A, memory_limit=said)
    assert tp.get_memory_limit() is None


# ---------------------------------------------------------------- each kind of array


def test_a_dense_result() -> None:
    said = refused(lambda: tp.evaluate(SPGEMM, A=A, B=B, format="dd", memory_limit="500kB"))
    assert said == "Expected memory for C in the format dd (720.0 kB), found a limit of 500.0 kB"
    found = tp.evaluate(SPGEMM, A=A, B=B, format="dd", memory_limit="800kB")
    np.testing.assert_allclose(found, (A @ B).toarray())


def test_an_array_of_the_users_is_not_counted() -> None:
    out = np.empty(N)
    assert tp.evaluate("y[i] = A[i,j]", A=A, out=out, memory_limit="1kB") is out
    refused(lambda: tp.evaluate("y[i] = A[i,j]", A=A, memory_limit="1kB"))


@pytest.mark.parametrize("threads", [1, 2])
def test_a_sparse_result_while_it_grows(threads: int) -> None:
    said = refused(lambda: tp.evaluate(SPGEMM, A=A, B=B, threads=threads, memory_limit="20kB"))
    assert "C in the format ds (up to" in said
    found = tp.evaluate(SPGEMM, A=A, B=B, threads=threads, memory_limit="400kB")
    np.testing.assert_allclose(found.toarray(), (A @ B).toarray())


def test_arrays_of_several_threads_share_a_limit() -> None:
    large = sp.random_array((2000, 2000), density=0.01, format="csr", rng=3)
    whole = large @ large
    size = 12 * whole.nnz
    call = {"A": large, "B": large, "threads": 2}
    refused(lambda: tp.evaluate(SPGEMM, **call, memory_limit=size // 2))
    found = tp.evaluate(SPGEMM, **call, memory_limit=4 * size)
    assert found.nnz == whole.nnz


@pytest.mark.parametrize("threads", [1, 2])
def test_workspaces_of_each_thread(threads: int) -> None:
    wide = sp.random_array((100, 10**6), density=1e-4, format="csr", rng=4)
    square = sp.random_array((100, 100), density=0.5, format="csr", rng=5)
    size = 13 * 10**6 * threads  # a value, a mark and a coordinate for each column
    call = {"A": square, "B": wide, "threads": threads}
    said = refused(lambda: tp.evaluate(SPGEMM, **call, memory_limit=size // 2))
    assert "the workspace w" in said
    assert ("of 2 threads" in said) == (threads == 2)
    tp.evaluate(SPGEMM, **call, memory_limit=size + 20 * 10**6)


def test_sparse_temporaries_count_until_they_are_read() -> None:
    kernel = tp.compile(
        "T[i,k] = A[i,j] * B[j,k]; R[i,l] = T[i,k] * A[k,l]", A=tp.CSR, B=tp.CSR, outputs="R"
    )
    last = (A @ B @ A).nnz * 12
    refused(lambda: kernel(A=A, B=B, memory_limit=last))
    found = kernel(A=A, B=B, memory_limit=8 * last)
    np.testing.assert_allclose(found.toarray(), (A @ B @ A).toarray())


def test_converted_copies() -> None:
    said = refused(lambda: tp.evaluate("S[i,j] = A[i,j] + B[j,i]", A=A, B=B, memory_limit="60kB"))
    assert "S in the format ds" in said and "B_" in said
    tp.evaluate("S[i,j] = A[i,j] + B[j,i]", A=A, B=B, memory_limit="200kB")


def test_types_are_copies_too() -> None:
    whole = np.ones((N, N), np.float32)
    call = {"A": whole, "dtype": "complex64"}
    assert "A as complex64" in refused(
        lambda: tp.evaluate("y[i] = A[i,j]", **call, memory_limit="300kB")
    )
    tp.evaluate("y[i] = A[i,j]", **call, memory_limit="1MB")


# ---------------------------------------------------------------- each way to call


FACES: dict[str, Callable[[Any], Any]] = {
    "evaluate": lambda most: tp.evaluate(SPGEMM, A=A, B=B, memory_limit=most),
    "mapping": lambda most: tp.evaluate(SPGEMM, {"A": A, "B": B}, memory_limit=most),
    "einsum": lambda most: tp.einsum("ik,kj->ij", A, B, memory_limit=most),
    "einsum in order": lambda most: tp.einsum("ik,kj->ij", A, B, order="F", memory_limit=most),
    "dense": lambda most: tp.evaluate_dense(
        "S[i,j] = A[i,j] + B[i,j]", A=A, B=B, memory_limit=most
    ),
    "semiring": lambda most: tp.evaluate(SPGEMM, A=A, B=B, semiring="max_times", memory_limit=most),
    "subscripts": lambda most: tp.evaluate(
        "C[i,j] = A[i,k] * B[k,j+1]", A=A, B=B, shape=(N, N - 1), memory_limit=most
    ),
    "several": lambda most: tp.evaluate(
        "T[i,k] = A[i,j] * B[j,k]; C[i,l] = T[i,k] * A[k,l]", A=A, B=B, memory_limit=most
    ),
    "compiled": lambda most: tp.compile(SPGEMM, A=tp.CSR, B=tp.CSR, memory_limit=most)(A=A, B=B),
    "kernel": lambda most: tp.compile(SPGEMM, A=tp.CSR, B=tp.CSR)(A, B, memory_limit=most),
    "schedule": lambda most: tp.schedule(SPGEMM, A=tp.CSR, B=tp.CSR, memory_limit=most).compile()(
        A=A, B=B
    ),
    "tensor": lambda most: tp.tensor(A, format="dd", memory_limit=most),
    "to_format": lambda most: tp.tensor(A).to_format("ss:1,0", memory_limit=most),
    "to_dense": lambda most: tp.tensor(A).to_dense(memory_limit=most),
    "to_numpy": lambda most: tp.tensor(A).to_numpy(memory_limit=most),
}


@pytest.mark.parametrize("face", FACES)
def test_ways_to_call(face: str) -> None:
    refused(lambda: FACES[face]("10kB"))
    FACES[face]("1GB")
    assert not KERNELS.memory.on


def test_operators_of_tensors() -> None:
    T = tp.tensor(A)
    tp.set_memory_limit("5kB")
    for call in (lambda: T + T, lambda: T @ T, lambda: T * X):
        refused(call)
    tp.set_memory_limit("2MB")
    for call in (lambda: T + T, lambda: T @ T, lambda: T * X):
        call()


def test_programs_and_frontiers_take_it() -> None:
    a = np.zeros(8)
    tp.program("y[i] = y[i] + 1.0")(y=a, memory_limit="1MB")
    assert a.sum() == 8
    assert len(tp.frontier("y[i] = A[i,j] * x[j]", A=tp.CSR, memory_limit="1MB"))


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["y(i)=A(i,j)*x(j)", "-f=A:ds", "-d=i:2000", "-d=j:2000", "-g=A:s", "-g=x:d", "-time"]
    assert main([*line, "-memory-limit=1kB"]) != 0
    assert "found a limit of 1.0 kB" in capsys.readouterr().err
    assert main([*line, "-memory-limit=1GB"]) == 0


# ---------------------------------------------------------------- limits come and go


def test_repeated_calls_look_again_at_other_sizes() -> None:
    small = A[:10, :10].tocsr()
    for _ in range(3):
        tp.evaluate("y[i] = A[i,j]", A=small, memory_limit="1kB")
        refused(lambda: tp.evaluate("y[i] = A[i,j]", A=A, memory_limit="1kB"))
        tp.evaluate("y[i] = A[i,j]", A=A)


def test_a_call_may_more_than_the_process() -> None:
    tp.set_memory_limit("1kB")
    refused(lambda: tp.evaluate("y[i] = A[i,j]", A=A))
    tp.evaluate("y[i] = A[i,j]", A=A, memory_limit="1MB")
    refused(lambda: tp.evaluate("y[i] = A[i,j]", A=A))


def test_a_limit_holds_for_the_thread_of_the_call() -> None:
    tp.evaluate("y[i] = A[i,j]", A=A)
    failed: list[BaseException] = []

    def others() -> None:
        try:
            for _ in range(50):
                tp.evaluate("y[i] = A[i,j]", A=A)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=others)
    thread.start()
    for _ in range(50):
        refused(lambda: tp.evaluate("y[i] = A[i,j]", A=A, memory_limit="1kB"))
    thread.join()
    assert not failed


def test_a_plan_that_fits_is_preferred() -> None:
    x = np.ones(N)
    left = np.random.default_rng(6).random((N, 2))
    text = "y[i] = U[i,k] * V[j,k] * W[j,l] * x[l]"
    call = {"U": left, "V": left, "W": X, "x": x}
    found = tp.evaluate(text, **call, memory_limit="10kB")
    np.testing.assert_allclose(found, left @ (left.T @ (X @ x)))


def test_explain_has_the_peak() -> None:
    told = tp.explain(SPGEMM, A=A, B=B, format="dd", memory_limit="1GB", frontier_budget=0)
    (line,) = (line for line in told.splitlines() if line.startswith("memory "))
    assert "C in the format dd 720.0 kB" in line and "allowed are 1.0 GB" in line


def test_bytes_that_entries_take_at_most() -> None:
    assert stored_most((10, 10), 5, tp.CSR, 8, 4) == 44 + 5 * 12
    assert stored_most((10, 10), 5, tp.COO(2), 8, 4) == 8 + 5 * 16
    assert stored_most((4, 5), 20, tp.dense(2), 8, 4) == 160


A6 = sp.csr_array(np.triu(np.arange(36.0).reshape(6, 6) % 5))
STEPS = {
    "a diagonal": ("d[i] = A[i,i] * x[i]", {"A": A6, "x": np.arange(6.0)}),
    "values alone": ("s = A[i,j] * A[i,j]", {"A": A6}),
    "entries located": (
        "y[i] = A[i,j] * x[j]",
        {"A": tp.tensor(A6, format="coo"), "x": tp.tensor([0.0, 1, 0, 2, 0, 3], format="s")},
    ),
    "modes fused": (
        "C[a,b,c] = T[a,b,c] + U[a,b,c]",
        {"T": np.ones((3, 4, 5)), "U": np.arange(60.0).reshape(3, 4, 5)},
    ),
    "modes of size 1": ("y[i] = B[i,j] * x[i]", {"B": np.ones((6, 1)), "x": np.arange(6.0)}),
    "a size": ("y[i] = sum(j, x[i] + 0 * A[i,j])", {"A": A6, "x": np.arange(6.0)}),
    "several factors": (
        "y[i] = A[i,j] * B[j,k] * C[k,l] * x[l]",
        {"A": A6, "B": A6, "C": A6.toarray(), "x": np.arange(6.0)},
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_what_each_step_makes_has_a_shape(name: str) -> None:
    text, given = STEPS[name]
    expected = to_dense(tp.evaluate(text, given))
    limited = to_dense(tp.evaluate(text, given, memory_limit="1GB"))
    np.testing.assert_allclose(limited, expected)
    assert "memory" in tp.explain(text, given, frontier_budget=0)
