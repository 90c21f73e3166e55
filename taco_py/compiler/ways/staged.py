"""A sum of products of dense tensors into another storage order → stages that are transposed in
registers (`polyhedral.products.staging`).

    C[k,i] = sum(j, A[i,j,k] * v[j])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from codegen.machine.target import Target
from taco_py.compiler.ways.arrays import arguments_of, data_of, has_vectors, machine_of
from taco_py.compiler.ways.loops import lower as lower_loops
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe, dense_facts
from taco_py.compiler.ways.tiles import tile_width
from taco_py.compiler.ways.transpose import Permuted, copy_of, tile_of
from taco_py.compiler.ways.way import Offer, Question, Way
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.legal.stored import is_full
from taco_py.language.legal.types import is_real
from taco_py.language.notation.nodes import Access, Call, Expr, Reduce
from taco_py.language.notation.operators import ADD, MUL
from taco_py.language.problem import Problem

if TYPE_CHECKING:
    from polyhedral.products.staging import Staged


def can(question: Question) -> bool:
    """Tell whether a problem is a sum of products that needs a stage."""
    return question.recall(sum_of) is not None


def choose(question: Question) -> Offer | None:
    """Return stages for sums and products that fill them.

    None for copies, and for products of matrices with reuse.
    """
    if question.recall(tile_width) is not None or question.recall(copy_of) is not None:
        return None
    sum_ = question.recall(sum_of)
    if sum_ is None:
        return None
    sizes, least = question.stats.sizes, question.stats.machine.dense.transposed_tile_elements
    row = sum_.row if sum_.merges else (sum_.source_loop,)
    loops = (sum_.target_loop, *row) if sum_.even else row
    if prod(sizes[loop] for loop in loops) < least:
        return None
    terms = prod((sizes[loop] for loop in sum_.reduced), start=1.0)
    return Offer() if sizes[sum_.target_loop] * terms >= least else None


def sum_of(question: Question) -> Staged | None:
    """Return the problem as a sum of products that needs a stage."""
    return staged_of(question.problem)


def lower(recipe: Recipe, target: Target) -> LoweredRecipe:
    """Return the loop IR of a sum in stages; in loops where the machine has no vectors."""
    if not has_vectors(recipe.problem, target):
        return lower_loops(recipe, target)
    staged = stage(recipe.problem, target, recipe.phase)
    facts = dense_facts(recipe, "the outermost loop", staged.plan)
    module = replace(staged.module, header=recipe.header(staged.plan))
    return LoweredRecipe(module, staged.bindings, facts)


def staged_of(problem: Problem) -> Staged | None:
    """Return the problem as a sum of products of dense tensors that needs a stage, else None.

    The tensors are of one real type.
    """
    factors = _factors(problem.assignment.value)
    if factors is None:
        return None
    types = [problem.result, *(problem.type_of(access.tensor) for access in factors)]
    plain = all(is_full(t.format) and t.unit_stride and not t.stored for t in types)
    one = len({t.dtype for t in types}) == 1 and is_real(types[0].dtype)
    if not plain or not one or any(len(set(f.indices)) < len(f.indices) for f in factors):
        return None
    from polyhedral.products.staging import staged

    target = problem.stored(problem.assignment.target)
    loops = [problem.stored(factor) for factor in factors]
    longest_first = sorted(range(len(loops)), key=lambda place: -len(loops[place]))
    stages = (staged(target, loops, place) for place in longest_first)
    return next((sum_ for sum_ in stages if sum_ is not None), None)


def _factors(expr: Expr) -> tuple[Access, ...] | None:
    """Return the factors inside the sums around a product; None for anything else."""
    factors = tuple(_walked(expr))
    return None if None in factors else tuple(f for f in factors if f is not None)


def _walked(expr: Expr) -> Iterator[Access | None]:
    match expr:
        case Access():
            yield expr
        case Reduce(operator, _, body) if operator == ADD:
            yield from _walked(body)
        case Call(operator, (left, right)) if operator == MUL:
            yield from _walked(left)
            yield from _walked(right)
        case _:
            yield None


def stage(problem: Problem, target: Target, name: str) -> Permuted:
    """Return the kernel called `name` of a problem that `staged_of` accepts."""
    from polyhedral.products.stage import TILES, to_functions

    sum_, accesses = staged_of(problem), _factors(problem.assignment.value)
    tile = tile_of(problem.result.dtype, target)
    if sum_ is None or accesses is None or tile is None:
        raise InternalError(f"Expected a sum in another order, found {problem}")
    arguments, result = arguments_of(problem, name), problem.assignment.target
    result_data, *factors = (
        data_of(problem, access, arguments.tensors) for access in (result, *accesses)
    )
    machine = machine_of(target, problem.result.dtype)
    module = to_functions(
        sum_, tile, machine, result_data, factors, arguments.sizes, arguments.head, arguments.names
    )
    return Permuted(module, arguments.bindings, _plan_text(sum_, TILES * tile.columns, accesses))


def _plan_text(sum_: Staged, columns: int, factors: tuple[Access, ...]) -> str:
    """Return the plan as text."""
    what = f"sums over {', '.join(sum_.reduced)}" if sum_.reduced else "products"
    late = ", ".join(factors[place].tensor for place in sorted(sum_.late))
    row = ", ".join(sum_.row)
    return (
        f"{what} in blocks of {columns} {sum_.target_loop}, run through along {row} as the "
        f"operands store it, then transposed in registers, for the result is stored along "
        f"{sum_.target_loop}; inside {', '.join(sum_.outer) or 'no other loop'}"
        + (f"; times {late} afterwards, which {sum_.target_loop} runs through" if late else "")
    )


WAY = Way("staged", can, choose, lower)
