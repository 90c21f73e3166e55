"""Operators as data: a name, how they print, how they evaluate, and their algebra.

The compiler never asks "is this a multiplication?". It asks for the annihilator (whose presence
lets an absent operand make the whole result absent), for the identity (what an absent operand may
be replaced by) and for linearity (whether duplicates of an operand may be added up afterwards). A
new operator is an entry in this table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Number = bool | int | float | complex


@dataclass(frozen=True, slots=True)
class Operator:
    """A pointwise function of one or two arguments.

    identity     e with f(e, x) = f(x, e) = x, or None. `right_identity`: e with f(x, e) = x alone.
    annihilators per argument, the value a with f(.., a, ..) = a whatever the others are, or None.
    linear       per argument, whether f is additive in it: f(x + y, z) = f(x, z) + f(y, z).
    additive     whether it is in all of them together: f(x + x', y + y') = f(x, y) + f(x', y'),
                 so that its arguments are terms, each of which may be summed by itself.
    evaluate     the same function on NumPy arrays.
    c_operator   the loop IR's spelling (`codegen.ir.Binary.op` or `Unary.op`).
    """

    name: str
    symbol: str
    arity: int
    c_operator: str
    precedence: int
    commutative: bool = False
    associative: bool = False
    idempotent: bool = False
    identity: Number | None = None
    right_identity: Number | None = None
    annihilators: tuple[Number | None, ...] = (None, None)
    linear: tuple[bool, ...] = (False, False)
    additive: bool = False
    true_division: bool = False  # integers promote to floating point, as in NumPy
    evaluate: Callable[..., Any] = field(default=np.add, compare=False, repr=False)

    def __str__(self) -> str:
        return self.name


ADD = Operator(
    "add", "+", 2, "+", 1, commutative=True, associative=True, identity=0, right_identity=0,
    additive=True, evaluate=np.add,
)  # fmt: skip
SUB = Operator("sub", "-", 2, "-", 1, right_identity=0, additive=True, evaluate=np.subtract)
MUL = Operator(
    "mul", "*", 2, "*", 2, commutative=True, associative=True, identity=1, right_identity=1,
    annihilators=(0, 0), linear=(True, True), evaluate=np.multiply,
)  # fmt: skip
DIV = Operator(
    "div", "/", 2, "/", 2, right_identity=1, annihilators=(0, None), linear=(True, False),
    true_division=True, evaluate=np.true_divide,
)  # fmt: skip
NEG = Operator(
    "neg", "-", 1, "-", 3, annihilators=(0,), linear=(True,), additive=True, evaluate=np.negative,
)  # fmt: skip

OPERATORS: dict[str, Operator] = {op.name: op for op in (ADD, SUB, MUL, DIV, NEG)}
