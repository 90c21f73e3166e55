"""Statements computed in turns: a scatter by itself, all between two of them as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.devices.placed import placed
from taco_py.calls.call.texts.by_text import compute_read, explain_read
from taco_py.calls.statements.read_text import CheckedStatement
from taco_py.data.tensors.keys import call_key
from taco_py.data.tensors.traced_operands import taken_over, taker_of
from taco_py.language.autodiff.needed_statements import names_of
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Assignment

NO_SHAPES: Mapping[str, Any] = MappingProxyType({})

Turn = tuple[tuple[Assignment, ...], tuple[str, ...]]
"""Statements of one call, and the names that it computes for the user or later turns."""


def turns_of(statements: Sequence[Assignment], outputs: Sequence[str]) -> tuple[Turn, ...]:
    """Split statements into turns, with each scatter in a turn of its own.

    A statement that reads another's target at more than indices starts a turn too.
    """
    parts: list[tuple[Assignment, ...]] = []
    for statement in statements:
        before = parts[-1] if parts else ()
        alone = not before or bool(statement.target.subscripts or before[0].target.subscripts)
        if alone or {one.target.tensor for one in before} & {*_read_at_subscripts(statement)}:
            parts.append((statement,))
        else:
            parts[-1] = (*before, statement)
    turns: list[Turn] = []
    required = {*outputs}
    for part in reversed(parts):
        targets = dict.fromkeys(statement.target.tensor for statement in part)
        turns.append((part, tuple(name for name in targets if name in required)))
        required |= {name for statement in part for name in names_of(statement)}
    return tuple(reversed(turns))


def _read_at_subscripts(statement: Assignment) -> Iterator[str]:
    """Yield the tensors that a statement reads at more than indices, or whose elements are
    positions."""
    for access in accesses(statement):
        if access.subscripts:
            yield access.tensor
            yield from (inner.tensor for mode in access.subscripts for inner, _ in mode.gathered)


def run_statements(
    turns: Sequence[Turn],
    objects: Mapping[str, Any],
    threads: int | None,
    identity: tuple[object, ...],
    shapes: Mapping[str, Any] = NO_SHAPES,
    border: str = "error",
) -> dict[str, Any]:
    """Compute statements; the operands and what was computed, by name.

    threads   to use at most
    identity  what tells the statements from others
    shapes    of what is scattered to, by name, where the call says it
    border    what a subscript outside of its operand is
    """
    values = dict(objects)
    if (taker := taker_of(objects.values())) is not None:
        said = {} if border == "error" else {"border": border}
        statements = [statement for part, _ in turns for statement in part]
        return {**values, **taken_over(taker, "tp.statements", (statements, objects), said)}
    values, where = placed(values, None)
    plain = CallOptions.of({"threads": threads, "border": border, "target": where})
    for number, (part, names) in enumerate(turns):
        operands = {name: values[name] for name in _operands(part) if name in values}
        key = call_key((*identity, number, *operands), operands.values())
        read = [CheckedStatement(statement, ()) for statement in part]
        options = _options_of_turn(plain, part, names, shapes)
        results = compute_read(read, CallArguments(operands, options, key=key))
        values |= zip(names, results if options.outputs else (results,), strict=True)
    return values


def _options_of_turn(
    options: CallOptions,
    part: Sequence[Assignment],
    names: tuple[str, ...],
    shapes: Mapping[str, Any],
) -> CallOptions:
    """Request the shape of a target that is scattered to or shaped, otherwise results by name."""
    target = part[0].target
    if target.subscripts or _is_shaped(part, shapes):
        return replace(options, shape=shapes.get(target.tensor))
    return replace(options, outputs=names)


def _is_shaped(part: Sequence[Assignment], shapes: Mapping[str, Any]) -> bool:
    """Tell whether a turn is one statement of whose result the call says the shape."""
    return len(part) == 1 and part[0].target.tensor in shapes


def explain_statements(
    turns: Sequence[Turn],
    objects: Mapping[str, Any],
    threads: int | None,
    shapes: Mapping[str, Any] = NO_SHAPES,
    border: str = "error",
) -> str:
    """Explain the computation of each turn, and compute results that later turns read."""
    reports = []
    values, where = placed(objects, None)
    plain = CallOptions.of({"threads": threads, "border": border, "target": where})
    for part, names in turns:
        operands = {name: values[name] for name in _operands(part) if name in values}
        read = [CheckedStatement(statement, ()) for statement in part]
        options = _options_of_turn(plain, part, names, shapes)
        reports.append(explain_read(read, CallArguments(operands, options), None))
        if len(turns) > 1:
            key = ("explained",)
            values = run_statements([(part, names)], values, threads, key, shapes, border)
    return "\n\n".join(reports)


def _operands(part: Sequence[Assignment]) -> Iterator[str]:
    """Yield the names that statements read, each once."""
    yield from dict.fromkeys(name for statement in part for name in names_of(statement))
