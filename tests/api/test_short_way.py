"""The short way of repeated calls: taken where it may be, and never seen in results or errors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.calls.call import compute as front
from taco_py.calls.kernels.kernel import Kernel
from taco_py.data.kernels import KERNELS

RNG = np.random.default_rng(5)


class Counter:
    """How often the long way was taken."""

    def __init__(self) -> None:
        self.count = 0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return function(*args, **kwargs)

        return counted


@pytest.fixture
def long_way(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter]:
    KERNELS.memo.clear()
    monkeypatch.setattr(KERNELS, "note", lambda key: None)  # nothing from earlier processes
    counter = Counter()
    monkeypatch.setattr(front, "prepare_within", counter.around(front.prepare_within))
    monkeypatch.setattr(Kernel, "_prepared", counter.around(Kernel._prepared))
    yield counter
    KERNELS.memo.clear()


def matrix(form: str = "csr", shape: tuple[int, ...] = (13, 11), dtype: Any = np.float64) -> Any:
    made = sp.random_array(shape, density=0.3, format="coo", rng=RNG)
    made.data = np.round(made.data * 100)
    return made.astype(dtype).asformat(form)


def as_family(form: str, family: str) -> Any:
    made = matrix(form)
    return made if family == "array" else getattr(sp, f"{form}_matrix")(made)


def plain(result: Any) -> Any:
    """The values of any result as an array."""
    for method in ("toarray", "to_numpy"):
        if hasattr(result, method):
            return getattr(result, method)()
    return np.asarray(result)


def strided(length: int) -> Any:
    return RNG.random(2 * length)[::2]


VECTORS: dict[str, Callable[[int], Any]] = {
    "contiguous": RNG.random,
    "strided": strided,
    "negative": lambda n: RNG.random(n)[::-1],
    "broadcast": lambda n: np.broadcast_to(np.array(2.0), (n,)),
    "tensor": lambda n: tp.tensor(RNG.random(n)),
    "read-only": lambda n: np.frombuffer(RNG.random(n).tobytes()),
}


@pytest.mark.parametrize("vector", VECTORS)
@pytest.mark.parametrize("family", ["array", "matrix"])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_products_with_vectors(form: str, family: str, vector: str, long_way: Counter) -> None:
    for _ in range(3):
        a, x = as_family(form, family), VECTORS[vector](11)
        result = tp.einsum("ij,j->i", a, x)
        assert isinstance(result, np.ndarray | tp.Tensor)
        np.testing.assert_allclose(plain(result), a.toarray() @ plain(x))
    if form == "csr" or (form == "coo" and vector != "tensor"):  # no conversion in between
        assert long_way.count == 1


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32, np.complex64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_dtypes(dtype: Any, index: Any, long_way: Counter) -> None:
    for _ in range(3):
        a = matrix(dtype=dtype)
        a.indices, a.indptr = a.indices.astype(index), a.indptr.astype(index)
        x = (RNG.random(11) * 10).astype(dtype)
        result = tp.evaluate("y[i] = A[i,j] * x[j]", A=a, x=x)
        expected = np.einsum("ij,j->i", a.toarray(), x, dtype=np.sum(np.empty(0, dtype)).dtype)
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-5)
    assert long_way.count == 1


@pytest.mark.parametrize("forms", [("csr", "csr"), ("csr", "coo"), ("csc", "csc")])
@pytest.mark.parametrize("text", ["C[i,j] = A[i,j] + B[i,j]", "C[i,j] = A[i,j] * B[i,j]"])
def test_sparse_results(text: str, forms: tuple[str, str], long_way: Counter) -> None:
    first = None
    for _ in range(3):
        a, b = matrix(forms[0]), matrix(forms[1])
        result = tp.evaluate(text, A=a, B=b)
        dense = a.toarray() + b.toarray() if "+" in text else a.toarray() * b.toarray()
        np.testing.assert_allclose(result.toarray(), dense)
        first = type(result) if first is None else first
        assert type(result) is first
        assert result.has_sorted_indices


def test_products_of_sparse_matrices_and_tensors(long_way: Counter) -> None:
    for _ in range(3):
        a, b = matrix(), matrix(shape=(11, 7))
        np.testing.assert_allclose(tp.einsum("ij,jk->ik", a, b).toarray(), (a @ b).toarray())
        tensor = tp.tensor(a, format="ss")
        result = tp.einsum("ij,jk->ik", tensor, b)
        assert isinstance(result, tp.Tensor)
        np.testing.assert_allclose(result.to_numpy(), (a @ b).toarray())
    assert long_way.count <= 4


@pytest.mark.parametrize("text", ["bij,jk->bik", "ij,jkl->ikl", "cxy,cd->dxy"])
@pytest.mark.parametrize("dtypes", [("f4", "f8"), ("i4", "f8"), ("f8", "i8"), ("F", "D")])
def test_arrays_of_two_types_with_modes_as_one(
    text: str, dtypes: tuple[str, str], long_way: Counter
) -> None:
    """What is converted for the library has been fused before."""
    terms = text.partition("->")[0].split(",")
    arrays = [
        RNG.integers(0, 9, (8,) * len(t)).astype(d) for t, d in zip(terms, dtypes, strict=True)
    ]
    expected = np.einsum(text, *arrays)
    out = np.empty_like(expected)
    for _ in range(3):
        np.testing.assert_allclose(tp.einsum(text, *arrays), expected)
        np.testing.assert_allclose(tp.einsum(text, *arrays, out=out), expected)
    assert long_way.count == 2


def test_numbers_stay_weak(long_way: Counter) -> None:
    x = np.arange(4, dtype=np.float32)
    for number in (2.0, 3, True):
        for _ in range(2):
            result = tp.evaluate("y[i] = a * x[i]", a=number, x=x)
            assert result.dtype == np.float32
            np.testing.assert_allclose(result, number * x)
    assert long_way.count == 3
    small = np.arange(4, dtype=np.int8)
    assert tp.evaluate("y[i] = a * x[i]", a=2, x=small).dtype == np.int8
    for _ in range(2):
        with pytest.raises(OverflowError):
            tp.evaluate("y[i] = a * x[i]", a=300, x=small)


def test_scalar_results_are_numpy_scalars(long_way: Counter) -> None:
    x = RNG.random(5)
    found = [tp.einsum("i,i->", x, x) for _ in range(2)]
    assert {type(each) for each in found} == {np.float64}
    assert long_way.count == 1


# ---------------------------------------------------------------- what is looked at in each call


def test_sizes_are_compared_in_each_call(long_way: Counter) -> None:
    a = matrix(shape=(13, 11))
    messages = []
    for warm in (False, True):
        if warm:
            tp.einsum("ij,j->i", a, RNG.random(11))
        with pytest.raises(tp.DimensionError) as caught:
            tp.einsum("ij,j->i", a, RNG.random(10))  # as many bits as 11
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_broken_structure_is_refused_as_ever(long_way: Counter) -> None:
    def broken() -> Any:
        a = matrix()
        a.indptr = a.indptr[:-1]
        return a

    messages = []
    x = RNG.random(11)
    for warm in (False, True):
        if warm:
            tp.einsum("ij,j->i", matrix(), x)
        with pytest.raises(tp.StructureError) as caught:
            tp.einsum("ij,j->i", broken(), x)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_arrays_with_unused_ends(long_way: Counter) -> None:
    a, x = matrix(), RNG.random(11)
    tp.einsum("ij,j->i", a, x)
    longer = matrix()
    expected = longer @ x
    longer.indices = np.append(longer.indices, np.int32(0))
    longer.data = np.append(longer.data, 9.0)
    np.testing.assert_allclose(tp.einsum("ij,j->i", longer, x), expected)


def unordered(a: Any) -> Any:
    """The same matrix with each row's entries in reverse order."""
    turn = np.concatenate(
        [np.arange(a.indptr[i], a.indptr[i + 1])[::-1] for i in range(a.shape[0])]
    ).astype(int)
    return sp.csr_array((a.data[turn], a.indices[turn], a.indptr), shape=a.shape)


