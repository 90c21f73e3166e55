"""Semirings as data: GraphBLAS's, under GraphBLAS's names, and assignments over them.

    min_plus:  y[j] = sum(i, W[i,j] * d[i])   →   y[j] = min(i, filled(plus(W[i,j], d[i]), inf))

    adds               products of booleans   sums               y += sum, y of numbers
    plus, times        1 and 0 of int64          of the products    as numbers
    or, and, xor       truths, as all factors    truths             y is read as a truth
    any, with pair     True; 1 of the type of y  truths             the largest
    min, max, any      truths                    of the products    as numbers

These are GraphBLAS's types, the same in every call (`_World`): `dtype=` converts a finished sum of
truths.

A semiring is an operator that adds, an operator that multiplies, and a zero: the sum over no
elements, which stands for every element that sparse operands do not store. `with_semiring`
expresses all of it by operators and fill values, from which regions, plans, kernels and the oracle
follow.

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

_BITS = {operator.symbol: operator for level in LADDER[1:4] for operator in level}
_COMPARED = {operator.symbol: operator for operator in LADDER[0]}

ADDS: dict[str, Operator] = {
    "plus": ADD, "times": MUL, "min": MIN, "max": MAX, "any": MAX, "or": OR, "lor": OR, "and": AND,
    "land": AND, "xor": XOR, "lxor": XOR, "bor": _BITS["|"], "band": _BITS["&"],
    "bxor": _BITS["^"],
}  # fmt: skip
"""Operators that semirings add by. "any" is the maximum, so that results do not depend on order."""

MULTIPLIES: dict[str, Operator] = {
    "plus": ADD, "minus": SUB, "times": MUL, "div": DIV, "truediv": DIV, "min": MIN, "max": MAX,
    "and": AND, "land": AND, "or": OR, "lor": OR, "xor": XOR, "lxor": XOR, "bor": _BITS["|"],
    "band": _BITS["&"], "bxor": _BITS["^"], "eq": _COMPARED["=="], "ne": _COMPARED["!="],
    "lt": _COMPARED["<"], "le": _COMPARED["<="], "gt": _COMPARED[">"], "ge": _COMPARED[">="],
}  # fmt: skip
"""Operators that semirings multiply by, as functions of the values of both arguments."""

CHOICES: dict[str, tuple[bool, ...]] = {
    "first": (True, False), "second": (False, True), "pair": (False, False),
    "oneb": (False, False),
}  # fmt: skip
"""Multiplications that read the values of some arguments and only the pattern of the others."""

ONES: dict[str, Number] = {
    "plus": 0, "times": 1, "min": np.inf, "max": -np.inf, "and": True, "land": True, "or": False,
    "lor": False, "xor": False, "lxor": False, "pair": 1, "oneb": 1, "bor": 0, "bxor": 0,
    "band": -1,
}  # fmt: skip
"""The identities of multiplications that have one."""

_TRUTHS = (AND, OR, XOR)
_SUMS_OF_TRUTHS = {OR.name: ADD, MAX.name: ADD, XOR.name: _BITS["^"]}
_SAMPLES = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Semiring:
    """An operator to add by, an operator to multiply by, and their identities.

    >>> tp.Semiring("min", "plus", zero=float("inf"), one=0)
    Semiring(add='min', multiply='plus', zero=inf, one=0)

    add       name of an associative and commutative operator, as "min", or a function of
              `tp.function` that is declared so
    multiply  name of an operator of two arguments, as "plus", "first" or "pair", or such a function
    zero      the value of elements that are not stored; None for the identity of `add` in the type
              of the computation: its largest number for "min"
    one       the identity of `multiply`; None where it is not needed

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
            operator = getattr(self, part)
            if isinstance(operator, ScalarFunction):
                object.__setattr__(self, part, operator.__name__)
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
        """Return the C names of the operators, of which some may be functions of users."""
        operators = (operator for operator in (self.adds, self.multiplies) if operator is not None)
        return tuple(operator.c_operator for operator in operators)

    @property
    def name(self) -> str:
        """Return the semiring's name in GraphBLAS."""
        return f"{self.add}_{self.multiply}"

    @property
    def is_arithmetic(self) -> bool:
        """Tell whether the semiring is ordinary arithmetic, which leaves texts unchanged."""
        return (self.add, self.multiply) == ("plus", "times") and self.zero in (None, 0)

    @property
    def computes_truths(self) -> bool:
        """Tell whether the semiring adds truths, after comparing numbers with 0."""
        return self.adds in _TRUTHS or (self.add, self.multiply) == ("any", "pair")

    def zero_of(self, dtype: DType) -> Number | None:
        """Return the value of unstored elements in a type, None where the semiring has none.

        Raises OperandTypeError for a zero that the type cannot represent.
        """
        default = self.adds.identity_of(dtype)
        if self.zero is None or self.zero == self.adds.identity_of(np.dtype(np.float64)):
            return default
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
    """Return the operator that adds, by its name. Raises NotationError."""
    if isinstance(name, str) and name in ADDS:
        return ADDS[name]
    if isinstance(name, str) and name in DEFINED.operators:
        operator: Operator = DEFINED.operators[name]
        if operator.reduces:
            return operator
        check_reduces(name, None)
    raise _no_add(name)


