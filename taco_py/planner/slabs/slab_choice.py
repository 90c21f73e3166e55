"""The bytes that a kernel of slabs moves, and the width of slabs that moves the fewest.

    choose_slabs(problem, form, sizes, machine)  →  the graph, its width, its traffic at each memory

Few things are left to choose once a dataflow graph is rewritten: how wide slabs are where they have
the contiguous index. A width whose slabs stay near is better than one whose passes read main memory
again; of these, the widest that leaves slabs for all threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from codegen.records import dataclass
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.dataflow.moved_bytes import (
    Caches,
    Sizes,
    Traffic,
    compulsory,
    count_slabs,
    slab_bytes,
    traffic,
)
from taco_py.compiler.dataflow.nodes import Dataflow, Memory
from taco_py.compiler.dataflow.optimize import Optimized
from taco_py.compiler.dataflow.rewritten_graph import rewritten
from taco_py.compiler.dataflow.slab_form import SlabForm, slab_form
from taco_py.language.problem import Problem

ELEMENT_BYTES = 8
"""Bytes of the elements that steps are priced for."""
FEWEST_SLABS = 16
"""Slabs that threads can share."""
NEAR_BYTES = 1 << 20
"""Bytes of a slab that its passes read again from a cache of the core."""


@dataclass(frozen=True, slots=True)
class SlabChoice:
    """A dataflow graph for sizes of its indices, and what it moves.

    block       elements of a slab along the contiguous index, where slabs have it
    compulsory  bytes that any kernel moves from and to main memory
    """

    optimized: Optimized
    block: int
    sizes: Sizes
    caches: Caches
    before: Traffic
    after: Traffic
    compulsory: float

    @property
    def graph(self) -> Dataflow:
        """Return the graph after all rewrites."""
        return self.optimized.graph

    def refusal(self, machine: Machine) -> str:
        """Return the reason why no kernel is made of the graph; "" where one may be."""
        (map, *more) = self.graph.maps
        if more:
            return "its values have no slabs in common"
        near = any(b.memory is Memory.NEAR and b.indices for b in self.graph.buffers)
        if near and slab_bytes(self.graph, map, self.sizes) > self.caches.near:
            return "a slab is larger than the near caches"
        slabs, iterations = count_slabs(map, self.sizes), prod(self.sizes.values())
        if slabs < FEWEST_SLABS and iterations >= machine.units.parallel_iterations:
            return f"{slabs:.0f} slabs are too few for threads to share"
        return ""

    def lines(self) -> Iterator[str]:
        """Yield the bytes at each memory, and the bytes that each rewrite saved, for explain()."""
        far, least, before = map(amount_text, (self.after.dram, self.compulsory, self.before.dram))
        yield (
            f"main memory moves {far}, {least} at least, {before} in a kernel each; the near "
            f"caches {amount_text(self.after.near)}, before {amount_text(self.before.near)}"
        )
        savings: dict[tuple[str, str], float] = {}
        current = self.before
        for step in self.optimized.saved:
            after = traffic(step.graph, self.sizes, self.caches)
            fewer = current.dram - after.dram, current.near - after.near
            for memory, count in zip(("of main memory", "of the near caches"), fewer, strict=True):
                savings[step.rewrite, memory] = savings.get((step.rewrite, memory), 0.0) + count
            current = after
        texts = [
            f"{rewrite} {amount_text(count)} {memory}"
            for (rewrite, memory), count in savings.items()
            if count > 0
        ]
        yield "saved by " + ", ".join(texts) if texts else "no rewrite saves bytes"


def choose_slabs(
    problem: Problem, form: SlabForm, sizes: Mapping[str, float], machine: Machine
) -> SlabChoice:
    """Return the width of slabs that moves the fewest bytes of main memory, the widest of equals.

    sizes  of the modes of the form
    """
    caches = Caches(NEAR_BYTES, machine.loops.far_cache_bytes)
    choices = []
    for block in form.blocks:
        optimized = rewritten(problem, slab_form(problem, block))
        before = traffic(optimized.first, sizes, caches)
        after = traffic(optimized.graph, sizes, caches)
        least = compulsory(optimized.graph, sizes)
        choice = SlabChoice(optimized, block, sizes, caches, before, after, least)
        choices.append(choice)
    return min(choices, key=lambda choice: (bool(choice.refusal(machine)), choice.after.dram))


def price_of(amounts: Traffic, machine: Machine) -> float:
    """Return the price of moving bytes, in steps."""
    costs = machine.copies
    far = amounts.dram / ELEMENT_BYTES * costs.dense_temporary_element_steps / 2
    return far + amounts.near / ELEMENT_BYTES * costs.near_element_steps / 2


def amount_text(count: float) -> str:
    """Return bytes as text: 134 MB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"
