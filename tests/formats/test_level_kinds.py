"""Calls over operands in every kind of level, and over slices, diagonals, runs and triangles."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.formats.grid import DATA, EXPRESSIONS, KERNELS, drawn, outcome

SAMPLE = 2
"""Kernels of each expression."""


@pytest.mark.rotating(3)
@pytest.mark.parametrize("number", range(SAMPLE))
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_sample_of_the_grid(name: str, number: int) -> None:
    (*_, cell) = drawn(number + 1, 7, name)
    wrong = [f"{cell}, {data}: {found}" for data in DATA if (found := outcome(cell, data, 0))
             not in ("equal", "refused")]  # fmt: skip
    assert not wrong


def test_the_grid_has_20000_cases() -> None:
    """Without the kernels that are drawn twice."""
    kernels = {str(cell) for cell in drawn(KERNELS, 0)}
    assert len(kernels) * len(DATA) >= 20_000


STORED = ("sdia(8)", "sdia(4)", "dia", "ell", "sell(4)", "rle", "nm(4,4)", "sym")
LINEAR = (
    "y[i] = A[i,j] * x[j]",
    "y[j] = A[i,j] * x[i]",
    "Y[i,k] = A[i,j] * X[j,k]",
    "y[i] = x[i] - 2 * A[i,j] * x[j]",
    "s = x[i] * A[i,j] * x[j]",
    "y[i] += A[i,j] * x[j]",
)


def symmetric_matrix(size: int) -> sp.csr_array:
    random = np.random.default_rng(0)
    array = random.integers(1, 4, (size, size)) * (random.random((size, size)) < 0.15)
    return sp.csr_array((np.triu(array) + np.triu(array, 1).T).astype(float))


@pytest.mark.parametrize("form", STORED)
@pytest.mark.parametrize("text", LINEAR[::2])
def test_they_are_read_as_they_are(form: str, text: str) -> None:
    A = symmetric_matrix(24)
    stored = tp.tensor(A, format=form)
    given = {"x": np.arange(24.0), "X": np.arange(48.0).reshape(24, 2)}
    given = {name: array for name, array in given.items() if f"{name}[" in text}
    told = tp.explain(text, A=stored, **given, frontier_budget=0)
    assert f"the arrays of {stored.format}" in told
    expected = tp.evaluate_dense(text, A=A, **given)
    for _ in range(2):
        np.testing.assert_array_equal(tp.evaluate(text, A=stored, **given), expected)


@pytest.mark.parametrize("form", ["sdia(8)", "ell", "sym"])
def test_results_go_where_they_are_asked(form: str) -> None:
    A = symmetric_matrix(21)
    x, out = np.arange(21.0), np.full(21, np.nan)
    stored = tp.tensor(A, format=form)
    for _ in range(2):
        assert tp.evaluate("y[i] = A[i,j] * x[j]", A=stored, x=x, out=out) is out
        np.testing.assert_array_equal(out, A @ x)
    with pytest.raises(tp.OutputError):
        tp.evaluate("y[i] = A[i,j] * x[j]", A=stored, x=x, out=np.zeros(20))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("C[i,j] = A[i,j] * 2", "the result is sparse"),
        ("y[i] = A[i,j] * B[i,j]", "B, which is sparse, has i, j too"),
        ("s = sum(i, j, abs(A[i,j]))", "the value is not linear in A"),
    ],
)
def test_others_read_compressed_rows_and_say_why(text: str, why: str) -> None:
    A = symmetric_matrix(21)
    given = {"B": A} if "B[" in text else {}
    stored = tp.tensor(A, format="sdia(8)")
    assert why in tp.explain(text, A=stored, **given, frontier_budget=0)
    found = tp.evaluate(text, A=stored, **given)
    expected = tp.evaluate_dense(text, A=A, **given)
    array = found.to_numpy() if isinstance(found, tp.Tensor) else found
    np.testing.assert_array_equal(array, expected)


def test_free_places_are_not_computed_with() -> None:
    """Beside an infinity a zero that nobody stores would be a NaN."""
    A = symmetric_matrix(21)
    x = np.ones(21)
    x[4] = np.inf
    expected = tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=x)
    for form in ("sdia(8)", "ell", "sell(4)", "nm(4,4)", "sym", "dm", "dh"):
        found = tp.evaluate("y[i] = A[i,j] * x[j]", A=tp.tensor(A, format=form), x=x)
        np.testing.assert_array_equal(found, expected, form)


def test_a_triangle_is_all_that_symmetric_looks_at() -> None:
    A = symmetric_matrix(9).toarray()
    for triangle, other in (("lower", np.triu(np.ones((9, 9)), 1)), ("upper", np.tri(9, k=-1))):
        stored = tp.symmetric(A + 5 * other, triangle)
        np.testing.assert_array_equal(stored.to_numpy(), A)
        assert stored.value_count == np.count_nonzero(np.tril(A))


def test_a_format_is_chosen_for_what_is_stored() -> None:
    size = 60_000
    ones = np.ones(size)
    line = sp.diags_array([ones[1:], ones, ones[1:]], offsets=[-1, 0, 1])
    graph = sp.random_array((size, size), density=4 / size, rng=np.random.default_rng(0))
    blocks = sp.kron(graph.tocsr()[:30000, :30000], np.ones((6, 6)))
    assert str(tp.choose_format(line, price="analytic").format) == "SDIA(8)"
    for matrix, expected in ((line, ""), (graph, "ds"), (blocks, "BSR(6,6)")):
        stored = tp.tensor(matrix, format="auto")
        assert str(stored.format) == (expected or str(tp.choose_format(matrix).format))
        x = np.arange(float(matrix.shape[1]))
        np.testing.assert_allclose(tp.evaluate("y[i] = A[i,j] * x[j]", A=stored, x=x), matrix @ x)
        if expected == "BSR(6,6)":
            told = tp.explain("y[i] = A[i,j] * x[j]", A=stored, x=x, frontier_budget=0)
            assert "times as fast as CSR" in told


def test_blocks_with_zeros_are_not_chosen() -> None:
    """A product with an infinity would be another number."""
    matrix = sp.kron(sp.eye_array(5000), np.ones((6, 6))).tocsr()
    assert str(tp.tensor(matrix, format="auto").format) == "BSR(6,6)"
    matrix.data[7] = 0.0
    matrix.eliminate_zeros()
    assert str(tp.tensor(matrix, format="auto").format) != "BSR(6,6)"


@pytest.mark.parametrize("shape", [(9, 9), (7, 11), (11, 7)])
def test_diagonals_of_scipy_are_read_in_place(shape: tuple[int, int]) -> None:
    random = np.random.default_rng(0)
    data = random.integers(1, 5, (4, shape[1])).astype(float)
    matrix = sp.dia_array((data, [0, 2, -3, 5]), shape=shape)
    x, z = np.arange(float(shape[1])), np.arange(float(shape[0]))
    for _ in range(2):
        found = tp.evaluate("y[i] = A[i,j] * x[j]", A=matrix, x=x)
        np.testing.assert_array_equal(found, matrix @ x)
        found = tp.evaluate("y[j] = A[i,j] * z[i]", A=matrix, z=z)
        np.testing.assert_array_equal(found, matrix.T @ z)
        doubled = tp.evaluate("C[i,j] = 2 * A[i,j]", A=matrix)
        np.testing.assert_array_equal(doubled.toarray(), 2 * matrix.toarray())
    told = tp.explain("y[i] = A[i,j] * x[j]", A=matrix, x=x, frontier_budget=0)
    assert "A[k,j,i] is A[i,j]: the arrays of DIA of columns" in told and "0 copies" in told
    stored = tp.tensor(matrix)
    assert np.shares_memory(stored.stored.data.values, matrix.data)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(stored.to_numpy(), matrix.toarray())


@pytest.mark.parametrize("form", ["sdia(8)", "dia", "ell", "sym"])
def test_a_matrix_in_two_parts(form: str) -> None:
    """What is in diagonals and what is not, in one kernel."""
    line = sp.diags_array([np.ones(31), np.ones(32), np.ones(31)], offsets=[-1, 0, 1])
    rest = sp.random_array((32, 32), density=0.1, rng=np.random.default_rng(0), format="csr")
    rest.data = np.round(4 * rest.data)
    x = np.arange(32.0)
    text, given = "y[i] = D[i,j] * x[j] + R[i,j] * x[j]", {"R": rest, "x": x}
    stored = tp.tensor(line, format=form)
    np.testing.assert_array_equal(tp.evaluate(text, D=stored, **given), (line + rest) @ x)
    told = tp.explain(text, D=stored, **given, frontier_budget=0)
    assert f"the arrays of {stored.format}" in told and "1 kernel" in told
