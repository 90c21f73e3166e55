"""Masks against the product everywhere, cut afterwards."""

import itertools
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from tests.end_to_end.test_semirings import (
    by_loops,
    dense,
    parts,
    skipped,
    stored_matrix,
    zero_of,
)  # fmt: skip

KINDS = tuple(itertools.product((False, True), (False, True)))
LAYOUTS = ("csr", "csc", "coo", "dense", "DCSR")


def as_mask(array, by_value, complement):
    found = tp.by_value(array) if by_value else array
    return tp.complement(found) if complement else found


def allowed(values, places, layout, by_value, complement):
    found = values != 0 if by_value or layout == "dense" else places
    return found != complement


def check(semiring, layouts, dtypes, kind, seed):
    rng = np.random.default_rng(seed)
    A, values_a, a = stored_matrix(rng, (5, 6), dtypes[0], layouts[0])
    B, values_b, b = stored_matrix(rng, (6, 4), dtypes[1], layouts[1])
    M, values_m, m = stored_matrix(rng, (5, 4), dtypes[2], layouts[2])
    wanted, _ = by_loops(semiring, values_a, a, values_b, b)
    zero = zero_of(parts(semiring)[0], wanted.dtype)
    here = allowed(values_m, m, layouts[2], *kind)
    wanted = np.where(here, wanted, wanted.dtype.type(zero))
    options = {} if semiring == "plus_times" else {"semiring": semiring}
    found = tp.einsum("ij,jk->ik", A, B, mask=as_mask(M, *kind), **options)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(dense(found, zero), wanted, rtol=1e-6)
    if sp.issparse(found):
        assert here[found.tocoo().coords].all()  # nothing is stored where the mask allows nothing
    return found


@pytest.mark.rotating(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layouts", [("csr", "csr"), ("dense", "dense"), ("csr", "dense")])
@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "or_and", "plus_pair"])
@pytest.mark.parametrize("mask", ["csr", "dense"])
def test_masked_products(kind, layouts, semiring, mask):
    check(semiring, (*layouts, mask), ("float64",) * 3, kind, 4)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(
        ["plus_times", "min_plus", "max_times", "or_and", "plus_pair", "min_first", "any_pair",
         "plus_min", "max_second", "and_or", "xor_and"]
    ),
    st.tuples(*[st.sampled_from(LAYOUTS)] * 3),
    st.tuples(*[st.sampled_from(["float64", "float32", "int64", "int16", "bool"])] * 3),
    st.sampled_from(KINDS),
    st.integers(0, 50),
)  # fmt: skip
def test_drawn_masks(semiring, layouts, dtypes, kind, seed):
    if not skipped(semiring, *dtypes):
        check(semiring, layouts, dtypes, kind, seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", [
    "C[i,k] = A[i,j] * B[j,k]", "C[i,k] = A[i,j] * B[j,k] + D[i,k]", "C[i,k] = D[i,k]",
    "C[i,k] = D[i,k] - 2 * D[i,k] / d[i]",
])  # fmt: skip
def test_texts_and_their_oracle(text, kind):
    rng = np.random.default_rng(5)
    given = {
        "A": sp.random_array((5, 6), density=0.4, rng=rng, format="csr"),
        "B": rng.random((6, 4)),
        "D": sp.random_array((5, 4), density=0.4, rng=rng, format="csr"),
        "d": rng.random(5),
    }
    used = {name: each for name, each in given.items() if f"{name}[" in text[2:]}
    M, values, m = stored_matrix(rng, (5, 4), "float64", "csr")
    mask = as_mask(M, *kind)
    here = allowed(values, m, "csr", *kind)
    wanted = np.where(here, tp.evaluate_dense(text, used), 0)
    np.testing.assert_allclose(dense(tp.evaluate(text, used, mask=mask), 0), wanted)
    np.testing.assert_allclose(tp.evaluate_dense(text, used, mask=mask), wanted)


def test_elements_outside_are_not_computed():
    A, B = np.full((2, 2), np.inf), np.array([[1.0, 0.0], [0.0, 1.0]])
    mask = sp.csr_array(np.array([[1.0, 0.0], [0.0, 0.0]]))
    with np.errstate(invalid="ignore"):
        found = tp.einsum("ij,jk->ik", A, B, mask=mask)
        assert np.isnan(found.toarray()[0, 0]) and found.nnz == 1
        found = tp.einsum("ij,ij->ij", A, B, mask=np.eye(2, dtype=bool))
    np.testing.assert_array_equal(found, [[np.inf, 0], [0, np.inf]])


