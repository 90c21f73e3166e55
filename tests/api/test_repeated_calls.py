"""Calls of every kind, made again: the same result, and the long way is not entered."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.calls.call import compute as front
from taco_py.calls.call import prepare as checked
from taco_py.calls.kernels.kernel import Kernel
from taco_py.data.kernels import KERNELS
from taco_py.language.notation.parser import parse_assignment

N = 12


def matrix(rng: Any, form: str = "csr", dtype: Any = np.float64, shape: Any = (N, N)) -> Any:
    made = sp.random_array(shape, density=0.3, format="coo", rng=rng)
    made.data = numbers(made.data, dtype)
    if np.dtype(dtype).kind == "c":
        made.data = made.data * (1 + 2j)
    return made.astype(dtype).asformat(form)


def full(rng: Any, *shape: int, dtype: Any = np.float64) -> Any:
    return numbers(rng.random(shape), dtype).astype(dtype)


def numbers(uniform: Any, dtype: Any) -> Any:
    """Small integers, which sums of any order add up to the same."""
    return np.round(uniform * 20 - (0 if np.dtype(dtype).kind == "u" else 10))


def plain(result: Any) -> Any:
    """The values of any result as an array."""
    for method in ("toarray", "to_numpy"):
        if hasattr(result, method):
            return getattr(result, method)()
    return np.asarray(result)


@pytest.fixture
def long_way(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Grows by one whenever the long way is entered."""
    KERNELS.memo.clear()
    monkeypatch.setattr(KERNELS, "note", lambda key: None)  # nothing from earlier processes
    entered: list[int] = []

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            entered.append(1)
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(front, "prepare_within", counted(front.prepare_within))
    monkeypatch.setattr(Kernel, "_prepared", counted(Kernel._prepared))
    yield entered
    KERNELS.memo.clear()


