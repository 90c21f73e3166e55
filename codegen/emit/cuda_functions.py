"""Functions that kernels in CUDA call, defined in the text of each that calls them.

taco_min_f64(a, b)               the smaller number, or a NaN
taco_search_int32(a, s, e, v)    the first place in a[s:e] with at least v
taco_atomic_add_f64(&y[i], v)    y[i] += v as one operation
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from codegen.emit.statements import update_lines
from codegen.ir import Var
from codegen.libraries.scalar_functions import FLOATS
from codegen.target import UnsupportedError
from codegen.types import FLOAT32, FLOAT64, SCALARS, ScalarType

_NAME = re.compile(r"\btaco_\w+(?=\()")
_SUFFIXES = {"bool": "b", "int": "i", "uint": "u", "float": "f"}
_TYPES: dict[str, ScalarType] = {
    f"{_SUFFIXES[t.kind]}{t.bits}": t for t in SCALARS.values() if t.kind in _SUFFIXES
}
_OPERATIONS = {
    "+": "add", "*": "mul", "-": "sub", "/": "div", "min": "min", "max": "max", "&&": "all",
    "||": "any", "&": "and", "|": "or", "^": "xor",
}  # fmt: skip
_BY_NAME = {name: op for op, name in _OPERATIONS.items()}


def atomic_name(op: str, element: ScalarType) -> str:
    """The function that updates an element in one operation. Raises UnsupportedError."""
    if op not in _OPERATIONS or element.kind not in _SUFFIXES:
        raise UnsupportedError(f"kernels in CUDA have no atomic {op} of {element} yet")
    return f"taco_atomic_{_OPERATIONS[op]}_{_SUFFIXES[element.kind]}{element.bits}"


def combining_name(units: str, op: str, type: ScalarType) -> str:
    """The function by which units combine what they have. Raises UnsupportedError."""
    if type.kind not in _SUFFIXES:
        raise UnsupportedError(f"threads in CUDA cannot combine values of {type} yet")
    return f"taco_{units}_{_OPERATIONS.get(op, op)}_{_SUFFIXES[type.kind]}{type.bits}"


def definitions(kernels: Sequence[str]) -> list[str]:
    """The definitions of the functions that kernels call, each behind those that it calls."""
    found: dict[str, str] = {}

    def define(text: str) -> None:
        for name in _NAME.findall(text):
            if name not in found and name not in waiting:
                waiting.add(name)
                body = _definition(name)
                define(body)
                found[name] = body

    waiting: set[str] = set()
    for kernel in kernels:
        define(kernel)
    return list(found.values())


def _definition(name: str) -> str:
    for pattern, make in _MAKERS:
        match = re.fullmatch(pattern, name)
        if match is not None:
            return make(*match.groups())
    raise UnsupportedError(f"kernels in CUDA cannot call {name} yet")


def _function(type: str, name: str, parameters: str, *lines: str) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"static __device__ inline {type} {name}({parameters})\n{{\n{body}\n}}"


def _extremum(op: str, suffix: str) -> str:
    type, sign = _TYPES[suffix], {"min": "<", "max": ">"}[op]
    nan = " || a != a" if type.kind == "float" else ""
    name, parameters = f"taco_{op}_{suffix}", f"{type.c} a, {type.c} b"
    return _function(type.c, name, parameters, f"return a {sign} b{nan} ? a : b;")


def _search(bits: str) -> str:
    return _function(
        "int64_t", f"taco_search_int{bits}",
        f"const int{bits}_t *a, int64_t start, int64_t stop, int64_t value",
        "while (start < stop) {",
        "    const int64_t middle = start + (stop - start) / 2;",
        "    if (a[middle] < value)",
        "        start = middle + 1;",
        "    else",
        "        stop = middle;",
        "}",
        "return start;",
    )  # fmt: skip


def _gallop(bits: str) -> str:
    return _function(
        "int64_t", f"taco_gallop_int{bits}",
        f"const int{bits}_t *a, int64_t start, int64_t stop, int64_t value",
        "int64_t step = 1;",
        "while (step < stop - start && a[start + step] < value) {",
        "    start += step;",
        "    step *= 2;",
        "}",
        "if (step < stop - start)",
        "    stop = start + step;",
        f"return taco_search_int{bits}(a, start, stop, value);",
    )  # fmt: skip


def _atomic(operation: str, suffix: str) -> str:
    """By CUDA's own function where there is one; else compare and swap, tried again where another
    thread has come between."""
    type, op = _TYPES[suffix], _BY_NAME[operation]
    own = _own_atomic(op, type)
    head = (f"taco_atomic_{operation}_{suffix}", f"{type.c} *place, {type.c} value")
    if own is not None:
        return _function("void", *head, own)
    if type.bits not in (32, 64):
        raise UnsupportedError(f"kernels in CUDA have no atomic {op} of {type} yet")
    word = "unsigned int" if type.bits == 32 else "unsigned long long"
    return _function(
        "void", *head,
        f"{word} *bits = ({word} *)place;",
        f"{word} seen, found = atomicCAS(bits, 0, 0);",
        "do {",
        f"    {type.c} old, next;",
        "    seen = found;",
        "    memcpy(&old, &seen, sizeof old);",
        f"    next = {_updated(op, type)};",
        "    found = seen;",
        "    memcpy(&found, &next, sizeof next);",
        "    found = atomicCAS(bits, seen, found);",
        "} while (found != seen);",
    )  # fmt: skip


def _own_atomic(op: str, type: ScalarType) -> str | None:
    """The statement of CUDA's own atomic function, None where there is none."""
    names = {"+": "atomicAdd", "&": "atomicAnd", "|": "atomicOr", "^": "atomicXor",
             "min": "atomicMin", "max": "atomicMax"}  # fmt: skip
    if op == "+" and type in (FLOAT32, FLOAT64):
        return "atomicAdd(place, value);"
    if op not in names or not type.is_integer or type.bits not in (32, 64):
        return None
    if type.bits == 32:
        return f"{names[op]}(({'int' if type.kind == 'int' else 'unsigned int'} *)place, value);"
    if op in ("min", "max") and type.kind == "int":
        return f"{names[op]}((long long *)place, (long long)value);"
    word = "unsigned long long"
    return f"{names[op]}(({word} *)place, ({word})value);"


