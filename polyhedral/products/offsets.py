"""The offsets of one class of a contraction's loops in one array.

A class of one loop advances by a stride. A class of several loops is traversed as one loop; the
array `table` holds the offset of each step:

    for a in 0..2, b in 0..3, strides 100 and 7:   table = 0 7 14 100 107 114

It is `even` where all steps have the same length nevertheless, as in a contiguous array. Where a
loop that is not the innermost one has stride 1, neighbours are `hop` steps apart:

    for a in 0..2, b in 0..3, strides 1 and 100:   table = 0 100 200 1 101 201, hop = 3
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.build import (
    add,
    and_,
    block,
    const,
    eq,
    increment,
    load,
    maximum,
    mul,
    select,
)
from codegen.ir import (
    Allocate,
    Array,
    Block,
    Declare,
    Expr,
    For,
    Place,
    Storage,
    Store,
    Var,
)
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import BOOL, INT64

ONE = const(1)


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a class of loops in one array.

    stride  the stride of its innermost loop
    even    whether all steps have that length
    table   the offset of each step, where there are several loops
    hop     the steps from one neighbour to the next; 0 where no loop has stride 1
    """

    stride: Expr
    even: Expr
    table: Array | None = None
    hop: Expr = ONE

    def at(self, step: Expr | int) -> Expr:
        """Return the offset of a step."""
        return mul(step, self.stride) if self.table is None else load(self.table, step)

    def origin(self, step: Expr | int) -> Expr:
        """Return the offset of the array's start for a function that counts steps from `step`
        on."""
        return mul(step, self.stride) if self.table is None else const(0)

    def places(self, step: Expr | int) -> tuple[Place, ...]:
        """Return the table as an argument of a function that counts steps from `step` on."""
        return () if self.table is None else (Place(self.table, add(step, 0)),)

    @property
    def values(self) -> tuple[Expr, ...]:
        """Return the scalar arguments of a function."""
        return (self.stride, self.even) + (() if self.table is None else (self.hop,))


def formal(name: str, several: bool) -> Steps:
    """Return a class as formal parameters of an internal function."""
    table = Array(f"{name}_at", INT64, Storage.INPUT) if several else None
    stride, even = Var(f"{name}_stride"), Var(f"{name}_even", BOOL)
    return Steps(stride, even, table, Var(f"{name}_hop")) if several else Steps(stride, even)


def parameters(*classes: Steps) -> tuple[tuple[Array, ...], tuple[Var, ...]]:
    """Return the arrays and scalars of formal classes, in the order of `places` and `values`."""
    arrays = tuple(steps.table for steps in classes if steps.table is not None)
    scalars = [value for steps in classes for value in steps.values if isinstance(value, Var)]
    return arrays, tuple(scalars)


def steps_of(
    name: str, sizes: Sequence[Expr], strides: Sequence[Expr], names: Names
) -> tuple[Block, Steps]:
    """Return the steps of loops of these sizes and strides, outermost first.

    With the code that computes them.
    """
    if not sizes:
        return Block(), Steps(const(0), const(True))
    if len(sizes) == 1:
        return Block(), Steps(strides[0], const(True))
    table = Array(names.fresh(f"{name}_at"), INT64, Storage.LOCAL)
    even = Var(names.fresh(f"{name}_even"), BOOL)
    pairs = zip(strides, strides[1:], sizes[1:], strict=False)
    is_even = and_(*(eq(outer, mul(inner, size)) for outer, inner, size in pairs))
    counter = Var(names.fresh(f"{name}_step"))
    hop = Var(names.fresh(f"{name}_hop"))
    code = block(
        Declare(even, is_even, constant=True),
        Declare(hop, _hop(sizes, strides), constant=True),
        Allocate(table, maximum(mul(*sizes), 1)),
        Store(table, const(0), const(0)),
        Declare(counter, const(0)),
        _walk(table, counter, sizes, strides, [names.fresh("s") for _ in sizes]),
    )
    return code, Steps(strides[-1], even, table, hop)


def _hop(sizes: Sequence[Expr], strides: Sequence[Expr]) -> Expr:
    """Return the steps from one neighbour to the next; 0 where no loop has stride 1."""
    hop: Expr = const(0)
    for place, stride in enumerate(strides):
        hop = select(eq(stride, 1), mul(*sizes[place + 1 :]), hop)
    return hop


def _walk(
    table: Array, counter: Var, sizes: Sequence[Expr], strides: Sequence[Expr], loops: Sequence[str]
) -> For:
    """Return loops that write the offset of each step."""
    variables = [Var(name) for name in loops]
    offset = add(*(mul(v, stride) for v, stride in zip(variables, strides, strict=True)))
    body = block(Store(table, counter, offset), increment(counter))
    for variable, size in zip(reversed(variables), reversed(sizes), strict=True):
        body = Block((For(variable, const(0), size, body),))
    (loop,) = body.body
    assert isinstance(loop, For)
    return loop
