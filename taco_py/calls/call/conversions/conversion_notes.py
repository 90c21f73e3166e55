"""What explain() says of operands that are read in plain formats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from taco_py.calls.remapped.remapped_call import is_in_blocks
from taco_py.data.convert.remap import plain_format
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.tensors.remapped_tensor import RemappedTensor

CONVERTED = ("bsr", "dia", "dok", "lil")
"""SciPy's formats that plain kernels do not read."""


def converted_names(objects: Mapping[str, Any]) -> list[str]:
    """Return the names of operands of which plain arrays are made before kernels run."""
    return [n for n, o in objects.items() if isinstance(o, RemappedTensor) or _is_converted(o)]


def conversion_notes(
    objects: Mapping[str, Any], names: Iterable[str], reasons: Mapping[str, str], reason: str = ""
) -> list[str]:
    """Describe the operands that are read in plain formats, with the reasons.

    names    of the operands
    reasons  by name; `reason` is that of others
    """
    return [_note(name, objects[name], reasons.get(name, reason)) for name in names]


def _is_converted(obj: Any) -> bool:
    """Tell whether a CSR array is made of an object of SciPy's before a call over plain formats."""
    if not is_scipy_sparse(obj) or obj.format not in CONVERTED:
        return False
    return obj.format != "bsr" or is_in_blocks(obj)


def _note(name: str, obj: Any, reason: str) -> str:
    """Describe the conversion of an operand: its target, how often it happens, and the reason."""
    if isinstance(obj, RemappedTensor):
        plain = plain_format(obj.order)
        return f"{name}: from {obj.format} to {plain}, once and kept with the Tensor, for {reason}"
    because = f"for {reason}" if is_in_blocks(obj) else "which kernels read"
    remedy = f"tp.tensor({name}) is converted once"
    return f"{name}: from scipy's {obj.format} to CSR at each call, {because}; {remedy}"
