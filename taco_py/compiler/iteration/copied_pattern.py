"""Operands whose outer levels a sparse result has too, so that their coordinates are copied.

C[i,j] = S[i,j] * U[i,k] * V[j,k]   C, S: ds       the levels of S
A[i,j] = B[i,j,k] * c[k]            A: ss, B: sss  the outer two levels of B
A[i,j] = B[i,k,l] * C[k,j] * D[l,j] A: sd, B: sss  the outermost level of B, then every j
"""

from __future__ import annotations

from codegen.records import dataclass
from taco_py.compiler.concrete.terms import split_terms
from taco_py.language.formats import Level
from taco_py.language.legal.absent import restricts
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Call, Expr
from taco_py.language.notation.operators import ADD, FILLED, KEEP, SELECTED
from taco_py.language.notation.tree import walk
from taco_py.language.problem import Problem


@dataclass(frozen=True, slots=True)
class CopiedPattern:
    """The outer `depth` levels of an operand, which the result has too.

    Below them, the result stores every coordinate.
    """

    access: Access
    depth: int


def copied_pattern(problem: Problem) -> CopiedPattern | None:
    """Find the operand whose outer levels have the coordinates that a sparse result stores.

    None where there is none: sums of several operands, products of several sparse operands, which
    may have no term in common, and values that are stored under a condition.
    """
    terms = split_terms(problem.assignment.value)
    if is_full(problem.result.format) or problem.result.fill or problem.side:
        return None
    if len(terms) > 1 or terms[0].operator != ADD:
        return None
    value = terms[0].as_sum(problem.result.dtype)
    if any(_is_conditional(node) for node, _ in walk(problem.assignment.value)):
        return None
    depth = max(k for k, level in enumerate(problem.result.format.levels) if not level.full) + 1
    read = tuple(dict.fromkeys(accesses(value)))
    for access in read:
        siblings = (other for other in read if other != access)
        if not _has_levels(problem, access, depth) or not restricts(value, access):
            continue
        if all(is_full(problem.type_of(other.tensor).format) for other in siblings):
            return CopiedPattern(access, depth)
    return None


def _is_conditional(node: Expr) -> bool:
    return isinstance(node, Call) and node.operator in (FILLED, KEEP, SELECTED)


def _has_levels(problem: Problem, access: Access, depth: int) -> bool:
    """Tell whether the outer levels of an operand equal the result's levels in kind and index."""
    target, form = problem.assignment.target, problem.type_of(access.tensor).format
    if is_full(form) or form.order < depth:
        return False
    ours = zip(problem.stored(access), form.levels, strict=True)
    result = zip(problem.stored(target), problem.result.format.levels, strict=True)
    pairs = tuple(zip(ours, result, strict=False))[:depth]
    return all(a == b and _same_kind(x, y) for (a, x), (b, y) in pairs)


def _same_kind(level: Level, other: Level) -> bool:
    return (level.kind, level.unique) == (other.kind, other.unique)