def _multiplies(name: Any) -> Operator | None:
    """Return the operator that multiplies, by its name; None for a choice. Raises NotationError."""
    if isinstance(name, str) and name in CHOICES:
        return None
    operator = None
    if isinstance(name, str):
        operator = MULTIPLIES.get(name) or DEFINED.operators.get(name)
    if operator is None or operator.arity != 2:
        names = (*MULTIPLIES, *CHOICES)
        what = f"{name!r}" + (f" of {operator.arity} arguments" if operator is not None else "")
        raise NotationError(
            f"Expected a name of what a semiring multiplies by, found {what}",
            hint=with_suggestion(_names(names), str(name), names),
        )
    return operator


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
    """Raise NotationError where an operator changes numbers by its presumed identity."""
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
            result = np.asarray(operator.evaluate(x, value)).item()
        except TypeError:  # of an operator of integers alone
            result = None
        if result != x:
            raise NotationError(
                f"Expected a {what} with {operator}(x, {what}) = x, found {value!r}, and "
                f"{operator}({x}, {value!r}) = {result}",
                hint=f"leave {what}= out for that of the operator",
            )


def semiring_of(semiring: Semiring | str) -> Semiring:
    """Return a semiring itself, or the one with a GraphBLAS name. Raises NotationError."""
    if isinstance(semiring, Semiring):
        return semiring
    if not isinstance(semiring, str):
        raise NotationError(
            f"Expected a semiring or its name, found {type(semiring).__name__}",
            hint='names are "min_plus", "or_and", …; others are tp.Semiring("min", "plus")',
        )
    add, _, multiply = semiring.partition("_")
    if add in ADDS and (multiply in MULTIPLIES or multiply in CHOICES):
        return Semiring(add, multiply, one=ONES.get(multiply))
    if add in MULTIPLIES and add not in ADDS:
        raise _no_add(add)
    raise NotationError(
        f"Expected the name of a semiring, found {semiring!r}",
        hint=with_suggestion(
            f"a name is what adds and what multiplies: {'|'.join(ADDS)}, then _, then "
            f"{'|'.join((*MULTIPLIES, *CHOICES))}",
            semiring,
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
    dtype: DType | None = None,
) -> Assignment:
    """Rewrite the sums and products of an assignment to operators of a semiring.

    sum(k, a * b)  →  add(k, multiply(a, b)), and the semiring's zero where one is not stored

    dtypes  of the operands, by name
    sparse  the operands that do not store all of their elements
    target  type of the tensor that the assignment accumulates into, None without
    dtype   requested type of the result, None for that of the semiring

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
    accumulated = target if assignment.operator is not None else None
    world = _World(semiring, dtypes, accumulated, dtype is not None)
    operator = assignment.operator
    if operator is not None:
        operator = world.accumulate
    value = world.read(assignment.value)
    value_type = expression_dtype(value, dtypes)
    if dtype is not None and semiring.computes_truths:
        value = Call(MUL, (Literal(1, dtype=dtype.name), value), value.span)
    if value_type.kind not in world.add.kinds:
        raise OperandTypeError(
            f"Expected operands that the semiring {semiring.name} is defined for, found dtype "
            f"{value_type}",
            assignment.span,
            hint="convert an operand first, for instance with np.abs(A) or A.real",
        )
    return replace(assignment, value=value, operator=operator)


def _has_no_zero(operator: Operator) -> bool:
    return operator.identity is None and not operator.limit


@dataclass(frozen=True, slots=True)
class _World:
    """The semiring and the types that an expression is read with."""

    semiring: Semiring
    dtypes: Mapping[str, DType]
    target: DType | None = None
    converted: bool = False

    @property
    def onto_numbers(self) -> bool:
        """Tell whether sums accumulate into a tensor of numbers, not truths."""
        return self.target is not None and self.target.kind != "b"

    @property
    def computes_truths(self) -> bool:
        """Tell whether truths are added; the largest of truths and of numbers is a number."""
        return self.semiring.computes_truths and not (
            self.onto_numbers and self.semiring.adds not in _TRUTHS
        )

    @property
    def add(self) -> Operator:
        """Return the operator of sums.

        A plain sum of truths alone is "or", which plans know more about.
        """
        operator = self.semiring.adds
        alone = not self.onto_numbers and not self.converted
        if (
            self.computes_truths
            and (alone or operator == XOR)
            and self.semiring.add not in ("and", "land")
        ):
            return _SUMS_OF_TRUTHS.get(operator.name, operator)
        zero = self.semiring.zero
        if zero is None or zero == operator.identity_of(np.dtype(np.float64)):
            return operator
        return replace(operator, identity=zero, limit=0, needs_elements=False)

    @property
    def accumulate(self) -> Operator:
        """Return the operator that accumulates sums into a tensor.

        It reads the tensor's numbers as truths where sums add truths.
        """
        return self.semiring.adds if self.onto_numbers and self.computes_truths else self.add

    @property
    def multiply(self) -> Operator | None:
        """Return the operator of products, None for a choice.

        A declared zero that annihilates makes a semiring of any two operators: max and * of numbers
        that are never negative.
        """
        operator, zero = self.semiring.multiplies, self.semiring.zero
        if operator is None or any(operator.annihilated(p, zero) is None for p in range(2)):
            return operator
        law = Law(self.add.name, "biuf", zero, "biuf", inside=True)
        return replace(operator, over=(*operator.over, law))

    def read(self, expr: Expr) -> Expr:
        """Rewrite an expression that is not a factor of a product."""
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
        """Sum over an index; the sum over no elements is the semiring's zero."""
        operator = self.add
        if operator.needs_elements:
            zero = self.semiring.zero_of(value_dtype(body, self.dtypes))
            operator = replace(operator, of_none=zero)
        return Reduce(operator, index, body, span)

    def counted(self, expr: Expr) -> Expr:
        """Convert truths to integers where the semiring adds numbers."""
        counts = self.semiring.adds in (ADD, MUL)
        if not counts or value_dtype(expr, self.dtypes).kind != "b":
            return expr
        return Call(MUL, (Literal(1, dtype="int64"), expr), expr.span)

    def truth(self, expr: Expr) -> Expr:
        """Compare an expression with 0 where the semiring adds truths."""
        if not self.computes_truths:
            return expr
        if isinstance(expr, Literal):
            return replace(expr, value=bool(expr.value), dtype="bool")
        is_truth = value_dtype(expr, self.dtypes).kind == "b"
        return expr if is_truth else nonzero(expr)

    def filled(self, expr: Expr) -> Expr:
        """Make the semiring's zero the fill value of an expression."""
        dtype = value_dtype(expr, self.dtypes)
        return filled_of_type(expr, self.semiring.zero_of(dtype), dtype)

    def product(self, expr: Call) -> Expr:
        """Multiply factors; an absent factor makes the product 0 and absent."""
        multiply, factors = self.semiring.multiply, _factors(expr)
        operator = self.multiply
        if operator is None:
            return self.choose(CHOICES[multiply], factors)
        if len(factors) > 2 and not operator.associative:
            raise NotationError(
                f"Expected two factors, for {multiply} is not associative, found {len(factors)}",
                expr.span,
                hint="compute a product of two in a call of its own",
            )
        if operator in _TRUTHS:
            return self.of_truths(operator, factors)
        result = reduce(
            lambda left, right: multiplied(operator, left, right), map(self.cut, factors)
        )
        return replace(result, span=expr.span) if isinstance(result, Call) else result

    def of_truths(self, operator: Operator, factors: tuple[Expr, ...]) -> Expr:
        """Multiply truths, by the product of numbers where both are equal."""
        truths = [self.as_truth(self.cut(factor)) for factor in factors]
        if operator == AND:
            return reduce(lambda left, right: Call(MUL, (left, right)), truths)
        return reduce(lambda left, right: multiplied(operator, left, right), truths)

    def as_truth(self, expr: Expr) -> Expr:
        if isinstance(expr, Literal):
            return replace(expr, value=bool(expr.value), dtype="bool")
        return expr if value_dtype(expr, self.dtypes).kind == "b" else nonzero(expr)

    def choose(self, takes: tuple[bool, ...], factors: tuple[Expr, ...]) -> Expr:
        """Multiply by a choice: the value of one factor, where all factors are stored.

        Of more than two factors it takes the first or the last, as does grouping from the left.
        """
        left, right = takes
        last = len(factors) - 1
        parts: list[Expr] = [] if left or right else [self.one(factors)]
        for place, factor in enumerate(factors):
            value = self.cut(factor)
            takes_value = (left and place == 0) or (right and place == last)
            if takes_value:
                parts.append(value)
            elif not isinstance(value, Literal):
                parts.append(Call(STORED, (value,), factor.span))
        return reduce(lambda one, other: Call(MUL, (one, other)), parts)

    def one(self, factors: tuple[Expr, ...]) -> Expr:
        """Return the 1 of a pair: a truth, an integer to count by, or of the factors' type."""
        if self.computes_truths:
            return Literal(True, dtype="bool")
        if self.semiring.add == "plus":
            return Literal(1, dtype="int64")
        if self.semiring.computes_truths and self.target is not None:
            return Literal(1, dtype=self.target.name)
        dtypes = [value_dtype(factor, self.dtypes) for factor in factors]
        return Literal(1, dtype=np.result_type(*dtypes).name)

    def cut(self, factor: Expr) -> Expr:
        """Rewrite a factor so that its fill value is 0."""
        if isinstance(factor, Access | Literal):
            return factor
        value = self.read(factor)
        dtype = value_dtype(value, self.dtypes)
        return value if self.semiring.zero_of(dtype) == 0 else without_fill(value, dtype)


def without_fill(expr: Expr, dtype: DType) -> Expr:
    """Set the fill value of an expression to the 0 of a type."""
    nothing = Literal(dtype.type(0).item(), dtype=dtype.name)
    return Call(FILLED, (expr, nothing), expr.span)


def _factors(expr: Expr) -> tuple[Expr, ...]:
    """Return the factors of nested products, from the left."""
    if is_call_of(expr, MUL):
        return tuple(factor for arg in expr.args for factor in _factors(arg))
    return (expr,)


def multiplied(operator: Operator, left: Expr, right: Expr) -> Expr:
    """Call an operator that has a value only where both arguments are stored, else 0.

    A literal is stored everywhere.
    """
    args = (left, right)
    zeros = tuple(None if isinstance(arg, Literal) else 0 for arg in args)
    if all(zero is None for zero in zeros):
        return Call(operator, args)
    return Call(_absent_with(operator, zeros), args)


def _absent_with(operator: Operator, zeros: tuple[Number | None, ...]) -> Operator:
    """Return an operator with other annihilators, without laws about its own ones."""
    ufunc = isinstance(operator.evaluate, np.ufunc)
    name = operator.evaluate.__name__ if ufunc else operator.name
    return replace(
        operator, name=name, symbol=name, precedence=4, body=None, signs=(), identity=None,
        right_identity=None, linear=(False, False), scales=False, annihilators=zeros,
    )  # fmt: skip


PRODUCTS: dict[str, Operator] = {
    product.name: product
    for product in (_absent_with(operator, (0, 0)) for operator in (ADD, MUL, MIN, MAX))
}
"""Products of semirings, by the names that they are printed with."""
