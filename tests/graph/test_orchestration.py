"""The kernels that are chosen, by the program, by brute force and by merging."""

from __future__ import annotations

from itertools import combinations
from math import inf, isclose, nan
from random import Random

import pytest

from taco_py.graph.orchestrate.binary_program import solve
from taco_py.graph.orchestrate.candidate_kernels import (
    Candidates,
    Kernel,
    Limits,
    find_candidates,
    make_kernel,
)
from taco_py.graph.orchestrate.choosers import CHOOSERS, choose
from taco_py.graph.orchestrate.dag import Dag, bits, dag_of_edges, make_dag
from taco_py.graph.orchestrate.exact_search import search_exactly
from taco_py.graph.orchestrate.kernel_choice import run_order
from taco_py.graph.orchestrate.orchestrate_graph import orchestrate
from taco_py.graph.orchestrate.partition_search import search_partitions
from taco_py.language.diagnostics.errors import ScheduleError
from tests.graph.random_dags import check_runs, compare, random_dag, random_price


@pytest.mark.parametrize("part", range(5))
def test_the_program_finds_what_brute_force_finds(part: int) -> None:
    again = sum(
        bool(compare(Random(seed), 8)[1].recomputed) for seed in range(8 * part, 8 * part + 8)
    )
    assert again


@pytest.mark.parametrize("seed", range(25))
def test_brute_force_is_the_least_of_all_sets_of_kernels(seed: int) -> None:
    random = Random(seed)
    dag = random_dag(random, 4)
    candidates, price = find_candidates(dag), random_price(random, dag)
    best = inf
    for count in range(1, dag.size + 1):
        for kernels in combinations(candidates.kernels, count):
            order, _ = run_order(kernels)
            if not dag.outputs & ~sum({1 << t for k in order for t in bits(k.outputs)}):
                best = min(best, sum(map(price, kernels)))
    assert isclose(search_exactly(dag, candidates, price).cost, best)


FAN = dag_of_edges(4, [(0, 1), (0, 2), (0, 3)])
"""A cheap primitive whose large value three others read."""


def traffic(kernel: Kernel) -> float:
    """One a launch, ten for each value that moves, a bit for each primitive."""
    moved = (kernel.inputs | kernel.outputs).bit_count()
    return 1 + 10 * moved + 0.1 * kernel.members.bit_count()


def test_a_cheap_primitive_is_computed_again_where_its_value_costs_more() -> None:
    candidates = find_candidates(FAN)
    again = orchestrate(FAN, candidates, traffic)
    assert {kernel.members for kernel in again.kernels} == {0b0011, 0b0101, 0b1001}
    assert again.recomputed == 0b0001 and isclose(again.cost, 33.6)
    once = orchestrate(FAN, candidates, traffic, recompute=False)
    assert not once.recomputed and len(once.kernels) == 4
    assert search_partitions(FAN, candidates, traffic).cost == pytest.approx(once.cost)
    assert "computed again: 0" in str(again)


def test_kernels_that_wait_for_each_other_are_cut_off() -> None:
    """Each of the two cheapest kernels reads what the other writes."""
    dag = dag_of_edges(4, [(0, 3), (1, 2)])
    cheap = {Kernel(0b0101, 0b0010, 0b0101), Kernel(0b1010, 0b0001, 0b1010)}
    alone = [make_kernel(dag, 1 << p, 1 << p) for p in range(4)]
    candidates = Candidates((*cheap, *alone), (), 0, ())
    for recompute, cost in ((True, 5), (False, 7)):
        chosen = orchestrate(
            dag, candidates, lambda k: 1.0 if k in cheap else 3.0, recompute=recompute
        )
        check_runs(dag, chosen)
        assert chosen.statistics.rounds > 1
        assert chosen.cost == pytest.approx(cost)


def chain(size: int) -> Dag:
    """Blocks of ten with a heavy primitive, two branches, and a value that goes past them."""
    arguments: list[tuple[int, ...]] = [(~0,)]
    for p in range(1, size):
        arguments.append((p - 3, p - 4) if p % 10 == 6 else ((p - 2,) if p % 10 == 5 else (p - 1,)))
    heavy = sum(1 << p for p in range(0, size, 10))
    used = {a for read in arguments for a in read}
    outputs = sum(1 << p for p in range(size) if p not in used)
    return make_dag(arguments, outputs, flags={"heavy": heavy})


