"""Calls of the functions of a contraction for a part of a statement's instances.

for i in 1..N, j, k: C[i, j] += alpha * A[i, k] * B[k, j]     ->     strips(C + stride, A + …)
"""

from __future__ import annotations

from collections.abc import Mapping

from codegen.build import add, and_, block, const, ge, lt, maximum, minimum, mul, select, sub
from codegen.emit.abi import THREADS
from codegen.ir import Array, Block, Expr, If, Invoke, Place, Stmt
from codegen.names import Names
from codegen.records import dataclass
from polyhedral.affine import Affine
from polyhedral.model import Access, Loop, Statement
from polyhedral.products.contraction_code import ONE_THREAD, SHARED, Data, Operands, class_steps
from polyhedral.programs.program_product import ProductPlan, loop_of

SHARING = f"threads share: blocks of the result, of contractions of {SHARED:.0e} products or more"


@dataclass(frozen=True, slots=True)
class Strided:
    """An array and the distance of its elements along each mode."""

    array: Array
    strides: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class ProductArguments:
    """The arrays of a product by name, and the value of its factor."""

    arrays: Mapping[str, Strided]
    factor: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """The data that all calls for one statement share."""

    plan: ProductPlan
    statement: Statement
    arguments: ProductArguments
    parameters: Mapping[str, Expr]
    function: str
    names: Names

    def call(
        self, lower: Mapping[str, Expr], sizes: Mapping[str, Expr], into: Data | None = None
    ) -> Stmt:
        """Return the product of a box of instances, added to `into`, or to the result.

        lower, sizes  the first value and the number of iterations of each loop; no code where one
                      is 0
        """
        product = self.plan.contraction.contraction
        values = {**self.parameters, **lower}
        arrays = [(use, self.arguments.arrays[use.array]) for use in self.plan.uses]
        data = [_data(use, self.statement, strided) for use, strided in arrays]
        starts = [Place(strided.array, start(use, strided, values)) for use, strided in arrays]
        if into is not None:
            data[0], starts[0] = into, Place(into.array, const(0))
        before, classes = class_steps(
            product, Operands(data[0], data[1], data[2], sizes), self.names
        )
        counts = [
            mul(*(sizes[x] for x in loops))
            for loops in (product.rows, product.columns, product.depth)
        ]
        tables = tuple(place for steps in classes for place in steps.places(0))
        steps = tuple(value for steps in classes for value in steps.values)
        scalars = (*counts, *steps, self.arguments.factor)
        call = Invoke(self.function, (*starts, *tables), scalars, self._threads(counts))
        is_nonempty = and_(*(lt(0, size) for size in sizes.values()))
        return If(is_nonempty, block(before, call))

    def _threads(self, counts: list[Expr]) -> Expr:
        if not self.plan.threaded:
            return ONE_THREAD
        return select(ge(mul(*counts), SHARED), THREADS, ONE_THREAD)


def in_box(caller: Caller) -> Block:
    """Return one call for all instances of a statement whose loops are a box."""
    values, loops = caller.parameters, caller.plan.region.loops
    first = {x.name: lowest(x, values) for x in loops}
    return block(
        caller.call(first, {x.name: sub(highest(x, values), first[x.name]) for x in loops})
    )


def lowest(loop: Loop, values: Mapping[str, Expr]) -> Expr:
    """Return the first value of `loop`."""
    return maximum(*(value_of(bound, values) for bound in loop.lower))


def highest(loop: Loop, values: Mapping[str, Expr]) -> Expr:
    """Return the end of `loop`."""
    return minimum(*(value_of(bound, values) for bound in loop.upper))


def _data(access: Access, statement: Statement, where: Strided) -> Data:
    """Return the array of `access` with its strides along loops."""
    loops = (loop_of(subscript, statement) for subscript in access.subscripts)
    pairs = zip(loops, where.strides, strict=True)
    return Data(where.array, {loop: stride for loop, stride in pairs if loop is not None})


def start(access: Access, where: Strided, values: Mapping[str, Expr]) -> Expr:
    """Return the offset of the element at which all loops begin."""
    pairs = zip(access.subscripts, where.strides, strict=True)
    return add(const(0), *(mul(value_of(subscript, values), stride) for subscript, stride in pairs))


def value_of(value: Affine, values: Mapping[str, Expr]) -> Expr:
    """Return `value` for these values of names."""
    return add(value.constant, *(mul(values[name], factor) for name, factor in value.terms))
