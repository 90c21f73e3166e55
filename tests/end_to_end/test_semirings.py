"""Semirings against loops over dense arrays and over where these are stored."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from tests.language.other_plans import other_plan

INF = math.inf
ADDS = {
    "plus": (np.add, 0), "min": (np.minimum, INF), "max": (np.maximum, -INF),
    "any": (np.maximum, -INF), "times": (np.multiply, 1), "or": (np.logical_or, False),
    "and": (np.logical_and, True), "xor": (np.logical_xor, False),
}  # fmt: skip
MULTIPLIES = {
    "plus": np.add, "times": np.multiply, "minus": np.subtract, "min": np.minimum,
    "max": np.maximum, "first": lambda a, b: a, "second": lambda a, b: b,
    "pair": lambda a, b: 1, "and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor,
    "eq": np.equal, "lt": np.less,
}  # fmt: skip
NAMES = (
    "plus_times", "min_plus", "max_plus", "max_times", "min_times", "min_max", "max_min",
    "plus_min", "plus_max", "plus_plus", "or_and", "and_or", "xor_and", "any_pair", "plus_pair",
    "min_pair", "plus_first", "plus_second", "min_first", "min_second", "max_first", "max_second",
    "any_first", "any_second", "plus_minus", "plus_eq", "or_lt", "max_minus", "times_plus",
    "times_first", "lor_land", "lor_pair", "land_lor",
)  # fmt: skip
DTYPES = ("float64", "float32", "int64", "int32", "uint8", "bool")
LAYOUTS = ("csr", "csc", "coo", "dense", "DCSR", "ss:1,0")
SHORT = {"lor": "or", "land": "and", "lxor": "xor"}


def stored_matrix(rng, shape, dtype, layout, density=0.35):
    """Draw a matrix; return it, its values, and where it stores them."""
    places = rng.random(shape) < (1 if layout == "dense" else density)
    values = np.where(places, rng.integers(0, 6, shape), 0).astype(dtype)
    if np.dtype(dtype).kind in "fi":
        values -= np.where(places, 2, 0).astype(dtype)
    if layout == "dense":
        return values, values, places
    rows, columns = np.nonzero(places)
    array = sp.coo_array((values[rows, columns], (rows, columns)), shape)  # with its zeros
    if layout in ("csr", "csc", "coo"):
        return array.asformat(layout), values, places
    tensor = tp.Tensor.from_coo([rows, columns], values[rows, columns], shape)
    return tp.tensor(tensor, format=layout), values, places


def parts(semiring):
    add, multiply = semiring.split("_")
    return SHORT.get(add, add), SHORT.get(multiply, multiply)


def zero_of(add, dtype):
    zero = ADDS[add][1]
    if dtype.kind == "b":
        return {INF: True, -INF: False}.get(zero, zero)
    if dtype.kind in "iu" and zero in (INF, -INF):
        limits = np.iinfo(dtype)
        return limits.max if zero > 0 else limits.min
    return zero


def type_of_products(semiring, left, right):
    add, multiply = parts(semiring)
    both = np.result_type(left, right)
    if add in ("or", "and", "xor") or (add, multiply) == ("any", "pair"):
        return np.dtype(bool)
    if multiply in ("eq", "lt", "and", "or", "xor"):
        return np.dtype(bool)
    if multiply == "pair":
        return np.dtype("int64") if add == "plus" else both
    return {"first": left, "second": right}.get(multiply, both)


def expected_type(semiring, left, right):
    """The type of sums: truths are counted where numbers are added up."""
    found = type_of_products(semiring, left, right)
    counts = parts(semiring)[0] in ("plus", "times") and semiring != "plus_times"
    return np.dtype("int64") if counts and found.kind == "b" else found


def by_loops(semiring, A, a, B, b):
    """Multiply matrices element by element; a, b say where they are stored. And where the result
    is."""
    add, multiply = parts(semiring)
    dtype = expected_type(semiring, A.dtype, B.dtype)
    common = np.result_type(A.dtype, B.dtype)
    result = np.full((A.shape[0], B.shape[1]), zero_of(add, dtype), dtype)
    met = np.zeros(result.shape, bool)
    for i, j, k in itertools.product(*map(range, (*result.shape, A.shape[1]))):
        if not (a[i, k] and b[k, j]):
            continue
        pair = (A[i, k], B[k, j])
        if multiply not in ("first", "second"):
            pair = tuple(np.asarray(each).astype(common) for each in pair)
        with np.errstate(all="ignore"):
            value = np.asarray(MULTIPLIES[multiply](*pair))
            value = value.astype(bool) if dtype.kind == "b" else value.astype(dtype)
            one = ADDS[add][0](result[i, j], value) if met[i, j] else value
        result[i, j], met[i, j] = np.asarray(one).astype(dtype), True
    return result, met


def dense(result, zero):
    """A result as an array; what scipy's arrays do not store is the semiring's zero."""
    if isinstance(result, tp.Tensor):
        return result.to_numpy()
    if not sp.issparse(result):
        return np.asarray(result)
    result = result.tocoo()
    found = np.full(result.shape, zero, result.dtype)
    found[result.coords] = result.data
    return found


def skipped(semiring, *dtypes):
    add, multiply = parts(semiring)
    return "minus" in (add, multiply) and any(np.dtype(d).kind == "b" for d in dtypes)


def check(semiring, left, right, dtypes, seed, shape=(5, 6, 4), **options):
    rng = np.random.default_rng(seed)
    n, m, k = shape
    A, values_a, a = stored_matrix(rng, (n, m), dtypes[0], left)
    B, values_b, b = stored_matrix(rng, (m, k), dtypes[1], right)
    wanted, _ = by_loops(semiring, values_a, a, values_b, b)
    zero = zero_of(parts(semiring)[0], wanted.dtype)
    found = tp.einsum("ij,jk->ik", A, B, semiring=semiring, **options)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(dense(found, zero), wanted, rtol=1e-6)
    return found


@pytest.mark.rotating(3)
@pytest.mark.parametrize("semiring", NAMES)
@pytest.mark.parametrize("layouts", [("csr", "csr"), ("csr", "dense"), ("dense", "csc")])
def test_matrix_products(semiring, layouts):
    check(semiring, *layouts, ("float64", "float64"), 3)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(NAMES), st.sampled_from(LAYOUTS), st.sampled_from(LAYOUTS),
    st.sampled_from(DTYPES), st.sampled_from(DTYPES), st.integers(0, 50),
    st.sampled_from([(5, 6, 4), (1, 3, 2), (4, 1, 1)]),
)  # fmt: skip
def test_drawn_products(semiring, left, right, first, second, seed, shape):
    if not skipped(semiring, first, second):
        check(semiring, left, right, (first, second), seed, shape)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sparse_vector", [False, True])
@pytest.mark.parametrize("semiring", ["min_plus", "max_times", "or_and", "min_second", "any_pair"])
def test_vector_products(layout, sparse_vector, semiring):
    rng = np.random.default_rng(5)
    W, values, places = stored_matrix(rng, (6, 5), "float64", layout)
    d = rng.integers(1, 9, 6).astype(float)
    known = rng.random(6) < (0.5 if sparse_vector else 1)
    x = sp.coo_array((d[known], (np.nonzero(known)[0],)), (6,)) if sparse_vector else d
    wanted, _ = by_loops(semiring, d[None, :], known[None, :], values, places)
    found = tp.einsum("i,ij->j", x, W, semiring=semiring)
    zero = zero_of(parts(semiring)[0], wanted.dtype)
    np.testing.assert_array_equal(dense(found, zero), wanted[0])
    again = tp.einsum("i,ij->j", x, W, semiring=semiring)
    np.testing.assert_array_equal(dense(again, zero), wanted[0])


@pytest.mark.parametrize("layouts", [("csr", "csr"), ("csr", "dense"), ("DCSR", "csc")])
@pytest.mark.parametrize("semiring", ["min_plus", "max_times", "or_and", "plus_pair", "plus_min"])
def test_the_oracle_has_semirings(semiring, layouts):
    rng = np.random.default_rng(5)
    A, values_a, a = stored_matrix(rng, (4, 5), "float64", layouts[0])
    B, values_b, b = stored_matrix(rng, (5, 3), "float64", layouts[1])
    wanted, _ = by_loops(semiring, values_a, a, values_b, b)
    text = "C[i,k] = A[i,j] * B[j,k]"
    found = tp.evaluate_dense(text, A=A, B=B, semiring=semiring)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)
    found = tp.evaluate(text, A=A, B=B, semiring=semiring)
    zero = zero_of(parts(semiring)[0], wanted.dtype)
    np.testing.assert_array_equal(dense(found, zero), wanted)


def test_texts_add_and_multiply_in_the_semiring():
    rng = np.random.default_rng(5)
    A, values, places = stored_matrix(rng, (4, 5), "float64", "csr")
    x, b = rng.random(5), rng.random(4)
    whole = np.where(places, values, INF)
    wanted = (whole + x).min(axis=1)
    text = "y[i] = A[i,j] * x[j]"
    np.testing.assert_array_equal(tp.evaluate(text, A=A, x=x, semiring="min_plus"), wanted)
    text = "y[i] = sum(j, A[i,j] * x[j]) + b[i]"
    found = tp.evaluate(text, A=A, x=x, b=b, semiring="min_plus")
    np.testing.assert_array_equal(found, np.minimum(wanted, b))
    found = tp.evaluate("b[i] += A[i,j] * x[j]", A=A, x=x, b=b, semiring="min_plus")
    np.testing.assert_array_equal(found, np.minimum(wanted, b))
    found = tp.evaluate("y[i] = 2 * A[i,j] * x[j]", A=A, x=x, semiring="min_plus")
    np.testing.assert_allclose(found, wanted + 2)


def test_sums_of_matrices_are_unions():
    rng = np.random.default_rng(5)
    A, values_a, a = stored_matrix(rng, (4, 5), "int32", "csr")
    B, values_b, b = stored_matrix(rng, (4, 5), "int32", "csr")
    most = np.iinfo(np.int32).max
    wanted = np.minimum(np.where(a, values_a, most), np.where(b, values_b, most))
    found = tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=A, B=B, semiring="min_plus")
    assert sp.issparse(found) and found.nnz == (a | b).sum()
    np.testing.assert_array_equal(dense(found, most), wanted)


def test_sparse_results_store_what_a_product_meets():
    rng = np.random.default_rng(5)
    A, values, a = stored_matrix(rng, (9, 9), "float64", "csr", 0.2)
    wanted, met = by_loops("min_plus", values, a, values, a)
    found = tp.einsum("ij,jk->ik", A, A, semiring="min_plus")
    assert found.format == "csr" and found.nnz == met.sum()
    tensor = tp.einsum("ij,jk->ik", *[tp.tensor(A)] * 2, semiring="min_plus")
    assert isinstance(tensor, tp.Tensor) and tensor.fill_value == INF
    np.testing.assert_array_equal(tensor.to_numpy(), wanted)
    again = tp.einsum("ij,j->i", tensor, np.zeros(9), semiring="min_plus")
    np.testing.assert_array_equal(again, wanted.min(axis=1))


def test_several_factors_in_one_product():
    rng = np.random.default_rng(5)
    A, values, places = stored_matrix(rng, (6, 6), "float64", "csr")
    x = rng.random(6)
    whole = np.where(places, values, INF)
    two = (whole[:, :, None] + whole[None]).min(axis=1)
    found = tp.einsum("ij,jk,k->i", A, A, x, semiring="min_plus")
    np.testing.assert_allclose(found, (two + x).min(axis=1))


def test_semirings_of_ones_own():
    rng = np.random.default_rng(5)
    A, values, places = stored_matrix(rng, (6, 6), "float64", "csr")
    P = abs(A)
    likely = tp.Semiring("max", "times", zero=0, one=1)
    found = tp.einsum("ij,jk->ik", P, P, semiring=likely)
    wanted = (abs(values)[:, :, None] * abs(values)[None]).max(axis=1)
    np.testing.assert_allclose(dense(found, 0), wanted)
    whole = tp.Semiring("min", "plus", zero=INF, one=0)
    ints = A.astype(np.int16)
    found = tp.einsum("ij,j->i", ints, np.zeros(6, np.int16), semiring=whole)
    least = np.where(places, values.astype(np.int16), np.iinfo(np.int16).max).min(axis=1)
    np.testing.assert_array_equal(found, least)


@pytest.mark.rotating(3)
@pytest.mark.parametrize(
    "given",
    ["min_plus", "max_times", "min_max", "any_pair", "or_and", "plus_times", "times_plus",
     tp.Semiring("min", "plus", zero=INF)],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float64", "uint8", "bool"])
@pytest.mark.parametrize("left", ["csr", "dense"])
@pytest.mark.parametrize("right", ["csr", "dense"])
def test_no_elements_add_up_to_the_zero(given, dtype, left, right):
    name = given if isinstance(given, str) else "min_plus"
    if skipped(name, dtype, dtype):
        return
    A, B = np.zeros((3, 0), dtype), np.zeros((0, 4), dtype)
    wanted, _ = by_loops(name, A, A != 0, B, B != 0)
    stored = [
        array if form == "dense" else sp.csr_array(array).asformat(form)
        for array, form in ((A, left), (B, right))
    ]
    found = tp.einsum("ij,jk->ik", *stored, semiring=given)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(dense(found, zero_of(parts(name)[0], wanted.dtype)), wanted)
    text, operands = "C[i,k] = A[i,j] * B[j,k]", dict(zip("AB", stored, strict=True))
    np.testing.assert_array_equal(tp.evaluate_dense(text, operands, semiring=given), wanted)
    shifted = "y[i] = sum(j, A[i,j] + 2)"  # what is reduced is not the zero anywhere
    if dtype != "bool":
        y = tp.evaluate(shifted, A=stored[0], semiring=given)
        np.testing.assert_array_equal(dense(y, 0), np.full(3, zero_of(parts(name)[0], y.dtype)))


def test_out_and_threads():
    rng = np.random.default_rng(5)
    A, values, places = stored_matrix(rng, (6, 5), "float64", "csr")
    x, out = rng.random(5), np.empty(6)
    found = tp.einsum("ij,j->i", A, x, out=out, semiring="min_plus", threads=1)
    assert found is out
    np.testing.assert_array_equal(out, (np.where(places, values, INF) + x).min(axis=1))


def test_explain_shows_the_semiring():
    A = sp.csr_array(np.eye(3))
    told = tp.explain("ij,j->i", A, np.ones(3), semiring="min_plus", frontier_budget=0)
    assert "min(j, filled(add(op0[i,j], op1[j]), inf))" in told
    told = tp.explain("y[i] = A[i,j] * x[j]", A=A, x=np.ones(3), semiring="min_plus")
    assert "min(j, filled(add(A[i,j], x[j]), inf))" in told


MISTAKES = [
    ("min_plsu", "found 'min_plsu'", "did you mean min_plus?"),
    ("minus_times", "found 'minus', which is not", "the names are plus"),
    (3, "Expected a semiring or its name, found int", 'tp.Semiring("min", "plus")'),
]


@pytest.mark.parametrize(("given", "message", "hint"), MISTAKES)
def test_unknown_semirings(given, message, hint):
    with pytest.raises(tp.NotationError) as caught:
        tp.einsum("ij,j->i", sp.csr_array(np.eye(3)), np.ones(3), semiring=given)
    assert message in str(caught.value) and hint in str(caught.value)


def test_semirings_that_are_none():
    with pytest.raises(tp.NotationError, match="associative and commutative"):
        tp.Semiring("first", "plus")
    with pytest.raises(tp.NotationError, match="did you mean times"):
        tp.Semiring("plus", "tims")
    with pytest.raises(tp.NotationError, match=r"Expected a zero with min\(x, zero\) = x"):
        tp.Semiring("min", "plus", zero=0)
    with pytest.raises(tp.NotationError, match=r"Expected a one with mul\(x, one\) = x"):
        tp.Semiring("max", "times", one=0)


def test_what_semirings_do_not_compute():
    A = sp.csr_array(np.eye(3))
    with pytest.raises(tp.NotationError, match=r"Expected \+ and \* alone") as caught:
        tp.evaluate("y[i] = A[i,j] - x[j]", A=A, x=np.ones(3), semiring="min_plus")
    assert "^" in str(caught.value)
    with pytest.raises(tp.NotationError, match="minus is not associative"):
        tp.einsum("ij,jk,kl->il", A, A, A, semiring="max_minus")
    with pytest.raises(tp.OperandTypeError, match="defined for"):
        tp.einsum("ij,j->i", A.astype(complex), np.ones(3), semiring="min_plus")
    with pytest.raises(tp.OperandTypeError, match="Expected a zero of the semiring max_times that"):
        own = tp.Semiring("max", "times", zero=0.5)
        tp.einsum("ij,j->i", A.astype(int), np.ones(3, int), semiring=own)


def test_what_a_sparse_tensor_does_not_store_is_the_zero_where_it_is_added_to():
    W = sp.csr_array(np.array([[0.0, 4, 0, 0], [0, 0, 0, 0], [0, 2, 0, 0], [0, 0, 0, 0]]))
    d = tp.Tensor.from_coo(([0],), np.array([0.0]), (4,))
    text = "d[j] += W[i,j] * e[i]"
    for format in ("d", "s", None):
        for e in (d, np.array([0, np.inf, np.inf, np.inf])):
            found = tp.evaluate(text, W=W, d=d, e=e, semiring="min_plus", format=format)
            np.testing.assert_array_equal(dense(found, np.inf), [0, 4, np.inf, np.inf])
    wanted = tp.evaluate_dense(text, W=W, d=d, e=d, semiring="min_plus")
    np.testing.assert_array_equal(wanted, [0, 4, np.inf, np.inf])
    for added in (tp.evaluate, tp.evaluate_dense):
        with pytest.raises(tp.OperandError, match="Expected R, which is added to over min_plus"):
            added("R[i,j] += W[i,j]", W=W, R=W, semiring="min_plus")
    with pytest.raises(tp.OperandError, match="Expected d, which is added to over min_plus"):
        tp.compile(text, W=tp.CSR, e=tp.dense(1), d=tp.CSF(1), semiring="min_plus")
    sums = tp.evaluate("R[i,j] += W[i,j]", W=W, R=W, semiring="plus_second")
    np.testing.assert_array_equal(sums.toarray(), 2 * W.toarray())


@pytest.mark.filterwarnings("ignore::taco_py.NotationWarning")  # j is used once
@pytest.mark.parametrize("stored", [0, 2])
@pytest.mark.parametrize("dtype", ["bool", "int32", "float64"])
@pytest.mark.parametrize("semiring", ["and_or", "or_and", "min_plus", "max_min", "max_times"])
def test_sums_that_are_computed_first_may_be_of_nothing(semiring, dtype, stored):
    w = np.array([0, 1, -2]).astype(dtype)
    u = tp.Tensor.from_coo([np.arange(stored)], np.ones(stored, dtype), (4,), format="s")
    text = "R[k] = w[k] * u[j]"
    try:
        wanted = tp.evaluate_dense(text, w=w, u=u, semiring=semiring)
    except tp.OperandTypeError:
        pytest.skip("the semiring has no such numbers")
    np.testing.assert_array_equal(tp.evaluate(text, w=w, u=u, semiring=semiring), wanted)


@pytest.mark.parametrize("multiply", ["gt", "ge", "lt", "min", "max", "plus", "minus", "times"])
@pytest.mark.parametrize("plan", [0, 1, 3, 5])
def test_a_sum_of_no_entries_is_absent_in_any_plan(multiply: str, plan: int) -> None:
    x, w = np.array([0.0, 1.0, -2.0]), sp.coo_array((3,), dtype=np.int32)
    given, semiring = {"x": x, "w": w}, f"plus_{multiply}"
    text = "R[j] = x[j] * sum(k, w[k])"
    with other_plan(plan):
        found = tp.evaluate(text, given, semiring=semiring)
    np.testing.assert_array_equal(found, np.zeros(3))


@pytest.mark.parametrize("dtype", ["uint32", "int8", "float64"])
def test_arrays_of_scipy_store_nothing_where_a_mask_is_false(dtype: str) -> None:
    """What they do not store means the semiring's zero."""
    B = sp.csr_array(np.array([[4, 2, 1], [0, 0, 3]], dtype))
    mask = sp.coo_array((np.array([1, 0, 1, 0]), (np.array([0, 0, 1, 1]), np.array([0, 1, 2, 0]))))
    given = {"B": B, "x": np.array([2, 2, 1], dtype)}
    found = tp.evaluate(
        "R[i,j] = B[i,j] * x[j]", given, semiring="min_plus", mask=tp.by_value(mask)
    )
    assert found.nnz == 2
    assert (found[0, 0], found[1, 2]) == (6, 4)


