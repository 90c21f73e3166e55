"""What threads of a warp or a block have, combined into one value that each of them gets, in CUDA.

    static __device__ inline double taco_lanes_add_f64(double value)
    {
        for (int step = 16; step > 0; step /= 2) {
            const double other = __shfl_xor_sync(0xffffffff, value, step);
            value = value + other;
        }
        return value;
    }

All lanes of a warp call it, or all threads of a block. Warps are combined in their order, so that
the bits of the result do not depend on which comes first.
"""

from __future__ import annotations

import re

from codegen.emit.cuda_updates import BY_NAME, NAMES, TYPES, c_type, suffix, updated
from codegen.emit.cuda_warps import full_mask, mask_of, mask_type
from codegen.machine.gpu import Gpu
from codegen.machine.target import UnsupportedError
from codegen.types import SCALARS, ScalarType

_COMBINING = re.compile(r"taco_(lanes|warps|threads)(\d*)_(\w+)_([biufc]\d+)")


def combining_name(units: str, op: str, element: ScalarType) -> str:
    """Return the name of the function that combines the values of all units.

    Raises UnsupportedError.
    """
    if element.name not in SCALARS:
        raise UnsupportedError(f"threads in CUDA cannot combine values of {element}")
    return f"taco_{units}_{NAMES.get(op, op)}_{suffix(element)}"


def combining_function(name: str, gpu: Gpu) -> str | None:
    """Return the definition of a function that `combining_name` names; None of other names."""
    match = _COMBINING.fullmatch(name)
    if match is None:
        return None
    units, width, operation, ending = match.groups()
    element = TYPES[ending]
    op, type = BY_NAME.get(operation, operation), c_type(element)
    if units == "threads":
        lines = [f"return taco_warps_{operation}_{ending}(taco_lanes_{operation}_{ending}(value));"]
    else:
        lanes = int(width or gpu.warp_threads)
        lines = _lanes(op, element, lanes, gpu) if units == "lanes" else _warps(op, element, gpu)
    head = f"static __device__ inline {type} {name}({type} value)"
    return "\n".join([head, "{", *(f"    {line}" for line in lines), "}"])


def _lanes(op: str, element: ScalarType, width: int, gpu: Gpu) -> list[str]:
    """Return the statements that combine the lanes of a warp, or groups of them, pairwise."""
    type, mask, warp, groups = c_type(element), full_mask(gpu), gpu.warp_threads, []
    if width < warp:
        word, all = mask_type(gpu), mask_of(gpu, width)
        mask, first = "group", f"threadIdx.x % {warp} / {width} * {width}"
        groups = [f"const {word} group = {all} << {first};"]
    if element.kind == "complex":
        parts = [
            f"    other.{part} = __shfl_xor_sync({mask}, value.{part}, step);" for part in "xy"
        ]
        other = [f"    {type} other;", *parts]
    else:
        other = [f"    const {type} other = __shfl_xor_sync({mask}, value, step);"]
    return [
        *groups,
        f"for (int step = {width // 2}; step > 0; step /= 2) {{",
        *other,
        f"    value = {updated(op, element, 'value', 'other')};",
        "}",
        "return value;",
    ]


def _warps(op: str, element: ScalarType, gpu: Gpu) -> list[str]:
    """Return the statements that combine the warps of a block through shared memory."""
    type, warp = c_type(element), gpu.warp_threads
    return [
        f"__shared__ {type} parts[{gpu.block_warps}];",
        "__syncthreads();",
        f"if (threadIdx.x % {warp} == 0)",
        f"    parts[threadIdx.x / {warp}] = value;",
        "__syncthreads();",
        "value = parts[0];",
        f"for (int warp = 1; warp < blockDim.x / {warp}; warp++) {{",
        f"    const {type} other = parts[warp];",
        f"    value = {updated(op, element, 'value', 'other')};",
        "}",
        "return value;",
    ]
