"""What a result is and what a call leaves alone: types, copies, sortedness, kernels, threads,
forks.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.data import array
from tests.corpus.formats import to_dense

ROOT = Path(__file__).parent.parent.parent
A = array("A", (5, 6), "mixed")
B = array("B", (5, 6), "mixed")
S = array("S", (5, 5), "mixed")
T = array("T", (3, 4, 5), "mixed")
X = array("X", (6,), "full")

coo: Any = sp.coo_array
MUL, ADD = "C[i,j] = A[i,j] * B[i,j]", "C[i,j] = A[i,j] + B[i,j]"
TYPES: tuple[tuple[str, dict[str, Any], type], ...] = (
    # nothing makes it sparse
    ("y[i] = A[i,j] * x[j]", {"A": A, "x": X}, np.ndarray),
    ("y[i] = A[i,j] * x[j]", {"A": sp.csr_array(A), "x": X}, np.ndarray),
    ("C[i,j] = A[i,j] + B[i,j]", {"A": sp.csr_array(A), "B": B}, np.ndarray),
    ("C[i,j] = A[i,j] + 1", {"A": sp.csr_array(A)}, np.ndarray),
    ("C[i,k] = A[i,j] * B[k,j]", {"A": sp.csr_array(A), "B": B}, np.ndarray),
    # csr_array
    (ADD, {"A": sp.csr_array(A), "B": sp.csr_array(B)}, sp.csr_array),
    (MUL, {"A": sp.csr_array(A), "B": B}, sp.csr_array),
    (ADD, {"A": sp.csr_array(A), "B": sp.csc_array(B)}, sp.csr_array),
    (ADD, {"A": sp.coo_array(A), "B": sp.coo_array(B)}, sp.csr_array),
    (ADD, {"A": sp.csr_array(A), "B": sp.lil_array(B)}, sp.csr_array),
    (ADD, {"A": sp.dok_array(A), "B": sp.dia_array(B)}, sp.csr_array),
    ("C[i,k] = A[i,j] * B[j,k]", {"A": sp.csr_array(A), "B": sp.csr_array(B.T)}, sp.csr_array),
    ("C[i,j] = 2 * A[i,j]", {"A": sp.bsr_array(A)}, sp.csr_array),
    # csc_array when all sparse operands are CSC
    (ADD, {"A": sp.csc_array(A), "B": sp.csc_array(B)}, sp.csc_array),
    (MUL, {"A": sp.csc_array(A), "B": B}, sp.csc_array),
    ("C[i,k] = A[i,j] * B[j,k]", {"A": sp.csc_array(A), "B": sp.csc_array(B.T)}, sp.csc_array),
    # the older family when all sparse operands are of it
    (ADD, {"A": sp.csr_matrix(A), "B": sp.csr_matrix(B)}, sp.csr_matrix),
    (ADD, {"A": sp.csc_matrix(A), "B": sp.csc_matrix(B)}, sp.csc_matrix),
    (ADD, {"A": sp.csr_matrix(A), "B": sp.csr_array(B)}, sp.csr_array),
    # one mode, or more than two
    ("y[i] = a[i] * b[i]", {"a": coo(A[0]), "b": coo(A[1])}, sp.coo_array),
    ("R[i,j,k] = T[i,j,k] * T[i,j,k]", {"T": coo(T)}, sp.coo_array),
    ("R[i,j] = T[i,j,k] * x[k]", {"T": coo(T), "x": np.ones(5)}, sp.csr_array),
    # a Tensor makes a Tensor
    (ADD, {"A": tp.tensor(A, format="ss"), "B": tp.tensor(B, format="ss")}, tp.Tensor),
    (ADD, {"A": tp.tensor(A, format="ss"), "B": sp.csr_array(B)}, tp.Tensor),
    ("R[i,j,k] = 2 * T[i,j,k]", {"T": tp.tensor(T, format="sss")}, tp.Tensor),
)


@pytest.mark.parametrize(("text", "operands", "kind"), TYPES)
def test_result_type(text: str, operands: dict[str, Any], kind: type) -> None:
    result = tp.evaluate(text, operands)
    assert type(result) is kind
    dense = {name: to_dense(operand) for name, operand in operands.items()}
    np.testing.assert_array_equal(to_dense(result), to_dense(tp.evaluate(text, dense)))


SCIPY_CLASSES = [
    getattr(sp, f"{kind}_{family}")
    for kind in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
    for family in ("array", "matrix")
]


@pytest.mark.parametrize("make", SCIPY_CLASSES, ids=lambda make: make.__name__)
def test_every_scipy_class_times_a_vector_is_an_array(make: Any) -> None:
    y = tp.einsum("ij,j->i", make(A), X)
    assert type(y) is np.ndarray
    np.testing.assert_array_equal(y, A @ X)


def test_format_overrides() -> None:
    a = sp.csr_array(A)
    for form in (tp.CSC, "ss", tp.COO(2), tp.dense(2)):
        np.testing.assert_array_equal(to_dense(tp.einsum("ij->ij", a, format=form)), A)
    assert type(tp.einsum("ij->ij", a, format=tp.CSC)) is sp.csc_array
    assert type(tp.einsum("ij->ij", a, format=tp.dense(2))) is np.ndarray
    assert type(tp.einsum("ij->ij", a, format=tp.COO(2))) is sp.coo_array


def test_scalar_results_are_numpy_scalars_or_0d() -> None:
    total = tp.einsum("ij->", sp.csr_array(A))
    assert np.ndim(total) == 0
    assert float(total) == A.sum()


# ---------------------------------------------------------------- copies


def peak_during(call: Callable[[], Any]) -> int:
    """Bytes that NumPy allocates at most during the call, beyond what it had."""
    call()
    tracemalloc.start()
    try:
        base = tracemalloc.get_traced_memory()[0]
        result = call()
        return tracemalloc.get_traced_memory()[1] - base - getattr(result, "nbytes", 0)
    finally:
        tracemalloc.stop()


def large(index_dtype: Any = np.int32) -> Any:
    """A thousand rows of a thousand nonzeros: 8 MB of values."""
    n = 1000
    arrays = (
        np.ones(n * n),
        np.tile(np.arange(n, dtype=index_dtype), n),
        np.arange(0, n * n + 1, n, dtype=index_dtype),
    )
    return sp.csr_array(arrays, shape=(n, n))


LARGE: dict[str, Callable[[], Any]] = {
    "csr": large,
    "csr int64": lambda: large(np.int64),
    "csc": lambda: large().T,
    "coo": lambda: large().tocoo(),
    "matrix": lambda: sp.csr_matrix(large()),
    "dense": lambda: np.ones((1000, 1000)),
    "dense transposed": lambda: np.ones((1000, 1000)).T,
    "dense every second": lambda: np.ones((2000, 2000))[::2, ::-2],
    "dense broadcast": lambda: np.broadcast_to(np.ones(1000), (1000, 1000)),
}


@pytest.mark.parametrize("kind", LARGE)
def test_operands_are_not_copied(kind: str) -> None:
    operand = LARGE[kind]()
    x = np.ones(1000)
    assert peak_during(lambda: tp.einsum("ij,j->i", operand, x)) < 500_000


def test_every_stored_value_is_read_in_place() -> None:
    """A change to the user's array shows in the next call: nothing is kept between calls."""
    matrix = sp.csr_array(A)
    first = tp.einsum("ij,j->i", matrix, X)
    matrix.data *= 2
    np.testing.assert_array_equal(tp.einsum("ij,j->i", matrix, X), 2 * first)


