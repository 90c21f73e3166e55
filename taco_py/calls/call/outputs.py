"""The results of a plan: made, rounded, written to the user's arrays or handed out."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from taco_py.arguments.options import CallOptions
from taco_py.arguments.result_table import ResultKind
from taco_py.arguments.results import hand_out
from taco_py.calls.call.prepare import Prepared
from taco_py.calls.call.requested_outputs import RequestedOutputs
from taco_py.data.convert.in_type import values_in_type
from taco_py.data.interop.numpy_arrays import dense_of
from taco_py.data.storage.tensor_data import Array, TensorData, arrays_of, on_host
from taco_py.language.diagnostics.errors import OutputDtypeError, OutputError
from taco_py.language.notation.half_types import computed_dtype, is_half
from taco_py.running.execute.run import Execution, run_all
from taco_py.running.replay.find import shares_memory


def run_outputs(
    prepared: Prepared, execution: Execution, outs: Mapping[str, Array]
) -> dict[str, TensorData]:
    """Run a plan, and return each wanted name with its result, rounded to its type."""
    results = run_all(prepared.plan, execution)
    return {
        name: rounded(data, prepared.dtype_of(target), outs.get(name))
        for (name, target), data in zip(prepared.outputs.items(), results.values(), strict=True)
    }


def hand_out_results(
    results: Mapping[str, TensorData],
    prepared: Prepared,
    requested: RequestedOutputs,
    axes: tuple[int, ...] = (),
    place: str = "",
) -> Any:
    """Return results as the objects that the user expects, several as a tuple.

    axes   of the one result in the order in which they are wanted, () for that of the plan
    place  the device that they stay on, "" for the host
    """
    objects: list[Any] = []
    for name, data in results.items():
        out, kind = requested.outs.get(name), prepared.kinds[prepared.outputs[name]]
        if out is not None:
            objects.append(copy_into(out, data))
        elif place:
            turned = dense_of(data.values.transpose(axes)) if axes else data
            objects.append(hand_out(turned, kind, place))
        else:
            result = hand_out(data, kind)
            objects.append(result.transpose(axes) if axes else result)
    return objects[0] if requested.alone else tuple(objects)


def copy_into(out: Array, data: TensorData) -> Array:
    """Return `out` with the values of a dense result, copied unless a kernel wrote them there."""
    values = on_host(data).values
    if not _has_memory_of(values, out):
        np.copyto(out, values, casting="unsafe")
    return out


def _has_memory_of(one: Array, other: Array) -> bool:
    """Tell whether two arrays show the same elements in the same order."""

    def layout(array: Array) -> tuple[Any, ...]:
        steps = [step for step, n in zip(array.strides, array.shape, strict=True) if n > 1]
        return array.ctypes.data, array.shape, array.dtype, steps

    return layout(one) == layout(other)


def rounded(data: TensorData, dtype: np.dtype[Any], out: Array | None = None) -> TensorData:
    """Round a result that was computed in float32 to the 16-bit type that it has.

    An `out` of a wider type takes it as it was computed.
    """
    wide = out is not None and not is_half(out.dtype)
    return values_in_type(on_host(data), dtype) if is_half(dtype) and not wide else data


def writable_out(
    prepared: Prepared, requested: RequestedOutputs, options: CallOptions
) -> Array | None:
    """Check the arrays for results; return the one that a kernel may write into as it goes.

    Raises OutputError where one cannot hold its result, or two share memory.
    """
    for name, out in requested.outs.items():
        target = prepared.outputs[name]
        shape, dtype = prepared.checked.shapes[target], prepared.dtype_of(target)
        check_out(out, prepared.kinds[target], shape, dtype, options.casting)
    for (one, first), (other, second) in combinations(requested.outs.items(), 2):
        if shares_memory(first, second):
            raise OutputError(
                f"Expected memory of its own for each result, found {one} and {other} in arrays "
                "that share theirs",
                hint="pass an array for each",
            )
    if not (requested.outs and prepared.checked.is_single):
        return None
    (out,) = requested.outs.values()
    return out if _is_direct(out, prepared) else None


def placed_outs(prepared: Prepared, requested: RequestedOutputs) -> dict[str, Array]:
    """Return the arrays for several results that kernels write into, by target.

    They may be parts of one array: of which elements of the last mode are neighbours.
    """
    if prepared.checked.is_single:
        return {}
    arrays = {prepared.outputs[name]: out for name, out in requested.outs.items()}
    return {
        target: out
        for target, out in arrays.items()
        if out.ndim and out.strides[-1] == out.itemsize
        and _is_writable(out, prepared, prepared.dtype_of(target))
    }  # fmt: skip


def check_out(
    out: Array, kind: ResultKind, shape: tuple[int, ...], dtype: np.dtype[Any], casting: str
) -> None:
    """Raise OutputError where an array cannot hold a result of this kind, shape and dtype."""
    if not isinstance(out, np.ndarray):
        raise OutputDtypeError(
            f"Expected out= to be a NumPy array, found {type(out).__name__}",
            hint="leave out= away, or pass an array of the result's shape and dtype",
        )
    if kind.kind != "ndarray":
        stored = kind.format
        if stored.is_dense:
            raise OutputError(
                f"Expected no out=, for the result is a Tensor of the format {stored}, found an "
                "array",
                hint=f"leave out= away, or ask for an array by format={'d' * stored.order!r}",
            )
        raise OutputError(
            f"Expected no out=, for the result is sparse ({kind.kind}), found an array",
            hint="leave out= away, or ask for a dense result by format=",
        )
    if out.shape != shape:
        raise OutputError(
            f"Expected out= of shape {shape}, found {out.shape}",
            hint="its dimensions are the sizes of the indices on the left",
        )
    if not np.can_cast(dtype, out.dtype, casting):  # type: ignore[arg-type]
        raise OutputDtypeError(
            f"Expected out= of a dtype that {dtype} can be cast to by the rule "
            f"{casting!r}, found {out.dtype}",
            hint=f"pass an array of dtype {dtype}",
        )
    _check_memory(out)


def _check_memory(out: Array) -> None:
    """Raise OutputError where `out` is read-only or masked, or its elements share memory."""
    if not out.flags.writeable:
        raise OutputError("Expected a writable array for out=, found a read-only one")
    if isinstance(out, np.ma.MaskedArray):
        raise OutputError(
            "Expected an array without a mask for out=, found a numpy.ma.MaskedArray",
            hint="pass its .data",
        )
    if out.size and any(step == 0 < n - 1 for step, n in zip(out.strides, out.shape, strict=True)):
        raise OutputError(
            "Expected memory for each element of out=, found elements that share theirs (a stride "
            "of 0)",
            hint="pass a copy: out.copy()",
        )


def _is_direct(out: Array, prepared: Prepared) -> bool:
    """Tell whether a kernel can write its result into the array that the user passed."""
    return bool(out.flags.c_contiguous) and _is_writable(out, prepared, prepared.dtype)


def _is_writable(out: Array, prepared: Prepared, dtype: np.dtype[Any]) -> bool:
    """Tell whether a kernel may write to an array: it shares no memory with an operand."""
    if prepared.plan.machine.is_gpu or type(out) is not np.ndarray or not out.flags.aligned:
        return False
    if out.dtype != computed_dtype(dtype) or not out.dtype.isnative:
        return False
    arrays = [a for g in prepared.operands.values() for a in arrays_of(g.data)]
    return not any(np.may_share_memory(out, a) for a in arrays)