Made = tuple[tuple[Any, ...], dict[str, Any]]
EINSUMS: dict[str, tuple[str, Callable[[Any], Made]]] = {
    "out": ("ij,j->i", lambda g: ((matrix(g), full(g, N)), {"out": full(g, N)})),
    "out of another dtype": (
        "ij,j->i",
        lambda g: ((matrix(g, dtype="f4"), full(g, N, dtype="f4")), {"out": full(g, N)}),
    ),
    "strided out": ("ij,j->i", lambda g: ((matrix(g), full(g, N)), {"out": full(g, N, 2)[:, 0]})),
    "out added to": (
        "ij,j->i",
        lambda g: ((matrix(g, "csc"), full(g, N)), {"out": full(g, N)}),
    ),
    "scalar out": ("i,i->", lambda g: ((full(g, N), full(g, N)), {"out": np.array(7.0)})),
    "dtype": ("ij,j->i", lambda g: ((matrix(g, dtype="f4"), full(g, N)), {"dtype": "f8"})),
    "narrow dtype": (
        "ij,j->i",
        lambda g: ((matrix(g), full(g, N)), {"dtype": np.float32, "casting": "same_kind"}),
    ),
    "complex dtype": ("ij,j->i", lambda g: ((matrix(g), full(g, N)), {"dtype": np.complex128})),
    "unsafe dtype": (
        "ij,j->i",
        lambda g: ((matrix(g), full(g, N)), {"dtype": np.int32, "casting": "unsafe"}),
    ),
    "threads": ("ij,j->i", lambda g: ((matrix(g), full(g, N)), {"threads": 2})),
    "static": ("ij,j->i", lambda g: ((matrix(g), full(g, N)), {"static": {"j": N}})),
    "whole": ("ij,jk,k->i", lambda g: ((matrix(g), matrix(g), full(g, N)), {"optimize": False})),
    "path": (
        "ij,jk,k->i",
        lambda g: ((matrix(g), matrix(g), full(g, N)), {"optimize": [(1, 2), (0, 1)]}),
    ),
    "two kernels": ("ij,jk,k->i", lambda g: ((matrix(g), matrix(g), full(g, N)), {})),
    "dense chain": (
        "ij,jk,kl->il",
        lambda g: ((full(g, 30, 30), full(g, 30, 30), full(g, 30, 2)), {}),
    ),
    "sparse chain": ("ij,jk,kl->il", lambda g: ((matrix(g), matrix(g), matrix(g)), {})),
    "two kernels into out": (
        "ij,jk,k->i",
        lambda g: ((matrix(g), matrix(g), full(g, N)), {"out": full(g, N)}),
    ),
    "transposed copy": ("ki,kj->ij", lambda g: ((matrix(g), matrix(g)), {})),
    "list of coordinates": ("ij,ij->ij", lambda g: ((matrix(g, "coo"), matrix(g)), {})),
    "keys": ("ij,jk->ik", lambda g: ((matrix(g), matrix(g, "coo")), {})),
    "diagonal": ("ii->i", lambda g: ((matrix(g),), {})),
    "trace": ("ii->", lambda g: ((full(g, N, N),), {})),
    "broadcast": ("ij,ij->ij", lambda g: ((full(g, N, N), full(g, N, 1)), {})),
    "broadcast vector": ("ij,j->i", lambda g: ((full(g, N, N), full(g, 1)), {})),
    "broadcast sparse": ("ij,ij->ij", lambda g: ((matrix(g), matrix(g, shape=(1, N))), {})),
    "other formats": ("ij,j->i", lambda g: ((matrix(g, "bsr"), full(g, N)), {})),
    "dia": ("ij,j->i", lambda g: ((matrix(g, "dia"), full(g, N)), {})),
    "dok": ("ij,j->i", lambda g: ((matrix(g, "dok"), full(g, N)), {})),
    "lil": ("ij,j->i", lambda g: ((matrix(g, "lil"), full(g, N)), {})),
    "scalar": (",i->i", lambda g: ((np.float32(3), full(g, N)), {})),
    "byte order": ("ij,j->i", lambda g: ((matrix(g), full(g, N, dtype=">f8")), {})),
    "other format": ("ij,jk->ik", lambda g: ((matrix(g), matrix(g)), {"format": "ds:1,0"})),
    "dense by request": ("ij,jk->ik", lambda g: ((matrix(g), matrix(g)), {"format": "dd"})),
    "dense Tensor": (
        "ij,jk->ik",
        lambda g: ((tp.tensor(matrix(g)), matrix(g)), {"format": "dd:1,0"}),
    ),
}


def expected_of(subscripts: str, operands: Any, options: Any) -> Any:
    kept = {name: options[name] for name in ("dtype", "casting") if name in options}
    return np.einsum(subscripts, *[plain(each) for each in operands], **kept)


def same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    assert one.dtype == other.dtype
    assert str(getattr(one, "format", "")) == str(getattr(other, "format", ""))
    np.testing.assert_array_equal(plain(one), plain(other))


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", EINSUMS)
def test_einsum(name: str, long_way: list[int]) -> None:
    subscripts, make = EINSUMS[name]
    rng = np.random.default_rng(3)
    operands, options = make(rng)
    first = tp.einsum(subscripts, *operands, **options)
    first = first.copy() if hasattr(first, "copy") else first
    if "out" in options:
        options["out"][...] = 5
    assert len(long_way) == 1
    second = tp.einsum(subscripts, *operands, **options)
    assert len(long_way) == 1
    same(first, second)
    if "out" in options:
        assert second is options["out"]
    np.testing.assert_allclose(plain(second), expected_of(subscripts, operands, options))
    for _ in range(2):  # other numbers: at worst of a signature of its own
        operands, options = make(rng)
        result = tp.einsum(subscripts, *operands, **options)
        np.testing.assert_allclose(plain(result), expected_of(subscripts, operands, options))


DTYPES = ["?", "i1", "u2", "i4", "u8", "f4", "f8", "c8", "c16"]


