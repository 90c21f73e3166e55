"""What is inside a concrete statement: its assignments and its workspaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from taco_py.concrete.nodes import Assign, Forall, Sequence, Statement, Where, Workspace
from taco_py.notation.checks import accesses
from taco_py.notation.nodes import Access


def assignments(statement: Statement) -> Iterator[Assign]:
    """Every assignment, in order of execution."""
    match statement:
        case Assign():
            yield statement
        case Forall(_, body):
            yield from assignments(body)
        case Where(_, consumer, producer):
            yield from assignments(producer)
            yield from assignments(consumer)
        case Sequence(statements):
            for part in statements:
                yield from assignments(part)
        case _:
            assert_never(statement)


def foralls(statement: Statement) -> Iterator[Forall]:
    """Every loop, outer ones before those inside them."""
    match statement:
        case Assign():
            pass
        case Forall(_, body):
            yield statement
            yield from foralls(body)
        case Where(_, consumer, producer):
            yield from foralls(producer)
            yield from foralls(consumer)
        case Sequence(statements):
            for part in statements:
                yield from foralls(part)
        case _:
            assert_never(statement)


def workspaces_of(statement: Statement) -> Iterator[Workspace]:
    """Every workspace, outermost first."""
    match statement:
        case Assign():
            pass
        case Forall(_, body):
            yield from workspaces_of(body)
        case Where(workspace, consumer, producer):
            yield workspace
            yield from workspaces_of(consumer)
            yield from workspaces_of(producer)
        case Sequence(statements):
            for part in statements:
                yield from workspaces_of(part)
        case _:
            assert_never(statement)


def read_in(statement: Statement) -> tuple[Access, ...]:
    """The accesses that `statement` reads, each once."""
    found = (access for assign in assignments(statement) for access in accesses(assign.value))
    return tuple(dict.fromkeys(found))
