"""The C entry point through which a kernel's functions are called.

For `int32_t dot(const double *x, const double *y, double *s, int64_t n)` in `kernel.c` it is

    #define TACO_ARRAYS 0
    #define TACO_SORTING 0
    #include "taco_runtime.h"
    #include "kernel.c"

    extern __typeof__(dot) dot TACO_APART;
    TACO_EXPORT int32_t taco_call(int32_t function, const taco_argument *a)
    {
        switch (function) {
        case 0:
            return dot(a[0].pointer, a[1].pointer, a[2].pointer, a[3].integer);
        }
        return -1;
    }

Nothing else is exported: a function called `wait` must not be replaced by the C library's. The
functions stay functions of their own: with one of them inlined here, gcc 12 has kept y[1] in a
register through a loop of `y[1] -= y[a] * x[a]`, in which y[a] is y[1] once.
"""

from __future__ import annotations

from typing import assert_never

from codegen.runtime.runtime_library import definitions
from codegen.runtime.signature import Kind, Parameter, Signature

_FIELDS = {"bool": "integer", "int": "integer", "uint": "natural", "float": "real"}


def entry_text(source_file: str, signatures: tuple[Signature, ...]) -> str:
    """Return C that includes `source_file` and defines `taco_call` for its functions in order."""
    cases = "".join(_case(i, s) for i, s in enumerate(signatures))
    declarations = "".join(
        f"extern __typeof__({s.name}) {s.name} TACO_APART;\n" for s in signatures
    )
    return f"""{definitions(None)}#include "taco_runtime.h"
#include "{source_file}"

{declarations}TACO_EXPORT int32_t taco_call(int32_t function, const taco_argument *a)
{{
    switch (function) {{
{cases}    }}
    (void)a;
    return -1;
}}
"""


def _case(number: int, signature: Signature) -> str:
    arguments = ", ".join(_argument(i, p) for i, p in enumerate(signature.parameters))
    return f"    case {number}:\n        return {signature.name}({arguments});\n"


def _argument(i: int, p: Parameter) -> str:
    match p.kind:
        case Kind.INPUT | Kind.OUTPUT:
            return f"a[{i}].pointer"
        case Kind.GROWING:
            return f"a[{i}].buffer"
        case Kind.SCALAR if p.element.kind == "complex":
            return f"a[{i}].parts[0] + a[{i}].parts[1] * I"
        case Kind.SCALAR:
            return f"({p.element.c})a[{i}].{_FIELDS[p.element.kind]}"
        case Kind.THREADS:
            return f"({p.element.c})a[{i}].integer"
        case _:
            assert_never(p.kind)
