"""Rows of a product by loops, with an epilogue (`taco_py.compiler.epilogue`).

    Z[i,j] = sum(k, A[i,k] * X[k,j]) + b[j], A in CSR, and s[j] = sum(i, Z[i,j])
    →  parallel for blocks of rows, as many as stay in the first cache:
         rows(block, A's rows, X)               the loops of the product, as they are without it
         for elements of the block: what is done with each, what is stored and summed

The rows of a block depend on the number of columns alone, so that sums over rows, added up block by
block, have the same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codegen.build import add, block, const, div, lt, maximum, minimum, mul, sub, zero
from codegen.emit.abi import THREADS
from codegen.ir import (
    Allocate,
    Array,
    Block,
    Declare,
    Expr,
    Fill,
    For,
    Function,
    If,
    Invoke,
    LoopKind,
    Module,
    Place,
    Storage,
    Var,
)
from codegen.machine.target import Target
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import scalar
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.dataflow.value_seconds import seconds_in_loops
from taco_py.compiler.epilogue.of_problem import ACCUMULATORS, MainLoop
from taco_py.compiler.epilogue.value_graph import accesses_outside
from taco_py.compiler.lower.bindings import Bindings, Source
from taco_py.compiler.schedule.commands import Serial
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.arrays import Arguments, arguments_of
from taco_py.compiler.ways.epilogues.problem_visitor import tree_text, visitor_of
from taco_py.compiler.ways.epilogues.rows_match import ROWS_WAY, order_of_product, product_in_rows
from taco_py.compiler.ways.loops import lower_recipe
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe
from taco_py.compiler.ways.way import Offer, Question, Way
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses
from taco_py.language.problem import Problem

if TYPE_CHECKING:
    from polyhedral.products.visited.tile_visitor import Visitor

ROWS_FUNCTION = "rows"
ROW, COUNT, NUMBER, HIGH = Var("first_row"), Var("count"), Var("number"), Var("high")
BLOCKS = Var("blocks")
"""The first row of a block, its number of rows; the number of a block, the most rows of a block,
and the number of blocks."""


# ---------------------------------------------------------------- the kernel


@dataclass(frozen=True, slots=True)
class _Inner:
    """The function that computes rows of the product, the sources of its arguments, its facts."""

    module: Module
    function: Function
    sources: Mapping[str, Source]
    facts: Mapping[str, Any]


def lower(recipe: Recipe, target: Target) -> LoweredRecipe:
    """Return the loop IR of a product in rows with an epilogue."""
    problem = recipe.problem
    order = order_of_product(problem, recipe.schedule)
    loop = product_in_rows(problem, order[0])
    if loop is None:
        raise InternalError(f"Expected a product with an epilogue, found {problem}")
    inner = _inner(loop, order)
    value = loop.product.value
    outside = [a for o in loop.outputs for a in (o.target, *accesses_outside(o.value, value))]
    arguments = arguments_of(problem, recipe.phase, {access.tensor for access in outside})
    visitor = visitor_of(problem, loop, arguments, Storage.LOCAL)
    operands, bindings = _operands(inner, arguments.names)
    body = _Body(loop, inner, arguments, visitor, operands).all_blocks()
    head = arguments.head
    arrays = [operand for operand in operands.values() if isinstance(operand, Array)]
    scalars = [operand for operand in operands.values() if isinstance(operand, Var)]
    function = replace(
        head, arrays=(*head.arrays, *arrays), scalars=(*head.scalars, *scalars), body=body
    )
    description = "\n".join((str(inner.facts["report"]["concrete"]), *tree_text(loop)))
    functions = (*inner.module.functions[:-1], inner.function, function)
    module = Module(functions, recipe.header(description))
    return LoweredRecipe(module, (*arguments.bindings, *bindings), _facts(inner, recipe, loop))


def _inner(loop: MainLoop, order: tuple[str, ...]) -> _Inner:
    """Return the loops of the product, for one thread."""
    alone = Schedule.of_orders((order,)).then(Schedule((Serial(),)))
    lowered = lower_recipe(Recipe(loop.problem, alone, ROWS_FUNCTION))
    function = replace(lowered.module.functions[-1], internal=True, threaded=False)
    return _Inner(lowered.module, function, dict(lowered.bindings), lowered.facts)


def _operands(inner: _Inner, names: Names) -> tuple[dict[str, Array | Var], Bindings]:
    """Return the kernel's parameters for the parameters of the loops, by their names in the loops.

    Sizes and the product itself are not among them.
    """
    operands: dict[str, Array | Var] = {}
    bindings: list[tuple[str, Source]] = []
    parameters: tuple[Array | Var, ...] = (*inner.function.arrays, *inner.function.scalars)
    for parameter in parameters:
        source = inner.sources[parameter.name]
        if source.what == "size" or source.tensor == ACCUMULATORS:
            continue
        operands[parameter.name] = replace(parameter, name=names.fresh(f"{parameter.name}_of_rows"))
        bindings.append((operands[parameter.name].name, source))
    return operands, tuple(bindings)


def _facts(inner: _Inner, recipe: Recipe, loop: MainLoop) -> dict[str, Any]:
    """Return the facts of the kernel: requirements of the loops, and how blocks are shared."""
    report = dict(inner.facts["report"])
    report["tiles"] = tree_text(loop)
    report["parallel"] = "blocks of rows, of a number that depends on the columns alone"
    report["stored"] = []
    return {**inner.facts, "covers": True, "threaded": True, "report": report}


@dataclass(frozen=True, slots=True)
class _Body:
    """Writes the body of the kernel."""

    loop: MainLoop
    inner: _Inner
    arguments: Arguments
    visitor: Visitor
    operands: Mapping[str, Array | Var]

    def all_blocks(self) -> Block:
        """Return the loop over blocks of rows, shared by the threads, and the code before and
        after it."""
        from polyhedral.products.visited import tile_visitor as visited

        rows, columns = self.rows, self.columns
        fitting = div(const(visited.NEAR_ELEMENTS), maximum(columns, 1))
        shared = For(NUMBER, const(0), BLOCKS, self.one(), 1, LoopKind.PARALLEL)
        alone = replace(shared, kind=LoopKind.SERIAL)
        return block(
            Declare(HIGH, maximum(minimum(fitting, visited.MOST_ROWS), 1), True),
            Declare(BLOCKS, div(sub(add(rows, HIGH), 1), HIGH), True),
            *self.visitor.before_tiles(rows, columns, BLOCKS),
            If(lt(1, THREADS), Block((shared,)), Block((alone,))),
            *self.visitor.after_tiles(columns, BLOCKS),
        )

    @property
    def rows(self) -> Expr:
        return self.arguments.sizes[self.loop.product.rows]

    @property
    def columns(self) -> Expr:
        return self.arguments.sizes[self.loop.product.columns]

    def one(self) -> Block:
        """Return the code of one block: its rows, then the epilogue of its elements."""
        from polyhedral.products.visited.tile_visitor import Region

        element = scalar(self.loop.problem.result.dtype)
        rows = Array("held_rows", element, Storage.LOCAL)
        count = mul(COUNT, self.columns)
        clear = () if self.inner.facts["covers"] else (Fill(rows, const(0), count, zero(element)),)
        region = Region(
            rows, self.columns, ROW, const(0), COUNT, self.columns, NUMBER, self.columns
        )
        return block(
            Declare(ROW, mul(NUMBER, HIGH), True),
            Declare(COUNT, minimum(sub(self.rows, ROW), HIGH), True),
            Allocate(rows, mul(HIGH, self.columns), align=64),
            *clear,
            self.call(rows),
            self.visitor.visit(region),
        )

    def call(self, rows: Array) -> Invoke:
        """Return the call of the loops over the rows of a block."""
        function = self.inner.function
        places = tuple(self.place(array, rows) for array in function.arrays)
        return Invoke(function.name, places, tuple(map(self.number, function.scalars)))

    def place(self, array: Array, rows: Array) -> Place:
        """Return the begin of an array of the loops at the first row of the block."""
        source = self.inner.sources[array.name]
        if source.tensor == ACCUMULATORS:
            return Place(rows, const(0))
        operand = self.operands[array.name]
        assert isinstance(operand, Array)
        return Place(operand, self.start(source))

    def start(self, source: Source) -> Expr:
        """Return the offset of an operand's array at the first row of a block."""
        rows = self.loop.product.rows
        operands = accesses(self.loop.product.value)
        access = next(a for a in operands if a.tensor == source.tensor)
        if rows not in access.indices:
            return const(0)
        type = self.loop.problem.type_of(source.tensor)
        if not is_full(type.format):
            return ROW if source.what == "pos" else const(0)
        level = type.format.stored(access.indices).index(rows)
        return mul(ROW, self.stride(source.tensor, level))

    def stride(self, tensor: str, level: int) -> Expr:
        """Return the stride of a dense operand along a level."""
        key = Source("stride", tensor, level)
        names = (name for name, source in self.inner.sources.items() if source == key)
        name = next(names, None)
        stride = const(1) if name is None else self.operands[name]
        assert not isinstance(stride, Array)
        return stride

    def number(self, scalar_: Var) -> Expr:
        """Return the value of a scalar of the loops."""
        source = self.inner.sources[scalar_.name]
        if source.what == "size":
            return (
                COUNT
                if source.index == self.loop.product.rows
                else self.arguments.sizes[source.index]
            )
        if source.tensor == ACCUMULATORS:
            return self.columns
        scalar_value = self.operands[scalar_.name]
        assert isinstance(scalar_value, Var)
        return scalar_value


def can(question: Question) -> bool:
    """Tell whether a problem is a product with an epilogue."""
    return bool(question.problem.side) and product_in_rows(question.problem) is not None


def choose(_: Question) -> Offer | None:
    """Return None, as `fuse_epilogue` names the way."""
    return None


def priced(problem: Problem, schedule: Schedule, stats: Statistics) -> float | None:
    """Return the seconds of the product's loops and of the epilogue."""
    loop = product_in_rows(problem)
    return None if loop is None else seconds_in_loops(loop, schedule, stats)


WAY = Way(ROWS_WAY, can, choose, lower, priced=priced)