def test_a_mask_keeps_what_out_has_unless_it_is_replaced():
    rng = np.random.default_rng(5)
    A, B, mask = rng.random((3, 4)), rng.random((4, 3)), np.eye(3, dtype=bool)
    out = np.full((3, 3), 7.0)
    assert tp.einsum("ij,jk->ik", A, B, out=out, mask=mask) is out
    np.testing.assert_allclose(out, np.where(mask, A @ B, 7))
    out = np.full((3, 3), 7.0)
    tp.evaluate("C[i,k] = A[i,j] * B[j,k]", A=A, B=B, out=out, mask=tp.complement(mask))
    np.testing.assert_allclose(out, np.where(mask, 7, A @ B))
    tp.einsum("ij,jk->ik", A, B, out=out, mask=mask, replace=True)
    np.testing.assert_allclose(out, np.where(mask, A @ B, 0))
    sparse = sp.csr_array(mask.astype(float))
    S = sp.csr_array(A)
    out = np.full((3, 3), 7.0)
    tp.einsum("ij,jk->ik", S, B, out=out, mask=sparse, semiring="min_plus", format="dd")
    np.testing.assert_allclose(out, np.where(mask, (A[:, :, None] + B).min(1), 7))
    C = np.full((3, 3), 7.0)
    found = tp.evaluate("C[i,k] += A[i,j] * B[j,k]", A=A, B=B, C=C, mask=mask)
    np.testing.assert_allclose(found, 7 + np.where(mask, A @ B, 0))


def test_later_calls_take_another_mask():
    rng = np.random.default_rng(5)
    A = sp.random_array((8, 8), density=0.4, rng=rng, format="csr")
    for seed in range(4):
        M = sp.random_array((8, 8), density=0.3, rng=np.random.default_rng(seed), format="csr")
        found = tp.einsum("ij,jk->ik", A, A, mask=M)
        np.testing.assert_allclose(found.toarray(), (A @ A).toarray() * (M.toarray() != 0))


def test_triangles_of_a_graph():
    rng = np.random.default_rng(5)
    A = sp.random_array((40, 40), density=0.2, rng=rng, format="csr")
    L = sp.csr_array(sp.tril(A + A.T, -1))
    found = tp.einsum("ik,kj->ij", L, L, mask=L, semiring="plus_pair")
    ones = sp.csr_array((np.ones(L.nnz, int), L.indices, L.indptr), L.shape)
    assert found.sum() == (ones @ ones).multiply(ones).sum()
    assert found.dtype == np.int64


def test_the_mask_is_walked_or_probed():
    rng = np.random.default_rng(5)
    L = sp.random_array((40, 40), density=0.2, rng=rng, format="csr")
    told = tp.explain("ik,kj->ij", L, L, mask=L, frontier_budget=0)
    assert "1 kernel" in told and "stored(mask[i,j])" in told
    told = tp.explain("C[i,j] = L[i,k] * L[k,j]", L=L, mask=tp.complement(L), frontier_budget=0)
    assert "logical_not(stored(mask[i,j]))" in told


def test_masks_of_another_shape():
    A = sp.csr_array(np.eye(3))
    message = re.escape("Expected a mask of the result's shape (3, 3), found one of shape (3, 4)")
    with pytest.raises(tp.DimensionError, match=message):
        tp.einsum("ij,jk->ik", A, A, mask=np.ones((3, 4)))
    with pytest.raises(tp.DimensionError, match=message) as caught:
        tp.evaluate("C[i,k] = A[i,j] * A[j,k]", A=A, mask=sp.csr_array((3, 4)))
    assert "^" in str(caught.value)


def test_what_masks_are_not():
    A = sp.csr_array(np.eye(3))
    with pytest.raises(tp.OperandTypeError, match="Expected a tensor for a mask, found 'A'"):
        tp.einsum("ij->ij", A, mask="A")
    with pytest.raises(tp.OperandError, match="Expected a mask with replace=True"):
        tp.einsum("ij->ij", A, replace=True)
    with pytest.raises(tp.OperandTypeError, match="the mask: "):
        tp.einsum("ij->ij", A, mask=np.array([["a"]]))
    with pytest.raises(tp.OperandError, match="Expected replace=False where a result is added"):
        tp.evaluate("C[i,j] += A[i,j]", A=A, C=np.ones((3, 3)), mask=A, replace=True)
    with pytest.raises(tp.OutputError, match="Expected out= of shape"):
        tp.einsum("ij,j->i", A, np.ones(3), out=np.ones(4), mask=np.ones(3))
    with pytest.raises(tp.OutputError, match="result is sparse"):
        tp.einsum("ij,jk->ik", A, A, out=np.ones((3, 3)), mask=A)


