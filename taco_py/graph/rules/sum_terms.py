"""Values as sums of products of what they are made of, to find terms that cancel by algebra.

    sum(x - mean(x))       →   sum(x) - n * sum(x) / n               no terms are left
    sum(e * (g / s + d))   →   sum(e * g) / s + d * sum(e)           none, for s = sum(e) and
                                                                     d = -sum(e * g) / (s * s)

A product is a number for each factor: how often it is multiplied by. A factor is a value at
indices, a sum of a product over indices, or a size. Values that are no sums, products, quotients,
layouts or reductions of others are factors as they are. Two products of equal factors are equal
numbers but for rounding; unequal ones may be equal too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import product as pairs
from math import isfinite
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.graph.extents import Extent
from taco_py.graph.graph_builder import LAYOUTS, GraphBuilder
from taco_py.graph.nodes import Node

MOST_TERMS = 24
"""Products of a value that are looked at."""

MOST_VISITS = 400
"""Values that are looked at for one sum."""

Index = int | None
"""An index: above 0 of the value itself, below 0 one that a sum runs over; None in a mode of
size 1."""

Factor = tuple[Any, ...]
"""("at", name, indices), ("sum", indices, factors with their powers) or ("size", extent)."""

Product = frozenset[tuple[Factor, int]]
Terms = Mapping[Product, Fraction]

ONE: Product = frozenset()


@dataclass(slots=True, eq=False)
class TooManyTermsError(Exception):
    """A value that is too long to be written so."""


@dataclass(slots=True, eq=False)
class SumTerms:
    """Writes values of a graph that is made as sums of products."""

    builder: GraphBuilder
    fresh: int = 0
    visits: int = 0
    known: dict[tuple[str, tuple[Index, ...]], Terms] = field(default_factory=dict)

    def vanishes(self, name: str) -> bool:
        """Tell whether all terms of a value cancel."""
        try:
            return not self.of(name, self.indices(name))
        except TooManyTermsError:
            return False

    def vanishing_sum(self, name: str, axes: Sequence[int]) -> bool:
        """Tell whether all terms of a value's sum over axes cancel."""
        try:
            indices = self.indices(name)
            terms = self.of(name, indices)
            for axis in axes:
                terms = self._summed(terms, indices[axis], self.builder.facts[name].shape[axis])
        except TooManyTermsError:
            return False
        return not terms

    def indices(self, name: str) -> tuple[Index, ...]:
        """Make an index for each mode of a value."""
        found: list[Index] = []
        for unit in self.builder.facts[name].units:
            self.fresh += 1
            found.append(None if unit else self.fresh)
        return tuple(found)

    def of(self, name: str, indices: Sequence[Index]) -> Terms:
        """Write a value at indices."""
        key = (name, tuple(indices))
        if key not in self.known:
            self.visits += 1
            if self.visits > MOST_VISITS:
                raise TooManyTermsError()
            self.known[key] = self._written(name, tuple(indices))
        if len(self.known[key]) > MOST_TERMS:
            raise TooManyTermsError()
        return self.known[key]

    def _written(self, name: str, indices: tuple[Index, ...]) -> Terms:
        constant, number = self.builder.constants.get(name), self.builder.numbers.get(name)
        if constant is not None and not constant.fact.order:
            terms = _of_number(constant.value)
            return _factor(("at", name, indices)) if terms is None else terms
        if number is not None:
            return _of_size(number.extent)
        node = self.builder.nodes.get(name)
        found = None if node is None else self._of_node(node, indices)
        return _factor(("at", name, indices)) if found is None else found

    def _of_node(self, node: Node, indices: tuple[Index, ...]) -> Terms | None:
        if np.dtype(node.dtype).kind != "f":
            return None
        if node.operator in LAYOUTS:
            (name,) = node.inputs
            own: list[Index] = [None] * self.builder.facts[name].order
            for index, source in zip(indices, node.get("source"), strict=True):
                if source is not None:
                    own[source] = index
            return self.of(name, own)
        if node.operator == "map":
            return self._of_map(node, indices)
        if node.operator == "contract":
            return self._of_contraction(node, indices)
        if node.operator == "reduce" and node.get("function") == "sum":
            return self._of_sum(node, indices)
        return None

    def _of_map(self, node: Node, indices: tuple[Index, ...]) -> Terms | None:
        function = node.get("function")
        if function not in ("add", "subtract", "negative", "multiply", "square", "divide"):
            return None
        args = [
            self.of(name, indices if self.builder.facts[name].order else ()) for name in node.inputs
        ]
        if function == "negative":
            return _scaled(args[0], -1)
        if function == "square":
            return _product(args[0], args[0])
        one, other = args
        if function in ("add", "subtract"):
            return _added(one, _scaled(other, 1 if function == "add" else -1))
        if function == "multiply":
            return _product(one, other)
        if len(other) != 1:
            own = indices if self.builder.facts[node.inputs[1]].order else ()
            other = _factor(("at", node.inputs[1], own))
        return _product(one, _inverse(other))

    def _of_sum(self, node: Node, indices: tuple[Index, ...]) -> Terms:
        (name,) = node.inputs
        axes, fact, kept = node.get("axes"), self.builder.facts[name], iter(indices)
        own = self.indices(name)
        whole = tuple(own[a] if a in axes else next(kept) for a in range(fact.order))
        terms = self.of(name, whole)
        for axis in axes:
            terms = self._summed(terms, own[axis], fact.shape[axis])
        return terms

    def _of_contraction(self, node: Node, indices: tuple[Index, ...]) -> Terms:
        named: dict[int, Index] = dict(zip(node.get("kept"), indices, strict=True))
        sizes: dict[int, Extent] = {}
        found: Terms = {ONE: Fraction(1)}
        for name, labels in zip(node.inputs, node.get("labels"), strict=True):
            fact = self.builder.facts[name]
            for label, size in zip(labels, fact.shape, strict=True):
                if label not in named and size.constant != 1:
                    self.fresh += 1
                    named[label], sizes[label] = self.fresh, size
            own = [
                None if size.constant == 1 else named.get(label)
                for label, size in zip(labels, fact.shape, strict=True)
            ]
            found = _product(found, self.of(name, own))
        for label, size in sizes.items():
            found = self._summed(found, named[label], size)
        return found

    def _summed(self, terms: Terms, index: Index, size: Extent) -> Terms:
        """Sum over an index: what does not depend on it is taken out."""
        if index is None:
            return terms
        found: Terms = {}
        for each, number in terms.items():
            inner = [(factor, power) for factor, power in each if _has(factor, index)]
            outer = {each - frozenset(inner): number}
            made = _factor(_sum_of(inner, index)) if inner else _of_size(size)
            found = _added(found, _product(outer, made))
        return found


