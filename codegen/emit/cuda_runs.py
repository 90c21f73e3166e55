"""Updates of memory by the lanes of a warp, in CUDA: lanes side by side at one element update once.

    static __device__ inline void taco_runs_add_f64(double *array, int64_t place, double value)
    {
        if (!__any_sync(0xffffffff, place >= 0))
            return;
        const int lane = threadIdx.x % 32;
        const int64_t before = __shfl_up_sync(0xffffffff, place, 1);
        const unsigned heads = __ballot_sync(0xffffffff, lane == 0 || before != place);
        const int behind = __clz(heads << (31 - lane));
        for (int step = 1; step < 32; step *= 2) {
            const double other = __shfl_up_sync(0xffffffff, value, step);
            if (step <= behind)
                value = other + value;
        }
        if (place >= 0 && (lane == 31 || heads >> (lane + 1) & 1))
            taco_atomic_add_f64(&array[place], value);
    }

`behind` is how many lanes a lane is behind the first of its run. Values are combined in the order
of the lanes. (Sengupta et al. 2007, Scan primitives for GPU computing: a segmented scan.)
"""

from __future__ import annotations

import re

from codegen.emit.cuda_atomics import atomic_name
from codegen.emit.cuda_updates import BY_NAME, TYPES, c_type, updated
from codegen.emit.cuda_warps import full_mask, leading_zeros, mask_type
from codegen.machine.gpu import Gpu
from codegen.passes.gpu.lane_runs import ANY_LANE
from codegen.types import ScalarType

_RUNS = re.compile(r"taco_runs_(\w+)_([biufc]\d+)")


def runs_name(op: str, element: ScalarType) -> str:
    """Return the function by which the lanes of a warp update elements. Raises UnsupportedError."""
    return atomic_name(op, element).replace("atomic", "runs", 1)


def runs_function(name: str, gpu: Gpu) -> str | None:
    """Return the definition of a function that `runs_name` names, or that lanes vote by; None of
    other names."""
    if name == ANY_LANE:
        return _voting(full_mask(gpu))
    match = _RUNS.fullmatch(name)
    if match is None:
        return None
    op, element = BY_NAME.get(match[1], match[1]), TYPES[match[2]]
    combining, type = {"-": "+", "/": "*"}.get(op, op), c_type(element)
    warp, mask = gpu.warp_threads, full_mask(gpu)
    lines = [
        f"if (!__any_sync({mask}, place >= 0))",
        "    return;",
        f"const int lane = threadIdx.x % {warp};",
        f"const int64_t before = __shfl_up_sync({mask}, place, 1);",
        f"const {mask_type(gpu)} heads = __ballot_sync({mask}, lane == 0 || before != place);",
        f"const int behind = {leading_zeros(gpu, 'heads', 'lane')};",
        f"for (int step = 1; step < {warp}; step *= 2) {{",
        *(f"    {line}" for line in _other(element, mask)),
        "    if (step <= behind)",
        f"        value = {updated(combining, element, 'other', 'value')};",
        "}",
        f"if (place >= 0 && (lane == {warp - 1} || heads >> (lane + 1) & 1))",
        f"    {atomic_name(op, element)}(&array[place], value);",
    ]
    head = f"static __device__ inline void {name}({type} *array, int64_t place, {type} value)"
    return "\n".join([head, "{", *(f"    {line}" for line in lines), "}"])


def _other(element: ScalarType, mask: str) -> list[str]:
    """Return the value of the lane that is so many steps before."""
    type = c_type(element)
    if element.kind != "complex":
        return [f"const {type} other = __shfl_up_sync({mask}, value, step);"]
    parts = [f"other.{part} = __shfl_up_sync({mask}, value.{part}, step);" for part in "xy"]
    return [f"{type} other;", *parts]


def _voting(mask: str) -> str:
    lines = ["{", f"    return __any_sync({mask}, condition);", "}"]
    return "\n".join([f"static __device__ inline bool {ANY_LANE}(bool condition)", *lines])
