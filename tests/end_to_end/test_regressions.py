"""Mistakes that were made once: each expression here has given a wrong result, or crashed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.formats import to_dense

pytestmark = pytest.mark.user_flags

X = np.arange(1.0, 5.0)


def matrix() -> Any:
    return sp.csr_array(np.array([[1.0, 2, 0, 3], [0, 4, 5, 0], [6, 0, 7, 8], [0, 0, 0, 9]]))


DENSE = matrix().toarray()


def test_compute_on_the_pattern_of_other_operands_is_refused() -> None:
    kernel = tp.compile("C[i,j] = A[i,j] + B[i,j]", A=tp.CSR, B=tp.CSR, C=tp.CSR)
    full = sp.csr_array(np.ones((200, 200)))
    with pytest.raises(tp.StructureError, match="40000 entries"):
        kernel.compute(sp.csr_array((200, 200)), A=full, B=full)
    pattern = kernel.assemble(A=matrix(), B=matrix())
    found = kernel.compute(pattern, A=matrix(), B=matrix())
    np.testing.assert_array_equal(to_dense(found), 2 * DENSE)


@pytest.mark.parametrize("letters", ["ddd:2,0,1", "ddd:2,1,0", "ddd:0,2,1"])
def test_a_dense_result_in_another_mode_order(letters: str) -> None:
    cube = np.arange(24.0).reshape(2, 3, 4)
    found = tp.evaluate("C[i,j,k] = A[i,j,k] * 2", A=cube, format=letters)
    np.testing.assert_array_equal(to_dense(found), 2 * cube)


def test_a_dense_operand_in_another_mode_order() -> None:
    copy = tp.evaluate("C[i,j] = A[i,j]", A=matrix(), format="dd:1,0")
    np.testing.assert_array_equal(to_dense(copy), DENSE)
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A="dd:1,0", x="d")
    stored = tp.tensor(DENSE.copy(), format="dd:1,0")
    np.testing.assert_array_equal(kernel(A=stored, x=X), DENSE @ X)


def test_rows_of_a_hypersparse_matrix_are_not_all_visited() -> None:
    size = 10**7
    tall = {n: sp.coo_array((np.ones(1), ([size - 1], [0])), shape=(size, 2)) for n in "abc"}
    found = tp.evaluate("T[i,j,k] = sum(l, a[i,l] * b[j,l] * c[k,l])", tall)
    assert [c.tolist() for c in found.coords] == [[size - 1]] * 3


def test_narrow_factors_are_not_multiplied_by_themselves() -> None:
    random = np.random.default_rng(0)
    a = random.random((6, 6))
    b, c = random.integers(1, 100, (6, 6)).astype("i1"), random.integers(1, 100, 6).astype("i1")
    found = tp.evaluate("y[i] = A[i,j] * B[j,k] * c[k]", A=a, B=b, c=c)
    np.testing.assert_allclose(found, np.einsum("ij,jk,k->i", a, b.astype("f8"), c.astype("f8")))


def test_unsigned_terms_are_subtracted_in_the_results_type() -> None:
    b = sp.coo_array(np.array([[0, 200], [100, 0]], dtype="u1"))
    d = np.array([[1, 2], [3, 4]], dtype="i2")
    found = tp.evaluate("C[i,j] = D[i,j] - B[i,j]", D=d, B=b)
    np.testing.assert_array_equal(found, d - b.toarray().astype("i2"))


def test_a_reordered_sum_of_a_narrower_type_is_refused() -> None:
    operands = {"b": np.zeros(4, "i8"), "A": np.full((4, 4), 200, "u1"), "x": np.full(4, 3, "u1")}
    with pytest.raises(tp.ScheduleError, match="narrower"):
        tp.evaluate("y[i] = b[i] - A[i,j] * x[j]", operands, schedule="reorder(i,j)")


def test_a_broadcast_view_of_another_dtype() -> None:
    view = np.broadcast_to(np.arange(4, dtype="f4"), (3, 4))
    other = np.random.default_rng(0).random((3, 4))
    expected = np.einsum("ij,ij->i", view, other)
    np.testing.assert_allclose(tp.einsum("ij,ij->i", view, other), expected)


def coordinates_with_duplicates() -> Any:
    return sp.coo_array((np.array([1.0, 2, 3]), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))


def test_a_result_with_duplicates_does_not_claim_to_have_none() -> None:
    found = tp.evaluate("C[i,j] = 2 * A[i,j]", A=coordinates_with_duplicates(), format=tp.COO(2))
    assert not found.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), [[0, 6], [6, 0]])


def test_a_divisor_with_duplicates_is_added_up_first() -> None:
    operands = {"d": np.array([1.0, 2]), "A": coordinates_with_duplicates()}
    found = tp.evaluate("C[i,j] = d[i] / A[i,j]", operands, format=tp.COO(2))
    np.testing.assert_array_equal(to_dense(found), [[np.inf, 1 / 3], [2 / 3, np.inf]])


def test_size_one_modes_of_sparse_operands_are_repeated() -> None:
    ones, row = sp.csr_array(np.ones((3, 4))), sp.csr_array(np.ones((1, 4)))
    np.testing.assert_array_equal(to_dense(tp.einsum("ij,ij->ij", ones, row)), np.ones((3, 4)))
    found = tp.einsum("ij,jk->ik", np.ones((3, 4)), sp.csr_array(np.ones((1, 5))))
    np.testing.assert_array_equal(to_dense(found), np.full((3, 5), 4.0))


def test_impossible_orders_are_refused() -> None:
    with pytest.raises(tp.ScheduleError):
        tp.evaluate("y[i] = A[i,j] * x[j]", A=matrix(), x=X, schedule="reorder(i,i)")


def test_a_sum_inside_a_product_may_be_outermost() -> None:
    text = "y[i] = x[i] * sum(j, A[i,j] * x[j])"
    found = tp.evaluate(text, A=matrix(), x=X, schedule="reorder(j,i)")
    np.testing.assert_allclose(found, X * (matrix() @ X))


def test_a_parallel_loop_is_one_of_the_last_kernel() -> None:
    found = tp.evaluate(
        "y[i] = A[i,j] * B[j,k] * x[k]", A=matrix(), B=matrix(), x=X, schedule="parallelize(i)"
    )
    np.testing.assert_array_equal(found, DENSE @ (DENSE @ X))


def test_adding_to_out_begins_from_out() -> None:
    out = np.ones(4)
    tp.evaluate("y[i] += A[i,j] * x[j]", A=matrix(), x=X, out=out)
    np.testing.assert_array_equal(out, 1 + DENSE @ X)


def test_a_compiled_sum_begins_from_its_operand() -> None:
    kernel = tp.compile("y[i] += A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1))
    np.testing.assert_array_equal(kernel(A=matrix(), x=X, y=np.ones(4)), 1 + DENSE @ X)


def test_quotients_are_summed() -> None:
    a = DENSE + 1
    found = tp.evaluate("y[i] = b[i] / A[i,j]", b=X, A=a)
    np.testing.assert_allclose(found, (X[:, None] / a).sum(1))
    found = tp.evaluate("y[i] = A[i,j] / A[i,k]", A=a)
    np.testing.assert_allclose(found, (a[:, :, None] / a[:, None, :]).sum((1, 2)))


def test_indices_that_were_written_to_since_the_last_call() -> None:
    a = matrix()
    b = a.T.tocsr()
    tp.evaluate("C[i,j] = A[i,j] * B[i,j]", A=a, B=b)
    assert a.has_canonical_format  # what scipy remembers is no longer true below
    a.indices[:3], a.data[:3] = a.indices[:3][::-1].copy(), a.data[:3][::-1].copy()
    found = tp.evaluate("C[i,j] = A[i,j] * B[i,j]", A=a, B=b)
    np.testing.assert_array_equal(to_dense(found), DENSE * DENSE.T)


def test_explain_shows_what_is_copied_before_the_kernel() -> None:
    text = "y[i] = A[i,j] * x[j]"
    plain = tp.explain(text, A=matrix(), x=X)
    assert "copy " not in plain
    shown = tp.explain(text, A=matrix().tolil(), x=X.astype(">f8"))
    assert "A: converted from scipy's lil to ds" in shown
    assert "x: copied, for the array is byte-swapped" in shown
    shown = tp.explain(text, A=matrix(), x=X.astype("f4"), dtype="f8")
    assert "x: d/float64 from float32" in shown and "copy " not in shown  # as it is read
    shown = tp.explain(text, A=matrix(), x=X.astype("f4"), dtype="c16")
    assert "x: values converted from float32 to complex128" in shown


@pytest.mark.parametrize("form", ["CSR", "CSC", "COO", "ss", "sd", "sd:1,0"])
def test_what_is_not_stored_is_zero_over_anything(form: str) -> None:
    stored = {"CSR": sp.csr_array, "CSC": sp.csc_array, "COO": sp.coo_array}
    dense = np.array([[1.0, 0, 0], [0, 0, 0], [0, 2, 4]])
    a = stored[form](dense) if form in stored else tp.tensor(dense, format=form)
    x = np.array([0.0, 0, 2])
    there = {"sd": [[1], [0], [1]], "sd:1,0": [[1, 1, 1]]}.get(form, dense) * np.ones((3, 3)) != 0
    with np.errstate(all="ignore"):
        expected = np.where(there, dense / x[:, None], 0)
    for target in (None, "dd", "ss"):
        found = tp.evaluate("C[i,j] = A[i,j] / x[i]", A=a, x=x, format=target)
        np.testing.assert_array_equal(to_dense(found), expected)
    found = tp.evaluate("d[i] = A[i,i] / x[i]", A=a, x=x, format="d")
    np.testing.assert_array_equal(found, np.diagonal(expected))


def test_dense_zeros_are_divided_as_numpy_does() -> None:
    zero = np.zeros((2, 3))
    for layout in (zero, np.asfortranarray(zero), tp.tensor(zero, format="dd:1,0")):
        found = tp.evaluate("C[i,j] = A[i,j] / B[i,j]", A=layout, B=zero)
        assert np.isnan(to_dense(found)).all()


def test_a_copy_for_another_loop_order_keeps_stored_zeros() -> None:
    a = tp.tensor(np.array([[1.0, 0], [0, 0]]), format="sd")
    b = tp.tensor(np.array([[1.0, 0], [1, 1]]), format="ss:1,0")
    found = tp.evaluate("C[i,j] = A[i,j] / B[i,j]", A=a, B=b, format="dd")
    np.testing.assert_array_equal(to_dense(found), [[1, np.nan], [0, 0]])


def test_a_static_size_of_zero() -> None:
    empty = tp.tensor(np.zeros(0), format="s")
    found = tp.evaluate("R[j] = 3 - T[j] + T[j] * T[j]", T=empty, format="s", static={"j": 0})
    assert to_dense(found).shape == (0,)


@pytest.mark.parametrize("form", ["dense", "COO", "s"])
def test_terms_of_a_narrower_type_wrap_by_themselves(form: str) -> None:
    a = np.array([0, 5, 0, 2], dtype="u1")
    b, c = np.array([7, 0, 9, 1], dtype="u1"), np.array([1, 2, 3, 4], dtype="i8")
    stored = (
        a if form == "dense" else sp.coo_array(a) if form == "COO" else tp.tensor(a, format="s")
    )
    for text, expected in (
        ("C[i,j] = c[i] + (a[j] - b[i])", c[:, None] + (a - b[:, None])),
        ("C[i,j] = c[i] - -a[j]", c[:, None] - -a),
        ("C[i,j] = -a[j] + c[i]", -a + c[:, None]),
    ):
        used = {n: o for n, o in (("a", stored), ("b", b), ("c", c)) if f"{n}[" in text}
        np.testing.assert_array_equal(to_dense(tp.evaluate(text, used)), expected)


def outer_products_of(size: int) -> Any:
    """C[i,j] = A[k,i] * A[k,j] for a wide matrix: both of C's indices are scattered at once."""
    places = np.array([[0, size - 1], [1, 0], [1, size - 2]])
    wide = tp.Tensor.from_coo(places, [1.0, 2, 3], (2, size), format="ds")
    return tp.evaluate("C[i,j] = A[k,i] * B[k,j]", A=wide, B=wide, format="ss")


