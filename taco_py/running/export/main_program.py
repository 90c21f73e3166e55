"""A short C program that calls exported kernels on a small example and prints the result.

What it looks like:

    static const double x_vals[3] = {1.0, 2.0, 3.0};
    static double y_vals[2];

    int main(void)
    {
        check(spmv(y_vals, …), "spmv");
        printf("y_vals:");
        …
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field, replace
from math import prod
from typing import Any

import numpy as np

from codegen.records import dataclass
from codegen.runtime.signature import Kind, Parameter
from codegen.types import SCALARS, ScalarType, scalar
from taco_py.compiler.lower.bindings import Source
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.diagnostics.errors import InternalError
from taco_py.planner.ir.nodes import KernelStep
from taco_py.running.export.prototype import Exported

NUMBERS = ("size", "stride", "check")
"""Sources of parameters that are no arrays."""


@dataclass(frozen=True, slots=True)
class Language:
    """What differs between programs in C and in CUDA C++.

    template  the program, but for its data and its calls
    suffix    the definition of an array that a function makes
    lengths   whether a function is told how many elements an array has, behind it
    pairs     what pairs of real numbers are called that complex ones are, by their names; none
              where the language has complex numbers
    """

    template: str
    suffix: str
    lengths: bool = False
    pairs: Mapping[str, str] = field(default_factory=dict)

    def type_of(self, element: ScalarType) -> str:
        """Return the declared type of an array's elements; in C++ 16-bit types as bits."""
        if self.pairs and element.kind == "half":
            return "uint16_t"
        return self.pairs.get(element.name, element.c)


@dataclass(slots=True, eq=False)
class Program:
    """The program while it is written: its data, its statements, and the shapes of tensors.

    lengths  of arrays, as they are written
    """

    language: Language
    shapes: dict[str, tuple[int, ...]]
    lengths: dict[str, str] = field(default_factory=dict)
    data: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    buffers: list[str] = field(default_factory=list)


def used_words(
    kernels: tuple[Exported, ...], operands: Mapping[str, TensorData], language: Language
) -> frozenset[str]:
    """Return the words that mean something in main.c already, whatever the kernels are called."""
    numbered = tuple(replace(kernel, name=f"{k}") for k, kernel in enumerate(kernels))
    text = program_text("0", numbered, operands, language, ())
    code = re.sub(r'/\*.*?\*/|"[^"]*"', "", text, flags=re.DOTALL)
    return frozenset(re.findall(r"[A-Za-z_]\w*", code))


def program_text(
    name: str,
    kernels: tuple[Exported, ...],
    operands: Mapping[str, TensorData],
    language: Language,
    results: Collection[str],
) -> str:
    """Return main.c for `kernels`, which run in order, over `operands`.

    results  the tensors of the plan whose arrays are printed
    """
    program = Program(language, {name: data.shape for name, data in operands.items()})
    used = {
        _array_name(kernel, source)
        for kernel in kernels
        for _, source in kernel.kernel.parameters
        if source is not None and source.what not in NUMBERS
    }
    for operand, data in operands.items():
        for array, values in _arrays_of(operand, data):
            if array in used:
                program.data.append(_definition(array, values, language))
                program.lengths[array] = str(values.size)
    for exported in kernels:
        _call(program, exported)
    for exported in kernels:
        for tensor in exported.targets:
            if tensor in results:
                _print_result(program, exported, tensor)
    program.body += [f"{name}_release(&{buffer});" for buffer in program.buffers]
    program.body.append("return 0;")
    return language.template.format(
        name=name,
        threads=_THREADS if any("THREADS" in line for line in program.body) else "",
        data="\n".join(program.data),
        body="\n".join(f"    {line}" for line in program.body),
    )


TEMPLATE = """\
/* Calls the kernels of {name}.h on a small example and prints the arrays of the results.
 *
 *     cc -O3 *.c -lm && ./a.out          (-fopenmp for threads)
 */
#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "{name}.h"

{threads}{data}

static void check(int32_t status, const char *function)
{{
    static const char *const why[] = {{"no memory", "index overflow", "a bound does not hold"}};
    if (status != 0) {{
        fprintf(stderr, "%s failed: %s\\n", function, why[status - 1]);
        exit(1);
    }}
}}

int main(void)
{{
{body}
}}
"""


_THREADS = """\
#ifdef _OPENMP
#include <omp.h>
#define THREADS omp_get_max_threads()
#else
#define THREADS 1
#endif

"""

C = Language(TEMPLATE, "taco_buffer {} = {{0}};")
"""Programs in C."""

# ---------------------------------------------------------------- data


