"""Emitted C: what it looks like, that compilers take it without a warning, and what it computes."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from codegen.build import add, cast, load, load_index, lt, mul, select, sub
from codegen.emit.abi import THREADS, prototype
from codegen.emit.c import emit_c
from codegen.emit.expressions import expression
from codegen.ir import (
    Array,
    Assign,
    Binary,
    Broadcast,
    Call,
    Cast,
    Comment,
    Const,
    Declare,
    Expr,
    Fill,
    Function,
    If,
    Load,
    Module,
    Reserve,
    Store,
    Unary,
    Var,
    VectorLoad,
)
from codegen.libraries.c_text import definition
from codegen.machine.cpu import Processor
from codegen.machine.target import Target
from codegen.names import UnwritableNameError
from codegen.passes.order import run_passes
from codegen.passes.phases import structure_only
from codegen.types import (
    BOOL,
    COMPLEX64,
    COMPLEX128,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    SCALARS,
    UINT8,
    UINT32,
    UINT64,
    ScalarType,
)
from tests.codegen.functions import (
    CRD,
    N_I,
    I,
    J,
    X,
    Y,
    all_functions,
    block,
    const,
    growing,
    loop,
    result,
    row_append,
    source,
)
from tests.codegen.inputs import arguments
from tests.codegen.interpreter import run

GOLDEN = Path(__file__).parent / "golden"
HEADERS = Path(__file__).parent.parent.parent / "codegen" / "runtime"
TARGET = Target(machine=Processor(vector_bytes=32), openmp=True)
FUNCTIONS = {function.name: function for function in all_functions()}

COMPILER = shutil.which(os.environ.get("CC", "gcc")) or shutil.which("cc")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def optimised(function: Function) -> Module:
    return run_passes(Module((function,), f"{function.name}, by hand"), TARGET)


STRUCTURE = replace(structure_only(row_append()), name="row_append_structure")
GOLDENS = {**FUNCTIONS, STRUCTURE.name: STRUCTURE}


# ---------------------------------------------------------------- golden files


@pytest.mark.parametrize("name", GOLDENS)
def test_golden(name: str, update_golden: bool) -> None:
    text = emit_c(optimised(GOLDENS[name]), TARGET)
    path = GOLDEN / f"{name}.c"
    if update_golden:
        path.write_text(text)
    assert path.exists(), f"{path.name} is missing: look at it after pytest --update-golden"
    assert text == path.read_text()


@needs_compiler
@pytest.mark.parametrize("openmp", [True, False], ids=["openmp", "serial"])
def test_the_compiler_has_nothing_to_say(openmp: bool, tmp_path: Path) -> None:
    target = Target(machine=Processor(vector_bytes=32), openmp=openmp)
    text = emit_c(run_passes(Module(tuple(GOLDENS.values())), target), target)
    flags = ["-fopenmp"] if openmp else ["-fopenmp-simd"]
    compile_c(text, tmp_path, "-mavx2", "-fsyntax-only", *flags)


def compile_c(text: str, folder: Path, *flags: str) -> None:
    path = folder / "kernel.c"
    path.write_text(text)
    warnings = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS}"]
    assert COMPILER is not None
    command = [COMPILER, *warnings, *flags, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stderr}\n{text}"


# ---------------------------------------------------------------- what it computes


class Buffer(ctypes.Structure):
    """`taco_buffer` of the runtime header."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("length", ctypes.c_int64),
        ("capacity", ctypes.c_int64),
        ("mapped", ctypes.c_int64),
        ("spare", ctypes.c_void_p),
        ("spare_bytes", ctypes.c_int64),
        ("floor", ctypes.c_int64),
        ("budget", ctypes.c_void_p),
        ("taken", ctypes.c_int64),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """All functions of the tests, optimised for the vectors that every x86-64 has."""
    target = Target(machine=Processor(vector_bytes=16), openmp=True)
    found = run_passes(Module(tuple(GOLDENS.values())), target)
    folder = tmp_path_factory.mktemp("emit")
    flags = ["-O1", "-fwrapv", "-fPIC", "-shared", "-fopenmp", "-o", str(folder / "kernel.so")]
    compile_c(emit_c(found, target), folder, *flags)
    return ctypes.CDLL(str(folder / "kernel.so"))