def test_coordinates_scattered_together_up_to_63_bits() -> None:
    size = 2**31
    coordinates, values = outer_products_of(size).to_coo()
    found = dict(zip(map(tuple, coordinates.tolist()), values.tolist(), strict=True))
    last, near = size - 1, size - 2
    expected = {(last, last): 1, (0, 0): 4, (0, near): 6, (near, 0): 6, (near, near): 9}
    assert found == expected


def test_coordinates_scattered_together_beyond_63_bits_are_refused() -> None:
    with pytest.raises(tp.TacoError, match=r"product below 2\*\*63"):
        outer_products_of(2**32)


@pytest.mark.parametrize("form", ["uq", "uc", "ss", "us"])
def test_a_result_has_the_rows_of_a_coordinate_list_alone(form: str) -> None:
    """A copy with a dense root had brought in the empty ones."""
    coords, values = [(0, 0), (2, 1), (2, 3)], np.array([1.0, 2.0, 3.0])
    a = tp.Tensor.from_coo(coords, values, (5, 4), format=form)
    for text in ("y[i] = A[i,j] * x[j]", "y[i] = A[i,j] * A[i,j]"):
        given = {"A": a, "x": np.ones(4)} if "x" in text else {"A": a}
        y = tp.evaluate(text, given)
        assert y.nnz == 2
        np.testing.assert_array_equal(y.to_numpy(), tp.evaluate_dense(text, given))


