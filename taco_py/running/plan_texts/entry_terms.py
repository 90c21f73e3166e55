"""Elements as polynomials of operands' entries, equal where they are equal as numbers.

    (a + b) * c   →   {a c: 1, b c: 1}      max(a, max(b, a))  →  {max{a, b}: 1}
    a - a         →   {}                    2 + max(a, b)      →  {max{2 + a, 2 + b}: 1}

A term maps products of powers of atoms to their coefficients. An atom is an entry of an operand, or
an operation that no law takes apart; equal atoms have equal numbers. Truths are terms of the same
kind, whose sums are "or" and products "and": coefficients and powers are 1.

With each product stands in how many bytes real numbers it was rounded at most; integers are exact,
for sums and products of them wrap alike in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.language.notation.operators import Operator

DType = np.dtype[Any]
Product = tuple[tuple[int, int], ...]
"""Atoms by number, in order, with the powers that they have."""
Term = Mapping[Product, tuple[Fraction, int]]
"""Coefficients, and the bytes of real numbers; never changed once it is made."""
EXACT = 64
"""More bytes than any type has: what was not rounded."""
ONE: Product = ()
MOST_WORK = 400_000
"""Products that are formed in one comparison."""
TRUE: Term = {ONE: (Fraction(1), EXACT)}
NOTHING: Term = {}


class TooLargeError(Exception):
    """Terms have more products than are compared."""


def key_of(term: Term) -> frozenset[tuple[Product, Fraction]]:
    """Return the key that equal terms share, wherever they were rounded."""
    return frozenset((product, number) for product, (number, _) in term.items())


def bytes_of(dtype: DType) -> int:
    """Return the bytes of each real number of a type; `EXACT` of one without rounding."""
    if dtype.kind not in "fc":
        return EXACT
    return dtype.itemsize // (2 if dtype.kind == "c" else 1)


def rounded(term: Term, dtype: DType) -> Term:
    """Return a term as numbers of a type."""
    most = bytes_of(dtype)
    if most == EXACT or all(size <= most for _, size in term.values()):
        return term
    return {product: (number, min(size, most)) for product, (number, size) in term.items()}


def least_bytes(terms: Iterable[Term]) -> int:
    """Return the bytes of the roughest number among several terms."""
    return min((size for term in terms for _, size in term.values()), default=EXACT)


def number_in(term: Term) -> Fraction | None:
    """Return the number that a term is; None where it has atoms."""
    if not term:
        return Fraction(0)
    return term[ONE][0] if len(term) == 1 and ONE in term else None


@dataclass(slots=True, eq=False)
class Atoms:
    """Atoms by number.

    numbers     of what is known, by a key that equal ones share
    dtypes      the type that has each one's number
    groups      the operator and arguments of those that are reductions
    inside      the truths that are numbers as one atom
    idempotent  those whose powers are all the same: truths as numbers
    work        products that were formed
    """

    numbers: dict[Any, int] = field(default_factory=dict)
    dtypes: list[DType] = field(default_factory=list)
    groups: dict[int, tuple[Operator, tuple[Term, ...]]] = field(default_factory=dict)
    inside: dict[int, Term] = field(default_factory=dict)
    idempotent: set[int] = field(default_factory=set)
    work: int = 0

    def atom(self, key: Any, dtype: DType, size: int = EXACT) -> Term:
        """Return the atom of a key as a term."""
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.dtypes)
            self.dtypes.append(dtype)
            if dtype.kind == "b":
                self.idempotent.add(number)
        return {((number, 1),): (Fraction(1), size)}

    def alone(self, term: Term) -> int | None:
        """Return the number of the atom that a term is; None where it is more."""
        if len(term) != 1:
            return None
        ((product, (number, _)),) = term.items()
        return product[0][0] if number == 1 and len(product) == 1 and product[0][1] == 1 else None

    def number(self, value: Any) -> Term:
        """Return a number as a term; an infinite one, and NaN, is an atom."""
        plain = value.item() if isinstance(value, np.generic | np.ndarray) else value
        if isinstance(plain, complex):
            real, imaginary = self.number(plain.real), self.number(plain.imag)
            unit = self.atom("imaginary unit", np.dtype(np.complex128))
            return self.sum_of((real, self.times(imaginary, unit)))
        if isinstance(plain, float) and not isfinite(plain):
            return self.atom(("number", repr(plain)), np.dtype(np.float64))
        return {ONE: (Fraction(plain), EXACT)} if plain else NOTHING

    # ------------------------------------------------------------ a ring

    def sum_of(self, terms: Iterable[Term]) -> Term:
        """Return the sum of terms."""
        total: dict[Product, tuple[Fraction, int]] = {}
        for term in terms:
            self._count(len(term))
            for product, (number, size) in term.items():
                previous = total.get(product)
                if previous is None:
                    total[product] = number, size
                elif previous[0] + number:
                    total[product] = previous[0] + number, min(previous[1], size)
                else:
                    del total[product]
        return total

    def scaled(self, term: Term, by: Fraction) -> Term:
        """Return a term times a number."""
        return {product: (number * by, size) for product, (number, size) in term.items()}

    def times(self, one: Term, other: Term) -> Term:
        """Return the product of two terms."""
        self._count(len(one) * len(other))
        return self.sum_of(
            {self._multiply_powers(a, b): (x * y, min(m, n))}
            for a, (x, m) in one.items()
            for b, (y, n) in other.items()
        )

    def _multiply_powers(self, one: Product, other: Product) -> Product:
        if not one or not other:
            return one or other
        powers = dict(one)
        for atom, power in other:
            powers[atom] = powers.get(atom, 0) + power
        pairs = ((atom, 1 if atom in self.idempotent else power) for atom, power in powers.items())
        return tuple(sorted((atom, power) for atom, power in pairs if power))

    def inverse(self, term: Term, dtype: DType) -> Term:
        """Return 1 / term."""
        if len(term) == 1:
            ((product, (number, size)),) = term.items()
            if not any(atom in self.idempotent for atom, _ in product):
                turned = tuple((atom, -power) for atom, power in product)
                return {turned: (1 / number, size)}
        atom = self.atom(("sum", key_of(term)), dtype, least_bytes((term,)))
        return {((next(iter(atom))[0][0], -1),): (Fraction(1), least_bytes((term,)))}

    # ------------------------------------------------------------ truths

    def either(self, terms: Iterable[Term]) -> Term:
        """Tell whether one of truths is true."""
        products: dict[Product, tuple[Fraction, int]] = {}
        for term in terms:
            self._count(len(term))
            products.update(term)
        return TRUE if ONE in products else products

    def conjunction(self, one: Term, other: Term) -> Term:
        """Tell whether two truths are true."""
        self._count(len(one) * len(other))
        products = (
            tuple((atom, 1) for atom in sorted({atom for atom, _ in (*a, *b)}))
            for a in one
            for b in other
        )
        return self.either({product: (Fraction(1), EXACT)} for product in products)

    def _count(self, products: int) -> None:
        self.work += products
        if self.work > MOST_WORK:
            raise TooLargeError
