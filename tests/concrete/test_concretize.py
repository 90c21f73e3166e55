"""Concrete notation of classic expressions as golden files, and the decisions behind them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from taco_py.compiler.concrete.concretize import concretize, copies_pattern, shared_prefix
from taco_py.compiler.concrete.nodes import Assign, Statement, WorkspaceKind
from taco_py.compiler.concrete.printer import to_text
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.concrete.tree import assignments, workspaces_of
from taco_py.language.problem import Problem
from tests.problems import problem

GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True, slots=True)
class Example:
    """An expression with formats of its operands, its result's, and a loop order for each term."""

    text: str
    orders: str
    formats: dict[str, str] = field(default_factory=dict)
    result: str | None = None

    @property
    def problem(self) -> Problem:
        return problem(self.text, self.formats, self.result)

    @property
    def statement(self) -> Statement:
        return concretize(self.problem, tuple(tuple(o) for o in self.orders.split()))


BOTH = {"A": "CSR", "B": "CSR"}
SPMV = "y[i] = A[i,j] * x[j]"
PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
MTTKRP = "M[i,r] = sum(j, k, T[i,j,k] * B[j,r] * C[k,r])"
FOUR = dict.fromkeys("ABCD", "CSR")

EXAMPLES = {
    "spmv_csr": Example(SPMV, "ij", {"A": "CSR"}),
    "spmv_csc": Example(SPMV, "ji", {"A": "CSC"}),
    "spmv_csc_dense": Example(SPMV, "ji", {"A": "CSC"}, "d"),
    "spmv_coo": Example(SPMV, "ij", {"A": "COO"}, "d"),
    "residual": Example("r[i] = b[i] - A[i,j] * x[j]", "i ij", {"A": "CSR"}),
    "residual_csc": Example("r[i] = b[i] - A[i,j] * x[j]", "i ji", {"A": "CSC"}),
    "dot": Example("s = a[i] * b[i]", "i", {"a": "s"}),
    "vector_add": Example("y[i] = a[i] + b[i]", "i i", {"a": "s", "b": "s"}),
    "matrix_add": Example("C[i,j] = A[i,j] + B[i,j]", "ij ij", BOTH),
    "add_unlike": Example("C[i,j] = A[i,j] + B[i,j]", "ij ji", {"A": "CSR", "B": "CSC"}, "dd"),
    "add_unlike_dcsr": Example("C[i,j] = A[i,j] + B[i,j]", "ij ji", {"A": "CSR"}, "ss"),
    "spmm": Example(PRODUCT, "ikj", {"A": "CSR"}),
    "spgemm": Example(PRODUCT, "ikj", BOTH),
    "spgemm_columns": Example(PRODUCT, "jki", {"A": "CSC", "B": "CSC"}),
    "spgemm_outer": Example(PRODUCT, "kij", {"A": "CSC", "B": "CSR"}, "ss"),
    "spgemm_inner": Example(PRODUCT, "ijk", {"A": "CSR", "B": "CSC"}, "dd"),
    "product_plus": Example("D[i,j] = A[i,k] * B[k,j] - C[i,j]", "ikj ij", FOUR),
    "product_of_sums": Example("E[i,j] = (A[i,k] + B[i,k]) * (C[k,j] + D[k,j])", "ikj", FOUR),
    "sddmm": Example("D[i,j] = S[i,j] * U[i,k] * V[j,k]", "ijk", {"S": "CSR"}),
    "sampled_difference": Example(
        "D[i,j] = S[i,j] * (A[i,j] - U[i,k] * V[j,k])", "ijk", {"S": "CSR", "A": "CSR"}
    ),
    "ttv": Example("A[i,j] = T[i,j,k] * x[k]", "ijk", {"T": "CSF"}),
    "mttkrp": Example(MTTKRP, "ijkr", {"T": "CSF"}, "dd"),
    "inner_sum": Example("y[i] = A[i,j] * (B[j,k] * x[k])", "ijk", BOTH),
    "hoisted_sum": Example("y[i] = A[i,j] * x[j] * sum(k, B[i,k])", "ijk", BOTH),
    "divided_sum": Example("y[i] = (A[i,j] * x[j]) / d[i]", "ij", {"A": "CSR"}),
    "divided_row": Example("H[i,k] = (A[i,j] * X[j,k] + b[k]) / d[i]", "ijk", {"A": "CSR"}),
    "squared_row": Example(
        "H[i,k] = sum(j, A[i,j] * X[j,k]) * sum(j, A[i,j] * X[j,k]) + b[k]", "ijk ik", {"A": "CSR"}
    ),
    "row_in_a_row": Example(
        "H[i,k] = sum(l, sum(j, A[i,j] * X[j,l]) / d[i] * V[l,k]) / e[k]", "ijlk", {"A": "CSR"}
    ),
    "row_for_numbers": Example(
        "H[i,k] = sum(l, sum(j, A[i,j] * X[j,l]) / d[i] * V[l,k]) / e[k]", "ijkl", {"A": "CSR"}
    ),
    "row_beside_a_sparse_factor": Example(
        "H[i,k] = sum(j, (sum(m, A[i,m] * X[m,k]) - 2) * (C[i,k] * B[i,j]))",
        "imkj",
        {"C": "CSR"},
        "ds",
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_golden(name: str, update_golden: bool) -> None:
    example = EXAMPLES[name]
    text = f"{example.problem}\n\n{to_text(example.statement)}\n"
    path = GOLDEN / f"{name}.txt"
    if update_golden:
        path.write_text(text)
    assert path.exists(), f"{path.name} is missing: look at it after pytest --update-golden"
    assert text == path.read_text()


def test_no_golden_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.iterdir()} == set(EXAMPLES)


PREFIXES = (
    # (expression, formats, result, orders, loops that all terms share)
    (PRODUCT, BOTH, "ds", "ikj", "i"),
    (PRODUCT, BOTH, "ds", "kij", ""),
    (PRODUCT, BOTH, "dd", "ijk", "ij"),
    (PRODUCT, BOTH, "dd", "jik", "ji"),
    (PRODUCT, BOTH, "ds", "jik", ""),  # a sparse result is met in storage order
    ("C[i,j] = A[i,j] + B[i,j]", BOTH, "ds", "ij ij", "ij"),
    ("C[i,j] = A[i,j] + B[i,j]", BOTH, "dd", "ij ji", ""),
    # loops that may meet a coordinate twice are not shared
    (SPMV, {"A": "COO"}, "d", "ij", ""),
    ("C[i,j] = A[i,j] * x[i]", {"A": "COO"}, "COO", "ij", "ij"),
)


@pytest.mark.parametrize(("text", "formats", "result", "orders", "expected"), PREFIXES)
def test_shared_prefix(
    text: str, formats: dict[str, str], result: str, orders: str, expected: str
) -> None:
    whole = problem(text, formats, result)
    terms = split_terms(whole.assignment.value)
    found = shared_prefix(whole, terms, tuple(tuple(o) for o in orders.split()))
    assert "".join(found) == expected


PATTERNS = (
    ("C[i,j] = A[i,j]", {"A": "COO"}, "COO", True),
    ("C[i,j] = 2 * A[i,j] * x[i]", {"A": "COO"}, "COO", True),
    ("C[i,j] = A[i,j] * A[i,j]", {"A": "COO"}, "COO", True),
    ("C[i,j] = A[i,j]", {"A": "COO"}, "ss", False),
    ("C[i,j] = A[j,i]", {"A": "COO"}, "COO", False),
    ("C[i,j] = A[i,j]", {"A": "CSR"}, "COO", False),
    ("C[i,j] = A[i,j] + B[i,j]", {"A": "COO", "B": "COO"}, "COO", False),
    ("C[i,j] = A[i,j] * B[i,j]", {"A": "COO", "B": "COO"}, "COO", False),
)


@pytest.mark.parametrize(("text", "formats", "result", "expected"), PATTERNS)
def test_a_coordinate_list_may_repeat_the_pattern_of_one(
    text: str, formats: dict[str, str], result: str, expected: bool
) -> None:
    assert copies_pattern(problem(text, formats, result)) == expected


def test_workspaces_have_the_dtype_of_their_sum() -> None:
    whole = problem("y[i] = b[i] + A[i,j] * x[j]", {"A": "CSR"}, None, {"A": "int8", "x": "int16"})
    (workspace,) = workspaces_of(concretize(whole, (("i",), ("i", "j"))))
    assert (workspace.dtype, workspace.kind) == ("int16", WorkspaceKind.SCALAR)
    assert whole.result.dtype == "float64"


def test_a_table_is_used_for_two_scattered_indices_and_a_row_for_one() -> None:
    kinds = {
        orders: [w.kind for w in workspaces_of(Example(PRODUCT, orders, BOTH, "ss").statement)]
        for orders in ("ikj", "kij")
    }
    assert kinds == {"ikj": [WorkspaceKind.ROW], "kij": [WorkspaceKind.HASH]}


def test_names_of_workspaces_avoid_those_of_tensors() -> None:
    whole = problem("y[i] = t[i,j] * w[j]", {"t": "CSR"})
    statement = concretize(whole, (("i", "j"),))
    assert [w.name for w in workspaces_of(statement)] == ["t_1"]
    assert all(isinstance(part, Assign) for part in assignments(statement))