def unsorted() -> Any:
    """Rows whose columns descend, with one entry in two parts."""
    matrix = sp.csr_array(
        (
            np.array([5.0, 3.0, 1.0, 4.0, 2.0]),
            np.array([2, 0, 2, 1, 0], np.int32),
            np.array([0, 3, 5], np.int32),
        ),
        shape=(2, 3),
    )
    assert not matrix.has_sorted_indices
    return matrix


def unsorted_coo() -> Any:
    rows, columns = [1, 0, 0, 1, 0], [2, 2, 0, 1, 2]
    return sp.coo_array((np.array([5.0, 3.0, 1.0, 4.0, 2.0]), (rows, columns)), shape=(2, 3))


ON_UNSORTED = (
    ("y[i] = A[i,j] * x[j]", {"x": np.array([1.0, 2.0, 4.0])}),
    ("C[i,j] = A[i,j] + B[i,j]", {"B": sp.csr_array(np.ones((2, 3)))}),
    ("C[i,j] = A[i,j] * B[i,j]", {"B": sp.csr_array(np.array([[1.0, 0, 2], [0, 3, 0]]))}),
    ("C[i,j] = A[i,j] * A[i,j]", {}),
    ("s = A[i,j] * A[i,j]", {}),
    ("C[i,k] = A[i,j] * B[j,k]", {"B": sp.csr_array(np.eye(3))}),
    ("C[i,k] = A[i,j] * A[k,j]", {}),
    ("C[i,j] = A[i,j] + 1", {}),
    ("C[j,i] = A[i,j]", {}),
    ("C[i,j] = 3 * A[i,j]", {}),
)


