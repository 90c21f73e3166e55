"""The statements of a nest that run as products of matrices, as calls of functions.

    for i, j, k: C[i, j + 1] += alpha * A[i, k] * B[k, j]    ->    rows = N; columns = M; depth = K
                                                                   if all of them are positive:
                                                                     strips(C + 1, A, B, …, alpha)

The loops of such a statement are removed (`without_loops`): its one instance is the call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from codegen.ir import Block, Expr, Function, Invoke
from codegen.names import Names
from codegen.records import dataclass
from codegen.tree import rewrite
from polyhedral.model import Nest, Statement
from polyhedral.nests.lane_sums import used_names
from polyhedral.nests.to_loops import Body
from polyhedral.products.blocked import Shape, shape
from polyhedral.products.contraction_code import (
    functions_of,
    several_loops,
)
from polyhedral.programs.product_call import Caller, ProductArguments, in_box
from polyhedral.programs.program_product import ProductPlan
from polyhedral.programs.program_triangle import in_strips


@dataclass(frozen=True, slots=True)
class Calls:
    """A call for each statement that is a product, and the called functions."""

    blocks: Mapping[str, Block]
    functions: tuple[Function, ...]

    @property
    def bodies(self) -> dict[str, Body]:
        return {name: _always(call) for name, call in self.blocks.items()}

    @property
    def names(self) -> set[str]:
        """Return the names in use: names of functions, and names in the calls."""
        inside = (name for call in self.blocks.values() for name in used_names(call))
        return {*inside, *(function.name for function in self.functions)}


def product_calls(
    nest: Nest,
    plans: Iterable[ProductPlan],
    arguments: Mapping[str, ProductArguments],
    parameters: Mapping[str, Expr],
    names: Names,
) -> Calls:
    """Return the calls of `plans`; statements of one shape share functions."""
    blocks: dict[str, Block] = {}
    functions_by_shape: dict[Shape, tuple[Function, ...]] = {}
    for plan in plans:
        contraction_plan = plan.contraction
        several = several_loops(contraction_plan.contraction)
        shape_ = shape(
            plan.element, contraction_plan.tile, contraction_plan.blocks, several, adds=True
        )
        if shape_ not in functions_by_shape:
            functions_by_shape[shape_] = _renamed(functions_of(shape_, False), names)
        function = functions_by_shape[shape_][-1].name
        statement = nest.statement(plan.statement)
        where = arguments[plan.statement]
        caller = Caller(plan, statement, where, parameters, function, names)
        blocks[plan.statement] = in_box(caller) if plan.region.strip is None else in_strips(caller)
    return Calls(
        blocks,
        tuple(function_ for functions in functions_by_shape.values() for function_ in functions),
    )


def without_loops(nest: Nest, names: Iterable[str]) -> Nest:
    """Return `nest` with one instance of each of the statements `names`.

    Schedules define the order of these instances.
    """
    called = set(names)
    last = max((statement.order[0] for statement in nest.statements), default=0)
    statements = tuple(
        Statement(statement.name, (), (), (last + 1 + place,))
        if statement.name in called
        else statement
        for place, statement in enumerate(nest.statements)
    )
    return Nest(statements, nest.parameters, nest.context)


def _always(call: Block) -> Body:
    return lambda values: call


def _renamed(functions: tuple[Function, ...], names: Names) -> tuple[Function, ...]:
    """Return functions that call each other, with new names."""
    new = {function.name: names.fresh(function.name) for function in functions}

    def rename(node: object) -> object:
        return replace(node, function=new[node.function]) if isinstance(node, Invoke) else node

    return tuple(
        replace(function, name=new[function.name], body=rewrite(function.body, rename))
        for function in functions
    )
