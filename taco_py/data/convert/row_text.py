"""C text that conversions by rows share: stored modes as expressions, values as words.

Quotient(1, 4)   →  j / 4
Difference(1, 0) →  j - i + (rows - 1)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from codegen.runtime.kernel_cache import KernelSource
from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.toolchain.errors import NoCompilerError
from codegen.types import INT32, INT64, UINT8, ScalarType
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.formats.stored_modes import (
    Difference,
    PlainMode,
    Quotient,
    Remainder,
    StoredMode,
)
from taco_py.language.notation.half_types import is_half

LEAST = 1 << 15
"""The number of entries from which compiled conversions are faster than NumPy's."""
PARALLEL = 1 << 16
"""The number of entries from which several threads are used."""
INDICES = {np.dtype("int32"): INT32, np.dtype("int64"): INT64}
WORDS = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t", 16: "taco_sixteen"}
"""Values are moved as words of their size."""
MODES, EXTENTS = ("i", "j"), ("rows", "columns")


def is_known(index: np.dtype[Any], dtype: np.dtype[Any]) -> bool:
    """Tell whether the C text supports these types of coordinates and values."""
    return index in INDICES and dtype.itemsize in WORDS


def expression(mode: StoredMode) -> str | None:
    """Write a stored mode of an entry (i, j) in C; None where it depends on other entries."""
    if isinstance(mode, PlainMode):
        return MODES[mode.mode]
    if isinstance(mode, Quotient):
        return f"{MODES[mode.mode]} / {mode.block}"
    if isinstance(mode, Remainder):
        return f"{MODES[mode.mode]} % {mode.block}"
    if isinstance(mode, Difference):
        name, other = MODES[mode.mode], mode.other
        return f"{name} - {MODES[other]} + ({EXTENTS[other]} - 1)"
    return None


def parameters(levels: int, index: ScalarType) -> tuple[Parameter, ...]:
    """Return the parameters of every function: arrays of CSR and of each level, sizes, threads."""
    arrays = [f"{name}{k}" for k in range(levels) for name in ("pos", "crd", "rank")]
    scalars = ("rows", "columns", *(f"size{k}" for k in range(levels)))
    return (
        *(Parameter(name, Kind.OUTPUT, index) for name in ("pos", "crd", *arrays)),
        *(Parameter(name, Kind.OUTPUT, UINT8) for name in ("values", "stored")),
        Parameter("found", Kind.OUTPUT, INT64),
        *(Parameter(name, Kind.SCALAR, INT64) for name in scalars),
        Parameter("threads", Kind.THREADS, INT32),
    )


def function(name: str, levels: int, body: str) -> str:
    """Return the C text of a conversion function of `levels` levels with this body."""
    arrays = [f"{n}{k}" for k in range(levels) for n in ("pos", "crd", "rank")]
    pointers = [f"INDEX *{name}" for name in ("pos", "crd", *arrays)]
    sizes = [f"int64_t {n}" for n in ("rows", "columns", *(f"size{k}" for k in range(levels)))]
    head = ", ".join((*pointers, "void *values", "void *stored", "int64_t *found", *sizes))
    return f"int32_t {name}({head}, int32_t threads)\n{{\n{body}\n}}\n"


def compiled(key: str, bodies: dict[str, str], levels: int, types: TensorData) -> Any:
    """Return the functions of these bodies, compiled at their first use; None without a C compiler.

    types  a tensor with coordinates and values of the types
    """
    index, dtype = index_of(types), types.dtype
    full_key = f"{key} {index.name} {dtype.itemsize} {_mask(dtype)}"
    functions = KERNELS.memo.get(full_key)
    if functions is None:
        try:
            built = KERNELS.get_or_build(full_key, lambda: _source(bodies, levels, index, dtype))
        except NoCompilerError:
            return None
        functions = built.kernel.functions
        KERNELS.memo.put(full_key, functions)
    return functions


def index_of(data: TensorData) -> np.dtype[Any]:
    """Return the type of the coordinates."""
    arrays = (a for level in data.levels for a in (level.pos, level.crd) if a is not None)
    return next((a.dtype for a in arrays), np.dtype(np.int32))


def as_bytes(values: Array) -> Array:
    """View the memory of an array as bytes."""
    return values.view(np.uint8)


def _mask(dtype: np.dtype[Any]) -> str:
    """Return the mask of the bits of a word that are 0 exactly where the value is 0.

    Values of sixteen bytes have the mask of half a word.
    """
    signed = dtype.kind in "fc" or is_half(dtype)
    bits = 8 * min(dtype.itemsize, 8)
    mask = (1 << bits) - 1
    if signed and dtype.kind == "c" and dtype.itemsize == 8:
        mask ^= (1 << 63) | (1 << 31)
    elif signed:
        mask ^= 1 << (bits - 1)
    return f"{mask:#x}u" + ("ll" if bits == 64 else "")


def _source(
    bodies: dict[str, str], levels: int, index: np.dtype[Any], dtype: np.dtype[Any]
) -> KernelSource:
    index_type = INDICES[index]
    signatures = tuple(Signature(name, parameters(levels, index_type)) for name in bodies)
    texts = [function(name, levels, body) for name, body in bodies.items()]
    word = _SIXTEEN if dtype.itemsize == 16 else _WORD
    text = _HEAD + word + "\n".join(texts)
    for name, replacement in (
        ("INDEX", index_type.c),
        ("VALUE", WORDS[dtype.itemsize]),
        ("MASK", _mask(dtype)),
    ):
        text = text.replace(name, replacement)
    return KernelSource(text, signatures)


_HEAD = """#include <stdint.h>
typedef struct { uint64_t halves[2]; } taco_sixteen;
"""
_WORD = """
#define same(a, b) ((a) == (b))
#define is_zero(a) (((a) & MASK) == 0)
"""
_SIXTEEN = """
static inline int same(VALUE a, VALUE b)
{
    return a.halves[0] == b.halves[0] && a.halves[1] == b.halves[1];
}

static inline int is_zero(VALUE a)
{
    return ((a.halves[0] | a.halves[1]) & MASK) == 0;
}
"""
