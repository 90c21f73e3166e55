"""The statements of a nest that run as products of matrices, as calls of functions.

    for i, j, k: C[i, j + 1] += alpha * A[i, k] * B[k, j]    ->    rows = N; columns = M; depth = K
                                                                   if all of them are positive:
                                                                     strips(C + 1, A, B, …, alpha)

Such a statement has no loops of its own any more (`without_loops`): its one instance is the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from codegen.build import add, and_, block, const, ge, lt, maximum, minimum, mul, select, sub
from codegen.emit.abi import THREADS
from codegen.ir import Array, Block, Expr, Function, If, Invoke, Place
from codegen.names import Names
from codegen.tree import rewrite
from polyhedral.affine import Affine
from polyhedral.blocked import Shape, shape
from polyhedral.contract import (
    ONE_THREAD,
    SHARED,
    Data,
    Operands,
    class_steps,
    functions_of,
    several_loops,
)
from polyhedral.model import Access, Nest, Statement
from polyhedral.program_product import ProductPlan, loop_of
from polyhedral.sums import used_names
from polyhedral.to_loops import Body


@dataclass(frozen=True, slots=True)
class Strided:
    """An array and the distance of its elements along each mode."""

    array: Array
    strides: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Given:
    """Where the arrays of a product lie, by name, and the value of its factor."""

    arrays: Mapping[str, Strided]
    factor: Expr


@dataclass(frozen=True, slots=True)
class Calls:
    """A call for each statement that is a product, and the functions that are called."""

    blocks: Mapping[str, Block]
    functions: tuple[Function, ...]

    @property
    def bodies(self) -> dict[str, Body]:
        return {name: _always(call) for name, call in self.blocks.items()}

    @property
    def names(self) -> set[str]:
        """What is not to be used anew: names of functions, and those in the calls."""
        inside = (name for call in self.blocks.values() for name in used_names(call))
        return {*inside, *(each.name for each in self.functions)}


def product_calls(
    nest: Nest,
    plans: Iterable[ProductPlan],
    given: Mapping[str, Given],
    parameters: Mapping[str, Expr],
    names: Names,
) -> Calls:
    """The calls of `plans`. Statements of one shape share functions."""
    blocks: dict[str, Block] = {}
    made: dict[Shape, tuple[Function, ...]] = {}
    for plan in plans:
        chosen = plan.contraction
        several = several_loops(chosen.contraction)
        whole = shape(plan.element, chosen.tile, chosen.blocks, several, adds=True)
        if whole not in made:
            made[whole] = _renamed(functions_of(whole, False), names)
        function = made[whole][-1].name
        statement = nest.statement(plan.statement)
        where = given[plan.statement]
        blocks[plan.statement] = _call(statement, plan, where, parameters, names, function)
    return Calls(blocks, tuple(each for functions in made.values() for each in functions))


def without_loops(nest: Nest, names: Iterable[str]) -> Nest:
    """`nest` with those statements of one instance each. Where they stand is for schedules."""
    chosen = set(names)
    last = max((each.order[0] for each in nest.statements), default=0)
    statements = tuple(
        Statement(each.name, (), (), (last + 1 + place,)) if each.name in chosen else each
        for place, each in enumerate(nest.statements)
    )
    return Nest(statements, nest.parameters, nest.context)


def _always(call: Block) -> Body:
    return lambda values: call


def _renamed(functions: tuple[Function, ...], names: Names) -> tuple[Function, ...]:
    """Functions that call each other, with new names."""
    new = {each.name: names.fresh(each.name) for each in functions}

    def rename(node: object) -> object:
        return replace(node, function=new[node.function]) if isinstance(node, Invoke) else node

    return tuple(
        replace(each, name=new[each.name], body=rewrite(each.body, rename)) for each in functions
    )


def _call(
    statement: Statement,
    plan: ProductPlan,
    given: Given,
    parameters: Mapping[str, Expr],
    names: Names,
    function: str,
) -> Block:
    found = plan.contraction.contraction
    lower = {x.name: _extreme(maximum, x.lower, parameters) for x in plan.loops}
    sizes = {x.name: sub(_extreme(minimum, x.upper, parameters), lower[x.name]) for x in plan.loops}
    values = {**parameters, **lower}
    where = [(use, given.arrays[use.array]) for use in plan.uses]
    data = [_data(use, statement, strided) for use, strided in where]
    places = tuple(Place(strided.array, _start(use, strided, values)) for use, strided in where)
    operands = Operands(data[0], data[1], data[2], sizes)
    before, classes = class_steps(found, operands, names)
    counts = [mul(*(sizes[x] for x in loops)) for loops in (found.rows, found.columns, found.depth)]
    tables = tuple(place for steps in classes for place in steps.places(0))
    scalars = (*counts, *(value for steps in classes for value in steps.values), given.factor)
    shared = select(ge(mul(*counts), SHARED), THREADS, ONE_THREAD) if plan.threaded else ONE_THREAD
    call = Invoke(function, (*places, *tables), scalars, shared)
    return block(If(and_(*(lt(0, size) for size in sizes.values())), block(before, call)))


def _data(access: Access, statement: Statement, where: Strided) -> Data:
    """The array of `access` with its strides along loops."""
    loops = (loop_of(subscript, statement) for subscript in access.subscripts)
    pairs = zip(loops, where.strides, strict=True)
    return Data(where.array, {loop: stride for loop, stride in pairs if loop is not None})


def _start(access: Access, where: Strided, values: Mapping[str, Expr]) -> Expr:
    """The element at which all loops begin."""
    pairs = zip(access.subscripts, where.strides, strict=True)
    return add(const(0), *(mul(_value(subscript, values), stride) for subscript, stride in pairs))


def _extreme(
    of: Callable[..., Expr], bounds: tuple[Affine, ...], parameters: Mapping[str, Expr]
) -> Expr:
    return of(*(_value(bound, parameters) for bound in bounds))


def _value(value: Affine, values: Mapping[str, Expr]) -> Expr:
    return add(value.constant, *(mul(values[name], factor) for name, factor in value.terms))
