"""Comparing costs: which sets of tasks are never larger than which others.

A cost is a union of queries. `a ⪯ b` if every query of `a` is contained in one of `b`. Before the
comparison every cost is given what no schedule avoids: reading each sparse operand once, and a loop
over each dimension. Operands are assumed to store something. What is then equal costs the same up
to a constant. (Ahrens et al. 2022, sections 6 and 7.)

Queries are reduced to their smallest form and numbered, so that each pair is compared once. A union
is kept as its largest queries: equal costs are equal sets of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from codegen.records import dataclass
from taco_py.compiler.asymptotic.containment import contained, smallest
from taco_py.compiler.asymptotic.queries import Atom, Query, query
from taco_py.language.notation.nodes import Access


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


Union = frozenset[int]


@dataclass(slots=True)
class Costs:
    """Numbers queries and compares unions of them.

    Queries below what is sunk have no number: they make no difference.
    """

    given: Assumptions
    queries: list[Query] = field(default_factory=list)
    numbers: dict[Query, int] = field(default_factory=dict)
    raw: dict[Query, int] = field(default_factory=dict)
    pairs: dict[tuple[int, int], bool] = field(default_factory=dict)
    unions: dict[Union, Union] = field(default_factory=dict)

    def number(self, whole: Query) -> int:
        """Return the number of the query's smallest form, -1 if it is sunk."""
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

    def union(self, queries: Iterable[Query]) -> Union:
        """Return the largest of the queries, without those that are sunk."""
        numbers = frozenset(number for q in queries if (number := self.number(q)) >= 0)
        found = self.unions.get(numbers)
        if found is None:
            found = frozenset(n for n in numbers if not self.is_covered(n, numbers))
            self.unions[numbers] = found
        return found

    def is_covered(self, number: int, numbers: Union) -> bool:
        """Tell whether another of `numbers` is above this one, or equal to it and before it."""
        return any(
            self.contained(number, other) and (other < number or not self.contained(other, number))
            for other in numbers
            if other != number
        )

    def contained(self, low: int, high: int) -> bool:
        """Tell whether the first query is contained in the second."""
        key = (low, high)
        found = self.pairs.get(key)
        if found is None:
            a, b = self.queries[low], self.queries[high]
            found = low == high or contained(a, b, self.given.dimensions)
            self.pairs[key] = found
        return found

    def below(self, low: Union, high: Union) -> bool:
        """Tell whether low ⪯ high."""
        return all(any(self.contained(a, b) for b in high) for a in low)

    def strictly_below(self, low: Union, high: Union) -> bool:
        return self.below(low, high) and not self.below(high, low)

    def readable(self, union: Union) -> tuple[Query, ...]:
        """Return the queries of a union, those of most heads first."""
        found = (self.queries[number] for number in union)
        return tuple(sorted(found, key=lambda q: (-len(q.heads), str(q))))


@dataclass(slots=True)
class Incumbents:
    """The least costs met so far, none of them strictly below another."""

    costs: Costs
    best: list[Union] = field(default_factory=list)
    verdicts: dict[Union, Union] = field(default_factory=dict)

    def below(self, cost: Union) -> Union | None:
        """Return a cost met so far that is strictly below `cost`, None if there is none."""
        known = self.verdicts.get(cost)
        if known is None:
            below = (low for low in self.best if self.costs.strictly_below(low, cost))
            known = next(below, None)
            if known is not None:
                self.verdicts[cost] = known  # costs met later do not change that
        return known

    def add(self, cost: Union) -> None:
        """Take a schedule's cost into account."""
        if cost not in self.best and self.below(cost) is None:
            self.best = [old for old in self.best if not self.costs.strictly_below(cost, old)]
            self.best.append(cost)
