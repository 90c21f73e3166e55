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
from taco_py.calls.statements.read_text import Understood
from taco_py.data.tensors.keys import call_key
from taco_py.data.tensors.traced_operands import taken_over, taker_of
from taco_py.language.autodiff.needed_statements import names_of
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Assignment

NO_SHAPES: Mapping[str, Any] = MappingProxyType({})

Turn = tuple[tuple[Assignment, ...], tuple[str, ...]]
"""Statements of one call, and the names that it computes for the user or later turns."""


def turns_of(statements: Sequence[Assignment], outputs: Sequence[str]) -> tuple[Turn, ...]:
    """Part statements where one scatters, which is computed by itself, and where one reads what
    another makes at more than indices: that is an operand then."""
    parts: list[tuple[Assignment, ...]] = []
    for each in statements:
        before = parts[-1] if parts else ()
        alone = not before or bool(each.target.subscripts or before[0].target.subscripts)
        if alone or {one.target.tensor for one in before} & {*_read_at_subscripts(each)}:
            parts.append((each,))
        else:
            parts[-1] = (*before, each)
    found: list[Turn] = []
    wanted = {*outputs}
    for part in reversed(parts):
        made = dict.fromkeys(each.target.tensor for each in part)
        found.append((part, tuple(name for name in made if name in wanted)))
        wanted |= {name for each in part for name in names_of(each)}
    return tuple(reversed(found))


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
    found = dict(objects)
    if (taker := taker_of(objects.values())) is not None:
        said = {} if border == "error" else {"border": border}
        statements = [each for part, _ in turns for each in part]
        return {**found, **taken_over(taker, "tp.statements", (statements, objects), said)}
    found, where = placed(found, None)
    plain = CallOptions.of({"threads": threads, "border": border, "target": where})
    for number, (part, names) in enumerate(turns):
        own = {name: found[name] for name in _operands(part) if name in found}
        key = call_key((*identity, number, *own), own.values())
        read = [Understood(each, ()) for each in part]
        options = _options_of_turn(plain, part, names, shapes)
        made = compute_read(read, CallArguments(own, options, key=key))
        found |= zip(names, made if options.outputs else (made,), strict=True)
    return found


def _options_of_turn(
    options: CallOptions,
    part: Sequence[Assignment],
    names: tuple[str, ...],
    shapes: Mapping[str, Any],
) -> CallOptions:
    """Ask for the shape of what one statement scatters to or assigns, else for results by name."""
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
    """Say what computes each turn; what later ones read is computed for that."""
    told = []
    found, where = placed(objects, None)
    plain = CallOptions.of({"threads": threads, "border": border, "target": where})
    for part, names in turns:
        own = {name: found[name] for name in _operands(part) if name in found}
        read = [Understood(each, ()) for each in part]
        options = _options_of_turn(plain, part, names, shapes)
        told.append(explain_read(read, CallArguments(own, options), None))
        if len(turns) > 1:
            key = ("explained",)
            found = run_statements([(part, names)], found, threads, key, shapes, border)
    return "\n\n".join(told)


def _operands(part: Sequence[Assignment]) -> Iterator[str]:
    """Yield the names that statements read, each once."""
    yield from dict.fromkeys(name for each in part for name in names_of(each))
