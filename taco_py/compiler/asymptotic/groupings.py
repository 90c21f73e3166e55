"""Groupings of an expression: every way to split it into temporaries that are computed first.

    A[i,j] = sum(k, l, B[i,k] * C[k,l] * D[j,l])
    → A[i,j] += B * C * D
      A[i,j] += w[i,l] * D       where w[i,l] += B * C      summed over k early
      A[i,j] += B * w[k,j]       where w[k,j] += C * D      summed over l early
      A[i,j] += C * w[i,k,j,l]   where w = B * D            nothing to sum early

Any set of arguments of an associative and commutative operator may be computed first; a product is
distributed over a sum or not; sums inside an expression are always computed first. An index that
only the temporary has is summed there, for multiplication distributes over addition.
(Ahrens et al. 2022, section 7; unlike there, one factor may be summed by itself, and a temporary
that could be summed early is never left unsummed: it costs the same and needs more memory.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from functools import reduce as fold
from itertools import combinations
from typing import TypeGuard

from codegen.records import dataclass
from taco_py.compiler.concrete.terms import sums_apart
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, Operator
from taco_py.language.notation.tree import (
    children,
    exchange,
    is_additive,
    is_call_of,
    is_reduction_by,
    map_accesses,
    map_children,
    peel_reductions,
)

REWRITES = 16
"""The most distributed forms of an expression that are considered."""
DRAFTS = 4096
"""The number of preliminary names for temporaries; they are numbers, unlike names of tensors."""


@dataclass(frozen=True, slots=True)
class Group:
    """`target = body`, or `target += body` where `reduced` indices are summed.

    parts  the groups that fill the temporaries which `body` reads
    """

    target: Access
    body: Expr
    reduced: tuple[str, ...]
    parts: tuple[Group, ...]

    @property
    def indices(self) -> frozenset[str]:
        """Return every index of this group and of its parts."""
        inside = {i for part in self.parts for i in part.indices}
        body_indices = {i for access in accesses(self.body) for i in access.indices}
        return frozenset(inside | body_indices | set(self.target.indices))


def groupings(assignment: Assignment, names: Sequence[str]) -> Iterator[Group]:
    """Yield every grouping of an assignment with explicit sums; `names` are free for
    temporaries."""
    drafts = tuple(f"{place}" for place in range(DRAFTS))
    for value in _forms(assignment)[:REWRITES]:
        reduced, body = peel_reductions(value, ADD)
        for group in _groups(assignment.target, body, reduced, drafts):
            yield _with_names(group, iter(names), {})


def _with_names(group: Group, names: Iterator[str], new_names: dict[str, str]) -> Group:
    """Return `group` whose temporaries have the first of `names`, in the order of computation."""
    parts = []
    for part in group.parts:
        inside = _with_names(part, names, new_names)
        new_names[part.target.tensor] = next(names)
        parts.append(replace(inside, target=_renamed(part.target, new_names)))
    body = map_accesses(group.body, lambda access: _renamed(access, new_names))
    return replace(group, body=body, parts=tuple(parts))


def _renamed(access: Access, names: Mapping[str, str]) -> Access:
    return replace(access, tensor=names.get(access.tensor, access.tensor))


# ---------------------------------------------------------------- distribution


def _pulled(expr: Expr) -> Expr:
    """Move sums out of products: `a * sum(j, b)` → `sum(j, a * b)`, one product to regroup."""
    expr = map_children(expr, _pulled)
    if not isinstance(expr, Call):
        return expr
    sums: list[Reduce] = []
    args = list(expr.args)
    for place, linear in enumerate(expr.operator.linear if expr.operator.arity == 2 else ()):
        other_indices = [i for k, arg in enumerate(args) if k != place for i in _everywhere(arg)]
        while linear and isinstance(arg := args[place], Reduce) and arg.operator == ADD:
            if arg.index in other_indices:
                break
            sums.append(arg)
            args[place] = arg.body
    value: Expr = replace(expr, args=tuple(args)) if sums else expr
    for sum_ in reversed(sums):
        value = replace(sum_, body=value)
    return value


def _everywhere(expr: Expr) -> tuple[str, ...]:
    return tuple(i for access in accesses(expr) for i in access.indices)


def few_forms(assignment: Assignment) -> bool:
    """Tell whether all distributed forms of an assignment are among its groupings."""
    return len(_forms(assignment)) <= REWRITES


def _forms(assignment: Assignment) -> tuple[Expr, ...]:
    """Return the forms of an assignment's value with products distributed over sums.

    Without duplicates; of more than REWRITES forms one more than these. In none of them a term has
    two sums over indices of one name, as a denominator's sum would.
    """
    forms = [_pulled(sums_apart(assignment).value)]
    for form in forms:
        for other in _distributed(form):
            other = _pulled(other)
            candidate = replace(assignment, value=other)
            if other not in forms and len(forms) <= REWRITES and sums_apart(candidate) is candidate:
                forms.append(other)
    return tuple(forms)


def _distributed(expr: Expr) -> Iterator[Expr]:
    """Yield `expr` with one product distributed over a sum, or one sum split in two.

    `a * (b + c)` becomes `a * b + a * c`; the sum's index must be in both terms. One for each
    place.
    """
    if isinstance(expr, Call) and not expr.operator.additive:
        for place, arg in enumerate(expr.args):
            if expr.operator.linear[place] and _is_sum(arg):
                yield replace(arg, args=tuple(_at(expr, place, term) for term in arg.args))
    if is_reduction_by(expr, ADD) and _is_sum(body := expr.body):
        terms = tuple(replace(expr, body=term) for term in body.args)
        if all(expr.index in free_indices(term.body) for term in terms):
            yield replace(body, args=terms)
    for child in children(expr):
        for new in _distributed(child):
            yield exchange(expr, child, new)


def _is_sum(expr: Expr) -> TypeGuard[Call]:
    return is_additive(expr) and len(expr.args) == 2


def _at(call: Call, place: int, arg: Expr) -> Call:
    return replace(call, args=(*call.args[:place], arg, *call.args[place + 1 :]))


# ---------------------------------------------------------------- temporaries


def _groups(
    target: Access, body: Expr, reduced: tuple[str, ...], names: tuple[str, ...]
) -> Iterator[Group]:
    """Yield every way to compute `target` as the sum of `body` over `reduced`."""
    for value, parts in _cuts(body, frozenset(reduced), frozenset(target.indices), names):
        used = free_indices(value)
        yield Group(target, value, tuple(i for i in reduced if i in used), parts)


Cut = tuple[Expr, tuple[Group, ...]]


def _cuts(
    expr: Expr, reduced: frozenset[str], outside: frozenset[str], names: tuple[str, ...]
) -> Iterator[Cut]:
    """Yield `expr` with temporaries for some of its parts, and the groups that fill them.

    reduced  the indices that are summed around `expr`
    outside  the indices that are used outside of it
    """
    match expr:
        case Access() | Literal():
            yield expr, ()
        case Reduce():
            yield from _temporaries(expr, names)
        case Call(operator, _) if operator.associative and operator.commutative:
            yield from _partitions(operator, _flat(operator, expr), reduced, outside, names)
        case Call(operator, _):
            for cuts in _argument_cuts(expr, reduced, outside, names):
                yield Call(operator, tuple(e for e, _ in cuts)), _groups_of(cuts)


def _temporaries(expr: Expr, names: tuple[str, ...]) -> Iterator[Cut]:
    """Yield a temporary for all of `expr`, a sum or a part of a sum or product."""
    reduced, body = peel_reductions(expr, ADD)
    target = Access(names[0], free_indices(expr))
    for group in _groups(target, body, reduced, names[1:]):
        yield target, (group,)


def _argument_cuts(
    call: Call, reduced: frozenset[str], outer_uses: frozenset[str], names: tuple[str, ...]
) -> Iterator[tuple[Cut, ...]]:
    """Yield all combinations of cuts of a call's arguments, with separate names.

    An index that only one argument has, in which the call is linear, may be summed there:
      y[i] = sum(j, k, A[i,j] * B[j,k] * x[k] / z[i])  →  w[j] = sum(k, B[j,k] * x[k]), …
    """
    args, linear = call.args, call.operator.linear
    options = []
    for place, arg in enumerate(args):
        outside = {i for k, other in enumerate(args) if k != place for i in free_indices(other)}
        summed_here = reduced - outside if linear[place] and len(args) > 1 else frozenset[str]()
        used_outside = outer_uses | outside | (reduced - summed_here)
        options.append(
            partial(_argument, arg, summed_here, used_outside, names[place :: len(args)])
        )
    yield from _combinations(options)


def _argument(
    arg: Expr, summed_here: frozenset[str], outside: frozenset[str], names: tuple[str, ...]
) -> Iterator[Cut]:
    """Yield one argument cut, or all of it as a temporary where it is summed there."""
    yield from _cuts(arg, summed_here, outside, names)
    mine = [i for i in free_indices(arg) if i in summed_here]
    if mine:
        yield from _temporaries(_summed(mine, arg), names)


def _combinations(options: Sequence[Callable[[], Iterator[Cut]]]) -> Iterator[tuple[Cut, ...]]:
    """Yield all combinations of one cut of each argument, lazily."""
    if not options:
        yield ()
        return
    first, *more = options
    for cut in first():
        for rest in _combinations(more):
            yield (cut, *rest)


def _groups_of(cuts: Sequence[Cut]) -> tuple[Group, ...]:
    return tuple(group for _, groups in cuts for group in groups)


def _flat(operator: Operator, expr: Expr) -> tuple[Expr, ...]:
    """Return the arguments of nested calls of one operator."""
    if is_call_of(expr, operator):
        return tuple(part for arg in expr.args for part in _flat(operator, arg))
    return (expr,)


def _partitions(
    operator: Operator,
    items: tuple[Expr, ...],
    reduced: frozenset[str],
    outer_uses: frozenset[str],
    names: tuple[str, ...],
) -> Iterator[Cut]:
    """Yield every partition of the arguments into blocks; larger blocks are temporaries.

    A block of one argument becomes a temporary, too, where an index is summed that only it has.
    """
    for blocks in _set_partitions(items):
        if len(blocks) == 1 and len(items) > 1:
            continue
        options = []
        for place, block in enumerate(blocks):
            other_items = [item for other in blocks if other is not block for item in other]
            outside = outer_uses | {i for item in other_items for i in free_indices(item)}
            inner = fold(lambda a, b: Call(operator, (a, b)), block)
            summed_here = [i for i in free_indices(inner) if i in reduced and i not in outside]
            if not all(operator.linear):
                summed_here = []
            share = names[place :: len(blocks)]
            options.append(partial(_block, block, inner, summed_here, outside, share, len(blocks)))
        for cuts in _combinations(options):
            yield fold(lambda a, b: Call(operator, (a, b)), (e for e, _ in cuts)), _groups_of(cuts)


def _block(
    block: tuple[Expr, ...],
    inner: Expr,
    summed_here: Sequence[str],
    outside: frozenset[str],
    names: tuple[str, ...],
    blocks: int,
) -> Iterator[Cut]:
    """Yield the ways to compute one block of arguments: in place, or as a temporary."""
    if len(block) == 1:
        yield from _cuts(inner, frozenset(summed_here), outside, names)
    alone = len(block) == 1 and not isinstance(inner, Call)
    if not alone or (summed_here and blocks > 1 and isinstance(inner, Access)):
        yield from _temporaries(_summed(summed_here, inner), names)


def _summed(indices: Sequence[str], expr: Expr) -> Expr:
    return fold(lambda body, index: Reduce(ADD, index, body), reversed(indices), expr)


def _set_partitions(items: tuple[Expr, ...]) -> Iterator[tuple[tuple[Expr, ...], ...]]:
    """Yield every partition of `items` into blocks, the first item in the first block."""
    if not items:
        yield ()
        return
    first, *rest = items
    for size in range(len(rest) + 1):
        for places in combinations(range(len(rest)), size):
            block = (first, *(rest[p] for p in places))
            remaining = tuple(item for p, item in enumerate(rest) if p not in places)
            for below in _set_partitions(remaining):
                yield (block, *below)
