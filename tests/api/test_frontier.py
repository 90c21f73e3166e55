"""`tp.frontier`: what it returns, how it refuses, and that its schedules compute the result."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.calls.kernels.draft import CompileArguments, draft
from taco_py.compiler.asymptotic.frontier_search import frontier as search
from taco_py.compiler.schedule.commands import Precompute
from taco_py.report.explanation.estimates import with_estimates

TEXT = "A[i,j] = B[i,k] * C[k,j]"


def test_what_a_frontier_tells() -> None:
    found = tp.frontier(TEXT, B=tp.CSR, C=tp.CSR)
    assert isinstance(found, tp.Frontier)
    assert (found.universe, len(found), found.complete) == (96, 12, True)
    assert str(found[0].cost) == "Σ over {(i,k,j) | B[i,k] ∧ C[k,j]}"
    assert found[0].schedule == tp.Schedule.parse("reorder(i,k,j)")
    assert "forall k" in str(found[0])
    assert "after domination  12" in found.explain()


def test_formats_by_name_or_letters_dense_where_left_out() -> None:
    texts = [
        [str(c) for c in tp.frontier("a[i] = B[i,j] * c[j]", *given, **named)]
        for given, named in (
            ((), {"B": tp.CSR}),
            ((), {"B": "ds", "c": "d"}),
            (({"B": tp.DCSR},), {}),
        )
    ]
    assert texts[0] == texts[1] == texts[2]
    assert len(tp.frontier("a[i] = B[i,j] * c[j]")) == 2


def test_the_budget_ends_the_search() -> None:
    found = tp.frontier("A[i,j] = B[i,k] * C[k,l] * D[j,l]", B="ds", C="ds", schedule_budget=0)
    assert not found.complete
    assert found.seen == 1
    assert len(found) > 0
    assert "the budget ended  after 1 of these" in found.explain()


def test_what_there_was_no_time_to_estimate_comes_last() -> None:
    drafted = draft(TEXT, CompileArguments({"A": tp.CSR, "B": tp.CSR, "C": tp.CSR}))
    formats = {name: operand.type.format for name, operand in drafted.operands.items()}
    found = search(drafted.assignment, formats)
    cut = with_estimates(found, drafted.operands, drafted.request, until=0.0)
    estimates = [candidate.estimate for candidate in cut]
    assert cut.late == estimates.count(None) > 0
    assert estimates[0] is not None
    assert f"not estimated     {cut.late} of these, for lack of time" in cut.explain()
    assert tp.frontier(TEXT, B=tp.CSR, C=tp.CSR).late == 0


REFUSALS: tuple[tuple[str, dict[str, Any], type[Exception], str], ...] = (
    ("a[i] = B[i,j] * c[j]", {"X": "s"}, tp.OperandError, "does not use"),
    ("a[i] = B[i,j] * c[j]", {"B": "d"}, tp.FormatError, "2 levels"),
    ("a[i] = B[i,j] * c[j]", {"schedule_budget": "1"}, tp.ScheduleError, "seconds"),
    ("a[i] = B[i,j] * c[j]", {"scope": "some"}, tp.ScheduleError, "all"),
    ("a[i] = B[i,j] * c[j]", {"scope": ["all"]}, tp.ScheduleError, "all"),
    ("a[i] = B[i,i]", {"B": "ds"}, tp.NotationError, "diagonal"),
)


@pytest.mark.parametrize(("text", "arguments", "error", "message"), REFUSALS)
def test_refusals(
    text: str, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        tp.frontier(text, **arguments)


def random(rng: np.random.Generator, rows: int, columns: int) -> Any:
    return sp.random_array((rows, columns), density=0.3, format="csr", rng=rng)


PRODUCTS = (
    ("A[i,j] = B[i,k] * C[k,j]", "ik,kj->ij"),
    ("A[i,j] = B[i,k] * C[k,l] * D[j,l]", "ik,kl,jl->ij"),
    ("A[i,j] = B[i,k] * C[j,k] * D[j,k]", "ik,jk,jk->ij"),
)


@pytest.mark.parametrize(("text", "subscripts"), PRODUCTS)
def test_schedules_of_the_frontier_compute_the_result(text: str, subscripts: str) -> None:
    rng = np.random.default_rng(5)
    names = "BCD"[: subscripts.count(",") + 1]
    operands = {name: random(rng, 9, 9) for name in names}
    expected = np.einsum(subscripts, *(operand.toarray() for operand in operands.values()))
    found = tp.frontier(text, dict.fromkeys(names, tp.CSR))
    runs = list(dict.fromkeys(c.kernels for c in found if c.kernels is not None))
    assert len(runs) > 1
    for kernels in runs[:: max(1, len(runs) // 4)]:
        known = dict(operands)
        for kernel in kernels:
            used = {n: known[n] for n in known if n + "[" in str(kernel)}
            target = kernel.assignment.target.tensor
            written = str(kernel).partition(" with ")[0]
            known[target] = tp.evaluate(written, used, schedule=kernel.schedule)
        result = known["A"]
        np.testing.assert_allclose(result.toarray() if sp.issparse(result) else result, expected)


FUSED: tuple[tuple[str, dict[str, tp.Format], str, tuple[int, int]], ...] = (
    # (expression, formats, einsum, how many have a schedule of how many with loops of their own)
    ("A[i,j] = B[i,k] * C[k,l] * D[l,j]", dict.fromkeys("BCD", tp.CSR), "ik,kl,lj->ij", (4, 4)),
    ("a[i] = B[i,j] * C[j,k] * d[k]", dict.fromkeys("BC", tp.CSR), "ij,jk,k->i", (1, 1)),
    ("D[i,j] = S[i,j] * U[i,k] * V[k,j]", {"S": tp.CSR}, "ij,ik,kj->ij", (22, 26)),
)


@pytest.mark.parametrize(("text", "formats", "subscripts", "counts"), FUSED)
def test_fused_schedules_are_commands_that_lead_to_their_loops(
    text: str, formats: dict[str, tp.Format], subscripts: str, counts: tuple[int, int]
) -> None:
    found = tp.frontier(text, formats, schedule_budget=60)
    fused = {c.statement: c for c in found if c.kernels is None}
    told = [c for c in fused.values() if c.schedule is not None]
    assert (len(told), len(fused)) == counts
    assert all(c.estimate is not None and c.estimate > 0 for c in fused.values())
    rng = np.random.default_rng(3)
    names = [part.partition("[")[0] for part in text.partition(" = ")[2].split(" * ")]
    orders = map(len, subscripts.partition("->")[0].split(","))
    dense = {
        n: rng.random((7,) * o) * (rng.random((7,) * o) < 0.4)
        for n, o in zip(names, orders, strict=True)
    }
    given = {n: sp.csr_array(a) if n in formats else a for n, a in dense.items()}
    expected = np.einsum(subscripts, *dense.values())
    for candidate in told[:1] + told[1:][-1:]:
        built = tp.schedule(text, **given).apply(str(candidate.schedule))
        assert "precompute" in str(built)
        result = tp.evaluate(text, given, schedule=candidate.schedule)
        result = result if isinstance(result, np.ndarray) else result.toarray()
        np.testing.assert_allclose(result, expected)


def test_loops_that_commands_cannot_make_have_no_schedule() -> None:
    """A maker and a reader that come to a workspace's elements in different orders."""
    found = tp.frontier("D[i,j] = S[i,j] * U[i,k] * V[k,j]", S=tp.CSR)
    assert any(c.schedule is None for c in found if c.kernels is None)


