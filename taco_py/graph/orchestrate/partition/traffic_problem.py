"""Which primitives run together so that the most bytes stay inside of kernels: the problem.

Edges are values that a primitive reads of another, with their bytes. A partition saves the bytes of
the edges inside of its groups, and each group has to run as one step:

    0 →8 1 →8 2 →8 3,  {1, 2} apart      →  {0, 1} {2, 3} saves 16 of 24 bytes

Primitives are numbered in a topological order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field

from codegen.records import dataclass
from taco_py.graph.orchestrate.convexity import contract
from taco_py.graph.orchestrate.dag import Dag, bits, dag_of_edges, mask_of
from taco_py.language.diagnostics.errors import OperandError, ScheduleError

Groups = tuple[int, ...]
"""The members of each group as a mask, by their first members."""

TOLERANCE = 1e-9
"""The share of the bytes by which sums of floats may differ."""


SCALE = 1e4
"""What all edges save in the unit of programs: HiGHS stops at an absolute gap of 1e-6."""


@dataclass(frozen=True, slots=True)
class Partition:
    """Groups that each run as one step.

    saved   the bytes that they save; `bound` the most that any partition can
    rounds  the programs that were solved
    """

    groups: Groups
    saved: float
    bound: float
    rounds: int = 0

    @property
    def optimal(self) -> bool:
        """Tell whether no partition is proven to save more."""
        return self.saved >= self.bound * (1 - TOLERANCE)


@dataclass(frozen=True, slots=True)
class TrafficProblem:
    """Primitives with the bytes between them, and which of them can run together.

    edges           each (from, to, bytes)
    conflicts       sets of which no group holds all; two primitives, mostly
    required_pairs  pairs that are in one group
    paths           (from, to): a path between them goes through what is in none of the groups
    dag             the graph of all paths, those around too
    """

    size: int
    edges: tuple[tuple[int, int, float], ...]
    conflicts: tuple[int, ...] = ()
    required_pairs: tuple[tuple[int, int], ...] = ()
    paths: tuple[tuple[int, int], ...] = ()
    dag: Dag = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pairs = (*((i, j) for i, j, _ in self.edges), *self.paths)
        wrong = [pair for pair in pairs if not 0 <= pair[0] < pair[1] < self.size]
        if wrong:
            raise OperandError(
                f"Expected edges from earlier to later ones of {self.size} primitives, "
                f"found {wrong[0]}",
                hint="number the primitives in a topological order",
            )
        less = [weight for *_, weight in self.edges if not 0 <= weight < float("inf")]
        if less:
            raise OperandError(f"Expected edges of at least 0 bytes, found {less[0]}")
        object.__setattr__(self, "dag", dag_of_edges(self.size, pairs))

    @property
    def never(self) -> tuple[int, ...]:
        """Return the sets of which no group holds all: those apart, and the ends of paths
        around."""
        return (*self.conflicts, *map(mask_of, self.paths))

    def saved(self, groups: Iterable[int]) -> float:
        """Return the bytes of the edges inside of groups."""
        place = {p: n for n, group in enumerate(groups) for p in bits(group)}
        return sum(w for i, j, w in self.edges if i in place and place[i] == place.get(j))

    def allows(self, groups: Sequence[int]) -> bool:
        """Tell whether groups can each run as one step and respect forbidden sets and required
        pairs.
        """
        if any(not members & ~group for members in self.never for group in groups):
            return False
        all_groups = (*groups, *(1 << p for p in bits((1 << self.size) - 1 & ~sum(groups))))
        if any(not any(g >> i & g >> j & 1 for g in all_groups) for i, j in self.required_pairs):
            return False
        return contract(self.dag, groups) is not None


def hull(dag: Dag, members: int) -> int:
    """Return the smallest convex set with these primitives: with all paths between them."""
    return members | dag.before(members) & dag.after(members)


def can_be_fused(problem: TrafficProblem, dag: Dag, start: int, end: int) -> bool:
    """Return whether a group may hold both: their hull holds nothing that is kept apart."""
    path_hull = hull(dag, 1 << start | 1 << end)
    return all(members & ~path_hull for members in problem.never)


def forced_groups(problem: TrafficProblem) -> Groups:
    """Return the smallest groups that hold all required pairs, and each other primitive by itself.

    A primitive on a path between two that are together is with them, and so are groups that would
    wait for each other: they are the strongly connected parts, with pairs as edges both ways.

    Raises ScheduleError where such a group holds what is kept apart.
    """
    dag = problem.dag
    reach = [dag.descendants[p] | 1 << p for p in range(problem.size)]
    for i, j in problem.required_pairs:
        reach[i] |= 1 << j
        reach[j] |= 1 << i
    for middle in range(problem.size):
        for p in range(problem.size):
            if reach[p] >> middle & 1:
                reach[p] |= reach[middle]
    groups: dict[int, None] = {}
    for p in range(problem.size):
        groups[mask_of(q for q in bits(reach[p]) if reach[q] >> p & 1)] = None
    if not problem.allows(tuple(groups)):
        pairs = ", ".join(f"{i} and {j}" for i, j in problem.required_pairs)
        raise ScheduleError(
            f"Expected {pairs} together, found that their kernels would hold what is kept apart",
            hint="leave out a pair of them",
        )
    return tuple(groups)


def contracted(problem: TrafficProblem, groups: Sequence[int]) -> tuple[TrafficProblem, Groups]:
    """Return the problem between groups, and the groups in the order of its primitives."""
    order = contract(problem.dag, groups) or ()
    place = {p: n for n, group in enumerate(order) for p in bits(group)}
    weights: dict[tuple[int, int], float] = {}
    for i, j, weight in problem.edges:
        if place[i] != place[j]:
            pair = place[i], place[j]
            weights[pair] = weights.get(pair, 0.0) + weight
    inner = TrafficProblem(
        len(order),
        tuple((i, j, weight) for (i, j), weight in sorted(weights.items())),
        tuple(sorted({mask_of(place[p] for p in bits(members)) for members in problem.conflicts})),
        (),
        tuple(sorted({(place[a], place[b]) for a, b in problem.paths})),
    )
    return inner, order


def expand_groups(groups: Iterable[int], order: Sequence[int]) -> Groups:
    """Return groups of groups as groups of primitives."""
    expanded = (sum(order[n] for n in bits(group)) for group in groups)
    return tuple(sorted(expanded, key=lambda group: group & -group))


def connected_parts(edges: Iterable[tuple[int, int]], members: int) -> Iterator[int]:
    """Yield the parts of a set that hang together by edges, the one of the lowest member first."""
    near: dict[int, int] = {}
    for i, j in edges:
        near[i] = near.get(i, 0) | 1 << j
        near[j] = near.get(j, 0) | 1 << i
    while members:
        part, wave = 0, members & -members
        while wave:
            part |= wave
            reached = 0
            for p in bits(wave):
                reached |= near.get(p, 0)
            wave = reached & members & ~part
        yield part
        members &= ~part


def merge_greedily(
    problem: TrafficProblem, groups: Groups, wished: Collection[tuple[int, int]] = ()
) -> Groups:
    """Merge the groups of an edge, those with the most bytes first, where that is allowed.

    wished  edges that come before all others
    """
    current, never = list(groups), problem.never
    order = [(edge[:2] not in wished, -edge[2], edge[:2]) for edge in problem.edges]
    for _, weight, (i, j) in sorted(order):
        one = next(group for group in current if group >> i & 1)
        other = next(group for group in current if group >> j & 1)
        if one != other and weight < 0:
            if any(not members & ~(one | other) for members in never):
                continue
            merged = [group for group in current if group not in (one, other)] + [one | other]
            if contract(problem.dag, merged) is not None:
                current = merged
    return tuple(sorted(current, key=lambda group: group & -group))