@pytest.mark.parametrize(("text", "others"), ON_UNSORTED, ids=[text for text, _ in ON_UNSORTED])
@pytest.mark.parametrize(
    "make", [unsorted, unsorted_coo, lambda: unsorted().T], ids=["csr", "coo", "csc"]
)
def test_unsorted_and_duplicate_entries(text: str, others: dict[str, Any], make: Any) -> None:
    matrix = make()
    if matrix.shape == (3, 2):
        text = text.replace("A[i,j]", "A[j,i]").replace("A[k,j]", "A[j,k]")
    before = {name: value.copy() for name, value in vars(matrix).items() if hasattr(value, "copy")}
    result = to_dense(tp.evaluate(text, {"A": matrix, **others}))
    dense = {"A": matrix.toarray()} | {name: to_dense(other) for name, other in others.items()}
    np.testing.assert_array_equal(result, to_dense(tp.evaluate(text, dense)))
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(matrix, name), value)


SPARSE_RESULTS = (
    "C[i,j] = A[i,j] + B[i,j]",
    "C[i,j] = A[i,j] * B[i,j]",
    "C[i,k] = A[i,j] * B[j,k]",
    "C[i,k] = A[i,j] * B[k,j]",
    "C[j,i] = 2 * A[i,j]",
)


@pytest.mark.parametrize("text", SPARSE_RESULTS)
@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.coo_array])
def test_sparse_results_are_well_formed_and_say_truly_whether_they_are_sorted(
    text: str, make: Any
) -> None:
    operands = {name: make(value) for name, value in (("A", S), ("B", S.T)) if f"{name}[" in text}
    result = tp.evaluate(text, operands)
    tp.check(result)
    result.check_format(full_check=True)
    assert result.indices.dtype == result.indptr.dtype
    claimed = bool(result.has_sorted_indices)
    rows = zip(result.indptr, result.indptr[1:], strict=False)
    sorted_rows = all((np.diff(result.indices[start:stop]) > 0).all() for start, stop in rows)
    assert sorted_rows or not claimed


def test_results_do_not_share_memory_with_operands() -> None:
    a = sp.csr_array(A)
    for text in ("C[i,j] = A[i,j]", "C[i,j] = 2 * A[i,j]"):
        result = tp.evaluate(text, A=a)
        for name in ("data", "indices", "indptr"):
            assert not np.shares_memory(getattr(result, name), getattr(a, name))


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_index_dtypes_are_taken_and_given_back(index_dtype: Any) -> None:
    a = sp.csr_array(A)
    a.indices, a.indptr = a.indices.astype(index_dtype), a.indptr.astype(index_dtype)
    result = tp.evaluate("C[i,j] = A[i,j] + A[i,j]", A=a)
    assert result.indices.dtype == result.indptr.dtype == index_dtype
    np.testing.assert_array_equal(result.toarray(), 2 * A)


