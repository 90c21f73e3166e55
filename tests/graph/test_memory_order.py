"""Orders of kernels by memory, compared with all orders; buffers that never overlap."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest

from taco_py.graph.orchestrate.candidate_kernels import Kernel, make_kernel
from taco_py.graph.orchestrate.dag import bits, dag_of_edges, make_dag
from taco_py.graph.orchestrate.memory_order import order_by_memory, peak_bytes
from taco_py.language.diagnostics.errors import ScheduleError
from tests.graph.buffer_lifetimes import lifetimes, place_buffers
from tests.graph.random_dags import random_dag


def drawn(seed: int, most: int) -> tuple[list[Kernel], dict[int, int], int]:
    random = Random(seed)
    dag = random_dag(random, most)
    kernels = [make_kernel(dag, 1 << p, 1 << p) for p in range(dag.size)]
    random.shuffle(kernels)
    return kernels, {p: random.choice((0, 1, 8, 64, 100)) for p in range(dag.size)}, dag.outputs


def can_run(kernels: tuple[Kernel, ...] | list[Kernel]) -> bool:
    made = 0
    for kernel in kernels:
        if kernel.inputs & ~made:
            return False
        made |= kernel.outputs
    return True


@pytest.mark.parametrize("seed", range(40))
def test_no_order_holds_less(seed: int) -> None:
    kernels, sizes, results = drawn(seed, 6)
    found = order_by_memory(kernels, sizes, results)
    least = min(peak_bytes(o, sizes, results) for o in permutations(kernels) if can_run(o))
    assert found.is_best and can_run(found.kernels) and set(found.kernels) == set(kernels)
    assert found.peak == peak_bytes(found.kernels, sizes, results) == least


@pytest.mark.parametrize("seed", range(40))
def test_few_states_give_an_order_that_can_run(seed: int) -> None:
    kernels, sizes, results = drawn(seed, 25)
    found = order_by_memory(kernels, sizes, results, most_states=1)
    assert can_run(found.kernels) and sorted(map(str, found.kernels)) == sorted(map(str, kernels))
    assert found.peak == peak_bytes(found.kernels, sizes, results)
    best = order_by_memory(kernels, sizes, results, most_states=5000)
    assert not best.is_best or best.peak <= found.peak


@pytest.mark.parametrize("most_states", [1, 1000])
def test_the_example_of_the_docstring(most_states: int) -> None:
    dag = dag_of_edges(5, [(0, 1), (2, 3), (1, 4), (3, 4)])
    kernels = [make_kernel(dag, 1 << p, 1 << p) for p in (0, 2, 1, 3, 4)]
    sizes = {0: 8, 1: 1, 2: 8, 3: 1, 4: 1}
    assert peak_bytes(kernels, sizes, dag.outputs) == 17
    found = order_by_memory(kernels, sizes, dag.outputs, most_states)
    assert found.peak == 10


@pytest.mark.parametrize("seed", range(40))
def test_values_that_live_together_do_not_overlap(seed: int) -> None:
    kernels, sizes, results = drawn(seed, 25)
    order = order_by_memory(kernels, sizes, results, most_states=50).kernels
    plan = place_buffers(order, sizes, results, alignment=8)
    offsets = dict(plan.offsets)
    alive = lifetimes(order, sizes, results)
    assert set(offsets) == {each.value for each in alive}
    assert set(offsets) == set(range(len(kernels))) - set(bits(results))
    for one in alive:
        assert offsets[one.value] % 8 == 0 and offsets[one.value] + one.size <= plan.size
        for two in alive:
            if one.value < two.value and one.meets(two):
                a, b = offsets[one.value], offsets[two.value]
                assert a + one.size <= b or b + two.size <= a
    step_peak = max(
        (sum(v.size for v in alive if v.first <= s <= v.last) for s in range(len(order))), default=0
    )
    assert step_peak <= plan.size <= plan.apart + 8 * len(alive)


def test_a_chain_needs_two_buffers() -> None:
    dag = make_dag([(~0,), (0,), (1,), (2,)], 0b1000)
    kernels = [make_kernel(dag, 1 << p) for p in range(4)]
    plan = place_buffers(kernels, dict.fromkeys(range(4), 64), dag.outputs)
    assert (dict(plan.offsets), plan.size, plan.apart) == ({0: 0, 1: 64, 2: 0}, 128, 192)


def test_kernels_without_an_order_and_values_without_a_size_are_refused() -> None:
    with pytest.raises(ScheduleError, match="kernels that can run, found"):
        order_by_memory([Kernel(0b1, 0b10, 0b1)], {0: 1})
    with pytest.raises(ScheduleError, match="the bytes of value 0"):
        order_by_memory([Kernel(0b1, 0, 0b1)], {})