@pytest.mark.parametrize("layout", ["dense", "csr", "coo"])
@pytest.mark.parametrize("mask", ["dense", "sparse", "complement"])
@pytest.mark.parametrize(
    ("operator", "add"),
    [("+", np.sum), ("*", np.prod), ("min", np.min), ("max", np.max)],
)
def test_what_is_added_to_stays_where_the_mask_allows_nothing(layout, mask, operator, add):
    rng = np.random.default_rng(0)
    A = sp.random_array((6, 5), density=0.6, rng=rng, format="csr")
    A.data -= 0.5
    here = np.array([True, False, True, True, False, False])
    masks = {"dense": here, "sparse": sp.coo_array(here * 1.0), "complement": tp.complement(~here)}
    y = rng.random(6) - 0.5
    pair = {np.sum: np.add, np.prod: np.multiply, np.min: np.minimum, np.max: np.maximum}[add]
    wanted = np.where(here, pair(y, add(A.toarray(), axis=1)), y)
    given = {"A": A.toarray() if layout == "dense" else A.asformat(layout), "y": y}
    text = f"y[i] {operator}= A[i,j]"
    np.testing.assert_allclose(tp.evaluate(text, given, mask=masks[mask]), wanted)
    np.testing.assert_allclose(tp.evaluate_dense(text, given, mask=masks[mask]), wanted)
    out = y.copy()
    tp.evaluate(text, {**given, "y": out}, mask=masks[mask], out=out)
    np.testing.assert_allclose(out, wanted)


def test_reductions_that_make_another_number_of_zeros_are_zero_outside():
    A = np.random.default_rng(0).random((3, 5))
    here = np.array([True, False, True])
    for text, wanted in (
        ("y[i] = prod(j, A[i,j])", A.prod(axis=1)),
        ("y[i] = all(j, A[i,j])", A.all(axis=1)),
        ("y[i] = min(j, A[i,j])", A.min(axis=1)),
    ):
        for mask in (here, sp.coo_array(here * 1.0)):
            found = tp.evaluate(text, A=A, mask=mask)
            found = found if isinstance(found, np.ndarray) else found.toarray()
            np.testing.assert_allclose(found, np.where(here, wanted, 0))
    found = tp.evaluate("y[i] = prod(j, A[i,j])", A=np.ones((3, 0)), mask=here)
    np.testing.assert_array_equal(found, here)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("semiring", ["min_plus", "max_times", "plus_times"])
@pytest.mark.parametrize("form", ["s", "ss"])
def test_sparse_results_of_dense_operands(form, semiring, layout, kind):
    """What a mask leaves out is not stored, and is the zero: the result's fill value."""
    rng = np.random.default_rng(5)
    A, x = rng.integers(0, 4, (5, 4)).astype(float), rng.integers(0, 4, 4).astype(float)
    target = {"s": "y[i]", "ss": "y[i,j]"}[form]
    M, values, places = stored_matrix(rng, (5, 4), "float64", layout)
    if form == "s":
        M, values, places = tp.tensor(values[:, 0], format="s"), values[:, 0], values[:, 0] != 0
        M = M.to_numpy() if layout == "dense" else M
    mask = as_mask(M, *kind)
    for text in (f"{target} = A[i,j] * x[j]", f"t[j] = x[j]; {target} = A[i,j] * t[j]"):
        options = {"semiring": semiring, "mask": mask}
        wanted = tp.evaluate_dense(text, A=A, x=x, **options)
        kernel = tp.compile(text, A=A, x=x, y=form, **options)
        results = (
            tp.evaluate(text, A=A, x=x, format={"y": form}, **options),
            kernel(A=A, x=x, mask=M),
        )
        for result in results:
            np.testing.assert_array_equal(result.to_numpy(), wanted)
            assert result.fill_value == zero_of(parts(semiring)[0], wanted.dtype)
            here = allowed(values, places, layout, *kind)
            assert here[tuple(result.to_coo()[0].T)].all() and result.nnz <= here.sum()
