"""Functions that kernels in CUDA call, defined in the text of each that calls them.

taco_min_f64(a, b)               the smaller number, or a NaN
taco_search_int32(a, s, e, v)    the first place in a[s:e] with at least v
taco_atomic_add_f64(&y[i], v)    y[i] += v as one operation

They are those of kernels in C, read from the same headers; functions of CUDA's own library stand
for those of C's, to which they are equal within a few units in the last place.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from codegen.emit.cuda_atomics import atomic_function
from codegen.emit.cuda_combining import combining_function
from codegen.emit.cuda_fetching import fetching_function
from codegen.emit.cuda_runs import runs_function
from codegen.emit.cuda_sorting import sorting_function
from codegen.emit.cuda_vectors import vector_type
from codegen.libraries.header_functions import Header, HeaderFunction
from codegen.libraries.scalar_functions import CFunction
from codegen.machine.gpu import Gpu
from codegen.machine.target import UnsupportedError

HEADERS = tuple(map(Header, ("taco_complex.h", "taco_math.h", "taco_runtime.h")))
"""Where functions are looked for, first in the first."""

_OF_TYPES = (atomic_function, fetching_function, vector_type)
"""What gives the text of a function that is made for a type."""
_OF_WARPS = (combining_function, runs_function, sorting_function)
"""What gives that of a function which also depends on how many threads a warp has."""

_NAME = re.compile(r"\btaco_\w+")
_IN_PAIRS: Mapping[str, str] = {
    r"\bfloat _Complex\b": "float2",
    r"\bdouble _Complex\b": "double2",
    r"__real__ (\w+)": r"\1.x",
    r"__imag__ (\w+)": r"\1.y",
    r"\b__builtin_(cabs|cexp|clog|cpow)f\(": r"taco_\1_c64(",
    r"\b__builtin_(cabs|cexp|clog|cpow)\(": r"taco_\1_c128(",
    r"\b__builtin_(\w+)": r"\1",
    r"\b__FLT_MAX__\b": "3.40282346638528859812e+38f",
    r"\b__DBL_MAX__\b": "1.79769313486231570815e+308",
}
"""Words of GNU C in headers, and what CUDA says for them: a complex number is a pair."""

_MACROS: Mapping[str, str] = {
    "INFINITY": "__int_as_float(0x7f800000)",
    "NAN": "__int_as_float(0x7fffffff)",
    "UINT64_C(x)": "x##ull",
}
"""What a compiler without the headers of C lacks."""


def definitions(kernels: Sequence[str], called: Iterable[CFunction], gpu: Gpu) -> list[str]:
    """Return the definitions of the functions that kernels call, in order of their dependences.

    called  the scalar functions among it, of which some bring their text
    gpu     what runs them. Raises UnsupportedError.
    """
    texts = {
        function.name: function.in_pairs or function.definition
        for function in called
        if function.definition
    }
    bodies: dict[str, str] = {}
    waiting: set[str] = set()

    def define(text: str) -> None:
        for name in _NAME.findall(text):
            if name not in waiting:
                waiting.add(name)
                body = _users(texts[name]) if name in texts else _definition(name, gpu)
                define(body)
                bodies[name] = body

    for kernel in kernels:
        define(kernel)
    return [*_macros([*kernels, *bodies.values()]), *bodies.values()]


def _macros(texts: Sequence[str]) -> list[str]:
    lines = []
    for macro, value in _MACROS.items():
        word = macro.partition("(")[0]
        if any(re.search(rf"\b{word}\b", text) for text in texts):
            lines += [f"#ifndef {word}", f"#define {macro} {value}", "#endif"]
    return ["\n".join(lines)] if lines else []


def _definition(name: str, gpu: Gpu) -> str:
    """Return the definition of a function or a type that kernels have a name for."""
    texts = chain((of(name) for of in _OF_TYPES), (of(name, gpu) for of in _OF_WARPS))
    text = next((text for text in texts if text is not None), None)
    if text is not None:
        return text
    for header in HEADERS:
        function = header.function(name)
        if function is not None:
            return _function(function)
        type = header.type(name)
        if type is not None:
            return type
    raise UnsupportedError(f"kernels in CUDA cannot call {name} yet")


def _function(function: HeaderFunction) -> str:
    head = f"static __device__ inline {function.type} {function.name}({function.parameters})"
    text = f"{head}\n{{\n{textwrap.indent(function.body, '    ')}\n}}"
    for before, after in _IN_PAIRS.items():
        text = re.sub(before, after, text)
    return text


def _users(definition: str) -> str:
    """Return a function of C text, which brings its definition. Raises UnsupportedError."""
    if re.search(r"\bcomplex\b", definition):
        name = re.search(r"\b(\w+)\(", definition)
        raise UnsupportedError(
            f"kernels in CUDA have no C text of complex numbers, as {name and name[1]} is"
        )
    return re.sub(r"^static inline\b", "static __device__ inline", definition)
