"""The compared elements as loop IR: comparisons, and loops over elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from codegen.build import (
    add,
    binary,
    block,
    cast,
    const,
    eq,
    le,
    load,
    lt,
    mul,
    ne,
    not_,
    or_,
)
from codegen.emit.abi import THREADS
from codegen.ir import (
    Array,
    Block,
    Const,
    Expr,
    For,
    If,
    LoopKind,
    Stmt,
    Var,
)
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import BOOL, INT8, INT16, INT32, INT64, UINT8, ScalarType, scalar
from taco_py.compiler.ways.place_match import Walk
from taco_py.language.legal.types import has_special_values

BLOCK = 8192
"""The bytes of a block of a line, or of a row of accumulators, which stay in the first cache."""
PLACES = {1: INT8, 2: INT16, 4: INT32, 8: INT64}
"""The type of places for values of each number of bytes: vectors have equally many of both."""


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements that are compared.

    element  the type of comparisons
    names    a supply of names
    """

    walk: Walk
    array: Array
    element: ScalarType
    names: Names

    @staticmethod
    def of(walk: Walk, array: Array, dtype: str, names: Names) -> Elements:
        """Return the elements of an array in the type of its operand; booleans as integers."""
        element = scalar(dtype)
        return Elements(walk, array, UINT8 if element == BOOL else element, names)

    @property
    def floats(self) -> bool:
        """Tell whether elements may be NaN."""
        return has_special_values(self.element.name)

    @property
    def operation(self) -> str:
        """Return the operator of the loop IR for the better of two elements."""
        return "max" if self.walk.is_maximum else "min"

    def at(self, place: Expr) -> Expr:
        """Return the element at a position of the array."""
        return cast(self.element, load(self.array, place))

    def worst(self) -> Const:
        """Return a value that no element is worse than."""
        dtype = np.dtype(self.element.name)
        identity = self.walk.place.extremum.identity_of(dtype)
        return Const(identity if identity is not None else 0, self.element)

    def beats(self, one: Expr, other: Expr) -> Expr:
        """Tell whether an element is better than another: larger, for a maximum, or the first
        NaN."""
        left, right = (other, one) if self.walk.is_maximum else (one, other)
        if not self.floats:
            return lt(left, right)
        no_more = le(one, other) if self.walk.is_maximum else le(other, one)
        return binary("&", not_(no_more), eq(other, other))

    def is_best(self, one: Expr, best: Expr, without_branch: bool = False) -> Expr:
        """Tell whether an element is the best one, or a NaN, which is better than all numbers.

        without_branch  compute both comparisons, as lanes of vectors do
        """
        if not self.floats:
            return eq(one, best)
        parts = eq(one, best), ne(one, one)
        return binary("|", *parts) if without_branch else or_(*parts)

    def better(self, one: Expr, other: Expr) -> Expr:
        """Return the better of two elements."""
        return binary(self.operation, one, other)

    def var(self, wish: str, type: ScalarType = INT64) -> Var:
        """Return a variable with a fresh name."""
        return Var(self.names.fresh(wish), type)


def beside_fill(elements: Elements, best: Expr) -> tuple[Expr, Expr]:
    """Tell whether absent elements are better than the best of a line, and whether they are
    equal."""
    fill = elements.walk.fill
    if fill != fill:
        return eq(best, best), ne(best, best)
    number = Const(np.dtype(elements.element.name).type(fill).item(), elements.element)
    better = lt(best, number) if elements.walk.is_maximum else lt(number, best)
    return better, eq(best, number)


def shared(loop: For) -> Stmt:
    """Return a loop whose iterations threads share where there are several threads."""
    parallel = For(loop.var, loop.start, loop.stop, loop.body, loop.step, LoopKind.PARALLEL)
    return If(lt(1, THREADS), Block((parallel,)), Block((loop,)))


def nested(
    loops: Sequence[tuple[Var, Expr]], inside: Sequence[Stmt], is_shared: bool = True
) -> Stmt | Block:
    """Return nested loops from 0 on around statements, the outermost shared."""
    body = block(*inside)
    for var, size in reversed(loops[1:] if is_shared else loops):
        body = block(For(var, const(0), size, body))
    if not is_shared or not loops:
        return body
    var, size = loops[0]
    return shared(For(var, const(0), size, body))


def offset(strides: Mapping[str, Expr], places: Mapping[str, Expr]) -> Expr:
    """Return the position of an element in an array, from its coordinates."""
    return add(*(mul(places[i], strides[i]) for i in strides if i in places))
