"""What a user gets wrong: the error's class, what its message names, and that nothing of theirs
changes.
"""

from __future__ import annotations

import functools
import gzip
import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.arguments.operands import OPTIONS
from taco_py.language.notation.parser import parse_assignment

ROOT = Path(__file__).parent.parent.parent
A = sp.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
B = sp.csr_array(np.eye(2))
X = np.arange(3.0)
Y = np.arange(2.0)


def error_of(call: Callable[[], Any], kind: type[Exception] = tp.TacoError) -> str:
    """The message of the error that `call` must raise."""
    with pytest.raises(kind) as caught:
        call()
    assert isinstance(caught.value, tp.TacoError)
    return str(caught.value)


def names(message: str, *parts: str) -> None:
    """The message says what was expected and found, and has all of these parts."""
    missing = [part for part in ("Expected", "found", *parts) if part not in message]
    assert not missing, f"{missing} not in:\n{message}"


def caret_under(message: str, text: str, place: str) -> None:
    """The message shows `text`, and below it carets that begin under `place`."""
    lines = message.splitlines()
    (shown,) = (number for number, line in enumerate(lines) if line.strip() == text)
    start = lines[shown].index(text) + text.index(place)
    assert lines[shown + 1].index("^") == start, message


def type_name(value: Any) -> str:
    """The name of a test's parameter, which is the same in every process."""
    return type(value).__name__


SYNTAX = (
    ("y[i] = A[i,j] * ", 16),
    ("y[i] = A[i,j] ** ", 17),
    ("y[i] = A[i,j * x[j]", 13),
    ("y[i] = (A[i,j] * x[j]", 7),
    ("y[i] A[i,j]", 5),
    ("y[i] = A[i,j] x[j]", 14),
    ("y[i] = A[i,j] * x[j] $", 21),
    ("= A[i,j]", 0),
    ("", 0),
)


@pytest.mark.parametrize(("text", "place"), SYNTAX)
def test_syntax_points_at_the_place(text: str, place: int) -> None:
    message = error_of(lambda: tp.evaluate(text, A=A, x=X), ValueError)
    names(message)
    if text:
        lines = message.splitlines()
        shown = next(number for number, line in enumerate(lines) if line.strip() == text.strip())
        margin = len(lines[shown]) - len(lines[shown].lstrip())
        assert lines[shown + 1].index("^") - margin == place


def test_unknown_operand() -> None:
    message = error_of(lambda: tp.evaluate("y[i] = A[i,j] * x[j]", A=A), ValueError)
    names(message, "x", "A")
    caret_under(message, "y[i] = A[i,j] * x[j]", "x[j]")


def test_unused_operand() -> None:
    names(error_of(lambda: tp.evaluate("y[i] = A[i,j]", A=A, extra=X), ValueError), "extra")


def test_wrong_order_names_both_counts() -> None:
    message = error_of(lambda: tp.evaluate("y[i] = A[i] * x[i]", A=A, x=X), ValueError)
    names(message, "A", "1", "2")
    caret_under(message, "y[i] = A[i] * x[i]", "A[i]")


def test_one_operand_with_two_orders() -> None:
    names(error_of(lambda: tp.evaluate("y[i] = A[i,j] * A[i]", A=A), ValueError), "A")


def test_sizes_that_disagree_name_operands_index_and_sizes() -> None:
    message = error_of(lambda: tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=np.ones(4)), ValueError)
    names(message, "A", "x", "j", "3", "4")


def test_sizes_that_disagree_within_one_operand() -> None:
    names(error_of(lambda: tp.evaluate("s = A[i,i]", A=A), ValueError), "A", "i", "2", "3")


def test_sizes_that_disagree_in_einsum() -> None:
    names(error_of(lambda: tp.einsum("ij,j->i", A, np.ones(4)), ValueError), "j", "3", "4")


def test_output_index_that_no_operand_has() -> None:
    message = error_of(lambda: tp.evaluate("y[i,z] = A[i,j] * x[j]", A=A, x=X), ValueError)
    names(message, "z")
    message = error_of(lambda: tp.einsum("ij,j->iz", A, X), ValueError)
    names(message, "z")
    caret_under(message, "ij,j->iz", "z")