def _of_number(value: Any) -> Terms | None:
    """A number, None of those that are none, as NaN."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return None
    number = value.item() if isinstance(value, np.number) else value
    if isinstance(number, complex) or not isfinite(number):
        return None
    return {ONE: Fraction(number)} if number else {}


def _of_size(extent: Extent) -> Terms:
    if extent.constant is not None:
        return _of_number(extent.constant) or {}
    if extent.operator == "*":
        return _product(*map(_of_size, extent.args))
    return _factor(("size", extent))


def _factor(factor: Factor) -> Terms:
    return {frozenset(((factor, 1),)): Fraction(1)}


def _scaled(terms: Terms, number: int) -> Terms:
    return {each: number * own for each, own in terms.items()}


def _added(one: Terms, other: Terms) -> Terms:
    found = dict(one)
    for each, number in other.items():
        found[each] = found.get(each, Fraction(0)) + number
        if not found[each]:
            del found[each]
    return found


def _product(one: Terms, other: Terms) -> Terms:
    if len(one) * len(other) > MOST_TERMS:
        raise TooManyTermsError()
    found: Terms = {}
    for (left, a), (right, b) in pairs(one.items(), other.items()):
        powers = dict(left)
        for factor, power in right:
            powers[factor] = powers.get(factor, 0) + power
        made = frozenset((factor, power) for factor, power in powers.items() if power)
        found = _added(found, {made: a * b})
    return found


def _inverse(terms: Terms) -> Terms:
    ((each, number),) = terms.items()
    return {frozenset((factor, -power) for factor, power in each): 1 / number}


def _indices(factor: Factor) -> Iterator[Index]:
    """The indices of a factor, in order; those that a sum in it runs over too."""
    if factor[0] == "at":
        yield from factor[2]
    elif factor[0] == "sum":
        for inner, _ in factor[2]:
            yield from _indices(inner)


def _has(factor: Factor, index: Index) -> bool:
    return index in _indices(factor)


def _sum_of(inner: Sequence[tuple[Factor, int]], index: Index) -> Factor:
    """A sum over an index, and over those of a sum in it; indices are called by their places."""
    factors, over = list(inner), frozenset((index,))
    if len(factors) == 1 and factors[0][0][0] == "sum" and factors[0][1] == 1:
        _, own, within = factors[0][0]
        factors, over = [*within], over | own
    first = min((i for each, _ in factors for i in _indices(each) if i is not None), default=0)
    named: dict[Index, Index] = {index: min(first, 0) - 1}
    renamed = [(_renamed(factor, named), power) for factor, power in factors]
    renamed.sort(key=lambda each: _order(*each))
    order: dict[Index, Index] = {}
    for each, _ in renamed:
        for each_index in _indices(each):
            if each_index is not None and each_index < 0:
                order.setdefault(each_index, -1 - len(order))
    bound = frozenset(order[named.get(i, i)] for i in over)
    return ("sum", bound, tuple((_renamed(factor, order), power) for factor, power in renamed))


def _order(factor: Factor, power: int) -> tuple[str, ...]:
    """By what factors are put in order: not by how the indices of sums are called."""
    if factor[0] == "at":
        own = ["" if i is None or i < 0 else str(i) for i in factor[2]]
        return ("at", factor[1], *own, str(power))
    if factor[0] == "sum":
        return ("sum", *(part for inner in factor[2] for part in _order(*inner)), str(power))
    return (factor[0], str(factor[1]), str(power))


def _renamed(factor: Factor, names: Mapping[Index, Index]) -> Factor:
    if factor[0] == "at":
        return ("at", factor[1], tuple(names.get(i, i) for i in factor[2]))
    if factor[0] == "sum":
        inner = tuple((_renamed(each, names), power) for each, power in factor[2])
        return ("sum", frozenset(names.get(i, i) for i in factor[1]), inner)
    return factor
