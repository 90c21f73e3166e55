"""Texts over operands in blocks: computed over stored modes, or over plain formats.

y[i] = A[i,j] * x[j]    A in BSR(3,3)  →  y[i0,i1] = A[i0,j0,i1,j1] * x[j0,j1]
y[i] = max(j, A[j,i])   under mask=    →  the same, A in CSR, which the Tensor keeps
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.operands import read_operand
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.compute import compute_one
from taco_py.calls.call.explain_call import explained
from taco_py.calls.call.statement_commands import with_commands_of_one
from taco_py.calls.remapped.remapped_call import (
    RemappedCall,
    copied_into,
    is_in_blocks,
    remapped_call,
)
from taco_py.calls.statements.read_text import Understood
from taco_py.data.convert.remap import plain_format
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import TensorData
from taco_py.data.tensors.keys import call_key
from taco_py.data.tensors.remapped_tensor import RemappedTensor, blocks_of, in_format
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.language.formats import RemappedFormat, remapped
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.printer import to_text
from taco_py.running.replay.find import call_fast_path, find

Key = tuple[object, ...] | None
CONVERTED = ("bsr", "dia", "dok", "lil")
"""Formats of scipy's that plain kernels do not read."""


def concerns(objects: Iterable[Any], format: Any) -> bool:
    """Tell whether an operand is in blocks, or the result is asked for in them."""
    return any(map(is_in_blocks, objects)) or remapped(format) is not None


def facts_of(obj: Any, what: str) -> TensorData:
    """Return the format, shape, dtype and number of values of an operand; its arrays where it is
    not in blocks."""
    blocks = blocks_of(obj)
    if blocks is None:
        return read_operand(obj, what)
    return TensorData(plain_format(blocks.order), blocks.shape, (), blocks.stored.data.values)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A result that was computed over stored modes."""

    result: Any


def over_blocks(read: Understood, call: CallArguments) -> Found | None:
    """Compute an assignment over stored modes; None where operands are read in plain formats."""
    objects, out, key = call.objects, call.out, call.key
    identity = () if key is None else (key[0],)
    stored, _ = remapped_call(read.assignment, objects, call.options, identity)
    layout = None if stored is None else stored.layout(objects)
    if stored is None or layout is None:
        return None
    in_place = out is not None and stored.takes(out, layout)
    if out is not None and not in_place and stored.fills(layout):
        return None  # it is no such array
    assignment = stored.cut.assignment
    options = with_commands_of_one(stored.options(call.options), assignment)
    made = layout.made(objects)
    target = stored.inner_out(out, layout) if in_place else None
    inner_key = None if key is None else stored.key(layout, made.values())
    inner = CallArguments(made, options, target, None, inner_key)
    found = call_fast_path(inner_key, made.values(), target)
    if found is None:
        found = compute_one(assignment, inner, cautions=read.cautions)
    if key is not None:
        KERNELS.memo.put(key, stored.short_way(tuple(objects)))
    if in_place:
        return Found(out)
    whole = stored.finished(found, layout.shape)
    if out is None:
        return Found(whole)
    return Found(out) if copied_into(out, whole) else None


def blocked_call(read: Understood, call: CallArguments) -> tuple[Assignment, CallArguments] | None:
    """Return an assignment over stored modes and its call; None where operands are converted."""
    stored, _ = remapped_call(read.assignment, call.objects, call.options)
    layout = None if stored is None else stored.layout(call.objects)
    if stored is None or layout is None:
        return None
    assignment = stored.cut.assignment
    options = with_commands_of_one(stored.options(call.options), assignment)
    return assignment, CallArguments(layout.made(call.objects), options)


def explained_over_blocks(
    read: Understood, call: CallArguments, seconds: float | None
) -> str | None:
    """Say what is planned over stored modes, and what is read as what; None where nothing is."""
    objects = call.objects
    stored, plain = remapped_call(read.assignment, objects, call.options)
    layout = None if stored is None else stored.layout(objects)
    if stored is None or layout is None:
        return None
    assignment = stored.cut.assignment
    options = with_commands_of_one(stored.options(call.options), assignment)
    inner = CallArguments(layout.made(objects), options)
    told = explained(Computation.of_one(assignment, inner), seconds)
    notes = [*told_result(stored), *stored.told(layout), *told_reasons(objects)]
    others = {n: "" for n, o in objects.items() if _is_converted(o) and not is_in_blocks(o)}
    notes += [_told_plain(name, objects[name], why) for name, why in (plain | others).items()]
    lines = (f"{'' if at else 'reads':10}{note}" for at, note in enumerate(notes))
    return "\n".join((*lines, told))


def told_reasons(objects: Mapping[str, Any]) -> list[str]:
    """Say why operands are in formats that were chosen for them."""
    found = ((n, o) for n, o in objects.items() if isinstance(o, RemappedTensor) and o.reason)
    return [f"{name} is in {obj.format}: {obj.reason}" for name, obj in found]


def told_result(call: RemappedCall) -> list[str]:
    """What the result over stored modes is."""
    cut = call.cut
    if not any(cut.target):
        return []
    return [f"{to_text(cut.written.target)} is {to_text(cut.assignment.target)}, in blocks"]


def told_plain(
    objects: Mapping[str, Any], options: CallOptions, why: str, read: Understood | None = None
) -> str:
    """Say which operands are converted to plain formats before the call runs, and why.

    why   of a call that reads plain formats alone
    read  what could have been over stored modes, None where nothing could
    """
    reasons: Mapping[str, str] = {}
    if read is not None and any(map(is_in_blocks, objects.values())):
        _, reasons = remapped_call(read.assignment, objects, options)
    lines = [
        _told_plain(name, obj, reasons.get(name, why))
        for name, obj in objects.items()
        if isinstance(obj, RemappedTensor) or _is_converted(obj)
    ]
    return "".join(f"{'' if at else 'converts':10}{line}\n" for at, line in enumerate(lines))


def _is_converted(obj: Any) -> bool:
    """Tell whether an object of scipy's is made a CSR array of before a call over plain formats."""
    if not is_scipy_sparse(obj) or obj.format not in CONVERTED:
        return False
    return obj.format != "bsr" or is_in_blocks(obj)