def call(library: ctypes.CDLL, function: Function, arrays: Any, scalars: Any, threads: int) -> Any:
    """Call the compiled `function`; its arrays and buffers by name."""
    # The passes may have dropped parameters, and the test must pass those that are left.
    (kept,) = run_passes(
        Module((function,)), Target(machine=Processor(vector_bytes=16), openmp=True)
    ).functions
    held: dict[str, Any] = {}
    values: list[Any] = []
    for array in kept.arrays:
        if array.name in arrays:
            held[array.name] = np.array(arrays[array.name], array.element.name)
            values.append(ctypes.c_void_p(held[array.name].ctypes.data))
        else:
            held[array.name] = Buffer()
            values.append(ctypes.byref(held[array.name]))
    values += [ctypes.c_int64(scalars[scalar.name]) for scalar in kept.scalars]
    values += [ctypes.c_int32(threads)] if kept.threaded else []
    assert getattr(library, function.name)(*values) == 0
    return held


@needs_compiler
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_functions_compute_what_the_ir_means(
    name: str, seed: int, threads: int, library: ctypes.CDLL
) -> None:
    function = FUNCTIONS[name]
    arrays, scalars = arguments(name, seed)
    wanted = run(function, arrays, scalars)
    found = call(library, function, arrays, scalars, threads)
    for array in function.arrays:
        value = found.get(array.name)
        if isinstance(value, Buffer):
            assert value.length == wanted.lengths[array.name]
            held = as_array(value, array.element)
            assert_array_equal(held, wanted.arrays[array.name][: value.length])
        elif value is not None:
            assert_array_equal(value, wanted.arrays[array.name])


def as_array(buffer: Buffer, element: ScalarType) -> Any:
    if not buffer.length:
        return np.zeros(0, element.name)
    text = ctypes.string_at(buffer.data, buffer.length * element.itemsize)
    return np.frombuffer(text, element.name)


# ---------------------------------------------------------------- expressions

A, B, C = Var("a", FLOAT64), Var("b", FLOAT64), Var("c", FLOAT64)
S, T, U = Var("s", BOOL), Var("t", BOOL), Var("u", BOOL)
M, M8, V32 = Var("m", INT32), Var("m8", INT8), Var("v", UINT32)


def op(symbol: str, left: Expr, right: Expr) -> Binary:
    return Binary(symbol, left, right)


EXPRESSIONS: list[tuple[Expr, str]] = [
    (op("*", op("+", A, B), C), "(a + b) * c"),
    (op("+", op("*", A, B), C), "a * b + c"),
    (op("-", A, op("-", B, C)), "a - (b - c)"),
    (op("-", op("-", A, B), C), "a - b - c"),
    (op("/", A, op("*", B, C)), "a / (b * c)"),
    (op("<", op("+", I, J), N_I), "i + j < n_i"),
    (op("==", op("<", I, J), S), "(i < j) == s"),
    (op("||", op("&&", S, T), U), "(s && t) || u"),
    (op("&&", op("||", S, T), U), "(s || t) && u"),
    (op("&&", op("&&", S, T), U), "s && t && u"),
    (op("&&", lt(I, J), S), "i < j && s"),
    (op("+", S, T), "s || t"),
    (op("*", S, op("+", T, U)), "s && (t || u)"),
    (op("max", S, T), "s || t"),
    (op("min", A, B), "taco_min_f64(a, b)"),
    (op("max", I, J), "taco_max_i64(i, j)"),
    (op("min", V32, V32), "taco_min_u32(v, v)"),
    (Unary("-", Unary("-", A)), "- -a"),
    (Unary("!", op("&&", S, T)), "!(s && t)"),
    (op("-", A, Unary("-", B)), "a - -b"),
    (Unary("-", op("+", A, B)), "-(a + b)"),
    (select(lt(I, J), A, B), "i < j ? a : b"),
    (op("+", select(lt(I, J), A, B), C), "(i < j ? a : b) + c"),
    (Call("exp", (op("+", A, B),), FLOAT64), "exp(a + b)"),
    (Cast(FLOAT64, op("+", I, J)), "(double)(i + j)"),
    (Cast(COMPLEX128, A), "(double complex)a"),
    # C's int would hold these where the loop IR computes in 64 bits.
    (op("*", const(100000), const(100000)), "(int64_t)100000 * 100000"),
    (op("*", cast(INT64, M), const(8)), "(int64_t)m * 8"),
    (op("*", cast(INT64, M), N_I), "m * n_i"),
    (op("*", N_I, cast(INT64, M)), "n_i * m"),
    (op("-", cast(INT64, M), cast(INT64, M)), "m - (int64_t)m"),
    (op("<", cast(INT64, M), const(8)), "m < 8"),
    (load(X, load_index(CRD, I)), "x[A2_crd[i]]"),
    (load(X, add(load_index(CRD, I), N_I)), "x[A2_crd[i] + n_i]"),
    # C computes int8 in int, and NumPy wraps.
    (op("+", M8, M8), "(int8_t)(m8 + m8)"),
    (op("<", op("*", M8, M8), M8), "(int8_t)(m8 * m8) < m8"),
    (Unary("-", M8), "(int8_t)-m8"),
    (op("+", V32, V32), "v + v"),
    # Constants.
    (Const(0.1, FLOAT64), "0.1"),
    (Const(1e300, FLOAT64), "1e+300"),
    (Const(-0.0, FLOAT64), "-0.0"),
    (Const(0.5, FLOAT32), "0.5f"),
    (Const(float("inf"), FLOAT64), "INFINITY"),
    (Const(float("-inf"), FLOAT64), "-INFINITY"),
    (Const(float("nan"), FLOAT64), "NAN"),
    (Const(True, BOOL), "true"),
    (Const(-3), "-3"),
    (op("-", I, Const(-3)), "i - -3"),
    (Const(-(2**63)), "INT64_MIN"),
    (Const(2**64 - 1, UINT64), "UINT64_C(18446744073709551615)"),
    (Const(200, UINT8), "200u"),
    (Const(1 - 2j, COMPLEX128), "CMPLX(1.0, -2.0)"),
    (Const(complex(0.0, float("inf")), COMPLEX64), "CMPLXF(0.0f, INFINITY)"),
    # Vectors.
    (VectorLoad(X, I, 4), "*(const taco_float64x4 *)&x[i]"),
    (op("*", VectorLoad(Y, I, 4), Broadcast(A, 4)), "*(taco_float64x4 *)&y[i] * a"),
    (op("*", Broadcast(op("+", A, B), 2), VectorLoad(X, I, 2)),
     "(a + b) * (*(const taco_float64x2 *)&x[i])"),
    (Broadcast(A, 2), "(taco_float64x2){a, a}"),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "text"), EXPRESSIONS, ids=[text for _, text in EXPRESSIONS])
