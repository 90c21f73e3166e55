"""Scalar functions: each on each type against NumPy, at the values where functions go wrong too."""

from __future__ import annotations

import math
import platform
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.build import apply, block, load, load_index, sub, zero
from codegen.emit.c import emit_c
from codegen.emit.expressions import expression
from codegen.infer import type_of
from codegen.ir import (
    FALSE,
    TRUE,
    Apply,
    Array,
    Assign,
    Const,
    Declare,
    For,
    Function,
    LoopKind,
    Module,
    Storage,
    Store,
    Var,
)
from codegen.libraries.header_functions import FOLDER
from codegen.libraries.scalar_functions import (
    FUNCTIONS,
    CFunction,
    ScalarFunction,
    has_function,
)
from codegen.machine.target import Target
from codegen.names import is_reserved
from codegen.passes.order import run_passes
from codegen.pretty import pretty
from codegen.runtime.kernel_cache import KernelCache, KernelSource, LoadedKernel
from codegen.runtime.signature import signature_of
from codegen.toolchain.compile_unit import Unit, compile_unit
from codegen.toolchain.compiler import find_compiler
from codegen.toolchain.store import Store as KernelStore
from codegen.tree import find
from codegen.types import BOOL, FLOAT32, FLOAT64, INT8, INT32, INT64, SCALARS, ScalarType
from codegen.verify import IRError, verify
from tests.codegen.functions import N_I, I, loop
from tests.codegen.interpreter import numpy_function

TARGET = Target(openmp=True)

CASES = [
    pytest.param(function, SCALARS[name], id=f"{function.name}-{name}")
    for function in FUNCTIONS.values()
    for name in function.spellings
]
EXACT = frozenset(
    (
        "sqrt", "floor", "ceil", "trunc", "rint", "abs", "sign", "copysign", "conj", "real",
        "imag", "angle", "power", "floor_divide", "remainder", "minimum", "maximum", "fmin", "fmax",
        "isnan", "isinf", "isfinite", "equal", "not_equal", "less", "less_equal", "greater",
        "greater_equal", "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and",
        "bitwise_or", "bitwise_xor", "invert", "reciprocal", "left_shift", "right_shift",
    )
)  # fmt: skip
"""Functions of which NumPy has the very result, for reals."""


# ---------------------------------------------------------------- kernels


def function_of(scalar_function: ScalarFunction, element: ScalarType) -> Function:
    """y[i] = f(x_0[i], …) for i from 0 to n_i - 1."""
    sources = [Array(f"x_{k}", element, Storage.INPUT) for k in range(scalar_function.arity)]
    value = apply(scalar_function.name, *(load(source, I) for source in sources))
    target = Array("y", scalar_function.result_type(element), Storage.OUTPUT)
    assert type_of(value) == target.element
    body = loop(I, N_I, Store(target, I, value))
    return Function(name_of(scalar_function), (*sources, target), (N_I,), block(body))


def name_of(function: ScalarFunction) -> str:
    """Name the function that computes a scalar one of each element."""
    return "each_" + function.name.replace("/", "quotient")


def module_of(element: ScalarType) -> Module:
    functions = [f for f in FUNCTIONS.values() if has_function(f.name, element)]
    module = Module(tuple(function_of(f, element) for f in functions))
    verify(module)
    return run_passes(module, TARGET)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Callable[[ScalarType], LoadedKernel]:
    """The functions of one type, compiled with warnings as errors."""
    folder: Path = tmp_path_factory.mktemp("scalar_functions")
    kernels = KernelCache(store=KernelStore(folder), flags=("-Wall", "-Wextra", "-Werror"))

    @cache
    def build(element: ScalarType) -> LoadedKernel:
        module = module_of(element)
        signatures = tuple(map(signature_of, module.functions))
        source = KernelSource(emit_c(module, TARGET), signatures)
        return kernels.get_or_build(element.name, lambda: source).kernel

    return build


def computed(kernel: LoadedKernel, function: ScalarFunction, *arguments: Any) -> Any:
    """What the compiled function makes of arrays of one length."""
    element = SCALARS[arguments[0].dtype.name]
    found = np.zeros(len(arguments[0]), function.result_type(element).name)
    call, name = kernel.functions[name_of(function)], name_of(function)
    (signature,) = (each for each in kernel.signatures if each.name == name)
    kept = {p.name for p in signature.parameters}  # an argument may be of no use
    call(*(x for k, x in enumerate(arguments) if f"x_{k}" in kept), found, len(found))
    return found


