"""Operators applied to terms, by the laws that the planner may use.

    x - y          x + (-1) y           selected(c, x, y)    c x + (1 - c) y
    x / y          x y^-1               max(x, min(y, z))    min(max(x, y), max(x, z))
    kept(x, c)     c x                  filled(x, v)         x where it is stored

Whatever else is done to terms is an atom of the operator and its arguments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import islice, product
from typing import Any

import numpy as np

from taco_py.language.notation.operators import ADD, Operator
from taco_py.running.plan_texts.entry_terms import (
    NOTHING,
    TRUE,
    Atoms,
    DType,
    Term,
    TooLargeError,
    key_of,
    least_bytes,
    number_in,
    rounded,
)

OR = ("add", "max", "logical_or", "|")
AND = ("mul", "min", "logical_and", "&")
"""Operators of truths."""
SAME = ("filled", "wrapped", "value")
"""Those that give their first argument back where it is stored."""
MOST_GROUP = 500
MOST_FACTORS = 8
SHARE = Fraction(1, 4)
"""The share of squares below which `corrected` computes an element as it is written."""


def cast(atoms: Atoms, term: Term, source: DType, target: DType) -> Term:
    """Return a term of one type as another type has it."""
    if source == target or not term:
        return term
    number = number_in(term)
    if number is not None:
        return _number_in_type(atoms, term, number, target)
    if target.kind == "b":
        return truth(atoms, term)
    alone = atoms.alone(term)
    fits = alone is not None and _holds(target, atoms.dtypes[alone])
    if source.kind == "b" or (source.kind in "iu" and not _holds_wrapped(source, target)):
        is_exact = alone is not None and _holds(source, atoms.dtypes[alone])
        return term if fits and is_exact else _opaque(atoms, term, source)
    if fits or target.kind == "O" or source.kind in "iu":
        return rounded(term, target)
    if target.kind in "fc" and (target.kind == "c" or source.kind == "f"):
        return rounded(term, target)
    return atoms.atom(("to", target, key_of(term)), target, least_bytes((term,)))


def _opaque(atoms: Atoms, term: Term, dtype: DType) -> Term:
    """Return a term of a type, whose laws end there."""
    atom = atoms.atom(("as", dtype, key_of(term)), dtype)
    number = atoms.alone(atom)
    assert number is not None
    atoms.inside[number] = term
    return atom


def _number_in_type(atoms: Atoms, term: Term, number: Fraction, target: DType) -> Term:
    """Return a number in a type: integers wrap, truths are 0 or 1."""
    if target.kind == "b":
        return TRUE if number else NOTHING
    if target.kind in "iu" and number.denominator == 1:
        bits = 8 * target.itemsize
        wrapped = int(number) % 2**bits
        signed = target.kind == "i" and wrapped >= 2 ** (bits - 1)
        return atoms.number(wrapped - 2**bits if signed else wrapped)
    if target.kind in "iu":
        return atoms.number(int(number))
    return rounded(term, target)


def _holds(wide: DType, narrow: DType) -> bool:
    """Tell whether a type has every number of another one, digits of real ones left out."""
    if wide.kind in "fcO":
        return wide.kind != "f" or narrow.kind != "c"
    return bool(np.can_cast(narrow, wide, "safe"))


def _holds_wrapped(source: DType, target: DType) -> bool:
    """Tell whether a value wrapped in one type wraps to the same number in another."""
    return target.kind in "iu" and target.itemsize <= source.itemsize


def truth(atoms: Atoms, term: Term) -> Term:
    """Tell whether a number is not 0."""
    number = number_in(term)
    if number is not None:
        return TRUE if number else NOTHING
    alone = atoms.alone(term)
    if alone is not None and atoms.dtypes[alone].kind == "b":
        return atoms.inside.get(alone, term)
    return atoms.atom(("truth", key_of(term)), np.dtype(bool))


def choice(atoms: Atoms, condition: Term, dtype: DType) -> Term:
    """Return 1 where a condition is not 0, else 0, as a number."""
    condition_truth = truth(atoms, condition) if dtype.kind != "b" else condition
    return cast(atoms, condition_truth, np.dtype(bool), np.dtype(np.int64))


def applied(
    atoms: Atoms, operator: Operator, args: Sequence[Term], dtype: DType, result_dtype: DType
) -> Term:
    """Return an operator of terms of one type.

    result_dtype  the type of its result
    """
    result = _by_law(atoms, operator, args, dtype)
    if result is None:
        result = _evaluated(atoms, operator, args, dtype)
    if result is None:
        result = _reduced(atoms, operator, args, dtype) if operator.reduces else None
    if result is None:
        keys: Any = [key_of(arg) for arg in args]
        keys = frozenset(keys) if operator.commutative and len({*keys}) == 2 else tuple(keys)
        result = atoms.atom((operator, dtype, keys), result_dtype, least_bytes(args))
    return rounded(result, dtype if result_dtype.kind not in "fc" else result_dtype)


def _by_law(  # noqa: C901 - a table
    atoms: Atoms, operator: Operator, args: Sequence[Term], dtype: DType
) -> Term | None:
    """Return the result of an operator that is a sum or a product, or chooses; None for others."""
    name, truths = operator.name, dtype.kind == "b"
    if operator.body is not None:  # a user's function may have any name
        return None
    if truths and name in OR:
        return atoms.either(args)
    if truths and name in AND:
        return atoms.conjunction(*args)
    if name in SAME:
        return args[0]
    if name in ("stored", "present"):
        return TRUE
    if name == "not_equal" and not args[1]:
        return truth(atoms, args[0])
    if name == "nonzero":
        return truth(atoms, args[0]) if truths else choice(atoms, args[0], dtype)
    if name == "kept":
        return _product(atoms, args[0], choice(atoms, args[1], dtype), truths)
    if name in ("selected", "where"):
        return _select(atoms, args, dtype)
    if name == "corrected":
        return _corrected(atoms, *args)
    if truths:
        return None
    if name == "add":
        return atoms.sum_of(args)
    if name == "sub":
        return atoms.sum_of((args[0], atoms.scaled(args[1], Fraction(-1))))
    if name == "neg":
        return atoms.scaled(args[0], Fraction(-1))
    if name == "mul":
        return atoms.times(*args)
    if name in ("div", "quotient") and args[1]:
        return atoms.times(args[0], atoms.inverse(args[1], dtype))
    if operator.exponent is not None:
        return _power(atoms, args[0], operator.exponent)
    return None


def _product(atoms: Atoms, one: Term, other: Term, truths: bool) -> Term:
    return atoms.conjunction(one, other) if truths else atoms.times(one, other)


def _select(atoms: Atoms, args: Sequence[Term], dtype: DType) -> Term | None:
    condition, then, orelse = args
    if key_of(then) == key_of(orelse):
        return then
    number = number_in(condition)
    if number is not None:
        return then if number else orelse
    if dtype.kind == "b":
        return None
    weight = choice(atoms, condition, dtype)
    other = atoms.sum_of((TRUE, atoms.scaled(weight, Fraction(-1))))
    return atoms.sum_of((atoms.times(weight, then), atoms.times(other, orelse)))


def _corrected(atoms: Atoms, value: Term, least: Term, direct: Term) -> Term | None:
    """Return the uncorrected value, with a share of the squares in it as the limit."""
    squares = {p: n for p, n in value.items() if all(power % 2 == 0 for _, power in p)}
    same = key_of(value) == key_of(direct)
    return value if same and key_of(least) == key_of(atoms.scaled(squares, SHARE)) else None


def _power(atoms: Atoms, base: Term, exponent: int) -> Term | None:
    if len(base) > 1 and exponent > MOST_FACTORS:
        return None
    power: Term = TRUE
    for _ in range(exponent):
        power = atoms.times(power, base)
    return power


def _evaluated(atoms: Atoms, operator: Operator, args: Sequence[Term], dtype: DType) -> Term | None:
    """Return the number that an operator is of numbers; None where there are others."""
    numbers = [number_in(arg) for arg in args]
    if any(number is None for number in numbers) or dtype.kind not in "biuf":
        return None
    kind = float if dtype.kind == "f" else int
    arguments = [np.asarray(kind(n)).astype(dtype) for n in numbers if n is not None]
    with np.errstate(all="ignore"):
        return atoms.number(np.asarray(operator.evaluate(*arguments)))


# ---------------------------------------------------------------- reductions


def reduced(atoms: Atoms, operator: Operator, terms: Sequence[Term], dtype: DType) -> Term:
    """Return an operator of any number of terms of a type."""
    if not terms:
        return _identity(atoms, operator, dtype)
    if dtype.kind == "b" and operator.name in OR:
        return atoms.either(terms)
    if operator.name == "add":
        return rounded(atoms.sum_of(terms), dtype)
    if operator.reduces and operator.name not in ("add", "mul") and dtype.kind != "b":
        return rounded(_reduced(atoms, operator, terms, dtype), dtype)
    total = terms[0]
    for term in terms[1:]:
        total = applied(atoms, operator, (total, term), dtype, dtype)
    return total


def _reduced(atoms: Atoms, operator: Operator, terms: Sequence[Term], dtype: DType) -> Term:
    """Return a reduction: its arguments without grouping and order, those of others inside it
    spread, and what all of them add before it: max(a + b, b) as b + max(a, 0)."""
    flat = [part for term in terms for part in _arguments(atoms, operator, term)]
    inner = next(
        (g for g in (_group(atoms, t) for t in flat) if _spreads(operator, g, dtype)), None
    )
    if inner is not None:
        return _over_groups(atoms, operator, flat, inner[0], dtype)
    numbers = [t for t in flat if number_in(t) is not None]
    unknown = [t for t in flat if number_in(t) is None]
    every = [*(_folded(atoms, operator, numbers, dtype) if numbers else ()), *unknown]
    if not every:
        return _identity(atoms, operator, dtype) if not numbers else numbers[0]
    if operator.idempotent or operator.limit:
        every = list({key_of(part): part for part in every}.values())
    if len(every) > MOST_GROUP:
        raise TooLargeError
    common = _common(every) if len(every) > 1 and _adds(operator, dtype) else NOTHING
    if common:
        less = atoms.scaled(common, Fraction(-1))
        every = [atoms.sum_of((part, less)) for part in every]
    folded = every[0] if len(every) == 1 else _grouped(atoms, operator, every, dtype)
    return atoms.sum_of((common, folded)) if common else folded


def _grouped(atoms: Atoms, operator: Operator, every: Sequence[Term], dtype: DType) -> Term:
    """Return the atom of a reduction of several terms."""
    counted = frozenset(Counter(map(key_of, every)).items())
    key = "reduced", operator.name, dtype, counted
    atom = atoms.atom(key, dtype, least_bytes(every))
    number = atoms.alone(atom)
    assert number is not None
    atoms.groups[number] = operator, tuple(every)
    return atom


def _common(terms: Sequence[Term]) -> Term:
    """Return the summands that several terms have in common."""
    first, *rest = terms
    return {p: n for p, n in first.items() if all(p in t and t[p][0] == n[0] for t in rest)}


def _adds(operator: Operator, dtype: DType) -> bool:
    """Tell whether sums may be moved out of a reduction."""
    return ADD.law(operator, dtype) is not None


def _identity(atoms: Atoms, operator: Operator, dtype: DType) -> Term:
    empty = operator.identity_of(dtype)
    return NOTHING if empty is None else atoms.number(empty)


def spread(atoms: Atoms, term: Term) -> Term:
    """Return a sum of reductions as one: max(a, b) + max(c, d) as max(a + c, a + d, b + c, b +
    d)."""
    for product_, (number, _) in term.items():
        atom = product_[0][0] if len(product_) == 1 and product_[0][1] == 1 and number == 1 else -1
        if atom in atoms.groups:
            operator = atoms.groups[atom][0]
            every = _arguments(atoms, operator, term)
            return _grouped(atoms, operator, list(every), atoms.dtypes[atom])
    return term


def _folded(atoms: Atoms, operator: Operator, numbers: Sequence[Term], dtype: DType) -> list[Term]:
    """Return the one number that an operator is of several; none where that is its identity."""
    folded = numbers[0]
    for number in numbers[1:]:
        folded = _evaluated(atoms, operator, (folded, number), dtype) or NOTHING
    identity = operator.identity_of(dtype)
    same = identity is not None and key_of(atoms.number(identity)) == key_of(folded)
    return [] if same else [folded]


def _group(atoms: Atoms, term: Term) -> tuple[Operator, tuple[Term, ...]] | None:
    """Return the reduction that a term is."""
    alone = atoms.alone(term)
    return None if alone is None else atoms.groups.get(alone)


def _arguments(atoms: Atoms, operator: Operator, term: Term) -> list[Term]:
    """Return the operator's arguments of a term and its constant; none for the identity."""
    if operator.limit:
        absent = atoms.number(float("inf") * operator.limit)
        if any(product_ in term for product_ in absent):
            return []
    group = _group(atoms, term)
    if group is not None and group[0].name == operator.name:
        return list(group[1])
    if len(term) > 1 and operator.limit:
        for product_, (number, size) in term.items():
            part = {product_: (number, size)}
            group = _group(atoms, part)
            if group is not None and group[0].name == operator.name:
                rest = {p: n for p, n in term.items() if p != product_}
                return [
                    argument
                    for one in group[1]
                    for argument in _arguments(atoms, operator, atoms.sum_of((rest, one)))
                ]
    return [term]


def _spreads(
    operator: Operator, group: tuple[Operator, tuple[Term, ...]] | None, dtype: DType
) -> bool:
    """Tell whether an operator distributes over the reduction in its argument."""
    if group is None or group[0].name == operator.name:
        return False
    inner = group[0]
    mutual = inner.law(operator, dtype) is not None
    return operator.law(inner, dtype) is not None and not (mutual and operator.name > inner.name)


def _over_groups(
    atoms: Atoms, operator: Operator, terms: Sequence[Term], inner: Operator, dtype: DType
) -> Term:
    """Rewrite f(x, g(y, z)) as g(f(x, y), f(x, z))."""
    lists = []
    for term in terms:
        group = _group(atoms, term)
        lists.append(group[1] if group and group[0].name == inner.name else (term,))
    every = list(islice(product(*lists), MOST_GROUP + 1))
    if len(every) > MOST_GROUP:
        raise TooLargeError
    parts = [_reduced(atoms, operator, choice, dtype) for choice in every]
    return _reduced(atoms, inner, parts, dtype)
