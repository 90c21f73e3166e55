"""Texts as calls: of operands as they are, or of operands that their subscripts ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taco_py.call.compute import compute
from taco_py.call.given_path import along
from taco_py.call.prepare import Understood, parsed, understood
from taco_py.diagnostics.errors import DimensionError
from taco_py.kernels import KERNELS
from taco_py.notation.checks import has_subscripts, operand_names
from taco_py.replay.find import find
from taco_py.storage.tensor_data import Array
from taco_py.values.operands import taken
from taco_py.values.settings import Settings

Ends = tuple[Any, Any, Any]
"""The arguments border, shape and path of a call."""


def compute_text(
    text: str,
    objects: Mapping[str, Any],
    settings: Settings,
    ends: Ends,
    out: Array | None,
    key: tuple[object, ...] | None,
) -> Any:
    """Compute what a text says.

    key   under which to remember the short way for calls like this one
    """
    read = understood(text)
    if _is_indexed(read, ends):
        return _compute_indexed(read, objects, settings, ends, out, key)
    told = along(settings, read.assignment, ends[2])
    try:
        return compute(read.assignment, objects, told, out, key=key, cautions=read.cautions)
    except DimensionError:
        if not _stretches(read, objects):
            raise
    return _compute_indexed(read, objects, settings, ends, out, key)


def explain_text(
    text: str,
    objects: Mapping[str, Any],
    settings: Settings,
    ends: Ends,
    seconds: float | None,
) -> str:
    """Say what is planned for a text, where that stands, and which operands are made first."""
    from taco_py.call.explain_call import explained

    read, path = understood(text), ends[2]
    if not (_is_indexed(read, ends) or _stretches(read, objects)):
        assignment = parsed(text)
        return explained(assignment, objects, along(settings, assignment, path), seconds)
    from taco_py.indexed.indexed_call import IndexedCall, settled, stated_of
    from taco_py.indexed.make_operands import told_operands

    border, shape, _ = ends
    indexed = IndexedCall(read.assignment, stated_of(border, shape), (), {})
    layout, _, made = indexed.made(objects, None)
    assignment = layout.plain.assignment
    settings = along(settled(read.assignment, layout, made, settings), assignment, path)
    told = explained(assignment, made.objects, settings, seconds)
    operands = enumerate(told_operands(layout, made))
    notes = (f"{'' if at else 'reads':10}{note}" for at, note in operands)
    return "\n".join((*notes, told))


def _is_indexed(read: Understood, ends: Ends) -> bool:
    """Whether operands have to be made before an assignment is computed."""
    return ends[:2] != ("error", None) or has_subscripts(read.assignment)


def _stretches(read: Understood, objects: Mapping[str, Any]) -> bool:
    """Whether a mode of size 1 stands beside an index of another size."""
    from taco_py.indexed.stretched import stretched

    used = (*operand_names(read.assignment), read.assignment.target.tensor)
    shapes = {name: taken(objects[name], name).shape for name in used if name in objects}
    if not {*operand_names(read.assignment)} <= shapes.keys():
        return False
    return stretched(read.assignment, shapes) is not read.assignment


def _compute_indexed(
    read: Understood,
    objects: Mapping[str, Any],
    settings: Settings,
    ends: Ends,
    out: Array | None,
    key: tuple[object, ...] | None,
) -> Any:
    """Compute an assignment with subscripts; key as `compute_text` has it."""
    from taco_py.indexed.indexed_call import IndexedCall, settled, stated_of

    border, shape, path = ends
    identity = () if key is None else (key[0],)
    indexed = IndexedCall(read.assignment, stated_of(border, shape), identity, {})
    layout, text, made = indexed.made(objects, out)
    assignment = layout.plain.assignment
    settings = along(settled(read.assignment, layout, made, settings), assignment, path)
    inner = None if key is None else indexed.key(text, made)
    short, given = find(inner), made.objects.values()
    found = None if short is None else short(*given) if out is None else short(*given, out)
    if found is None:
        found = compute(assignment, made.objects, settings, out, key=inner, cautions=read.cautions)
    if key is not None:
        KERNELS.memo.put(key, indexed.short_way(tuple(objects)))
    return found