def test_a_dense_temporary_is_copied_with_the_indices_that_its_reader_has() -> None:
    random = np.random.default_rng(0)
    a, b, d = (random.integers(0, 3, shape) * 1.0 for shape in ((8, 5), (5, 6), (6, 13)))
    formats = {"A": "ss", "B": "dd", "D": "ss:1,0", "C": "ss:1,0"}
    kernel = tp.compile("C[i,j] = A[i,k] * B[k,l] * D[l,j]", formats, index_dtype="int64")
    given = {"A": tp.tensor(a, format="ss"), "B": b, "D": tp.tensor(d, format="ss:1,0")}
    for found in (kernel(**given), kernel.compute(kernel.assemble(**given), **given)):
        np.testing.assert_array_equal(found.to_numpy(), a @ b @ d)


def test_the_new_result_of_an_addition_has_a_name_that_no_operand_has() -> None:
    kernel = tp.compile("y[i] += y_new[i] * X[i]", y_new=tp.dense(1), X=tp.dense(1))
    np.testing.assert_array_equal(kernel(y=X, y_new=X, X=X), X + X * X)


def test_a_diagonal_stores_nothing_that_was_not_stored() -> None:
    """The level of j came to be the last one, dense, though entries for it were listed."""
    tensor = tp.Tensor.from_coo([[0, 0, 0], [1, 1, 1]], [2.0, 3.0], (2, 2, 2), format="sds")
    result = tp.evaluate("R[i,j] = T[i,j,i] / z[j]", T=tensor, z=np.zeros(2), format="dd")
    np.testing.assert_array_equal(result, [[np.inf, 0.0], [0.0, np.inf]])


