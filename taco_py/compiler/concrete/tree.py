"""Traversals of a concrete statement: its assignments, loops and workspaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from taco_py.compiler.concrete.nodes import Assign, Forall, Sequence, Statement, Where, Workspace
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access


def walk(statement: Statement) -> Iterator[Statement]:
    """Yield the statement and all statements inside it, in order of execution, outer before
    inner."""
    yield statement
    match statement:
        case Assign():
            pass
        case Forall(_, body):
            yield from walk(body)
        case Where(_, consumer, producer):
            yield from walk(producer)
            yield from walk(consumer)
        case Sequence(statements):
            for part in statements:
                yield from walk(part)
        case _:
            assert_never(statement)


def assignments(statement: Statement) -> Iterator[Assign]:
    """Return every assignment, in order of execution."""
    return (part for part in walk(statement) if isinstance(part, Assign))


def foralls(statement: Statement) -> Iterator[Forall]:
    """Return every loop, outer loops before inner ones."""
    return (part for part in walk(statement) if isinstance(part, Forall))


def workspaces_of(statement: Statement) -> Iterator[Workspace]:
    """Return every workspace, outermost first."""
    return (part.workspace for part in walk(statement) if isinstance(part, Where))


def read_in(statement: Statement) -> tuple[Access, ...]:
    """Return the accesses that `statement` reads, without duplicates."""
    reads = (access for assign in assignments(statement) for access in accesses(assign.value))
    return tuple(dict.fromkeys(reads))