def samples(element: ScalarType, arity: int) -> list[Any]:
    """Values of a type, the awkward ones among them, in all pairs where there are two arguments."""
    rng = np.random.default_rng(7)
    name = element.name
    if element == BOOL:
        values = np.array([False, True])
    elif element.is_integer:
        limits = np.iinfo(name)
        near = [limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 2]
        small = [v for v in range(-9, 70, 3 if arity == 2 else 1) if limits.min <= v <= limits.max]
        values = np.array([*near, *small], name)
    else:
        values = _real_samples(np.dtype(name).type(0).real.dtype.name, rng, arity)
        if element.kind == "complex":
            parts = values[:: 1 if arity == 1 else 3]
            values = np.zeros(len(parts) ** 2, name)
            values.imag = np.tile(parts, len(parts))
            values.real = np.repeat(parts, len(parts))
    if arity == 1:
        return [values]
    return [np.repeat(values, len(values)), np.tile(values, len(values))]


def _real_samples(name: str, rng: Any, arity: int) -> Any:
    limits = np.finfo(name)
    special = [0.0, 1.0, np.inf, 0.5, 2.5, limits.max, limits.tiny, limits.smallest_subnormal]
    special += [np.nan, limits.eps, 1 + limits.eps, 88.7, 709.7, 710.0, 745.2, 3.0, 1e5, 1e22]
    drawn = rng.normal(size=6) if arity == 2 else 4 * rng.normal(size=200)
    with np.errstate(over="ignore"):
        found = np.array([*special, *drawn], name)
    return np.concatenate([found, -found])


# ---------------------------------------------------------------- results


@pytest.mark.parametrize(("function", "element"), CASES)
def test_results_are_those_of_numpy(
    function: ScalarFunction,
    element: ScalarType,
    kernel: Callable[[ScalarType], LoadedKernel],
) -> None:
    arguments = samples(element, function.arity)
    if function.name == "power" and element.kind == "int":
        arguments = [x[arguments[1] >= 0] for x in arguments]
    found = computed(kernel(element), function, *arguments)
    with np.errstate(all="ignore"):
        wanted = expected(function.name, arguments)
    compare(function.name, element, arguments, found, wanted)


def expected(name: str, arguments: list[Any]) -> Any:
    """NumPy's results, of its functions or of what they say where it has none for the type."""
    (first, *_), kind = arguments, arguments[0].dtype.kind
    if kind == "b" and name in ("floor", "ceil", "trunc", "rint", "real", "conj"):
        return first
    if kind == "b" and name == "imag":
        return np.zeros_like(first)
    if kind in "iu" and name == "rint":
        return np.round(first)
    return numpy_function(name)(*arguments)


def compare(name: str, element: ScalarType, arguments: list[Any], found: Any, wanted: Any) -> None:
    assert found.dtype == wanted.dtype
    if element.kind == "complex" and wanted.dtype.kind in "cf":
        compare_complex(name, arguments, found, wanted)
    elif (name in EXACT and name != "power") or element.is_integer or element == BOOL:
        np.testing.assert_array_equal(found, wanted)
    else:
        assert_near(found, wanted, arguments, size_of(name, arguments, wanted))


CANCELS = ("logaddexp",)
"""Functions whose value may be far smaller than an argument, which is a term of it."""


def size_of(name: str, arguments: list[Any], wanted: Any) -> Any:
    """Find the number in whose last place an error is counted."""
    return np.abs(arguments[0] if name in CANCELS else wanted).clip(np.abs(wanted))


def assert_near(
    found: Any, wanted: Any, arguments: list[Any], size: Any, ulps: float = 4.0
) -> None:
    """Both NaN, both the same infinity, or a few units in the last place of `size` apart."""
    with np.errstate(all="ignore"):
        apart = np.abs(found - wanted) / np.spacing(size)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    bad = ~(same | (apart <= ulps))
    assert not bad.any(), [
        (*(x[bad][k] for x in arguments), found[bad][k], wanted[bad][k])
        for k in range(min(5, bad.sum()))
    ]


