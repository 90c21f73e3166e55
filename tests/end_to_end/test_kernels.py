"""What a Kernel gives back for which operands, and what it begins from."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.toolchain.compiler import find_compiler
from codegen.toolchain.errors import NoCompilerError

pytestmark = pytest.mark.user_flags

A = sp.csr_array(np.array([[1.0, 0, 2], [0, 3, 0], [4, 0, 5]]))
SUM = "C[i,j] = A[i,j] + B[i,j]"
UNSORTED = sp.csr_array(
    (np.array([1.0, 2, 3]), np.array([2, 0, 1]), np.array([0, 2, 3, 3])), shape=(3, 3)
)


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        (A, A, sp.csr_array),
        (sp.csr_matrix(A), sp.csr_matrix(A), sp.csr_matrix),
        (sp.csr_matrix(A), A, sp.csr_array),
        (tp.tensor(A), A, tp.Tensor),
    ],
)
def test_a_sparse_result_is_as_its_operands_are(first: Any, second: Any, kind: Any) -> None:
    kernel = tp.compile(SUM, A=tp.CSR, B=tp.CSR)
    for found in (
        *(kernel(A=first, B=second) for _ in range(3)),
        kernel(first, second, threads=1),
        kernel.compute(kernel.assemble(A=first, B=second), A=first, B=second),
    ):
        assert type(found) is kind
        values = found.to_numpy() if isinstance(found, tp.Tensor) else found.toarray()
        np.testing.assert_array_equal(values, 2 * A.toarray())


def test_formats_that_scipy_has_and_those_that_it_has_not() -> None:
    for form, kind in ((tp.CSC, sp.csc_array), (tp.COO(2), sp.coo_array), (tp.DCSR, tp.Tensor)):
        kernel = tp.compile("C[i,j] = A[i,j] + A[i,j]", A=tp.CSR, C=form)
        for _ in range(2):
            assert type(kernel(A=A)) is kind


def test_an_accumulation_begins_from_out_or_from_its_operand() -> None:
    kernel = tp.compile("y[i] += A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1))
    x, product = np.ones(3), A @ np.ones(3)
    for _ in range(3):
        out = np.array([1.0, 2, 3])
        assert kernel(A=A, x=x, out=out) is out
        np.testing.assert_array_equal(out, np.array([1, 2, 3]) + product)
        wide = np.zeros((3, 2))
        assert kernel(A=A, x=x, out=wide[:, 1]).base is wide
        np.testing.assert_array_equal(wide, np.stack([np.zeros(3), product], 1))
        start = np.full(3, 7.0)
        np.testing.assert_array_equal(kernel(A=A, x=x, y=start), product + 7)
        np.testing.assert_array_equal(kernel(A=A, x=x, y=start, out=out), product + 7)
        np.testing.assert_array_equal(start, np.full(3, 7.0))
        np.testing.assert_array_equal(kernel(A=A, x=x), product)
    with pytest.raises(tp.OperandError, match="Expected an operand y"):  # of which no size is known
        kernel(x=x)


def test_values_are_never_put_at_other_places() -> None:
    kernel = tp.compile(SUM, A=tp.CSR, B=tp.CSR)
    pattern = kernel.assemble(A=A, B=A)
    moved = sp.csr_array((np.ones(5), np.array([0, 1, 2, 0, 2]), np.array([0, 2, 3, 5])))
    longer = sp.csr_array((np.ones(5), np.array([0, 2, 1, 0, 2]), np.array([0, 1, 3, 5])))
    for other in (moved, longer, UNSORTED):
        with pytest.raises(tp.StructureError, match=r"Expected (the|a) pattern") as caught:
            kernel.compute(pattern, A=other, B=other)
        assert "assemble again" in str(caught.value)
    reversed_ = sp.csr_array((np.ones(5), np.array([2, 0, 1, 2, 0]), np.array([0, 2, 3, 5])))
    with pytest.raises(tp.StructureError, match="crd of level 1"):
        kernel.compute(reversed_, A=A, B=A)
    found = kernel.compute(pattern, A=3 * A, B=A)
    assert found.indices is pattern.indices or np.shares_memory(found.indices, pattern.indices)
    np.testing.assert_array_equal(found.toarray(), 4 * A.toarray())


def test_copies_for_the_sake_of_order_are_explained() -> None:
    text = tp.explain(SUM, A=UNSORTED, B=A)
    copy = "copy      A: coordinates sorted and duplicates added up in a copy"
    assert text.index(copy) < text.index("kernel  ")
    assert "copy" not in tp.explain(SUM, A=A, B=A).split("relies on")[0]
    doubled = sp.csr_array((np.ones(2), np.array([1, 1]), np.array([0, 2, 2, 2])), shape=(3, 3))
    assert copy in tp.explain(SUM, A=tp.tensor(doubled), B=A)
    assert "otherwise   coordinates sorted" in tp.compile(SUM, A=tp.CSR, B=tp.CSR).explain()


def test_explain_says_what_sizes_were_taken_for() -> None:
    text, matrix = "y[i] = A[i,j] * x[j]", tp.dense(2)
    told = tp.compile(text, A=matrix, x=tp.dense(1)).explain()
    assert "\nsizes     i, j taken for 1000, for no sizes are given\n" in told
    assert "sizes     i taken for" in tp.compile(text, A=matrix, x=np.ones(4)).explain()
    sizes = {"i": 3, "j": 4}
    assert "taken for" not in tp.compile(text, A=matrix, x=tp.dense(1), static=sizes).explain()


def test_a_quote_that_is_not_closed_in_cc() -> None:
    with pytest.raises(NoCompilerError, match="No closing quotation"):
        find_compiler({"CC": 'gcc "-O3'})


def test_a_kernel_is_pickled_as_what_to_compile() -> None:
    kernel = tp.compile("y[i] += A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), static={"j": 3})
    again = pickle.loads(pickle.dumps(kernel))
    assert repr(again) == repr(kernel) and again.source == kernel.source
    out = np.ones(3)
    assert again(A=A, x=np.ones(3), out=out) is out
    np.testing.assert_array_equal(out, A @ np.ones(3) + 1)


@pytest.mark.parametrize("form", ["dd", "dd:1,0", None])
def test_a_dense_operand_of_any_strides_is_taken(form: str | None) -> None:
    rng = np.random.default_rng(0)
    d, e = np.asfortranarray(rng.random((4, 5))), rng.random((5, 4))
    kernel = tp.compile("C[i,j] = D[i,j] * E[j,i]", D=d if form is None else form, E=e)
    expected = d * e.T
    for array in (d, np.ascontiguousarray(d), np.repeat(d, 2, axis=1)[:, ::2], d[::-1][::-1]):
        np.testing.assert_array_equal(kernel(D=array, E=e), expected)
    with pytest.raises(tp.FormatError, match="Expected D in the format"):
        kernel(D=sp.csr_array(d), E=e)


@pytest.mark.parametrize("turned", [np.ascontiguousarray, np.asfortranarray])
@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("C[a,b,c] = A[c,b] * B[a]", ((3, 4), (5,))),
        ("C[a,b,d,c] = A[d,c,b] * B[b,a]", ((3, 4, 5), (5, 2))),
    ],
)
def test_a_result_has_its_modes_in_every_call(
    text: str, shapes: tuple[tuple[int, ...], ...], turned: Callable[[Any], Any]
) -> None:
    """Also where the kernel has indices as one that lie one behind the other."""
    A, B = (turned(np.random.default_rng(1).random(shape)) for shape in shapes)
    expected = tp.evaluate_dense(text, A=A, B=B)
    made = tp.compile(text, A=tp.dense(A.ndim), B=tp.dense(B.ndim))
    for kernel in (made, pickle.loads(pickle.dumps(made))):
        out = np.zeros(expected.shape)
        for _ in range(3):
            np.testing.assert_allclose(kernel(A=A, B=B), expected)
            assert kernel(A=A, B=B, out=out) is out
            np.testing.assert_allclose(out, expected)
        pattern = kernel.assemble(A=A, B=B)
        np.testing.assert_allclose(kernel.compute(pattern, A=A, B=B), expected)
