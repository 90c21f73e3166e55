"""Changes of a whole number in memory that tell what it was before, as one operation, in CUDA.

    static __device__ inline int32_t taco_swap_i32(int32_t *place, int32_t expected, int32_t value)
    {
        return (int32_t)atomicCAS((unsigned int *)place, (unsigned int)expected,
                                  (unsigned int)value);
    }

taco_fetch_i32(place, value) adds the value.
"""

from __future__ import annotations

import re

from codegen.emit.cuda_updates import TYPES, suffix
from codegen.machine.target import UnsupportedError
from codegen.types import ScalarType

_FETCHING = re.compile(r"taco_(swap|fetch)_([iu](?:32|64))")
_WORDS = {32: "unsigned int", 64: "unsigned long long"}


def fetching_name(operation: str, element: ScalarType) -> str:
    """Return the name of the atomic function that adds or swaps and returns the old value.

    Raises UnsupportedError for types without one.
    """
    if not element.is_integer or element.bits not in _WORDS:
        raise UnsupportedError(f"kernels in CUDA have no {operation} of {element} that tells more")
    return f"taco_{'fetch' if operation == 'add' else operation}_{suffix(element)}"


def fetching_function(name: str) -> str | None:
    """Return the definition of a function that `fetching_name` names; None of other names."""
    match = _FETCHING.fullmatch(name)
    if match is None:
        return None
    element = TYPES[match[2]]
    type, word = element.c, _WORDS[element.bits]
    swaps = match[1] == "swap"
    operands = f"({word})expected, ({word})value" if swaps else f"({word})value"
    call = f"{'atomicCAS' if swaps else 'atomicAdd'}(({word} *)place, {operands})"
    expected = f"{type} expected, " if swaps else ""
    head = f"static __device__ inline {type} {name}({type} *place, {expected}{type} value)"
    return "\n".join([head, "{", f"    return ({type}){call};", "}"])
