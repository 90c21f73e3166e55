"""Kernels of a GPU as files in CUDA C++: for each the kernels, its host program, and a C function.

    extern "C" int32_t spmv(double *y_vals, int64_t y_vals_length, const int32_t *A2_pos, …)
    {
        return taco::run([&] {
            const double *x_vals_there = taco_memory.copy<double>(x_vals, x_vals_length, "x_vals");
            …
            taco_program::spmv(y_vals_there, A2_pos_there, …);

Arrays are the host's. They are copied to buffers of the device and back, and every call of the
runtime of CUDA is checked (`codegen/runtime/taco_cuda.h`).
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen.emit.host_cuda import MEMORY, element_text
from codegen.emit.memory import Lines, indent
from codegen.runtime.signature import Kind, Parameter
from taco_py.compiler.driver import make_cuda_program
from taco_py.compiler.ways.recipe import Recipe
from taco_py.running.export.main_program import Language
from taco_py.running.export.prototype import Exported, documented

RUNTIME = "taco_cuda.h"
PAIRS = {"complex64": "taco_complex64", "complex128": "taco_complex128"}


def source_text(recipe: Recipe, name: str) -> str:
    """Return the kernels of a recipe and its host program, without the function that others
    call."""
    kernels, host = make_cuda_program(recipe, name)
    return f"{kernels}\n{HOST.format(name=name, host=host.rstrip())}"


def cuda_files(name: str, kernels: tuple[Exported, ...]) -> dict[str, str]:
    """Return the .cu file of each kernel, and their header."""
    files = {
        f"{kernel.name}.cu": kernel.source.replace(
            INCLUDED.format(kernel.name), INCLUDED.format(name)
        )
        + f"\n{_entry(kernel)}\n{_entry_on_device(kernel)}"
        for kernel in kernels
    }
    files[f"{kernels[0].name}.cu"] += f"\n{ERROR.format(name=name)}"
    if any(kernel.makes_arrays for kernel in kernels):
        files[f"{kernels[0].name}.cu"] += f"\n{RELEASE.format(name=name)}"
    files[f"{name}.h"] = _header(name, kernels)
    return files


# ---------------------------------------------------------------- the function that others call


def _entry(kernel: Exported) -> str:
    """Return operands over, the host program, results back."""
    parameters = [p for p in kernel.signature.parameters if not p.counts_threads]
    arrays = (p for p in parameters if p.kind is not Kind.SCALAR)
    body = [f"taco::Memory {MEMORY};", *(_device_copy(p, kernel) for p in arrays)]
    passed = (p.name if p.kind is Kind.SCALAR else f"{p.name}_there" for p in parameters)
    body += [
        f"taco_program::{kernel.name}({', '.join(passed)});",
        f'taco::finish("{kernel.name}");',
    ]
    body += filter(None, map(_back, parameters))
    return _guarded(_prototype(kernel), body)


def _entry_on_device(kernel: Exported) -> str:
    """Return the host program alone, over buffers of the caller's."""
    parameters = [p for p in kernel.signature.parameters if not p.counts_threads]
    growing = [p for p in parameters if p.grows]
    body = [_device_copy(p, kernel) for p in growing]
    body.append(f"taco_program::{kernel.name}({', '.join(map(_device_argument, parameters))});")
    body += [f"taco::keep({p.name}_array, {p.name}_there);" for p in growing]
    return _guarded(_prototype_on_device(kernel), body)


def _guarded(prototype: str, body: Lines) -> str:
    """Return a function of C that returns the status of its body."""
    lines = ["{", *indent(["return taco::run([&] {", *indent(body), "});"]), "}"]
    return "\n".join((f'extern "C" {prototype}', *lines)) + "\n"


def _device_argument(p: Parameter) -> str:
    """Return a parameter of the function as the host program takes it."""
    if p.grows:
        return f"{p.name}_there"
    const = "const " if p.is_input else ""
    pairs = p.is_array and p.element.kind == "complex"
    return f"({const}{element_text(p.element)} *){p.name}" if pairs else p.name


def _device_copy(p: Parameter, exported: Exported) -> str:
    """Return an array of the device for one of the host."""
    type = element_text(p.element)
    if p.grows:
        return f'taco::Growing<{type}> {p.name}_there("{p.name}");'
    const = "const " if p.is_input else ""
    allocation = f'copy<{type}>({p.name}, {p.name}_length, "{p.name}")'
    if p.is_output and exported.kernel.covers:
        allocation = f'allocate<{type}>({p.name}_length, false, "{p.name}")'
    return f"{const}{type} *{p.name}_there = {MEMORY}.{allocation};"


def _back(p: Parameter) -> str:
    """Return a result back to the host."""
    if p.is_output:
        return f'taco::fetch({p.name}, {p.name}_there, {p.name}_length, "{p.name}");'
    return f"taco::fetch({p.name}_array, {p.name}_there);" if p.grows else ""


# ---------------------------------------------------------------- the header


def _header(name: str, kernels: tuple[Exported, ...]) -> str:
    """Return `name`.h: the conventions, then a documented prototype for each kernel."""
    guard = f"{name.upper()}_H"
    parts = [CONVENTIONS.format(name=name), f"#ifndef {guard}\n#define {guard}", INCLUDES]
    if any(p.element.kind == "complex" for kernel in kernels for p in kernel.signature.parameters):
        parts.append(COMPLEX)
    parts.append(f"{BEGIN}\n\n/* {WHAT_ERROR} */\nconst char *{name}_error(void);")
    if any(kernel.makes_arrays for kernel in kernels):
        parts.append(f"{ARRAY}\n\n/* {WHAT_RELEASE} */\nvoid {name}_release(taco_array *array);")
        parts.append(
            f"/* {WHAT_RELEASE_THERE} */\nvoid {name}_release_on_device(taco_array *array);"
        )
    for kernel in kernels:
        parts.append(documented(kernel, _prototype(kernel), "array"))
        parts.append(f"/* {WHAT_ON_DEVICE} */\n{_prototype_on_device(kernel)};")
    return "\n\n".join((*parts, END, "#endif")) + "\n"