def test_index_dtypes_may_be_mixed() -> None:
    a, b = sp.csr_array(A), sp.csr_array(B)
    b.indices, b.indptr = b.indices.astype(np.int64), b.indptr.astype(np.int64)
    np.testing.assert_array_equal(tp.evaluate(ADD, A=a, B=b).toarray(), A + B)


def test_sizes_beyond_int32() -> None:
    far = 2**40
    a = coo(
        (np.array([2.0, 3.0]), (np.array([5, far - 1]), np.array([far - 1, 7]))), shape=(far, far)
    )
    result = tp.evaluate("C[i,j] = 2 * A[i,j]", {"A": a}, format=tp.COO(2))
    assert result.shape == (far, far)
    rows, columns = result.coords
    assert sorted(zip(rows.tolist(), columns.tolist(), result.data.tolist(), strict=True)) == [
        (5, far - 1, 4.0),
        (far - 1, 7, 6.0),
    ]
    assert float(tp.evaluate("s = A[i,j]", A=a)) == 5.0


# ---------------------------------------------------------------- dense operands of every layout


def misaligned(values: Any) -> Any:
    room = np.zeros(values.nbytes + 1, np.uint8)
    view = room[1:].view(values.dtype).reshape(values.shape)
    view[...] = values
    return view


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "reversed": lambda values: np.ascontiguousarray(values[::-1])[::-1],
    "every second": lambda values: np.repeat(values, 2, axis=0)[::2],
    "a field of records": lambda values: _field(values),
    "read only": lambda values: _read_only(values),
    "other byte order": lambda values: values.astype(values.dtype.newbyteorder()),
    "misaligned": misaligned,
}


def _field(values: Any) -> Any:
    records = np.zeros(values.shape, [("tag", np.int64), ("value", values.dtype)])
    records["value"] = values
    return records["value"]


def _read_only(values: Any) -> Any:
    copy = values.copy()
    copy.flags.writeable = False
    return copy


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sparse", [True, False])
def test_dense_layouts(layout: str, sparse: bool) -> None:
    first = sp.csr_array(A) if sparse else LAYOUTS[layout](A)
    second = LAYOUTS[layout](np.ascontiguousarray(B.T))
    x = LAYOUTS[layout](X)
    np.testing.assert_array_equal(tp.einsum("ij,jk->ik", first, second), A @ B.T)
    np.testing.assert_array_equal(tp.einsum("ij,j->i", first, x), A @ X)
    np.testing.assert_array_equal(second, B.T)


def test_broadcast_views() -> None:
    x = np.broadcast_to(np.float64(3.0), (6,))
    np.testing.assert_array_equal(tp.einsum("ij,j->i", sp.csr_array(A), x), A @ x)


@pytest.mark.parametrize("shape", [(0, 6), (5, 0), (0, 0)])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_array, sp.coo_array])
def test_sizes_of_zero(shape: tuple[int, int], make: Any) -> None:
    empty = make(np.zeros(shape))
    y = tp.einsum("ij,j->i", empty, np.ones(shape[1]))
    np.testing.assert_array_equal(y, np.zeros(shape[0]))
    product = tp.einsum("ij,kj->ik", empty, empty)
    assert product.shape == (shape[0], shape[0])
    assert float(tp.einsum("ij->", empty)) == 0.0


# ---------------------------------------------------------------- kernels


