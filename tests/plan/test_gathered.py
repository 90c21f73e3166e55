"""Sparse results that are made as arrays and gathered by blocks: where, and that numbers agree."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import taco_py as tp
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.estimate import Statistics, result_size
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.compiler.order.loop_costs import LoopCosts, storing_alone
from taco_py.compiler.order.orders import best_order
from taco_py.compiler.order.steps import Steps
from taco_py.language.formats import Format
from taco_py.planner.ir.goal import statistics
from taco_py.planner.ir.nodes import Gather, Reformat
from taco_py.planner.ir.plan import Plan
from tests.problems import operands, plan, problem

pytestmark = pytest.mark.user_flags

LAST = "Y[j,k,p] = T[i,j,k] * A[i,p]"
MATRIX = "M[k,r] = T[i,j,k] * A[i,r] * B[j,r]"


def planned(text: str, form: str, result: str, nnz: float, size: int) -> Plan:
    """The plan for a sparse T over indices of this size, and dense factors of eight columns."""
    sizes = {**dict.fromkeys("ijk", size), "p": 8, "r": 8}
    whole = problem(text, {"T": form, "A": "dd", "B": "dd"}, result)
    return plan(whole, sizes, {"T": nnz})


# a result, and its format and those of copies and of what the kernel makes
CHOSEN = (
    (LAST, "sss", "ssd", 200_000.0, 200, "", "ddd"),  # most blocks are stored
    (LAST, "sss", "dsd", 200_000.0, 200, "", "ddd"),
    (LAST, "sss", "ssd", 1_000.0, 200, "sss:1,2,0", "ssd"),  # few of them are
    (LAST, "sss", "ssd", 1e8, 5_000, "sss:1,2,0", "ssd"),  # the array is too large
    (LAST, "sss", "sss", 200_000.0, 200, "sss:1,2,0", "sss"),  # has no blocks
    (MATRIX, "sss", "sd", 20_000.0, 200, "", "dd"),
    (LAST, "sss", "ssd:1,0,2", 200_000.0, 200, "", "ddd:1,0,2"),  # in the order of the result
)


@pytest.mark.parametrize(("text", "form", "result", "nnz", "size", "copies", "made"), CHOSEN)
def test_what_is_made(
    text: str, form: str, result: str, nnz: float, size: int, copies: str, made: str
) -> None:
    found = planned(text, form, result, nnz, size)
    copied = [s for s in found.steps if isinstance(s, Reformat)]
    assert " ".join(str(step.format) for step in copied) == copies
    assert str(found.kernels[-1].problem.result.format) == made
    gathered = [s for s in found.steps if isinstance(s, Gather)]
    assert [str(step.format) for step in gathered] == ([] if made == result else [result])


def test_an_array_costs_what_it_takes_to_gather_it() -> None:
    sizes = {**dict.fromkeys("ijk", 200), "p": 8}
    known = problem(LAST, {"T": "CSF"}, "ssd")
    (term,) = split_terms(known.assignment.value)
    stats = statistics(known.assignment, operands(known, sizes, {"T": 200_000.0}))
    whole = best_order(known, term, stats).cost
    names = ("cleared_element", "marked_entry", "placed_block", "gathered_element")
    fields = [f"{name}_steps" for name in names]
    free = replace(stats, machine=NOMINAL.with_costs(**dict.fromkeys(fields, 0.0)))
    made = result_size(stats, term.body, known.assignment.target.indices)
    cleared, marked, placed, gathered = (getattr(NOMINAL.copies, field) for field in fields)
    expected = cleared * 200 * 200 * 8 + marked * 200_000 + (gathered + placed / 8) * made
    assert whole - best_order(known, term, free).cost == pytest.approx(expected)


# T's format, and how often lines of the array come and go
BEYOND_CACHES = (("sss", 2 * 200_000), ("sss:1,0,2", 0))  # the second fills one row after another


@pytest.mark.parametrize(("form", "lines"), BEYOND_CACHES)
def test_blocks_beyond_the_near_caches_are_fetched(form: str, lines: float) -> None:
    sizes = {**dict.fromkeys("ijk", 200), "p": 8}  # blocks of one line
    known = problem(LAST, {"T": form}, "ssd")
    (term,) = split_terms(known.assignment.value)
    stats = statistics(known.assignment, operands(known, sizes, {"T": 200_000.0}))
    steps, order = Steps(known, term, stats), best_order(known, term, stats).order
    free = replace(stats, machine=NOMINAL.with_costs(line_steps=0.0))

    def cost(known_: Statistics) -> float:
        costs = LoopCosts(known, term, known_, steps)
        outside = costs.start()
        for index in order:
            outside = costs.inside(outside, index)
        return outside.cost

    assert cost(stats) - cost(free) == pytest.approx(NOMINAL.loops.line_steps * lines)


def test_one_kernel_where_steps_would_gather_a_large_array() -> None:
    text = "Y[k,q,s] = T[i,j,k] * U[i,q] * V[j,s]"  # in pairs T*U, an array of 20 MB, is gathered
    known = problem(text, {"T": "CSF", "U": "dd", "V": "dd"}, "sdd")
    sizes = {**dict.fromkeys("ijk", 500), "q": 10, "s": 10}
    assert len(plan(known, sizes, {"T": 200_000.0}).kernels) == 1


@st.composite
def tensors(draw: st.DrawFn) -> tuple[tp.Tensor, np.ndarray]:
    """A tensor that stores few or all of its fibres, and its array."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 6)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    array = rng.integers(1, 5, shape).astype(
        draw(st.sampled_from(("float64", "int32", "complex64")))
    )
    array[rng.random(shape) < draw(st.sampled_from((0.0, 0.3, 0.9)))] = 0
    form = draw(st.sampled_from(("sss", "sss:2,1,0", "uqc", "dss")))
    return tp.tensor(array, format=form), array


