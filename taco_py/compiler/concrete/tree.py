"""What is inside a concrete statement: its assignments and its workspaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from taco_py.compiler.concrete.nodes import Assign, Forall, Sequence, Statement, Where, Workspace
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access


def walk(statement: Statement) -> Iterator[Statement]:
    """Yield the statement and all inside it, in order of execution, outer ones before inner
    ones."""
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
    """Yield every assignment, in order of execution."""
    return (each for each in walk(statement) if isinstance(each, Assign))


def foralls(statement: Statement) -> Iterator[Forall]:
    """Yield every loop, outer ones before those inside them."""
    return (each for each in walk(statement) if isinstance(each, Forall))


def workspaces_of(statement: Statement) -> Iterator[Workspace]:
    """Yield every workspace, outermost first."""
    return (each.workspace for each in walk(statement) if isinstance(each, Where))


def read_in(statement: Statement) -> tuple[Access, ...]:
    """Return the accesses that `statement` reads, each once."""
    found = (access for assign in assignments(statement) for access in accesses(assign.value))
    return tuple(dict.fromkeys(found))
