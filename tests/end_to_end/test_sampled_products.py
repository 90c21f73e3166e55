"""Sampled products that are used further: results are those of the dense oracle."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

TEXTS = (
    "O[i,f] = S[i,j] * U[i,k] * V[j,k] * X[j,f]",
    "O[i,f] = S[i,j] * sum(k, U[i,k] * V[j,k]) * X[j,f] / z[i]",
    "O[f,i] = X[j,f] * V[j,k] * S[i,j] * U[i,k]",
    "O[i,f] = R[i,f] - S[i,j] * U[i,k] * V[j,k] * X[j,f]",
    "O[i,f] = (S[i,j] - M[i,j] * sum(k, U[i,k] * V[j,k])) * X[j,f]",
    "O[i,f] = (S[i,j] + 2 * M[i,j] * sum(k, U[i,k] * V[j,k])) / z[i] * X[j,f]",
)
FORMATS = ("CSR", "CSC", "COO", "DCSR", "dense")
DTYPES = ("int8", "int16", "int64", "float32", "float64", "complex64", "complex128")
ROWS, COLUMNS, DEPTH, WIDTH = 60, 50, 12, 40


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Any:
    found = rng.integers(-3, 4, shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        found = found + found.dtype.type(1j) * rng.integers(-3, 4, shape)
    return found.astype(dtype)


def _sparse(rng: np.random.Generator, name: str, dtype: str) -> Any:
    """A matrix with stored zeros; a list has its entries in any order, and some of them twice."""
    count = ROWS * 6
    rows, columns = rng.integers(0, ROWS, count), rng.integers(0, COLUMNS, count)
    listed = sp.coo_array((_values(rng, (count,), dtype), (rows, columns)), (ROWS, COLUMNS))
    if name == "COO":
        return listed
    whole = listed.toarray()
    if name == "dense":
        return whole
    stored = listed.tocsr() if name != "CSC" else listed.tocsc()
    return tp.tensor(stored, format="ss") if name == "DCSR" else stored


def _operands(text: str, form: str, dtype: str, mixed: str | None = None) -> dict[str, Any]:
    rng = np.random.default_rng(len(text))
    other = mixed or dtype
    every = {
        "S": _sparse(rng, form, dtype),
        "M": _sparse(rng, form, other),
        "U": _values(rng, (ROWS, DEPTH), other),
        "V": _values(rng, (COLUMNS, DEPTH), other),
        "X": _values(rng, (COLUMNS, WIDTH), dtype),
        "R": _values(rng, (ROWS, WIDTH), dtype),
        "z": np.full(ROWS, 2).astype(dtype),
    }
    return {name: value for name, value in every.items() if f"{name}[" in text.split("=")[1]}


def _dense(value: Any) -> Any:
    if isinstance(value, tp.Tensor):
        return value.to_numpy()
    return value.toarray() if sp.issparse(value) else value


def _check(text: str, operands: dict[str, Any]) -> None:
    whole = {name: _dense(value) for name, value in operands.items()}
    expected = _dense(tp.evaluate_dense(text, whole))
    found = _dense(tp.evaluate(text, operands))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)  # of small integers, which are exact


@pytest.mark.rotating(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMATS)
def test_every_format_and_type(form: str, dtype: str) -> None:
    for text in TEXTS:
        if "/" in text and np.dtype(dtype).kind == "i":
            continue  # true division of integers is in float64
        _check(text, _operands(text, form, dtype))


@pytest.mark.parametrize("text", TEXTS)
def test_the_sampled_product_has_a_kernel_of_its_own(text: str) -> None:
    told = tp.explain(text, _operands(text, "CSR", "float64"), frontier_budget=0)
    step = r"in steps of up to 3 factors about|operations instead of .* around the sum in it"
    assert re.search(f"split .*({step})", told)
    assert len(re.findall("^kernel", told, re.M)) >= 2


@pytest.mark.parametrize(("dtype", "mixed"), [("float64", "int8"), ("int64", "int8")])
def test_types_of_parts_are_kept(dtype: str, mixed: str) -> None:
    """int8 products of U and V wrap where they are in pairs, and as they are written do not."""
    for text in (each for each in TEXTS if "/" not in each):
        operands = _operands(text, "CSR", dtype, mixed)
        operands["U"] *= 30
        _check(text, operands)


def test_a_quotient_is_sampled_as_a_product_is() -> None:
    """The scaling of a transport plan: S is divided by a dense product where it is stored."""
    text = "O[i,f] = S[i,j] / sum(k, U[i,k] * V[j,k]) * X[j,f]"
    for form in FORMATS:
        operands = _operands(text, form, "float64")
        operands["U"], operands["V"] = np.abs(operands["U"]) + 1, np.abs(operands["V"]) + 1
        whole = _dense(operands["S"]) / (operands["U"] @ operands["V"].T)
        found = _dense(tp.evaluate(text, operands))
        np.testing.assert_allclose(found, whole @ operands["X"], rtol=1e-12, atol=1e-12)
    operands["S"] = sp.csr_array(_dense(operands["S"]))
    assert "around the sum in it" in tp.explain(text, operands, frontier_budget=0)


def test_booleans() -> None:
    text = TEXTS[0]
    operands = {n: v.astype(bool) for n, v in _operands(text, "CSR", "int8").items()}
    _check(text, operands)


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", ["S", "U", "V", "X"])
def test_infinities_count_where_something_is_stored(name: str, special: float) -> None:
    """With factors that have no zeros: 0 · ∞ depends on where a sum is."""
    text = TEXTS[0]
    operands = _operands(text, "CSR", "float64")
    for other in operands.values():
        data = other.data if sp.issparse(other) else other
        data[...] = np.abs(data) + 1
    chosen = operands[name].data if name == "S" else operands[name].reshape(-1)
    chosen[::17] = special
    found = tp.evaluate(text, operands)
    s, u, v, x = (operands[n] for n in "SUVX")
    pattern = sp.csr_array((np.ones(s.nnz), s.indices, s.indptr), s.shape).toarray() > 0
    with np.errstate(invalid="ignore"):  # where nothing is stored, which does not count
        parts = np.where(pattern, s.toarray() * (u @ v.T), 0.0)
    expected = np.zeros((ROWS, WIDTH))
    for i, j in zip(*np.nonzero(pattern), strict=True):
        expected[i] += parts[i, j] * x[j]
    np.testing.assert_array_equal(found, expected)


def test_a_tensor_of_three_modes() -> None:
    rng = np.random.default_rng(3)
    text = "M[i,q] = T[i,k,l] * B[i,r] * C[k,r] * D[l,r] * C[k,q] * D[l,q]"
    coordinates = rng.integers(0, 20, (900, 3))
    values = rng.integers(-3, 4, 900).astype(float)
    factors = {name: _values(rng, (20, 9), "float64") for name in "BCD"}
    for form in (tp.CSF(3), tp.COO(3), tp.dense(3)):
        tensor = tp.Tensor.from_coo(coordinates, values, (20, 20, 20), format=form)
        found = _dense(tp.evaluate(text, T=tensor, **factors))
        whole = tensor.to_numpy()
        subscripts = "ikl,ir,kr,lr,kq,lq->iq"
        b, c, d = (factors[name] for name in "BCD")
        expected = np.einsum(subscripts, whole, b, c, d, c, d, optimize=True)
        np.testing.assert_array_equal(found, expected)
    assert "in steps of up to" in tp.explain(
        text,
        T=tp.Tensor.from_coo(coordinates, values, (20, 20, 20), format=tp.CSF(3)),
        **factors,
        frontier_budget=0,
    )


def test_a_result_is_sparse_where_the_samples_are() -> None:
    """The gradient that is sampled twice: stored where M is."""
    rng = np.random.default_rng(4)
    text = "G[i,j] = M[i,j] * S[i,a] * U[i,k] * V[a,k] * W[j,a]"
    s = _sparse(rng, "CSR", "float64")
    m = sp.random_array((ROWS, 30), density=0.1, format="csr", rng=rng)
    m.data = np.rint(m.data * 3)
    u, v = _values(rng, (ROWS, DEPTH), "float64"), _values(rng, (COLUMNS, DEPTH), "float64")
    w = _values(rng, (30, COLUMNS), "float64")
    found = tp.evaluate(text, M=m, S=s, U=u, V=v, W=w)
    expected = m.toarray() * ((s.toarray() * (u @ v.T)) @ w.T)
    assert sp.issparse(found)
    np.testing.assert_array_equal(found.toarray(), expected)