def test_order_of_coordinates_is_asked_in_each_call(long_way: Counter) -> None:
    for _ in range(2):
        a, b = matrix(), matrix()
        expected = (a + b).toarray()
        for left in (a, unordered(a)):
            result = tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=left, B=b)
            np.testing.assert_allclose(result.toarray(), expected)


def test_repeated_coordinates_add_up(long_way: Counter) -> None:
    one = sp.csr_array(([1.0, 2.0], ([0, 0], [1, 2])), shape=(2, 3))
    two = sp.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2, 2])), shape=(2, 3))
    for a in (one, two, one, two):
        result = tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=a, B=a)
        np.testing.assert_allclose(result.toarray(), 2 * a.toarray())


def test_unusual_arrays(long_way: Counter) -> None:
    a = matrix()
    x = np.arange(11.0)
    expected = a @ x
    room = np.zeros(11 * 8 + 1, np.uint8)
    misaligned = room[1:].view(np.float64)
    misaligned[:] = x
    for _ in range(2):
        for each in (x, x.astype(">f8"), misaligned, x.astype(np.float32), x.astype(np.int64)):
            np.testing.assert_allclose(tp.einsum("ij,j->i", a, each), expected)


def test_rows_of_larger_arrays(long_way: Counter) -> None:
    a = matrix()
    table = RNG.random((11, 20))
    for part in (table[:, :6], table[:, ::3], table[:, ::-1], np.asfortranarray(table[:, :6])):
        for _ in range(2):
            np.testing.assert_allclose(tp.einsum("ij,jk->ik", a, part), a @ part)


