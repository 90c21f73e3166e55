"""Regions for other code generators: composites, annotation, merging, cost."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from taco_py.graph.orchestrate.convexity import contract
from taco_py.graph.orchestrate.dag import Dag, bits, make_dag, mask_of
from taco_py.graph.orchestrate.offload_regions import (
    OffloadCost,
    OffloadRegion,
    OffloadTarget,
    annotate,
    merge_regions,
    partition_graph,
    run_regions,
)
from taco_py.graph.orchestrate.region_patterns import composite, group_composites, parse_pattern
from taco_py.language.diagnostics.errors import NotationError, ScheduleError
from tests.graph.random_dags import random_dag


def supports_all(dag: Dag, primitive: int) -> bool:
    return True


def diamond(n: int) -> Dag:
    """Two branches of 2n operators from one input, and the operator that joins them: 4n + 1."""
    left = [(~0,), *((p,) for p in range(2 * n - 1))]
    right = [(~0,), *((p,) for p in range(2 * n, 4 * n - 1))]
    return make_dag([*left, *right, (2 * n - 1, 4 * n - 1)], 1 << 4 * n)


def headed_diamond(n: int) -> Dag:
    """The diamond with an operator before both branches, of 2n and 2n - 1."""
    left = [(p,) for p in range(2 * n)]
    right = [(0,), *((p,) for p in range(2 * n + 1, 4 * n - 1))]
    return make_dag([(~0,), *left, *right, (2 * n, 4 * n - 1)], 1 << 4 * n)


@pytest.mark.parametrize("graph", [diamond, headed_diamond])
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_the_diamond_is_one_region_or_two_beside_the_host(graph: type, n: int) -> None:
    """The published figure: the host's function and one of 4N + 1 operators; or with a limit below
    that, three functions: the host's, one of 2N + 1 operators and one of 2N."""
    dag: Dag = graph(n)
    for most in (None, 4 * n + 1):
        cost = OffloadCost(lambda m: 1.0, lambda m: 0.0, most_primitives=most)
        whole = partition_graph(dag, [OffloadTarget("npu", (), supports_all, cost)])
        assert [region.members for region in whole.regions] == [dag.all]
    for most in {4 * n, 3 * n + 1, 2 * n + 1}:
        cost = OffloadCost(lambda m: 1.0, lambda m: 0.0, most_primitives=most)
        parts = partition_graph(dag, [OffloadTarget("npu", (), supports_all, cost)])
        sizes = sorted(region.members.bit_count() for region in parts.regions)
        assert sizes == [2 * n, 2 * n + 1]
        assert len(parts.order) == 2


def test_a_branch_on_the_host_splits_the_diamond() -> None:
    """0 → 1 → 3 and 0 → 2 → 3, where the host computes 2: a region of the others is not convex."""
    dag = make_dag([(~0,), (0,), (0,), (1, 2)], 0b1000, ["a", "a", "host", "a"])
    target = OffloadTarget("npu", (), lambda d, p: d.operators[p] == "a")
    found = partition_graph(dag, [target])
    assert [region.members for region in found.regions] == [0b0011, 0b1000]
    assert found.order == (0b0011, 0b0100, 0b1000)
    assert found.region_of(0b0100) is None and found.region_of(0b1000) == found.regions[1]
    wrong = OffloadRegion("npu", 0b1011, ())
    with pytest.raises(ScheduleError, match="0 a → 2 host → 3 a"):
        run_regions(dag, [wrong])


@pytest.mark.parametrize("part", range(5))
def test_regions_are_acyclic_and_maximal_on_random_graphs(part: int) -> None:
    for seed in range(part * 100, part * 100 + 100):
        random = Random(seed)
        dag = random_dag(random, 14)
        able = {name: random.getrandbits(dag.size) for name in "ab"}
        targets = [
            OffloadTarget(n, (), lambda d, p, own=able[n]: bool(own >> p & 1))  # type: ignore[misc]
            for n in "ab"
        ]
        regions = merge_regions(dag, annotate(dag, targets))
        sets = [region.members for region in regions]
        assert contract(dag, sets) is not None
        assert mask_of(p for m in sets for p in bits(m)) == (able["a"] | able["b"]) & dag.live
        for count in (2, 3):
            for chosen in combinations(regions, count):
                if len({region.target for region in chosen}) == 1 and hang_together(dag, chosen):
                    rest = [region.members for region in regions if region not in chosen]
                    assert contract(dag, [*rest, sum(r.members for r in chosen)]) is None


def hang_together(dag: Dag, regions: tuple[OffloadRegion, ...]) -> bool:
    found, left = regions[0].members, list(regions[1:])
    while left:
        near = [r for r in left if dag.reads(r.members) & found or dag.reads(found) & r.members]
        if not near:
            return False
        found |= near[0].members
        left.remove(near[0])
    return True