@pytest.mark.parametrize("right", DTYPES)
@pytest.mark.parametrize("left", DTYPES)
def test_mixed_dtypes_are_as_numpys(left: str, right: str, long_way: list[int]) -> None:
    rng = np.random.default_rng(4)
    for _ in range(2):
        a, x = matrix(rng, dtype=left), full(rng, N, dtype=right)
        result = tp.einsum("ij,j->i", a, x)
        expected = np.einsum("ij,j->i", a.toarray(), x)
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-5)
    assert len(long_way) == 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_not_finite_stays_numpys(long_way: list[int]) -> None:
    odd = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 3e38, 1e300])
    for left in ("f4", "f8", "c8", "c16"):
        for right in ("f4", "f8", "c8", "c16", "i8"):
            x = np.arange(-3, 4).astype(right) if right == "i8" else odd.astype(right)
            for _ in range(2):
                result = tp.einsum("i,i->i", odd.astype(left), x)
                np.testing.assert_array_equal(result, np.einsum("i,i->i", odd.astype(left), x))


def test_one_kernel_reads_each_operand_in_its_own_dtype() -> None:
    given = [np.ones((3, 3), "f4"), np.ones(3), np.ones(3, "i2")]
    named = checked.bind_operands({str(n): each for n, each in enumerate(given)})
    found = checked.read_as(named, dict.fromkeys(named, np.dtype("f8")))
    assert all(found[str(n)].data.values is each for n, each in enumerate(given))
    assert [g.operand.type.dtype for g in found.values()] == ["float64"] * 3
    assert [g.operand.type.element for g in found.values()] == ["float32", "float64", "int16"]


def test_integer_form(long_way: list[int]) -> None:
    rng = np.random.default_rng(0)
    a, x = matrix(rng), full(rng, N)
    for _ in range(2):
        np.testing.assert_allclose(tp.einsum(a, [0, 1], x, [1], [0]), a @ x)
        np.testing.assert_allclose(tp.einsum(a, [1, 0], x, [1], [0]), a.T @ x)
        np.testing.assert_allclose(tp.einsum(a, [0, 1], x, [1]), a @ x)
    assert len(long_way) == 3


# ---------------------------------------------------------------- evaluate

EVALUATIONS: dict[str, Callable[[Any], tuple[str, dict[str, Any], dict[str, Any]]]] = {
    "residual": lambda g: (
        "r[i] = b[i] - A[i,j] * x[j]",
        {"b": full(g, N), "A": matrix(g), "x": full(g, N)},
        {},
    ),
    "narrow sum": lambda g: (
        "r[i] = b[i] + A[i,j] * x[j]",
        {"b": full(g, N), "A": matrix(g, dtype="i2"), "x": full(g, N, dtype="i2")},
        {},
    ),
    "two formats": lambda g: (
        "C[i,j] = A[i,j] + B[i,j]",
        {"A": matrix(g), "B": matrix(g, "csc")},
        {},
    ),
    "two orders": lambda g: ("C[i,j] = A[i,j] + A[j,i]", {"A": matrix(g)}, {}),
    "factored": lambda g: (
        "D[i,k] = sum(j, (A[i,j] + B[i,j]) * C[j,k])",
        {"A": matrix(g), "B": matrix(g), "C": matrix(g)},
        {},
    ),
    "dtype": lambda g: (
        "C[i,j] = A[i,j] + B[i,j]",
        {"A": matrix(g, dtype="f4"), "B": matrix(g, dtype="i4")},
        {"dtype": "f8"},
    ),
    "out": lambda g: (
        "C[i,j] = A[i,j] + B[i,j]",
        {"A": full(g, N, N), "B": matrix(g)},
        {"out": full(g, N, N)},
    ),
    "number": lambda g: (
        "C[i,j] = a * A[i,j] / 2",
        {"a": 3.5, "A": matrix(g, dtype="f4")},
        {"dtype": "f8"},
    ),
}