@given(tensors(), st.sampled_from([None, "ssd", "sdd", "dsd", "ssd:1,0,2", "sdd:2,1,0"]))
def test_numbers(tensor: tuple[tp.Tensor, np.ndarray], format: str | None) -> None:
    sparse, array = tensor
    matrix = np.arange(1.0, 1.0 + 2 * array.shape[0]).reshape(-1, 2)
    found = [tp.evaluate(LAST, T=sparse, A=matrix, format=format) for _ in range(2)]
    for each in found:
        dense = each.to_numpy() if isinstance(each, tp.Tensor) else np.asarray(each)
        np.testing.assert_allclose(dense, np.einsum("ijk,ip->jkp", array, matrix))
        if format is not None:
            tp.check(each)
    if isinstance(found[0], tp.Tensor):  # each has memory of its own
        values = [each.data.values for each in found]
        assert not np.shares_memory(*values)


def test_the_conversion_is_told() -> None:
    sparse = tp.tensor(np.ones((30, 30, 30)), format=tp.CSF(3))
    told = tp.explain(LAST, T=sparse, A=np.ones((30, 2)), frontier_budget=0)
    (line,) = re.findall("gather    .*", told)
    assert line == (
        "gather    Y_1 from Y: the result is wanted as ssd: blocks of the array where T has "
        "entries, in order, O(size); no copy where all of it is stored"
    )


NOT_ALONE = (
    "Y[j,k,p] = T[i,j,k] * A[i,p] + T[i,j,k] * B[i,p]",
    "Y[j,k,p] = T[i,j,k] * S[j,k] * A[i,p]",
    "Y[j,k,p] = T[i,i,k] * A[j,p]",
)


@pytest.mark.parametrize("text", NOT_ALONE)
def test_no_array_where_no_operand_says_alone_what_is_stored(text: str) -> None:
    known = problem(text, {"T": "sss", "S": "ss", "A": "dd", "B": "dd"}, "ssd")
    assert storing_alone(known) is None


@pytest.mark.parametrize("result", ["ssd", "dsd", "sdd", "ssd:1,0,2"])
def test_blocks_of_stored_zeros_are_stored(result: str) -> None:
    """As a kernel that appends them stores them, and values may be computed again."""
    rng = np.random.default_rng(1)
    array = np.where(rng.random((20, 80, 80)) < 0.2, rng.random((20, 80, 80)), 0.0)
    factor = rng.random((20, 8))
    factor[:16] = 0.0
    given = {"T": tp.tensor(array, format="sss"), "A": factor}
    found = tp.evaluate(LAST, given, format=result)
    assert "gather" in tp.explain(LAST, given, format=result, frontier_budget=0)
    order = "reorder(j,k,i,p)" if result[-1] == "d" else "reorder(k,j,i,p)"
    assert found.nnz == tp.evaluate(LAST, given, format=result, schedule=order).nnz
    kernel = tp.compile(LAST, given, Y=Format.parse(result))
    again = kernel.compute(found, **given)
    np.testing.assert_array_equal(again.to_numpy(), found.to_numpy())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_meets_stored_zeros(value: float) -> None:
    """A temporary's blocks of zeros are no gaps: times nan they are nan."""
    rng = np.random.default_rng(2)
    array = np.where(rng.random((40, 40, 40)) < 0.5, rng.random((40, 40, 40)), 0.0)
    array[:, 7, ::3] = 0.0
    second = rng.random((40, 16))
    second[7] = value
    given = {"T": tp.tensor(array, format="sss"), "A": np.zeros((40, 16)), "B": second}
    text = "Y[k,r,q] = T[i,j,k] * A[i,r] * B[j,q]"
    assert "gather    T_1" in tp.explain(text, given, frontier_budget=0)
    found = tp.evaluate(text, given).to_numpy()
    met = (array[:, 7] != 0).any(axis=0)
    np.testing.assert_array_equal(np.isnan(found), met[:, None, None] | np.zeros((16, 16), bool))
