"""A dense tensor copied in another order of its modes → tiles transposed in registers
(`polyhedral.products.permutation`).

    C[k,j,i] = A[i,j,k]
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codegen.ir import Block, Function, Module, Var
from codegen.machine.target import Target
from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.lower.bindings import Bindings
from taco_py.compiler.ways.arrays import data_of, has_vectors, machine_of, size_bindings, tensor_of
from taco_py.compiler.ways.loops import lower as lower_loops
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe, dense_facts
from taco_py.compiler.ways.way import Offer, Question, Way
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.legal.stored import is_full
from taco_py.language.legal.types import is_real
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import Problem

if TYPE_CHECKING:
    from polyhedral.products.permutation import Permutation, TransposeTile


@dataclass(frozen=True, slots=True)
class Permuted:
    """A module whose last function is the kernel, the sources of its arguments, and the plan."""

    module: Module
    bindings: Bindings
    plan: str


def can(question: Question) -> bool:
    """Tell whether a problem is a copy in another order."""
    return question.recall(copy_of) is not None


def choose(question: Question) -> Offer | None:
    """Return transposed tiles for copies that fill them."""
    copy = question.recall(copy_of)
    if copy is None:
        return None
    sizes, least = question.stats.sizes, question.stats.machine.dense.transposed_tile_elements
    return Offer() if min(sizes[copy.target_loop], sizes[copy.source_loop]) >= least else None


def copy_of(question: Question) -> Permutation | None:
    """Return the problem as a copy in another order."""
    return permutation_of(question.problem)


def lower(recipe: Recipe, target: Target) -> LoweredRecipe:
    """Return the loop IR of a copy in tiles; in loops where the machine has no vectors."""
    if not has_vectors(recipe.problem, target):
        return lower_loops(recipe, target)
    permuted = permute(recipe.problem, target, recipe.phase)
    facts = dense_facts(recipe, "the outermost loop", permuted.plan)
    module = replace(permuted.module, header=recipe.header(permuted.plan))
    return LoweredRecipe(module, permuted.bindings, facts)


def permutation_of(problem: Problem) -> Permutation | None:
    """Return the problem as a copy of a dense tensor of floats in another order, else None."""
    source = problem.assignment.value
    if not isinstance(source, Access):
        return None
    types = (problem.result, problem.type_of(source.tensor))
    plain = all(is_full(t.format) and t.unit_stride and not t.stored for t in types)
    if not plain or types[0].dtype != types[1].dtype or not is_real(types[0].dtype):
        return None
    from polyhedral.products.permutation import permutation

    return permutation(problem.stored(problem.assignment.target), problem.stored(source))


def tile_of(dtype: str, target: Target) -> TransposeTile | None:
    """Return the tile for a machine, None where it has no vectors of such elements."""
    from polyhedral.products.permutation import transpose_tile

    return transpose_tile(machine_of(target, dtype))


def permute(problem: Problem, target: Target, name: str) -> Permuted:
    """Return the kernel called `name` of a problem that `permutation_of` accepts."""
    from polyhedral.products.permutation import to_functions

    permutation, source = permutation_of(problem), problem.assignment.value
    tile = tile_of(problem.result.dtype, target)
    if permutation is None or tile is None or not isinstance(source, Access):
        raise InternalError(f"Expected a copy in another order, found {problem}")
    names = Names()
    sizes, bindings = size_bindings(problem, names)
    accesses = (problem.assignment.target, source)
    tensors = {a.tensor: tensor_of(problem, a.tensor, names, bindings) for a in accesses}
    strides = [s for t in tensors.values() for s in t.strides if isinstance(s, Var)]
    scalars = (*(size for size in sizes.values() if isinstance(size, Var)), *strides)
    arrays = tuple(tensor.array for tensor in tensors.values())
    head = Function(name, arrays, scalars, Block(), threaded=True)
    result, operand = (data_of(problem, access, tensors) for access in accesses)
    machine = machine_of(target, problem.result.dtype)
    module = to_functions(permutation, tile, machine, result, operand, sizes, head, names)
    loops = (permutation.target_loop, permutation.source_loop)
    plan = (
        f"tiles of {tile.columns} {loops[0]} by {tile.lanes} {loops[1]}, "
        f"transposed in registers, inside {', '.join(permutation.outer) or 'no other loop'}"
    )
    return Permuted(module, tuple(bindings.items()), plan)


WAY = Way("transpose", can, choose, lower)