def _updated(op: str, type: ScalarType) -> str:
    if op in ("min", "max"):
        return f"taco_{op}_{_SUFFIXES[type.kind]}{type.bits}(old, value)"
    return f"old {op} value"


def _combine_lanes(operation: str, suffix: str) -> str:
    """Of the lanes of a warp, pair by pair: each lane has the same in the end."""
    type = _TYPES[suffix]
    return _function(
        type.c, f"taco_lanes_{operation}_{suffix}", f"{type.c} value",
        "for (int step = 16; step > 0; step /= 2) {",
        f"    const {type.c} other = __shfl_xor_sync(0xffffffff, value, step);",
        f"    {_combined(operation, type)}",
        "}",
        "return value;",
    )  # fmt: skip


def _combine_warps(operation: str, suffix: str) -> str:
    """Of the warps of a block, through shared memory, in their order."""
    type = _TYPES[suffix]
    return _function(
        type.c, f"taco_warps_{operation}_{suffix}", f"{type.c} value",
        f"__shared__ {type.c} parts[32];",
        "__syncthreads();",
        "if (threadIdx.x % 32 == 0)",
        "    parts[threadIdx.x / 32] = value;",
        "__syncthreads();",
        "value = parts[0];",
        "for (int warp = 1; warp < blockDim.x / 32; warp++) {",
        f"    const {type.c} other = parts[warp];",
        f"    {_combined(operation, type)}",
        "}",
        "return value;",
    )  # fmt: skip


def _combine_threads(operation: str, suffix: str) -> str:
    """Of the threads of a block: those of each warp, then the warps."""
    type, name = _TYPES[suffix], f"{operation}_{suffix}"
    return _function(
        type.c, f"taco_threads_{name}", f"{type.c} value",
        f"return taco_warps_{name}(taco_lanes_{name}(value));",
    )  # fmt: skip


def _combined(operation: str, type: ScalarType) -> str:
    """`value = value op other`."""
    value, other = Var("value", type), Var("other", type)
    return update_lines("value", value, type, _BY_NAME.get(operation, operation), other)


def _libdevice(name: str, suffix: str) -> str:
    """A function of CUDA's mathematical library under the name that kernels have for it."""
    type = _TYPES[suffix]
    if type.name not in FLOATS or name not in _MATHEMATICS:
        raise UnsupportedError(f"kernels in CUDA cannot call {name} of {type} yet")
    function = _MATHEMATICS[name] + ("f" if type == FLOAT32 else "")
    body = f"return {function}(x);"
    if name == "sigmoid":
        one = "1.0f" if type == FLOAT32 else "1.0"
        body = f"return {one} / ({one} + {function}(-x));"
    return _function(type.c, f"taco_{name}_{suffix}", f"{type.c} x", body)


_MATHEMATICS = {
    **{n: n for n in ("exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tanh")},
    "erf": "erf", "cbrt": "cbrt", "sigmoid": "exp",
}  # fmt: skip

_MAKERS: Sequence[tuple[str, Callable[..., str]]] = (
    (r"taco_(min|max)_([iuf]\d+)", _extremum),
    (r"taco_search_int(32|64)", _search),
    (r"taco_gallop_int(32|64)", _gallop),
    (r"taco_atomic_([a-z]+)_([biuf]\d+)", _atomic),
    (r"taco_lanes_(\w+)_([biuf]\d+)", _combine_lanes),
    (r"taco_warps_(\w+)_([biuf]\d+)", _combine_warps),
    (r"taco_threads_(\w+)_([biuf]\d+)", _combine_threads),
    (r"taco_(\w+)_(f32|f64)", _libdevice),
)
