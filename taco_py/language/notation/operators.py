"""Operators as data: name, symbol, evaluation and algebra.

The compiler never asks "is this a multiplication?". It asks for the annihilator (with which an
absent operand makes the result absent), for the identity (which leaves the other operand), for
linearity (whether duplicates of an operand may be summed afterwards, and sums moved through it) and
for signs (whether the operands are terms of a sum). A new operator is an entry in this table.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from dataclasses import field, replace
from typing import Any

import numpy as np

from codegen.records import dataclass

Number = bool | int | float | complex


@dataclass(frozen=True, slots=True)
class Law:
    """Distributivity of an operator over another one, with the types where it holds.

    add          the name of the operator that adds
    kinds        NumPy's letters of the types where the law holds
    zero         the identity of `add`, where that annihilates the operator too: inf of min and +.
                 For integers, infinity stands for the largest or smallest value.
    annihilates  the types in which it does: inf + x = inf, but the largest integer + 1 wraps
    inside       whether the law holds only where no result overflows the type
    """

    add: str
    kinds: str
    zero: Number | None = None
    annihilates: str = ""
    inside: bool = False

    def is_annihilated(self, zero: Number, add: Operator, dtype: np.dtype[Any]) -> bool:
        """Tell whether products with a zero of a type are that zero."""
        is_of_law = add.identity_of(np.dtype(np.float64)) == self.zero
        return dtype.kind in self.annihilates and is_of_law and zero == add.identity_of(dtype)


@dataclass(frozen=True, slots=True)
class Operator:
    """A pointwise function of one, two or three arguments.

    identity     e with f(e, x) = f(x, e) = x, or None. `right_identity`: e with f(x, e) = x alone.
    annihilators per argument, the value a with f(.., a, ..) = a whatever the others are, or None.
    linear       per argument, whether f is additive in it: f(x + y, z) = f(x, z) + f(y, z).
    signs        where f adds up its arguments or their negations, the sign of each: x - y has
                 (1, -1). Its arguments are then terms.
    scales       whether a factor of the first argument is one of f: f(x · y, z) = f(x, z) · y.
    at_absent    of the compiler's internal operators: the value where the first argument is not
                 stored, which differs from that of 0.
    at_fills     of the compiler's internal operators: the value at the fills of the arguments
    needs_elements  whether a reduction of no elements is an error, as in NumPy
    of_none      the value of a reduction of no elements all the same, as the zero of a semiring;
                 None where it is an error
    limit        which end of a type's numbers is the identity: 1 the largest, -1 the smallest
    numbers      places of arguments that are literals of the text, which do not annihilate
    idempotent   whether f(x, x) = x
    over         laws of distributivity: f(add(x, y), z) = add(f(x, z), f(y, z)), and so in z
    kinds        NumPy's letters of the types of arguments that f is defined for
    loops        of a user's function: NumPy's names of the types that f is computed in, as of the
                 loops of NumPy's functions; () where `kinds` suffices
    floating     whether integers are computed in floating point, as in NumPy's functions
    divides      whether f(0, 0) is not a number
    of_truths    the function that f is of truths where it differs from that of integers: ~True is
                 False, ~1 is -2. Truths are then no numbers to it, also in sums.
    of_fractions builds f of floating-point numbers from its argument: reciprocal(x) is 1 / x
    of_width     NumPy's letters of the kinds of numbers where f depends on the width of their type,
                 in which it is computed in sums too: ~1 is 254 of uint8
    compares     whether f compares numbers exactly, whatever their types: 300 is more than any
                 uint8, and -1 less than any uint64
    everywhere   of the compiler's internal operators: whether f has a value also where its argument
                 is not stored
    leads        whether the first argument alone determines the type of the computation
    root         n where f(x ** n) is x or |x|
    condition    of the compiler's internal operators: the argument where 0 means that f is neither
                 computed nor stored
    chooses      whether f is its second argument where the first is not 0, else its third
    exponent     n where f(x) = x ** n. Powers occur in texts alone; `insert_reductions` replaces
                 them by products.
    body         of a user's function: from the arguments to the expression that replaces a call
                 where reductions are made explicit
    cotangents   per argument, the cotangent of it as text, of that of the value `d`, the arguments
                 `a`, `b`, `c` and the value `f`: ("d * b", "a * d") of a * b. "0" where f is a
                 constant almost everywhere; where f has a kink, the mean of both sides. Of complex
                 numbers they are of conjugates. () where f has no derivative.
    evaluate     the same function on NumPy arrays.
    c_operator   the loop IR's spelling (`codegen.ir.Binary.op` or `Unary.op`); a comparison of one
                 argument is one with 0.
    """

    name: str
    symbol: str
    arity: int
    c_operator: str
    precedence: int
    commutative: bool = False
    associative: bool = False
    identity: Number | None = None
    right_identity: Number | None = None
    annihilators: tuple[Number | None, ...] = (None, None)
    linear: tuple[bool, ...] = (False, False)
    signs: tuple[int, ...] = ()
    scales: bool = False
    at_absent: Callable[..., Number] | None = field(default=None, compare=False, repr=False)
    at_fills: Callable[..., Number] | None = field(default=None, compare=False, repr=False)
    limit: int = 0
    numbers: tuple[int, ...] = field(default=(), repr=False)
    needs_elements: bool = field(default=False, compare=False, repr=False)
    of_none: Number | None = field(default=None, compare=False, repr=False)
    idempotent: bool = False
    kinds: str = "biufc"
    loops: tuple[str, ...] = field(default=(), repr=False)
    floating: bool = False
    true_division: bool = False  # integers promote to float64, as in NumPy
    divides: bool = False
    of_truths: Operator | None = field(default=None, repr=False)
    of_fractions: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    of_width: str = field(default="", repr=False)
    leads: bool = False
    compares: bool = field(default=False, compare=False, repr=False)
    chooses: bool = field(default=False, repr=False)
    condition: int | None = field(default=None, compare=False, repr=False)
    everywhere: bool = False
    over: tuple[Law, ...] = field(default=(), compare=False, repr=False)
    root: int = field(default=0, repr=False)
    exponent: int | None = field(default=None, repr=False)
    body: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    cotangents: tuple[str, ...] = field(default=(), compare=False, repr=False)
    evaluate: Callable[..., Any] = field(default=np.add, compare=False, repr=False)

    @property
    def additive(self) -> bool:
        """Tell whether f adds its arguments or their negations: f(x + x', y + y') = f(x, y) + f(x',
        y')."""
        return bool(self.signs)

    @property
    def reduces(self) -> bool:
        """Tell whether f can reduce any number of values, in any order, also none."""
        begins = self.identity is not None or self.limit != 0
        return self.arity == 2 and self.associative and self.commutative and begins

    @property
    def distributes(self) -> bool:
        """Tell whether f is a product: factors commute, and sums move through it.

        f(sum(i, x), y) = sum(i, f(x, y)), in either argument
        """
        return self.associative and self.commutative and all(self.linear)

    def at(self, numbers: tuple[Number | None, ...], dtype: np.dtype[Any] | None = None) -> Number:
        """Evaluate the function at the fill values of its arguments.

        dtype  of the computation; None for that of the numbers: NaN then where integers give
               another value than real numbers, as 0 // 0
        """
        special = self.at_absent or self.at_fills
        if special is not None:
            return special(*numbers)
        integers_only = "f" not in self.kinds  # zeros of any type are then integers
        arguments = [
            int(x.real) if integers_only and isinstance(x, float | complex) else x for x in numbers
        ]
        if dtype is not None or self.loops:
            return self._evaluated(arguments, np.dtype(self.loops[-1]) if dtype is None else dtype)
        if self.floating or "b" not in self.kinds:  # NumPy computes those of booleans in 16 bits
            arguments = [int(x) if isinstance(x, bool) else x for x in arguments]
        value = self._evaluated(arguments, _longest(arguments))
        may_differ = {"i", "f"} <= {*self.kinds} and all(map(_is_short, arguments))
        real = self._evaluated(arguments, np.dtype(np.float64)) if may_differ else value
        return value if real == value else float("nan")

    def _evaluated(self, numbers: list[Any], dtype: np.dtype[Any] | None) -> Number:
        """Evaluate the function in a type, None for that of the numbers."""
        with np.errstate(all="ignore"):
            arrays = (np.asarray(x) if dtype is None else _converted(x, dtype) for x in numbers)
            value: Number = np.asarray(self.evaluate(*arrays)).item()
        return value

    def annihilated(self, place: int, fill: Number | None) -> Number | None:
        """Return the value of f where the fill of an argument annihilates it, else None.

        Infinity annihilates a sum as 0 does a product: an absent element stays -inf, whatever is
        added.
        """
        if fill is None or place in self.numbers:
            return None
        if self.signs and fill in (float("inf"), -float("inf")):
            return fill * self.signs[place]
        zero = self.annihilators[place]
        same = zero is not None and (fill == zero or (fill != fill and zero != zero))
        return zero if same else None

    def law(self, add: Operator, dtype: np.dtype[Any]) -> Law | None:
        """Return the law by which f distributes over sums by `add` of a type, or None.

        f(add(x, y), z) = add(f(x, z), f(y, z))
        """
        if not (self.associative and self.commutative):
            return None
        laws = (law for law in self.over if law.add == add.name and dtype.kind in law.kinds)
        return next(laws, None)

    @property
    def closes(self) -> bool:
        """Tell whether f closes sums of products inside its arguments: f is neither a sum nor
        linear."""
        return not self.additive and not any(self.linear)

    @property
    def reduces_truths(self) -> bool:
        """Tell whether a reduction by f reduces truths to a truth."""
        return isinstance(self.identity, bool)

    def identity_of(self, dtype: np.dtype[Any]) -> Number | None:
        """Return the identity e of f in a type: f(e, x) = f(x, e) = x; None without one."""
        if not self.limit:
            bits = self.identity == -1 and dtype.kind in "bu"  # all of them, as of -1
            return ~dtype.type(0).item() % 2 ** (8 * dtype.itemsize) if bits else self.identity
        if dtype.kind == "b":
            return self.limit > 0
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            return int(limits.max if self.limit > 0 else limits.min)
        return float("inf") * self.limit

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the compiler's internal operators by name, because their functions have none."""
        if COMPILER.get(self.name) == self:
            return compilers_own, (self.name,)
        return copyreg.__newobj__, (Operator,), self.__getstate__()  # type: ignore[attr-defined]


def _is_short(number: Any) -> bool:
    """Tell whether a number is an integer of less than 32 bits."""
    return isinstance(number, int) and abs(number) < 2**31


def _longest(numbers: list[Any]) -> np.dtype[Any] | None:
    """Return uint64 for nonnegative integers of which one exceeds int64, else None."""
    nonnegative = all(isinstance(x, int) and x >= 0 for x in numbers)
    return np.dtype(np.uint64) if nonnegative and max(numbers) > np.iinfo(np.int64).max else None


def _converted(number: Any, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Convert a number to a type as NumPy does: integers wrap, real types drop imaginary parts."""
    if isinstance(number, complex) and dtype.kind != "c":
        number = number.real
    return np.asarray(number).astype(dtype)


def compilers_own(name: str) -> Operator:
    """Return the compiler's internal operator of a name."""
    return COMPILER[name]


ADD = Operator(
    "add", "+", 2, "+", 1, commutative=True, associative=True, identity=0, right_identity=0,
    signs=(1, 1), cotangents=("d", "d"),
    evaluate=np.add,
    over=(
        Law("min", "iuf", float("inf"), "f", inside=True),
        Law("max", "iuf", -float("inf"), "f", inside=True),
    ),
)  # fmt: skip
SUB = Operator(
    "sub", "-", 2, "-", 1, right_identity=0, signs=(1, -1), cotangents=("d", "-d"),
    evaluate=np.subtract,
)  # fmt: skip
MUL = Operator(
    "mul", "*", 2, "*", 2, commutative=True, associative=True, identity=1, right_identity=1,
    annihilators=(0, 0), linear=(True, True), cotangents=("d * b", "a * d"),
    evaluate=np.multiply,
    over=(
        Law("min", "b"), Law("max", "b", -float("inf"), "b"), Law("logical_and", "b"),
        Law("bitwise_xor", "b", 0, "b"),
    ),
)  # fmt: skip
DIV = Operator(
    "div", "/", 2, "/", 2, right_identity=1, annihilators=(0, None), linear=(True, False),
    scales=True, true_division=True, divides=True, cotangents=("d / b", "-d * a / (b * b)"),
    evaluate=np.true_divide,
)  # fmt: skip
NEG = Operator(
    "neg", "-", 1, "-", 3, annihilators=(0,), linear=(True,), signs=(-1,), scales=True,
    cotangents=("-d",),
    evaluate=np.negative,
)  # fmt: skip

NONZERO = Operator(
    "nonzero", "nonzero", 1, "!=", 4, annihilators=(0,),
    cotangents=("0",),
    evaluate=lambda x: np.not_equal(x, 0).astype(np.asarray(x).dtype),
)  # fmt: skip
"""1 for a nonzero argument, in its type. Internal: the text has no syntax for it."""

STORED = Operator(
    "stored", "stored", 1, "true", 4, annihilators=(0,),
    at_absent=lambda x: False, cotangents=("0",),
    evaluate=lambda x: np.ones(np.shape(x), bool),
)  # fmt: skip
"""True where the argument is stored, whatever its value."""

PRESENT = replace(STORED, name="present", symbol="present", linear=(True,))
"""The same for sums of booleans, which are "or": entries with equal coordinates count as one.
Internal."""

KEEP = Operator(
    "kept", "kept", 2, "kept", 4, annihilators=(0, 0), linear=(True, False), condition=1,
    cotangents=("kept((d), b)", "0"),
    evaluate=lambda x, condition: np.where(np.not_equal(condition, 0), x, np.zeros_like(condition)),
)  # fmt: skip
"""The first argument where the second is not 0; 0 elsewhere, whatever the first. Internal."""

SELECTED = Operator(
    "selected", "selected", 3, "selected", 4, annihilators=(0, 0, None),
    linear=(False, False, False), cotangents=("0", "kept((d), a)", "0"), condition=0,
    evaluate=np.where,
)  # fmt: skip
"""The second argument where the first is not 0, else the third; 0 where the first or the second is
not stored. Internal."""

FILLED = Operator(
    "filled", "filled", 2, "filled", 4, at_absent=lambda x, number: number,
    cotangents=("kept((d), stored(a))", "0"),
    evaluate=lambda x, number: x,
)  # fmt: skip
"""The first argument where it is stored, elsewhere the second, which is a number: an operand with
another fill value than 0. Internal."""

WRAPPED = Operator(
    "wrapped", "wrapped", 2, "wrapped", 4, at_fills=lambda x, number: number,
    evaluate=lambda x, number: x,
)  # fmt: skip
"""The first argument, whose value at the fill values of operands is the second, a number: that to
which it wraps in its type. Internal."""

QUOTIENT = Operator(
    "quotient", "quotient", 2, "/", 4, right_identity=1, annihilators=(0, None),
    linear=(True, False), scales=True, true_division=True, leads=True, divides=True,
    cotangents=("d / b", "0"),
    evaluate=np.true_divide,
)  # fmt: skip
"""A quotient in the type of its first argument; the second is a number of elements."""

VALUE = Operator(
    "value", "value", 1, "value", 4, everywhere=True, cotangents=("d",),
    evaluate=lambda x: x,
)  # fmt: skip
"""The argument as an ordinary number, also where it is not stored: the element of a dense tensor.
Internal."""

POSITION = Operator(
    "position", "position", 1, "position", 4, everywhere=True, cotangents=("0",),
    evaluate=lambda x: x,
)  # fmt: skip
"""The argument, an element of a dense vector that is the number of its index: `position(p[j])` is
j. Internal."""

CORRECTED = Operator(
    "corrected", "corrected", 3, "corrected", 4, annihilators=(None, None, None),
    linear=(False, False, False),
    evaluate=lambda x, least, otherwise: np.where(x >= least, x, otherwise),
)  # fmt: skip
"""The first argument where it is at least the second; else the third, which is computed there
alone. Internal."""

PLACE = Operator(
    "place", "place", 3, "place", 4, annihilators=(None, None, None),
    linear=(False, False, False), chooses=True, cotangents=("0", "0", "0"),
    evaluate=np.where,
)  # fmt: skip
"""The second argument, the number of an index, where the first tells that an extremum is there;
else the third, the size of the index. argmin and argmax take its minimum. Internal."""

MOST_FACTORS = 64
"""The largest exponent, also of powers of powers: a power is computed as a product of that many
factors."""


def power(exponent: int) -> Operator:
    """Build the operator of a power with an integer exponent of at least 0."""
    zero = 0 if exponent else None
    return Operator(
        "power", f"**{exponent}", 1, "*", 4, annihilators=(zero,), exponent=exponent,
        evaluate=lambda x: np.power(x, exponent),
    )  # fmt: skip


COMPILER: dict[str, Operator] = {
    op.name: op
    for op in (
        NONZERO,
        STORED,
        PRESENT,
        VALUE,
        POSITION,
        KEEP,
        QUOTIENT,
        SELECTED,
        FILLED,
        WRAPPED,
        CORRECTED,
        PLACE,
    )
}
"""The compiler's internal operators, by their names."""