@pytest.mark.parametrize("as_mapping", [False, True])
@pytest.mark.parametrize("name", EVALUATIONS)
def test_evaluate(name: str, as_mapping: bool, long_way: list[int]) -> None:
    text, operands, options = EVALUATIONS[name](np.random.default_rng(1))

    def compute() -> Any:
        if as_mapping:
            return tp.evaluate(text, operands, **options)
        return tp.evaluate(text, **operands, **options)

    first, second = compute(), compute()
    assert len(long_way) == 1
    same(first, second)
    dense = {name: plain(each) for name, each in operands.items()}
    np.testing.assert_allclose(plain(second), tp.evaluate_dense(parse_assignment(text), dense))


def test_accumulation_into_out(long_way: list[int]) -> None:
    rng = np.random.default_rng(2)
    a, x, y = matrix(rng), full(rng, N), full(rng, N)
    total = y.copy()
    for _ in range(3):
        assert tp.evaluate("y[i] += A[i,j] * x[j]", A=a, x=x, out=y) is y
        total += a @ x
        np.testing.assert_allclose(y, total)
    assert len(long_way) == 1
    other = full(rng, N)
    for _ in range(2):
        result = tp.evaluate("y[i] += A[i,j] * x[j]", A=a, x=x, y=other, out=y)
        np.testing.assert_allclose(result, other + a @ x)
    assert len(long_way) == 2


def test_an_out_that_is_an_operand(long_way: list[int]) -> None:
    rng = np.random.default_rng(2)
    a, x = matrix(rng), full(rng, N)
    tp.einsum("ij,j->i", a, x, out=np.empty(N))
    expected = a @ x
    assert tp.einsum("ij,j->i", a, x, out=x) is x
    np.testing.assert_allclose(x, expected)
    table = full(rng, 2, N)
    expected = a @ table[0]
    tp.einsum("ij,j->i", a, table[0], out=table[0])
    np.testing.assert_allclose(table[0], expected)
    assert len(long_way) == 1


@pytest.mark.parametrize("warm", [False, True])
def test_an_unfit_out_is_refused(warm: bool, long_way: list[int]) -> None:
    rng = np.random.default_rng(2)
    a, x = matrix(rng), full(rng, N)
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1))
    if warm:
        tp.einsum("ij,j->i", a, x, out=np.empty(N))
        kernel(A=a, x=x, out=np.empty(N))
    fixed = np.empty(N)
    fixed.flags.writeable = False
    for out in (np.empty(N + 1), fixed, np.empty(N, "i4"), np.empty((N, 1)), [0.0] * N):
        with pytest.raises(tp.OutputError):
            tp.einsum("ij,j->i", a, x, out=out)
        with pytest.raises(tp.OutputError):
            kernel(A=a, x=x, out=out)


def test_a_tensor_whose_modes_are_stored_in_another_order_is_no_array_to_write_into() -> None:
    kernel = tp.compile("R[l,m] = A[l,m] * b", A=tp.dense(2), b=tp.dense(0), R="dd:1,0")
    with pytest.raises(tp.OutputError, match="a Tensor of the format dd:1,0") as caught:
        kernel(A=np.ones((4, 5)), b=2.0, out=np.empty((4, 5)))
    assert "format='dd'" in str(caught.value)


@pytest.mark.parametrize("text", ["ij,jk,k->i", "ki,kj->ij", "ij,ij->ij"])
def test_sizes_are_compared_before_anything_is_computed(text: str, long_way: list[int]) -> None:
    rng = np.random.default_rng(2)
    good = [matrix(rng), matrix(rng), full(rng, N)][: text.count(",") + 1]
    bad = [*good[:-1], good[-1][: N - 1]]
    messages = []
    for warm in (False, True):
        if warm:
            tp.einsum(text, *good)
        with pytest.raises(tp.DimensionError) as caught:
            tp.einsum(text, *bad)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


# ---------------------------------------------------------------- kernels


