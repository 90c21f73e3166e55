"""`frontier`: the schedules of an assignment that no other is asymptotically better than."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from time import monotonic
from typing import Any

from taco_py.asymptotic.frontier_search import Frontier
from taco_py.asymptotic.frontier_search import frontier as search_frontier
from taco_py.asymptotic.tasks import Scope
from taco_py.call.draft import draft
from taco_py.call.prepare import accumulated, understood
from taco_py.diagnostics.errors import NotationError, ScheduleError
from taco_py.explanation.estimates import SEARCH, with_estimates
from taco_py.formats import dense
from taco_py.notation.checks import accesses, refuse_subscripts
from taco_py.notation.nodes import Reduce
from taco_py.notation.tree import walk
from taco_py.values.settings import check_budget, merged

SCOPES = {scope.value: scope for scope in Scope}


def frontier(
    text: str,
    formats: Mapping[str, Any] | None = None,
    /,
    *,
    scope: str = "all",
    schedule_budget: float | None = None,
    **named: Any,
) -> Frontier:
    """Find the schedules of an assignment that no other is asymptotically better than.

    >>> f = tp.frontier("A[i,j] = B[i,k] * C[k,j]", B=tp.CSR, C=tp.CSR)
    >>> f.universe, len(f), str(f[0].cost)
    (96, 12, 'Σ over {(i,k,j) | B[i,k] ∧ C[k,j]}')
    >>> f.complete
    True

    Returns a `Frontier`, a sequence of schedules with their costs, the cheapest first.

    text     index notation
    formats, named  of the operands, as a mapping or by name; those left out are dense. An operand
             with a sparse format has a pattern, each mode of which a schedule may step through or
             look up; which levels the format has makes no difference, for a transpose or copy costs
             no more than reading. An array stands for its own format, and what is estimated for
             each schedule is then for data like it, else for a density of 0.01.
    scope    "all": a workspace stores what any round of the loops around it writes, as in the
             literature; "round": what one round does, which tells schedules that skip empty slices
             from others
    schedule_budget  seconds, a third for the estimates; the best schedules found until then are
             returned, and `complete` is False where the search was cut; those not estimated by
             then come last, and `late` says how many they are

    Raises NotationError, OperandError, OperandTypeError, FormatError, ScheduleError.
    """
    written = understood(text).assignment
    refuse_subscripts(written)
    assignment = accumulated(written, {written.target.tensor: None})
    for access in accesses(assignment):
        if len(set(access.indices)) < len(access.indices):
            raise NotationError(
                f"Expected different indices in each access, found {access.tensor} with one twice",
                access.span,
                "take the diagonal first",
            )
    for node, _ in walk(assignment.value):
        if isinstance(node, Reduce) and not node.operator.additive:
            raise ScheduleError(
                f"Expected sums alone, whose schedules are compared, found a reduction by "
                f"{node.operator}",
                node.span,
                "tp.explain says how it is computed; schedule= of tp.evaluate takes commands",
            )
    given = merged(formats, named, "formats")
    orders = {access.tensor: len(access.indices) for access in accesses(assignment)}
    drafted = draft(text, {**{name: dense(order) for name, order in orders.items()}, **given})
    stored = {name: operand.type.format for name, operand in drafted.operands.items()}
    if not isinstance(scope, str) or scope not in SCOPES:
        raise ScheduleError(
            f"Expected scope to be one of {', '.join(SCOPES)}, found {scope!r}",
            hint="leave it out for the widest",
        )
    budget = check_budget(schedule_budget)
    until = inf if budget is None else monotonic() + budget
    search = None if budget is None else budget * SEARCH
    found = search_frontier(drafted.assignment, stored, SCOPES[scope], search)
    return with_estimates(found, drafted.operands, drafted.request, until)
