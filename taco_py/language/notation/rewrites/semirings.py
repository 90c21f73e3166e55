"""Semirings as data: GraphBLAS's, under GraphBLAS's names, and assignments over them.

    min_plus:  y[j] = sum(i, W[i,j] * d[i])   →   y[j] = min(i, filled(plus(W[i,j], d[i]), inf))

    adds               products that are truths  sums               y += sum, y of numbers
    plus, times        1 and 0 of int64          of the products    as numbers
    or, and, xor       truths, as all factors    truths             y is read as a truth
    any, with pair     True; 1 of the type of y  truths             the largest
    min, max, any      truths                    of the products    as numbers

These are GraphBLAS's types, the same in every call (`_World`): `dtype=` converts a sum of truths
once it is made.

A semiring is an operator that adds up, one that multiplies, and what the sum of nothing is, its
zero, which stands for everything that sparse operands do not store. `with_semiring` says all of it
in operators and fill values, so that regions, plans, kernels and the oracle follow from these.

(Davis 2019, Algorithm 1000: SuiteSparse:GraphBLAS, section 3; Mohri 2002, Semiring frameworks.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from functools import reduce
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import NotationError, OperandError, OperandTypeError
from taco_py.language.diagnostics.source import Span
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.notation.dtypes import DType, expression_dtype, value_dtype
from taco_py.language.notation.functions.defined import DEFINED
from taco_py.language.notation.functions.function_table import (
    AND,
    LADDER,
    MAX,
    MIN,
    OR,
    XOR,
    check_reduces,
    nonzero,
)
from taco_py.language.notation.functions.traced import ScalarFunction
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import (
    ADD,
    DIV,
    FILLED,
    MUL,
    STORED,
    SUB,
    Law,
    Number,
    Operator,
)  # fmt: skip
from taco_py.language.notation.rewrites.fills import filled_of_type
from taco_py.language.notation.tree import is_call_of

_BITS = {each.symbol: each for level in LADDER[1:4] for each in level}
_COMPARED = {each.symbol: each for each in LADDER[0]}

ADDS: dict[str, Operator] = {
    "plus": ADD, "times": MUL, "min": MIN, "max": MAX, "any": MAX, "or": OR, "lor": OR, "and": AND,
    "land": AND, "xor": XOR, "lxor": XOR, "bor": _BITS["|"], "band": _BITS["&"],
    "bxor": _BITS["^"],
}  # fmt: skip
"""What semirings add by. "any" is the largest, so that results do not depend on the order."""

MULTIPLIES: dict[str, Operator] = {
    "plus": ADD, "minus": SUB, "times": MUL, "div": DIV, "truediv": DIV, "min": MIN, "max": MAX,
    "and": AND, "land": AND, "or": OR, "lor": OR, "xor": XOR, "lxor": XOR, "bor": _BITS["|"],
    "band": _BITS["&"], "bxor": _BITS["^"], "eq": _COMPARED["=="], "ne": _COMPARED["!="],
    "lt": _COMPARED["<"], "le": _COMPARED["<="], "gt": _COMPARED[">"], "ge": _COMPARED[">="],
}  # fmt: skip
"""What semirings multiply by, where that is a function of the values of both arguments."""

CHOICES: dict[str, tuple[bool, ...]] = {
    "first": (True, False), "second": (False, True), "pair": (False, False),
    "oneb": (False, False),
}  # fmt: skip
"""Multiplies that take of some arguments the values, of the others only where they are stored."""

ONES: dict[str, Number] = {
    "plus": 0, "times": 1, "min": np.inf, "max": -np.inf, "and": True, "land": True, "or": False,
    "lor": False, "xor": False, "lxor": False, "pair": 1, "oneb": 1, "bor": 0, "bxor": 0,
    "band": -1,
}  # fmt: skip
"""The identities of multiplies that have one."""

_TRUTHS = (AND, OR, XOR)
_SUMS_OF_TRUTHS = {OR.name: ADD, MAX.name: ADD, XOR.name: _BITS["^"]}
_SAMPLES = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Semiring:
    """An operator to add by, one to multiply by, and their neutral elements.

    >>> tp.Semiring("min", "plus", zero=float("inf"), one=0)
    Semiring(add='min', multiply='plus', zero=inf, one=0)

    add       name of an associative and commutative operator, as "min", or a function of
              `tp.function` that is declared so
    multiply  name of an operator of two arguments, as "plus", "first" or "pair", or such a function
    zero      what is added up where nothing is stored; None for what `add` does not change a number
              by, in the type that is computed in: the largest number of it for "min"
    one       what `multiply` does not change a number by; None where that is not needed

    Raises NotationError for an unknown name, for an operator to add by that is not associative and
    commutative, and for a zero or one that changes numbers, with an example.
    """

    add: str
    multiply: str = ""
    zero: Number | None = None
    one: Number | None = None
    adds: Operator = field(init=False, repr=False)
    multiplies: Operator | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for part in ("add", "multiply"):
            given = getattr(self, part)
            if isinstance(given, ScalarFunction):
                object.__setattr__(self, part, given.__name__)
        if self.multiply == "":
            raise NotationError(
                f"Expected what a semiring adds by and what it multiplies by, found {self.add!r} "
                "alone",
                hint='as in tp.Semiring("min", "plus"); semiring="min_plus" takes names as these',
            )
        object.__setattr__(self, "adds", _adds(self.add))
        object.__setattr__(self, "multiplies", _multiplies(self.multiply))
        _check_neutral("zero", self.zero, self.adds)
        if self.multiplies is not None:
            _check_neutral("one", self.one, self.multiplies)

    @property
    def functions(self) -> tuple[str, ...]:
        """What tells the functions of users that it may be made of."""
        operators = (each for each in (self.adds, self.multiplies) if each is not None)
        return tuple(each.c_operator for each in operators)

    @property
    def name(self) -> str:
        """Return its name, as GraphBLAS has it."""
        return f"{self.add}_{self.multiply}"

    @property
    def is_arithmetic(self) -> bool:
        """Tell whether it is the arithmetic of numbers, in which texts are as they are written."""
        return (self.add, self.multiply) == ("plus", "times") and self.zero in (None, 0)

    @property
    def computes_truths(self) -> bool:
        """Tell whether it adds up truths: numbers are compared with 0 first."""
        return self.adds in _TRUTHS or (self.add, self.multiply) == ("any", "pair")

    def zero_of(self, dtype: DType) -> Number | None:
        """Return what is added up where nothing is stored, in a type; None where there is none.

        Raises OperandTypeError for a zero that the type does not hold.
        """
        own = self.adds.identity_of(dtype)
        if self.zero is None or self.zero == self.adds.identity_of(np.dtype(np.float64)):
            return own
        if dtype.kind in "biu" and np.asarray(self.zero).astype(dtype) != self.zero:
            raise OperandTypeError(
                f"Expected a zero of the semiring {self.name} that {dtype} holds, found "
                f"{self.zero!r}",
                hint="convert the operands, or leave zero= out for that of the operator",
            )
        return self.zero


def _names(names: Collection[str]) -> str:
    return f"the names are {', '.join(names)}"


def _adds(name: Any) -> Operator:
    """Return the operator to add by of a name. Raises NotationError."""
    if isinstance(name, str) and name in ADDS:
        return ADDS[name]
    if isinstance(name, str) and name in DEFINED.operators:
        operator: Operator = DEFINED.operators[name]
        if operator.reduces:
            return operator
        check_reduces(name, None)
    raise _no_add(name)


def _multiplies(name: Any) -> Operator | None:
    """Return the operator to multiply by of a name; None for a choice. Raises NotationError."""
    if isinstance(name, str) and name in CHOICES:
        return None
    found = None
    if isinstance(name, str):
        found = MULTIPLIES.get(name) or DEFINED.operators.get(name)
    if found is None or found.arity != 2:
        names = (*MULTIPLIES, *CHOICES)
        what = f"{name!r}" + (f" of {found.arity} arguments" if found is not None else "")
        raise NotationError(
            f"Expected a name of what a semiring multiplies by, found {what}",
            hint=with_suggestion(_names(names), str(name), names),
        )
    return found


def _no_add(name: Any) -> NotationError:
    if name in MULTIPLIES or name in CHOICES:
        return NotationError(
            f"Expected an associative and commutative operator to add by, found {name!r}, which is "
            "not: its result would depend on the order of the terms",
            hint=_names(tuple(ADDS)),
        )
    return NotationError(
        f"Expected a name of what a semiring adds by, found {name!r}",
        hint=with_suggestion(_names(tuple(ADDS)), str(name), ADDS),
    )


def _check_neutral(what: str, value: Number | None, operator: Operator) -> None:
    """Raise NotationError where an operator changes numbers by what shall be neutral to it."""
    if value is None:
        return
    if isinstance(value, str) or not np.isscalar(value):
        raise NotationError(
            f"Expected a number for the {what} of a semiring, found {value!r}",
            hint=f"leave {what}= out for that of the operator",
        )
    samples = (True,) if operator in _TRUTHS else _SAMPLES
    for x in samples:
        try:
            found = np.asarray(operator.evaluate(x, value)).item()
        except TypeError:  # of an operator of integers alone
            found = None
        if found != x:
            raise NotationError(
                f"Expected a {what} with {operator}(x, {what}) = x, found {value!r}, and "
                f"{operator}({x}, {value!r}) = {found}",
                hint=f"leave {what}= out for that of the operator",
            )


def semiring_of(given: Semiring | str) -> Semiring:
    """Return a semiring by GraphBLAS's name of it, or itself. Raises NotationError."""
    if isinstance(given, Semiring):
        return given
    if not isinstance(given, str):
        raise NotationError(
            f"Expected a semiring or its name, found {type(given).__name__}",
            hint='names are "min_plus", "or_and", …; others are tp.Semiring("min", "plus")',
        )
    add, _, multiply = given.partition("_")
    if add in ADDS and (multiply in MULTIPLIES or multiply in CHOICES):
        return Semiring(add, multiply, one=ONES.get(multiply))
    if add in MULTIPLIES and add not in ADDS:
        raise _no_add(add)
    raise NotationError(
        f"Expected the name of a semiring, found {given!r}",
        hint=with_suggestion(
            f"a name is what adds and what multiplies: {'|'.join(ADDS)}, then _, then "
            f"{'|'.join((*MULTIPLIES, *CHOICES))}",
            given,
            (f"{a}_{m}" for a in ADDS for m in (*MULTIPLIES, *CHOICES)),
        ),
    )