def test_kernels_with_out_and_threads(long_way: list[int]) -> None:
    rng = np.random.default_rng(2)
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), y=tp.dense(1))
    a, x = matrix(rng), full(rng, N)
    outs: list[Any] = [np.empty(N), np.empty(N, "c16"), np.empty((N, 2))[:, 0]]
    for _ in range(2):
        for out in outs:
            assert kernel(A=a, x=x, out=out) is out
            np.testing.assert_allclose(out, a @ x)
        np.testing.assert_allclose(kernel(A=a, x=x, threads=2), a @ x)
        np.testing.assert_allclose(kernel(a, x, threads=1, out=outs[0]), a @ x)
    assert len(long_way) == 3  # out of two dtypes, and none


def test_kernels_of_several_steps(long_way: list[int]) -> None:
    rng = np.random.default_rng(2)
    kernel = tp.compile("C[i,j] = A[i,j] + B[i,j]", A=tp.CSR, B=tp.CSC)
    a, b = matrix(rng), matrix(rng, "csc")
    for _ in range(3):
        np.testing.assert_allclose(plain(kernel(A=a, B=b)), (a + b).toarray())
    assert len(long_way) == 1


def test_a_result_beyond_int32_goes_the_long_way(long_way: list[int]) -> None:
    rng = np.random.default_rng(2)
    a, b = matrix(rng), matrix(rng)
    kernel = tp.compile("C[i,k] = A[i,j] * B[j,k]", A=tp.CSR, B=tp.CSR)
    (original,) = kernel.compiled
    calls = []

    def call(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) > 1:
            raise OverflowError
        return original.call(*arguments)

    small = {("C", "evaluate"): replace(original, call=call)}
    spied = replace(kernel, kernels=small, ways=type(kernel.ways)())
    narrow = spied(A=a, B=b)
    assert len(spied.ways.calls) == 1
    for _ in range(2):  # the short way is tried, and the long one, which goes on in int64
        wide = spied(A=a, B=b)
        np.testing.assert_allclose(plain(wide), plain(narrow))
        assert narrow.indices.dtype == np.int32
        assert wide.indices.dtype == np.int64
    assert len(calls) == 5
    assert len(long_way) == 3


# ---------------------------------------------------------------- threads and processes


def stress(seed: int, kernel: Kernel, rounds: int) -> None:
    """Calls of many kinds with this thread's own operands, compared with scipy."""
    rng = np.random.default_rng(seed)
    out = np.empty(N)
    for _ in range(rounds):
        a, b, x = matrix(rng), matrix(rng), full(rng, N)
        np.testing.assert_allclose(kernel(A=a, x=x), a @ x)
        np.testing.assert_allclose(kernel(A=a, x=x, out=out), a @ x)
        np.testing.assert_allclose(tp.einsum("ij,j->i", a, x, out=out), a @ x)
        np.testing.assert_allclose(tp.einsum("ij,j->i", a, x.astype("f4")), a @ x)
        np.testing.assert_allclose(tp.einsum("ij,jk,k->i", a, b, x), a @ (b @ x))
        np.testing.assert_allclose(plain(tp.einsum("ij,jk->ik", a, b)), (a @ b).toarray())
        np.testing.assert_allclose(plain(tp.einsum("ki,kj->ij", a, b)), (a.T @ b).toarray())
        added = tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=a, B=b.tocsc())
        np.testing.assert_allclose(added.toarray(), (a + b).toarray())


def test_threads_share_kernels_and_short_ways() -> None:
    KERNELS.memo.clear()
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), y=tp.dense(1))
    ready = threading.Barrier(8)

    def work(seed: int) -> None:
        ready.wait()
        stress(seed, kernel, 12)

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, seed) for seed in range(8)]:
            done.result()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_processes_go_on(long_way: list[int]) -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), y=tp.dense(1))
    stress(0, kernel, 2)
    big, x = sp.eye_array(40_000, format="csr"), np.ones(40_000)
    kernel(A=big, x=x, threads=2)  # threads that a child does not have
    children = []
    for seed in range(3):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                stress(seed, kernel, 3)
                np.testing.assert_array_equal(kernel(A=big, x=x, threads=2), x)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    stress(9, kernel, 3)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