def test_expression(expr: Expr, text: str) -> None:
    assert expression(expr) == text


# ---------------------------------------------------------------- statements


def statement(*body: Any) -> str:
    """The C of the statements, without the function around them."""
    arrays = (X, CRD, Y)
    text = emit_c(Module((Function("f", arrays, (N_I, A), block(*body)),)), TARGET)
    inside = text[text.index("{\n") + 2 : text.rindex("    return 0;")]
    return "\n".join(line.removeprefix("    ") for line in inside.rstrip().splitlines())


FLAGS = result("flags", BOOL)
GROWS = growing("c")
STATEMENTS: list[tuple[Any, str]] = [
    (Assign(I, const(1), "+"), "i++;"),
    (Assign(I, const(1), "-"), "i--;"),
    (Assign(A, Const(1.0, FLOAT64), "+"), "a += 1.0;"),
    (Assign(A, B, "min"), "a = taco_min_f64(a, b);"),
    (Assign(S, T, "||"), "s |= t;"),
    (Store(FLAGS, I, S, "*"), "flags[i] &= s;"),
    (Store(Y, I, A, "max"), "y[i] = taco_max_f64(y[i], a);"),
    (Declare(J, load_index(CRD, I), constant=True), "const int64_t j = A2_crd[i];"),
    (Declare(Var("z", COMPLEX64), Const(0j, COMPLEX64)), "float complex z = CMPLXF(0.0f, 0.0f);"),
    (Fill(Y, const(0), N_I, Const(0.0, FLOAT64)), "taco_clear(y, n_i, sizeof(double));"),
    (Fill(Y, I, const(3), Const(-0.0, FLOAT64)),
     "for (int64_t k = 0; k < 3; k++) {\n    y[i + k] = -0.0;\n}"),
    (Fill(Y, const(0), N_I, A), "for (int64_t k = 0; k < n_i; k++) {\n    y[k] = a;\n}"),
    (Comment("one\ntwo\\"), "// one\n// two"),
    (loop(I, sub(N_I, 1), Store(Y, I, A)),
     "for (int64_t i = 0; i < n_i - 1; i++) {\n    y[i] = a;\n}"),
    (If(S, block(Store(Y, I, A)), block(If(T, block(Store(Y, I, B)), block(Store(Y, I, C))))),
     "if (s) {\n    y[i] = a;\n} else if (t) {\n    y[i] = b;\n} else {\n    y[i] = c;\n}"),
]  # fmt: skip