REPLAYED: tuple[tuple[str, dict[str, tp.Format], int], ...] = (
    # (expression, formats, how many different loops have a schedule)
    ("y[i] = A[i,j] * B[j,k] * x[k]", dict.fromkeys("AB", tp.CSR), 4),
    ("y[i] = (A[i,j] + B[i,j]) * x[j]", dict.fromkeys("AB", tp.CSR), 5),
    ("y[i] = sum(j, A[i,j]) / x[i]", {"A": tp.CSR}, 1),
    ("A[i,j] = B[i,k] * C[k,j]", dict.fromkeys("BC", tp.CSR), 4),
)


@pytest.mark.parametrize(("text", "formats", "count"), REPLAYED)
def test_a_schedule_is_the_whole_assignments_or_none(
    text: str, formats: dict[str, tp.Format], count: int
) -> None:
    """With the same loops again, workspaces included, also where several kernels are the same."""
    found = {c.statement: c for c in tp.frontier(text, formats)}
    told = {s: c.schedule for s, c in found.items() if c.schedule is not None}
    assert len(told) == count
    given = {**{name: tp.dense(n) for name, n in (("A", 2), ("B", 2), ("C", 2), ("x", 1))}}
    used = {name: form for name, form in given.items() if f"{name}[" in text.partition("=")[2]}
    for statement, schedule in told.items():
        built = tp.schedule(text, **used).apply(schedule)
        made = sum(isinstance(c, Precompute) for c in built.schedule.commands)
        assert made == str(statement).count("Where(")


def test_the_cheapest_schedule_comes_first() -> None:
    found = tp.frontier("y[i] = A[i,j] + B[i,j]", A=tp.CSR, B=tp.CSR)
    estimates = [c.estimate for c in found]
    assert None not in estimates
    assert estimates == sorted(estimates, key=float)  # type: ignore[arg-type]
    assert estimates[0] < estimates[-1]  # type: ignore[operator]