def _arrays_of(name: str, data: TensorData) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of an operand with their names in programs."""
    for number, level in enumerate(data.levels):
        for what, array in (("pos", level.pos), ("crd", level.crd)):
            if array is not None:
                yield f"{name}_{number + 1}_{what}", array
    values = data.values
    if data.format.is_dense:
        values = values.transpose(data.format.mode_order)
    yield f"{name}_vals", np.ascontiguousarray(values).reshape(-1)


def _definition(name: str, array: Array, language: Language) -> str:
    element = scalar(array.dtype.name)
    if element.kind == "half":
        array = array.view(np.uint16)  # the bits
    write = pair_literal if element.name in language.pairs else literal
    words = ", ".join(write(number, element) for number in array) or write(0, element)
    return f"static const {language.type_of(element)} {name}[{max(1, array.size)}] = {{{words}}};"


def pair_literal(number: Any, element: ScalarType) -> str:
    """Return a complex number as a pair of real ones."""
    part = SCALARS["float32" if element.bits == 64 else "float64"]
    return f"{{{literal(number.real, part)}, {literal(number.imag, part)}}}"


def literal(number: Any, element: ScalarType) -> str:
    """Return a number as C writes it."""
    match element.kind:
        case "complex":
            part = SCALARS["float32" if element.bits == 64 else "float64"]
            real, imag = literal(number.real, part), literal(number.imag, part)
            if np.isfinite(number.imag) and (number.real or not np.signbit(number.real)):
                return f"{real} + {imag} * I"
            return f"{'CMPLXF' if element.bits == 64 else 'CMPLX'}({real}, {imag})"  # of C11
        case "float":
            suffix = "f" if element.bits == 32 and np.isfinite(number) else ""
            return f"{_real(float(number))}{suffix}"
        case "int" if int(number) == -(2**63):
            return "INT64_MIN"
        case "uint":
            return f"{int(number)}u"
    return str(int(number))


def _real(number: float) -> str:
    if np.isfinite(number):
        return repr(number)
    return "NAN" if np.isnan(number) else f"{'-' if number < 0 else ''}INFINITY"


# ---------------------------------------------------------------- calls


def _call(program: Program, exported: Exported) -> None:
    """Return the call of one kernel, after the definitions of its output arrays."""
    step = exported.step
    sizes = {
        index: program.shapes[step.source(operand)][mode] for index, operand, mode in step.sizes
    }
    for tensor, access in exported.targets.items():
        program.shapes[tensor] = tuple(sizes[i] for i in access.indices)
    arguments = [
        _argument(program, exported, parameter, source, sizes)
        for parameter, source in exported.kernel.parameters
    ]
    program.body.append(f'check({exported.name}({", ".join(arguments)}), "{exported.name}");')


def _argument(
    program: Program,
    exported: Exported,
    parameter: Parameter,
    source: Source | None,
    sizes: Mapping[str, int],
) -> str:
    step = exported.step
    if parameter.counts_threads:
        return "THREADS"
    if source is None:
        raise InternalError(f"Nothing is known of the kernel parameter {parameter.name}")
    if source.what == "size":
        return str(sizes[source.index])
    if source.what == "check":
        return "1"
    if source.what == "stride":
        return str(_stride(step, source, program.shapes[exported.tensor(source.tensor)]))
    name = _array_name(exported, source)
    match parameter.kind:
        case Kind.GROWING:
            program.body.append(program.language.suffix.format(name))
            program.buffers.append(name)
            program.lengths[name] = f"{name}.length"
            return f"&{name}"
        case Kind.OUTPUT:
            count = prod(program.shapes[exported.tensor(source.tensor)])
            type = program.language.type_of(parameter.element)
            program.data.append(f"static {type} {name}[{max(1, count)}];")
            program.lengths[name] = str(count)
    return _with_length(program, name, parameter)


def _with_length(program: Program, name: str, parameter: Parameter) -> str:
    """Return an array as an argument, with its length behind it where the language asks for it."""
    array = name
    if name in program.buffers:
        type = program.language.type_of(parameter.element)
        array = f"({type} *){name}.data" if program.language.lengths else f"{name}.data"
    return f"{array}, {program.lengths[name]}" if program.language.lengths else array


def _array_name(exported: Exported, source: Source) -> str:
    """Return the name of an array in the program."""
    tensor = exported.tensor(source.tensor)
    if source.what == "values":
        return f"{tensor}_vals"
    return f"{tensor}_{source.level + 1}_{source.what}"


def _stride(step: KernelStep, source: Source, shape: tuple[int, ...]) -> int:
    """Return elements from one to the next along a level of a dense tensor without gaps."""
    order = step.problem.type_of(source.tensor).format.mode_order
    inner = [shape[mode] for mode in order[source.level + 1 :]]
    return prod(inner)


# ---------------------------------------------------------------- the result


def _print_result(program: Program, exported: Exported, tensor: str) -> None:
    """Print the arrays of a tensor that a kernel makes."""
    stored_name = exported.targets[tensor].tensor
    for parameter, source in exported.kernel.parameters:
        if source is None or source.tensor != stored_name or source.what in NUMBERS:
            continue
        name = _array_name(exported, source)
        if parameter.grows:
            elements = f"(({program.language.type_of(parameter.element)} *){name}.data)"
            count = f"{name}.length"
        else:
            elements, count = name, str(prod(program.shapes[tensor]))
        program.body += [
            f'printf("{name}:");',
            f"for (int64_t k = 0; k < {count}; k++) {{",
            f"    {_printed(f'{elements}[k]', parameter.element, program.language)}",
            "}",
            'printf("\\n");',
        ]


def _printed(place: str, element: ScalarType, language: Language) -> str:
    if element.name in language.pairs:
        return f'printf(" %.17g %.17g", (double){place}.real, (double){place}.imag);'
    match element.kind:
        case "complex":
            return f'printf(" %.17g %.17g", creal({place}), cimag({place}));'
        case "float":
            return f'printf(" %.17g", (double){place});'
        case "uint":
            return f'printf(" %" PRIu64, (uint64_t){place});'
    return f'printf(" %" PRId64, (int64_t){place});'