@pytest.mark.parametrize(("stmt", "text"), STATEMENTS, ids=[text for _, text in STATEMENTS])
def test_statement(stmt: Any, text: str) -> None:
    assert statement(stmt) == text


def test_a_long_size_is_written_once() -> None:
    size = add(load_index(CRD, I), sub(load_index(CRD, J), load_index(CRD, N_I)))
    text = emit_c(
        Module((Function("f", (CRD, GROWS), (I, J, N_I), block(Reserve(GROWS, size))),)), TARGET
    )
    assert "const int64_t c_room = A2_crd[i] + (A2_crd[j] - (int64_t)A2_crd[n_i]);" in text
    assert "if (taco_unlikely(c_room > c_buffer->capacity)) {" in text
    assert "if (taco_grow(c_buffer, c_room, sizeof(double))) {" in text


def test_the_header_cannot_end_its_comment() -> None:
    text = emit_c(Module((), "y = a */ b"), TARGET)
    assert text.startswith("/* y = a * / b */")


def test_the_prototype_lists_arrays_then_scalars_then_threads() -> None:
    function = FUNCTIONS["hashed"]
    assert prototype(function) == (
        "int32_t hashed(const int32_t *restrict A2_pos, const int32_t *restrict A2_crd, "
        "const double *restrict A_vals, double *restrict out, int64_t n_i, int64_t n_j, "
        "int32_t threads)"
    )
    assert THREADS.type == INT32


@needs_compiler
@pytest.mark.parametrize("scalar", SCALARS.values(), ids=str)
def test_every_type_compiles(scalar: ScalarType, tmp_path: Path) -> None:
    x, y = Array("x", scalar, X.storage), Array("y", scalar, Y.storage)
    product = mul(load(x, I), load(x, I))
    body = block(loop(I, N_I, Store(y, I, product, "+"), Store(y, I, Load(y, I), "*")))
    function = Function("f", (x, y), (N_I,), body)
    compile_c(emit_c(optimised(function), TARGET), tmp_path, "-fsyntax-only", "-fopenmp")


@needs_compiler
def test_extrema_pass_nan_on(tmp_path: Path) -> None:
    lower, upper = result("lower"), result("upper")
    a, b = source("a"), source("b")
    body = loop(
        I,
        N_I,
        Store(lower, I, op("min", load(a, I), load(b, I))),
        Store(upper, I, op("max", load(a, I), load(b, I))),
    )
    function = Function("extrema", (a, b, lower, upper), (N_I,), block(body))
    flags = ["-O2", "-fPIC", "-shared", "-fopenmp-simd", "-o", str(tmp_path / "kernel.so")]
    compile_c(emit_c(optimised(function), TARGET), tmp_path, *flags)
    values = np.array([1.0, np.nan, -np.inf, 0.5])
    left, right = (m.ravel() for m in np.meshgrid(values, values))
    out = np.zeros((2, left.size))
    arrays = [np.ascontiguousarray(v) for v in (left, right)] + [out[0], out[1]]
    pointers = [ctypes.c_void_p(v.ctypes.data) for v in arrays]
    ctypes.CDLL(str(tmp_path / "kernel.so")).extrema(*pointers, ctypes.c_int64(left.size))
    assert_array_equal(out, [np.minimum(left, right), np.maximum(left, right)])


HARMFUL = ("x*/ system(0); /*", "x; abort()", "x y", "", "x\n#include <a>", "é", "1x")


@pytest.mark.parametrize("name", HARMFUL)
def test_names_that_are_no_identifiers_are_never_written(name: str) -> None:
    assert FUNCTIONS, "of functions that are emitted otherwise"
    whole = next(iter(FUNCTIONS.values()))
    array, scalar = whole.arrays[0], Var(name, INT64)
    for function in (
        replace(whole, name=name),
        replace(whole, scalars=(*whole.scalars, scalar)),
        Function("f", (replace(array, name=name),), (N_I,), block()),
    ):
        with pytest.raises(UnwritableNameError):
            emit_c(Module((function,)), TARGET)
    for parameters in ((name,), ("x", name)):
        with pytest.raises(UnwritableNameError):
            definition("f", parameters, "x", "float64", "float64")
