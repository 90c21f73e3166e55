"""An assignment over operands in blocks, over the modes that these store.

y[i] = A[i,j] * x[j]    A in BSR(3,3)  →  y[i0,i1] = A[i0,j0,i1,j1] * x[j0,j1]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from taco_py.arguments.operands import read_operand
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.conversions.conversion import Converted, Key, labelled
from taco_py.calls.call.conversions.conversion_notes import conversion_notes, converted_names
from taco_py.calls.call.conversions.derived_operands import has_derived
from taco_py.calls.remapped.remapped_call import (
    RemappedCall,
    copied_into,
    is_in_blocks,
    remapped_call,
)
from taco_py.data.convert.remap import plain_format
from taco_py.data.storage.tensor_data import TensorData
from taco_py.data.tensors.remapped_tensor import RemappedTensor, blocks_of
from taco_py.language.formats import remapped
from taco_py.language.notation.printer import to_text


def has_blocks(objects: Iterable[Any], formats: Iterable[Any]) -> bool:
    """Tell whether an operand is in blocks, or a result is asked for in them."""
    return any(map(is_in_blocks, objects)) or any(remapped(form) is not None for form in formats)


def facts_of(obj: Any, what: str) -> TensorData:
    """Return the format, shape, dtype and number of values of an operand; its arrays where it is
    not in blocks."""
    blocks = blocks_of(obj)
    if blocks is None:
        return read_operand(obj, what)
    return TensorData(plain_format(blocks.order), blocks.shape, (), blocks.stored.data.values)


def stored_modes(computation: Computation, key: Key) -> Converted | None:
    """Read operands in blocks over the modes that they store."""
    objects, formats = computation.objects, computation.requested.formats
    if not has_blocks(objects.values(), formats.values()):
        return None
    call, reasons = stored_call(computation, () if key is None else (key[0],))
    layout = None if call is None else call.layout(objects)
    if call is None or layout is None:
        return None
    out = next(iter(computation.outs.values()), None)
    in_place = out is not None and call.takes(out, layout)
    if out is not None and not in_place and call.fills(layout):
        return None  # it is no such array
    assignment, stored_operands = call.cut.assignment, layout.stored_operands(objects)
    target = assignment.target.tensor
    outs = {target: call.inner_out(out, layout)} if in_place else {}
    inner = replace(
        computation,
        assignments=(assignment,),
        objects=stored_operands,
        options=replace(computation.options, static=call.cut.static),
        requested=replace(computation.requested, outputs=(target,), outs=outs),
    ).with_formats({} if call.result.form is None else {target: call.result.form})

    def finished(result: Any) -> Any:
        if in_place:
            return out
        result = call.finished(result, layout.shape)
        if out is None:
            return result
        return out if copied_into(out, result) else None

    def lines() -> list[str]:
        notes = [*_result_notes(call), *call.operand_lines(layout), *_reason_notes(objects)]
        names = [n for n in converted_names(objects) if not is_in_blocks(objects[n])]
        notes += conversion_notes(objects, dict.fromkeys((*reasons, *names)), reasons)
        return labelled("reads", notes)

    inner_key = None if key is None else call.key(layout, stored_operands.values())
    return Converted(inner, inner_key, call.short_way(tuple(objects)), finished, lines)


def stored_call(
    computation: Computation, identity: tuple[object, ...] = ()
) -> tuple[RemappedCall | None, Mapping[str, str]]:
    """Return the call over stored modes, None where there is none.

    Returns with it the reasons for which operands are converted, by name.
    """
    objects, options = computation.objects, computation.options
    reason = why_plain(computation)
    if reason:
        return None, {name: reason for name, obj in objects.items() if is_in_blocks(obj)}
    return remapped_call(computation.last, objects, options, identity)


def why_plain(computation: Computation) -> str:
    """Say why a call reads plain formats whatever its operands store, "" where it need not."""
    if computation.over is not None:
        return computation.over.why_plain
    if not (computation.is_single and computation.requested.alone):
        return "several statements read plain formats alone"
    if has_derived(computation):
        return "subscripts, argmin and argmax read plain formats alone"
    return "modes of size 1 stretch" if computation.squeezed else ""


def _result_notes(call: RemappedCall) -> list[str]:
    """Return the line of explain() about the result over stored modes."""
    cut = call.cut
    if not any(cut.target):
        return []
    return [f"{to_text(cut.source.target)} is {to_text(cut.assignment.target)}, in blocks"]


def _reason_notes(objects: Mapping[str, Any]) -> list[str]:
    """Say why operands are in formats that were chosen for them."""
    tensors = ((n, o) for n, o in objects.items() if isinstance(o, RemappedTensor) and o.reason)
    return [f"{name} is in {obj.format}: {obj.reason}" for name, obj in tensors]
