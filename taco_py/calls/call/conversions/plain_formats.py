"""Statements over operands in blocks, over plain formats.

y[i] = max(j, A[j,i])   under mask=    →  the same, A in CSR, which the Tensor keeps
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from taco_py.calls.call.computation import Computation
from taco_py.calls.call.conversions.block_modes import stored_call, why_plain
from taco_py.calls.call.conversions.conversion import Converted, Key, labelled
from taco_py.calls.call.conversions.conversion_notes import conversion_notes, converted_names
from taco_py.calls.remapped.remapped_call import is_in_blocks
from taco_py.data.convert.remap import plain_format
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.tensors.keys import call_key
from taco_py.data.tensors.remapped_tensor import RemappedTensor, in_format
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.language.formats import RemappedFormat, remapped
from taco_py.running.replay.find import find


def plain_formats(computation: Computation, key: Key) -> Converted | None:
    """Read operands in blocks in plain formats, and make results in them of plain ones."""
    objects, requested = computation.objects, computation.requested
    remapped_formats = {name: remapped(form) for name, form in requested.formats.items()}
    blocks = {name: form for name, form in remapped_formats.items() if form is not None}
    plain = _plain_objects(objects, bool(blocks))
    if not blocks and all(plain[name] is obj for name, obj in objects.items()):
        return None
    formats = {name: plain_format(form.order) for name, form in blocks.items()}
    inner = replace(computation, objects=plain)
    if blocks:
        inner = inner.with_formats({**requested.formats, **formats})
    results = tuple(blocks.get(name) for name in requested.outputs)

    def key_of(operands: Mapping[str, Any], masks: Sequence[Any]) -> Key:
        return None if key is None else call_key(("plain", key[0]), (*operands.values(), *masks))

    def finished(result: Any) -> Any:
        if requested.alone:
            return _in_blocks(result, results[0])
        return tuple(map(_in_blocks, result, results))

    names, count = tuple(objects), len(objects) + len(computation.masks)

    def fast_path(*operands: Any) -> Any:
        plain_operands = _plain_objects(dict(zip(names, operands, strict=False)), bool(blocks))
        call = find(key_of(plain_operands, operands[len(names) : count]))
        result = None if call is None else call(*plain_operands.values(), *operands[len(names) :])
        return None if result is None else finished(result)

    inner_key = key_of(plain, computation.masks)
    return Converted(inner, inner_key, fast_path, finished, lambda: [])


def _in_blocks(result: Any, form: RemappedFormat | None) -> Any:
    """Return a result in plain formats in the remapped format that is asked for, if one is."""
    if form is None:
        return result
    return in_format(result if isinstance(result, Tensor) else Tensor(as_data(result)), form)


def _plain_objects(objects: Mapping[str, Any], tensors: bool) -> dict[str, Any]:
    """Return the operands, Tensors in blocks as plain ones.

    tensors  whether arrays of scipy's are Tensors, so that a result has its fill value
    """
    plain = {n: o.plain() if isinstance(o, RemappedTensor) else o for n, o in objects.items()}
    if not tensors:
        return plain
    return {n: Tensor(as_data(o)) if is_scipy_sparse(o) else o for n, o in plain.items()}


def conversion_lines(computation: Computation) -> list[str]:
    """Return the lines of explain() on operands that are converted before the call runs, and why.

    The mask is one of these.
    """
    over, reasons = computation.over, dict[str, str]()
    arrays = {**computation.objects, **({} if over is None else over.named_arrays)}
    if any(map(is_in_blocks, arrays.values())):
        reasons.update(stored_call(computation)[1])
    reason = why_plain(computation) or "this call reads plain formats alone"
    notes = conversion_notes(arrays, converted_names(arrays), reasons, reason)
    return labelled("converts", notes)
