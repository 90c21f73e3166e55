"""Prices of plans as they are: tiles of coordinates, copies, shared loops, ways with parameters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from taco_py.compiler.cost.machine import NOMINAL
from taco_py.compiler.schedule.commands import Make
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.formats import COO, CSC, CSR, Format
from taco_py.planner.ir.goal import statistics
from taco_py.planner.ir.nodes import Operand, Reformat
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import Options
from taco_py.planner.plan_price import PricedFor
from taco_py.planner.tile_windows import count_windows, known_order, tiled_graph
from taco_py.report.limits.kernel_bound import Bound, Limit
from taco_py.tuning.space.plan_rank import rank
from tests.problems import operands, plan, problem

SIZES = {"i": 1000, "j": 640, "k": 24}
SAMPLED = "D[i,j] = S[i,j] * U[i,k] * V[j,k]"
NNZ = {"S": 6400.0}


def scheduled(text: str, commands: str, threads: int = 1) -> tuple[Plan, PricedFor]:
    """A plan with loops as commands say, and prices for its operands."""
    whole = problem(text, {"S": "CSR"})
    made = plan(whole, SIZES, NNZ, Options(schedule=Schedule.parse(commands)))
    return made, PricedFor(operands(whole, SIZES, NNZ), NOMINAL, threads)


WINDOWS = (
    # (commands, searches for the entries of a tile, the order in which indices are known)
    ("split(j,j0,j1,64), reorder(i,j0,j1,k)", 1000 * 10, "ijk"),
    # with those of the loop that gathers a row workspace
    ("split(j,j0,j1,64), reorder(i,j0,k,j1)", 1000 * 10 * (24 + 1), "ikj"),
    ("split(j,j0,j1,64), reorder(j0,i,k,j1)", 1000 * 10 * 24, "ikj"),
    ("split(j,j0,j1,16), reorder(j0,i,j1,k)", 1000 * 40, "ijk"),
    ("split(i,i0,i1,8), reorder(i0,i1,j,k)", 0, "ijk"),
)


@pytest.mark.parametrize(("commands", "searches", "order"), WINDOWS)
def test_entries_of_a_tile_are_looked_for_each_time(
    commands: str, searches: int, order: str
) -> None:
    made, _ = scheduled(SAMPLED, commands)
    (kernel,) = made.kernels
    graph = tiled_graph(kernel)
    assert graph is not None
    stats = statistics(kernel.problem.assignment, dict(made.program.facts))
    assert count_windows(graph, stats) == pytest.approx(searches)
    assert known_order(graph, "kij") == tuple(order)


def test_sampled_products_are_ordered_by_the_searches_of_their_loops() -> None:
    commands = [row[0] for row in WINDOWS]
    prices = [priced.plan(made) for made, priced in (scheduled(SAMPLED, c) for c in commands)]
    whole, priced = scheduled(SAMPLED, "reorder(i,j,k)")
    assert priced.plan(whole) <= min(prices)
    assert prices[0] < prices[3] < prices[1]


COPIES = (
    # (source, copy, what is done with each entry)
    (CSR, CSC, NOMINAL.copies.transposed_entry_steps),
    (COO(2), CSR, NOMINAL.copies.transposed_entry_steps),
    (COO(2), Format.parse("ss"), NOMINAL.copies.transposed_entry_steps),
    (COO(3), Format.parse("sss:2,1,0"), NOMINAL.copies.sorted_entry_steps),
    (CSR, Format.parse("ss"), NOMINAL.copies.folded_entry_steps),
)


@pytest.mark.parametrize(("source", "form", "steps"), COPIES, ids=str)
def test_copies_cost_what_their_conversions_do(source: Format, form: Format, steps: float) -> None:
    made, priced = scheduled(SAMPLED, "reorder(i,j,k)")
    type = replace(made.program.facts["S"].type, format=source)
    entries, shape = 100_000.0, (10,) * source.order
    facts = {**made.program.facts, "S": Operand(type, shape, entries)}
    program = replace(made.program, steps=(Reformat("S_1", "S", form, "", "int32"),), facts=facts)
    copy = replace(made, program=replace(program, results=()))
    given = replace(priced, operands={"S": facts["S"]})
    seconds = given.around_kernels(copy)
    calls, moved = NOMINAL.calls, entries * steps * NOMINAL.step_seconds
    is_short = source is CSR
    call = calls.conversion_seconds if is_short else calls.distribution_seconds
    assert seconds == pytest.approx(call + moved, rel=0.01)


def test_a_copy_of_a_sparse_result_is_of_the_entries_that_are_expected() -> None:
    """Not of all its elements: here they are those of S."""
    made, priced = scheduled(SAMPLED, "reorder(j,i,k)")
    assert isinstance(made.steps[-1], Reformat)
    facts = priced.facts_of(made)
    assert facts[made.steps[-1].source].nnz <= 6400.0
    assert facts[made.program.result].nnz <= 6400.0


def test_threads_that_come_together_in_each_round_gain_nothing() -> None:
    text, given = "z[j] = sum(i, A[i,j])", {"i": 100_000, "j": 8}
    whole = problem(text)
    outer, inner = (
        plan(whole, given, options=Options(schedule=Schedule.parse(commands)))
        for commands in (
            "reorder(i,j), parallelize(i,CPUThread,Temporary)",
            "reorder(i,j), parallelize(j,CPUThread,NoRaces)",
        )
    )
    priced = PricedFor(operands(whole, given), NOMINAL, 2)
    alone = replace(priced, threads=1)
    assert priced.plan(outer) < alone.plan(outer)
    assert priced.plan(inner) > alone.plan(inner) + 99_999 * NOMINAL.units.awake_seconds / 2


def test_tiles_cost_by_their_parameters() -> None:
    """Columns that do not fill a tile, and batches of products of single elements."""
    whole = problem("C[i,j] = A[i,k] * B[k,j]")
    made = plan(whole, {"i": 3000, "k": 3000, "j": 8})
    priced = PricedFor(operands(whole, {"i": 3000, "k": 3000, "j": 8}), NOMINAL, 1)
    (kernel,) = made.kernels
    prices = [
        priced.kernel(
            replace(kernel, schedule=kernel.schedule.with_way(Make("tiles", (width,)))),
            made.program.facts,
        )
        for width in (8, 16, 32)
    ]
    assert prices == sorted(prices) and prices[2] > 1.5 * prices[0]


def test_plans_are_ranked_by_price_and_by_all_that_they_wait_for() -> None:
    limits = tuple(
        Limit(name, seconds, 1.0, 1.0, "") for name, seconds in (("L1", 2.0), ("L2", 1.0))
    )
    bound = Bound(2.0, "L1", "", 0.0, 0.0, limits)
    assert rank(0.5, bound) == (3.5, 2.0)