COUNT = """
import os, numpy as np, scipy.sparse as sp, taco_py as tp
from pathlib import Path

def built():
    return len(list(Path(os.environ["TACO_PY_CACHE_DIR"]).rglob("*.so")))

def product(n, **more):
    a = sp.random_array((n, n + 1), density=0.5, format="csr")
    b = np.ones((n + 1, 4))
    y = tp.evaluate("C[i,k] = A[i,j] * B[j,k]", A=a, B=b, **more)
    np.testing.assert_allclose(y, a @ b)
    return built()

counts = [built(), product(5), product(6), product(100)]
counts += [product(5, threads=2)]
static = tp.compile("C[i,k] = A[i,j] * B[j,k]", A=tp.CSR, B=tp.dense(2), C=tp.dense(2),
                    static={"k": 4})
np.testing.assert_allclose(static(A=sp.csr_array(np.eye(3)), B=np.ones((3, 4))), np.ones((3, 4)))
counts += [built()]
print(*counts)
"""


def in_new_process(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_new_shapes_do_not_recompile_and_static_sizes_do(tmp_path: Path) -> None:
    environment = {"TACO_PY_CACHE_DIR": str(tmp_path)}
    start, first, *same, static = map(int, in_new_process(COUNT, **environment).split())
    assert set(same) == {first}
    assert start < first < static
    # A second process finds everything on disk.
    again = list(map(int, in_new_process(COUNT, **environment).split()))
    assert set(again) == {static}


def test_a_kernel_is_called_again_on_new_data() -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), y=tp.dense(1))
    for shape in ((3, 4), (10, 2), (1, 1), (0, 3)):
        a = array(str(shape), shape, "full") if 0 not in shape else np.zeros(shape)
        x = np.arange(float(shape[1]))
        np.testing.assert_array_equal(kernel(A=sp.csr_array(a), x=x), a @ x)


def test_kernel_of_other_dtypes() -> None:
    kernel = tp.compile(
        "y[i] = A[i,j] * x[j]",
        A=tp.CSR,
        x=tp.dense(1),
        y=tp.dense(1),
        dtypes={"A": np.float32, "x": np.complex64},
        index_dtype=np.int64,
    )
    a = sp.csr_array(A.astype(np.float32))
    a.indices, a.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)
    y = kernel(A=a, x=X.astype(np.complex64))
    assert y.dtype == np.complex64
    np.testing.assert_array_equal(y, A @ X)


def test_static_size_is_checked() -> None:
    kernel = tp.compile(
        "y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), y=tp.dense(1), static={"j": 6}
    )
    np.testing.assert_array_equal(kernel(A=sp.csr_array(A), x=X), A @ X)
    with pytest.raises(tp.TacoError, match="6"):
        kernel(A=sp.csr_array(S), x=np.ones(5))


PATTERN_KERNELS = (
    ("C[i,j] = A[i,j] + B[i,j]", {"A": "CSR", "B": "CSR", "C": "CSR"}),
    ("C[i,k] = A[i,j] * B[k,j]", {"A": "CSR", "B": "CSR", "C": "CSR"}),
    ("C[i,j] = A[i,j] * B[i,j]", {"A": "CSC", "B": "CSC", "C": "CSC"}),
    ("C[i,j] = A[i,j] * B[i,j]", {"A": "DCSR", "B": "DCSR", "C": "DCSR"}),
)
STORE = {"CSR": sp.csr_array, "CSC": sp.csc_array, "DCSR": lambda a: tp.tensor(a, format="ss")}


@pytest.mark.parametrize(("text", "formats"), PATTERN_KERNELS)
def test_a_fixed_pattern_is_recomputed_without_assembly(text: str, formats: dict[str, str]) -> None:
    kernel = tp.compile(text, **{name: getattr(tp, form) for name, form in formats.items()})
    make = STORE[formats["A"]]
    pattern = kernel.assemble(A=make(A), B=make(B))
    assert not to_dense(pattern).any()
    whole = kernel(A=make(A), B=make(B))
    for factor in (1.0, -2.0):
        first, second = factor * A, B / 2
        result = kernel.compute(pattern, A=make(first), B=make(second))
        dense = {"A": first, "B": second}
        np.testing.assert_array_equal(to_dense(result), to_dense(tp.evaluate(text, dense)))
        assert result.nnz == whole.nnz
    assert not to_dense(pattern).any()


