"""What a call of a program found, kept for calls like it.

The checks of a call and its kernel depend on the sizes that are passed and, of each array, on its
dtype, shape and strides, and on whether it is aligned and can be written. Calls that agree in these
pass the same arguments but for the arrays themselves; only whether arrays overlap is left to check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.operands import as_number, is_number
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import Array

ALIGNED_OR_WRITEABLE = 0x0500
"""The two of NumPy's array flags that matter."""
Key = tuple[Any, ...]


def call_key(
    text: str,
    tensors: tuple[str, ...],
    sizes: tuple[str, ...],
    operands: Mapping[str, Any],
    wish: Key,
) -> Key | None:
    """Return the key of a call; None where an operand is missing or has no type.

    wish  what a call says besides its operands
    """
    if len(operands) != len(tensors) + len(sizes):
        return None
    key: list[Any] = [text, *wish]
    try:
        for name in tensors:
            operand = operands[name]
            kind = type(operand)
            if kind is np.ndarray:
                flags = operand.flags.num & ALIGNED_OR_WRITEABLE
                key += (operand.dtype, operand.shape, operand.strides, flags)
            elif is_number(operand) or isinstance(operand, np.generic):
                key.append(kind)
            else:
                return None
        for name in sizes:
            size = operands[name]
            if type(size) is not int:
                return None
            key.append(size)
    except KeyError:
        return None
    return tuple(key)


@dataclass(frozen=True, slots=True, eq=False)
class Remembered:
    """A checked call: what its kernel is called with.

    arguments  in order; arrays and numbers have None
    arrays     where each array goes
    read       where each number goes that is passed as an array or a NumPy number
    numbers    where each Python number goes, and the dtype that it has with these operands
    common     the dtypes that a Python number meets
    disjoint   pairs of arrays that must not overlap
    """

    call: Callable[..., Any]
    arguments: tuple[Any, ...]
    arrays: tuple[tuple[int, str], ...]
    read: tuple[tuple[int, str], ...]
    numbers: tuple[tuple[int, str, np.dtype[Any]], ...]
    common: tuple[np.dtype[Any], ...]
    disjoint: tuple[tuple[str, str], ...]

    def run(self, operands: Mapping[str, Any]) -> bool:
        """Run the kernel on them, which have the key of this call; False where arrays may overlap
        or a number asks for another kernel, and nothing was done."""
        for one, other in self.disjoint:
            if np.may_share_memory(operands[one], operands[other]):
                return False
        values = list(self.arguments)
        for place, name in self.arrays:
            values[place] = operands[name]
        for place, name in self.read:
            values[place] = operands[name][()]
        for place, name, dtype in self.numbers:
            value = operands[name]
            if np.result_type(*self.common, value) != dtype:
                return False
            values[place] = as_number(value, dtype, name)[()]
        self.call(*values)
        return True


def find_call(key: Key | None) -> Remembered | None:
    """Return the call that was kept under `key`."""
    call: Remembered | None = None if key is None else KERNELS.memo.get(("call", key))
    return call


def keep_call(
    key: Key | None,
    call: Callable[..., Any],
    arguments: Iterable[tuple[str, Any]],
    operands: Mapping[str, Any],
    arrays: Mapping[str, Array],
    outputs: frozenset[str],
) -> None:
    """Keep a call that was checked, where its kernel works on the arrays of the user.

    arguments  what each is, "values" or "number" of an operand, or "" and its value
    arrays     what the checks made of the operands
    """
    theirs = [name for name in arrays if isinstance(operands[name], np.ndarray)]
    if key is None or any(arrays[name] is not operands[name] for name in theirs):
        return
    weak = {name for name in arrays if is_number(operands[name])}
    placed = [(place, what, value) for place, (what, value) in enumerate(arguments)]
    numbers = [(place, name) for place, what, name in placed if what == "number"]
    pairs = {(min(one, other), max(one, other)) for one in outputs for other in theirs}
    remembered = Remembered(
        call,
        tuple(None if what else value for _, what, value in placed),
        tuple((place, name) for place, what, name in placed if what == "values"),
        tuple((place, name) for place, name in numbers if name not in weak),
        tuple((place, name, arrays[name].dtype) for place, name in numbers if name in weak),
        tuple(dict.fromkeys(arrays[name].dtype for name in arrays if name not in weak)),
        tuple((one, other) for one, other in sorted(pairs) if one != other),
    )
    KERNELS.memo.put(("call", key), remembered)