def test_repeated_output_index() -> None:
    names(error_of(lambda: tp.evaluate("C[i,i] = A[i,j]", A=A), ValueError), "i")
    names(error_of(lambda: tp.einsum("ij->ii", A), ValueError), "i")


@pytest.mark.parametrize(
    "array",
    [
        np.array([None, 1, 2], dtype=object),
        np.array(["a", "b", "c"]),
        np.ones(3, "datetime64[s]"),
        np.ones(3, np.longdouble),
    ],
    ids=lambda array: str(array.dtype),
)
def test_unsupported_dtypes(array: Any) -> None:
    message = error_of(lambda: tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=array), TypeError)
    names(message, str(array.dtype), "x")


@pytest.mark.parametrize("operand", [None, "text", {"a": 1}, object()], ids=type_name)
def test_unsupported_operand_types(operand: Any) -> None:
    message = error_of(lambda: tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=operand), TypeError)
    names(message, type(operand).__name__, "x")


def test_bool_has_no_minus() -> None:
    """NumPy refuses it too; silence would give an "or"."""
    flags = np.array([True, False])
    names(error_of(lambda: tp.evaluate("y[i] = a[i] - b[i]", a=flags, b=flags), TypeError), "bool")


def broken(**changes: Any) -> Any:
    """A CSR array whose structure is wrong in one place; scipy does not look."""
    matrix = A.copy()
    for name, value in changes.items():
        setattr(matrix, name, np.asarray(value))
    return matrix


def int32(*values: int) -> Any:
    return np.array(values, np.int32)


MALFORMED = {
    "indptr falls": (broken(indptr=int32(0, 3, 2)), "indptr", "1"),
    "indptr starts late": (broken(indptr=int32(1, 2, 3)), "indptr", "0"),
    "indptr passes the end": (broken(indptr=int32(0, 2, 9)), "9", "3"),
    "index too large": (broken(indices=int32(0, 2, 3)), "indices", "3"),
    "index negative": (broken(indices=int32(0, -2, 1)), "indices", "-2"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_structure_is_found_when_asked(case: str) -> None:
    matrix, *parts = MALFORMED[case]
    names(error_of(lambda: tp.check(matrix), ValueError), *parts)


def test_sound_structure_passes_the_check() -> None:
    for sound in (A, A.tocsc(), A.tocoo(), tp.tensor(A, format="ss"), X):
        tp.check(sound)


def test_out_of_wrong_shape() -> None:
    message = error_of(lambda: tp.einsum("ij,j->i", A, X, out=np.zeros(3)), ValueError)
    names(message, "2", "3", "out")


def test_out_of_wrong_dtype() -> None:
    out = np.zeros(2, np.int32)
    message = error_of(lambda: tp.einsum("ij,j->i", A, X, out=out), Exception)
    names(message, "int32", "float64")
    assert not out.any()


def test_out_that_is_read_only() -> None:
    out = np.zeros(2)
    out.flags.writeable = False
    names(error_of(lambda: tp.einsum("ij,j->i", A, X, out=out), ValueError), "out")


def test_casting_that_is_not_allowed() -> None:
    error_of(lambda: tp.einsum("ij,j->i", A, X, dtype=np.int32), TypeError)


def test_unknown_casting() -> None:
    error_of(lambda: tp.einsum("ij,j->i", A, X, casting="nonsense"), ValueError)


def test_index_type_that_cannot_hold_a_size() -> None:
    shape = (2**31, 2**31)
    big = sp.coo_array((np.ones(1), ([2**31 - 1], [2**31 - 1])), shape=shape)
    message = error_of(
        lambda: tp.tensor(big, format=tp.CSF(2), index_dtype=np.int32), OverflowError
    )
    names(message, "int32")


def test_dense_result_too_large_for_memory_is_refused() -> None:
    wide = sp.coo_array((np.ones(1), ([0], [0])), shape=(2**40, 2**40))
    names(error_of(lambda: tp.evaluate("C[i,j] = A[i,j] + 1", A=wide), OverflowError), "format=")
    wide = sp.coo_array((np.ones(1), ([0], [0])), shape=(2**25, 2**25))
    message = error_of(lambda: tp.evaluate("C[i,j] = A[i,j] + 1", A=wide), MemoryError)
    names(message, "i=33554432", "format=")


def test_formats_that_do_not_exist() -> None:
    for letters in ("xs", "ds:0,0", "ds:1", "cd"):
        names(error_of(lambda letters=letters: tp.tensor(A, format=letters), ValueError))


def test_format_of_another_order() -> None:
    names(error_of(lambda: tp.tensor(A, format=tp.CSF(3)), ValueError), "3", "2")
    names(
        error_of(lambda: tp.evaluate("y[i] = A[i,j]", {"A": A}, format=tp.CSR), ValueError),
        "2",
        "1",
    )


def test_kernel_called_with_another_format() -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), y=tp.dense(1))
    names(error_of(lambda: kernel(A=A.tocsc(), x=X)), "A")
    names(error_of(lambda: kernel(A=A, x=X.astype(np.float32)), TypeError), "x", "float32")
    names(error_of(lambda: kernel(A=A), ValueError), "x")
    names(error_of(lambda: kernel(A=A, x=X, z=X), ValueError), "z")
    names(error_of(lambda: kernel(A=A, x=np.ones(5)), ValueError), "j", "3", "5")