def _told_plain(name: str, obj: Any, why: str) -> str:
    if isinstance(obj, RemappedTensor):
        kept = plain_format(obj.order)
        return f"{name}: from {obj.format} to {kept}, once and kept with the Tensor, for {why}"
    because = f"for {why}" if is_in_blocks(obj) else "which kernels read"
    remedy = f"tp.tensor({name}) is converted once"
    return f"{name}: from scipy's {obj.format} to CSR at each call, {because}; {remedy}"


# ---------------------------------------------------------------- plain formats


@dataclass(frozen=True, slots=True, eq=False)
class UnblockedCall:
    """A call whose operands in blocks are read in plain formats.

    call    with plain Tensors for those in blocks, and the plain format of the result
    wanted  the remapped format that the result is asked for in, None where it is not
    """

    call: CallArguments
    wanted: RemappedFormat | None

    def finished(self, found: Any) -> Any:
        """Return the result in the format that is asked for."""
        return _in_wanted_format(found, self.wanted)


def _in_wanted_format(result: Any, wanted: RemappedFormat | None) -> Any:
    """Return a result in plain formats in the remapped format that is asked for, if one is."""
    if wanted is None:
        return result
    return in_format(result if isinstance(result, Tensor) else Tensor(as_data(result)), wanted)


def unblock_operands(call: CallArguments) -> UnblockedCall:
    """Return the call over plain formats; its short way is remembered for calls with this key."""
    objects, masks, key = call.objects, call.masks, call.key
    wanted = remapped(call.options.format)
    plain = _plain_objects(objects, wanted is not None)
    if wanted is None and all(plain[name] is obj for name, obj in objects.items()):
        return UnblockedCall(call, None)
    options = call.options
    if wanted is not None:
        options = replace(options, format=plain_format(wanted.order))

    def key_of(given: Mapping[str, Any], more: Sequence[Any]) -> Key:
        return None if key is None else call_key(("plain", key[0]), (*given.values(), *more))

    inner = replace(call, objects=plain, options=options, key=key_of(plain, masks))
    unblocked = UnblockedCall(inner, wanted)
    if key is not None and inner.key is not None:
        names, count = tuple(objects), len(objects) + len(masks)

        def fast_path(*operands: Any) -> Any:
            given = _plain_objects(dict(zip(names, operands, strict=False)), wanted is not None)
            short = find(key_of(given, operands[len(names) : count]))
            found = None if short is None else short(*given.values(), *operands[len(names) :])
            return None if found is None else _in_wanted_format(found, wanted)

        KERNELS.memo.put(key, fast_path)
    return unblocked


def _plain_objects(objects: Mapping[str, Any], tensors: bool) -> dict[str, Any]:
    """Return the operands, Tensors in blocks as plain ones.

    tensors  whether arrays of scipy's are Tensors, so that a result has its fill value
    """
    found = {n: o.plain() if isinstance(o, RemappedTensor) else o for n, o in objects.items()}
    if not tensors:
        return found
    return {n: Tensor(as_data(o)) if is_scipy_sparse(o) else o for n, o in found.items()}
