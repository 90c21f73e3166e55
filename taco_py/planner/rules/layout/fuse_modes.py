"""Fuse neighbouring indices that all arrays store one behind the other: one index, one loop.

    s = sum(a, b, c, A[c,a,b] * v[c])   →   s = sum(ab, c, A_fused[c,ab] * v[c])

Loops are then longer, which matters most for the innermost one, and fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

from codegen.names import Names
from codegen.records import dataclass
from taco_py.language.formats import dense
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Access, Assignment, Expr, Reduce
from taco_py.language.notation.tree import children, map_children
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import Fuse, Operand, Step
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, Trait, result


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Fuse all indices of a dense assignment that can be fused, the result's included."""
    facts = dict(program.facts)
    request = context.request(program, program.result)
    fused = fuse(program.last, facts, request, Names(facts))
    if fused.assignment is program.last:
        return None
    facts[program.result] = replace(facts[program.result], type=fused.request.type)
    extended = program.before(program.result, fused.steps, facts)
    return Rewrite(extended.with_assignment(fused.assignment))


@dataclass(frozen=True, slots=True)
class Fused:
    """The assignment over fewer indices, what its result is then, and the steps before."""

    assignment: Assignment
    request: Request
    steps: tuple[Step, ...]


def fuse(
    assignment: Assignment, operands: dict[str, Operand], request: Request, names: Names
) -> Fused:
    """Return the assignment with its fusible indices fused; add the new operands to `operands`.

    Only where all of it is dense, and the result stored in the order of its modes.
    """
    stored = _stored(assignment, operands, request)
    chains = _chains(stored, assignment, {index for index, _ in request.static})
    if not chains:
        return Fused(assignment, request, ())
    fresh = Names(all_indices(assignment))
    fused_names = {chain: fresh.fresh("".join(chain)) for chain in chains}
    steps: dict[Access, Fuse] = {}
    for access in dict.fromkeys(accesses(assignment.value)):
        groups = _groups(stored[access].indices, chains)
        if len(groups) < len(access.indices):
            steps[access] = _step(access, groups, operands, names)

    def fused(expr: Expr) -> Expr:
        below = map_children(expr, fused)
        if isinstance(below, Access) and below in steps:
            return _renamed(below, steps[below].target, stored[below].indices, fused_names)
        if isinstance(below, Reduce):
            chain = next((c for c in chains if below.index in c), None)
            if chain is not None:
                last = below.index == chain[-1]
                return replace(below, index=fused_names[chain]) if last else below.body
        return below

    old = assignment.target
    target = _renamed(old, old.tensor, old.indices, fused_names)
    type = replace(request.type, format=dense(len(target.indices)))
    value = fused(assignment.value)
    return Fused(
        replace(assignment, target=target, value=value),
        replace(request, type=type),
        tuple(steps.values()),
    )


Chain = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Stored:
    """The indices of an array as it is stored, and which of them the next one goes on from."""

    indices: tuple[str, ...]
    contiguous: tuple[bool, ...]


def _stored(
    assignment: Assignment, operands: Mapping[str, Operand], request: Request
) -> dict[Access, _Stored]:
    """Return the arrays of a dense assignment; none where a part is not dense."""
    target, form = assignment.target, request.type.format
    arrays = {target: _Stored(target.indices, (True,) * max(0, form.order - 1))}
    if is_sparse(form) or form.mode_order != tuple(range(form.order)):
        return {}
    for access in accesses(assignment.value):
        operand = operands[access.tensor]
        form = operand.type.format
        if is_sparse(form):
            return {}
        arrays[access] = _Stored(form.stored(access.indices), operand.contiguous)
    return arrays


def _chains(
    stored: Mapping[Access, _Stored], assignment: Assignment, static: set[str]
) -> tuple[Chain, ...]:
    """Return the chains of indices to fuse, outermost first."""
    next_of: dict[str, set[str | None]] = {}
    before: dict[str, set[str | None]] = {}
    for array in stored.values():
        ends = (*array.contiguous, *(False for _ in array.indices))
        for place, index in enumerate(array.indices):
            after = array.indices[place + 1] if ends[place] else None
            next_of.setdefault(index, set()).add(after)
            first = place == 0 or not ends[place - 1]
            before.setdefault(index, set()).add(None if first else array.indices[place - 1])
    runs = tuple(_runs(assignment.value))

    def follows(index: str) -> str | None:
        (after, *more) = next_of[index]
        if more or after is None or after == index or before[after] != {index}:
            return None
        adjacent = all((index in run) == (after in run) for run in runs)
        return after if adjacent and not {index, after} & static else None

    links = {index: after for index in next_of if (after := follows(index)) is not None}
    begins = (index for index in links if index not in links.values())
    return tuple(tuple(_chain_from(index, links)) for index in begins)


def _chain_from(index: str, links: Mapping[str, str]) -> Iterator[str]:
    yield index
    while index in links:
        index = links[index]
        yield index


def _runs(expr: Expr) -> Iterator[frozenset[str]]:
    """Yield the indices of nested reductions by one operator."""
    run: set[str] = set()
    below = expr
    while (
        isinstance(below, Reduce) and isinstance(expr, Reduce) and below.operator == expr.operator
    ):
        run.add(below.index)
        below = below.body
    if run:
        yield frozenset(run)
        yield from _runs(below)
    else:
        for child in children(expr):
            yield from _runs(child)


def _groups(indices: tuple[str, ...], chains: tuple[Chain, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the modes of an array, grouped by chains."""
    groups: list[tuple[int, ...]] = []
    for place, index in enumerate(indices):
        inside = any(index in chain[1:] for chain in chains)
        if inside:
            groups[-1] = (*groups[-1], place)
        else:
            groups.append((place,))
    return tuple(groups)


def _step(
    access: Access,
    groups: tuple[tuple[int, ...], ...],
    operands: dict[str, Operand],
    names: Names,
) -> Fuse:
    """Return the step that fuses the `groups` of stored modes of an access."""
    source = operands[access.tensor]
    order = source.type.format.mode_order
    modes = tuple(tuple(order[place] for place in group) for group in groups)
    target = names.fresh(f"{access.tensor}_fused")
    shape = tuple(prod(source.shape[mode] for mode in group) for group in modes)
    type = replace(source.type, format=dense(len(modes)))
    operands[target] = Operand(type, shape, source.nnz)
    return Fuse(target, access.tensor, modes)


def _renamed(
    access: Access, tensor: str, stored: tuple[str, ...], fused_names: Mapping[Chain, str]
) -> Access:
    """Return the access of `tensor`, whose indices are `stored` with the fused ones renamed."""
    first = {chain[0]: name for chain, name in fused_names.items()}
    inside = {index for chain in fused_names for index in chain[1:]}
    indices = tuple(first.get(index, index) for index in stored if index not in inside)
    return replace(access, tensor=tensor, indices=indices)


RULE = Rule("fuse_modes", Phase.LAYOUT, apply, result, traits=Trait.INDICES | Trait.RESULT)