def test_compile_needs_a_format_for_each_operand() -> None:
    names(error_of(lambda: tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR), ValueError), "x")


def in_new_process(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
        check=False,
    )


CAUGHT = """
try:
    tp.evaluate("y[i] = A[i,j] * x[j]", A=sp.csr_array(np.eye(3)), x=np.ones(3))
except tp.CompilerError as error:
    print(error)
"""
IMPORTS = "import numpy as np, scipy.sparse as sp, taco_py as tp\n"


def compiler_error(tmp_path: Path, before: str = "", **environment: str) -> str:
    """The CompilerError of a first call in a new process with an empty kernel cache."""
    cache = tmp_path / "cache"
    done = in_new_process(before + IMPORTS + CAUGHT, TACO_PY_CACHE_DIR=str(cache), **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fake_compiler(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_no_compiler(tmp_path: Path) -> None:
    hide_zig = "import sys; sys.modules['ziglang'] = None\n"
    names(compiler_error(tmp_path, hide_zig, PATH=str(tmp_path), CC=""), "gcc", "hint:")


def test_compiler_that_is_none(tmp_path: Path) -> None:
    names(compiler_error(tmp_path, CC=str(tmp_path / "absent")), "absent", "CC")


def test_compiler_that_cannot_work(tmp_path: Path) -> None:
    broken = fake_compiler(tmp_path / "broken-cc", "echo 'my machine is on fire' >&2; exit 3")
    names(compiler_error(tmp_path, CC=broken), "broken-cc", "my machine is on fire")


def test_compiler_that_fails_on_a_kernel_shows_command_stderr_and_keeps_the_source(
    tmp_path: Path,
) -> None:
    real = shutil.which(os.environ.get("CC", "cc"))
    fail = "echo 'my machine is on fire' >&2; exit 3"
    picky = fake_compiler(
        tmp_path / "picky-cc", f'if grep -qs A2_pos *.c; then {fail}; fi\nexec {real} "$@"'
    )
    message = compiler_error(tmp_path, CC=picky)
    names(message, "picky-cc", "my machine is on fire", "-O3")
    words = [word.strip("'\",.:;()") for word in message.split()]
    kept = [Path(word) for word in words if word.endswith(".c") and Path(word).is_file()]
    assert any("A2_pos" in path.read_text() for path in kept), message


FILES = {
    "short line.tns": ("1 1 1 2.0\n2 2 2 1.0\n1 2\n", 3),
    "letters.tns": ("1 1 1 2.0\n1 x 2 2.0\n", 2),
    "zero based.tns": ("1 1 1 2.0\n0 1 1 2.0\n", 2),
    "truncated.mtx": (
        "%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1.0\n2 2 1.0\n",
        4,
    ),
    "out of range.mtx": (
        "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1.0\n3 2 1.0\n",
        4,
    ),
    "letters.mtx": ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 one 1.0\n", 3),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gz"])
def test_bad_files_name_their_line(name: str, zipped: bool, tmp_path: Path) -> None:
    text, line = FILES[name]
    path = tmp_path / (name + (".gz" if zipped else ""))
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    message = error_of(lambda: tp.read(path), ValueError)
    names(message, path.name, str(line))


def test_file_that_is_no_gzip(tmp_path: Path) -> None:
    path = tmp_path / "not.tns.gz"
    path.write_text("1 1 1 1.0\n")
    with pytest.raises((tp.TacoError, OSError)):
        tp.read(path)


def test_file_cut_off_inside_gzip(tmp_path: Path) -> None:
    path = tmp_path / "cut.tns.gz"
    path.write_bytes(gzip.compress(b"1 1 1 1.0\n" * 1000)[:-20])
    names(error_of(lambda: tp.read(path), ValueError), "cut.tns.gz")


def test_unknown_file_type(tmp_path: Path) -> None:
    path = tmp_path / "matrix.xyz"
    path.write_text("1")
    names(error_of(lambda: tp.read(path), ValueError), ".mtx", ".tns")


FAILING_CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "syntax": lambda a, x, out: tp.evaluate("y[i] = A[i,j] *", A=a, x=x),
    "size": lambda a, x, out: tp.einsum("ij,j->i", a, x[:2], out=out),
    "order": lambda a, x, out: tp.einsum("i,i->i", a, x, out=out),
    "out": lambda a, x, out: tp.einsum("ij,j->i", a, x, out=out[:1]),
    "dtype": lambda a, x, out: tp.einsum("ij,j->i", a, x.astype(object), out=out),
}


