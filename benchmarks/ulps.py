"""How far are our elementary functions from the exact results, in units in the last place (ulps)?

The exact results are the C library's of a wider type: of long double for double (of x86: 11 more
bits), of double for float. A figure is the largest distance of a million numbers, and `where` says
of which: of all bit patterns, or of a range in which the function has most of its values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.measure import OURS, Record
from codegen.libraries.scalar_functions import FUNCTIONS, CFunction
from codegen.runtime.kernel_cache import KernelCache, KernelSource
from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.types import FLOAT32, FLOAT64, INT64, ScalarType

COUNT = 1_000_000
RANGES: dict[str, tuple[tuple[float, float], ...]] = {
    "exp": ((-746, 710), (-1, 1)), "expm1": ((-60, 710), (-1, 1)), "log": ((0, 10), (0.7, 1.5)),
    "log1p": ((-1, 10), (-0.5, 0.6)), "log2": ((0, 10), (0.7, 1.5)), "log10": ((0, 10), (0.7, 1.5)),
    "sin": ((-10, 10), (-1e5, 1e5)), "cos": ((-10, 10), (-1e5, 1e5)), "tanh": ((-2, 2), (-22, 22)),
    "sigmoid": ((-5, 5), (-750, 40)), "erf": ((-2, 2), (-7, 7)), "cbrt": ((-10, 10), (0.1, 1.2)),
}  # fmt: skip
_WIDER = {"float32": ("double", ""), "float64": ("long double", "l")}
_KERNEL = """
int32_t ulps_{name}(const {c} *restrict x, double *restrict y, int64_t n)
{{
    #pragma omp simd
    for (int64_t i = 0; i < n; i++)
        y[i] = {function}(x[i]);
    for (int64_t i = 0; i < n; i++) {{
        const {wide} exact = {exact};
        const {c} near = ({c})exact, size = fabs{end}(near);
        const {c} unit = nextafter{end}(size, INFINITY) - size;
        const int same = y[i] == near || (isnan(near) && isnan(y[i]));
        y[i] = isfinite(near) ? (double)fabsl((y[i] - exact) / unit) : same ? 0 : INFINITY;
    }}
    return 0;
}}
"""


def run() -> Iterator[Record]:
    kernels, rng = KernelCache(), np.random.default_rng(0)
    for name, ranges in RANGES.items():
        for element in (FLOAT32, FLOAT64):
            source = kernel(name, element)
            found = kernels.get_or_build(source.source, lambda source=source: source).kernel
            integers = np.dtype(f"uint{element.bits}").type
            patterns = rng.integers(0, np.iinfo(integers).max, COUNT, dtype=integers)
            samples = {"all bit patterns": patterns.view(element.name)}
            for low, high in ranges:
                samples[f"{low} to {high}"] = rng.uniform(low, high, COUNT).astype(element.name)
            for where, x in samples.items():
                distances = np.zeros(len(x))
                found.functions[f"ulps_{name}"](x, distances, len(x))
                yield record(f"{name} {element}", where, distances)


def record(name: str, where: str, distances: Any) -> Record:
    largest, median = float(distances.max()), float(np.median(distances))
    return Record(
        "ulps", f"{name} {where}", OURS, "ulp", largest, median, len(distances), "largest"
    )


def kernel(name: str, element: ScalarType) -> KernelSource:
    """C that writes the distances of a function's results into `y`."""
    spelling = FUNCTIONS[name].spellings[element.name]
    assert isinstance(spelling, CFunction)
    wide, end = _WIDER[element.name]
    exact = f"1 / (1 + exp{end}(-({wide})x[i]))" if name == "sigmoid" else f"{name}{end}(x[i])"
    text = _KERNEL.format(
        name=name, c=element.c, function=spelling.name, wide=wide, exact=exact,
        end="f" if element == FLOAT32 else "",
    )  # fmt: skip
    head = (
        '#include "taco_runtime.h"\n#include <math.h>\n#define TACO_SINES\n#include "taco_math.h"\n'
    )
    parameters = (
        Parameter("x", Kind.INPUT, element),
        Parameter("y", Kind.OUTPUT, FLOAT64),
        Parameter("n", Kind.SCALAR, INT64),
    )
    return KernelSource(head + text, (Signature(f"ulps_{name}", parameters),))
