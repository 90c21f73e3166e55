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
    checked = read_statement(text)
    refuse_subscripts(checked.assignment)
    issue_warnings(checked.cautions)
    return checked.assignment


@dataclass(frozen=True, slots=True, eq=False)
class CheckedStatement:
    """The assignment of a text, checked, with its sums explicit, and what to warn of."""

    assignment: Assignment
    cautions: tuple[UserWarning, ...]


class _EveryName:
    def __contains__(self, name: object) -> bool:
        return True


EVERY_NAME = _EveryName()
"""For texts over operands that are not known, where no index is a number."""


def read_statement(text: str) -> CheckedStatement:
    """Read a text of one statement, in which no index is a number.

    Raises NotationError or OperandError.
    """
    statement, *rest = statements_of(text, EVERY_NAME)
    if rest:
        raise NotationError(
            "Expected one assignment, found another one after it",
            rest[0].assignment.span,
            "tp.evaluate, tp.explain, tp.compile and tp.evaluate_dense take several",
        )
    return statement


def statements_of(text: str, names: Container[str] = ()) -> tuple[CheckedStatement, ...]:
    """Read a text of one statement or several. Raises NotationError or OperandError.

    names  the names of operands, which are meant also where an index is called so
    """
    if not isinstance(text, str):
        return (CheckedStatement(parse_assignment(text), ()),)
    statements = _statements_of(text)
    numbers = named_like_numbers(statement.assignment for statement in statements)
    operands = frozenset(name for name in numbers if name in names)
    return _statements_of(text, operands) if operands else statements


def forget_texts() -> None:
    """Read texts anew, which may name functions that have changed."""
    _statements_of.cache_clear()


@lru_cache(maxsize=1024)
def _statements_of(text: str, names: frozenset[str] = frozenset()) -> tuple[CheckedStatement, ...]:
    assignments = parse_statements(text, names)
    if len(assignments) > 1:
        check_sequence(assignments)
    for assignment in assignments:
        check_assignment(assignment)
    return tuple(CheckedStatement(insert_reductions(a), traps(a)) for a in assignments)


def by_name(
    text: str,
    first: Any,
    rest: Sequence[Any],
    keywords: Mapping[str, Any],
    what: str = "operands",
) -> dict[str, Any]:
    """Merge the operands of a mapping with those passed by keyword.

    first, rest  operands that were passed by position

    Raises OperandTypeError for anything else by position, OperandError for a name in both.
    """
    if not rest and (first is None or isinstance(first, Mapping)):
        return merged(first, keywords, what)
    names = names_read(statement.assignment for statement in statements_of(text))
    types = ", ".join(type(operand).__name__ for operand in (first, *rest))
    raise OperandTypeError(
        f"Expected the {what} by name or as a mapping, found {types} by position",
        hint=f"write {', '.join(f'{name}=…' for name in names)}: these are the names in the text",
    )


def names_read(statements: Iterable[Assignment]) -> tuple[str, ...]:
    """Return the operands of statements in order: what they read and none before has assigned."""
    assigned: set[str] = set()
    names: dict[str, None] = {}
    for assignment in statements:
        names.update(dict.fromkeys(n for n in operand_names(assignment) if n not in assigned))
        assigned.add(assignment.target.tensor)
    return tuple(names)


def accumulated(assignment: Assignment, objects: Mapping[str, Any]) -> Assignment:
    """Return `y += value` as `y' = y + value`, or as `y = value` where there is no `y`."""
    if assignment.operator is None:
        return assignment
    target = assignment.target
    if target.tensor not in objects:
        return replace(assignment, operator=None)
    used_names = (*objects, *operand_names(assignment), target.tensor)
    name = Names(used_names).fresh(f"{target.tensor}_new")
    begin = nonzero(target) if assignment.operator.reduces_truths else target
    value = Call(assignment.operator, (begin, assignment.value))
    return Assignment(Access(name, target.indices, target.span), value, None, assignment.span)


def target_of(assignment: Assignment, objects: Mapping[str, Any]) -> str:
    """Return the operand that a value is added to by `+=`, or "" where there is none."""
    name = assignment.target.tensor
    return name if assignment.operator is not None and name in objects else ""
