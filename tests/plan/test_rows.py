"""Rows that are looked up instead of merged: where that is chosen, and that numbers agree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.arguments.operands import bind_operands
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.compiler.order.loop_costs import LoopCosts
from taco_py.compiler.order.orders import best_order, order_cost
from taco_py.compiler.schedule.commands import Precompute
from taco_py.planner.ir.goal import Request, real_statistics
from taco_py.planner.make import make_plan
from taco_py.tool.inputs import rmat
from tests.machines import planned_for
from tests.problems import operands, plan, problem

TRIANGLES = "s = A[i,j] * B[j,k] * D[i,k]"
MASKED = "C[i,j] = S[i,j] * A[i,k] * B[k,j]"


def rows_of(text: str, formats: Mapping[str, str], **given_: Any) -> dict[str, str]:
    """The operands of the last kernel that are looked up, and along which index."""
    made = plan(problem(text, formats, given_.pop("result", None)), **given_)
    commands = made.kernels[-1].schedule.commands
    rows = [c for c in commands if isinstance(c, Precompute)]
    return {str(c.expression): ",".join(c.indices) for c in rows}


def test_a_row_that_is_merged_again_and_again_is_looked_up() -> None:
    made = plan(problem(TRIANGLES, dict.fromkeys("ABD", "CSR")))
    (kernel,) = made.kernels
    (row,) = (c for c in kernel.schedule.commands if isinstance(c, Precompute))
    (order,) = kernel.schedule.orders
    assert row.indices == (order[-1],)
    assert set(row.expression.indices) == {order[0], order[-1]}
    assert f"where others are walked along {order[-1]}" in kernel.looked_up


@pytest.mark.parametrize(
    "text",
    [
        "y[i] = A[i,j] * B[i,j]",  # merged once for each i
        "C[i,j] = A[i,j] + B[i,j]",
        "y[i] = A[i,j] * x[j]",
        "y[i] = (A[i,k] + B[j,k]) * x[j]",  # a sum is there where one of its terms is
    ],
)
def test_rows_that_are_met_once_or_added_are_merged(text: str) -> None:
    assert not rows_of(text, {"A": "CSR", "B": "CSR"})


def test_each_term_looks_up_rows() -> None:
    made = rows_of("y[i] = S[i,j] * A[i,k] * B[k,j] + z[i]", dict.fromkeys("SAB", "CSR"))
    assert len(made) == 1


def test_what_is_priced_is_what_is_made() -> None:
    """Orders cost what merging costs where rows may not be looked up."""
    whole = problem(MASKED, dict.fromkeys("SAB", "CSR"))
    known = operands(whole, nnz=dict.fromkeys("SAB", 20_000.0))
    (term,) = split_terms(whole.assignment.value)
    stats = real_statistics(whole.assignment, known)
    looked_up, merged = (
        best_order(whole, term, stats, Effort(rows=rows)) for rows in (True, False)
    )
    assert looked_up.cost < merged.cost
    assert merged.cost == pytest.approx(order_cost(whole, term, stats, merged.order))
    made = make_plan(whole.assignment, known, Request(whole.result).as_written)
    assert made.kernels[-1].looked_up == ""


def test_parts_of_a_narrower_type_are_refused() -> None:
    """The product of two entries wraps by itself, unlike an entry."""
    A, D = (sp.csr_array(np.array([[n]], t)) for n, t in ((1, "int64"), (100, "int8")))
    text = "s = A[i,j] * B[j,k] * D[i,k] * E[i,k]"
    given_ = {"A": A, "B": A, "D": D, "E": D}
    with pytest.raises(tp.ScheduleError, match="would wrap elsewhere"):
        tp.evaluate(text, given_, schedule="precompute(D(i,k)*E(i,k),k,k,w)")
    one = tp.evaluate(text, given_, schedule="precompute(D(i,k),k,k,w)")
    assert int(one) == 10_000


def test_loops_of_the_text_stay() -> None:
    A = sp.random_array((50, 50), density=0.1, format="csr", rng=np.random.default_rng(1))
    for schedule in ("reorder(i,j,k)", "parallelize(i,CPUThread,Ordered)"):
        told = tp.explain(TRIANGLES, A=A, B=A, D=A, schedule=schedule, frontier_budget=0)
        assert "looks up" not in told
    told = tp.explain(TRIANGLES, A=A, B=A, D=A, frontier_budget=0)
    assert "looks up    " in told and "marked row" in told


def test_expected_steps_are_those_of_a_graph_with_hubs() -> None:
    """Loops come to long rows more often."""
    A = rmat(11).astype(float).tocsr()
    whole = problem(TRIANGLES, dict.fromkeys("ABD", "CSR"))
    known = {n: g.operand for n, g in bind_operands(dict.fromkeys("ABD", A)).items()}
    (term,) = split_terms(whole.assignment.value)
    costs = LoopCosts(whole, term, real_statistics(whole.assignment, known))
    (met,) = costs.meetings(("i", "j", "k"))
    rows = np.diff(A.indptr).astype(float)
    others = float(rows[A.indices].sum())
    merged = NOMINAL.loops.merge_steps * (others + float((rows**2).sum()))
    written = (NOMINAL.loops.row_lookup_entry_steps + NOMINAL.loops.row_lookup_loop_steps) * A.nnz
    assert met.merged == pytest.approx(merged, rel=0.1)
    assert NOMINAL.loops.row_lookup_steps * others + written < met.cost < merged / 3
    assert met.lookup is not None and met.lookup.access.tensor == "D"


# ---------------------------------------------------------------- numbers


@pytest.fixture
def always() -> Iterator[None]:
    """Whatever it costs."""
    free = ("row_lookup_steps", "row_lookup_entry_steps", "misprediction_steps")
    with planned_for(**dict.fromkeys(free, 0.0)):
        yield


TEXTS = (
    TRIANGLES,
    MASKED,
    "C[i,j] = S[i,j] * A[i,k] * B[j,k]",
    "y[i] = S[i,j] * A[i,k] * B[k,j] * x[j]",
    "y[j] = S[i,j] * A[i,k] * B[k,j] / 2",
    "C[i,j] = S[i,j] * sum(k, A[i,k] * B[k,j])",
    "C[i,l] = A[i,j] * B[j,k] * D[i,k] * X[k,l]",
    "C[i,l] = A[i,j] * B[j,k] * D[i,k] * A[k,l]",
    "C[i,j] = S[i,j] * A[i,k] * B[k,l] * D[l,j]",
    "y[i] = S[i,j] * A[i,k] * B[k,j] + D[i,j] * x[j]",
    "C[i,j] = S[i,j] * A[i,k] * B[j,k] + D[i,j]",
    "C[i,j] = S[i,j] * A[i,k] * B[j,k] - D[i,k] * A[i,j] * B[j,k]",
    "C[i,j] = S[i,j] * A[i,k] * B[j,k] + S[i,j] * D[i,k] * B[j,k]",
)
FORMS = ("ds", "ds:1,0", "ss", "ss:1,0", "uq")
DTYPES = ("int8", "int64", "float32", "float64", "complex128", "bool")


@pytest.mark.usefixtures("always")
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_results_are_those_of_the_text(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(TEXTS))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    plain = st.sampled_from(DTYPES[:4] if "/" in text or " - " in text else DTYPES)
    arrays: dict[str, Any] = {}
    stored: dict[str, Any] = {}
    for name in dict.fromkeys(c for c in text.split(" = ")[1] if c in "ABDSXx"):
        shape = (6,) if name == "x" else (6, 6)
        entries = rng.integers(1, 3, shape) * (rng.random(shape) < 0.5)
        arrays[name] = stored[name] = entries.astype(data.draw(plain))
        if name not in "Xx":
            stored[name] = tp.tensor(arrays[name], format=data.draw(st.sampled_from(FORMS)))
    order = text.split(" = ")[0].count(",") + 1 if "[" in text.split(" = ")[0] else 0
    wanted = tp.dense(order) if data.draw(st.booleans()) else None
    threads = data.draw(st.integers(1, 2))
    expected = np.asarray(tp.evaluate_dense(text, arrays))
    found = tp.evaluate(text, stored, format=wanted, threads=threads)
    found = found.to_numpy() if isinstance(found, tp.Tensor) else np.asarray(found)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("looked_up", ["D(i,k)", None])
def test_what_is_not_stored_is_zero_beside_an_infinity_and_a_stored_zero_is_not(
    looked_up: str | None,
) -> None:
    rng = np.random.default_rng(4)
    A = sp.random_array((90, 90), density=0.1, format="csr", rng=rng)
    B, D = A.copy(), A.copy()
    B.data[3] = np.inf
    column = int(B.indices[3])
    asked = looked_up and f"reorder(i,j,k), precompute({looked_up},k,k,w)"
    for zero in (False, True):
        here = D.indices == column
        D.data[here] = 0.0 if zero else 1.0
        free = D.copy() if zero else sp.csr_array(np.where(np.arange(90) == column, 0, D.toarray()))
        found = tp.evaluate(TRIANGLES, A=A, B=B, D=free, schedule=asked)
        told = tp.explain(TRIANGLES, A=A, B=B, D=free, schedule=asked, frontier_budget=0)
        assert "marked row" in told
        assert bool(np.isnan(found)) == zero
        assert not np.isinf(found)


def test_a_masked_product_stores_what_its_loops_do() -> None:
    """No more and no less than where rows are merged, in the same order."""
    rng = np.random.default_rng(5)
    S, A, B = (sp.random_array((40, 40), density=0.1, format="csr", rng=rng) for _ in range(3))
    found = tp.evaluate(MASKED, S=S, A=A, B=B)
    assert "looks up" in tp.explain(MASKED, S=S, A=A, B=B, frontier_budget=0)
    merged = tp.evaluate(MASKED, S=S, A=A, B=B, schedule="reorder(i,k,j)")
    np.testing.assert_array_equal(found.indptr, merged.indptr)
    np.testing.assert_array_equal(found.indices, merged.indices)
    np.testing.assert_allclose(found.data, merged.data)


def test_rows_are_clean_for_the_next() -> None:
    """Each row is looked up among its own entries alone, by any number of threads."""
    A = sp.csr_array(np.tril(np.ones((300, 300))))
    D = sp.csr_array(np.eye(300))
    expected = ((A @ A).multiply(D)).sum()
    for threads in (1, 2):
        found = tp.evaluate("s = A[i,j] * B[j,k] * D[i,k]", A=A, B=A, D=D, threads=threads)
        assert float(found) == expected


def test_a_temporary_that_looks_up_rows_is_named_like_any_other() -> None:
    """Kernels that nobody named have other names for what they read."""
    rng = np.random.default_rng(6)
    S, A, B = (sp.random_array((60, 60), density=0.1, format="csr", rng=rng) for _ in range(3))
    X = rng.random((60, 4))
    text = "Y[i,l] = sum(j, sum(k, S[i,j] * A[i,k] * B[k,j]) * X[j,l])"
    expected = (S.multiply(A @ B)) @ X
    np.testing.assert_allclose(tp.evaluate(text, S=S, A=A, B=B, X=X), expected)
    told = tp.explain(text, S=S, A=A, B=B, X=X, frontier_budget=0)
    assert "looks up" in told


def test_rows_of_a_vast_index_are_merged() -> None:
    size = 1 << 40
    coords = np.array([[0, 5], [0, size - 1], [1, 7]])
    made = [tp.Tensor.from_coo(coords, np.ones(3), (2, size), format="ss") for _ in range(2)]
    S = tp.Tensor.from_coo(([0, 1], [0, 1]), np.ones(2), (2, 2), format="ss")
    found = tp.evaluate("s = S[i,j] * A[i,k] * B[j,k]", S=S, A=made[0], B=made[1])
    assert float(found) == 3.0


@pytest.mark.parametrize("power", [22, 25, 40])
@pytest.mark.parametrize(
    "text", ["D[i,k] = A[i,j] * B[k,j]", "s = A[i,j] * B[i,j]", "D[i,k] = A[i,j] * B[i,j] * x[k,i]"]
)
def test_no_copy_has_a_place_for_each_of_far_more_columns(text: str, power: int) -> None:
    """Whose pointers would take longer than all the rest."""
    rng, size = np.random.default_rng(power), 1 << power
    columns = np.sort(rng.choice(size, 60, replace=False))
    dense: dict[str, Any] = {"x": rng.random((4, 5))}
    sparse: dict[str, Any] = {"x": dense["x"]}
    for name in "AB":
        dense[name] = rng.random((5, 60)) * (rng.random((5, 60)) < 0.5)
        rows, places = dense[name].nonzero()
        coords = [rows, columns[places]]
        sparse[name] = tp.Tensor.from_coo(coords, dense[name][rows, places], (5, size), tp.CSR)
    given_ = {name: sparse[name] for name in sparse if f"{name}[" in text}
    told = tp.explain(text, given_, frontier_budget=0)
    assert not re.search("^convert .*-> (CSC|'ds:1,0')", told, re.MULTILINE)
    found = tp.evaluate(text, given_)
    found = found.to_numpy() if isinstance(found, tp.Tensor) else found
    np.testing.assert_allclose(found, tp.evaluate_dense(text, {n: dense[n] for n in given_}))


def test_the_schedule_that_ran_is_one_to_give() -> None:
    rng = np.random.default_rng(7)
    A = sp.random_array((200, 200), density=0.05, format="csr", rng=rng)
    for text, names in ((TRIANGLES, "ABD"), (MASKED, "SAB")):
        given_ = dict.fromkeys(names, A)
        kernel = tp.compile(text, given_)
        assert "_row)" in str(kernel.schedule)
        again = tp.compile(text, given_, schedule=kernel.schedule)
        assert again.schedule == kernel.schedule
        assert again.source == kernel.source
