"""Steps that make the same, taken once."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.language.formats import CSC
from taco_py.language.problem import TensorType
from taco_py.planner.ir.nodes import Operand, Reformat, TakeSize, Unfuse
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.tidy.share_equal_steps import share_equal_steps
from tests.problems import plan, problem

RNG = np.random.default_rng(5)
A = sp.random_array((900, 120), density=0.01, format="csr", rng=RNG)
FACTS = Operand(TensorType(CSC, "float64"), (3, 4), 5.0)
OPERANDS = {"A": A, "m": RNG.random(120), "x": RNG.random(900)}


@pytest.mark.parametrize(
    ("text", "sums"),
    [
        ("C[j,k] = (A[i,j] + m[j]) * (A[i,k] + m[k])", 1),
        ("v[j] = (A[i,j] + m[j]) * (A[i,j] + m[j])", 1),
        ("s = sum(i, x[i] * sum(j, A[i,j])) * sum(k, x[k] * sum(j, A[k,j]))", 1),
    ],
)
def test_sums_of_other_names_that_are_equal(text: str, sums: int) -> None:
    given = {name: obj for name, obj in OPERANDS.items() if f"{name}[" in text}
    told = tp.explain(text, given, frontier_budget=0)
    kernels = re.findall("^kernel    T.*", told, re.MULTILINE)
    presence = re.compile(r"present\(|T = sum\(i, A\[i\]\)$")  # where something is stored
    assert len([each for each in kernels if not presence.search(each)]) == sums
    expected = tp.evaluate_dense(text, given)
    for _ in range(2):
        found = tp.evaluate(text, given)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_what_reads_one_reads_the_first() -> None:
    kernels = plan(problem("y[i] = A[i,j] * B[j,k] * x[k]", {"A": "CSR", "B": "CSR"})).kernels
    assert len(kernels) == 2
    first, last = kernels
    copy = Reformat("A_1", "A", CSC, "for a reason", "int32")
    size = TakeSize("n", "A_1", 1, "float64")
    view = Unfuse("V", "T", (("A_1", 0), ("A", 1)))
    again = (
        replace(first, target="T_2"),
        replace(copy, target="A_2"),
        replace(size, target="n_2", source="A_2"),
        replace(view, target="V_2", source="T_2", sizes=(("A_2", 0), ("A", 1))),
    )
    reader = replace(last, sources=(("T", "T_2"), ("A", "n_2")))
    expected = replace(last, sources=(("A", "n"),))
    steps = (first, copy, size, view, *again, reader)
    program = Program(steps, {step.target: FACTS for step in steps}, ("y",), {})
    assert share_equal_steps(program) == (first, copy, size, view, expected)


def test_the_last_step_stays() -> None:
    (kernel,) = plan(problem("y[i] = A[i,j] * x[j]", {"A": "CSR"})).kernels
    steps = (kernel, replace(kernel, target="y_2"))
    program = Program(steps, {step.target: FACTS for step in steps}, ("y_2",), {})
    assert share_equal_steps(program) == steps
