"""Vectors in CUDA: some neighbouring elements of an array that one instruction reads or writes.

    typedef float4 taco_float32x4;

Their place is a multiple of their size, which whoever writes the loop IR has to see to. Complex
numbers are two real ones each.
"""

from __future__ import annotations

import re

from codegen.types import SCALARS, ScalarType

_VECTOR = re.compile(r"taco_([a-z]+\d+)x(\d+)")
_OF_INTEGERS = {8: "char", 16: "short", 32: "int", 64: "longlong"}
_OF_FLOATS = {32: "float", 64: "double"}


def vector_type(name: str) -> str | None:
    """Return the definition of a type that `types.vector` names; None of other names."""
    match = _VECTOR.fullmatch(name)
    if match is None or match[1] not in SCALARS:
        return None
    element, lanes = SCALARS[match[1]], int(match[2])
    bits = element.bits
    if element.kind == "complex":
        bits, lanes = bits // 2, 2 * lanes
    return f"typedef {_of_cuda(element, bits)}{lanes} {name};"


def _of_cuda(element: ScalarType, bits: int) -> str:
    """Return CUDA's name of the elements: `float` of `float4`."""
    if element.is_integer:
        return f"{'u' if element.kind == 'uint' else ''}{_OF_INTEGERS[bits]}"
    return _OF_FLOATS[bits]
