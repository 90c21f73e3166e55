"""A candidate as kernels: an assignment and a schedule each, in the syntax of users.

    a[i] += B[i,j] * w[j]  where  w[j] += C[j,k] * d[k]
    → w[j] = sum(k, C[j,k] * d[k])  with reorder(j,k);  a[i] = sum(j, B[i,j] * w[j])  with …

A temporary outside of all loops is a tensor computed first: one kernel or several is thus the same
kind of choice as loops.
"""

from __future__ import annotations

from functools import reduce as fold

from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import Assign, Forall, Statement, Where
from taco_py.compiler.schedule.commands import Reorder
from taco_py.compiler.schedule.schedule import OPEN, Schedule
from taco_py.language.notation.checks import operand_names
from taco_py.language.notation.nodes import Assignment, Expr, Reduce
from taco_py.language.notation.operators import ADD
from taco_py.language.notation.printer import to_text


@dataclass(frozen=True, slots=True, repr=False)
class ScheduledKernel:
    """One kernel: its assignment, and its loop order as a command."""

    assignment: Assignment
    schedule: Schedule

    @property
    def operands(self) -> tuple[str, ...]:
        """Return the names of the tensors that the kernel reads."""
        return operand_names(self.assignment)

    @property
    def text(self) -> str:
        """Return the text of the assignment, as `evaluate` accepts it."""
        return to_text(self.assignment)

    def __str__(self) -> str:
        return f"{self.text} with {self.schedule or 'its only loop'}"

    def __repr__(self) -> str:
        return f"<ScheduledKernel {self}>"


def kernels_of(statement: Statement) -> tuple[ScheduledKernel, ...] | None:
    """Return the kernels of `statement`, temporaries first; None where one is inside a loop."""
    match statement:
        case Where(_, consumer, producer):
            parts = (kernels_of(producer), kernels_of(consumer))
            return None if parts[0] is None or parts[1] is None else parts[0] + parts[1]
        case Assign() | Forall():
            kernel = _kernel(statement)
            return None if kernel is None else (kernel,)
        case _:
            return None


def _kernel(statement: Statement) -> ScheduledKernel | None:
    order: list[str] = []
    while isinstance(statement, Forall):
        order.append(statement.index)
        statement = statement.body
    if not isinstance(statement, Assign):
        return None
    summed = [i for i in order if i not in statement.target.indices]
    start: Expr = statement.value
    value = fold(lambda body, index: Reduce(ADD, index, body), reversed(summed), start)
    schedule = Schedule((Reorder(tuple(order)),)) if len(order) > 1 else OPEN
    return ScheduledKernel(Assignment(statement.target, value), schedule)
