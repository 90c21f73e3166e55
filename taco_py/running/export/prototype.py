"""The header of exported kernels: prototypes, with a line about each parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import assert_never

from codegen.records import dataclass
from codegen.runtime.signature import Kind, Parameter, Signature
from taco_py.compiler.driver import CompiledKernel
from taco_py.compiler.lower.bindings import Source
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.printer import to_text
from taco_py.planner.ir.nodes import KernelStep


@dataclass(frozen=True, slots=True, eq=False)
class Exported:
    """A kernel of a plan under the name that it is exported by, with its C text.

    sides  the tensors of the plan that its side results are, by their names in the kernel
    """

    name: str
    step: KernelStep
    kernel: CompiledKernel
    source: str
    sides: Mapping[str, str] = field(default_factory=dict)

    def tensor(self, name: str) -> str:
        """Return the tensor of the plan that the kernel calls by a name of its own."""
        if name == self.step.problem.assignment.target.tensor:
            return self.step.target
        return self.sides[name] if name in self.sides else self.step.source(name)

    @property
    def targets(self) -> dict[str, Access]:
        """Return the accesses of the kernel's results, by the tensors of the plan."""
        problem = self.step.problem
        sides = (side.target for side in problem.side if side.target.tensor in self.sides)
        accesses = (problem.assignment.target, *sides)
        return {self.tensor(access.tensor): access for access in accesses}

    @property
    def signature(self) -> Signature:
        """Return the function's parameters."""
        return Signature(self.name, tuple(p for p, _ in self.kernel.parameters))

    @property
    def makes_arrays(self) -> bool:
        """Tell whether the function makes arrays that its caller releases."""
        return any(p.grows for p, _ in self.kernel.parameters)


def header_text(name: str, kernels: tuple[Exported, ...], buffer: str) -> str:
    """Return `name`.h: the conventions, then a documented prototype for each kernel.

    buffer  the definition of taco_buffer, as the runtime header has it
    """
    guard = f"{name.upper()}_H"
    parts = [CONVENTIONS.format(name=name), f"#ifndef {guard}\n#define {guard}", INCLUDES]
    if any(kernel.makes_arrays for kernel in kernels):
        parts += [f"#ifndef TACO_RUNTIME_H\n{buffer}\n#endif", RELEASE.format(name=name)]
    parts += (documented(kernel, prototype(kernel.signature)) for kernel in kernels)
    return "\n\n".join((*parts, "#endif")) + "\n"


def release_text(name: str) -> str:
    """Return the definition of the function that gives an array back."""
    return f"void {name}_release(taco_buffer *buffer)\n{{\n    taco_release(buffer);\n}}\n"


INCLUDES = "#include <complex.h>\n#include <stdbool.h>\n#include <stdint.h>"

RELEASE = """\
/* Free an array that a function has made; the buffer is zero again. */
void {name}_release(taco_buffer *buffer);"""

CONVENTIONS = """\
/* Kernels made by tacopy.
 *
 * Arguments are arrays first, then sizes and strides, then the number of threads. Arrays that a
 * function reads are const. A dense tensor is one array. A sparse one has, for each compressed
 * level,
 *
 *     pos   where the segment of each parent begins; one more than there are parents, the first 0
 *     crd   the coordinates, segment after segment
 *
 * and its values after those of its levels. Arrays that a function makes are taco_buffers: pass
 * them set to zero, find `length` elements at `data`, and free them by {name}_release.
 *
 * Every function returns 0; or 1 when memory ran out; or 2 when a result has more entries than its
 * index type can count; or 3, before anything is computed, when a size is not as a command `bound`
 * promised or a fused loop has more values than can be counted. With -fopenmp loops are shared
 * among threads, without they run on one. With -fwrapv integers wrap as NumPy's do; without it
 * their overflow is undefined.
 */"""


def documented(exported: Exported, declaration: str, suffix: str = "buffer") -> str:
    """Return the declaration of a function, behind a line about each parameter.

    suffix  what ends the names of arrays that it makes
    """
    lines = [to_text(exported.step.problem.assignment), ""]
    described = [
        (passed_as(p, suffix), _meaning(p, source, exported))
        for p, source in exported.kernel.parameters
    ]
    width = max((len(name) for name, _ in described), default=0)
    lines += [f"    {name:<{width}}  {meaning}" for name, meaning in described]
    needs = list(_needs(exported.kernel))
    lines += ["", *needs] if needs else []
    comment = "\n".join(f" * {line}".rstrip() for line in lines).replace("*/", "* /")
    return f"/*\n{comment}\n */\n{declaration};"


def prototype(signature: Signature) -> str:
    """Return the declaration of a function, without the semicolon."""
    parameters = ",\n    ".join(map(_declared, signature.parameters)) or "void"
    return f"int32_t {signature.name}(\n    {parameters})"


def _declared(p: Parameter) -> str:
    match p.kind:
        case Kind.INPUT:
            return f"const {p.element.c} *restrict {p.name}"
        case Kind.OUTPUT:
            return f"{p.element.c} *restrict {p.name}"
        case Kind.GROWING:
            return f"taco_buffer *{passed_as(p)}"
        case Kind.SCALAR | Kind.THREADS:
            return f"{p.element.c} {p.name}"
        case _:
            assert_never(p.kind)


def passed_as(p: Parameter, suffix: str = "buffer") -> str:
    """Return the name of a parameter."""
    return f"{p.name}_{suffix}" if p.grows else p.name


def _meaning(p: Parameter, source: Source | None, exported: Exported) -> str:
    if source is None:
        return "how many threads may be used, 1 or more"
    match source.what:
        case "size":
            return f"the size of index {source.index}"
        case "check":
            return f"1 to fail with 3 where coordinates of {source.tensor} do not ascend, or 0"
        case "stride":
            return (
                f"elements from one to the next along level {source.level + 1} of {source.tensor}"
            )
        case "values":
            return f"{_verb(p)} the values of {source.tensor}, {_type(exported, source.tensor)}"
    where = f"level {source.level + 1} of {source.tensor}"
    return f"{_verb(p)} the {source.what} of {where}"


def _verb(p: Parameter) -> str:
    return {Kind.GROWING: "makes", Kind.OUTPUT: "writes"}.get(p.kind, "reads")


def _type(exported: Exported, tensor: str) -> str:
    """Return the format, and of a dense result whether it must be zero before."""
    problem = exported.step.problem
    side = next((output for output in problem.side if output.target.tensor == tensor), None)
    if side is not None:
        return f"{side.type}{'' if side.covered else ', which must be zero before'}"
    is_result = tensor == problem.assignment.target.tensor
    zeros = is_result and problem.result.format.is_dense and not exported.kernel.covers
    return f"{problem.type_of(tensor)}{', which must be zero before' if zeros else ''}"


def _needs(kernel: CompiledKernel) -> Iterator[str]:
    for tensor, ordered, unique in kernel.requirements:
        words = [word for word, on in (("ascend", ordered), ("are distinct", unique)) if on]
        yield f"Coordinates of {tensor} {' and '.join(words)} below each parent."
    for indices in kernel.keys:
        yield f"The product of the sizes of {', '.join(indices)} is below 2^63."
