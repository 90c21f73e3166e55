"""Concrete index notation as text, one loop or assignment a line."""

from __future__ import annotations

from typing import assert_never

from taco_py.compiler.concrete.nodes import (
    Assign,
    Forall,
    Merge,
    Mode,
    Race,
    Sequence,
    Statement,
    Unit,
    Where,
)
from taco_py.language.notation.printer import to_text as expression_text

INDENT = "  "


def to_text(statement: Statement) -> str:
    """Print `statement` as indented text; a `where` prints its consumer first, as in the
    literature."""
    return "\n".join(_lines(statement))


def _lines(statement: Statement) -> list[str]:
    match statement:
        case Assign(target, value, operator):
            sign = "=" if operator is None else f"{operator.symbol}="
            return [f"{expression_text(target)} {sign} {expression_text(value)}"]
        case Forall(index, body, mode):
            return [f"forall {index}{_mode(mode)}", *_indented(body)]
        case Where(workspace, consumer, producer):
            name = f"{workspace.name}[{','.join(workspace.indices)}]"
            head = f"where {name}: {workspace.kind.value} workspace of {workspace.dtype}"
            if workspace.stored is not None:
                head += f", stored in {expression_text(workspace.stored)}"
            return [*_lines(consumer), head, *_indented(producer)]
        case Sequence(statements):
            return [line for s in statements for line in _lines(s)]
        case _:
            assert_never(statement)


def _mode(mode: Mode) -> str:
    race = "" if mode.parallel in (None, Race.NONE) else f" ({mode.parallel.value})"
    word = " parallel" if mode.unit is Unit.CORE else f" {mode.unit.value}"
    parallel = "" if mode.parallel is None else f"{word}{race}"
    unroll = f" unroll {mode.unroll}" if mode.unroll else ""
    merge = " gallop" if mode.merge is Merge.GALLOP else ""
    return parallel + unroll + (" vector" if mode.vector else "") + merge


def _indented(statement: Statement) -> list[str]:
    return [INDENT + line for line in _lines(statement)]
