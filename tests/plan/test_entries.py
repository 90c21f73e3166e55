"""Sums over all entries of a sparse tensor: where values alone are read, and that numbers agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import KernelStep, TakeValues
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import make_plan
from tests.problems import operands, problem


def planned(text: str, formats: dict[str, str]) -> Plan:
    whole = problem(text, formats)
    return make_plan(whole.assignment, operands(whole), Request(whole.result, sized=True))


@pytest.mark.parametrize("form", ["CSR", "CSC", "DCSR", "COO"])
def test_one_loop_over_all_entries(form: str) -> None:
    taken, kernel = planned("s = A[i,j] * 2 * A[i,j]", {"A": form}).steps
    assert isinstance(taken, TakeValues)
    assert (taken.source, taken.indices, taken.distinct) == ("A", ("i", "j"), True)
    assert isinstance(kernel, KernelStep)
    assert kernel.schedule.orders == (("e",),)
    taken, *_ = planned("s = A[i,j] / 2", {"A": form}).steps
    assert isinstance(taken, TakeValues)
    assert not taken.distinct


OTHERS = ("s = A[i,j] * x[j]", "y[i] = A[i,j]", "s = A[i,j] * B[i,j]", "s = A[i,j] + x[i]")


@pytest.mark.parametrize("text", OTHERS)
def test_coordinates_that_are_asked_for(text: str) -> None:
    steps = planned(text, {"A": "CSR", "B": "CSR"}).steps
    taken = [step.source for step in steps if isinstance(step, TakeValues)]
    assert taken == (["A"] if "+" in text else [])  # of a sum each term is asked


def test_kernels_for_any_operands_read_them_as_they_are_stored() -> None:
    whole = problem("s = A[i,j]", {"A": "CSR"})
    steps = make_plan(whole.assignment, operands(whole), Request(whole.result)).steps
    assert not any(isinstance(step, TakeValues) for step in steps)
    kernel = tp.compile("s = A[i,j]", A=tp.CSR)
    assert float(kernel(A=sp.csr_array(np.eye(3)))) == 3.0


TEXTS = (
    "s = A[i,j]",
    "s = -A[i,j] * A[i,j] / 4",
    "s = A[i,j] * A[i,j] * A[i,j] - B[i,j]",
    "y[k] = A[i,j] * x[k]",
    "y[k] = A[i,j] * A[i,j] * B[k,l] * x[l]",
    "s = T[i,j,k] * T[i,j,k]",
    "y[i] = x[i] * sum(j, sum(k, A[j,k] * A[j,k]))",
)
FORMS = ("ds", "ds:1,0", "ss", "uq", "ds scipy")


@pytest.mark.rotating(2)
@pytest.mark.parametrize("text", TEXTS)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_results_are_those_of_the_text(text: str, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    dtype = data.draw(st.sampled_from(["int64", "float64", "complex128"]))
    found: dict[str, Any] = {}
    dense: dict[str, Any] = {"x": rng.integers(-3, 4, 5).astype(dtype)}
    found["x"] = dense["x"]
    for name, order in (("A", 2), ("B", 2), ("T", 3)):
        count = data.draw(st.integers(0, 9))
        coords = tuple(rng.integers(0, 5, (order, count)))
        values = rng.integers(-3, 4, count).astype(dtype)
        dense[name] = np.zeros((5,) * order, dtype)
        np.add.at(dense[name], coords, values)
        form = data.draw(st.sampled_from(FORMS))
        if order == 3 or form == "uq":
            made = tp.Tensor.from_coo(coords, values, (5,) * order)
            found[name] = made.to_format("sss") if form != "uq" else made
        elif form == "ds scipy":
            found[name] = sp.coo_array((values, coords), (5, 5)).tocsr()
        else:
            found[name] = tp.tensor(dense[name], format=form)
    read = [name for name in dense if f"{name}[" in text.split(" = ")[1]]
    expected = tp.evaluate_dense(text, {name: dense[name] for name in read})
    result = tp.evaluate(text, {name: found[name] for name in read})
    result = result.to_numpy() if isinstance(result, tp.Tensor) else result
    np.testing.assert_allclose(np.asarray(result), np.asarray(expected), rtol=1e-12)


def test_duplicates_and_what_lies_behind_the_last_entry() -> None:
    a = sp.csr_array((np.array([1.0, 2, 4]), np.array([1, 1, 0]), np.array([0, 2, 3])), (2, 2))
    assert float(tp.evaluate("s = A[i,j]", A=a)) == 7.0
    assert float(tp.evaluate("s = A[i,j] * A[i,j]", A=a)) == 25.0
    assert a.data.tolist() == [1.0, 2.0, 4.0]
    told = tp.explain("s = A[i,j] * A[i,j]", A=a)
    assert "for no loop asks for i,j" in told


@pytest.mark.parametrize("mark", ["parallelize(i,CPUThread,Ordered)", "unroll(j,2)", "serial()"])
def test_loops_that_are_marked_are_those_of_the_text(mark: str) -> None:
    a = sp.random_array((9, 9), density=0.3, rng=np.random.default_rng(0), format="csr")
    found = tp.evaluate("s = A[i,j] * A[i,j]", A=a, schedule=mark)
    np.testing.assert_allclose(float(found), (a.data**2).sum())
