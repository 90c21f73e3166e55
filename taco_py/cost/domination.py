"""Comparing costs: which sets of tasks are never larger than which others.

A cost is a union of queries. `a ⪯ b` if every query of `a` is contained in one of `b`. Before the
comparison every cost is given what no schedule avoids: reading each sparse operand once, and a loop
over each dimension. Operands are assumed to store something. What is then equal costs the same up
to a constant. (Ahrens et al. 2022, sections 6 and 7.)

Costs are compared once each: a query is reduced to its smallest form, which has a number; a cost
is the set of all queries below its own, as bits of one integer. Equal costs are equal integers, and
`a ⪯ b` is `a & ~b == 0`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from taco_py.cost.containment import contained, smallest
from taco_py.cost.queries import Atom, Query, query
from taco_py.notation.nodes import Access


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What no schedule avoids, and what is known of the operands.

    sunk        the queries that every cost has
    nonempty    the tensors that store something
    dimensions  for an index the name of its dimension, where several indices share one
    """

    sunk: tuple[Query, ...]
    nonempty: frozenset[str]
    dimensions: Mapping[str, str]


def assumptions(sparse: Iterable[Access], every: Sequence[Access]) -> Assumptions:
    """Those of an expression that reads `every` access, of which `sparse` have patterns.

    Two indices range over one dimension where they are the same mode of a tensor.
    """
    dimensions = _dimensions(every)
    reads = [query(a.indices, (Atom(a.tensor, a.indices),)) for a in dict.fromkeys(sparse)]
    indices = dict.fromkeys(i for a in every for i in a.indices)
    loops = [Query((i,), frozenset()) for i in indices]
    return Assumptions((*reads, *loops), frozenset(a.tensor for a in sparse), dimensions)


def _dimensions(every: Sequence[Access]) -> dict[str, str]:
    """For each index the first index of its dimension."""
    found: dict[str, str] = {}
    modes: dict[tuple[str, int], str] = {}
    for access in every:
        for mode, index in enumerate(access.indices):
            found.setdefault(index, index)
            first = modes.setdefault((access.tensor, mode), index)
            old, new = found[index], found[first]
            found = {i: new if d == old else d for i, d in found.items()}
    return found


@dataclass(slots=True)
class Costs:
    """Numbers queries, and turns unions of them into integers that compare costs.

    Queries below what is sunk have no number: they make no difference.
    """

    given: Assumptions
    queries: list[Query] = field(default_factory=list)
    numbers: dict[Query, int] = field(default_factory=dict)
    raw: dict[Query, int] = field(default_factory=dict)
    masks: dict[int, int] = field(default_factory=dict)

    def number(self, whole: Query) -> int:
        """The number of the query's smallest form, -1 if it is sunk."""
        found = self.raw.get(whole)
        if found is None:
            small = smallest(whole, self.given.nonempty)
            found = self.numbers.get(small)
            if found is None:
                found = -1 if self.is_sunk(small) else len(self.queries)
                self.numbers[small] = found
                if found >= 0:
                    self.queries.append(small)
            self.raw[whole] = found
        return found

    def is_sunk(self, whole: Query) -> bool:
        return any(contained(whole, free, self.given.dimensions) for free in self.given.sunk)

    def numbered(self, union: Iterable[Query]) -> frozenset[int]:
        """The numbers of a union's queries that are not sunk."""
        return frozenset(number for q in union if (number := self.number(q)) >= 0)

    def mask(self, number: int) -> int:
        """The queries below one query, as bits. Ask when all queries are known."""
        found = self.masks.get(number)
        if found is None:
            top = self.queries[number]
            found = sum(
                1 << other
                for other, low in enumerate(self.queries)
                if other == number or contained(low, top, self.given.dimensions)
            )
            self.masks[number] = found
        return found

    def cost(self, union: frozenset[int]) -> int:
        """All queries below a union's, as bits."""
        found = 0
        for number in sorted(union):
            if not found >> number & 1:
                found |= self.mask(number)
        return found

    def readable(self, cost: int) -> tuple[Query, ...]:
        """The largest queries of a cost, those of most heads first."""
        members = [n for n in range(cost.bit_length()) if cost >> n & 1]
        largest = [
            n
            for n in members
            if not any(
                m != n and self.mask(m) >> n & 1 and not (self.mask(n) >> m & 1 and n < m)
                for m in members
            )
        ]
        return tuple(sorted((self.queries[n] for n in largest), key=lambda q: (-len(q.heads), str(q))))


def minimal(costs: Iterable[int]) -> tuple[int, ...]:
    """The costs that no other is strictly below, in their order."""
    different = tuple(dict.fromkeys(costs))
    frontier: list[int] = []
    for cost in sorted(different, key=int.bit_count):
        if not any(low & ~cost == 0 for low in frontier):
            frontier.append(cost)
    kept = set(frontier)
    return tuple(cost for cost in different if cost in kept)
