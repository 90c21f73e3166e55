"""Python callables for the functions of a loaded kernel.

`callables(host, pool, entry, signatures)` maps each function's name to a callable that takes the
arguments in the order of its signature:

    INPUT, OUTPUT  NumPy arrays of exactly the element type, of any strides; the function sees the
                   address of the first element, so what lies behind it is the caller's promise
    GROWING        an int: elements to make room for from the start, or 0
    SCALAR         Python numbers
    THREADS        an int; in a process forked from another it counts as 1

and returns the growing arrays, in order, as a tuple of 1-D arrays that own their memory. Raises
TypeError for arguments of another type, ValueError for an OUTPUT array that is read-only, and
MemoryError when the kernel runs out of memory, and OverflowError when a growing array passes the
limit that the kernel sets it. The interpreter lock is released during the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

import numpy as np

from codegen.runtime.host import Host
from codegen.runtime.memory.memory_pool import Pool
from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.types import BFLOAT16

KernelCall = Callable[..., Any]

# `enum taco_kind` of taco_python.c.
_INPUT, _OUTPUT, _GROWING, _INTEGER, _UNSIGNED, _REAL, _COMPLEX, _THREADS, _TRUTH = range(9)
_SCALARS = {
    "bool": _TRUTH,
    "int": _INTEGER,
    "uint": _UNSIGNED,
    "float": _REAL,
    "complex": _COMPLEX,
}
# The letters of the buffer protocol (the struct module's, and Z for complex) that mean each kind.
# NumPy says l or q for 8-byte integers depending on the platform; the size tells them apart.
_CODES = {"bool": "?", "int": "bhilq", "uint": "BHILQ", "float": "fd", "complex": "Z", "half": "e"}

# The buffer protocol has no letter for bfloat16: such arrays are passed as uint16 (`in_buffer`).
_BITS = "H"


def in_buffer(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the array as functions take it: its bits where the buffer protocol has no such type.

    bfloat16  →  uint16
    """
    return array.view(np.uint16) if array.dtype.kind == "V" else array


def callables(
    host: Host, pool: Pool, entry: int, signatures: tuple[Signature, ...]
) -> dict[str, KernelCall]:
    """Return a callable for each function of the kernel whose entry point is at the address
    `entry`."""
    return {s.name: _callable(host, pool, entry, i, s) for i, s in enumerate(signatures)}


def _callable(host: Host, pool: Pool, entry: int, number: int, signature: Signature) -> KernelCall:
    rows = tuple(_row(p) for p in signature.parameters)
    raw = host.bind(entry, number, signature.name.encode(), rows)
    growing = [
        (i, np.dtype(p.element.name))
        for i, p in enumerate(signature.parameters)
        if p.kind is Kind.GROWING
    ]
    return _growing_call(raw, pool, signature, growing) if growing else raw


def _row(p: Parameter) -> tuple[str, int, int, str]:
    """Return the description of a parameter for `bind`."""
    match p.kind:
        case Kind.INPUT:
            kind = _INPUT
        case Kind.OUTPUT:
            kind = _OUTPUT
        case Kind.GROWING:
            kind = _GROWING
        case Kind.SCALAR:
            kind = _SCALARS[p.element.kind]
        case Kind.THREADS:
            kind = _THREADS
        case _:
            assert_never(p.kind)
    codes = _BITS if p.element == BFLOAT16 else _CODES[p.element.kind]
    return (p.name, kind, p.element.itemsize, codes)


def _growing_call(
    raw: KernelCall, pool: Pool, signature: Signature, growing: list[tuple[int, Any]]
) -> KernelCall:
    """Return `raw` with its growing arrays made of spare blocks of `pool` and returned as arrays.

    The sizes of the last results tell which spare blocks suit the next.
    """
    expected = [0] * len(growing)
    name, count = signature.name, len(signature.parameters)

    def call(*arguments: Any) -> tuple[Any, ...]:
        values = list(arguments)
        if len(values) != count:
            raise TypeError(f"Expected {count} arguments for {name}, found {len(values)}")
        rooms = [int(values[i]) for i, _ in growing]
        most = pool.memory.budget if pool.memory.on else None
        if most is None:
            most = -1
        else:  # what is reserved counts as taken
            rooms = [
                min(room, most // (2 * len(rooms) * t.itemsize))
                for room, (_, t) in zip(rooms, growing, strict=True)
            ]
        # From here on the spare blocks are in the hands of `raw`, which frees them if it fails.
        since = []
        for k, (i, dtype) in enumerate(growing):
            address, mapped, last = pool.take(max(rooms[k] * dtype.itemsize, expected[k]))
            values[i] = (rooms[k], address, mapped, most)
            since.append(last)
        try:
            grown = raw(*values)
        except MemoryError:
            if not pool.clear():
                raise
            for k, (i, _) in enumerate(growing):
                values[i] = (rooms[k], 0, 0, most)
            grown = raw(*values)
        results = []
        for k, (i, dtype) in enumerate(growing):
            address, length, mapped, spare_left = grown[4 * k : 4 * k + 4]
            if spare_left:
                pool.put(values[i][1], spare_left, since[k])
            expected[k] = length * dtype.itemsize
            results.append(pool.adopt(address, length, mapped, dtype))
        return tuple(results)

    return call
