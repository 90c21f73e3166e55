"""Texts read: their statements checked, with their sums explicit, and operands by name."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from codegen.names import Names
from codegen.records import dataclass
from taco_py.arguments.option_checks import merged
from taco_py.language.diagnostics.cautions import issue_warnings
from taco_py.language.diagnostics.errors import NotationError, OperandTypeError
from taco_py.language.notation.checks import check_assignment, operand_names, refuse_subscripts
from taco_py.language.notation.functions.function_table import nonzero
from taco_py.language.notation.nodes import Access, Assignment, Call
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.rewrites.index_numbers import named_like_numbers
from taco_py.language.notation.rewrites.reduce import insert_reductions
from taco_py.language.notation.statements import check_sequence, parse_statements
from taco_py.language.notation.traps import traps


def parsed(text: str) -> Assignment:
    """Return the assignment of a text, checked, with its sums explicit; its cautions are given.

    Raises NotationError or OperandError, also where subscripts are more than indices.
    """
    found = understood(text)
    refuse_subscripts(found.assignment)
    issue_warnings(found.cautions)
    return found.assignment


@dataclass(frozen=True, slots=True, eq=False)
class Understood:
    """The assignment of a text, checked, with its sums explicit, and what to warn of."""

    assignment: Assignment
    cautions: tuple[UserWarning, ...]


class _EveryName:
    def __contains__(self, name: object) -> bool:
        return True


EVERY_NAME = _EveryName()
"""For texts over operands that are not known, where no index is a number."""


def understood(text: str) -> Understood:
    """Read a text of one statement, in which no index is a number.

    Raises NotationError or OperandError.
    """
    found, *others = statements_of(text, EVERY_NAME)
    if others:
        raise NotationError(
            "Expected one assignment, found another one after it",
            others[0].assignment.span,
            "tp.evaluate, tp.explain, tp.compile and tp.evaluate_dense take several",
        )
    return found


def statements_of(text: str, given: Container[str] = ()) -> tuple[Understood, ...]:
    """Read a text of one statement or several. Raises NotationError or OperandError.

    given  the names of operands, which are meant also where an index is called so
    """
    if not isinstance(text, str):
        return (Understood(parse_assignment(text), ()),)
    found = _statements_of(text)
    numbers = named_like_numbers(each.assignment for each in found)
    operands = frozenset(name for name in numbers if name in given)
    return _statements_of(text, operands) if operands else found


def forget_texts() -> None:
    """Read texts anew, which may name functions that have changed."""
    _statements_of.cache_clear()


@lru_cache(maxsize=1024)
def _statements_of(text: str, operands: frozenset[str] = frozenset()) -> tuple[Understood, ...]:
    written = parse_statements(text, operands)
    if len(written) > 1:
        check_sequence(written)
    for each in written:
        check_assignment(each)
    return tuple(Understood(insert_reductions(each), traps(each)) for each in written)


def by_name(
    text: str,
    given: Any,
    others: Sequence[Any],
    named: Mapping[str, Any],
    what: str = "operands",
) -> dict[str, Any]:
    """What was passed in a mapping and by keyword.

    given, others  what was passed by position

    Raises OperandTypeError for anything else by position, OperandError for a name in both.
    """
    if not others and (given is None or isinstance(given, Mapping)):
        return merged(given, named, what)
    names = names_read(each.assignment for each in statements_of(text))
    found = ", ".join(type(each).__name__ for each in (given, *others))
    raise OperandTypeError(
        f"Expected the {what} by name or as a mapping, found {found} by position",
        hint=f"write {', '.join(f'{name}=…' for name in names)}: these are the names in the text",
    )


def names_read(statements: Iterable[Assignment]) -> tuple[str, ...]:
    """Return the operands of statements in order: what they read and none before has assigned."""
    assigned: set[str] = set()
    found: dict[str, None] = {}
    for each in statements:
        found.update(dict.fromkeys(n for n in operand_names(each) if n not in assigned))
        assigned.add(each.target.tensor)
    return tuple(found)


def accumulated(assignment: Assignment, objects: Mapping[str, Any]) -> Assignment:
    """Return `y += value` as `y' = y + value` when there is a `y` to begin from, else as `y =
    value`."""
    if assignment.operator is None:
        return assignment
    target = assignment.target
    if target.tensor not in objects:
        return replace(assignment, operator=None)
    taken = (*objects, *operand_names(assignment), target.tensor)
    name = Names(taken).fresh(f"{target.tensor}_new")
    begin = nonzero(target) if assignment.operator.reduces_truths else target
    value = Call(assignment.operator, (begin, assignment.value))
    return Assignment(Access(name, target.indices, target.span), value, None, assignment.span)


def target_of(assignment: Assignment, objects: Mapping[str, Any]) -> str:
    """Return the operand that a value is added to by `+=`, or "" where there is none."""
    name = assignment.target.tensor
    return name if assignment.operator is not None and name in objects else ""
