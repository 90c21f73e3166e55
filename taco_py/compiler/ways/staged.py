"""A sum of products of dense tensors, stored in another order than they are → stages that are
transposed in registers (`polyhedral.products.staging`).

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
    """Tell whether a problem is a sum of products that wants a stage."""
    return question.recall(sum_of) is not None


def choose(question: Question) -> Offer | None:
    """Return stages for sums and products that fill them; none for copies, nor for products of
    matrices with reuse."""
    if question.recall(tile_width) is not None or question.recall(copy_of) is not None:
        return None
    found = question.recall(sum_of)
    if found is None:
        return None
    sizes, least = question.stats.sizes, question.stats.machine.dense.transposed_tile_elements
    row = found.row if found.joined else (found.across,)
    loops = (found.along, *row) if found.even else row
    if prod(sizes[loop] for loop in loops) < least:
        return None
    terms = prod((sizes[loop] for loop in found.reduced), start=1.0)
    return Offer() if sizes[found.along] * terms >= least else None


def sum_of(question: Question) -> Staged | None:
    """Return the problem as a sum of products that wants a stage."""
    return staged_of(question.problem)


def lower(recipe: Recipe, target: Target) -> LoweredRecipe:
    """Return the loop IR of a sum in stages, in loops where the machine has no vectors."""
    if not has_vectors(recipe.problem, target):
        return lower_loops(recipe, target)
    staged = stage(recipe.problem, target, recipe.phase)
    facts = dense_facts(recipe, "the outermost loop", staged.plan)
    module = replace(staged.module, header=recipe.header(staged.plan))
    return LoweredRecipe(module, staged.bindings, facts)


def staged_of(problem: Problem) -> Staged | None:
    """Return the problem as a sum of products of dense tensors of floats that wants a stage, None
    where it is none."""
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
    found = (staged(target, loops, place) for place in longest_first)
    return next((each for each in found if each is not None), None)


def _factors(expr: Expr) -> tuple[Access, ...] | None:
    """What is multiplied, with the sums around it; None for anything else."""
    found = tuple(_walked(expr))
    return None if None in found else tuple(f for f in found if f is not None)


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
    """Return the kernel called `name` of a problem that `staged_of` knows."""
    from polyhedral.products.stage import TILES, to_functions

    found, accesses = staged_of(problem), _factors(problem.assignment.value)
    tile = tile_of(problem.result.dtype, target)
    if found is None or accesses is None or tile is None:
        raise InternalError(f"Expected a sum in another order, found {problem}")
    given, result = arguments_of(problem, name), problem.assignment.target
    made, *factors = (data_of(problem, each, given.tensors) for each in (result, *accesses))
    machine = machine_of(target, problem.result.dtype)
    module = to_functions(found, tile, machine, made, factors, given.sizes, given.head, given.names)
    return Permuted(module, given.bindings, _told(found, TILES * tile.columns, accesses))


def _told(found: Staged, columns: int, factors: tuple[Access, ...]) -> str:
    """Return the plan as text."""
    what = f"sums over {', '.join(found.reduced)}" if found.reduced else "products"
    late = ", ".join(factors[place].tensor for place in sorted(found.late))
    row = ", ".join(found.row)
    return (
        f"{what} in blocks of {columns} {found.along}, run through along {row} as the "
        f"operands store it, then transposed in registers, for the result is stored along "
        f"{found.along}; inside {', '.join(found.outer) or 'no other loop'}"
        + (f"; times {late} afterwards, which {found.along} runs through" if late else "")
    )


WAY = Way("staged", can, choose, lower)
