"""Statements in single assignment, without those that nobody reads.

y[i] = A[i,j] * x[j]; t = x[i] * x[i]; y[i] += b[i]        y is wanted
→   y_1[i] = A[i,j] * x[j]; y[i] = y_1[i] + b[i]           t = … is dropped
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from codegen.names import Names
from codegen.records import dataclass
from taco_py.arguments.operands import OPTIONS, check_given
from taco_py.calls.statements.read_text import names_read
from taco_py.language.diagnostics.errors import OperandError
from taco_py.language.notation.checks import accesses, operand_names, rename, unique
from taco_py.language.notation.functions.function_table import nonzero
from taco_py.language.notation.nodes import Access, Assignment, Call


@dataclass(frozen=True, slots=True)
class Statement:
    """An assignment whose target no other statement makes.

    accumulator  the tensor that `+=` added to, or ""
    """

    assignment: Assignment
    accumulator: str = ""

    @property
    def target(self) -> str:
        """Return the tensor that it makes."""
        return self.assignment.target.tensor


@dataclass(frozen=True, slots=True)
class Statements:
    """Statements in order, each of which is a result or read by a later one.

    outputs  the tensor that each wanted name of the text stands for
    names    the name in the text of each tensor that is made
    dropped  what nobody reads, as it was written
    """

    steps: tuple[Statement, ...]
    outputs: Mapping[str, str]
    names: Mapping[str, str]
    dropped: tuple[Assignment, ...]

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        """Return the assignments alone."""
        return tuple(step.assignment for step in self.steps)


def in_single_assignment(
    assignments: Sequence[Assignment], outputs: Sequence[str], operands: Collection[str]
) -> Statements:
    """Give each statement that is needed a target of its own; the last of a name keeps the name.

    assignments   statements that were checked, with their sums
    outputs   names of the text
    operands  the names that are passed; `+=` adds to such a one where the text assigns it first
    """
    live, dropped = partition_live(assignments, outputs)
    names = Names({*operands, *_all_names(live)})
    current = {name: name for name in operands}
    last = {assignment.target.tensor: place for place, assignment in enumerate(live)}
    origin: dict[str, str] = {}
    steps: list[Statement] = []
    for place, assignment in enumerate(live):
        name = assignment.target.tensor
        value = rename(assignment, current).value
        accumulator = "" if assignment.operator is None else current.get(name, "")
        target = name
        if last[name] != place:
            target = names.fresh(f"{name}_1")
        elif name in operands:
            target = names.fresh(f"{name}_new")
        if assignment.operator is not None and accumulator:
            begin = Access(accumulator, assignment.target.indices, assignment.target.span)
            truths = assignment.operator.reduces_truths
            value = Call(assignment.operator, (nonzero(begin) if truths else begin, value))
        access = Access(target, assignment.target.indices, assignment.target.span)
        steps.append(Statement(Assignment(access, value, None, assignment.span), accumulator))
        current[name], origin[target] = target, name
    results = {name: current[name] for name in outputs}
    return Statements(tuple(steps), results, origin, tuple(dropped))


def _all_names(statements: Iterable[Assignment]) -> set[str]:
    """Return every tensor that statements read or make."""
    return {n for s in statements for n in (s.target.tensor, *operand_names(s))}


def partition_live(
    assignments: Sequence[Assignment], outputs: Collection[str]
) -> tuple[list[Assignment], list[Assignment]]:
    """Separate the statements that results depend on from the others, both in order."""
    live = set(outputs)
    live_assignments: list[Assignment] = []
    dropped: list[Assignment] = []
    for assignment in reversed(assignments):
        (live_assignments if assignment.target.tensor in live else dropped).append(assignment)
        if live_assignments and live_assignments[-1] is assignment:
            live.update(operand_names(assignment))
    return live_assignments[::-1], dropped[::-1]


def check_passed(
    assignments: Sequence[Assignment],
    statements: Statements,
    names: Iterable[str],
    options: Collection[str] = OPTIONS,
) -> None:
    """Raise OperandError where an operand is missing, or passed and not one of the text.

    assignments  all statements; operands that only dropped ones read need not be passed
    """
    passed = tuple(map(str, names))
    assigned = {a.target.tensor for a in assignments if a.operator is None}
    for name in passed:
        if name in assigned:
            raise OperandError(
                f"Expected operands that the text does not assign, found {name}",
                next(e.target.span for e in assignments if e.target.tensor == name),
                f"leave {name}= out, or write += to add to what is passed",
            )
    computed: set[str] = set()
    read: list[Access] = []
    for step in statements.steps:
        read += (a for a in accesses(step.assignment) if a.tensor not in computed)
        computed.add(step.target)
    added_to = (a.target.tensor for a in assignments if a.operator is not None)
    required = unique((*names_read(assignments), *(n for n in added_to if n not in assigned)))
    check_given(read, required, passed, options)
