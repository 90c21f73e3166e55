"""How temporaries are stored, which nobody asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.planner.ir.nodes import Reformat
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import Options
from tests.problems import plan, problem

SIZE = 10_000
CHAIN = "D[i,l] = A[i,j] * B[j,k] * C[k,l]"
TURNED = "D[l,i] = A[i,j] * B[j,k] * C[l,k]"
RNG = np.random.default_rng(7)
PAIRS = Options(path=((0, 1), (0, 1)))


def made(
    text: str, nnz: dict[str, float], result: str | None = None, form: str = "CSR"
) -> tuple[Plan, str]:
    """The plan of a product of three by a given path, and how its temporary is stored."""
    whole = problem(text, dict.fromkeys("ABC", form), result)
    found = plan(whole, dict.fromkeys("ijkl", SIZE), nnz, PAIRS)
    return found, str(found.kernels[0].problem.result.format)


STORED: tuple[tuple[str, dict[str, float], str | None, str, str], ...] = (
    # most rows of T are empty
    (CHAIN, {"A": 50.0, "B": 50.0, "C": 1e5}, "dd", "CSR", "ss"),
    (CHAIN, {"A": 1e5, "B": 1e5, "C": 1e5}, "dd", "CSR", "ds"),
    # T, far larger than A and B, is walked by columns: they are transposed, not T
    (TURNED, {"A": 2e5, "B": 2e5, "C": 2e3}, "ds", "CSR", "ds:1,0"),
    # D has the rows that T has, so that T has no others than A
    (CHAIN, {"A": 1e5, "B": 1e5, "C": 1e5}, None, "DCSR", "ss"),
)


@pytest.mark.parametrize(("text", "nnz", "result", "form", "expected"), STORED)
def test_formats_of_temporaries(
    text: str, nnz: dict[str, float], result: str | None, form: str, expected: str
) -> None:
    found, stored = made(text, nnz, result, form)
    assert stored == expected
    usual = "ss" if form == "DCSR" else "ds"
    words = (f"stored as {expected}: about", "without empty rows")
    told = any(word in note for note in found.notes for word in words)
    assert told == (expected != usual)


def test_a_temporary_by_columns_is_not_copied() -> None:
    found, _ = made(TURNED, {"A": 2e5, "B": 2e5, "C": 2e3}, "ds")
    copied = {step.source for step in found.steps if isinstance(step, Reformat)}
    assert copied == {"A", "B"}


COLUMN_SUMS = (
    ("B[i,j] = A[i,j] / sum(k, A[k,j])", 1e5, "d"),
    ("B[i,j] = A[i,j] * x[j] / (sum(k, A[i,k]) * sum(k, A[k,j]))", 1e5, "d"),
    ("B[i,j] = A[i,j] / sum(k, A[k,j])", 3e3, "d"),  # has the entries of A alone
    ("B[i,j] = A[i,j] * sum(k, A[k,j])", 1e5, "d"),
    ("B[i,j] = A[i,j] * sum(k, C[k,j])", 3e3, "s"),  # most of it is empty
    ("B[i,j] = sum(k, A[k,j]) * x[i]", 1e5, "s"),  # B has all that is stored
)


@pytest.mark.parametrize(("text", "entries", "stored"), COLUMN_SUMS)
def test_sums_of_columns_are_dense_where_the_result_has_no_entries_more(
    text: str, entries: float, stored: str
) -> None:
    whole = problem(text, dict.fromkeys("AC", "CSR"), "ds" if "A[i,j]" in text else "ss")
    found = plan(whole, dict.fromkeys("ijk", SIZE), dict.fromkeys("AC", entries))
    types = {k.target: k.problem.result for k in found.kernels[:-1]}
    forms = [str(type.format) for type in types.values() if type.dtype != "bool"]
    assert forms[-1] == stored
    copies = [step for step in found.steps if isinstance(step, Reformat) and step.source == "A"]
    assert not copies or stored == "s"


def test_columns_are_normalised_as_in_the_text() -> None:
    x = sp.random_array((200, 150), density=0.1, rng=RNG, format="csr")
    found = tp.evaluate("B[i,j] = A[i,j] / sum(k, A[k,j])", A=x)
    assert found.nnz == x.nnz
    sums = x.toarray().sum(0)
    np.testing.assert_allclose(found.toarray(), x.toarray() / np.where(sums == 0, 1, sums))


UNSORTED = (
    (CHAIN, "CSR", False),  # each entry of T is met by itself
    (CHAIN, "DCSR", True),  # threads may share T's rows, which are looked for in order
    (TURNED, "CSR", True),  # T is copied
)


@pytest.mark.parametrize(("text", "form", "ordered"), UNSORTED)
def test_rows_are_sorted_where_somebody_asks(text: str, form: str, ordered: bool) -> None:
    found, _ = made(text, {"A": 1e5, "B": 1e5, "C": 1e5}, "ds", form)
    assert found.kernels[0].problem.result.format.levels[-1].ordered is ordered
    assert all(level.ordered for level in found.kernels[-1].problem.result.format.levels)


def test_rows_that_are_merged_are_sorted() -> None:
    x = sp.random_array((300, 300), density=0.05, rng=RNG, format="csr")
    text = "D[i,l] = sum(j, A[i,j] * B[j,l]) / 2 + B[i,l]"
    found = tp.evaluate(text, A=x, B=x)
    np.testing.assert_allclose(found.toarray(), (x @ x).toarray() / 2 + x.toarray())


FEW = sp.csr_array(([1.0, 2.0, 3.0], ([5, 5, 900], [7, 8, 9])), shape=(2000, 2000))
MANY = sp.random_array((2000, 2000), density=0.004, rng=RNG, format="csr")
COMPUTED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("D[i,l] = A[i,j] * B[j,k] * C[k,l]", {"A": FEW, "B": MANY, "C": MANY}),
    ("D[i,l] = A[i,j] * B[j,k] * C[k,l]", {"A": MANY, "B": MANY, "C": RNG.random((2000, 3))}),
    ("D[l,i] = A[i,j] * B[j,k] * C[l,k]", {"A": MANY, "B": MANY, "C": FEW}),
)


@pytest.mark.parametrize(("text", "given"), COMPUTED)
def test_results_are_the_same(text: str, given: dict[str, Any]) -> None:
    a, b, c = given.values()
    expected = a @ b @ c if text.startswith("D[i,l]") else c @ (a @ b).T
    found = tp.evaluate(text, given)
    dense = found if isinstance(found, np.ndarray) else found.toarray()
    expected = expected if isinstance(expected, np.ndarray) else expected.toarray()
    np.testing.assert_allclose(dense, expected)


@pytest.mark.parametrize(
    ("formats", "stored"), [("coo csc csr", "ss"), ("csr csc csr", "ds"), ("csc csc csc", "ds:1,0")]
)
def test_rows_of_temporaries_are_lists_where_operands_leave_coordinates_out(
    formats: str, stored: str
) -> None:
    """The columns of a CSC matrix are a dense level, but a row of a product has few of them."""
    rng = np.random.default_rng(0)
    a, b, c = (
        sp.random_array((300, 300), density=0.01, rng=rng, format=form) for form in formats.split()
    )
    told = tp.explain("C[a,d] = A[a,b] * B[b,c] * D[c,d]", A=a, B=b, D=c)
    kernel = next(line for line in told.splitlines() if line.startswith("kernel"))
    assert f"T: {stored}/" in told.split(kernel)[1].split("loop order")[0]


def test_what_is_known_of_a_temporary_is_not_looked_up_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows of a product are in no order, and have no duplicates: nothing is sorted to find out."""
    kept = sp.random_array((60, 60), density=0.1, format="csr", rng=RNG)
    given = {"A": kept, "B": kept, "d": RNG.random(60) + 1.0}
    text = "C[i,j] = sum(k, A[i,k] * B[k,j]) / d[i]"
    right = sp.diags_array(1.0 / given["d"]) @ (kept @ kept)

    def asked(*_: Any) -> bool:
        raise AssertionError("the coordinates were compared")

    for name in ("is_unique", "canonical"):
        monkeypatch.setattr(f"taco_py.data.interop.in_order.{name}", asked)
    for _ in range(3):  # the first calls, and those that take the short way
        np.testing.assert_allclose(tp.evaluate(text, **given).toarray(), right.toarray())