def compare_complex(name: str, arguments: list[Any], found: Any, wanted: Any) -> None:
    """Finite results of moderate arguments are near as a whole, relative to the larger part."""
    finite = np.isfinite(wanted)
    if name in EXACT and name not in ("sqrt", "power", "sign", "abs", "angle"):
        np.testing.assert_array_equal(found, wanted)
        return
    moderate = finite & np.all([np.abs(x) < 1e4 for x in arguments], axis=0)
    eps = np.finfo(wanted.dtype).eps
    with np.errstate(all="ignore"):
        scale = np.maximum(np.abs(wanted), 1) if name != "power" else np.abs(wanted) * 100 + 1
        apart = np.abs(found - wanted)
    bad = moderate & ~(apart <= 64 * eps * scale)
    assert not bad.any(), [
        (*(x[bad][k] for x in arguments), found[bad][k], wanted[bad][k])
        for k in range(min(5, bad.sum()))
    ]


# ---------------------------------------------------------------- in the loop IR

X64, X32, K64, K32 = Var("x", FLOAT64), Var("x", FLOAT32), Var("k", INT64), Var("k", INT32)


def test_a_function_prints_by_its_name() -> None:
    assert pretty(apply("exp", apply("sqrt", X64))) == "exp(sqrt(x))"


def test_a_function_is_spelled_for_its_type() -> None:
    assert expression(apply("exp", X64)) == "taco_exp_f64(x)"
    assert expression(apply("sqrt", X32)) == "sqrtf(x)"
    assert expression(apply("floor_divide", K32, K64)) == "taco_floor_divide_i64(k, k)"
    assert expression(apply("less", X64, X64)) == "x < x"
    assert expression(apply("bitwise_or", K64, apply("bitwise_and", K64, K64))) == "k | (k & k)"


def test_a_function_may_be_its_argument_or_a_constant() -> None:
    assert apply("floor", K64) is K64
    assert apply("isnan", K64) == FALSE
    assert apply("isfinite", K64) == TRUE
    assert apply("imag", X32) == Const(0.0, FLOAT32)


def test_names_of_c_functions_are_reserved() -> None:
    spellings = [s for function in FUNCTIONS.values() for s in function.spellings.values()]
    names = [s.name for s in spellings if isinstance(s, CFunction)]
    assert names and all(map(is_reserved, names))


def test_there_is_no_function_of_other_types() -> None:
    assert not has_function("exp", INT64) and not has_function("expp", FLOAT64)
    for name, argument in (("exp", K64), ("expp", X64)):
        with pytest.raises(KeyError):
            apply(name, argument)


@pytest.mark.parametrize(
    ("expr", "message"),
    [
        (Apply("expp", (X64,)), "no function of 1 arguments"),
        (Apply("exp", (X64, X64)), "no function of 2 arguments"),
        (Apply("exp", (K64,)), "no C function for int64"),
        (Apply("less", (X64, X64)), "no C function for float64"),
        (Apply("hypot", (X64, K64)), "joins a float64 and a int64"),
    ],
)
def test_an_illegal_function_is_refused(expr: Apply, message: str) -> None:
    y = Array("y", FLOAT64, Storage.OUTPUT)
    scalars = tuple({v.name: v for arg in expr.args for v in (arg,)}.values())
    if len({arg.name for arg in expr.args}) < len(set(expr.args)):
        pytest.skip("one name of two types")
    function = Function("f", (y,), scalars, block(Store(y, Const(0), expr)))
    with pytest.raises(IRError, match=message):
        verify(function)


@pytest.mark.parametrize("element", [FLOAT32, FLOAT64], ids=str)
def test_loops_over_functions_that_vectorize_are_marked(element: ScalarType) -> None:
    for function in FUNCTIONS.values():
        if has_function(function.name, element):
            found = run_passes(Module((function_of(function, element),)), TARGET)
            called = function.spellings[element.name]
            wanted = not isinstance(called, CFunction) or called.vectorizes
            is_marked = [loop.kind is LoopKind.VECTOR for loop in find(found, For)]
            # minimum and maximum of floats are calls of the runtime's
            assert is_marked == [wanted], function.name


def test_only_kernels_that_need_them_include_the_functions() -> None:
    own, library = (function_of(FUNCTIONS[name], FLOAT64) for name in ("exp", "atan"))
    assert '#include "taco_math.h"' in emit_c(Module((own,)), TARGET)
    assert "taco_math.h" not in emit_c(Module((library,)), TARGET)
    assert "<math.h>" in emit_c(Module((library,)), TARGET)


