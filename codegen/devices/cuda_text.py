"""Kernel text of CUDA as a C compiler reads it, with a table of its kernels.

What C has no words for is replaced, nothing else, and no line is moved:

    extern "C" __global__ void k(int n)       →  __global__ void k(int n)
    extern __shared__ float tile[];           →  float *tile = (float *)emulated_dynamic_shared;

All other names of CUDA are macros and functions of `cuda_emulation.h`.
"""

from __future__ import annotations

import re

from codegen.devices.device import DeviceError
from codegen.records import dataclass

_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)
_EXTERN_C = re.compile(r'\bextern\s+"C"\s*(\{)?')
_DYNAMIC = re.compile(
    r"\bextern\s+__shared__\s+(?P<type>(?:__align__\s*\(\s*\d+\s*\)\s*)?[\w\s]+?)"
    r"\s*\b(?P<name>\w+)\s*\[\s*\]\s*;"
)
_ALIGN = re.compile(r"__align__\s*\(\s*\d+\s*\)\s*")
_KERNEL = re.compile(
    r"\b__global__\s+(?:static\s+)?(?:__launch_bounds__\s*\([^)]*\)\s*)?void\s+"
    r"(?:__launch_bounds__\s*\([^)]*\)\s*)?(?P<name>\w+)\s*\((?P<parameters>[^)]*)\)\s*\{"
)
_PARAMETER = re.compile(r"(?P<type>.*?[\s*&])(?P<name>\w+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KernelHead:
    """The name of a kernel and of its parameters, with the C type of each.

    lines  the first and the last one of its body
    """

    name: str
    parameters: tuple[tuple[str, str], ...]
    lines: tuple[int, int]


def kernel_heads(text: str) -> tuple[KernelHead, ...]:
    """Return the kernels of `text` in their order. Raises DeviceError for a parameter without a
    name."""
    bare = _without_comments(text)
    return tuple(
        KernelHead(
            m["name"],
            tuple(map(_parameter, _split(m["parameters"]))),
            (_line(bare, m.start()), _line(bare, _end(bare, m.end()))),
        )
        for m in _KERNEL.finditer(bare)
    )


def emulated_text(text: str) -> str:
    """Return `text` as GNU C, with a table of its kernels at the end."""
    heads = kernel_heads(text)
    lines = ['#include "cuda_emulation.h"', '#line 1 "kernel.cu"', _in_c(text)]
    return "\n".join([*lines, '#line 1 "kernels.c"', _table(heads)]) + "\n"


def _without_comments(text: str) -> str:
    """Return `text` with blanks for comments; strings stay."""

    def blank(match: re.Match[str]) -> str:
        token = match[0]
        return token if token.startswith('"') else re.sub(r"[^\n]", " ", token)

    return _COMMENT.sub(blank, text)


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _end(text: str, start: int) -> int:
    """Return the position of the brace that closes the one before `start`."""
    depth = 1
    for match in re.finditer(r"[{}]", text[start:]):
        depth += 1 if match[0] == "{" else -1
        if depth == 0:
            return start + match.start()
    return len(text)


def _in_c(text: str) -> str:
    bare = _without_comments(text)
    if any(match[1] for match in _EXTERN_C.finditer(bare)):
        raise DeviceError(
            'Expected extern "C" before each kernel, found a block of it',
            hint='write extern "C" __global__ void name(...)',
        )
    return _DYNAMIC.sub(_dynamic, _EXTERN_C.sub("", bare))


def _dynamic(match: re.Match[str]) -> str:
    name, element = match["name"], _ALIGN.sub("", match["type"]).strip()
    newlines = "\n" * match[0].count("\n")
    return f"{element} *{name} = ({element} *)emulated_dynamic_shared;{newlines}"


def _split(parameters: str) -> list[str]:
    words = [word.strip() for word in parameters.split(",")]
    return [] if words in ([""], ["void"]) else words


def _parameter(text: str) -> tuple[str, str]:
    match = _PARAMETER.fullmatch(text)
    if match is None:
        raise DeviceError(f"Expected a type and a name for each parameter, found {text!r}")
    return match["name"], re.sub(r"\b__grid_constant__\b|\bconst$", "", match["type"].strip())


def _table(heads: tuple[KernelHead, ...]) -> str:
    """Return a function for each kernel that calls it with arguments at addresses, and their
    sizes."""
    parts = ['#include "emulated_launch.h"', _CLASS]
    for number, head in enumerate(heads):
        types = [kind for _, kind in head.parameters]
        values = ", ".join(f"*({kind} *)arguments[{i}]" for i, kind in enumerate(types))
        sizes = ", ".join(f"sizeof({kind})" for kind in types)
        classes = ", ".join(f"EMULATED_CLASS({kind})" for kind in types)
        parts.append(
            f'__attribute__((no_sanitize("thread"), no_sanitize_coverage))\n'
            f"static void emulated_call_{number}(void **arguments)\n"
            f"{{ (void)arguments; {head.name}({values}); }}\n"
            f"static const int32_t emulated_sizes_{number}[] = {{{sizes or 0}}};\n"
            f"static const int32_t emulated_classes_{number}[] = {{{classes or 0}}};"
        )
    rows = ",\n".join(
        f'    {{"{head.name}", emulated_call_{i}, {len(head.parameters)}, '
        f"emulated_sizes_{i}, emulated_classes_{i}}}"
        for i, head in enumerate(heads)
    )
    parts.append(f"static const struct emulated_kernel emulated_kernels[] = {{\n{rows}\n}};")
    parts.append(_AT.replace("COUNT", str(len(heads))))
    return "\n".join(parts)


_CLASS = """\
#define EMULATED_CLASS(T) \\
    (__builtin_classify_type(*(T *)0) == 5 ? 0 : __builtin_classify_type(*(T *)0) == 8 ? 3 \\
     : _Generic(*(T *)0, signed char: 1, short: 1, int: 1, long: 1, long long: 1, \\
                char: 1, default: 2))"""
_AT = """\
__attribute__((visibility("default"))) int32_t emulated_kernel_count(void) { return COUNT; }
__attribute__((visibility("default")))
const struct emulated_kernel *emulated_kernel_at(int32_t number)
{
    return &emulated_kernels[number];
}"""
