"""The types of a kernel's parameters, by the words of its text.

const double *__restrict__ x   →  a pointer that is read       int64_t n  →  an int of 8 bytes
"""

from __future__ import annotations

import re
import sys

from codegen.devices.arguments import ParameterType
from codegen.devices.cuda_text import KernelHead
from codegen.devices.device import DeviceError
from codegen.records import dataclass

_POINTER, _INT, _UINT, _FLOAT = range(4)
_LONG = 4 if sys.platform == "win32" else 8
KINDS: dict[str, tuple[int, int]] = {
    "bool": (_UINT, 1),
    "_Bool": (_UINT, 1),
    "char": (_INT, 1),
    "short": (_INT, 2),
    "int": (_INT, 4),
    "long": (_INT, _LONG),
    "long long": (_INT, 8),
    "ptrdiff_t": (_INT, 8),
    "ssize_t": (_INT, 8),
    "unsigned char": (_UINT, 1),
    "unsigned short": (_UINT, 2),
    "unsigned": (_UINT, 4),
    "unsigned long": (_UINT, _LONG),
    "unsigned long long": (_UINT, 8),
    "size_t": (_UINT, 8),
    "__half": (_FLOAT, 2),
    "half": (_FLOAT, 2),
    "float": (_FLOAT, 4),
    "double": (_FLOAT, 8),
    **{f"int{8 * size}_t": (_INT, size) for size in (1, 2, 4, 8)},
    **{f"uint{8 * size}_t": (_UINT, size) for size in (1, 2, 4, 8)},
}
"""Kind and bytes of each type of numbers."""
_QUALIFIERS = re.compile(r"\b(const|volatile|signed|__restrict__|__restrict|__grid_constant__)\b")
_TYPEDEF = re.compile(r"\btypedef\s+([\w\s]+?)\s+(\w+)\s*;")


@dataclass(frozen=True, slots=True)
class KernelParameters:
    """The parameters of a kernel; `writes` says of each whether what it points to may be written.

    A pointer to what is `const` is read only.
    """

    types: tuple[ParameterType, ...]
    writes: tuple[bool, ...]


def kernel_parameters(head: KernelHead, text: str = "") -> KernelParameters:
    """Find the types of the parameters in tables, and in `typedef`s of `text`.

    Raises DeviceError for a type that arguments cannot have.
    """
    typedefs = {name: kind for kind, name in _TYPEDEF.findall(text)}
    types, writes = [], []
    for name, kind in head.parameters:
        if "*" in kind:
            types.append(ParameterType(name, _POINTER, 8))
            writes.append("const" not in kind.rpartition("*")[0].split())
            continue
        number = _number(kind, typedefs)
        if number is None:
            raise DeviceError(
                f"Expected a pointer or a number for the parameter {name} of {head.name}, found "
                f"the type {kind}",
                hint="pass a pointer to it",
            )
        types.append(ParameterType(name, *number))
        writes.append(False)
    return KernelParameters(tuple(types), tuple(writes))


def _number(kind: str, typedefs: dict[str, str]) -> tuple[int, int] | None:
    for _ in range(len(typedefs) + 1):
        words = _QUALIFIERS.sub(" ", kind).split()
        if len(words) > 1 and words[-1] == "int":
            words.pop()
        kind = " ".join(words)
        if kind in KINDS or kind not in typedefs:
            break
        kind = typedefs[kind]
    return KINDS.get(kind or "int")