@pytest.mark.parametrize("op", ["&", "|", "^"])
@pytest.mark.parametrize("element", [BOOL, INT8, INT64], ids=str)
def test_bit_operators_update(op: str, element: ScalarType, tmp_path: Path) -> None:
    x, y = Array("x", element, Storage.INPUT), Array("y", element, Storage.OUTPUT)
    function = Function("f", (x, y), (N_I,), block(loop(I, N_I, Store(y, I, load(x, I), op))))
    verify(function)
    source = KernelSource(emit_c(Module((function,)), TARGET), (signature_of(function),))
    kernels = KernelCache(store=KernelStore(tmp_path))
    call = kernels.get_or_build("f", lambda: source).kernel.functions["f"]
    (first, second) = samples(element, 2)
    found = second.copy()
    call(first, found, len(first))
    ways = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}
    np.testing.assert_array_equal(found, ways[op](second, first))


# ---------------------------------------------------------------- how near, and in which loops

NEAR: dict[str, tuple[float, float]] = {
    "exp": (-745.0, 709.0), "expm1": (-1.1, 1.1), "log": (0.0, 3.0), "log1p": (-1.0, 3.0),
    "log2": (0.0, 3.0), "log10": (0.0, 3.0), "sin": (-1e4, 1e4), "cos": (-1e4, 1e4),
    "tanh": (-20.0, 20.0), "sigmoid": (-40.0, 40.0), "erf": (-6.0, 6.0), "cbrt": (-9.0, 9.0),
}  # fmt: skip
"""Where each polynomial is sampled."""

precise = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 63, reason="long double has no more digits than double"
)


@pytest.mark.parametrize("name", NEAR)
def test_float_is_within_one_ulp(name: str, kernel: Callable[[ScalarType], LoadedKernel]) -> None:
    low, high = (max(min(bound, 88.0), -87.0) for bound in NEAR[name])
    x = np.random.default_rng(1).uniform(low, high, 50_000).astype(np.float32)
    found = computed(kernel(FLOAT32), FUNCTIONS[name], x)
    exact = numpy_function(name)(x.astype(np.float64))
    assert ulps(found, exact) <= 1


@pytest.mark.parametrize("name", ["exp", "expm1", "tanh", "sigmoid", "erf"])
def test_float_is_within_one_ulp_of_all_sizes(
    name: str, kernel: Callable[[ScalarType], LoadedKernel]
) -> None:
    """A thousandth of all bit patterns, those beyond the finite results and subnormal ones too."""
    x = np.arange(0, 2**32, 1021, dtype=np.uint32).view(np.float32)
    found = computed(kernel(FLOAT32), FUNCTIONS[name], x)
    with np.errstate(all="ignore"):
        exact = numpy_function(name)(x.astype(np.float64))
        near = exact.astype(np.float32)
    finite = np.isfinite(near)
    assert ulps(found[finite], exact[finite]) <= 1
    np.testing.assert_array_equal(found[~finite], near[~finite])


