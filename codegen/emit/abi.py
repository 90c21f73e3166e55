"""How a function of the loop IR appears in C: its prototype and the names that belong to it.

Arrays come first, then scalars, then `int32_t threads` if the function is threaded; the result is
0, or 1 when memory ran out. `codegen.runtime.signature` says the same to the caller.
"""

from __future__ import annotations

from codegen.ir import Array, Function, Module, Storage, Table, Var
from codegen.tree import walk
from codegen.types import INT32

THREADS = Var("threads", INT32)
"""The number of threads, in scope in the body of every threaded function."""
INTERNAL, EXPORTED = "static TACO_INTERNAL int32_t", "int32_t"
"""The specifiers of functions for their module alone, and of those for its callers."""


def buffer_name(array: Array) -> str:
    """Return the name of the `taco_buffer` that holds an array which can grow."""
    return f"{array.name}_buffer"


def names_of(module: Module) -> frozenset[str]:
    """Return the names that variables, arrays, their buffers and tables of `module` have in C."""
    nodes = {node for node in walk(module) if isinstance(node, Var | Array | Table)}
    buffers = (buffer_name(node) for node in nodes if isinstance(node, Array))
    return frozenset((*(node.name for node in nodes), *buffers))


def parameters(function: Function) -> list[str]:
    """Return the declarations of the parameters of `function`, in the order of the call."""
    arrays = [_array_parameter(array) for array in function.arrays]
    scalars = [f"{var.type.c} {var.name}" for var in function.scalars]
    threads = [f"{THREADS.type.c} {THREADS.name}"] if function.threaded else []
    return arrays + scalars + threads


def _array_parameter(array: Array) -> str:
    if array.storage is Storage.GROWING:
        return f"taco_buffer *{buffer_name(array)}"
    const = "const " if array.storage is Storage.INPUT else ""
    return f"{const}{array.element.c} *restrict {array.name}"


def prototype(function: Function) -> str:
    """Return the head of the C definition of `function`, on one line."""
    return f"{linkage(function)} {function.name}({', '.join(parameters(function)) or 'void'})"


def linkage(function: Function) -> str:
    """Return the specifiers before the name: internal functions are static and never inlined."""
    return INTERNAL if function.internal else EXPORTED