def test_complex_sums_over_tiles_that_may_be_empty() -> None:
    """The inner loop has one iteration or none, which gcc makes a condition of."""
    schedule = "divide(j,v1,v2,4), precompute(A(i,j),{v1,v2},{v1,v2},w)"
    matrix = np.array([[3 + 3j, -2 - 2j]])
    result = tp.evaluate("y[i] = A[i,j]", A=matrix, schedule=schedule, static={"j": 2})
    np.testing.assert_array_equal(result, [1 + 1j])


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("C[i,k] = A[i,j] * B[j,k]", "reorder(i,j,k)"),  # a copy of A has a list of j, as B has
        ("y[i] = A[i,j] * B[j,k]", "fuse(i,j,f)"),
        (
            "C[i,k] = A[i,j] * B[j,k]",
            "reorder(j,i,k), fuse(j,i,f), pos(f,p,A)",
        ),  # j is searched in B
    ],
)
def test_coordinate_lists_that_repeat_or_are_unsorted(text: str, schedule: str) -> None:
    a = sp.csc_array(np.array([[0.0, 0, 0], [0, 1, 2], [3, 0, 4]]))
    b = sp.coo_array(([5.0, 6, 7, 8], ([2, 1, 0, 2], [1, 1, 0, 0])), (3, 3))
    form = "dd" if text[0] == "C" else "d"
    found = tp.evaluate(text, A=a, B=b, format=form, schedule=schedule)
    product = a.toarray() @ b.toarray()
    np.testing.assert_array_equal(found, product if text[0] == "C" else product.sum(axis=1))