@pytest.mark.parametrize("seed", range(40))
def test_parts_are_small_and_can_run(seed: int) -> None:
    random = Random(seed)
    dag, most = random_dag(random, 20), random.randint(1, 5)
    cost = OffloadCost(lambda m: random.random(), lambda m: 0.3, most_primitives=most)
    found = partition_graph(dag, [OffloadTarget("npu", (), supports_all, cost)])
    assert all(region.members.bit_count() <= most for region in found.regions)
    assert mask_of(p for members in found.order for p in bits(members)) == dag.all
    assert len(found.decisions) >= len(found.regions)


LAYERS = make_dag(
    [(~0, ~1), (0, ~2), (1,), (2, ~3), (~4, 3), (4,)],
    0b100000,
    ["matmul", "add", "gelu", "matmul", "add", "tanh"],
)


def test_composites_are_found_by_the_order_of_their_table() -> None:
    table = [
        composite("dense_gelu", "gelu(add(matmul(x, w), b))"),
        composite("dense", "add(matmul(x, w), b)", commuting=("add",)),
    ]
    found = group_composites(LAYERS, table)
    assert [(m.pattern, m.members) for m in found] == [("dense_gelu", 7), ("dense", 0b11000)]
    assert found[0].value("x") == ~0 and found[0].value("b") == ~2
    assert found[1].value("x") == 2 and found[1].value("b") == ~4
    without = [composite("dense", "add(matmul(x, w), b)")]
    assert [m.members for m in group_composites(LAYERS, without)] == [0b11]


def test_predicates_and_uses_elsewhere_refuse_a_match() -> None:
    table = [composite("dense", "add(matmul(x, w), b)", lambda dag, match: match.root > 2)]
    assert group_composites(LAYERS, table) == ()
    read_twice = make_dag([(~0, ~1), (0, ~2), (0,)], 0b110, ["matmul", "add", "exp"])
    assert group_composites(read_twice, [composite("dense", "add(matmul(x, w), b)")]) == ()


def test_labels_and_names_are_one_value() -> None:
    dag = make_dag([(~0,), (0,), (0, 1)], 0b100, ["conv", "sigmoid", "mul"])
    for text in ("mul(c := conv(_), sigmoid(c))", "(mul | add)(c := _(x), sigmoid(c))"):
        (match,) = group_composites(dag, [composite("swish", text)])
        assert match.members == 0b111 and match.value("c") == 0
    assert not group_composites(dag, [composite("no", "mul(x, sigmoid(conv(x)))")])
    squares = make_dag([(~0, ~0), (~0, ~1)], 0b11, ["mul", "mul"])
    assert [m.members for m in group_composites(squares, [composite("square", "mul(x, x)")])] == [1]


@pytest.mark.parametrize(
    "text", ["gelu(add(matmul(x, w), b))", "mul((c := conv(x, _)), sigmoid(c))", "(a | b)(_)"]
)
def test_patterns_print_what_parses_back(text: str) -> None:
    assert parse_pattern(str(parse_pattern(text))) == parse_pattern(text)


@pytest.mark.parametrize("text", ["x", "add(", "add(1)", "a.b(x)", "add(x=y)", "(a & b)(x)", ""])
def test_texts_that_are_no_patterns_are_refused(text: str) -> None:
    with pytest.raises(NotationError, match="a pattern of operators, found"):
        parse_pattern(text)


def test_composites_of_one_target_are_never_cut_and_go_to_the_first() -> None:
    dense = composite("dense", "add(matmul(x, w), b)", commuting=("add",))
    cost = OffloadCost(lambda m: 1.0, lambda m: 0.0, most_primitives=3)
    npu = OffloadTarget("npu", (dense,), lambda d, p: d.operators[p] == "gelu", cost)
    host = OffloadTarget("blas", (), lambda d, p: d.operators[p] in ("matmul", "tanh"))
    found = partition_graph(LAYERS, [npu, host])
    assert {(r.target, r.members) for r in found.regions} == {
        ("npu", 0b111), ("npu", 0b11000), ("blas", 0b100000),
    }  # fmt: skip


def test_small_products_stay_on_the_host_and_large_ones_go() -> None:
    """The gain is that of the work; the launch and what is moved cost the same for all sizes."""
    dag = make_dag([(~0, ~1), (~2, ~3)], 0b11, ["matmul", "matmul"])
    sizes = (8, 512)
    cost = OffloadCost(
        gain=lambda m: sum(sizes[p] ** 3 * 1e-9 for p in bits(m)),
        transfer=lambda m: sum(3 * sizes[p] ** 2 * 8e-10 for p in bits(m)),
        launch=5e-6,
    )
    found = partition_graph(dag, [OffloadTarget("blas", (), supports_all, cost)])
    assert [region.members for region in found.regions] == [0b10]
    assert str(found.decisions[0]).startswith("blas {0}: host: saves 5.12e-07 s, launch 5e-06 s")


def test_a_limit_that_holds_nothing_is_refused() -> None:
    with pytest.raises(ScheduleError, match="regions of at least 1 primitive, found 0"):
        OffloadCost(lambda m: 1.0, lambda m: 0.0, most_primitives=0)
