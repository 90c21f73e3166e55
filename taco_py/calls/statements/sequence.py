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

    added  the tensor that `+=` added to, or ""
    """

    assignment: Assignment
    added: str = ""

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
    written: Sequence[Assignment], outputs: Sequence[str], operands: Collection[str]
) -> Statements:
    """Give each statement that is needed a target of its own; the last of a name keeps the name.

    written   statements that were checked, with their sums
    outputs   names of the text
    operands  the names that are passed; `+=` adds to such a one where the text assigns it first
    """
    kept, dropped = needed(written, outputs)
    names = Names({*operands, *_all_names(kept)})
    now = {name: name for name in operands}
    last = {each.target.tensor: place for place, each in enumerate(kept)}
    origin: dict[str, str] = {}
    steps: list[Statement] = []
    for place, each in enumerate(kept):
        name = each.target.tensor
        value = rename(each, now).value
        added = "" if each.operator is None else now.get(name, "")
        target = name
        if last[name] != place:
            target = names.fresh(f"{name}_1")
        elif name in operands:
            target = names.fresh(f"{name}_new")
        if each.operator is not None and added:
            begin = Access(added, each.target.indices, each.target.span)
            truths = each.operator.reduces_truths
            value = Call(each.operator, (nonzero(begin) if truths else begin, value))
        access = Access(target, each.target.indices, each.target.span)
        steps.append(Statement(Assignment(access, value, None, each.span), added))
        now[name], origin[target] = target, name
    return Statements(tuple(steps), {name: now[name] for name in outputs}, origin, tuple(dropped))


def _all_names(statements: Iterable[Assignment]) -> set[str]:
    """Return every tensor that statements read or make."""
    return {n for each in statements for n in (each.target.tensor, *operand_names(each))}


def needed(
    written: Sequence[Assignment], outputs: Collection[str]
) -> tuple[list[Assignment], list[Assignment]]:
    """Separate the statements that results depend on from the others, both in order."""
    live = set(outputs)
    kept: list[Assignment] = []
    dropped: list[Assignment] = []
    for each in reversed(written):
        (kept if each.target.tensor in live else dropped).append(each)
        if kept and kept[-1] is each:
            live.update(operand_names(each))
    return kept[::-1], dropped[::-1]


def check_passed(
    written: Sequence[Assignment],
    statements: Statements,
    names: Iterable[str],
    options: Collection[str] = OPTIONS,
) -> None:
    """Raise OperandError where an operand is missing, or passed and not one of the text.

    written  all statements; operands that only dropped ones read need not be passed
    """
    given = tuple(map(str, names))
    assigned = {each.target.tensor for each in written if each.operator is None}
    for name in given:
        if name in assigned:
            raise OperandError(
                f"Expected operands that the text does not assign, found {name}",
                next(e.target.span for e in written if e.target.tensor == name),
                f"leave {name}= out, or write += to add to what is passed",
            )
    made: set[str] = set()
    read: list[Access] = []
    for step in statements.steps:
        read += (a for a in accesses(step.assignment) if a.tensor not in made)
        made.add(step.target)
    added = (each.target.tensor for each in written if each.operator is not None)
    wanted = unique((*names_read(written), *(name for name in added if name not in assigned)))
    check_given(read, wanted, given, options)
