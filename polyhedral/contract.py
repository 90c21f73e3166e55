"""A contraction as a module of loop IR, for operands of any sizes, strides and orders.

    evaluate(C, A, B, sizes, strides)
      tables of offsets where a class has several loops
      for each step of the batch: product(C + …, A + …, B + …)

With a batch, threads share its steps where there are enough of them; otherwise each product is
shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from codegen.build import add, block, const, div, ge, mod, mul, select
from codegen.emit.abi import THREADS
from codegen.ir import (
    Array,
    Block,
    Expr,
    For,
    Function,
    If,
    Invoke,
    LoopKind,
    Module,
    Place,
    Stmt,
    Var,
)
from codegen.names import Names
from codegen.types import INT32, ScalarType
from polyhedral.blocked import block_function, shape
from polyhedral.contraction import Contraction
from polyhedral.micro_kernel import tile_function
from polyhedral.offsets import Steps, made
from polyhedral.packing import pack_left, pack_right
from polyhedral.product import STRIPS, product_function, strips_function
from polyhedral.register_tile import Blocks, Tile

SHARED = 1 << 19
"""Products of elements from which on threads share one product of matrices."""
ONE_THREAD = const(1, INT32)
BATCHES_A_THREAD = 4
"""Steps of a batch for each thread from which on threads share them."""


@dataclass(frozen=True, slots=True)
class Data:
    """One array of a contraction, and the distance in elements of its steps along each loop."""

    array: Array
    strides: Mapping[str, Expr]

    def along(self, loops: tuple[str, ...]) -> list[Expr]:
        return [self.strides[loop] for loop in loops]


@dataclass(frozen=True, slots=True)
class Operands:
    """The arrays of a contraction, and the size of each loop."""

    result: Data
    left: Data
    right: Data
    sizes: Mapping[str, Expr]

    @property
    def element(self) -> ScalarType:
        return self.result.array.element


def to_functions(
    found: Contraction,
    tile: Tile,
    blocks: Blocks,
    operands: Operands,
    head: Function,
    names: Names,
) -> Module:
    """The module whose last function is `head`, a threaded function without a body, with one.

    names  a supply that has handed out those of `head`'s parameters
    """
    several = {
        "rows": len(found.rows) > 1,
        "columns": len(found.columns) > 1,
        "depth": len(found.depth) > 1,
    }
    whole = shape(operands.element, tile, blocks, several)
    tiles = [tile_function(rows, tile, operands.element) for rows in range(1, tile.rows + 1)]
    main = Function(
        head.name, head.arrays, head.scalars, _main(found, operands, names), threaded=True
    )
    return Module(
        (
            *tiles,
            block_function(whole),
            pack_right(tile, operands.element, whole.right_columns, whole.right_depth),
            pack_left(tile, operands.element, whole.left_rows, whole.left_depth),
            product_function(whole),
            strips_function(whole),
            main,
        )
    )


def _main(found: Contraction, operands: Operands, names: Names) -> Block:
    code: list[Stmt] = []
    classes: list[Steps] = []
    for name, loops, data in (
        ("result_rows", found.rows, operands.result),
        ("result_columns", found.columns, operands.result),
        ("left_rows", found.rows, operands.left),
        ("left_depth", found.depth, operands.left),
        ("right_depth", found.depth, operands.right),
        ("right_columns", found.columns, operands.right),
    ):
        sizes = [operands.sizes[loop] for loop in loops]
        before, steps = made(name, sizes, data.along(loops), names)
        code.append(before)
        classes.append(steps)
    return block(*code, _batch(found, operands, classes, names))


def _batch(found: Contraction, operands: Operands, classes: list[Steps], names: Names) -> Stmt:
    """The product for each step of the batch."""
    sizes = operands.sizes
    counts = [mul(*(sizes[x] for x in loops)) for loops in (found.rows, found.columns, found.depth)]
    step = Var(names.fresh("step"))
    total = mul(*(sizes[loop] for loop in found.batch))
    coordinates = _coordinates(step, found.batch, sizes)

    def product(threads: Expr) -> Invoke:
        arrays = (operands.result, operands.left, operands.right)
        starts = (
            Place(data.array, add(*(mul(coordinates[x], data.strides[x]) for x in found.batch)))
            for data in arrays
        )
        tables = [place for steps in classes for place in steps.places(0)]
        values = [value for steps in classes for value in steps.values]
        return Invoke(STRIPS, (*starts, *tables), (*counts, *values), threads)

    own = select(ge(mul(*counts), SHARED), THREADS, ONE_THREAD)
    if not found.batch:
        return product(own)
    body = Block((product(ONE_THREAD),))
    shared = For(step, const(0), total, body, 1, LoopKind.PARALLEL)
    each = For(step, const(0), total, Block((product(own),)))
    many = ge(total, mul(THREADS, BATCHES_A_THREAD))
    return If(many, Block((shared,)), Block((each,)))


def _coordinates(step: Var, batch: tuple[str, ...], sizes: Mapping[str, Expr]) -> dict[str, Expr]:
    """Where a step of the batch stands along each of its loops; the last one runs fastest."""
    found: dict[str, Expr] = {}
    rest: Expr = step
    for loop in reversed(batch[1:]):
        found[loop] = mod(rest, sizes[loop])
        rest = div(rest, sizes[loop])
    if batch:
        found[batch[0]] = rest
    return found