FEW_ROWS = (
    # (entries of A in 40 000 rows, how T = A · X is stored)
    (800.0, "sd"),
    (8000.0, "sd"),
    (80_000.0, "dd"),
)


@pytest.mark.parametrize(("entries", "stored"), FEW_ROWS)
def test_a_temporary_with_few_rows_stores_no_empty_ones(entries: float, stored: str) -> None:
    whole = problem("G[k,l] = X[i,k] * A[i,j] * Y[j,l]", {"A": "CSR"})
    sizes, pairs = {"i": 40_000, "j": 40_000, "k": 16, "l": 16}, Options(path=((1, 2), (0, 1)))
    made = plan(whole, sizes, {"A": entries}, pairs)
    first, _ = made.kernels
    assert str(first.problem.result.format) == stored
    assert not any(isinstance(step, Reformat) for step in made.steps)


def test_results_over_few_rows_are_those_of_the_oracle() -> None:
    A = sp.csr_array((RNG.random(8), (RNG.integers(0, 300, 8), RNG.integers(0, 300, 8))))
    A.resize((300, 300))
    X, Y = RNG.random((300, 5)), RNG.random((300, 4))
    text = "G[k,l] = X[i,k] * A[i,j] * Y[j,l]"
    expected = X.T @ A.toarray() @ Y
    np.testing.assert_allclose(tp.evaluate(text, {"X": X, "A": A, "Y": Y}), expected)
