"""Products of many factors under semirings, contracted in pairs where their laws allow."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp

SEMIRINGS = (
    "min_plus", "max_plus", "min_max", "max_min", "min_min", "max_max", "max_times", "min_times",
    "any_plus", "or_and", "and_or", "land_land", "xor_and", "any_pair", "min_first", "max_second",
    "plus_times", "plus_min", "times_plus", "plus_pair", "bor_band", "bxor_band", "bor_bor",
    tp.Semiring("max", "times", zero=0, one=1), tp.Semiring("min", "plus", zero=float("inf")),
    tp.Semiring("max", "min", zero=0), tp.Semiring("max", "plus", zero=0),
)  # fmt: skip
CHAINS = (
    "ij,jk,k->i", "ij,jk,kl->il", "i,ij,jk->k", "ij,jk,kl->jl", "ij,jk,kl,l->i", "ij,jk,kl,lm->im",
    "ij,jk,ik->i", "ij,jk,kl->", "ij,ik,k->i", "i,ij,j->", "ij,jk,kl,li->", "ij,jk->i",
)  # fmt: skip
LAYOUTS = ("dense", "csr", "csc", "coo", "dcsr", "dsc")
DTYPES = ("float64", "float32", "int64", "int32", "bool", "uint8")
SIZES = {"i": 9, "j": 13, "k": 8, "l": 11, "m": 6}


def tensor(rng, shape, dtype, layout):
    """Draw small numbers, none of them negative, where the layout stores something."""
    places = rng.random(shape) < (1.0 if layout == "dense" or len(shape) < 2 else 0.2)
    values = np.where(places, rng.integers(0, 5, shape), 0).astype(dtype)
    if layout == "dense" or len(shape) < 2:
        return values
    at = np.nonzero(places)
    if layout in ("csr", "csc", "coo"):
        return sp.coo_array((values[at], at), shape).asformat(layout)
    form = {"dcsr": "ss", "dsc": "ds:1,0"}[layout]
    return tp.tensor(tp.Tensor.from_coo(at, values[at], shape), format=form)


def text_of(spec):
    """The same with every sum around the whole product."""
    inputs, result = spec.split("->")
    factors = inputs.split(",")
    summed = [i for i in dict.fromkeys("".join(factors)) if i not in result]
    names = "ABCD"[: len(factors)]
    product = " * ".join(f"{n}[{','.join(own)}]" for n, own in zip(names, factors, strict=True))
    for index in reversed(summed):
        product = f"sum({index}, {product})"
    return f"y[{','.join(result)}] = {product}" if result else f"y = {product}"


def dense_of(found):
    """A result as an array, with 0 where a scipy.sparse array stores an infinity."""
    if isinstance(found, tp.Tensor):
        return found.to_numpy()
    return found.toarray() if sp.issparse(found) else np.asarray(found)


def check(spec, semiring, operands):
    found = tp.einsum(spec, *operands, semiring=semiring)
    named = dict(zip("ABCD", operands, strict=False))
    expected = np.asarray(tp.evaluate_dense(text_of(spec), semiring=semiring, **named))
    actual = dense_of(found)
    assert actual.dtype == expected.dtype
    if sp.issparse(found):  # which stores no zeros of the semiring
        at = found.tocoo()
        stored = np.zeros(found.shape, bool)
        stored[at.coords] = True
        actual, expected = actual[stored], expected[stored]
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_chains_equal_one_reduction_of_the_whole_product(data) -> None:
    spec = data.draw(st.sampled_from(CHAINS))
    semiring = data.draw(st.sampled_from(SEMIRINGS))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    wide = str(semiring).startswith(("plus", "times"))  # einsum adds up in narrow types, as NumPy
    dtype = data.draw(st.sampled_from(("float64", "int64") if wide else DTYPES))
    shapes = [tuple(SIZES[i] for i in own) for own in spec.split("->")[0].split(",")]
    operands = [tensor(rng, each, dtype, data.draw(st.sampled_from(LAYOUTS))) for each in shapes]
    try:
        check(spec, semiring, operands)
    except tp.OperandTypeError:
        assert dtype[0] in "fb" or "band" in str(semiring)


NESTED = (
    "y[i] = A[i,j] * B[j,k] * x[k]",
    "y[i] = A[i,j] * (B[j,k] * x[k])",
    "y[i,l] = A[i,j] * B[j,k] * C[k,l]",
    "y[i] = A[i,j] * B[j,k] * x[k] + x[i]",
    "y[i] = A[i,j] * (B[j,k] * x[k] + x[j])",
)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("text", NESTED)
@pytest.mark.parametrize("dtype", ["int32", "int64", "float64", "uint8"])
@pytest.mark.parametrize("semiring", ["min_plus", "max_times", "min_min", "min_first"])
def test_sums_inside_products_are_absent_where_nothing_is_added_up(text, dtype, semiring) -> None:
    rng = np.random.default_rng(1)
    size = 40

    def matrix():
        places = rng.random((size, size)) < 0.05
        return sp.csr_array(np.where(places, rng.integers(1, 9, places.shape), 0).astype(dtype))

    drawn = {"A": matrix(), "B": matrix(), "C": matrix(), "x": rng.integers(1, 9, size)}
    drawn["x"] = drawn["x"].astype(dtype)
    operands = {name: each for name, each in drawn.items() if f"{name}[" in text}
    found = tp.evaluate(text, semiring=semiring, **operands)
    expected = np.asarray(tp.evaluate_dense(text, semiring=semiring, **operands))
    if sp.issparse(found):
        at = found.tocoo()
        np.testing.assert_array_equal(at.data, expected[at.coords])
    else:
        np.testing.assert_array_equal(found, expected)
