"""Copies of operands: assignments that read them, and the steps that make them.

    Y[r,i] = sum(j, X[i,j] * H[r,j])    with H in the order j,r
    → H_jr is H stored as j,r;  Y[r,i] = sum(j, X[i,j] * H_jr[r,j])

Which operands are copied, and whether that pays, is for the rules to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.order.orders import best_order
from taco_py.language.formats import Format, dense
from taco_py.language.notation.nodes import Access, Assignment, Expr
from taco_py.language.notation.tree import map_accesses
from taco_py.planner.context import StatisticsOf
from taco_py.planner.ir.goal import Request, draft_of
from taco_py.planner.ir.nodes import Cast, Locate, Operand, Reformat
from taco_py.planner.ir.program import Program

Copy = Cast | Locate | Reformat
"""A step that stores an operand in another way."""


@dataclass(frozen=True, slots=True)
class OnCopies:
    """An assignment that reads copies of operands.

    facts    of all tensors, the copies among them
    request  for its result, which may be stored in another way too
    steps    that make the copies; none where it reads the operands as they are
    """

    assignment: Assignment
    facts: Mapping[str, Operand]
    request: Request
    steps: tuple[Copy, ...] = ()

    def loops_cost(self, statistics_of: StatisticsOf) -> float:
        """Return the price of the best loops of all terms, with the copies that loops need."""
        stats = statistics_of(self.assignment, self.facts, self.request.machine)
        draft = draft_of(self.assignment, self.facts, self.request)
        terms = split_terms(self.assignment.value)
        return sum(best_order(draft, term, stats, self.request.effort).cost for term in terms)

    def in_orders(self, forms: Mapping[Access, Format], names: Names, reason: str) -> OnCopies:
        """Return the assignment on copies of dense operands in other orders of their modes.

        forms  what each access that reads a copy finds
        """
        facts, steps = dict(self.facts), dict[Access, Cast]()
        for access, form in forms.items():
            source = facts[access.tensor]
            target = names.fresh(f"{access.tensor}_{''.join(form.stored(access.indices))}")
            type = replace(source.type, format=form, unit_stride=True, stored="")
            facts[target] = replace(source, type=type, contiguous=(True,) * (form.order - 1))
            steps[access] = Cast(target, access.tensor, form, source.type.dtype, reason)
        copies = {access: step.target for access, step in steps.items()}
        assignment = replace(self.assignment, value=read_copies(self.assignment.value, copies))
        return OnCopies(assignment, facts, self.request, (*self.steps, *steps.values()))

    def put(self, program: Program, target: str, reason: str) -> Program:
        """Return the program with the copies before its assignment to `target`, which reads them.

        reason  the reason of each copy
        """
        result = replace(program.facts[target], type=self.request.type)
        steps = tuple(replace(step, reason=reason) for step in self.steps)
        copied = program.before(target, steps, {**self.facts, target: result})
        copied = replace(copied, static=self.request.static)
        return copied.with_assignment(self.assignment)


def read_copies(expr: Expr, copies: Mapping[Access, str]) -> Expr:
    """Return an expression that reads copies: the tensor that `copies` names for an access."""

    def read(access: Access) -> Access:
        return replace(access, tensor=copies[access]) if access in copies else access

    return map_accesses(expr, read)


def dense_in_order(access: Access, order: Sequence[str]) -> Format:
    """Return the dense format that stores the indices of an access as they stand in `order`."""
    modes = range(len(access.indices))
    stored = sorted(modes, key=lambda mode: order.index(access.indices[mode]))
    return replace(dense(len(modes)), mode_order=tuple(stored))
