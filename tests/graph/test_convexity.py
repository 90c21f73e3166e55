"""The one predicate for regions, compared with its definition on random graphs."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from random import Random

import pytest

from taco_py.graph.orchestrate.convexity import (
    check_regions,
    contract,
    find_violation,
    is_convex,
)
from taco_py.graph.orchestrate.dag import Dag, bits, dag_of_edges, make_dag, mask_of
from taco_py.language.diagnostics.errors import OperandError, ScheduleError
from tests.graph.random_dags import random_dag

CROSSED = dag_of_edges(4, [(0, 3), (1, 2)])
"""{0, 2} and {1, 3} are convex, but wait for each other."""


def random_regions(random: Random, dag: Dag) -> list[int]:
    count = random.randint(1, 4)
    groups = [random.randrange(-1, count) for _ in range(dag.size)]
    return [mask_of(p for p, g in enumerate(groups) if g == n) for n in range(count)]


def graph_of(dag: Dag, regions: list[int]) -> dict[int, set[int]]:
    """What each group depends on: regions by their place, other primitives by -1 - number."""
    of = {p: n for n, region in enumerate(regions) for p in bits(region)}
    group = [of.get(p, -1 - p) for p in range(dag.size)]
    graph: dict[int, set[int]] = {g: set() for g in group}
    for p in range(dag.size):
        graph[group[p]] |= {group[q] for q in bits(dag.predecessors[p])} - {group[p]}
    return graph


def is_acyclic(graph: dict[int, set[int]]) -> bool:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError:
        return False
    return True


def leaves_and_returns(dag: Dag, region: int) -> bool:
    """Whether some path starts in a region, goes on outside of it, and ends in it."""
    waiting = [q for p in bits(region) for q in bits(dag.successors[p] & ~region)]
    while waiting:
        for q in bits(dag.successors[waiting.pop()]):
            if region >> q & 1:
                return True
            waiting.append(q)
    return False


@pytest.mark.parametrize("part", range(5))
def test_the_predicate_is_its_definition_on_random_graphs(part: int) -> None:
    cyclic = convex = 0
    for seed in range(100 * part, 100 * part + 100):
        random = Random(seed)
        dag = random_dag(random, 12)
        regions = random_regions(random, dag)
        order, violation = contract(dag, regions), find_violation(dag, regions)
        assert (order is not None) == (violation is None) == is_acyclic(graph_of(dag, regions))
        cyclic += violation is not None
        if order is not None:
            check_order(dag, order)
        if violation is not None:
            check_cycle(dag, regions, violation.edges)
        for region in regions:
            own = not leaves_and_returns(dag, region)
            assert is_convex(dag, region) == own == (find_violation(dag, [region]) is None)
            convex += own
    assert cyclic > 10 and convex > 10


def check_order(dag: Dag, order: tuple[int, ...]) -> None:
    done = 0
    for group in order:
        assert not dag.reads(group) & ~done and not group & done
        done |= group
    assert done == dag.all


def check_cycle(dag: Dag, regions: list[int], edges: tuple[tuple[int, int], ...]) -> None:
    """All edges exist; each starts in the group that the one before it ends in."""
    of = {p: n for n, region in enumerate(regions) for p in bits(region)}
    assert len(edges) > 1
    for (_, end), (start, last) in zip(edges, (*edges[1:], edges[0]), strict=True):
        assert dag.successors[start] >> last & 1
        assert of.get(end, -1 - end) == of.get(start, -1 - start) != of.get(last, -1 - last)


def test_regions_that_are_convex_may_wait_for_each_other() -> None:
    regions = [0b0101, 0b1010]
    assert all(is_convex(CROSSED, region) for region in regions)
    violation = find_violation(CROSSED, regions)
    assert violation is not None
    assert str(violation) == "0 op → 3 op … 1 op → 2 op"
    with pytest.raises(ScheduleError, match="regions that do not wait for each other"):
        check_regions(CROSSED, regions)


def test_a_region_that_is_left_and_entered_again_is_refused_with_its_path() -> None:
    dag = make_dag([(~0,), (0,), (1,)], 0b100, ["matmul", "exp", "add"])
    with pytest.raises(ScheduleError, match="a convex region, found the path") as told:
        check_regions(dag, [0b101])
    assert "0 matmul → 1 exp → 2 add" in str(told.value)
    assert "hint: put all primitives of the path into one region" in str(told.value)
    check_regions(dag, [0b011, 0b100])


def test_regions_that_share_a_primitive_are_refused() -> None:
    with pytest.raises(ScheduleError, match="disjoint regions, found 1 op"):
        contract(CROSSED, [0b11, 0b10])


def test_a_graph_prints_itself() -> None:
    dag = make_dag(((~0,), (0,), (0, 1)), 0b100, ("exp", "sum", "add"), {"heavy": 0b10})
    assert str(dag) == "0 exp(x0); 1 sum(0); 2 add(0, 1); outputs 2; heavy 1"


def test_graphs_that_are_none_are_refused() -> None:
    with pytest.raises(OperandError, match="primitive 0 op to read earlier primitives, found 1"):
        make_dag([(1,), ()], 0b10)
    with pytest.raises(OperandError, match="outputs among 1 primitives"):
        make_dag([()], 0b10)
    with pytest.raises(OperandError, match="1 names of operators, found 2"):
        make_dag([()], 0b1, ["a", "b"])
