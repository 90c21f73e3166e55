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

MOST_TERMS = 12
"""Products of a value; one of more is a factor as it is."""

MOST_FACTORS = 96
"""Factors in all products of a value, those in sums too."""

Index = int | None
"""An index: above 0 of a mode of the value, the first is 1; below 0 one that a sum runs over; None
of a mode of size 1."""

Factor = tuple[Any, ...]
"""("at", name, indices), ("sum", indices, factors with their powers) or ("size", extent)."""

Product = frozenset[tuple[Factor, int]]
Terms = Mapping[Product, Fraction]

ONE: Product = frozenset()


class TooManyTermsError(Exception):
    """A value that is too long to be written so."""


@dataclass(slots=True, eq=False)
class SumTerms:
    """Writes the values of a graph that is made as sums of products, each once.

    terms  by the names of values
    """

    builder: GraphBuilder
    terms: dict[str, Terms] = field(default_factory=dict)

    def vanishes(self, name: str) -> bool:
        """Tell whether all terms of a value cancel."""
        return not self.of(name)

    def vanishing_sum(self, name: str, axes: Sequence[int]) -> bool:
        """Tell whether all terms of a value's sum over axes cancel."""
        try:
            return not self._sum_over(name, axes)
        except TooManyTermsError:
            return False

    def of(self, name: str) -> Terms:
        """Write a value at the indices of its modes."""
        if name not in self.terms:
            try:
                terms = self._write(name)
                short = len(terms) <= MOST_TERMS and _weight(terms) <= MOST_FACTORS
            except TooManyTermsError:
                short = False
            self.terms[name] = terms if short else self._atom(name)
        return self.terms[name]

    def at(self, name: str, indices: Sequence[Index]) -> Terms:
        """Write a value at other indices."""
        terms = self.of(name)
        names: dict[Index, Index] = {k: i for k, i in enumerate(indices, 1) if k != i}
        return _renamed_terms(terms, names) if names else terms

    def _atom(self, name: str) -> Terms:
        return _factor(("at", name, self._indices(name)))

    def _indices(self, name: str) -> tuple[Index, ...]:
        units = self.builder.facts[name].units
        return tuple(None if unit else k for k, unit in enumerate(units, 1))

    def _write(self, name: str) -> Terms:
        constant, number = self.builder.constants.get(name), self.builder.numbers.get(name)
        terms = None
        if constant is not None and not constant.fact.order:
            terms = _of_number(constant.value)
        elif number is not None:
            terms = _of_size(number.extent)
        elif name in self.builder.nodes:
            terms = self._of_node(self.builder.nodes[name])
        return self._atom(name) if terms is None else terms

    def _of_node(self, node: Node) -> Terms | None:
        if np.dtype(node.dtype).kind != "f":
            return None
        if node.operator in LAYOUTS:
            (name,) = node.inputs
            indices: list[Index] = [None] * self.builder.facts[name].order
            for index, source in zip(self._indices(node.name), node.get("source"), strict=True):
                if source is not None:
                    indices[source] = index
            return self.at(name, indices)
        if node.operator == "map":
            return self._of_map(node)
        if node.operator == "contract":
            return self._of_contraction(node)
        if node.operator == "reduce" and node.get("function") == "sum":
            return self._of_sum(node)
        return None

    def _of_map(self, node: Node) -> Terms | None:
        """Write a function of elements. What a function adds itself is a factor: a row of layers
        that each add to the one before would have terms of all."""
        function = node.get("function")
        if function not in ("add", "subtract", "negative", "multiply", "square", "divide"):
            return None
        if function == "add" and not node.origin.derivative:
            return None
        args = [self.of(name) for name in node.inputs]
        if function == "negative":
            return _scaled(args[0], -1)
        if function == "square":
            return _product(args[0], args[0])
        one, other = args
        if function in ("add", "subtract"):
            return _add(one, _scaled(other, 1 if function == "add" else -1))
        if function == "multiply":
            return _product(one, other)
        return _product(one, _inverse(other if len(other) == 1 else self._atom(node.inputs[1])))

    def _of_sum(self, node: Node) -> Terms:
        (name,), axes = node.inputs, node.get("axes")
        terms = self._sum_over(name, axes)
        remaining = [axis for axis in range(self.builder.facts[name].order) if axis not in axes]
        names: dict[Index, Index] = {old + 1: new for new, old in enumerate(remaining, 1)}
        return _renamed_terms(terms, names)

    def _sum_over(self, name: str, axes: Sequence[int]) -> Terms:
        terms, fact = self.of(name), self.builder.facts[name]
        for axis in axes:
            if not fact.units[axis]:
                terms = _summed(terms, axis + 1, fact.shape[axis])
        return terms

    def _of_contraction(self, node: Node) -> Terms:
        """Write a sum of products of its operands, whatever they are computed from."""
        names: dict[int, Index] = dict(zip(node.get("kept"), self._indices(node.name), strict=True))
        sizes: dict[int, Extent] = {}
        product: Terms = {ONE: Fraction(1)}
        for name, labels in zip(node.inputs, node.get("labels"), strict=True):
            fact = self.builder.facts[name]
            for label, size in zip(labels, fact.shape, strict=True):
                if label not in names and size.constant != 1:
                    names[label], sizes[label] = len(names) + node.fact.order + 1, size
            subscripts = tuple(
                None if size.constant == 1 else names.get(label)
                for label, size in zip(labels, fact.shape, strict=True)
            )
            product = _product(product, _factor(("at", name, subscripts)))
        for label, size in sizes.items():
            product = _summed(product, names[label], size)
        return product


