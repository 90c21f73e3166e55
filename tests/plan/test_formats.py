"""Formats that follow from others."""

from __future__ import annotations

import numpy as np
import pytest

import taco_py as tp
from taco_py.language.formats import Format
from taco_py.language.notation.checks import accesses
from taco_py.planner.ir.formats import (
    appendable,
    default_format,
    reordered,
    storage_order,
    unordered_last,
    with_chain,
    with_dense_root,
)
from taco_py.planner.ir.goal import Request
from taco_py.planner.make import make_plan
from tests.problems import assignment, formats, operands, problem

PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
ADD = "C[i,j] = A[i,j] + B[i,j]"
SPMV = "y[i] = A[i,j] * x[j]"
CSRS = {"A": "CSR", "B": "CSR"}

# An index is compressed when every term restricts it by a compressed level, else dense; modes are
# stored as the sparse operands store them, as far as these agree.
DEFAULTS = (
    (SPMV, {}, "d"),
    (SPMV, {"A": "CSR"}, "d"),
    (SPMV, {"A": "CSC"}, "s"),
    (SPMV, {"A": "DCSR"}, "s"),
    (ADD, CSRS, "ds"),
    (ADD, {"A": "CSC", "B": "CSC"}, "ds:1,0"),
    (ADD, {"A": "DCSR", "B": "DCSR"}, "ss"),
    (ADD, {"A": "DCSR", "B": "CSR"}, "ds"),
    (ADD, {"A": "CSR", "B": "CSC"}, "dd"),
    (ADD, {"A": "CSR"}, "dd"),
    ("C[i,j] = A[i,j] * B[i,j]", {"A": "CSR"}, "ds"),
    ("C[i,j] = A[i,j] * B[i,j]", {"A": "CSC"}, "ds:1,0"),
    ("C[i,j] = A[i,j] * B[i,j]", {"A": "CSR", "B": "CSC"}, "ss"),
    ("C[i,j] = A[i,j] + 1", {"A": "CSR"}, "dd"),
    ("C[i,j] = A[i,j] / B[i,j]", {"A": "CSR"}, "ds"),
    ("C[i,j] = A[i,j] / B[i,j]", {"B": "CSR"}, "dd"),
    (PRODUCT, {"A": "CSR"}, "dd"),
    (PRODUCT, CSRS, "ds"),
    (PRODUCT, {"A": "CSC", "B": "CSC"}, "ds:1,0"),
    ("C[j,i] = A[i,j]", {"A": "CSR"}, "ds:1,0"),
    ("D[i,j] = S[i,j] * U[i,k] * V[j,k]", {"S": "CSR"}, "ds"),
    ("A[i,j] = T[i,j,k] * x[k]", {"T": "CSF"}, "ss"),
    ("R[k,i,j] = T[i,j,k]", {"T": "CSF"}, "sss:1,2,0"),
    ("s = A[i,j]", {"A": "CSR"}, ""),
)


@pytest.mark.parametrize(("text", "names", "expected"), DEFAULTS)
def test_default_format(text: str, names: dict[str, str], expected: str) -> None:
    assert str(default_format(assignment(text), formats(text, names))) == expected


STORED = (
    (ADD, CSRS, "ij"),
    (ADD, {"A": "CSC", "B": "CSC"}, "ji"),
    (ADD, {"A": "CSR", "B": "CSC"}, "ij"),  # they disagree: as written
    (PRODUCT, {"A": "CSC", "B": "CSC"}, "ji"),
    ("R[r,k,i] = T[i,j,k] * U[j,r]", {"T": "CSF"}, "ikr"),  # what no sparse operand stores is last
)


@pytest.mark.parametrize(("text", "names", "expected"), STORED)
def test_storage_order(text: str, names: dict[str, str], expected: str) -> None:
    assert "".join(storage_order(assignment(text), formats(text, names))) == expected


@pytest.mark.parametrize(
    ("form", "expected"),
    [("uq", "ss"), ("uc", "ss"), ("ds", "ds"), ("dd", "dd"), ("ss:1,0", "ss:1,0"), ("uqq", "sss")],
)
def test_appendable(form: str, expected: str) -> None:
    assert str(appendable(Format.parse(form))) == expected


