"""Kernels over rows with slots, diagonals and triangles read them as they are, with several columns
of the other operand too."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

FORMATS = ("sdia(8)", "dia", "ell", "sell(8)", "nm(3,4)", "rle", "sym")
TEXTS = ("y[i] = A[i,j] * x[j]", "Y[i,k] = A[i,j] * X[j,k]")


def _stencil(side: int) -> sp.csr_array:
    line = sp.diags_array([np.ones(side - 1), np.ones(side), np.ones(side - 1)], offsets=[-1, 0, 1])
    return sp.csr_array(sp.kron(line, line))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("text", TEXTS)
def test_calls_convert_nothing(form: str, text: str) -> None:
    A = _stencil(24)
    rng = np.random.default_rng(0)
    other = rng.random((A.shape[1], 16)) if "k" in text else rng.random(A.shape[1])
    operands = {"A": tp.tensor(A, format=form), "X" if "k" in text else "x": other}
    told = str(tp.explain(text, threads=1, **operands))
    assert "1 kernel, 0 copies" in told
    assert "converted" not in told
    assert np.allclose(tp.evaluate(text, **operands), A @ other)


@pytest.mark.parametrize("form", [f for f in FORMATS if f not in ("dia", "sym")])
@pytest.mark.parametrize("text", TEXTS)
def test_compiled_kernels_convert_nothing(form: str, text: str) -> None:
    name, order = ("X", "dd") if "k" in text else ("x", "d")
    kernel = tp.compile(text, {"A": form, name: order})
    assert "1 kernel, 0 copies" in kernel.explain()
    A = _stencil(6)
    other = np.random.default_rng(0).random((A.shape[1], 5)[: len(order)])
    assert np.allclose(kernel(tp.tensor(A, format=form), other), A @ other)


def test_kernels_are_compiled_for_the_sizes_of_operands() -> None:
    A = tp.tensor(_stencil(6), format="sdia(8)")
    told = tp.compile(TEXTS[0], A=A, x="d").explain()
    assert "taken for" not in told
    assert "1 kernel, 0 copies" in told


@pytest.mark.parametrize("form", ["ell", "sell(8)"])
def test_rows_stay_in_registers_where_places_may_be_free(form: str) -> None:
    kernel = tp.compile(TEXTS[1], {"A": form, "X": "dd"}, dtypes="float32")
    assert "a panel of Y_vals" in kernel.explain()
    A = _stencil(7).astype("float32")
    for columns in (*range(1, 20), 31, 32, 33, 47, 65):
        X = np.arange(A.shape[1] * columns).reshape(-1, columns).astype("float32") % 7
        assert np.array_equal(kernel(tp.tensor(A, format=form), X), A @ X)


NARROW = (
    "Y[i,j] = A[i,j] * D[i,j]",
    "Y[i,j] = A[i,j] * D[i,j] - D[i,j]",
    "y[i] = A[i,j] * D[i,j]",
    "y[i] = D[i,0] * sum(j, A[i,j])",
)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float32"])
@pytest.mark.parametrize("form", ["sell(4)", "dia", "nm(4,4)", "bsr(3,2)"])
def test_sums_over_places_keep_types(form: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    A = rng.integers(0, 3, (13, 12)).astype(dtype)
    D = rng.integers(0, 120, (13, 12)).astype(dtype)
    for text in NARROW:
        if dtype == "bool" and " - " in text:
            continue
        wanted = np.asarray(tp.evaluate_dense(text, A=A, D=D))
        form_of_result = "d" * wanted.ndim
        found = tp.evaluate(text, A=tp.tensor(A, format=form), D=D, format=form_of_result)
        assert found.dtype == wanted.dtype
        assert np.array_equal(found, wanted)


ORDERS = {
    ("sell(8)", "y[i] = A[i,j] * x[j]"): "loop order  i0,k,i1,j",
    ("sell(8)", "Y[i,k] = A[i,j] * X[j,k]"): "loop order  i0,i1,k_1,j,k",
    ("bsr(3,3)", "y[i] = A[i,j] * x[j]"): "loop order  i0,j0,i1,j1",
}


@pytest.mark.parametrize(("form", "text"), ORDERS)
@pytest.mark.parametrize("side", [8, 24])
def test_loops_inside_of_blocks_come_after_those_over_blocks(
    form: str, text: str, side: int
) -> None:
    A = _stencil(side)
    other = np.ones((A.shape[1], 8)[: 2 if "X" in text else 1])
    operands = {"A": tp.tensor(A, format=form), "X" if "X" in text else "x": other}
    assert ORDERS[form, text] in str(tp.explain(text, threads=1, **operands))


def test_slices_whose_rest_is_empty_are_skipped() -> None:
    text = "y[i] = D[i,j] * x[j] + R[i,j] * x[j]"
    kernel = tp.compile(text, D="sdia(8)", R="csr", x="d")
    assert "if (R3_pos[i0 * 8] < R3_pos[i0 * 8 + 8])" in kernel.source
    A = _stencil(9).tolil()
    A[3, 70] = A[44, 2] = 5.0
    first, rest = tp.hybrid(A.tocsr(), "sdia(8)", 0.3)
    x = np.arange(81.0)
    for R in (rest, sp.csr_array((81, 81)), A.tocsr() - first.to_scipy()):
        found = kernel(D=first, R=R, x=x)
        assert np.allclose(found, first.to_numpy() @ x + tp.tensor(R).to_numpy() @ x)
