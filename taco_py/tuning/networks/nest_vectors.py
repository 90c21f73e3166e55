"""The loops, accesses and operations of a kernel as vectors of numbers, which networks read.

Counts stand as logarithms to the base 2. What depends on the loops around an access has a place for
each of `DEPTH` loops, the innermost first: there a schedule decides most.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import log2

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import PRIVATE_COPIES, Merge
from taco_py.compiler.dataflow.build_dataflow import is_quick
from taco_py.compiler.iteration.graph import Range
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.operators import Operator
from taco_py.language.notation.tree import all_calls
from taco_py.tuning.networks.kernel_nest import KernelNest, NestLoop, NestStatement

Vector = NDArray[np.float32]
DEPTH = 8
"""The innermost loops around a statement that its vectors tell of."""
MOST_ACCESSES = 5
"""The accesses of a statement that its vector tells of, its target first."""


def log(value: float) -> float:
    """Return the logarithm of a count; 0 for one and less."""
    return log2(value) if value > 1.0 else 0.0


@dataclass(frozen=True, slots=True)
class LoopView:
    """A loop of a kernel as its features see it."""

    nest: KernelNest
    item: NestLoop
    enclosing: tuple[NestLoop, ...]


def _in_range(kind: Range) -> Callable[[LoopView], float]:
    return lambda view: float(view.item.loop.range is kind)


def _by_merge(kind: Merge) -> Callable[[LoopView], float]:
    return lambda view: float(view.item.loop.mode.merge is kind)


LOOP: dict[str, Callable[[LoopView], float]] = {
    "trips": lambda v: log(v.item.trips),
    "step": lambda v: log(v.item.step),
    "rounds": lambda v: sum(log(loop.trips) for loop in v.enclosing),
    "depth": lambda v: float(len(v.enclosing)),
    "reduces": lambda v: float(not {*v.item.roots} & {*v.nest.facts.target.indices}),
    **{f"range {kind.value}": _in_range(kind) for kind in Range},
    "counts": lambda v: float(v.item.loop.plain),
    "lists": lambda v: float(len(v.item.loop.lattice.iterators)),
    "merges": lambda v: float(v.item.loop.merges),
    **{f"merge {kind.value}": _by_merge(kind) for kind in Merge},
    "parallel": lambda v: float(v.item.loop.mode.parallel is not None),
    "private copies": lambda v: float(v.item.loop.mode.parallel in PRIVATE_COPIES),
    "unroll": lambda v: log(v.item.loop.mode.unroll),
    "vector": lambda v: float(v.item.loop.mode.vector),
    "static": lambda v: float(v.item.loop.index in dict(v.nest.facts.problem.static)),
    "fills": lambda v: float(len(v.item.loop.fills)),
}
"""What is told of a loop, by names that files of networks have."""


class AccessView:
    """An access in a statement, with the loops around it, the innermost first."""

    def __init__(self, nest: KernelNest, access: Access, enclosing: tuple[NestLoop, ...]) -> None:
        self.nest, self.access = nest, access
        self.enclosing = enclosing[::-1]
        self.workspace, self.type = nest.workspace(access), nest.type_of(access)
        self.item, self.entries = nest.item(access), nest.entries(access)

    @property
    def is_target(self) -> bool:
        """Tell whether it is to the result of the kernel."""
        return self.access.tensor == self.nest.facts.target.tensor

    @property
    def is_dense(self) -> bool:
        """Tell whether it is to an array that stores all elements."""
        return self.type is not None and is_full(self.type.format)

    @property
    def lists(self) -> int:
        """Return the number of levels that leave coordinates out."""
        return 0 if self.type is None else sum(not v.full for v in self.type.format.levels)

    @cached_property
    def strides(self) -> tuple[float, ...]:
        """Return the bytes from one iteration of each loop around it to the next, 0 for none."""
        by_index = self.nest.strides(self.access)

        def stride(loop: NestLoop) -> float:
            mine = [by_index[root] for root in loop.roots if root in by_index]
            return min(mine) * loop.step if mine else 0.0

        return tuple(map(stride, self.enclosing))

    @property
    def is_gathered(self) -> bool:
        """Tell whether an array is read at coordinates that a list has."""
        lists = {
            root for loop in self.enclosing if loop.loop.lattice.iterators for root in loop.roots
        }
        return self.is_dense and bool(lists & {*self.access.indices})

    def places(self) -> list[float]:
        """Return for each depth: trips along the access, stride, and bytes of the loops inside."""
        numbers, inside = [], float(self.item)
        for depth in range(DEPTH):
            if depth >= len(self.enclosing):
                numbers += [0.0, 0.0, 0.0, 0.0]
                continue
            stride, trips = self.strides[depth], self.enclosing[depth].trips
            inside *= trips if stride else 1.0
            most = min(inside, max(self.entries, 1.0) * self.item)
            numbers += [float(stride > 0), log(trips) * (stride > 0), log(stride), log(most)]
        return numbers


ACCESS: dict[str, Callable[[AccessView], float]] = {
    "is there": lambda _: 1.0,
    "target": lambda v: float(v.is_target),
    "number": lambda v: float(v.workspace is not None and v.workspace.is_number),
    "workspace": lambda v: float(v.workspace is not None and v.workspace.is_array),
    "row": lambda v: float(v.workspace is not None and v.workspace.lists_coordinates),
    "dense": lambda v: float(v.is_dense),
    "lists": lambda v: float(v.lists),
    "order": lambda v: float(len(v.access.indices)),
    "item": lambda v: log(v.item),
    "entries": lambda v: log(v.entries),
    "bytes": lambda v: log(v.entries * v.item),
    "share": lambda v: log2(max(v.entries, 0.5) / max(v.nest.volume(v.access.indices), 1.0)),
    "gathered": lambda v: float(v.is_gathered),
    "contiguous": lambda v: float(bool(v.strides) and v.strides[0] == v.item),
    "invariant": lambda v: float(bool(v.strides) and v.strides[0] == 0.0),
}
"""What is told of an access besides the loops around it."""
OF_DEPTH = ("moves", "trips", "stride", "bytes inside")
"""What is told of an access for each loop around it."""
KINDS = ("add", "multiply", "divide", "quick", "function")
"""Kinds of operations."""


def kind_of(operator: Operator) -> str:
    """Return the kind of an operation."""
    if operator.signs:
        return "add"
    if operator.symbol in ("*", "/"):
        return "multiply" if operator.symbol == "*" else "divide"
    return "quick" if is_quick(operator) else "function"


def loop_vector(nest: KernelNest, place: int) -> Vector:
    """Return the numbers of a loop."""
    view = LoopView(nest, nest.loops[place], nest.enclosing(place))
    return np.array([feature(view) for feature in LOOP.values()], np.float32)


def access_vector(nest: KernelNest, access: Access, enclosing: tuple[NestLoop, ...]) -> Vector:
    """Return the numbers of an access inside some loops."""
    view = AccessView(nest, access, enclosing)
    return np.array([*(f(view) for f in ACCESS.values()), *view.places()], np.float32)


def statement_vector(nest: KernelNest, statement: NestStatement, loops: list[Vector]) -> Vector:
    """Return the numbers of a statement: of the loops around it, its accesses and operations.

    loops  the vectors of the kernel's loops
    """
    enclosing, assign = nest.enclosing(statement.parent), statement.assign
    vector = np.zeros(len(STATEMENT_NAMES), np.float32)
    place, depth = statement.parent, 0
    while place >= 0 and depth < DEPTH:
        vector[depth * len(LOOP) : (depth + 1) * len(LOOP)] = loops[place]
        place, depth = nest.loops[place].parent, depth + 1
    begin, reads = DEPTH * len(LOOP), dict.fromkeys(accesses(assign.value))
    for access in (assign.target, *reads)[:MOST_ACCESSES]:
        vector[begin : begin + len(ACCESS_NAMES)] = access_vector(nest, access, enclosing)
        begin += len(ACCESS_NAMES)
    kinds = [kind_of(call.operator) for call in all_calls(assign.value)]
    vector[-len(KINDS) - 2 :] = (
        *(kinds.count(kind) for kind in KINDS),
        float(assign.operator is not None),
        len(reads),
    )
    return vector


LOOP_NAMES = tuple(LOOP)
ACCESS_NAMES = (*ACCESS, *(f"{name} {depth}" for depth in range(DEPTH) for name in OF_DEPTH))
STATEMENT_NAMES = (
    *(f"loop {depth} {name}" for depth in range(DEPTH) for name in LOOP_NAMES),
    *(f"access {number} {name}" for number in range(MOST_ACCESSES) for name in ACCESS_NAMES),
    *KINDS, "updates", "reads",
)  # fmt: skip