def test_a_listing_that_was_cut_short_says_what_its_numbers_are_of() -> None:
    told = tp.frontier("A[i,j] = B[i,k] * C[k,j]", B=tp.CSR, C=tp.CSR, schedule_budget=0).explain()
    assert "  with protocols    16, of those looked at" in told
    assert ", of those looked at" not in tp.frontier(TEXT, B=tp.CSR, C=tp.CSR).explain()


def test_schedules_of_a_tensor_that_is_read_twice_run_over_copies_of_one_access() -> None:
    matrix = sp.random_array((12, 12), density=0.3, format="csr", rng=np.random.default_rng(4))
    text = "D[i,l] = A[i,j] * A[j,k] * A[k,l]"
    schedule = "reorder(k,j,l,i), precompute(A(j,k)*A(k,l),{j,l},{j,l},w)"
    found = tp.evaluate(text, A=matrix, format="dd", schedule=schedule)
    np.testing.assert_allclose(found, (matrix @ matrix @ matrix).toarray())


def test_kernels_have_the_texts_that_evaluate_takes() -> None:
    found = tp.frontier("y[i] = A[i,j] * B[j,k] * x[k]", A=tp.CSR, B=tp.CSR, x=tp.dense(1))
    kernels = max((c.kernels for c in found if c.kernels is not None), key=len)
    assert len(kernels) == 2
    values: dict[str, Any] = {"A": random(np.random.default_rng(5), 4, 4), "x": np.ones(4)}
    values["B"] = values["A"]
    for kernel in kernels:
        read = {name: values[name] for name in kernel.operands}
        target = kernel.assignment.target.tensor
        values[target] = tp.evaluate(kernel.text, read, schedule=kernel.schedule)
    np.testing.assert_allclose(values["y"], values["A"] @ (values["A"] @ values["x"]))


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    "text", ["D[i,j] = A[i,k] * B[k,l] * C[l,j]", "D[i,j] = A[i,j] + B[i,j] + C[i,j]"]
)
def test_schedules_are_those_that_a_call_takes(text: str) -> None:
    """A sparse result has fewer than a dense one, which has no entries to leave out."""
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {
        name: sp.random_array((12, 12), density=0.2, format="csr", rng=rng) for name in "ABC"
    }
    expected = tp.evaluate_dense(text, given)
    counts = []
    for wanted in ({}, {"D": tp.dense(2)}):
        found = {c.schedule for c in tp.frontier(text, given, **wanted)} - {None}
        counts.append(len(found))
        for schedule in sorted(found, key=str):
            result: Any = tp.evaluate(text, given, format=wanted.get("D"), schedule=schedule)
            result = result.toarray() if sp.issparse(result) else result
            np.testing.assert_allclose(result, expected)
    assert counts[0] < counts[1]


def test_it_is_printed_in_a_line() -> None:
    found = tp.frontier(TEXT, B=tp.CSR, C=tp.CSR)
    assert re.fullmatch(r"<Frontier: 12 of 96 schedules of \S.*>", repr(found))
    cut = tp.frontier("A[i,j] = B[i,k] * C[k,l] * D[j,l]", schedule_budget=0)
    assert repr(cut).endswith(", not all looked at>")
    several = repr(found[:2])
    assert several.startswith(
        "(<Candidate forall i; forall k; forall j; A[i,j] += B[i,k] * C[k,j]: Σ"
    )
    assert repr(found[0].kernels).startswith("(<ScheduledKernel A[i,j] = sum(k, B[i,k]")


@pytest.mark.parametrize("text", ["y[i] = max(j, A[i,j] * x[j])", "y[i] min= A[i,j]"])
def test_other_reductions_are_refused(text: str) -> None:
    with pytest.raises(tp.ScheduleError, match="Expected sums alone") as found:
        tp.frontier(text, A=tp.CSR)
    assert "^^^" in str(found.value)


def test_masks_are_operands() -> None:
    """What a mask leaves out is not computed: its entries bound the loops of a schedule."""
    text = "C[i,j] = A[i,k] * B[k,j]"
    found = tp.frontier(text, A=tp.CSR, B=tp.CSR, mask="csr", schedule_budget=20)
    assert any("mask[i,j]" in str(each.cost) for each in found)
    truths = tp.frontier(text, A=tp.CSR, B=tp.CSR, semiring="or_and", schedule_budget=20)
    assert len(truths) > 0
    with pytest.raises(tp.ScheduleError, match="found a reduction by min"):
        tp.frontier(text, A=tp.CSR, B=tp.CSR, semiring="min_plus")


def test_subscripts_ask_for_operands() -> None:
    found = tp.frontier("y[i] = x[i+k] * w[k]", x="d", w="d")
    assert "x_at_i_k[k,i]" in repr(found)
    with pytest.raises(tp.DimensionError, match="taken to compile for"):
        tp.frontier("y[i] = x[i-1]")
    assert len(tp.frontier("y[i] = x[i-1] * w[i]", border="fill", shape=9)) > 0
