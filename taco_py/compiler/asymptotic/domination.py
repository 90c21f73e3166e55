"""Comparison of costs: which sets of tasks are never larger than which others.

A cost is a union of queries. `a ⪯ b` if every query of `a` is contained in one of `b`. Before the
comparison every cost gets the tasks that no schedule avoids: reading each sparse operand once, and
a loop over each dimension. Operands are assumed to store something. Costs that are then equal
differ by a constant factor at most. (Ahrens et al. 2022, sections 6 and 7.)

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
    """The tasks that no schedule avoids, and the facts about the operands.

    sunk        the queries that every cost has
    nonempty    the tensors that store something
    dimensions  for an index the name of its dimension, where several indices share one
    """

    sunk: tuple[Query, ...]
    nonempty: frozenset[str]
    dimensions: Mapping[str, str]


def assumptions(sparse: Iterable[Access], every: Sequence[Access]) -> Assumptions:
    """Return the assumptions for an expression that reads `every` access.

    `sparse` are the accesses with patterns. Two indices range over one dimension where they are the
    same mode of a tensor.
    """
    dimensions = _dimensions(every)
    reads = [query(a.indices, (Atom(a.tensor, a.indices),)) for a in dict.fromkeys(sparse)]
    indices = dict.fromkeys(i for a in every for i in a.indices)
    loops = [Query((i,), frozenset()) for i in indices]
    return Assumptions((*reads, *loops), frozenset(a.tensor for a in sparse), dimensions)


def _dimensions(every: Sequence[Access]) -> dict[str, str]:
    """Return, for each index, the first index of its dimension."""
    dimensions: dict[str, str] = {}
    modes: dict[tuple[str, int], str] = {}
    for access in every:
        for mode, index in enumerate(access.indices):
            dimensions.setdefault(index, index)
            first = modes.setdefault((access.tensor, mode), index)
            old, new = dimensions[index], dimensions[first]
            dimensions = {i: new if d == old else d for i, d in dimensions.items()}
    return dimensions


Union = frozenset[int]


@dataclass(slots=True)
class Costs:
    """Numbers queries and compares unions of them.

    Queries below sunk ones have no number, as they make no difference.
    """

    assumptions: Assumptions
    queries: list[Query] = field(default_factory=list)
    numbers: dict[Query, int] = field(default_factory=dict)
    raw: dict[Query, int] = field(default_factory=dict)
    pairs: dict[tuple[int, int], bool] = field(default_factory=dict)
    unions: dict[Union, Union] = field(default_factory=dict)

    def number(self, original: Query) -> int:
        """Return the number of the query's smallest form, -1 if it is sunk."""
        result = self.raw.get(original)
        if result is None:
            small = smallest(original, self.assumptions.nonempty)
            result = self.numbers.get(small)
            if result is None:
                result = -1 if self.is_sunk(small) else len(self.queries)
                self.numbers[small] = result
                if result >= 0:
                    self.queries.append(small)
            self.raw[original] = result
        return result

    def is_sunk(self, small: Query) -> bool:
        return any(
            contained(small, free, self.assumptions.dimensions) for free in self.assumptions.sunk
        )

    def union(self, queries: Iterable[Query]) -> Union:
        """Return the largest of the queries, except sunk ones."""
        numbers = frozenset(number for q in queries if (number := self.number(q)) >= 0)
        result = self.unions.get(numbers)
        if result is None:
            result = frozenset(n for n in numbers if not self.is_covered(n, numbers))
            self.unions[numbers] = result
        return result

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
        result = self.pairs.get(key)
        if result is None:
            a, b = self.queries[low], self.queries[high]
            result = low == high or contained(a, b, self.assumptions.dimensions)
            self.pairs[key] = result
        return result

    def below(self, low: Union, high: Union) -> bool:
        """Tell whether low ⪯ high."""
        return all(any(self.contained(a, b) for b in high) for a in low)

    def strictly_below(self, low: Union, high: Union) -> bool:
        return self.below(low, high) and not self.below(high, low)

    def readable(self, union: Union) -> tuple[Query, ...]:
        """Return the queries of a union, queries with most heads first."""
        queries = (self.queries[number] for number in union)
        return tuple(sorted(queries, key=lambda q: (-len(q.heads), str(q))))


@dataclass(slots=True)
class Incumbents:
    """The least costs so far, none of them strictly below another."""

    costs: Costs
    best: list[Union] = field(default_factory=list)
    verdicts: dict[Union, Union] = field(default_factory=dict)

    def below(self, cost: Union) -> Union | None:
        """Return a cost so far that is strictly below `cost`, None if there is none."""
        verdict = self.verdicts.get(cost)
        if verdict is None:
            below = (low for low in self.best if self.costs.strictly_below(low, cost))
            verdict = next(below, None)
            if verdict is not None:
                self.verdicts[cost] = verdict  # later costs do not change that
        return verdict

    def add(self, cost: Union) -> None:
        """Add the cost of a schedule."""
        if cost not in self.best and self.below(cost) is None:
            self.best = [old for old in self.best if not self.costs.strictly_below(cost, old)]
            self.best.append(cost)
