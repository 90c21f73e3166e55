"""Products of matrices by a library: chosen by cost, named, left out on request, and right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from codegen.libraries.blas_routines import VECTOR_BYTES
from codegen.libraries.gemm import DEPTH, IN_ALL, Loop, as_products
from codegen.runtime import blas
from taco_py.data.kernels import KERNELS

pytestmark = pytest.mark.needs_blas
TEXT = "C[i,j] = A[i,k] * B[k,j]"
WIDTH = 4096
"""Bytes of vectors as no machine has them."""
CASES = (
    "ik,kj->ij", "ki,jk->ji", "bij,bjk->bik", "bij,bkj->kib", "abc,dca->bd", "ijk,ir->rjk",
    "aebf,dfce->abcd", "bqhd,bkhd->bhqk", "i,j->ij", "i,i->", "ij,j->i", "bi,bi->b",
)  # fmt: skip


def strided(array: Any, rng: np.random.Generator) -> Any:
    """The same numbers in another layout."""
    if array.ndim == 0:
        return array
    modes = rng.permutation(array.ndim)
    moved = np.ascontiguousarray(array.transpose(modes)).transpose(np.argsort(modes))
    if rng.integers(3):
        return moved
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
    wide[..., 1::2] = array
    return wide[..., 1::2]


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
@pytest.mark.parametrize("text", CASES)
def test_any_layout_and_any_size(text: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    terms = text.split("->")[0].split(",")
    product = blas.library_product(f"{dtype} {text}")
    for _ in range(30):
        sizes = {i: int(rng.choice([0, 1, 1, 2, 3, 5])) for i in "".join(terms)}
        arrays = [rng.integers(-4, 5, [sizes[i] for i in t]).astype(dtype) for t in terms]
        a, b = (strided(array, rng) for array in arrays)
        expected = np.einsum(text, a, b)
        c = strided(np.full(expected.shape, np.nan, dtype), rng)
        product(c, a, b, int(rng.integers(1, 3)))
        np.testing.assert_array_equal(c, expected)


def test_it_takes_no_other_arrays() -> None:
    product = blas.library_product("float64 ab,bc->ac")
    a = np.ones((3, 3))
    with pytest.raises(TypeError, match="Expected arrays of float64"):
        product(a.copy(), a, a.astype("float32"))
    with pytest.raises(ValueError, match="read-only"):
        product(np.broadcast_to(a, (3, 3)), a, a)


def test_loops_in_line_are_one_dimension() -> None:
    rows, columns = (True, True, False), (True, False, True)
    loops = [
        Loop(4, (6, 5, 0), rows),
        Loop(2, (3, 0, 15), columns),
        Loop(3, (1, 0, 5), columns),
        Loop(5, (0, 1, 1), DEPTH),
    ]
    found = as_products(loops)
    assert found is not None and found.calls == 1
    assert {found.rows, found.columns} == {4, 6} and found.depth == 5
    batched = as_products([*loops, Loop(7, (24, 20, 30), IN_ALL)])
    assert batched is not None and batched.calls == 7
    apart = as_products([*loops[:3], Loop(5, (0, 2, 2), DEPTH)])
    assert apart is None


def test_the_library_uses_one_thread_in_each_part_and_then_as_many_as_before() -> None:
    threads, told, seen = [3], [], []

    def change(count: int) -> None:
        threads[0] = count
        told.append(count)

    crew = blas.Crew(change, lambda: threads[0])

    def compute(part: int) -> None:
        seen.append((part, threads[0]))
        if part == 1:
            crew.run(lambda inner: seen.append((inner, threads[0])), (10,))  # as another thread
        if part == 2:
            raise ValueError("of a part")

    crew.run(compute, (0, 1))
    assert sorted(seen) == [(0, 1), (1, 1), (10, 1)] and told == [1, 3]
    with pytest.raises(ValueError, match="of a part"):
        crew.run(compute, (0, 2))
    assert threads == [3]


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("ab,bc->ac", ((300, 700), (700, 90))),
        ("ba,bc->ac", ((90, 90), (90, 700))),
        ("ab,cb->ca", ((500, 400), (211, 400))),
        ("nab,nbc->nac", ((9, 100, 80), (9, 80, 100))),
        ("nab,nbc->ac", ((9, 100, 80), (9, 80, 100))),
        ("nab,nbc->nac", ((2, 300, 200), (2, 200, 100))),
    ],
)
def test_large_products_are_shared_among_threads(text: str, shapes: Any) -> None:
    """By columns, rows or matrices; each part is computed once, alike with any number of them."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(float) for shape in shapes)
    expected = np.einsum(text, a, b, optimize=True)
    product = blas.library_product(f"float64 {text}")
    if product.library.crew is None:
        pytest.skip("the library cannot be told how many threads to use")
    for threads in (1, 2, 3):
        c = np.full(expected.shape, np.nan)
        product(c, a, b, threads)
        np.testing.assert_array_equal(c, expected)
        call = product._call_of(c, a, b, threads)
        assert call is not None and len(call.parts) == threads