def test_options_tell_calls_apart(long_way: Counter) -> None:
    a, b = matrix(), matrix()
    text = "C[i,j] = A[i,j] + B[i,j]"
    for _ in range(2):
        assert isinstance(tp.evaluate(text, A=a, B=b), sp.csr_array)
        assert isinstance(tp.evaluate(text, A=a, B=b, format="ds:1,0"), sp.csc_array)
        assert isinstance(tp.evaluate(text, A=a, B=b, format=tp.dense(2)), np.ndarray)
        with pytest.raises(tp.ScheduleError):
            tp.evaluate(text, A=a, B=b, threads=0)
        with pytest.raises(tp.NotationError):
            tp.evaluate(text, A=a, B=b, casting="sometimes")


def test_unused_and_missing_operands_are_refused_when_warm(long_way: Counter) -> None:
    a, x = matrix(), RNG.random(11)
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), y=tp.dense(1))
    for _ in range(2):
        kernel(A=a, x=x)
        tp.evaluate("y[i] = A[i,j] * x[j]", A=a, x=x)
        for call in (kernel, lambda **named: tp.evaluate("y[i] = A[i,j] * x[j]", **named)):
            with pytest.raises(tp.OperandError, match="besides"):
                call(A=a, x=x, z=x)
            with pytest.raises(tp.OperandError, match="operand x"):
                call(A=a)


def test_results_are_new_arrays(long_way: Counter) -> None:
    a, x = matrix(), RNG.random(11)
    first = tp.einsum("ij,j->i", a, x)
    second = tp.einsum("ij,j->i", a, x)
    assert not np.may_share_memory(first, second)


# ---------------------------------------------------------------- kernels


def test_kernels(long_way: Counter) -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), y=tp.dense(1))
    for size in (3, 50, 2000):
        a, x = matrix(shape=(size, 11)), RNG.random(11)
        for result in (kernel(A=a, x=x), kernel(x=x, A=a), kernel(a, x), kernel(a, x=x)):
            np.testing.assert_allclose(result, a @ x)
    assert long_way.count == 1


def test_kernels_look_at_their_operands(long_way: Counter) -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), y=tp.dense(1))
    a, x = matrix(), RNG.random(11)
    for _ in range(2):
        np.testing.assert_allclose(kernel(A=a, x=x), a @ x)
        np.testing.assert_allclose(kernel(A=a, x=strided(22)[::2]).shape, (13,))
        wide = a.copy()
        wide.indices, wide.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)
        np.testing.assert_allclose(kernel(A=wide, x=x), a @ x)
        with pytest.raises(tp.OperandTypeError, match="float32"):
            kernel(A=a, x=x.astype(np.float32))
        with pytest.raises(tp.FormatError):
            kernel(A=a.tocsc(), x=x)
        with pytest.raises(tp.DimensionError):
            kernel(A=a, x=x[:-1])
        with pytest.raises(tp.FormatError):
            kernel(A=a, x=np.ones((11, 1)))
        with pytest.raises(tp.StructureError):
            broken = a.copy()
            broken.indices = broken.indices[:-1]
            kernel(A=broken, x=x)


