"""Results that a kernel stores besides its own, in the workspaces of its loops.

y[i] = x[i] / t   where t = sum(j, A[i,j]), which is stored as s[i]
s                 stored in the loop over i alone: each element once, when it is complete
"""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.compiler.concrete.nodes import Forall, Sequence, Statement, Where
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.printer import to_text
from taco_py.language.problem import Problem
from taco_py.language.provenance.provenance import Provenance


def stored_in(
    statement: Statement, loops: frozenset[str] = frozenset()
) -> Iterator[tuple[Access, frozenset[str]]]:
    """Yield the side results that workspaces are stored in, with the loops around each."""
    match statement:
        case Forall(index, body):
            yield from stored_in(body, loops | {index})
        case Where(workspace, consumer):
            if workspace.stored is not None:
                yield workspace.stored, loops
            yield from stored_in(consumer, loops)  # a producer runs where it is asked for
        case Sequence(statements):
            for part in statements:
                yield from stored_in(part, loops)


def check_side_results(problem: Problem, statement: Statement, provenance: Provenance) -> None:
    """Raise ScheduleError unless loops store each side result, in loops over its indices alone."""
    stored = [
        access
        for access, loops in stored_in(statement)
        if {root for loop in loops for root in provenance.roots(loop)} == {*access.indices}
    ]
    for side in problem.side:
        if stored.count(side.target) != 1:
            raise ScheduleError(
                f"Expected loops that complete {to_text(side.target)} once, besides "
                f"{to_text(problem.assignment.target)}, found others",
                hint="make the kernel as it was planned, or each result by a kernel of its own",
            )
