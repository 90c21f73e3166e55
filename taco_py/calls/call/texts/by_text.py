"""Texts as calls: of operands as they are, or of operands that their subscripts ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.device_tensor import place_of
from taco_py.arguments.operands import taken
from taco_py.arguments.options import CallOptions
from taco_py.arguments.semiring_mask import SemiringMask
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.compute import compute, compute_one
from taco_py.calls.call.devices.placed import placed
from taco_py.calls.call.over.compute_over import arithmetic, compute_over
from taco_py.calls.call.statement_commands import with_commands_of_one
from taco_py.calls.call.texts.in_blocks import (
    blocked_call,
    concerns,
    explained_over_blocks,
    over_blocks,
    told_plain,
    unblock_operands,
)
from taco_py.calls.statements.read_text import Understood, statements_of
from taco_py.data.kernels import KERNELS
from taco_py.data.tensors.keys import call_key
from taco_py.data.tensors.traced_operands import explicit_options, taken_over, taker_of
from taco_py.language.diagnostics.errors import DimensionError
from taco_py.language.notation.checks import has_subscripts, operand_names
from taco_py.language.notation.printer import to_text
from taco_py.running.replay.find import call_fast_path, find

if TYPE_CHECKING:
    from taco_py.calls.indexed.indexed_statements import PlainStatements
    from taco_py.language.notation.nodes import Assignment


def computes_several(read: Sequence[Understood], call: CallArguments) -> bool:
    """Tell whether a text is computed as several statements are."""
    by_name = isinstance(call.options.format, Mapping) or isinstance(call.out, Mapping)
    return len(read) > 1 or call.options.outputs is not None or by_name


def reads_derived(read: Sequence[Understood], call: CallArguments) -> bool:
    """Tell whether operands have to be made before statements are computed."""
    return call.options.is_bounded or any(has_subscripts(each.assignment) for each in read)


def is_plain(read: Sequence[Understood], call: CallArguments) -> bool:
    """Tell whether a call computes one assignment over indices alone, and over numbers."""
    return call.over is None and not (computes_several(read, call) or reads_derived(read, call))


def why_plain(read: Sequence[Understood], call: CallArguments) -> str:
    """Say why operands are read in plain formats, where the call could be over stored modes."""
    if call.over is not None:
        return call.over.why_plain
    if computes_several(read, call):
        return "several statements read plain formats alone"
    if reads_derived(read, call):
        return "subscripts, argmin and argmax read plain formats alone"
    return "this call reads plain formats alone"


def compute_text(
    text: str,
    objects: Mapping[str, Any],
    keywords: Mapping[str, Any],
    over: SemiringMask | None,
    key: tuple[object, ...] | None,
) -> Any:
    """Compute what a text says.

    keywords  the arguments of the call by parameter, options among them as the user gave them
    key       under which to remember the short way for calls like this one
    """
    masks = () if over is None else over.arrays
    if key is None and (taker := taker_of((*objects.values(), *masks))) is not None:
        said = explicit_options(keywords, over)
        return taken_over(taker, "tp.evaluate", (text, objects), said)
    objects, where = placed(objects, keywords["target"], masks)
    read = statements_of(text, objects)
    in_blocks = concerns(objects.values(), keywords["format"])
    options = CallOptions.of({**keywords, "target": where})
    call = CallArguments(objects, options, keywords["out"], over, key)
    if not in_blocks:
        return compute_read(read, call)
    if is_plain(read, call) and (found := over_blocks(read[0], call)) is not None:
        return found.result
    unblocked = unblock_operands(call)
    return unblocked.finished(compute_read(read, unblocked.call))


def compute_read(read: Sequence[Understood], call: CallArguments) -> Any:
    """Compute statements over operands in plain formats."""
    if computes_several(read, call):
        return _compute_several(read, call)
    (one,) = read
    if reads_derived(read, call):
        return _compute_indexed(one, call)
    inner = call
    if call.options.path is not None or call.options.schedules or call.options.paths:
        inner = replace(call, options=with_commands_of_one(call.options, one.assignment))
    try:
        computation = Computation.of_one(one.assignment, inner, cautions=one.cautions)
        return compute_over(computation, call.over, call.key)
    except DimensionError:
        if not _stretches(one, call.objects):
            raise
    return _compute_indexed(one, call)


def plain_computation(read: Understood, call: CallArguments) -> Computation:
    """Return the computation over numbers that a call of one statement plans: of operands that are
    made for its subscripts, or over the modes that blocks store."""
    if concerns(call.objects.values(), call.options.format):
        stored = blocked_call(read, call) if is_plain((read,), call) else None
        if stored is not None:
            return Computation.of_one(*stored)
        call = unblock_operands(call).call
    assignment = read.assignment
    if reads_derived((read,), call) or _stretches(read, call.objects):
        assignment, call, _ = _over_indices(read, call)
    return arithmetic(Computation.of_one(assignment, call), call.over)[0]


def _over_indices(
    read: Understood, call: CallArguments
) -> tuple[Assignment, CallArguments, list[str]]:
    """Return the assignment over indices alone and its call, with lines about its operands."""
    from taco_py.calls.indexed.indexed_call import IndexedCall, boundary_options, settled
    from taco_py.calls.indexed.make_operands import told_operands

    _refuse_scatter(read, call)
    boundary = boundary_options(call.options.border, call.options.shape)
    indexed = IndexedCall(read.assignment, boundary, (), {}, call.options.dtype)
    layout, _, made = indexed.made(call.objects, None)
    assignment = layout.plain.assignment
    options = settled(read.assignment, layout, made, call.options)
    options = with_commands_of_one(options, assignment)
    inner = replace(call, objects=made.objects, options=options)
    return assignment, inner, told_operands(layout, made)


def explain_text(text: str, call: CallArguments, seconds: float | None) -> str:
    """Say what is planned for a text, where that stands, and which operands are made first.

    seconds  of the comparison with the frontier, None for as many as the search may take
    """
    read, objects = statements_of(text, call.objects), call.objects
    why = why_plain(read, call)
    shown = objects if call.over is None else {**objects, **call.over.named_arrays}
    if not concerns(objects.values(), call.options.format):
        told = explain_read(read, call, seconds)
        return told_plain(shown, call.options, why) + told
    plain = is_plain(read, call)
    if plain:
        over_stored = explained_over_blocks(read[0], call, seconds)
        if over_stored is not None:
            return over_stored
    notes = told_plain(shown, call.options, why, read[0] if plain else None)
    return notes + explain_read(read, unblock_operands(call).call, seconds)


def explain_read(read: Sequence[Understood], call: CallArguments, seconds: float | None) -> str:
    """Say what is planned for statements over operands in plain formats."""
    from taco_py.calls.call.explain_call import explained

    if computes_several(read, call):
        return _explain_several(read, call, seconds)
    (one,) = read
    if not (reads_derived(read, call) or _stretches(one, call.objects)):
        options = with_commands_of_one(call.options, one.assignment)
        inner = replace(call, options=options)
        computation = Computation.of_one(one.assignment, inner, cautions=one.cautions)
        return explained(arithmetic(computation, call.over)[0], seconds)
    assignment, inner, notes = _over_indices(one, call)
    computation, _ = arithmetic(Computation.of_one(assignment, inner), call.over)
    return _with_operands(notes, explained(computation, seconds))


def _refuse_scatter(read: Understood, call: CallArguments) -> None:
    """Raise NotationError where a result is scattered under a semiring or a mask."""
    from taco_py.calls.indexed.indexed_statements import OVER_SEMIRINGS, refuse_scatter

    if call.over is not None:
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


def _compute_indexed(read: Understood, call: CallArguments) -> Any:
    """Compute an assignment with subscripts."""
    from taco_py.calls.indexed.indexed_call import IndexedCall, boundary_options, settled

    _refuse_scatter(read, call)
    out, key = call.out, call.key
    identity = () if key is None else (key[0],)
    boundary = boundary_options(call.options.border, call.options.shape)
    indexed = IndexedCall(read.assignment, boundary, identity, {}, call.options.dtype)
    layout, text, made = indexed.made(call.objects, out)
    assignment = layout.plain.assignment
    options = settled(read.assignment, layout, made, call.options)
    options = with_commands_of_one(options, assignment)
    place = place_of(call.objects.values()) if call.over is None else ""
    is_kept = not (key is None or call.over or place)
    inner_key = indexed.key(text, made) if is_kept else None
    inner = CallArguments(made.objects, options, out, call.over, inner_key)
    if call.over is not None:
        computation = Computation.of_one(assignment, inner, cautions=read.cautions)
        return compute_over(computation, call.over, inner.key)
    if place:
        return compute_one(assignment, inner, cautions=read.cautions, place=place)
    found = call_fast_path(inner.key, made.objects.values(), out)
    if found is None:
        found = compute_one(assignment, inner, cautions=read.cautions)
    if key is not None:
        KERNELS.memo.put(key, indexed.short_way(tuple(call.objects)))
    return found


# ---------------------------------------------------------------- several statements


def _several(read: Sequence[Understood], call: CallArguments) -> Computation:
    """Return the computation of statements."""
    from taco_py.calls.call.requested_outputs import requested_outputs

    statements = tuple(each.assignment for each in read)
    requested = requested_outputs(statements, call.options.outputs, call.options.format, call.out)
    options = replace(call.options, format=None)
    cautions = tuple(caution for each in read for caution in each.cautions)
    return Computation(statements, call.objects, options, requested, cautions=cautions)


def _may_stretch(objects: Mapping[str, Any]) -> bool:
    """Tell whether an operand has a mode of size 1."""
    return any(1 in taken(obj, name).shape for name, obj in objects.items())


def _compute_several(read: Sequence[Understood], call: CallArguments) -> Any:
    """Compute statements; those with subscripts over operands that are made in each call."""
    computation, key = _several(read, call), call.key
    if not reads_derived(read, call):
        try:
            return compute_over(computation, call.over, key)
        except DimensionError:
            if not _may_stretch(call.objects):
                raise
    plain = _plain_statements(computation)
    inner = replace(computation, written=plain.assignments, objects=plain.objects)
    if key is None or call.over is not None:
        return compute_over(inner, call.over)

    def key_of(made: PlainStatements) -> tuple[object, ...] | None:
        texts = map(to_text, made.assignments)
        return call_key(("several", *texts, key[0], *made.objects), made.objects.values())

    def fast_path(*operands: Any) -> Any:
        objects = dict(zip(computation.objects, operands, strict=False))
        made = _plain_statements(replace(computation, objects=objects))
        short = find(key_of(made))
        return None if short is None else short(*made.objects.values(), *operands[len(objects) :])

    result = compute(inner, key_of(plain))
    KERNELS.memo.put(key, fast_path)
    return result


def _plain_statements(computation: Computation) -> PlainStatements:
    """Make the operands that needed statements ask for, once all are known to be passed."""
    from taco_py.calls.indexed.indexed_statements import (
        boundary_options_of_several,
        indexed_statements,
    )
    from taco_py.calls.statements.sequence import check_passed, in_single_assignment, needed

    statements, objects, outputs = (
        computation.written,
        computation.objects,
        computation.requested.outputs,
    )
    boundary = boundary_options_of_several(computation.options.border, computation.options.shape)
    check_passed(statements, in_single_assignment(statements, outputs, objects), objects)
    return indexed_statements(needed(statements, outputs)[0], objects, boundary)


def _explain_several(read: Sequence[Understood], call: CallArguments, seconds: float | None) -> str:
    """Say what is planned for statements, and which operands are made first."""
    from taco_py.calls.call.explain_call import explained

    computation = _several(read, call)
    if not reads_derived(read, call):
        try:
            return explained(arithmetic(computation, call.over)[0], seconds)
        except DimensionError:
            if not _may_stretch(call.objects):
                raise
    plain = _plain_statements(computation)
    inner = replace(computation, written=plain.assignments, objects=plain.objects)
    return _with_operands(plain.told, explained(arithmetic(inner, call.over)[0], seconds))