# ---------------------------------------------------------------- assignments


def with_semiring(
    assignment: Assignment,
    semiring: Semiring,
    dtypes: Mapping[str, DType],
    sparse: Collection[str] = (),
    target: DType | None = None,
    asked: DType | None = None,
) -> Assignment:
    """Read the sums and products of an assignment as those of a semiring.

    sum(k, a * b)  →  add(k, multiply(a, b)), and the semiring's zero where one is not stored

    dtypes  of the operands, by name
    sparse  the operands that do not store all of their elements
    target  of what is added to, None where nothing is
    asked   that the result shall have, None for that of the semiring

    Raises NotationError for other operators than + and *, for products of more than two factors
    where the semiring's is not associative, OperandError where there is no zero for a sparse
    operand, and OperandTypeError for types that it is not defined for.
    """
    if semiring.is_arithmetic:
        return assignment
    if sparse and semiring.zero is None and _has_no_zero(semiring.adds):
        raise OperandError(
            f"Expected a semiring with a zero, for {', '.join(sparse)} does not store all elements",
            assignment.span,
            hint="say what is not stored: tp.Semiring(…, zero=…)",
        )
    added = target if assignment.operator is not None else None
    world = _World(semiring, dtypes, added, asked is not None)
    operator = assignment.operator
    if operator is not None:
        operator = world.accumulate
    value = world.read(assignment.value)
    dtype = expression_dtype(value, dtypes)
    if asked is not None and semiring.computes_truths:
        value = Call(MUL, (Literal(1, dtype=asked.name), value), value.span)
    if dtype.kind not in world.add.kinds:
        raise OperandTypeError(
            f"Expected operands that the semiring {semiring.name} is defined for, found dtype "
            f"{dtype}",
            assignment.span,
            hint="convert an operand first, for instance with np.abs(A) or A.real",
        )
    return replace(assignment, value=value, operator=operator)