@pytest.mark.parametrize("name", FAILING_CALLS)
def test_nothing_of_the_users_changes(name: str) -> None:
    a, x, out = A.copy(), X.copy(), np.full(2, 7.0)
    before = [array.tobytes() for array in (a.data, a.indices, a.indptr, x, out)]
    error_of(lambda: FAILING_CALLS[name](a, x, out), Exception)
    assert [array.tobytes() for array in (a.data, a.indices, a.indptr, x, out)] == before


# ---------------------------------------------------------------- arguments


SPMV = "y[i] = A[i,j] * x[j]"
SMALL = np.ones(3, np.uint8)


def spmv_kernel(**options: Any) -> tp.Kernel:
    return tp.compile(SPMV, A=tp.CSR, x=tp.dense(1), y=tp.dense(1), **options)


FRONTS: dict[str, Callable[..., Any]] = {
    "evaluate": lambda **options: tp.evaluate(SPMV, A=A, x=X, **options),
    "explain": lambda **options: tp.explain(SPMV, A=A, x=X, **options),
    "einsum": lambda **options: tp.einsum("ij,j->i", A, X, **options),
    "compile": spmv_kernel,
}


def refused(argument: str, value: Any, fronts: str, kind: type[Exception], *parts: str) -> None:
    """Each of the front ends refuses the argument, and names these parts."""
    for front in fronts.split():
        names(error_of(lambda front=front: FRONTS[front](**{argument: value}), kind), *parts)


@pytest.mark.parametrize("number", [300, -1, 2**70])
def test_numbers_that_a_dtype_cannot_hold(number: int) -> None:
    """NumPy raises OverflowError too."""
    for _ in range(2):
        message = error_of(lambda: tp.evaluate("y[i] = a * x[i]", a=number, x=SMALL), OverflowError)
        names(message, "operand a", "uint8", str(number))
    if abs(number) < 2**63:
        text = f"y[i] = {number} * x[i]"
        names(error_of(lambda: tp.evaluate(text, x=SMALL), OverflowError), "uint8", str(number))


def test_numbers_in_einsum_are_arrays() -> None:
    for number in (300, -1, 0.1, True):
        ours, theirs = tp.einsum(",i->i", number, SMALL), np.einsum(",i->i", number, SMALL)
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    single = np.ones(3, np.float32)
    np.testing.assert_array_equal(tp.einsum(",i->i", 0.1, single), np.einsum(",i->i", 0.1, single))
    error_of(lambda: tp.einsum(",i->i", 2, SMALL, dtype=np.uint8), TypeError)


def test_numbers_take_the_dtype_that_is_computed_in() -> None:
    y = tp.evaluate("y[i] = a * x[i]", a=0.1, x=np.ones(2, np.float32), dtype=np.float64)
    np.testing.assert_array_equal(y, [0.1, 0.1])


def test_integers_beyond_64_bits() -> None:
    names(error_of(lambda: tp.einsum("->", 2**70), OverflowError), "64 bits")
    names(error_of(lambda: tp.evaluate("y = a", a=2**70), OverflowError), "64 bits")