@pytest.mark.parametrize("element", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", NEAR)
def test_values_do_not_depend_on_their_place(
    name: str, element: ScalarType, kernel: Callable[[ScalarType], LoadedKernel]
) -> None:
    """In whole vectors, in what is left of them, and one by one."""
    x = np.random.default_rng(4).uniform(*NEAR[name], 67).astype(element.name)
    found = computed(kernel(element), FUNCTIONS[name], x)
    each = [computed(kernel(element), FUNCTIONS[name], x[n : n + 1])[0] for n in range(len(x))]
    np.testing.assert_array_equal(found, each)
    for length in (2, 3, 5, 7, 13, 31):
        np.testing.assert_array_equal(
            computed(kernel(element), FUNCTIONS[name], x[-length:]), found[-length:]
        )


@pytest.mark.skipif(platform.machine() != "x86_64", reason="counts instructions of x86")
@pytest.mark.parametrize("name, most", [("exp", 32), ("expm1", 46), ("erf", 50)])
def test_steps_of_a_vector(name: str, most: int, tmp_path: Path) -> None:
    """Few instructions in the loop: no branch, and no case twice, which gcc makes of two clamps."""
    compiler = find_compiler()
    if compiler.kind != "gcc":
        pytest.skip("counts what gcc makes")
    text = (
        '#include "taco_runtime.h"\n#include "taco_math.h"\n'
        "void f(float *restrict y, const float *restrict x, int64_t n)\n{\n#pragma omp simd\n"
        f"for (int64_t i = 0; i < n; i++) y[i] = taco_{name}_f32(x[i]);\n}}\n"
    )
    flags = [flag for flag in compiler.flags if not flag.startswith("-march")]
    source, out = tmp_path / "f.c", tmp_path / "f.s"
    source.write_text(text)
    options = ("-march=haswell", "-fopenmp-simd", f"-I{FOLDER}", "-S", "-o", str(out))
    subprocess.run([*compiler.command, *flags, *options, str(source)], check=True)
    assert steps_of_loop(out.read_text()) <= most


def steps_of_loop(assembly: str) -> int:
    """How many instructions the first loop of `f` has."""
    lines = assembly.partition("\nf:")[2].splitlines()
    labels = {line[:-1]: place for place, line in enumerate(lines) if line.endswith(":")}
    for place, line in enumerate(lines):
        words = line.split()
        start = labels.get(words[-1], place) if words and words[0].startswith("j") else place
        if start < place:
            body = lines[start:place]
            return sum(x.startswith("\t") and not x.startswith("\t.") for x in body) + 1
    raise AssertionError("no loop")


@precise
@pytest.mark.parametrize("name", sorted(NEAR.keys() - {"erf"}))
def test_double_is_within_one_ulp(name: str, kernel: Callable[[ScalarType], LoadedKernel]) -> None:
    x = np.random.default_rng(1).uniform(*NEAR[name], 50_000)
    found = computed(kernel(FLOAT64), FUNCTIONS[name], x)
    assert ulps(found, numpy_function(name)(x.astype(np.longdouble))) <= 1


def ulps(found: Any, exact: Any) -> float:
    """The largest distance in units in the last place of the exact results, in the type found."""
    unit = np.spacing(np.abs(exact.astype(found.dtype)))
    return float(np.max(np.abs(found.astype(exact.dtype) - exact) / unit))


@pytest.mark.parametrize("element", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_far_arguments_beside_near_ones(
    name: str, element: ScalarType, kernel: Callable[[ScalarType], LoadedKernel]
) -> None:
    rng = np.random.default_rng(2)
    x = (10.0 ** rng.uniform(-3, 38, 1000) * rng.choice([-1, 1], 1000)).astype(element.name)
    found = computed(kernel(element), FUNCTIONS[name], x)
    # NumPy's sine of many floats is not that near
    exact = [getattr(math, name)(float(value)) for value in x]
    np.testing.assert_allclose(found, exact, rtol=0, atol=2 * np.finfo(element.name).eps)
    infinite = np.array([np.inf, 1.0, -np.inf, np.nan] * 8, element.name)
    assert np.isnan(computed(kernel(element), FUNCTIONS[name], infinite)[[0, 2, 3]]).all()


@pytest.mark.parametrize("element", [FLOAT32, FLOAT64], ids=str)
def test_a_sum_over_gathered_arguments(element: ScalarType, tmp_path: Path) -> None:
    """y[0] = sum(i, exp(x[i] - z[j[i]])) has vector lanes: the function is long."""
    x, z = Array("x", element, Storage.INPUT), Array("z", element, Storage.INPUT)
    j, y = Array("j", INT32, Storage.INPUT), Array("y", element, Storage.OUTPUT)
    total = Var("total", element)
    value = apply("exp", sub(load(x, I), load(z, load_index(j, I))))
    body = block(
        Declare(total, zero(element)),
        loop(I, N_I, Assign(total, value, "+")),
        Store(y, Const(0), total),
    )
    module = run_passes(Module((Function("sums", (x, z, j, y), (N_I,), body),)), TARGET)
    assert LoopKind.VECTOR in [each.kind for each in find(module, For)]
    rng = np.random.default_rng(3)
    xs, zs = (rng.normal(size=n).astype(element.name) for n in (1001, 77))
    places, found = rng.integers(0, 77, 1001).astype(np.int32), np.zeros(1, element.name)
    source = KernelSource(emit_c(module, TARGET), (signature_of(module.functions[0]),))
    kernels = KernelCache(store=KernelStore(tmp_path))
    kernels.get_or_build("sums", lambda: source).kernel.functions["sums"](
        xs, zs, places, found, 1001
    )
    np.testing.assert_allclose(found[0], np.exp(xs - zs[places]).sum(), rtol=1e-5)


def test_without_fused_operations_the_c_library_is_called(tmp_path: Path) -> None:
    """As in a kernel that is exported and compiled for any processor of its kind."""
    text = '#include <math.h>\n#define TACO_SINES\n#include "taco_math.h"\n'
    text += "double f(double x) { return taco_sin_f64(x) + taco_exp_f64(x); }\n"
    compiler = find_compiler()
    unit = Unit((("f.c", text),), ("-Wall", "-Wextra", "-Werror"), output="f.o")
    assert compile_unit(compiler, unit, ("-O2",), tmp_path).exists()
