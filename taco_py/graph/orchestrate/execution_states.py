"""Execution states, and the windows of long graphs inside of which they stay few.

An execution state is a set of primitives that holds what each of its members reads: what may be
done at some time (Hu et al. 2024, Korch, algorithm 1). A chain of n has n + 1 of them, n primitives
that do not depend on each other 2ⁿ. So long graphs are seen through windows: each is what lies
between two states, and holds few states of its own.

A window ends, where it can, at a cut point: a primitive through which all paths pass, so that one
value crosses. Where none is near, it ends where the fewest values cross.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from codegen.records import dataclass
from taco_py.graph.orchestrate.dag import Dag, bits, mask_of


@dataclass(frozen=True, slots=True)
class Window:
    """A difference of two states, with the number of the states inside."""

    members: int
    states: int


def execution_states(dag: Dag, subset: int | None = None, most: int | None = None) -> list[int]:
    """List every execution state of the primitives within a window, each once.

    most  stop when there are more than this many, of which the first are returned
    """
    window = dag.live if subset is None else subset
    states = [0]
    for p in bits(window):
        states += _states_with(dag, window, states, p)
        if most is not None and len(states) > most:
            return states[: most + 1]
    return states


def _states_with(dag: Dag, window: int, states: Sequence[int], primitive: int) -> list[int]:
    """Return the states that a primitive adds to the states of the primitives before it."""
    need = dag.ancestors[primitive] & window
    return [state | 1 << primitive for state in states if state & need == need]


def cut_points(dag: Dag) -> int:
    """Return the primitives through which all paths pass: no edge goes past them.

    Each splits the execution states: one without it holds nothing after it, one with it all before.
    """
    points, live = 0, dag.live
    for p in bits(live):
        before = (dag.ancestors[p] | 1 << p) & live
        if before | dag.descendants[p] & live == live and crossing(dag, before) == 1 << p:
            points |= 1 << p
    return points


def crossing(dag: Dag, state: int) -> int:
    """Return the values that are made in a state and read after it."""
    later = dag.live & ~state
    return dag.reads(later) & state if later else dag.outputs & state


def depth_first(dag: Dag, subset: int | None = None) -> tuple[int, ...]:
    """Order primitives depth first from the results: each soon before what reads it.

    So a primitive that waits for nothing, the transpose of a weight say, does not come first.
    """
    window = dag.live if subset is None else subset
    order: list[int] = []
    placed = 0
    sinks = [p for p in bits(window) if not dag.successors[p] & window]
    waiting = list(reversed(sinks))
    while waiting:
        p = waiting[-1]
        open_ = dag.predecessors[p] & window & ~placed
        if placed >> p & 1:
            waiting.pop()
        elif open_:
            waiting.append(max(bits(open_), key=lambda q: (dag.ancestors[q].bit_count(), -q)))
        else:
            waiting.pop()
            order.append(p)
            placed |= 1 << p
    return tuple(order)


def windows(dag: Dag, most_states: int, most_primitives: int = 64) -> tuple[Window, ...]:
    """Cut the needed primitives into windows of at most so many states each.

    A window takes primitives depth first as long as the limits allow, then ends where the fewest
    values cross, in its second half; the rest begins the next.
    """
    order = depth_first(dag)
    cuts: list[Window] = []
    start = covered = 0
    while start < len(order):
        counts = _counts(dag, order[start : start + most_primitives], most_states)
        length = len(counts)
        if start + length < len(order):
            length = _best_end(dag, covered, order[start : start + length])
        members = mask_of(order[start : start + length])
        cuts.append(Window(members, counts[length - 1]))
        covered |= members
        start += length
    return tuple(cuts)


def windows_across(dag: Dag, first: Sequence[Window], most_states: int) -> tuple[Window, ...]:
    """Return a window around each boundary: the second half of what ends there, and what follows.

    Kernels that lie in two of the windows are found in these.
    """
    overlapping = []
    for left, right in pairwise(first):
        ends = depth_first(dag, left.members)[left.members.bit_count() // 2 :]
        order = (*ends, *depth_first(dag, right.members))
        counts = _counts(dag, order, most_states)
        if len(counts) > len(ends):
            overlapping.append(Window(mask_of(order[: len(counts)]), counts[-1]))
    return tuple(overlapping)


def _counts(dag: Dag, order: Sequence[int], most: int) -> list[int]:
    """Return the number of states of each first part of an order, up to the limit; one at least."""
    window, states = 0, [0]
    counts: list[int] = []
    for p in order:
        window |= 1 << p
        states += _states_with(dag, window, states, p)
        if len(states) > most and counts:
            break
        counts.append(len(states))
    return counts


def _best_end(dag: Dag, earlier: int, order: Sequence[int]) -> int:
    """Return how many of these a window takes so that the fewest values cross its end."""
    best, state = (len(order) * dag.size + 1, 0), earlier
    for length, p in enumerate(order, 1):
        state |= 1 << p
        if 2 * length >= len(order):
            best = min(best, (crossing(dag, state).bit_count(), -length))
    return -best[1]