def test_temporaries_that_threads_share_inside_have_their_loops_under_other_names() -> None:
    """The first of several kernels marked a loop by the name that its index had had before."""
    y = np.ones(6)[::2]
    assert tp.einsum("ab,b,ab->", np.ones((1, 3)), y, np.ones((1, 3))) == 3


@pytest.mark.parametrize("race", ["Ordered", "Temporary"])
def test_positions_that_threads_share_where_the_operand_has_none(race: str) -> None:
    """A row that A has nothing in has the other term alone."""
    matrix = np.array([[0.0, 1, 2], [0, 0, 0], [3, 0, 4]])
    a, x, b = tp.tensor(matrix, format="ss"), np.array([1.0, 2, 3]), np.array([4.0, 5, 6])
    schedule = f"pos(j,p,A), parallelize(p,CPUThread,{race})"
    found = tp.evaluate("y[i] = b[i] - A[i,j] * x[j]", A=a, b=b, x=x, schedule=schedule, threads=2)
    np.testing.assert_array_equal(found, b - matrix @ x)


WRAPPING = (
    "y[i] = S[i,j] * x[i] * (2 * x[i])",
    "y[i] = sum(j, S[i,j] * (2 * x[i]))",
    "y[i] = S[i,j] * (x[i] * x[i])",
    "y[i] = x[i] * x[i] * S[i,j]",
    "y[i] = S[i,j] * S[j,k] * (x[i] * x[k])",
    "y[i] = S[i,j] * S[j,k] * S[k,l] * (x[i] * x[l])",
)


@pytest.mark.parametrize("wide", ["int16", "int64", "float64"])
@pytest.mark.parametrize("text", WRAPPING)
def test_products_of_narrow_integers_wrap_by_themselves(text: str, wide: str) -> None:
    """2 * x[i] is an int8, whatever it is multiplied by afterwards, also where a sum is moved."""
    x = np.array([100, -128, 3, 64], np.int8)
    stored = (matrix().toarray() % 5).astype(wide)
    expected = tp.evaluate_dense(text, S=stored, x=x)
    for s in (stored, sp.csr_array(stored)):
        np.testing.assert_array_equal(to_dense(tp.evaluate(text, S=s, x=x)), expected)


@pytest.mark.parametrize("form", ["uq", "ds", "ss"])
@pytest.mark.parametrize("dtype", ["bool", "int8"])
def test_sums_that_saturate_over_rows_of_a_list(dtype: str, form: str) -> None:
    """A list comes to a row as often as it has entries, each time with a part of the inner sum."""
    b = (DENSE * 60 % 128).astype(dtype)
    x = np.array([3, -2, 5, 7], np.int32)
    for text in ("y[i] = z[i] * B[j,k] * x[j]", "s = B[j,k] * x[j]"):
        read = {"B": b, "x": x} | ({"z": np.ones(4, dtype)} if "z[" in text else {})
        found = tp.evaluate(text, {**read, "B": tp.tensor(b, format=form)})
        np.testing.assert_array_equal(found, tp.evaluate_dense(text, read))