def test_the_part_that_is_scattered_becomes_a_coordinate_list() -> None:
    assert str(with_chain(Format.parse("sss"), 0)) == "uqq"
    assert str(with_chain(Format.parse("dss"), 1)) == "duq"
    assert str(with_chain(Format.parse("ss:1,0"), 0)) == "uq:1,0"


REORDERED = (
    ("CSR", "ji", False, "ds:1,0"),
    ("CSR", "ji", True, "ds:1,0"),
    ("CSC", "ij", False, "ds"),
    ("DCSR", "ji", False, "ss:1,0"),
    ("COO", "ij", False, "ds"),  # CSR is the copy that is made fastest
    ("COO", "ij", True, "ss"),  # but not of a matrix of empty rows
)


@pytest.mark.parametrize(("form", "order", "empty", "expected"), REORDERED)
def test_reordered(form: str, order: str, empty: bool, expected: str) -> None:
    text = "C[i,j] = A[i,j]"
    (access,) = accesses(assignment(text))
    (stored,) = formats(text, {"A": form}).values()
    assert str(reordered(stored, access, tuple(order), empty)) == expected


def test_only_a_compressed_last_level_may_come_unordered() -> None:
    assert [level.ordered for level in unordered_last(Format.parse("ss")).levels] == [True, False]
    assert unordered_last(Format.parse("sd")) == Format.parse("sd")


SUM = "C[i,j] = A[i,j] + B[i,j]"
ARRANGED = (
    # A by rows, B by columns, with these entries: what has fewer of them is copied
    (SUM, "ss", "ss:1,0", 1e3, 1e5, "ss:1,0"),
    (SUM, "ss", "ss:1,0", 1e5, 1e3, "ss"),
    (SUM, "ss", "ss:1,0", 1e5, 1e5, "ss"),  # no better: the order as written
    (SUM, "ss:1,0", "ss:1,0", 1e5, 1e3, "ss:1,0"),
    (SUM, "CSR", "CSC", 1e3, 1e5, "dd"),
    (PRODUCT, "CSR", "CSR", 1e5, 1e5, "ds"),  # i is dense, j compressed: no other order keeps that
    (PRODUCT, "ss", "ss:1,0", 1e5, 1e3, "ss"),  # neither stores both
)


@pytest.mark.parametrize(("text", "a", "b", "few", "many", "expected"), ARRANGED)
def test_results_are_stored_in_the_order_that_costs_least(
    text: str, a: str, b: str, few: float, many: float, expected: str
) -> None:
    whole = problem(text, {"A": a, "B": b})
    known = operands(whole, dict.fromkeys("ijk", 20_000), {"A": few, "B": many})
    plan = make_plan(whole.assignment, known, Request(whole.result, any_order=True))
    assert str(plan.result.format) == expected
    assert bool(plan.stored) == (plan.result.format != whole.result.format)


def test_the_order_of_a_result_is_explained_and_the_values_are_the_same() -> None:
    rng = np.random.default_rng(5)
    few, many = (rng.integers(0, 2000, (2, n)) for n in (50, 5000))
    a = tp.Tensor.from_coo(list(few), np.ones(50), (2000, 2000), format=tp.DCSR)
    b = tp.Tensor.from_coo(list(many), np.ones(5000), (2000, 2000), format="ss:1,0")
    told = tp.explain(SUM, A=a, B=b, schedule_budget=0)
    assert "result    C stored as ss:1,0: about" in told
    made = tp.evaluate(SUM, A=a, B=b)
    assert str(made.format) == "ss:1,0"
    np.testing.assert_array_equal(made.to_numpy(), a.to_numpy() + b.to_numpy())
    assert str(tp.evaluate(SUM, A=a, B=b, format="ss").format) == "ss"


ROOTED = (
    ("DCSR", "ds"),
    ("ss:1,0", "ds:1,0"),
    ("COO", "ds"),
    ("CSR", None),
    ("dense", None),
    ("sd", None),
)


@pytest.mark.parametrize(("form", "expected"), ROOTED)
def test_with_dense_root(form: str, expected: str | None) -> None:
    (stored,) = formats("C[i,j] = A[i,j]", {"A": form}).values()
    made = with_dense_root(stored)
    assert (None if made is None else str(made)) == expected
    assert with_dense_root(Format.parse("")) is None