def test_kernels_of_tensors_and_lists(long_way: Counter) -> None:
    text = "y[i] = T[i,j,k] * u[j] * v[k]"
    kernel = tp.compile(text, T=tp.COO(3), u=tp.dense(1), v=tp.dense(1), y=tp.dense(1))
    u, v = RNG.random(4), RNG.random(5)
    for _ in range(2):
        full = (RNG.random((3, 4, 5)) < 0.4) * RNG.random((3, 4, 5))
        expected = np.einsum("ijk,j,k->i", full, u, v)
        listed = sp.coo_array(full)
        listed.coords = tuple(c.astype(np.int32) for c in listed.coords)
        np.testing.assert_allclose(kernel(T=listed, u=u, v=v), expected)
        np.testing.assert_allclose(kernel(T=tp.tensor(listed), u=u, v=v), expected)
        with pytest.raises(tp.FormatError):
            kernel(T=tp.tensor(listed, format="sss"), u=u, v=v)
        with pytest.raises(tp.FormatError):
            kernel(T=sp.coo_array(full[0]), u=u, v=v)
    assert long_way.count <= 6


def test_static_sizes_are_compared(long_way: Counter) -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), static={"j": 11})
    for _ in range(2):
        kernel(A=matrix(), x=RNG.random(11))
        with pytest.raises(tp.DimensionError, match="11"):
            kernel(A=matrix(shape=(13, 10)), x=RNG.random(10))


def test_a_kernel_remembers_few_ways(long_way: Counter) -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), y=tp.dense(1))
    a, x = matrix(), RNG.random(11)
    for _ in range(3):
        for family in (a, sp.csr_matrix(a), tp.tensor(a)):
            kernel(A=family, x=x)
            kernel(A=family, x=tp.tensor(x))
    assert len(kernel.ways.calls) <= 6


# ---------------------------------------------------------------- threads


def test_small_work_is_not_shared() -> None:
    text = "y[i] = A[i,j] * x[j]"
    tp.evaluate(text, A=matrix(), x=RNG.random(11), threads=2)
    kernel = tp.compile(text, A=tp.CSR, x=tp.dense(1), y=tp.dense(1))
    assert kernel.compiled[0].threaded
    for shape, shared in (((13, 11), False), ((400, 300), True)):
        assert used_threads(kernel, matrix(shape=shape), RNG.random(shape[1])) == [1 + shared] * 2


def used_threads(kernel: Kernel, a: Any, x: Any) -> list[int]:
    """What the C function is given: the first time by the long way, then by the short one."""
    from dataclasses import replace

    found = []

    def call(*arguments: Any) -> Any:
        found.append(arguments[-1])
        return original.call(*arguments)

    (original,) = kernel.compiled
    spied = replace(kernel, kernels={("y", "evaluate"): replace(original, call=call)})
    spied = replace(spied, options=replace(kernel.options, threads=2), ways=type(kernel.ways)())
    for _ in range(2):
        np.testing.assert_allclose(spied(A=a, x=x), a @ x)
    return found


def test_many_threads_at_once() -> None:
    KERNELS.memo.clear()
    ready = threading.Barrier(8)

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        ready.wait()
        for _ in range(20):
            shape = tuple(rng.integers(1, 70, 2))
            a = sp.random_array(shape, density=0.3, format=rng.choice(["csr", "coo"]), rng=rng)
            x = rng.random(shape[1])
            np.testing.assert_allclose(tp.einsum("ij,j->i", a, x), a @ x)
            np.testing.assert_allclose(
                tp.evaluate("C[i,j] = A[i,j] + A[i,j]", A=a).toarray(), 2 * a.toarray()
            )

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, seed) for seed in range(8)]:
            done.result()
