"""Texts as calls: of operands as they are, or of operands that their subscripts ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codegen.records import dataclass
from taco_py.arguments.device_tensor import place_of
from taco_py.arguments.operands import taken
from taco_py.arguments.settings import Settings, settings_of
from taco_py.calls.call.compute import compute
from taco_py.calls.call.devices.placed import placed
from taco_py.calls.call.given_path import along
from taco_py.calls.call.prepare import Understood, statements_of
from taco_py.calls.call.texts.in_blocks import (
    concerns,
    explained_over_blocks,
    over_blocks,
    plain_way,
    told_plain,
)
from taco_py.data.kernels import KERNELS
from taco_py.data.tensors.keys import call_key
from taco_py.data.tensors.traced_operands import options_said, taken_over, taker_of
from taco_py.language.diagnostics.cautions import issue_warnings
from taco_py.language.diagnostics.errors import DimensionError
from taco_py.language.notation.checks import has_subscripts, operand_names
from taco_py.language.notation.printer import to_text
from taco_py.running.replay.find import find

if TYPE_CHECKING:
    from taco_py.calls.call.over_semirings import Over
    from taco_py.calls.call.several.wishes import Asked
    from taco_py.calls.indexed.indexed_statements import PlainStatements
    from taco_py.language.notation.nodes import Assignment


@dataclass(frozen=True, slots=True, eq=False)
class Asks:
    """The arguments of a call that are about its text and its results, as the user gave them.

    over  the semiring and the mask, None where there is neither
    """

    border: Any = "error"
    shape: Any = None
    path: Any = None
    outputs: Any = None
    format: Any = None
    out: Any = None
    over: Over | None = None

    @property
    def named(self) -> dict[str, Any]:
        """Return the arguments by the names that calls have for them, None of those left out."""
        return {
            "border": self.border, "shape": self.shape, "path": self.path,
            "outputs": self.outputs, "format": self.format, "out": self.out,
        }  # fmt: skip

    def several(self, read: Sequence[Understood]) -> bool:
        """Tell whether a text is computed as several statements are."""
        by_name = isinstance(self.format, Mapping) or isinstance(self.out, Mapping)
        return len(read) > 1 or self.outputs is not None or by_name

    def indexed(self, read: Sequence[Understood]) -> bool:
        """Tell whether operands have to be made before statements are computed."""
        ends = (self.border, self.shape) != ("error", None)
        return ends or any(has_subscripts(each.assignment) for each in read)

    def why_plain(self, read: Sequence[Understood]) -> str:
        """Say why operands are read in plain formats, where the call could be over stored modes."""
        if self.over is not None:
            return self.over.why_plain
        if self.several(read):
            return "several statements read plain formats alone"
        if self.indexed(read):
            return "subscripts, argmin and argmax read plain formats alone"
        return "this call reads plain formats alone"

    def is_plain(self, read: Sequence[Understood]) -> bool:
        """Tell whether it is one assignment over indices alone, and over numbers."""
        return self.over is None and not (self.several(read) or self.indexed(read))


def compute_text(
    text: str,
    objects: Mapping[str, Any],
    options: tuple[Any, ...],
    asks: Asks,
    key: tuple[object, ...] | None,
) -> Any:
    """Compute what a text says.

    options  what `settings_of` takes, but for the format; last the target, None for where operands
             are
    key      under which to remember the short way for calls like this one
    """
    masks = () if asks.over is None else asks.over.arrays
    if key is None and (taker := taker_of((*objects.values(), *masks))) is not None:
        said = options_said((None, *options), asks.named, asks.over)
        return taken_over(taker, "tp.evaluate", (text, objects), said)
    objects, where = placed(objects, options[-1], masks)
    options = (*options[:-1], where)
    read = statements_of(text, objects)
    if not concerns(objects.values(), asks.format):
        return compute_read(read, objects, options, asks, key)
    if asks.is_plain(read):
        settings = settings_of(asks.format, *options)
        found = over_blocks(read[0], objects, settings, asks.path, asks.out, key)
        if found is not None:
            return found.result
    way = plain_way(objects, asks.format, () if asks.over is None else asks.over.arrays, key)
    return way.finished(
        compute_read(read, way.objects, options, replace(asks, format=way.format), way.key)
    )


def compute_read(
    read: Sequence[Understood],
    objects: Mapping[str, Any],
    options: tuple[Any, ...],
    asks: Asks,
    key: tuple[object, ...] | None,
) -> Any:
    """Compute statements over operands in plain formats."""
    if asks.several(read):
        return _compute_several(read, objects, settings_of(None, *options), asks, key)
    (one,) = read
    settings = settings_of(asks.format, *options)
    if asks.indexed(read):
        return _compute_indexed(one, objects, settings, asks, key)
    told = along(settings, one.assignment, asks.path)
    try:
        return _computed(one, one.assignment, objects, told, asks, key)
    except DimensionError:
        if not _stretches(one, objects):
            raise
    return _compute_indexed(one, objects, settings, asks, key)


def _computed(
    read: Understood,
    assignment: Assignment,
    objects: Mapping[str, Any],
    settings: Settings,
    asks: Asks,
    key: tuple[object, ...] | None,
) -> Any:
    """Compute an assignment over indices alone, over numbers or over what the call says."""
    if asks.over is None:
        return compute(assignment, objects, settings, asks.out, key=key, cautions=read.cautions)
    from taco_py.calls.call.over_semirings import computed

    how = asks.over, assignment, objects, settings, asks.out
    return computed(*how, key=key, cautions=read.cautions)


def explain_text(
    text: str,
    objects: Mapping[str, Any],
    settings: Settings,
    asks: Asks,
    seconds: float | None,
) -> str:
    """Say what is planned for a text, where that stands, and which operands are made first."""
    read = statements_of(text, objects)
    why = asks.why_plain(read)
    given = objects if asks.over is None else {**objects, **asks.over.named_arrays}
    if not concerns(objects.values(), asks.format):
        told = explain_read(read, objects, settings, asks, seconds)
        return told_plain(given, settings, why) + told
    if asks.is_plain(read):
        over_stored = explained_over_blocks(read[0], objects, settings, asks.path, seconds)
        if over_stored is not None:
            return over_stored
    notes = told_plain(given, settings, why, read[0] if asks.is_plain(read) else None)
    way = plain_way(objects, asks.format, (), None)
    asks, settings = replace(asks, format=way.format), replace(settings, format=way.format)
    return notes + explain_read(read, way.objects, settings, asks, seconds)


def explain_read(
    read: Sequence[Understood],
    objects: Mapping[str, Any],
    settings: Settings,
    asks: Asks,
    seconds: float | None,
) -> str:
    """Say what is planned for statements over operands in plain formats."""
    from taco_py.calls.call.explain_call import explained

    path = asks.path
    if asks.several(read):
        return _explain_several(read, objects, settings, asks)
    (one,) = read
    if not (asks.indexed(read) or _stretches(one, objects)):
        issue_warnings(one.cautions)
        assignment = one.assignment
        settings = along(settings, assignment, path)
        return explained(*_over_numbers(assignment, objects, settings, asks.over), seconds)
    from taco_py.calls.indexed.indexed_call import IndexedCall, settled, stated_of
    from taco_py.calls.indexed.make_operands import told_operands

    stated = stated_of(asks.border, asks.shape)
    indexed = IndexedCall(one.assignment, stated, (), {}, settings.dtype)
    layout, _, made = indexed.made(objects, None)
    assignment = layout.plain.assignment
    settings = along(settled(one.assignment, layout, made, settings), assignment, path)
    _refuse_scatter(one, asks)
    told = explained(*_over_numbers(assignment, made.objects, settings, asks.over), seconds)
    return _with_operands(told_operands(layout, made), told)


def _over_numbers(
    assignment: Assignment, objects: Mapping[str, Any], settings: Settings, over: Over | None
) -> tuple[Assignment, Mapping[str, Any], Settings]:
    """What is planned of an assignment over a semiring, under a mask."""
    if over is None:
        return assignment, objects, settings
    from taco_py.calls.call.over_semirings import over_numbers

    ready = over_numbers(assignment, objects, settings, over)
    return ready.assignment, ready.objects, ready.settings


def _refuse_scatter(read: Understood, asks: Asks) -> None:
    """Raise NotationError where a result is scattered under a semiring or a mask."""
    from taco_py.calls.indexed.indexed_statements import OVER_SEMIRINGS, refuse_scatter

    if asks.over is not None:
        refuse_scatter(read.assignment.target, OVER_SEMIRINGS)


def _with_operands(operands: Sequence[str], told: str) -> str:
    """What is said of a plan, after the operands that are made for it."""
    notes = (f"{'' if at else 'reads':10}{note}" for at, note in enumerate(operands))
    return "\n".join((*notes, told))


def _stretches(read: Understood, objects: Mapping[str, Any]) -> bool:
    """Tell whether a mode of size 1 stands beside an index of another size."""
    from taco_py.calls.indexed.stretched import stretched

    used = (*operand_names(read.assignment), read.assignment.target.tensor)
    shapes = {name: taken(objects[name], name).shape for name in used if name in objects}
    if not {*operand_names(read.assignment)} <= shapes.keys():
        return False
    return stretched(read.assignment, shapes) is not read.assignment


def _compute_indexed(
    read: Understood,
    objects: Mapping[str, Any],
    settings: Settings,
    asks: Asks,
    key: tuple[object, ...] | None,
) -> Any:
    """Compute an assignment with subscripts; key as `compute_text` has it."""
    from taco_py.calls.indexed.indexed_call import IndexedCall, settled, stated_of

    _refuse_scatter(read, asks)
    out = asks.out
    identity = () if key is None else (key[0],)
    stated = stated_of(asks.border, asks.shape)
    indexed = IndexedCall(read.assignment, stated, identity, {}, settings.dtype)
    layout, text, made = indexed.made(objects, out)
    assignment = layout.plain.assignment
    settings = along(settled(read.assignment, layout, made, settings), assignment, asks.path)
    if asks.over is not None:
        return _computed(read, assignment, made.objects, settings, asks, None)
    if place := place_of(objects.values()):
        told = read.cautions
        return compute(assignment, made.objects, settings, out, cautions=told, place=place)
    inner = None if key is None else indexed.key(text, made)
    short, given = find(inner), made.objects.values()
    found = None if short is None else short(*given) if out is None else short(*given, out)
    if found is None:
        found = compute(assignment, made.objects, settings, out, key=inner, cautions=read.cautions)
    if key is not None:
        KERNELS.memo.put(key, indexed.short_way(tuple(objects)))
    return found


# ---------------------------------------------------------------- several statements


def _compute_several(
    read: Sequence[Understood],
    objects: Mapping[str, Any],
    settings: Settings,
    asks: Asks,
    key: tuple[object, ...] | None,
) -> Any:
    """Compute statements; those with subscripts over operands that are made in each call."""
    from taco_py.calls.call.several.compute_several import compute_several
    from taco_py.calls.call.several.sequence import needed
    from taco_py.calls.call.several.wishes import asked_of

    if asks.over is not None:
        asks.over.refuse_several(read[-1].assignment)
    asked = asked_of([each.assignment for each in read], asks.outputs, asks.format, asks.out)
    settings = replace(settings, path=asks.path)
    if not asks.indexed(read):
        try:
            return compute_several(read, objects, settings, asked, key)
        except DimensionError:
            if not any(1 in taken(obj, name).shape for name, obj in objects.items()):
                raise
    statements = [each.assignment for each in read]
    plain = _plain_statements(statements, objects, asks, asked)
    kept, _ = needed(statements, asked.outputs)
    pairs = zip(plain.assignments, (e for e in read if e.assignment in kept), strict=True)
    whole = [Understood(assignment, each.cautions) for assignment, each in pairs]
    if key is None:
        return compute_several(whole, plain.objects, settings, asked)

    def inner(made: PlainStatements) -> tuple[object, ...] | None:
        texts = map(to_text, made.assignments)
        return call_key(("several", *texts, key[0], *made.objects), made.objects.values())

    def short_way(*given: Any) -> Any:
        passed = dict(zip(objects, given, strict=False))
        made = _plain_statements(statements, passed, asks, asked)
        short = find(inner(made))
        return None if short is None else short(*made.objects.values(), *given[len(passed) :])

    found = compute_several(whole, plain.objects, settings, asked, inner(plain))
    KERNELS.memo.put(key, short_way)
    return found


def _plain_statements(
    statements: Sequence[Assignment], objects: Mapping[str, Any], asks: Asks, asked: Asked
) -> PlainStatements:
    """Make the operands that needed statements ask for, once all are known to be passed."""
    from taco_py.calls.call.several.sequence import check_passed, in_single_assignment, needed
    from taco_py.calls.indexed.indexed_statements import indexed_statements, stated_for_several

    stated = stated_for_several(asks.border, asks.shape)
    single = in_single_assignment(statements, asked.outputs, objects)
    check_passed(statements, single, objects)
    return indexed_statements(needed(statements, asked.outputs)[0], objects, stated)


def _explain_several(
    read: Sequence[Understood], objects: Mapping[str, Any], settings: Settings, asks: Asks
) -> str:
    """Say what is planned for statements, and which operands are made first."""
    from taco_py.calls.call.several.explain_several import explained_several
    from taco_py.calls.call.several.wishes import asked_of

    for each in read:
        issue_warnings(each.cautions)
    statements = [each.assignment for each in read]
    if asks.over is not None:
        asks.over.refuse_several(statements[-1])
    asked = asked_of(statements, asks.outputs, asks.format)
    settings = replace(settings, format=None, path=asks.path)
    if not asks.indexed(read):
        try:
            return explained_several(statements, objects, settings, asked)
        except DimensionError:
            if not any(1 in taken(obj, name).shape for name, obj in objects.items()):
                raise
    plain = _plain_statements(statements, objects, asks, asked)
    told = explained_several(plain.assignments, plain.objects, settings, asked)
    return _with_operands(plain.told, told)