def test_a_call_on_a_pattern_of_another_shape_is_refused() -> None:
    kernel = tp.compile(ADD, A=tp.CSR, B=tp.CSR, C=tp.CSR)
    pattern = kernel.assemble(A=sp.csr_array(A), B=sp.csr_array(B))
    with pytest.raises(tp.TacoError):
        kernel.compute(pattern, A=sp.csr_array(S), B=sp.csr_array(S))


def test_source_and_explanation_are_readable() -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), y=tp.dense(1))
    assert "for (" in kernel.source
    assert "A2_pos" in kernel.source
    assert len(kernel.source.splitlines()) < 80
    text = kernel.explain()
    for part in ("forall", "y[i]", "ds"):
        assert part in text


def test_explain_shows_the_conversion_that_an_order_conflict_needs() -> None:
    text = tp.compile(ADD, A=tp.CSR, B=tp.CSC, C=tp.CSR).explain()
    assert "ds:1,0" in text or "CSC" in text
    assert "transpos" in text.lower() or "convert" in text.lower()


# ---------------------------------------------------------------- threads and processes


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_give_the_same_result(threads: int) -> None:
    random = np.random.default_rng(0)
    a = sp.random_array((3000, 2000), density=0.01, format="csr", rng=random)
    a.data = np.round(10 * a.data)
    b = sp.csr_array(a.T)
    x = np.arange(2000.0)
    np.testing.assert_array_equal(tp.einsum("ij,j->i", a, x, threads=threads), a @ x)
    np.testing.assert_array_equal(
        tp.einsum("ij,jk->ik", a, b, threads=threads).toarray(), (a @ b).toarray()
    )
    np.testing.assert_array_equal(
        tp.evaluate("C[i,j] = A[i,j] + A[i,j]", A=a, threads=threads).toarray(), 2 * a.toarray()
    )


def test_many_python_threads_call_one_kernel() -> None:
    def work(number: int) -> bool:
        a = array(str(number), (40 + number % 7, 30), "mixed")
        x = np.arange(30.0) + number
        y = tp.einsum("ij,j->i", sp.csr_array(a), x)
        c = tp.einsum("ij,kj->ik", sp.csr_array(a), sp.csr_array(a))
        return bool((y == a @ x).all() and (c.toarray() == a @ a.T).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))


def test_many_python_threads_compile_at_once(tmp_path: Path) -> None:
    code = """
import numpy as np, scipy.sparse as sp, taco_py as tp
from concurrent.futures import ThreadPoolExecutor
a, x = sp.csr_array(np.eye(4)), np.arange(4.0)
with ThreadPoolExecutor(8) as pool:
    results = list(pool.map(lambda _: tp.einsum("ij,j->i", a, x), range(8)))
print(all((y == x).all() for y in results))
"""
    assert in_new_process(code, TACO_PY_CACHE_DIR=str(tmp_path)) == "True"


def _in_child(queue: Any) -> None:
    queue.put(tp.einsum("ij,j->i", sp.csr_array(A), X).tolist())


def test_a_forked_child_goes_on_working() -> None:
    big = sp.csr_array(np.ones((500, 500)))
    tp.einsum("ij,j->i", big, np.ones(500), threads=2)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    assert queue.get(timeout=60) == (A @ X).tolist()
    child.join(timeout=60)
    assert child.exitcode == 0


def test_a_result_that_is_zero_whatever_the_operands_is_written() -> None:
    """Freed memory that held something else must not show through."""
    for number in range(20):
        junk = [np.full(size, 7.0 + number) for size in (1, 3) for _ in range(50)]
        del junk
        assert float(tp.evaluate("s = 0 * t", t=np.float64(3.0))) == 0.0
        np.testing.assert_array_equal(tp.evaluate("y[i] = 0 * a[i]", a=np.ones(3)), np.zeros(3))