@pytest.fixture
def as_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library whose vectors are no narrower than those of generated code; no plan made before."""
    monkeypatch.setattr(blas, "vector_bytes", lambda: WIDTH)
    KERNELS.memo.clear()


def test_the_library_tells_its_kernels() -> None:
    loaded = blas.load()
    if loaded is None or loaded.core is None:
        pytest.skip("the library cannot be asked for whom its kernels are")
    assert loaded.core.isprintable()
    assert blas.vector_bytes() == VECTOR_BYTES.get(loaded.core)


@pytest.mark.parametrize(("width", "named"), [(WIDTH, True), (None, True), (1, False)])
def test_narrow_vectors_cost(
    width: int | None, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blas, "vector_bytes", lambda: width)
    KERNELS.memo.clear()
    kernel = tp.compile(TEXT, dict.fromkeys("ABC", "dd"), static=dict.fromkeys("ijk", 1400))
    assert ("dgemm" in kernel.explain()) == named


@pytest.mark.usefixtures("as_wide")
def test_what_is_chosen_is_named_and_can_be_switched_off() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 70, 70))
    told = tp.explain(TEXT, A=a, B=b)
    assert "dgemm of SciPy's OpenBLAS, 1 of 70 by 70 by 70" in told
    assert "with its share of compiling" in told and "as it is in the library" in told
    assert "OpenBLAS" not in tp.explain(TEXT, A=a, B=b, libraries=False)
    for libraries in (True, False):
        for _ in range(3):
            np.testing.assert_allclose(tp.einsum("ik,kj->ij", a, b, libraries=libraries), a @ b)
            found = tp.evaluate(TEXT, A=a, B=b, libraries=libraries, threads=1)
            np.testing.assert_allclose(found, a @ b)
    many = rng.random((10_000, 4, 4))
    assert "OpenBLAS" not in tp.explain("C[b,i,j] = A[b,i,k] * B[b,k,j]", A=many, B=many)
    turned = np.ones((6, 6, 6, 6))
    crossed = "C[a,b,c,d] = A[a,e,b,f] * B[d,f,c,e]"
    assert "OpenBLAS" not in tp.explain(crossed, A=turned, B=turned)


@pytest.mark.usefixtures("as_wide")
def test_of_complex_numbers_and_the_parts_of_a_chain() -> None:
    rng = np.random.default_rng(0)
    z = rng.random((40, 40)) + 1j * rng.random((40, 40))
    assert "zgemm" in tp.explain(TEXT, A=z, B=z)
    np.testing.assert_allclose(tp.einsum("ik,kj->ij", z, z), z @ z)
    np.testing.assert_allclose(tp.einsum("ij,jk,kl->il", z, z, z), z @ z @ z)


@pytest.mark.usefixtures("as_wide")
def test_a_kernel_calls_it_where_sizes_are_known_and_large(tmp_path: Path) -> None:
    forms = dict.fromkeys("ABC", "dd")
    assert "tiles of" in tp.compile(TEXT, forms).explain()
    static = dict.fromkeys("ijk", 1400)
    kernel = tp.compile(TEXT, forms, static=static)
    assert "dgemm" in kernel.explain() and "by a library" in kernel.source
    assert "tiles of" in tp.compile(TEXT, forms, static=static, libraries=False).explain()


def test_libraries_is_true_or_false() -> None:
    with pytest.raises(tp.OperandTypeError, match="Expected libraries to be True or False"):
        tp.einsum("i,i->", np.ones(3), np.ones(3), libraries="no")