@pytest.mark.parametrize("semiring", ["max_plus", "min_plus", "max_times", "plus_min"])
@pytest.mark.parametrize("mask", ["none", "dense", "sparse"])
@pytest.mark.parametrize("kind", [sp.csr_array, lambda D: tp.tensor(D, format="ss"), sp.coo_array])
def test_products_without_an_entry_are_absent_beside_others(kind, mask, semiring):
    """Rows without entries, in products of several factors that a term or a mask stands beside."""
    b, x = np.array([0.0, 1, 2, 3]), sp.coo_array(np.array([-2.0, -1, 0, 0, 2]))
    D = kind(sp.csr_array(np.array([[0, 0, 0], [1.0, 0, 0], [0, 2, 0], [0, 0, 0]])))
    m = np.array([True, True, False, True])
    masks = {"none": {}, "dense": {"mask": m}, "sparse": {"mask": tp.by_value(sp.coo_array(m))}}
    for text in (
        "R[i] = b[i]*x[j]*D[i,k] + b[i]",
        "R[i] = D[i,k]*x[j]",
        "R[i] = b[i]*D[i,k] + b[i]",
    ):
        given = {"b": b, "x": x, "D": D}
        given = {name: each for name, each in given.items() if f"{name}[" in text}
        options = {"semiring": semiring, **masks[mask]}
        found = tp.evaluate(text, given, format="d", **options)
        np.testing.assert_array_equal(found, tp.evaluate_dense(text, given, **options))
