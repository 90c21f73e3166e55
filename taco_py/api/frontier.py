"""`frontier`: the schedules of an assignment that no other is asymptotically better than."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from taco_py.api.over import as_mask, read_over
from taco_py.arguments.option_checks import check_budget, check_target, merged
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.devices.placed import placed
from taco_py.calls.kernels.draft import CompileArguments, draft
from taco_py.calls.statements.read_text import accumulated, read_statement
from taco_py.compiler.asymptotic.frontier_search import Frontier
from taco_py.compiler.asymptotic.frontier_search import frontier as search_frontier
from taco_py.compiler.asymptotic.tasks import Scope
from taco_py.data.tensors.byte_counts import limited
from taco_py.language.diagnostics.errors import NotationError, ScheduleError
from taco_py.language.formats import dense
from taco_py.language.notation.checks import accesses, has_subscripts
from taco_py.language.notation.functions.averages import spelled
from taco_py.language.notation.nodes import Assignment, Reduce
from taco_py.language.notation.tree import walk
from taco_py.report.explanation.estimates import SEARCH, with_estimates

if TYPE_CHECKING:
    from taco_py.language.notation.rewrites.semirings import Semiring

SCOPES = {scope.value: scope for scope in Scope}


def frontier(
    text: str,
    formats: Mapping[str, Any] | None = None,
    /,
    *,
    scope: str = "all",
    schedule_budget: float | None = None,
    semiring: Semiring | str | None = None,
    mask: Any = None,
    border: str = "error",
    shape: Sequence[int] | int | None = None,
    target: str | None = None,
    memory_limit: int | str | None = None,
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
    semiring, mask, border, shape  as in `compile`; the schedules are those of what is computed
             over numbers, of the operands that subscripts ask for
    target   as in `evaluate`: which schedules there are is the same everywhere; what is estimated,
             and which of them a call takes, is for kernels there, whose units are chosen later
    memory_limit  bytes that a conversion of an array which stands for its format may take

    Raises NotationError, OperandError, OperandTypeError, FormatError, ScheduleError.
    """
    if memory_limit is not None:
        return limited(frontier, locals())
    passed_formats, where = placed(merged(formats, named, "formats"), target)
    check_target(where)
    read = read_statement(text)
    over = read_over(semiring, as_mask(mask, read.assignment), False)
    result = read.assignment.target.tensor
    uses = accumulated(read.assignment, {result: None})
    orders = {access.tensor: len(access.modes) for access in accesses(uses) if not access.is_number}
    formats = {**{name: dense(order) for name, order in orders.items()}, **passed_formats}
    options = CallOptions(border=border, shape=shape)
    arguments = CompileArguments(formats, over=over, options=options)
    if (border, shape) != ("error", None) or has_subscripts(read.assignment):
        from taco_py.calls.kernels.subscript_front import draft_subscripts

        drafted = draft_subscripts(read, arguments)
    else:
        drafted = draft(text, arguments)
    _check_comparable(drafted.assignment)
    stored = {name: operand.type.format for name, operand in drafted.operands.items()}
    if not isinstance(scope, str) or scope not in SCOPES:
        raise ScheduleError(
            f"Expected scope to be one of {', '.join(SCOPES)}, found {scope!r}",
            hint="leave it out for the widest",
        )
    budget = check_budget(schedule_budget)
    until = inf if budget is None else monotonic() + budget
    search = None if budget is None else budget * SEARCH
    schedules = search_frontier(drafted.assignment, stored, SCOPES[scope], search)
    return with_estimates(schedules, drafted.operands, drafted.request.on(where), until)


def _check_comparable(assignment: Assignment) -> None:
    """Raise NotationError for a diagonal, ScheduleError for reductions that are no sums."""
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
                f"{spelled(node)}",
                node.span or assignment.span,
                "tp.explain says how it is computed; schedule= of tp.evaluate takes commands",
            )
