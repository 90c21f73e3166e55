"""The statements of a nest that run as products of matrices, as calls of functions.

    for i, j, k: C[i, j + 1] += alpha * A[i, k] * B[k, j]    ->    rows = N; columns = M; depth = K
                                                                   if all of them are positive:
                                                                     strips(C + 1, A, B, …, alpha)

Such a statement has no loops of its own any more (`without_loops`): its one instance is the call.
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
from polyhedral.programs.product_call import Caller, Given, in_box
from polyhedral.programs.program_product import ProductPlan
from polyhedral.programs.program_triangle import in_strips


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
    """Return the calls of `plans`. Statements of one shape share functions."""
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
        caller = Caller(plan, statement, where, parameters, function, names)
        blocks[plan.statement] = in_box(caller) if plan.region.strip is None else in_strips(caller)
    return Calls(blocks, tuple(each for functions in made.values() for each in functions))


def without_loops(nest: Nest, names: Iterable[str]) -> Nest:
    """Return `nest` with those statements of one instance each. Where they stand is for
    schedules."""
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
    """Return functions that call each other, with new names."""
    new = {each.name: names.fresh(each.name) for each in functions}

    def rename(node: object) -> object:
        return replace(node, function=new[node.function]) if isinstance(node, Invoke) else node

    return tuple(
        replace(each, name=new[each.name], body=rewrite(each.body, rename)) for each in functions
    )
