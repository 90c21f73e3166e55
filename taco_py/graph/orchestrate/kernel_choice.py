"""What a choice of kernels is, and the form in which all choosers get and give it.

A chooser takes a graph, its candidates and their prices, and returns kernels that run one after
another: each reads results of earlier ones. All choosers have this signature:

    choose(dag, candidates, price)  →  Choice(kernels in order, cost, recomputed, statistics)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf, isnan
from typing import Protocol

from codegen.records import dataclass
from taco_py.graph.orchestrate.candidate_kernels import Candidates, Kernel
from taco_py.graph.orchestrate.dag import Dag, bits
from taco_py.language.diagnostics.errors import InternalError, ScheduleError

Price = Callable[[Kernel], float]
"""Seconds that a kernel takes; infinity where nothing can make it."""


@dataclass(frozen=True, slots=True)
class ChoiceStatistics:
    """How a choice was found: a line of the table of graphs.

    priced   kernels whose price was asked for
    columns  kernels of the program that was solved, without those that others dominate
    rounds   programs solved: one more for each kind of cycle that was cut off
    gap      how far the cost may be above the optimum, as a share of it; 0 where it is proven
    seconds  of the search; without those in `price`, but for the greedy one and the partition,
             which ask as they go
    """

    method: str
    primitives: int
    states: int
    candidates: int
    priced: int
    columns: int = 0
    rounds: int = 0
    gap: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.method}: {self.primitives} primitives → {self.states} states → "
            f"{self.candidates} candidates ({self.columns} solved for, {self.rounds} rounds) → "
            f"{self.seconds:.3f} s, gap {self.gap:.2%}"
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """Kernels in an order in which they run, their cost, what more than one of them computes."""

    kernels: tuple[Kernel, ...]
    cost: float
    recomputed: int
    statistics: ChoiceStatistics

    def __str__(self) -> str:
        lines = [str(kernel) for kernel in self.kernels]
        repeated = ", ".join(map(str, bits(self.recomputed))) or "nothing"
        return "\n".join((*lines, f"cost {self.cost:.6g}, computed again: {repeated}"))


class Chooser(Protocol):
    """A way to choose kernels."""

    def __call__(self, dag: Dag, candidates: Candidates, price: Price) -> Choice: ...


@dataclass(frozen=True, slots=True)
class PriceList:
    """Prices that are asked for once."""

    dag: Dag
    price: Price
    costs: dict[Kernel, float]

    def of(self, kernel: Kernel) -> float:
        """Return a kernel's price.

        Raises ScheduleError where it is no number of seconds: negative, or not a number.
        """
        if kernel not in self.costs:
            seconds = float(self.price(kernel))
            if isnan(seconds) or seconds < 0:
                raise ScheduleError(
                    f"Expected a price of at least 0 for kernel {kernel}, found {seconds}",
                    hint="return math.inf for a kernel that cannot be made",
                )
            self.costs[kernel] = seconds
        return self.costs[kernel]


def run_order(
    kernels: Iterable[Kernel], available: int = 0
) -> tuple[tuple[Kernel, ...], tuple[Kernel, ...]]:
    """Split kernels into an executable order, and kernels that wait for each other.

    available  the values that exist before
    """
    order: list[Kernel] = []
    waiting, existing = list(kernels), available
    while True:
        left = []
        for kernel in waiting:
            if kernel.inputs & ~existing:
                left.append(kernel)
            else:
                order.append(kernel)
                existing |= kernel.outputs
        if not left or len(left) == len(waiting):
            return tuple(order), tuple(left)
        waiting = left


def without_idle(kernels: Sequence[Kernel], goal: int, available: int = 0) -> tuple[Kernel, ...]:
    """Leave out kernels of an order that make nothing new, or nothing that is asked for."""
    existing, first = available, []
    for kernel in kernels:
        new = kernel.outputs & ~existing
        if new:
            first.append((kernel, new))
        existing |= kernel.outputs
    required, used = goal, []
    for kernel, new in reversed(first):
        if new & required:
            used.append(kernel)
            required |= kernel.inputs
    return tuple(reversed(used))


def make_choice(
    dag: Dag, kernels: Iterable[Kernel], prices: PriceList, statistics: ChoiceStatistics
) -> Choice:
    """Make a choice of kernels, when they can run and make all results.

    Raises InternalError where they cannot: a chooser's fault.
    """
    order, stuck = run_order(kernels)
    order = without_idle(order, dag.outputs)
    existing = twice = computed = 0
    for kernel in order:
        existing |= kernel.outputs
        twice |= computed & kernel.members
        computed |= kernel.members
    if stuck or dag.outputs & ~existing:
        raise InternalError(f"the kernels that {statistics.method} chose cannot run: {dag}")
    cost = sum(prices.of(kernel) for kernel in order)
    return Choice(order, cost, twice, statistics)


def refuse_unmade(dag: Dag, missing: int) -> ScheduleError:
    """Return the error for values that no kernel with a finite price makes."""
    names = ", ".join(dag.label(p) for p in bits(missing)) or "the results together"
    return ScheduleError(
        f"Expected a kernel that makes {names}, found none with a finite price",
        hint="give each primitive by itself a price: one back end at least has to make it",
    )


def unmade(kernels: Iterable[Kernel], goal: int, available: int = 0) -> int:
    """Return the values of a goal that no executable set of these kernels makes."""
    order, _ = run_order(kernels, available)
    existing = available
    for kernel in order:
        existing |= kernel.outputs
    return goal & ~existing


def is_finite(price: float) -> bool:
    """Return whether a kernel with this price can be made."""
    return price < inf