def _prototype(exported: Exported) -> str:
    return _declaration(
        exported.name, [t for p in exported.signature.parameters for t in _declared(p)]
    )


def _prototype_on_device(exported: Exported) -> str:
    """Return the prototype without lengths, which only copies need."""
    parameters = exported.signature.parameters
    declared = [next(_declared(p)) for p in parameters if not p.counts_threads]
    return _declaration(f"{exported.name}_on_device", declared)


def _declaration(name: str, declared: list[str]) -> str:
    parameters = ",\n    ".join(declared) or "void"
    return f"int32_t {name}(\n    {parameters})"


def _declared(p: Parameter) -> Iterator[str]:
    """Yield a parameter; of an array with the length behind it."""
    type = CUDA.type_of(p.element)
    match p.kind:
        case Kind.INPUT | Kind.OUTPUT:
            const = "const " if p.is_input else ""
            yield f"{const}{type} *{p.name}"
            yield f"int64_t {p.name}_length"
        case Kind.GROWING:
            yield f"taco_array *{p.name}_array"
        case Kind.SCALAR:
            yield f"{type} {p.name}"


WHAT_ERROR = 'What CUDA said of the last call in this thread, "" where nothing was wrong with it.'
WHAT_ON_DEVICE = """\
The same of arrays in memory of the current device, those that it makes too. Work is begun in the
 * order of the default stream, and not waited for: 0 says that it is begun, and a kernel that fails
 * is told by the next call that waits, such as cudaDeviceSynchronize. Elements of one byte are
 * updated in words of four, which the memory of results has as a whole."""
WHAT_RELEASE_THERE = "Free an array that a function has made on the device; it is zero again."
WHAT_RELEASE = "Free an array that a function has made; it is zero again."
INCLUDED = '#include "{}.h"'

HOST = """\
/* ---------------------------------------------------------------- the host */

#include "{name}.h"
#include "taco_cuda.h"

namespace taco_program {{

{host}

}} // namespace taco_program
"""

ERROR = """\
extern "C" const char *{name}_error(void)
{{
    return taco::message();
}}
"""

RELEASE = """\
extern "C" void {name}_release(taco_array *array)
{{
    std::free(array->data);
    array->data = nullptr;
    array->length = 0;
}}

extern "C" void {name}_release_on_device(taco_array *array)
{{
    cudaFree(array->data);
    array->data = nullptr;
    array->length = 0;
}}
"""

INCLUDES = "#include <stdbool.h>\n#include <stdint.h>"
BEGIN = '#ifdef __cplusplus\nextern "C" {\n#endif'
END = "#ifdef __cplusplus\n}\n#endif"

ARRAY = """\
#ifndef TACO_ARRAY
#define TACO_ARRAY
typedef struct {
    void *data;
    int64_t length;
} taco_array;
#endif"""

COMPLEX = """\
#ifndef TACO_COMPLEX
#define TACO_COMPLEX
/* As C's `float complex` and C++'s `std::complex<float>` lie in memory, and those of double. */
typedef struct {
    float real, imag;
} taco_complex64;
typedef struct {
    double real, imag;
} taco_complex128;
#endif"""

CONVENTIONS = """\
/* Kernels for a GPU made by tacopy, as functions for C and C++.
 *
 * Arguments are arrays of the host first, each that a function reads or writes with the number of
 * its elements behind it, then sizes and strides. Arrays that a function reads are const. A dense
 * tensor is one array. A sparse one has, for each compressed level,
 *
 *     pos   where the segment of each parent begins; one more than there are parents, the first 0
 *     crd   the coordinates, segment after segment
 *
 * and its values after those of its levels. Arrays that a function makes are taco_arrays: pass
 * them set to zero, find `length` elements at `data`, and free them by {name}_release, also where
 * the function failed.
 *
 * Arrays are copied to the current device of the calling thread and back; a function returns when
 * all is done, and keeps no memory there. Functions …_on_device take arrays that are there.
 *
 * Every function returns 0; or 1 when memory ran out, of the host or of the device; or 2 when a
 * result has more entries than its index type can count; or 3, before anything is computed, when a
 * size is not as a command `bound` promised or a fused loop has more values than can be counted; or
 * 4 when CUDA reported an error. {name}_error() has its words, after 1 too where they are CUDA's.
 */"""

MAIN = """\
/* Calls the kernels of {name}.h on a small example and prints the arrays of the result.
 *
 *     nvcc -O3 *.cu && ./a.out
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "{name}.h"

{threads}{data}

static void check(int32_t status, const char *function)
{{
    static const char *const why[] = {{
        "no memory", "index overflow", "a bound does not hold", "an error of CUDA"}};
    if (status != 0) {{
        const char *told = {name}_error();
        fprintf(stderr, "%s failed: %s%s%s\\n", function, why[status - 1], *told ? ": " : "", told);
        exit(1);
    }}
}}

int main(void)
{{
{body}
}}
"""

CUDA = Language(MAIN, "taco_array {} = {{}};", lengths=True, pairs=PAIRS)
"""Programs in CUDA C++."""