def test_numbers_that_a_kernel_cannot_take() -> None:
    kernel = tp.compile(
        "y[i] = a * x[i]", a=tp.dense(0), x=tp.dense(1), dtypes={"a": "int32", "x": "float64"}
    )
    np.testing.assert_array_equal(kernel(a=2, x=X), 2 * X)
    for _ in range(2):
        names(error_of(lambda: kernel(a=2.7, x=X), TypeError), "a", "int32", "2.7")
        names(error_of(lambda: kernel(a=2**40, x=X), OverflowError), "a", "int32")


@pytest.mark.parametrize(
    ("static", "kind", "part"),
    [
        ({"j": -1}, ValueError, "-1"),
        ({"j": 3.0}, TypeError, "3.0"),
        ({"j": True}, TypeError, "True"),
        ({"j": "3"}, TypeError, "'3'"),
        ({"j": None}, TypeError, "None"),
        ({"j": float("nan")}, TypeError, "nan"),
        ({"j": 2**70}, ValueError, "j"),
        ({"k": 3}, tp.OperandError, "k"),
        ({1: 3}, TypeError, "1"),
        ([("j", 3)], TypeError, "mapping"),
        ("j", TypeError, "mapping"),
        (3, TypeError, "mapping"),
    ],
    ids=str,
)
def test_static_sizes(static: Any, kind: type[Exception], part: str) -> None:
    refused("static", static, "evaluate explain einsum compile", kind, "static", part)


def test_static_sizes_of_numpy() -> None:
    np.testing.assert_array_equal(FRONTS["evaluate"](static={"j": np.int64(3)}), A @ X)
    np.testing.assert_array_equal(spmv_kernel(static={"j": np.int64(3)})(A=A, x=X), A @ X)
    for _ in range(2):
        names(error_of(lambda: spmv_kernel(static={"j": 4})(A=A, x=X), tp.DimensionError), "4")


@pytest.mark.parametrize(
    "dtype", ["bogus", 3, "", True, "f4,f4", "U3", object, np.longdouble], ids=repr
)
def test_dtypes_that_kernels_do_not_have(dtype: Any) -> None:
    refused("dtype", dtype, "evaluate explain einsum", TypeError, "dtype")
    refused("dtypes", dtype, "compile", TypeError, "dtype")
    refused("index_dtype", dtype, "compile", TypeError, "index_dtype")
    names(error_of(lambda: tp.tensor(A, index_dtype=dtype), TypeError), "index_dtype")
    names(error_of(lambda: tp.tensor(A).astype(dtype), TypeError), "dtype")
    names(error_of(lambda: tp.Tensor.from_coo([(0, 1)], [1.0], (2, 2), dtype=dtype), TypeError))


def test_byte_swapped_dtypes_are_native_ones() -> None:
    np.testing.assert_array_equal(FRONTS["einsum"](dtype=">f8"), A @ X)


@pytest.mark.parametrize("casting", ["bogus", None, 3, True, np.array(["safe"])], ids=repr)
def test_casting(casting: Any) -> None:
    refused("casting", casting, "evaluate explain einsum", ValueError, "casting", "same_kind")


@pytest.mark.parametrize(
    "format", [3, [], True, b"d", object(), tp.dense, "ds:a,b", "bogus"], ids=type_name
)
def test_formats_of_a_wrong_kind(format: Any) -> None:
    refused("format", format, "evaluate explain einsum", ValueError)
    names(error_of(lambda: tp.compile("y[i] = x[i]", x=format), ValueError))
    names(error_of(lambda: tp.tensor(A, format=format), ValueError))


@pytest.mark.parametrize("schedule", [3, [], True, b"serial()", object()], ids=type_name)
def test_schedules_of_a_wrong_kind(schedule: Any) -> None:
    refused("schedule", schedule, "evaluate explain einsum compile", ValueError, "Schedule")


def test_schedules_made_of_something_else() -> None:
    names(error_of(lambda: tp.Schedule("serial()"), ValueError), "commands")  # type: ignore[arg-type]
    names(error_of(lambda: tp.Schedule((1,)), ValueError), "commands")  # type: ignore[arg-type]
    names(error_of(lambda: tp.Schedule.parse(None), ValueError))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "threads", [0, -1, "2", True, 1.5, [], np.int64(0), 10**6, 2**70], ids=repr
)
def test_numbers_of_threads(threads: Any) -> None:
    refused("threads", threads, "evaluate explain einsum compile", ValueError, "threads")
    kernel = spmv_kernel()
    kernel(A=A, x=X, threads=1)
    names(error_of(lambda: kernel(A=A, x=X, threads=threads), ValueError), "threads")


