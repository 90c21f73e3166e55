"""Updates of elements as one operation, in CUDA: by CUDA's own functions, else compare and swap.

    static __device__ inline void taco_atomic_mul_f64(double *place, double value)
    {
        unsigned long long *word = (unsigned long long *)place, found = *word, seen;
        do {
            seen = found;
            double element;
            memcpy(&element, &seen, sizeof element);
            element = element * value;
            memcpy(&found, &element, sizeof element);
            found = atomicCAS(word, seen, found);
        } while (found != seen);
    }

It is tried again where another thread has come between. An element of one byte is part of an
aligned word of four, which memory of devices has to its end. A sum of complex numbers is two, one
for each part: no thread reads it before all have added.
"""

from __future__ import annotations

import re

from codegen.emit.cuda_updates import BY_NAME, NAMES, TYPES, c_type, suffix, updated
from codegen.infer import updates
from codegen.machine.target import UnsupportedError
from codegen.types import FLOAT32, FLOAT64, SCALARS, ScalarType

_ATOMIC = re.compile(r"taco_atomic_(\w+)_([biufc]\d+)")
_WORDS = {8: "unsigned int", 16: "unsigned short", 32: "unsigned int", 64: "unsigned long long"}
"""What is compared and swapped for an element of so many bits."""

_ZEROS = {
    "min": "signbit(element) ? element : value",
    "max": "signbit(element) ? value : element",
}
"""Of two equal numbers, which may be zeros of both signs, the one that comes out in any order."""


def atomic_name(op: str, element: ScalarType) -> str:
    """Return the function that updates an element in one operation. Raises UnsupportedError."""
    parts_alone = element.bits > 64 and op not in ("+", "-")
    is_supported = element.name in SCALARS and updates(SCALARS[element.name], op)
    if parts_alone or not is_supported:
        raise UnsupportedError(f"kernels in CUDA have no atomic {op} of {element}")
    return f"taco_atomic_{NAMES.get(op, op)}_{suffix(element)}"


def atomic_function(name: str) -> str | None:
    """Return the definition of a function that `atomic_name` names; None of other names."""
    match = _ATOMIC.fullmatch(name)
    if match is None:
        return None
    op, element = BY_NAME.get(match[1], match[1]), TYPES[match[2]]
    lines = _builtin_atomic(op, element) or (_in_word if element.bits == 8 else _swapped)(
        op, element
    )
    type = c_type(element)
    head = f"static __device__ inline void {name}({type} *place, {type} value)"
    return "\n".join([head, "{", *(f"    {line}" for line in lines), "}"])


def _builtin_atomic(op: str, element: ScalarType) -> list[str] | None:
    """Return the statements by CUDA's own atomic functions, None where there are none."""
    if element.kind == "complex" and op in ("+", "-"):
        sign = "-" if op == "-" else ""
        return [f"atomicAdd(&place->{part}, {sign}value.{part});" for part in ("x", "y")]
    if element in (FLOAT32, FLOAT64) and op in ("+", "-"):
        return [f"atomicAdd(place, {'-' if op == '-' else ''}value);"]
    names = {"+": "Add", "-": "Add", "min": "Min", "max": "Max", "&": "And", "|": "Or", "^": "Xor"}
    if not element.is_integer or element.bits < 32 or op not in names:
        return None
    word = _WORDS[element.bits]
    if element.kind == "int" and op in ("min", "max"):
        word = "int" if element.bits == 32 else "long long"
    value = f"({word})value"
    return [f"atomic{names[op]}(({word} *)place, {f'0 - {value}' if op == '-' else value});"]


def _swapped(op: str, element: ScalarType) -> list[str]:
    """Compare and swap of the element's own bits.

    The least and largest numbers have the same bits in whichever order threads come, as zeros and
    NaN have too.
    """
    word, type = _WORDS[element.bits], c_type(element)
    new = updated(op, element, "element", "value")
    if element.kind == "float" and op in _ZEROS:
        new = f"element == value ? ({_ZEROS[op]}) : {new}"
        new = f"element != element || value != value ? NAN : {new}"
    return [
        f"{word} *word = ({word} *)place, found = atomicCAS(word, 0, 0), seen;",
        "do {",
        f"    {type} element;",
        "    seen = found;",
        "    memcpy(&element, &seen, sizeof element);",
        f"    element = {new};",
        "    memcpy(&found, &element, sizeof element);",
        "    found = atomicCAS(word, seen, found);",
        "} while (found != seen);",
    ]


def _in_word(op: str, element: ScalarType) -> list[str]:
    """Compare and swap of the four bytes that the element is one of."""
    word, type = _WORDS[element.bits], element.c
    of_bits = "found >> shift & 1" if element.kind == "bool" else f"({type})(found >> shift)"
    return [
        f"{word} *word = ({word} *)((uintptr_t)place & ~(uintptr_t)3);",
        "const int shift = 8 * (int)((uintptr_t)place & 3);",
        f"{word} found = atomicCAS(word, 0, 0), seen;",
        "do {",
        f"    {type} element = {of_bits};",
        f"    element = {updated(op, element, 'element', 'value')};",
        "    seen = found;",
        f"    const {word} bits = ({word})(uint8_t)element << shift;",
        "    found = atomicCAS(word, seen, (seen & ~(0xffu << shift)) | bits);",
        "} while (found != seen);",
    ]