def _summed(terms: Terms, index: Index, size: Extent) -> Terms:
    """Sum over an index: what does not depend on it is taken out."""
    total: Terms = {}
    for product, number in terms.items():
        inner = [(factor, power) for factor, power in product if _has(factor, index)]
        outer = {product - frozenset(inner): number}
        inner_sum = _factor(_sum_of(inner, index)) if inner else _of_size(size)
        total = _add(total, _product(outer, inner_sum))
    return total


def _weight(terms: Terms) -> int:
    """Return the number of factors of all products."""

    def weight(factor: Factor) -> int:
        if factor[0] != "sum":
            return 1
        return 1 + sum(weight(inner) for inner, _ in factor[2])

    return sum(weight(factor) for product in terms for factor, _ in product)


def _renamed_terms(terms: Terms, names: Mapping[Index, Index]) -> Terms:
    """Return terms with other indices, of which sums keep their own."""
    renamed: Terms = {}
    for term, number in terms.items():
        powers: dict[Factor, int] = {}
        for factor, power in term:
            new_factor = _renamed(factor, names)
            powers[new_factor] = powers.get(new_factor, 0) + power
        product = frozenset((factor, power) for factor, power in powers.items() if power)
        renamed = _add(renamed, {product: number})
    return renamed


def _of_number(value: Any) -> Terms | None:
    """Return a number as terms, None if it is not finite."""
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
    return {product: number * factor for product, factor in terms.items()}


def _add(one: Terms, other: Terms) -> Terms:
    total = dict(one)
    for product, number in other.items():
        total[product] = total.get(product, Fraction(0)) + number
        if not total[product]:
            del total[product]
    return total


def _product(one: Terms, other: Terms) -> Terms:
    if len(one) * len(other) > MOST_TERMS:
        raise TooManyTermsError()
    total: Terms = {}
    for (left, a), (right, b) in pairs(one.items(), other.items()):
        powers = dict(left)
        for factor, power in right:
            powers[factor] = powers.get(factor, 0) + power
        product = frozenset((factor, power) for factor, power in powers.items() if power)
        total = _add(total, {product: a * b})
    return total


def _inverse(terms: Terms) -> Terms:
    ((product, number),) = terms.items()
    return {frozenset((factor, -power) for factor, power in product): 1 / number}


def _indices(factor: Factor) -> Iterator[Index]:
    """Yield the indices of a factor, in order; those that a sum in it runs over too."""
    if factor[0] == "at":
        yield from factor[2]
    elif factor[0] == "sum":
        for inner, _ in factor[2]:
            yield from _indices(inner)


def _has(factor: Factor, index: Index) -> bool:
    return index in _indices(factor)


def _sum_of(inner: Sequence[tuple[Factor, int]], index: Index) -> Factor:
    """Return a sum over an index and the inner sum's indices; indices are named by their places."""
    factors, over = list(inner), frozenset((index,))
    if len(factors) == 1 and factors[0][0][0] == "sum" and factors[0][1] == 1:
        _, inner_indices, inner_factors = factors[0][0]
        factors, over = [*inner_factors], over | inner_indices
    first = min((i for factor, _ in factors for i in _indices(factor) if i is not None), default=0)
    new_names: dict[Index, Index] = {index: min(first, 0) - 1}
    renamed = [(_renamed(factor, new_names), power) for factor, power in factors]
    renamed.sort(key=lambda item: _order(*item))
    order: dict[Index, Index] = {}
    for factor, _ in renamed:
        for each_index in _indices(factor):
            if each_index is not None and each_index < 0:
                order.setdefault(each_index, -1 - len(order))
    bound = frozenset(order[new_names.get(i, i)] for i in over)
    return ("sum", bound, tuple((_renamed(factor, order), power) for factor, power in renamed))


def _order(factor: Factor, power: int) -> tuple[str, ...]:
    """Return the key that orders factors, independent of the names of sums' indices."""
    if factor[0] == "at":
        indices = ["" if i is None or i < 0 else str(i) for i in factor[2]]
        return ("at", factor[1], *indices, str(power))
    if factor[0] == "sum":
        return ("sum", *(part for inner in factor[2] for part in _order(*inner)), str(power))
    return (factor[0], str(factor[1]), str(power))


def _renamed(factor: Factor, names: Mapping[Index, Index]) -> Factor:
    if factor[0] == "at":
        return ("at", factor[1], tuple(names.get(i, i) for i in factor[2]))
    if factor[0] == "sum":
        inner = tuple((_renamed(inner_factor, names), power) for inner_factor, power in factor[2])
        return ("sum", frozenset(names.get(i, i) for i in factor[1]), inner)
    return factor