def test_numbers_of_threads_of_numpy() -> None:
    for front in ("evaluate", "einsum"):
        np.testing.assert_array_equal(FRONTS[front](threads=np.int64(2)), A @ X)
    np.testing.assert_array_equal(spmv_kernel(threads=np.int64(2))(A=A, x=X), A @ X)
    np.testing.assert_array_equal(spmv_kernel()(A=A, x=X, threads=np.int64(2)), A @ X)


def test_operands_that_are_given_twice() -> None:
    kernel = spmv_kernel()
    names(error_of(lambda: kernel(A, X, x=X), ValueError), "x", "position")
    names(error_of(lambda: kernel.assemble(A, X, A=A), ValueError), "A", "position")
    names(error_of(lambda: tp.evaluate(SPMV, {"A": A}, A=A, x=X), ValueError), "A", "mapping")
    names(error_of(lambda: tp.explain(SPMV, {"A": A}, A=A, x=X), ValueError), "A", "mapping")
    names(error_of(lambda: tp.compile(SPMV, {"A": tp.CSR}, A=tp.CSC), ValueError), "A", "mapping")


def test_operands_that_are_called_like_options() -> None:
    parameters = inspect.signature(tp.evaluate).parameters.values()
    assert {each.name for each in parameters if each.kind is each.KEYWORD_ONLY} == OPTIONS
    message = error_of(lambda: tp.evaluate("y[i] = out[i] * 2", out=X), ValueError)
    names(message, "out= is an option", "mapping")
    np.testing.assert_array_equal(tp.evaluate("y[i] = out[i] * 2", {"out": X}), 2 * X)


@pytest.mark.parametrize("operands", [3, "A", [A, X], A, {1: A}], ids=type_name)
def test_operands_that_are_no_mapping(operands: Any) -> None:
    for call in (tp.evaluate, tp.explain, tp.compile):
        names(error_of(lambda call=call: call(SPMV, operands), Exception))


@pytest.mark.parametrize("text", [3, None, b"y = x", ["y"]], ids=repr)
def test_texts_that_are_none(text: Any) -> None:
    for call in (tp.evaluate, tp.explain, tp.compile):
        names(error_of(lambda call=call: call(text, {"x": "d"}), TypeError), "string")


PATHS: tuple[Any, ...] = (
    ["einsum_path", (0, 5)],
    [(0, 5)],
    ["einsum_path", (0, 0)],
    ["einsum_path", (-1, 0), (0, 1)],
    ["einsum_path", (True, 0), (0, 1)],
    ["einsum_path", (0, 1)],
    ["einsum_path", (0, 1), (0, 1), (0, 1)],
    ["einsum_path", ()],
    ["einsum_path"],
    ["bogus", (0, 1), (0, 1)],
    [(0, 1), "x"],
    [(0.0, 1), (0, 1)],
    [1, 2],
    ("optimal", "x"),
    ("greedy", -1),
    ("greedy", float("nan")),
    "bogus",
    3,
    {},
    np.zeros(3),
)


@pytest.mark.parametrize("optimize", PATHS, ids=str)
def test_contraction_orders(optimize: Any) -> None:
    dense = np.arange(6.0).reshape(2, 3)
    call = functools.partial(tp.einsum, "ij,jk,kl->il", dense, dense.T, dense)
    names(error_of(lambda: call(optimize=optimize), ValueError), "optimize")


@pytest.mark.parametrize(
    "optimize",
    [
        ["einsum_path", (0, 1), (0, 1)],
        ["einsum_path", (0, 1, 2)],
        ["einsum_path", (0,), (0, 1), (0, 1)],
        [(np.int64(0), np.int64(1)), (0, 1)],
        ("greedy", 100),
    ],
    ids=str,
)
def test_contraction_orders_that_numpy_takes(optimize: Any) -> None:
    dense = np.arange(6.0).reshape(2, 3)
    result = tp.einsum("ij,jk,kl->il", dense, dense.T, dense, optimize=optimize)
    np.testing.assert_array_equal(result, dense @ dense.T @ dense)


