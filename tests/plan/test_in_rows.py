"""Dense operands and results beside sparse ones that are copied into rows of the innermost loop."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.names import Names
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import Cast, KernelStep
from taco_py.planner.make import Options, program_of
from taco_py.planner.rules.layout.copy_into_rows import in_rows
from tests.problems import operands, plan, problem

SIZES = {"i": 20_000, "j": 5000, "k": 5000, "r": 16, "s": 16}
ENTRIES = {"A": 400_000.0, "T": 400_000.0}
ACROSS = (
    ("Y[i,r] = A[i,j] * H[r,j]", {"H_jr"}),
    ("Y[j,r] = A[i,j] * H[r,i]", {"H_ir"}),
    ("Y[r,i] = A[i,j] * H[j,r]", {"Y_1"}),
    ("Y[r,i] = A[i,j] * H[r,j]", {"H_jr", "Y_1"}),
    ("D[i,j] = A[i,j] * U[r,i] * V[r,j]", {"U_ir", "V_jr"}),
    ("D[i,j] = A[i,j] * U[i,r] * V[r,j]", {"V_jr"}),
    ("M[i,r] = T[i,j,k] * U[r,j] * V[r,k]", {"U_jr", "V_kr"}),
    ("Y[i,r] = A[i,j] * H[r,j] + b[r]", {"H_jr"}),
)
ALONG = (
    "Y[i,r] = A[i,j] * H[j,r]",
    "D[i,j] = A[i,j] * U[i,r] * V[j,r]",
    "M[i,r] = T[i,j,k] * U[j,r] * V[k,r]",
    "y[i] = A[i,j] * x[j]",
    "Y[i,j] = A[i,j] * X[j,i]",  # an index of a sparse operand cannot be run along
)


def copies(text: str, sizes: dict[str, int] = SIZES, **given_: Any) -> set[str]:
    """The dense copies of a plan for matrices in CSR and tensors in CSF."""
    made = plan(problem(text, {"A": "CSR", "T": "CSF"}), sizes, ENTRIES, **given_)
    return {step.target for step in made.steps if isinstance(step, Cast)}


@pytest.mark.parametrize(("text", "expected"), ACROSS)
def test_what_lies_across_the_innermost_loop_is_copied(text: str, expected: set[str]) -> None:
    assert copies(text) == expected


@pytest.mark.parametrize("text", ALONG)
def test_what_lies_along_it_is_read_where_it_is(text: str) -> None:
    assert copies(text) == set()


@pytest.mark.parametrize("text", [text for text, _ in ACROSS])
def test_the_innermost_loop_runs_along_all_of_them(text: str) -> None:
    made = plan(problem(text, {"A": "CSR", "T": "CSF"}), SIZES, ENTRIES)
    (kernel,) = (step for step in made.steps if isinstance(step, KernelStep))
    assert kernel.schedule.orders[0][-1] == "r"


def test_a_schedule_that_leaves_operands_as_they_are_copies_none() -> None:
    text = ACROSS[0][0]
    assert copies(text, options=Options(schedule=Schedule.parse("reorder(i,j,r)"))) == set()
    assert copies(text, options=Options(schedule=Schedule.parse("parallelize(i)"))) == set()


def test_a_copy_has_to_pay() -> None:
    """Of few entries a large operand is read in less time than it is copied."""
    text, sizes = ACROSS[0][0], SIZES | {"j": 2_000_000}
    assert copies(text, sizes) == set()


def test_both_are_told_with_what_they_cost() -> None:
    rng = np.random.default_rng(0)
    known = {"A": sp.random_array((3000, 1000), density=0.02, format="csr", rng=rng)}
    known["H"] = rng.random((16, 1000))
    told = tp.explain("Y[r,i] = A[i,j] * H[r,j]", known, frontier_budget=0)
    lines = re.findall(r"^convert   (\w+) from (\w+).*", told, re.MULTILINE)
    assert lines == [("H_jr", "H"), ("Y_1", "Y")]
    pattern = r"loop runs along r: about (\S+) operations with copies, .* as they are (\S+)$"
    found = re.findall(pattern, told, re.MULTILINE)
    assert len(found) == 2 and all(float(mine) < float(other) for mine, other in found)


SMALL = {"i": 300, "j": 200, "k": 50, "r": 16}


@pytest.mark.rotating(3)
@pytest.mark.parametrize("text", [text for text, _ in ACROSS] + list(ALONG))
@pytest.mark.parametrize("dtype", ["float64", "int8", "complex64"])
@pytest.mark.parametrize("memory", ["C", "F", "strided"])
def test_numbers_are_those_of_the_text(text: str, dtype: str, memory: str) -> None:
    rng = np.random.default_rng(1)
    sizes = {"i": 100, "j": 60, "k": 40, "r": 16} if "T" in text else SMALL
    known: dict[str, Any] = {}
    for name, indices in re.findall(r"(\w)\[([\w,]+)\]", text.split("=")[1]):
        shape = tuple(sizes[i] for i in indices.split(","))
        full = rng.integers(1, 5, shape)
        if name in "AT":
            full[rng.random(shape) < 0.8] = 0
        full = full.astype(dtype)
        if name == "A":
            known[name] = sp.csr_array(full)
        elif name == "T":
            known[name] = tp.tensor(full, format=tp.CSF(3))
        elif memory == "strided":
            known[name] = np.repeat(full, 2, axis=-1)[..., ::2]
        else:
            known[name] = np.array(full, order=memory)  # type: ignore[call-overload]
    before = {name: x.copy() for name, x in known.items() if isinstance(x, np.ndarray)}
    found = tp.evaluate(text, known)
    expected = tp.evaluate_dense(text, known)
    dense = found.toarray() if sp.issparse(found) else np.asarray(tp.tensor(found).to_numpy())
    assert dense.dtype == expected.dtype
    np.testing.assert_allclose(dense, expected, rtol=1e-5)
    for name, x in before.items():
        np.testing.assert_array_equal(known[name], x)


def test_a_result_is_written_where_it_is_asked_for() -> None:
    rng = np.random.default_rng(2)
    a, h = (
        sp.random_array((3000, 1000), density=0.02, format="csr", rng=rng),
        rng.random((16, 1000)),
    )
    expected = h @ a.T
    for order in "CF":
        out = np.empty((16, 3000), order=order)  # type: ignore[call-overload]
        assert tp.evaluate("Y[r,i] = A[i,j] * H[r,j]", A=a, H=h, out=out) is out
        np.testing.assert_allclose(out, expected)
    found = tp.evaluate("Y[r,i] = A[i,j] * H[r,j]", A=a, H=h)
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, expected)


def test_choices_between_kernels_know_what_copies_cost() -> None:
    known = problem("Y[i,r] = A[i,j] * H[r,j]", {"A": "CSR"})
    given_, request = operands(known, SIZES, ENTRIES), Request(known.result)
    names = Names(given_)
    found = in_rows(known.assignment, given_, request, names)
    assert found is not None and found.copies.steps
    program, context = program_of(known.assignment, given_, request, Options())
    cost = context.costs.loops(program, known.assignment, context)
    assert cost == pytest.approx(found.cost)


SHORT = (
    ("Y[i,r] = A[i,j] * H[r,j]", {"r": 4}),
    ("D[i,j] = A[i,j] * U[r,i] * V[r,j]", {"r": 12}),
    ("Y[r,i] = A[i,j] * H[r,j]", {"i": 30, "j": 30}),
)


@pytest.mark.parametrize(("text", "sizes"), SHORT)
def test_rows_that_fill_no_vectors_and_small_calls_need_no_copies(
    text: str, sizes: dict[str, int]
) -> None:
    few = {"A": 100.0} if "i" in sizes else ENTRIES
    made = plan(problem(text, {"A": "CSR"}), SIZES | sizes, few)
    assert not [step for step in made.steps if isinstance(step, Cast)]


PARTS = (
    "Y[k,i] = A[i,j] * (X[j,k] + b[j]) * d[i]",
    "Y[k,i] = A[i,j] * d[j] * (X[j,k] + b[j])",
    "Y[k,i] = (A[i,j] + A[j,i]) * (X[j,k] + b[j]) * d[i]",
    "D[i,j] = (A[i,k] - b[k]) * (A[l,k] - d[k]) * (A[l,j] - b[j])",
)


@pytest.mark.parametrize("text", PARTS)
def test_parts_without_an_index_of_the_result(text: str) -> None:
    """What is added up has sizes that one of its terms does not tell."""
    rng = np.random.default_rng(3)
    a = sp.random_array((60, 60), density=0.05, format="csr", rng=rng)
    known = {"A": a, "X": rng.random((60, 16)), "b": rng.random(60), "d": rng.random(60)}
    used = {name: x for name, x in known.items() if f"{name}[" in text}
    np.testing.assert_allclose(tp.evaluate(text, used), tp.evaluate_dense(text, used), 1e-9)
