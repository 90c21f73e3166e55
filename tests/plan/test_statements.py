"""Several assignments in one plan: several results, of which later ones read earlier ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.arguments.operands import bind_operands
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.checks import operand_names
from taco_py.language.problem import TensorType
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.verify import verify
from taco_py.planner.statements import plan_statements
from taco_py.running.execute.run import Execution, run_all
from tests.problems import assignment


def plan_of(texts: list[str], arrays: Mapping[str, Any], results: Mapping[str, str]) -> Plan:
    """The plan of assignments, with each result stored in a format by its letters."""
    given = bind_operands(arrays)
    operands = {name: each.operand for name, each in given.items()}
    wanted = {name: TensorType(tp.Format.parse(form), "float64") for name, form in results.items()}
    request = Request(TensorType(tp.dense(0), "float64"))
    return plan_statements([assignment(text) for text in texts], operands, wanted, request)


def results_of(plan: Plan, arrays: Mapping[str, Any]) -> dict[str, Any]:
    tensors = {name: each.data for name, each in bind_operands(arrays).items()}
    found = run_all(plan, Execution(tensors, 1))
    return {name: tp.Tensor(data).to_numpy() for name, data in found.items()}


TEXTS = ["z[i] = sum(j, A[i,j] * x[j])", "s = sum(i, z[i] * z[i])", "y[i] = z[i] / s"]


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    matrix = sp.random_array((40, 30), density=0.2, format="csr", rng=rng)
    return {"A": matrix, "x": rng.random(30)}


def test_every_result_is_made_and_later_assignments_read_earlier_ones() -> None:
    known = arrays()
    plan = plan_of(TEXTS, known, {"z": "d", "y": "d"})
    assert plan.program.results == ("z", "y")
    found = results_of(plan, known)
    z = known["A"] @ known["x"]
    np.testing.assert_allclose(found["z"], z)
    np.testing.assert_allclose(found["y"], z / (z @ z))


def test_the_program_of_several_results_is_legal_and_tells_each() -> None:
    plan = plan_of(TEXTS, arrays(), {"z": "d", "y": "d"})
    assert plan.selection is not None
    verify(plan.selection.program)
    assert plan.selection.program.results == ("z", "y")
    assert [step.target for step in plan.selection.text.steps] == ["z", "s", "y"]


def test_a_sparse_result_is_an_operand_in_its_own_format() -> None:
    known = arrays()
    texts = ["C[i,k] = sum(j, A[i,j] * B[j,k])", "r[i] = sum(k, C[i,k])"]
    known["B"] = sp.random_array((30, 20), density=0.2, format="csr", rng=4)
    for letters in ("ds", "ds:1,0", "ss", "dd"):
        found = results_of(plan_of(texts, known, {"C": letters, "r": "d"}), known)
        product = (known["A"] @ known["B"]).toarray()
        np.testing.assert_allclose(found["C"], product)
        np.testing.assert_allclose(found["r"], product.sum(1))


def test_equal_parts_of_assignments_are_computed_by_one_step() -> None:
    rng = np.random.default_rng(5)
    known: dict[str, Any] = {
        name: sp.random_array((200, 200), density=0.1, format="csr", rng=rng) for name in "ABD"
    }
    known["x"] = rng.random(200)
    texts = [f"{y}[i] = sum(j, k, {a}[i,j] * B[j,k] * x[k])" for y, a in ("yA", "zD")]
    plan = plan_of(texts, known, {"y": "d", "z": "d"})
    assert len(plan.kernels) == 3  # B x once
    found, inner = results_of(plan, known), known["B"] @ known["x"]
    np.testing.assert_allclose(found["y"], known["A"] @ inner)
    np.testing.assert_allclose(found["z"], known["D"] @ inner)


def test_an_index_may_have_another_size_in_another_assignment() -> None:
    known = arrays()
    texts = ["u[i] = sum(j, A[i,j])", "v[i] = x[i] * x[i]", "w[j] = u[j] * 2"]
    found = results_of(plan_of(texts, known, {"u": "d", "v": "d", "w": "d"}), known)
    np.testing.assert_allclose(found["v"], known["x"] ** 2)
    np.testing.assert_allclose(found["w"], known["A"].sum(1) * 2)


def test_targets_are_made_once_and_results_are_targets() -> None:
    known = arrays()
    for texts, results in (
        (["y[i] = A[i,j]", "y[i] = A[i,j]"], {"y": "d"}),
        (["y[i] = A[i,j]"], {"z": "d"}),
    ):
        with pytest.raises(InternalError):
            plan_of(texts, known, results)


FACTORS = st.sampled_from(("A[i,j]", "B[i,j]", "x[i]", "z[j]", "2.0", "sum(k, A[i,k])"))
STATEMENTS = st.lists(st.tuples(FACTORS, st.sampled_from("+-*"), FACTORS), min_size=1, max_size=4)


@settings(max_examples=12)
@given(STATEMENTS, st.data())
def test_random_statements_have_the_values_of_each_alone(
    drawn: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    """Each assignment reads the one before it; in one plan or one call each."""
    rng = np.random.default_rng(1)
    known: dict[str, Any] = {
        name: sp.random_array((6, 6), density=0.4, format=form, rng=rng)
        for name, form in (("A", "csr"), ("B", "csc"))
    }
    known |= {name: rng.random(6) for name in "xz"}
    texts, before = [], "A"
    for number, (left, operator, right) in enumerate(drawn):
        target = f"R{number}"
        texts.append(f"{target}[i,j] = {left} {operator} {right} * {before}[j,i]")
        before = target
    results = {f"R{number}": "dd" for number in range(len(texts)) if data.draw(st.booleans())}
    results[before] = "dd"
    found = results_of(plan_of(texts, known, results), known)
    alone = dict(known)
    for number, text in enumerate(texts):
        alone[f"R{number}"] = tp.evaluate(text, **operands_of(text, alone), format="dd")
    for name in results:
        np.testing.assert_allclose(found[name], alone[name], atol=1e-12)


def operands_of(text: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name: arrays[name] for name in operand_names(assignment(text))}
