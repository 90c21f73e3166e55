"""A product of dense matrices in register tiles, with an epilogue (`taco_py.compiler.epilogue`).

H[i,j] = max(sum(k, X[i,k] * W[k,j]) + b[j], 0)
→  each tile of the product gets the bias, is compared and stored while it is in registers
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from codegen.machine.target import Target
from taco_py.compiler.epilogue.of_problem import MainLoop, main_loop
from taco_py.compiler.epilogue.value_graph import is_summed
from taco_py.compiler.ways.arrays import arguments_of, data_of, has_vectors, machine_of
from taco_py.compiler.ways.contraction_match import contraction_of, ordered
from taco_py.compiler.ways.epilogues.problem_visitor import tree_text, visitor_of
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe, dense_facts
from taco_py.language.legal.stored import is_full
from taco_py.language.legal.types import is_real
from taco_py.language.problem import Problem, TensorType

if TYPE_CHECKING:
    from polyhedral.products.contraction import Contraction


def visited_product(problem: Problem) -> tuple[MainLoop, Contraction] | None:
    """Return the problem as a product of matrices with an epilogue, else None."""
    if not problem.side and contraction_of(problem) is not None:
        return None
    loop = main_loop(problem)
    if loop is None or not all(_is_plain(type) for type in _types(problem)):
        return None
    product = contraction_of(loop.problem)
    if product is None or product.batch or (len(product.rows), len(product.columns)) != (1, 1):
        return None
    if product.columns != (loop.product.columns,):
        return None
    sums = (output.target.tensor for output in loop.outputs if is_summed(loop.product, output))
    real = all(is_real(problem.type_of(name).dtype) for name in sums)
    return (loop, product) if real else None


def _types(problem: Problem) -> list[TensorType]:
    """Return the types of all tensors of a problem."""
    types = (problem.result, *(side.type for side in problem.side))
    return [*types, *(type for _, type in problem.operands)]


def _is_plain(type: TensorType) -> bool:
    """Tell whether visitors read and write arrays of a type: dense ones without conversion."""
    return is_full(type.format) and not type.stored


def lower_visited(recipe: Recipe, target: Target, sizes: Mapping[str, int]) -> LoweredRecipe | None:
    """Return the loop IR of a product with an epilogue; None where a recipe has none.

    sizes  columns, rows and depth of a tile, the parameters of the way
    """
    problem = recipe.problem
    match = visited_product(problem)
    if match is None:
        return None
    from polyhedral.products.contraction_plan import plan_contraction
    from polyhedral.products.visited.visited_product import VisitedOperands, to_visited_functions

    loop, product = match
    machine = machine_of(target, loop.problem.result.dtype)
    plan = plan_contraction(product, machine, dict(problem.static), **sizes)
    arguments = arguments_of(problem, recipe.phase)
    left, right = (
        data_of(problem, access, arguments.tensors) for access in ordered(loop.problem, product)
    )
    operands = VisitedOperands(left, right, arguments.sizes)
    visitor = visitor_of(problem, loop, arguments)
    module = to_visited_functions(
        product, plan.tile, plan.blocks, operands, visitor, arguments.head, arguments.names
    )
    description = "\n".join((str(plan), *tree_text(loop)))
    facts = dense_facts(recipe, "blocks of rows", description, str(product.statement))
    module = replace(module, header=recipe.header(description))
    vectors = has_vectors(problem, target)  # loops of epilogues are marked, whatever they are
    return LoweredRecipe(module, arguments.bindings, facts, vectors)