def test_long_graphs_are_one_program_through_windows() -> None:
    dag = chain(60)
    limits = Limits(states=40)
    candidates = find_candidates(dag, limits)
    assert len(candidates.windows) > 1 and max(w.states for w in candidates.windows) <= 40
    price = random_price(Random(3), dag)
    whole = orchestrate(dag, candidates, price)
    check_runs(dag, whole)
    assert whole.statistics.gap < 1e-9
    parts = orchestrate(dag, candidates, price, most_columns=10)
    check_runs(dag, parts)
    assert "windows" in parts.statistics.method
    greedy = search_partitions(dag, candidates, price)
    check_runs(dag, greedy)
    assert whole.cost <= min(parts.cost, greedy.cost) * (1 + 1e-9)


def test_statistics_are_a_line_of_the_table() -> None:
    line = str(orchestrate(FAN, find_candidates(FAN), traffic).statistics)
    assert line.startswith("orchestrate: 4 primitives → 9 states → 7 candidates (")
    assert line.endswith("gap 0.00%")


def test_without_time_the_first_answer_stays_with_its_gap() -> None:
    chosen = orchestrate(FAN, find_candidates(FAN), traffic, seconds=0.0)
    check_runs(FAN, chosen)
    assert chosen.statistics.gap == 1.0 and chosen.statistics.rounds == 0


def test_a_goal_that_exists_costs_nothing() -> None:
    kernel = Kernel(1, 0, 1)
    assert solve({kernel: 1.0}, 0b1, available=0b1).kernels == ()
    assert solve({}, 0b1).kernels == ()


@pytest.mark.parametrize("name", CHOOSERS)
def test_primitives_that_nothing_makes_are_named(name: str) -> None:
    dag = make_dag([(~0,), (0,)], 0b10, ["exp", "sort"])
    with pytest.raises(ScheduleError, match=r"a kernel that makes .*(1 sort|together)"):
        choose(name, dag, lambda kernel: inf if kernel.members & 0b10 else 1.0)


@pytest.mark.parametrize("name", CHOOSERS)
@pytest.mark.parametrize("wrong", [-1.0, nan])
def test_prices_that_are_none_are_refused(name: str, wrong: float) -> None:
    with pytest.raises(ScheduleError, match="Expected a price of at least 0 for kernel"):
        choose(name, FAN, lambda kernel: wrong)


@pytest.mark.parametrize("name", CHOOSERS)
def test_kernels_that_cost_nothing_can_run(name: str) -> None:
    chosen = choose(name, FAN, lambda kernel: 0.0)
    check_runs(FAN, chosen)
    assert chosen.cost == 0


@pytest.mark.parametrize("name", ["orchestrate", "exact"])
def test_a_primitive_may_have_a_price_in_larger_kernels_alone(name: str) -> None:
    chosen = choose(name, FAN, lambda kernel: inf if kernel.outputs == 1 else traffic(kernel))
    check_runs(FAN, chosen)
    assert chosen.recomputed == 1
    with pytest.raises(ScheduleError, match="makes the results together"):
        choose("once", FAN, lambda kernel: inf if kernel.outputs == 1 else 1.0)


def test_a_chooser_that_is_none_is_refused() -> None:
    with pytest.raises(ScheduleError, match="one of orchestrate, once, partition, greedy, exact"):
        choose("best", FAN, traffic)


def test_the_exact_search_refuses_large_graphs() -> None:
    with pytest.raises(ScheduleError, match="at most 10 primitives for the exact search, found 60"):
        choose("exact", chain(60), traffic)


def test_merging_finds_the_partition_of_a_chain_that_brute_force_finds() -> None:
    """Convolution, norm, activation, convolution, norm: what DeepCuts fuses."""
    dag = make_dag([(~0,), (0,), (1,), (2,), (3,)], 0b10000, flags={"heavy": 0b01001})
    candidates = find_candidates(dag)
    greedy = search_partitions(dag, candidates, traffic)
    exact = search_exactly(dag, candidates, traffic, recompute=False)
    assert greedy.cost == exact.cost and len(greedy.kernels) == 2