def _has_no_zero(operator: Operator) -> bool:
    return operator.identity is None and not operator.limit


@dataclass(frozen=True, slots=True)
class _World:
    """What an expression is read in."""

    semiring: Semiring
    dtypes: Mapping[str, DType]
    target: DType | None = None
    converted: bool = False

    @property
    def onto_numbers(self) -> bool:
        """Tell whether sums are added to what are no truths."""
        return self.target is not None and self.target.kind != "b"

    @property
    def computes_truths(self) -> bool:
        """Tell whether truths are added up; the largest of them and of numbers is a number."""
        return self.semiring.computes_truths and not (
            self.onto_numbers and self.semiring.adds not in _TRUTHS
        )

    @property
    def add(self) -> Operator:
        """What sums are made by; of truths a plain sum is "or", which plans know more about, where
        nothing but truths is in it."""
        found = self.semiring.adds
        alone = not self.onto_numbers and not self.converted
        if (
            self.computes_truths
            and (alone or found == XOR)
            and self.semiring.add not in ("and", "land")
        ):
            return _SUMS_OF_TRUTHS.get(found.name, found)
        zero = self.semiring.zero
        if zero is None or zero == found.identity_of(np.dtype(np.float64)):
            return found
        return replace(found, identity=zero, limit=0, needs_elements=False)

    @property
    def accumulate(self) -> Operator:
        """What a sum is added to a tensor by, whose numbers are read as truths where those are
        added up."""
        return self.semiring.adds if self.onto_numbers and self.computes_truths else self.add

    @property
    def multiply(self) -> Operator | None:
        """What products are made by; None for a choice. A zero that is declared and annihilates
        makes a semiring of any two operators: max and * of numbers that are never negative."""
        operator, zero = self.semiring.multiplies, self.semiring.zero
        if operator is None or any(operator.annihilated(p, zero) is None for p in range(2)):
            return operator
        law = Law(self.add.name, "biuf", zero, "biuf", inside=True)
        return replace(operator, over=(*operator.over, law))

    def read(self, expr: Expr) -> Expr:
        """Read an expression that no product is around."""
        match expr:
            case Access():
                return self.filled(self.counted(self.truth(expr)))
            case Literal():
                return self.truth(expr)
            case Reduce(operator, index, body) if operator == ADD:
                return self.sum(index, self.read(body), expr.span)
            case Call(operator, args) if operator == ADD:
                return Call(self.add, tuple(map(self.read, args)), expr.span)
            case Call(operator, _) if operator == MUL:
                return self.filled(self.counted(self.truth(self.product(expr))))
        assert isinstance(expr, Call | Reduce)
        raise NotationError(
            f"Expected + and * alone, which a semiring gives a meaning to, found {expr.operator}",
            expr.span,
            hint=f"compute it in a call of its own, or leave semiring={self.semiring.name!r} out",
        )

    def sum(self, index: str, body: Expr, span: Span | None) -> Expr:
        """Add up along an index; no elements add up to the semiring's zero."""
        operator = self.add
        if operator.needs_elements:
            zero = self.semiring.zero_of(value_dtype(body, self.dtypes))
            operator = replace(operator, of_none=zero)
        return Reduce(operator, index, body, span)

    def counted(self, expr: Expr) -> Expr:
        """Count truths where numbers are added up."""
        counts = self.semiring.adds in (ADD, MUL)
        if not counts or value_dtype(expr, self.dtypes).kind != "b":
            return expr
        return Call(MUL, (Literal(1, dtype="int64"), expr), expr.span)

    def truth(self, expr: Expr) -> Expr:
        """Compare with 0 where truths are added up."""
        if not self.computes_truths:
            return expr
        if isinstance(expr, Literal):
            return replace(expr, value=bool(expr.value), dtype="bool")
        is_truth = value_dtype(expr, self.dtypes).kind == "b"
        return expr if is_truth else nonzero(expr)

    def filled(self, expr: Expr) -> Expr:
        """Give the semiring's zero to what is not stored of an expression, which else is 0."""
        dtype = value_dtype(expr, self.dtypes)
        return filled_of_type(expr, self.semiring.zero_of(dtype), dtype)

    def product(self, expr: Call) -> Expr:
        """Multiply; what one factor does not store is 0 and not stored in the product."""
        multiply, factors = self.semiring.multiply, _factors(expr)
        operator = self.multiply
        if operator is None:
            return self.chosen(CHOICES[multiply], factors)
        if len(factors) > 2 and not operator.associative:
            raise NotationError(
                f"Expected two factors, for {multiply} is not associative, found {len(factors)}",
                expr.span,
                hint="compute a product of two in a call of its own",
            )
        if operator in _TRUTHS:
            return self.of_truths(operator, factors)
        found = reduce(
            lambda left, right: multiplied(operator, left, right), map(self.cut, factors)
        )
        return replace(found, span=expr.span) if isinstance(found, Call) else found

    def of_truths(self, operator: Operator, factors: tuple[Expr, ...]) -> Expr:
        """Multiply truths, by the product of numbers where that is the same."""
        truths = [self.as_truth(self.cut(each)) for each in factors]
        if operator == AND:
            return reduce(lambda left, right: Call(MUL, (left, right)), truths)
        return reduce(lambda left, right: multiplied(operator, left, right), truths)

    def as_truth(self, expr: Expr) -> Expr:
        if isinstance(expr, Literal):
            return replace(expr, value=bool(expr.value), dtype="bool")
        return expr if value_dtype(expr, self.dtypes).kind == "b" else nonzero(expr)

    def chosen(self, takes: tuple[bool, ...], factors: tuple[Expr, ...]) -> Expr:
        """Multiply by a choice: the value of one factor, where all are stored.

        Of more than two the first, or the last, is taken, as pairs from the left have it.
        """
        left, right = takes
        last = len(factors) - 1
        found: list[Expr] = [] if left or right else [self.one(factors)]
        for place, factor in enumerate(factors):
            value = self.cut(factor)
            taken = (left and place == 0) or (right and place == last)
            if taken:
                found.append(value)
            elif not isinstance(value, Literal):
                found.append(Call(STORED, (value,), factor.span))
        return reduce(lambda one, other: Call(MUL, (one, other)), found)

    def one(self, factors: tuple[Expr, ...]) -> Expr:
        """Return the 1 of a pair: a truth, a number to count by, or of the type of the factors."""
        if self.computes_truths:
            return Literal(True, dtype="bool")
        if self.semiring.add == "plus":
            return Literal(1, dtype="int64")
        if self.semiring.computes_truths and self.target is not None:
            return Literal(1, dtype=self.target.name)
        dtypes = [value_dtype(each, self.dtypes) for each in factors]
        return Literal(1, dtype=np.result_type(*dtypes).name)

    def cut(self, factor: Expr) -> Expr:
        """Read a factor, whose fill value is 0."""
        if isinstance(factor, Access | Literal):
            return factor
        found = self.read(factor)
        dtype = value_dtype(found, self.dtypes)
        return found if self.semiring.zero_of(dtype) == 0 else without_fill(found, dtype)


