"""How temporaries are stored: as is expected to be cheapest for those who make and read them.

Nobody asks for the format of a temporary, so that it is free. Beside the usual one, which a result
would have, there are

    dense            T is expected to be nearly full, or dense factors meet it
    ds:1,0 for ds    its readers walk it by columns: no copy is made
    ss for ds        most of its rows are expected to be empty
    ds for ss        its rows are looked up: no search, no copy
    unsorted rows    no reader relies on their order (of a kernel that meets columns in any order)

Each is compared by what all kernels around the temporary cost in their best loop orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from math import prod

from taco_py.concrete.concretize import restricts
from taco_py.concrete.terms import split_terms
from taco_py.cost.machine import DENSE_SIZE, FULL, GAIN
from taco_py.formats import Format, dense
from taco_py.notation.checks import accesses, operand_names
from taco_py.notation.nodes import Access, Assignment, Call, Expr
from taco_py.notation.operators import DIV
from taco_py.notation.tree import children
from taco_py.plan.costs import keeping, kernel_cost
from taco_py.plan.ir.formats import COMPRESSED, DENSE, unordered_last
from taco_py.plan.ir.nodes import Compute, Operand, Step
from taco_py.plan.splitter import Splitter
from taco_py.schedule.apply import apply_all
from taco_py.schedule.loops import Loops

MODES = 3
"""Modes up to which a temporary is considered in every order."""


def store_well(splitter: Splitter, last: Assignment) -> None:
    """Give each temporary that `splitter` has made the format that costs least, with a note.

    last  the assignment that makes the result
    """
    for place, part in enumerate(splitter.made):
        name = part.target.tensor
        usual = splitter.operands[name]
        readers = [a for a in (*splitter.made, last) if name in operand_names(a)]
        options = tuple(_options(splitter, part, readers, last))
        if not options:
            continue
        before = _cost(splitter, part, readers, usual)
        costs = {form: _cost(splitter, part, readers, _stored(usual, form)) for form in options}
        form = min(options, key=lambda option: costs[option])
        if costs[form] * GAIN < before:
            splitter.operands[name] = _stored(usual, form)
            told = f"stored as {form}: about {costs[form]:.2g} operations instead of {before:.2g}"
            splitter.notes[place] += f"; {told} as {usual.type.format}"


def _cost(
    splitter: Splitter, part: Assignment, readers: Sequence[Assignment], stored: Operand
) -> float:
    """What the kernels around a temporary cost together where it is `stored` so."""
    changed = replace(splitter, operands={**splitter.operands, part.target.tensor: stored})
    cost = keeping(stored)
    for each in (part, *readers):
        target = changed.operands.get(each.target.tensor)
        type = splitter.request.type if target is None else target.type
        cost += kernel_cost(changed, each, replace(splitter.request, type=type))
    return cost


def _stored(usual: Operand, form: Format) -> Operand:
    return replace(usual, type=replace(usual.type, format=form))


# ---------------------------------------------------------------- candidates


def _options(
    splitter: Splitter, part: Assignment, readers: Sequence[Assignment], last: Assignment
) -> Iterator[Format]:
    """Other formats than the usual one; none among dense tensors only, and of one number."""
    stored = splitter.operands[part.target.tensor]
    usual = stored.type.format
    around = {name for each in (part, *readers) for name in operand_names(each)}
    if not usual.order or all(splitter.operands[n].type.format.is_dense for n in around):
        return
    result = splitter.request.type.format
    free = result.is_dense or all(_adds_no_entries(splitter, part, reader) for reader in readers)
    if not usual.is_dense and free and prod(stored.shape) <= DENSE_SIZE:
        yield dense(usual.order)
    looked_up = tuple(i for i in part.target.indices if _may_be_full(i, last, result))
    for form in _arranged(usual):
        root = part.target.indices[form.mode_order[0]]
        same = form.levels[0] == usual.levels[0] and form.mode_order[0] == usual.mode_order[0]
        if form != usual and (same or not form.levels[0].full or root in looked_up):
            yield form


def _adds_no_entries(splitter: Splitter, part: Assignment, reader: Assignment) -> bool:
    """Whether a sparse result has few entries more where a temporary has all: it divides, or it is
    nearly full and what it is multiplied by has the entries."""
    name, stored = part.target.tensor, splitter.operands[part.target.tensor]
    full = stored.nnz >= FULL * prod(stored.shape)
    for term in split_terms(reader.value):
        walked = [
            set(access.indices)
            for access in accesses(term.body)
            if access.tensor != name
            and not splitter.operands[access.tensor].type.format.is_dense
            and restricts(term.body, access)
        ]
        for access in _undivided(term.body):
            if access.tensor != name:
                continue
            if not full or not any(set(access.indices) <= indices for indices in walked):
                return False
    return True


def _undivided(expr: Expr) -> Iterator[Access]:
    """The accesses outside of divisors."""
    if isinstance(expr, Access):
        yield expr
    divided = isinstance(expr, Call) and expr.operator == DIV
    for child in children(expr)[:1] if divided else children(expr):
        yield from _undivided(child)


def _may_be_full(index: str, last: Assignment, result: Format) -> bool:
    """Whether the result stores the same where a temporary has all coordinates of `index`."""
    if index not in last.target.indices:
        return True
    return result.levels[result.mode_order.index(last.target.indices.index(index))].full


def _arranged(usual: Format) -> Iterator[Format]:
    """The format in every order of modes, and with a dense or with a compressed root."""
    modes = range(usual.order)
    if usual.order <= MODES and (usual.is_dense or _by_rows(usual)):
        yield from (Format(usual.levels, order) for order in permutations(modes))
    if not usual.is_dense and _by_rows(usual):
        root = COMPRESSED if usual.levels[0].full else DENSE
        yield replace(usual, levels=(root, *usual.levels[1:]))


def _by_rows(form: Format) -> bool:
    """Whether all levels but the root are compressed."""
    return form.order > 1 and all(level == COMPRESSED for level in form.levels[1:])


# ---------------------------------------------------------------- rows in any order


def leave_unsorted(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with temporaries whose rows come as they are met where no reader minds."""
    asked = set(_relied_on(steps))
    return tuple(
        _unsorted(step) if isinstance(step, Compute) and step.target not in asked else step
        for step in steps
    )


def _unsorted(step: Compute) -> Compute:
    result = step.problem.result
    if not all(level.full for level in result.format.levels[:-1]):
        return step  # threads that share a sparse root ask for it in order
    unsorted = replace(result, format=unordered_last(result.format))
    return replace(step, problem=replace(step.problem, result=unsorted))


def _relied_on(steps: Sequence[Step]) -> Iterator[str]:
    """The tensors that are wanted in order: the result, what is copied, what loops rely on."""
    yield steps[-1].target
    sparse = {s.target for s in steps if isinstance(s, Compute) and _sparse(s)}
    for step in steps:
        if not isinstance(step, Compute):
            yield step.source
        elif sparse.intersection(step.source(name) for name, _ in step.problem.operands):
            loops = apply_all(Loops(step.problem.assignment, step.orders), step.schedule)
            for needed in loops.graph(step.problem).requirements:
                if needed.ordered:
                    yield step.source(needed.tensor)


def _sparse(step: Compute) -> bool:
    return not step.problem.result.format.is_dense