def test_terms_of_a_narrow_type_are_real_beside_others() -> None:
    """Multiplied out, u * (A * u) would be a product of int8."""
    rng = np.random.default_rng(0)
    read = {
        "A": rng.random((4, 5)) < 0.6,
        "B": rng.integers(-100, 120, (5, 3)).astype(float),
        "u": rng.integers(-100, 120, 3).astype(np.int8),
        "v": np.array([0, 70, -90], np.int32),
    }
    stored = {
        **read,
        "A": tp.tensor(read["A"], format="ds:1,0"),
        "B": tp.tensor(read["B"], format="ds"),
        "v": tp.tensor(read["v"], format="s"),
    }
    text = "s = (B[j,k] + u[k]) * (A[i,j] * u[k]) * sum(l, A[i,j] * 2 * u[l] * v[l])"
    np.testing.assert_allclose(tp.evaluate(text, stored), tp.evaluate_dense(text, read))


NARROW_PARTS = (
    "O[i,f] = S[i,j] * X[j,f] * U[i,k] * V[j,k]",
    "y[i] = (B[i,j] + U[i,k] * d[j]) * d[j] * B[i,l]",
    "y[i] = S[i,j] * b[i]",
    "y[i] = sum(j, S[i,j]) / 2",
)


@pytest.mark.parametrize("form", ["csr", "coo"])
@pytest.mark.parametrize(("narrow", "wide"), [("int8", "int64"), ("bool", "float64")])
@pytest.mark.parametrize("text", NARROW_PARTS)
def test_parts_of_a_narrow_type_are_computed_as_written(
    text: str, narrow: str, wide: str, form: str
) -> None:
    """In steps of several factors, in sums multiplied out, in rows that a list comes to again."""
    rng = np.random.default_rng(3)
    pattern = sp.random_array((30, 40), density=0.2, rng=rng, format="csr")
    read: dict[str, Any] = {
        "S": (pattern.toarray() > 0).astype(narrow) * np.array(2, narrow),
        "B": np.where(rng.random((30, 40)) < 0.05, 1, 0).astype(wide),
        "X": np.ones((40, 8), wide),
        "U": np.full((30, 20), 100, narrow),
        "V": np.ones((40, 20), wide),
        "d": np.ones(40, narrow),
        "b": np.ones(30, wide),
    }
    read = {name: each for name, each in read.items() if f"{name}[" in text}
    stored = {n: sp.csr_array(a).asformat(form) if n in "SB" else a for n, a in read.items()}
    np.testing.assert_allclose(
        to_dense(tp.evaluate(text, stored)), tp.evaluate_dense(text, read), rtol=1e-12
    )


def test_terms_without_an_index_of_a_sparse_result_beside_a_list() -> None:
    s = sp.random_array((9, 9), density=0.3, rng=np.random.default_rng(0), format="coo")
    read = {"S": s, "X": np.ones((9, 4)), "x": np.arange(9.0)}
    text = "y[i,k] = S[i,j] * X[j,k] + x[i] * x[j] * S[i,j]"
    found = tp.evaluate(text, read, format=tp.CSR)
    expected = tp.evaluate_dense(text, {**read, "S": s.toarray()})
    np.testing.assert_allclose(to_dense(found), expected)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize("columns", [1, 5, 130])
def test_rows_without_entries_are_written(layout: str, columns: int) -> None:
    """A quotient is computed where something is stored; what `out` held elsewhere is replaced."""
    rng = np.random.default_rng(0)
    a = sp.random_array((40, 40), density=0.02, format=layout, rng=rng)
    panel, z, out = rng.random((40, columns)), np.ones(40), np.full((40, columns), 7e77)
    tp.evaluate("O[i,k] = E[i,j] * V[j,k] / z[i]", E=a, V=panel, z=z, out=out)
    np.testing.assert_allclose(out, a @ panel)


@pytest.mark.parametrize(
    "text",
    [
        "c[i,k] = stored(sum(j, P[i,j] * E[j,k]))",
        "c[k] = sum(i, stored(sum(j, P[i,j] * E[j,k])))",
    ],
)
def test_where_a_sum_is_stored_has_the_indices_of_the_sum(text: str) -> None:
    operands = {
        "P": sp.csr_array([[0.0, 2.0], [0.0, 0.0], [1.0, 0.0]]),
        "E": np.array([[np.nan, 0], [1, np.inf]]),
    }
    found = tp.evaluate(text, operands)
    np.testing.assert_array_equal(found, to_dense(tp.evaluate_dense(text, operands)))