def without_fill(expr: Expr, dtype: DType) -> Expr:
    """Make what is not stored of an expression of a type 0."""
    nothing = Literal(dtype.type(0).item(), dtype=dtype.name)
    return Call(FILLED, (expr, nothing), expr.span)


def _factors(expr: Expr) -> tuple[Expr, ...]:
    """Return the factors of a product of products, from the left."""
    if is_call_of(expr, MUL):
        return tuple(factor for arg in expr.args for factor in _factors(arg))
    return (expr,)


def multiplied(operator: Operator, left: Expr, right: Expr) -> Expr:
    """Call an operator that has a value only where both arguments are stored, and else 0.

    A number is stored everywhere.
    """
    args = (left, right)
    zeros = tuple(None if isinstance(arg, Literal) else 0 for arg in args)
    if all(zero is None for zero in zeros):
        return Call(operator, args)
    return Call(_absent_with(operator, zeros), args)


def _absent_with(operator: Operator, zeros: tuple[Number | None, ...]) -> Operator:
    """Return an operator with other annihilators, and no law that was about its own."""
    ufunc = isinstance(operator.evaluate, np.ufunc)
    name = operator.evaluate.__name__ if ufunc else operator.name
    return replace(
        operator, name=name, symbol=name, precedence=4, body=None, signs=(), identity=None,
        right_identity=None, linear=(False, False), scales=False, annihilators=zeros,
    )  # fmt: skip


PRODUCTS: dict[str, Operator] = {
    each.name: each
    for each in (_absent_with(operator, (0, 0)) for operator in (ADD, MUL, MIN, MAX))
}
"""Products of semirings, by the names that they print as."""