def test_out_that_would_hide_the_result() -> None:
    masked = np.ma.zeros(2)
    names(error_of(lambda: tp.einsum("ij,j->i", A, X, out=masked), ValueError), "mask")
    shared = np.lib.stride_tricks.as_strided(np.zeros(1), (2,), (0,))
    names(error_of(lambda: tp.einsum("ij,j->i", A, X, out=shared), ValueError), "stride")


@pytest.mark.parametrize("order", [-1, "3", None, 1.5, True, 2**40], ids=repr)
def test_orders_of_formats(order: Any) -> None:
    for make in (tp.COO, tp.CSF, tp.dense):
        names(error_of(lambda make=make: make(order), ValueError), repr(order))
    names(error_of(lambda: tp.COO(0), ValueError), "0")


@pytest.mark.parametrize("obj", [3, None, A, np.ones(2)], ids=lambda o: type(o).__name__)
def test_tensors_of_something_else(obj: Any) -> None:
    names(error_of(lambda: tp.Tensor(obj), TypeError), "tp.tensor")


def test_masks_are_never_dropped() -> None:
    masked = np.ma.array(X, mask=[True, False, False])
    names(error_of(lambda: tp.Tensor.from_numpy(masked), TypeError), "mask")
    names(error_of(lambda: tp.Tensor.from_coo([(0,), (1,), (2,)], masked, 3), TypeError), "mask")


def test_tensors_that_no_index_can_span() -> None:
    call = functools.partial(tp.Tensor.from_coo, [(0, 1)], [1.0])
    names(error_of(lambda: call((2**70, 2)), OverflowError), str(2**70))
    names(error_of(lambda: tp.Tensor.from_coo([(0, 1), (1,)], [1.0], (2, 2)), TypeError))  # type: ignore[list-item]


@pytest.mark.parametrize("path", [None, 3, ["a"], b"a.mtx"], ids=repr)
def test_paths_of_a_wrong_kind(path: Any) -> None:
    names(error_of(lambda: tp.read(path), TypeError), "path")
    names(error_of(lambda: tp.write(A, path), TypeError), "path")


def test_errors_name_the_operand() -> None:
    names(error_of(lambda: tp.evaluate(SPMV, A=A, x=None), TypeError), "operand x", "NoneType")
    names(error_of(lambda: tp.einsum("ij,j->i", A, None), TypeError), "operand 1", "NoneType")


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
@pytest.mark.parametrize("value", [None, [0, 2, 3], "text"], ids=repr)
def test_scipy_arrays_whose_parts_are_no_arrays(part: str, value: Any) -> None:
    matrix = A.copy()
    setattr(matrix, part, value)
    names(error_of(lambda: tp.evaluate(SPMV, A=matrix, x=X), ValueError), "operand A")


@pytest.mark.parametrize("shape", [(3, 1), (3, 2), (1, 3)])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_values_that_are_no_vector(shape: tuple[int, int], form: str) -> None:
    usual = A.asformat(form)
    matrix = usual.copy()
    matrix.data = np.ones(shape)
    for _ in range(2):  # the first time, and where calls like this one have a short way
        error_of(lambda: tp.evaluate(SPMV, A=matrix, x=X), ValueError)
        tp.evaluate(SPMV, A=usual, x=X)


def test_a_kernel_prints_in_one_line() -> None:
    assert repr(spmv_kernel()) == (
        "<Kernel y[i] = sum(j, A[i,j] * x[j]) with A: ds/float64, x: d/float64, y: d/float64>"
    )


@pytest.mark.parametrize("name", tp.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(tp, name) is not None


def test_the_oracle_refuses_in_words_too() -> None:
    copy = parse_assignment("y[i] += x[i]")
    for text, operands in (("y[i] = x[i]", [X]), (copy, [X]), (3, {"x": X})):
        call = functools.partial(tp.evaluate_dense, text, operands)
        names(error_of(call, TypeError), type(operands if text != 3 else text).__name__)
    names(error_of(lambda: tp.evaluate_dense(copy, {"x": [[1], [1, 2]]}), TypeError), "x")
    names(error_of(lambda: tp.evaluate_dense(copy, {"x": X}, initial=[None] * 3), TypeError), "y")
