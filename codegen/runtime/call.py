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
MemoryError when the kernel runs out of memory. The interpreter lock is released during the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_never

import numpy as np

from codegen.runtime.host import Host
from codegen.runtime.memory import Pool
from codegen.runtime.signature import Kind, Parameter, Signature

KernelCall = Callable[..., Any]

# `enum taco_kind` of taco_python.c.
_INPUT, _OUTPUT, _GROWING, _INTEGER, _UNSIGNED, _REAL, _COMPLEX, _THREADS = range(8)
_SCALARS = {
    "bool": _INTEGER,
    "int": _INTEGER,
    "uint": _UNSIGNED,
    "float": _REAL,
    "complex": _COMPLEX,
}
# The letters of the buffer protocol (the struct module's, and Z for complex) that mean each kind.
# NumPy says l or q for 8-byte integers depending on the platform; the size tells them apart.
_CODES = {"bool": "?", "int": "bhilq", "uint": "BHILQ", "float": "fd", "complex": "Z"}


def callables(
    host: Host, pool: Pool, entry: int, signatures: tuple[Signature, ...]
) -> dict[str, KernelCall]:
    """A callable for each function of the kernel whose entry point is at the address `entry`."""
    return {s.name: _callable(host, pool, entry, i, s) for i, s in enumerate(signatures)}


def _callable(host: Host, pool: Pool, entry: int, number: int, signature: Signature) -> KernelCall:
    if host.bind is not None:
        rows = tuple(_row(p) for p in signature.parameters)
        raw = host.bind(entry, number, signature.name, rows)
    else:
        raw = _through_cffi(host, entry, number, signature)
    growing = [
        (i, np.dtype(p.element.name))
        for i, p in enumerate(signature.parameters)
        if p.kind is Kind.GROWING
    ]
    return _growing_call(raw, pool, growing) if growing else raw


def _row(p: Parameter) -> tuple[str, int, int, str]:
    """What `bind` wants to know of a parameter."""
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
    return (p.name, kind, p.element.itemsize, _CODES[p.element.kind])


def _growing_call(raw: KernelCall, pool: Pool, growing: list[tuple[int, Any]]) -> KernelCall:
    """`raw` with its growing arrays made of spare blocks of `pool` and returned as arrays.

    The sizes of the last results tell which spare blocks suit the next.
    """
    expected = [0] * len(growing)

    def call(*arguments: Any) -> tuple[Any, ...]:
        given = list(arguments)
        for k, (i, dtype) in enumerate(growing):
            room = int(given[i])
            given[i] = (room, *pool.take(max(room * dtype.itemsize, expected[k])))
        grown = raw(*given)
        results = []
        for k, (i, dtype) in enumerate(growing):
            address, length, mapped, spare_left = grown[4 * k : 4 * k + 4]
            if spare_left:
                pool.give(given[i][1], spare_left)
            expected[k] = length * dtype.itemsize
            results.append(pool.adopt(address, length, mapped, dtype))
        return tuple(results)

    return call


# ---------------------------------------------------------------- without Python's headers


def _through_cffi(host: Host, entry: int, number: int, signature: Signature) -> KernelCall:
    """What `bind` makes, in Python: for hosts in ABI mode."""
    new, lib = host.ffi.new, host.lib
    parameters = signature.parameters
    address = host.ffi.cast("void *", entry)

    def call(*given: Any) -> tuple[int, ...] | None:
        if len(given) != len(parameters):
            raise TypeError(f"Expected {len(parameters)} arguments, found {len(given)}")
        arguments = new("taco_argument[]", len(parameters))
        buffers = []
        try:
            for p, argument, value in zip(parameters, arguments, given, strict=True):
                if p.kind is Kind.GROWING:
                    buffers.append(new("taco_buffer *"))
                    _open_buffer(host, p, buffers[-1], value)
                    argument.buffer = buffers[-1]
                else:
                    _set_argument(host, p, argument, value)
            if lib.taco_invoke(address, number, arguments) != 0:
                raise MemoryError
        except BaseException:
            for buffer in buffers:
                lib.taco_discard(buffer)
            raise
        return _facts(host, buffers) if buffers else None

    return call


def _open_buffer(host: Host, p: Parameter, buffer: Any, value: tuple[int, int, int]) -> None:
    room, spare, spare_bytes = value
    buffer.spare = host.ffi.cast("void *", spare)
    buffer.spare_bytes = spare_bytes
    if host.lib.taco_make_room(buffer, room, p.element.itemsize):
        raise MemoryError


def _set_argument(host: Host, p: Parameter, argument: Any, value: Any) -> None:
    match p.kind:
        case Kind.INPUT | Kind.OUTPUT:
            argument.pointer = host.ffi.cast("void *", _array_address(p, value))
        case Kind.SCALAR if p.element.kind == "complex":
            argument.parts[0], argument.parts[1] = complex(value).real, complex(value).imag
        case Kind.SCALAR if p.element.kind == "float":
            argument.real = value
        case Kind.SCALAR if p.element.kind == "uint":
            argument.natural = value
        case Kind.SCALAR:
            argument.integer = value
        case Kind.THREADS:
            argument.integer = 1 if host.lib.taco_in_child() else max(1, value)
        case Kind.GROWING:
            raise AssertionError("growing arrays are opened by _open_buffer")
        case _:
            assert_never(p.kind)


def _array_address(p: Parameter, array: Any) -> int:
    """The address of the first element: `__array_interface__` knows it for any strides."""
    if not isinstance(array, np.ndarray) or array.dtype != np.dtype(p.element.name):
        found = getattr(array, "dtype", type(array).__name__)
        raise TypeError(f"Expected an array of {p.element} for {p.name}, found {found}")
    if p.kind is Kind.OUTPUT and not array.flags.writeable:
        raise ValueError(f"Expected a writable array for {p.name}, found a read-only one")
    return int(array.__array_interface__["data"][0])


def _facts(host: Host, buffers: list[Any]) -> tuple[int, ...]:
    """Address, length, bytes mapped and spare bytes left of each buffer, as taco_python.c says them."""
    facts: list[int] = []
    for b in buffers:
        facts += (int(host.ffi.cast("intptr_t", b.data)), b.length, b.mapped, b.spare_bytes)
    return tuple(facts)
