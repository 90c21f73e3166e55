"""The objects that kernels are linked to: functions of taco_runtime.h that no inner loop calls.

A kernel that appends to arrays took 0.3 s to compile, of which 0.2 were for these functions. They
are compiled once for each compiler and CPU, and kept with the kernels:

    #define TACO_ARRAYS 1      #define TACO_ARRAYS 0
    #define TACO_SORTING 0     #define TACO_SORTING 0
    #include "taco_runtime.h"  #include "taco_runtime.h"
                               #include "kernel.c"
    the object of ARRAYS       a kernel that is linked to it
"""

from __future__ import annotations

import re
from pathlib import Path

from codegen.records import dataclass
from codegen.toolchain.compile_unit import Unit, build_entry
from codegen.toolchain.compiler import Compiler
from codegen.toolchain.store import Store


@dataclass(frozen=True, slots=True)
class Part:
    """Functions that are compiled together.

    macro  1 where the runtime header defines the functions, 0 where it declares them
    calls  what a kernel's source has that calls one of the functions
    flags  for the compiler, behind those of all kernels
    """

    macro: str
    calls: str
    flags: tuple[str, ...]


ARRAYS = Part(
    "TACO_ARRAYS",
    r"\btaco_(alloc|grow|local_buffer|release|gather|disband|take|give|finish|local_team)",
    ("-O1",),  # they wait for the system and for memory
)
SORTING = Part("TACO_SORTING", r"\btaco_(sort|table|local_table)", ("-O2",))
PARTS = (ARRAYS, SORTING)


def parts_of(source: str) -> tuple[Part, ...]:
    """Return the parts with a function that `source` calls."""
    return tuple(part for part in PARTS if re.search(part.calls, source))


def definitions(defined: Part | None) -> str:
    """Return C lines that define the functions of `defined` and declare others."""
    return "".join(f"#define {part.macro} {int(part is defined)}\n" for part in PARTS)


def load_part(
    part: Part, store: Store, key: str, compiler: Compiler, flags: tuple[str, ...]
) -> Path:
    """Return the object of `part` from `store`, else compiled.

    Raises CompileError, and OSError where nothing can be written.
    """
    entry = store.load(key)
    if entry is None:
        text = f'{definitions(part)}#include "taco_runtime.h"\n'
        unit = Unit((("part.c", text),), (*part.flags, *flags), output="part.o")
        entry = build_entry(store, key, compiler, unit, compiler.flags, text)
    return entry.library
