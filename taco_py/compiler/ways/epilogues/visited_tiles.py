"""A product of dense matrices in register tiles, with an epilogue (`taco_py.compiler.epilogue`).

H[i,j] = max(sum(k, X[i,k] * W[k,j]) + b[j], 0)
→  each tile of the product is added to, compared and stored where it is made
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from codegen.machine.target import Target
from taco_py.compiler.epilogue.of_problem import MainLoop, main_loop
from taco_py.compiler.epilogue.value_graph import is_summed
from taco_py.compiler.ways.arrays import arguments_of, data_of, machine_of
from taco_py.compiler.ways.contraction_match import contraction_of, ordered
from taco_py.compiler.ways.epilogues.problem_visitor import tree_text, visitor_of
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe, dense_facts
from taco_py.language.legal.stored import is_full
from taco_py.language.legal.types import is_real
from taco_py.language.problem import Problem, TensorType

if TYPE_CHECKING:
    from polyhedral.products.contraction import Contraction


def visited_product(problem: Problem) -> tuple[MainLoop, Contraction] | None:
    """Return the problem as a product of matrices and what is done with its elements; None for
    others."""
    if not problem.side and contraction_of(problem) is not None:
        return None
    found = main_loop(problem)
    if found is None or not all(_is_plain(type) for type in _types(problem)):
        return None
    made = contraction_of(found.problem)
    if made is None or made.batch or (len(made.rows), len(made.columns)) != (1, 1):
        return None
    if made.columns != (found.product.columns,):
        return None
    sums = (each.target.tensor for each in found.outputs if is_summed(found.product, each))
    real = all(is_real(problem.type_of(name).dtype) for name in sums)
    return (found, made) if real else None


def _types(problem: Problem) -> list[TensorType]:
    """Of all tensors of a problem."""
    own = (problem.result, *(side.type for side in problem.side))
    return [*own, *(type for _, type in problem.operands)]


def _is_plain(type: TensorType) -> bool:
    """Tell whether visitors read and write such arrays: dense ones, as they are in memory."""
    return is_full(type.format) and not type.stored


def lower_visited(recipe: Recipe, target: Target, sizes: Mapping[str, int]) -> LoweredRecipe | None:
    """Return the loop IR of a product with an epilogue; None where a recipe has none.

    sizes  columns, rows and depth of a tile, as the parameters of the way have them
    """
    problem = recipe.problem
    found = visited_product(problem)
    if found is None:
        return None
    from polyhedral.products.contraction_plan import plan_contraction
    from polyhedral.products.visited.visited_product import VisitedOperands, to_visited_functions

    loop, made = found
    machine = machine_of(target, loop.problem.result.dtype)
    plan = plan_contraction(made, machine, dict(problem.static), **sizes)
    given = arguments_of(problem, recipe.phase)
    left, right = (data_of(problem, each, given.tensors) for each in ordered(loop.problem, made))
    operands = VisitedOperands(left, right, given.sizes)
    visitor = visitor_of(problem, loop, given)
    module = to_visited_functions(
        made, plan.tile, plan.blocks, operands, visitor, given.head, given.names
    )
    told = "\n".join((str(plan), *tree_text(loop)))
    facts = dense_facts(recipe, "blocks of rows", told, str(made.statement))
    module = replace(module, header=recipe.header(told))
    return LoweredRecipe(module, given.bindings, facts)  # epilogues are left to the compiler
