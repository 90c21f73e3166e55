"""Exported CUDA C++ without a GPU: it runs on the emulated device, and compiles with nvcc."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.toolchain.cuda.nvcc import find_nvcc
from tests.devices.exported_program import HOST, ExportedProgram
from tests.test_export import CASES, A, arrays_of

HALF = sp.csr_array(np.float32([[1, 0, 2.5], [0, 0, 0], [0, 3, 0.25]]))
MORE: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
    ("truths", "y[i] = any(j, A[i,j] > x[j])", {"A": A, "x": np.full(9, 0.5)}, {"y": tp.dense(1)}),
    ("halves", "y[i] = A[i,j] * x[j]", {"A": HALF, "x": np.float16([1, 2, 4])}, {}),
)  # fmt: skip
RUN = {case[0]: case for case in (*CASES, *MORE)}
NAMES = (
    "spgemm", "sddmm", "mttkrp", "gemm", "turned", "chain", "often", "waves", "few", "truths",
    "halves",
)  # fmt: skip


def exported(name: str, folder: Path) -> Any:
    """The kernel of a case, and its files in the folder."""
    _, text, operands, formats = RUN[name]
    forms = {each: tp.tensor(obj).format for each, obj in operands.items()}
    dtypes = {each: obj.dtype for each, obj in operands.items()}
    kernel = tp.compile(text, {**forms, **formats}, dtypes=dtypes, target="cuda")
    return kernel, kernel.export(folder, operands, name=name)


@pytest.mark.parametrize("name", NAMES)
def test_the_program_prints_what_the_cpu_computes(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each access of its kernels is checked, all its memory is freed."""
    kernel, files = exported(name, tmp_path)
    assert {path.name for path in files} >= {f"{name}.h", "main.cu", "taco_cuda.h"}
    program = ExportedProgram(tmp_path)
    assert program.library.run_main() == 0
    rows = (line.split(":") for line in capfd.readouterr().out.splitlines())
    printed = {array: [float(word) for word in words.split()] for array, words in rows}
    _, text, operands, formats = RUN[name]
    result = tp.evaluate(text, operands, format=formats.get(kernel.assignment.target.tensor))
    if sp.issparse(result):
        result.sort_indices()
    expected = arrays_of(result, kernel.plan.steps[-1].target)
    assert printed.keys() == expected.keys()
    for array, values in expected.items():
        np.testing.assert_allclose(printed[array], values, rtol=1e-13, err_msg=array)
    assert program.count["allocate"] == program.count["release"]
    assert program.kept == 0


def test_host_programs_read_well(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    exported("few", tmp_path)
    found = (tmp_path / "few.cu").read_text().partition(HOST)[2].lstrip()
    path = Path(__file__).parent / "golden" / "cuda" / "dot_host.cu"
    if request.config.getoption("--update-golden"):
        path.write_text(found)
    assert found == path.read_text()


DECLARED = """
typedef struct { void *data; int64_t length; } taco_array;
int32_t spgemm(
    taco_array *, taco_array *, taco_array *, const int32_t *, int64_t, const int32_t *, int64_t,
    const double *, int64_t, const int32_t *, int64_t, const int32_t *, int64_t, const double *,
    int64_t, int64_t, int64_t);
int32_t spgemm_on_device(
    taco_array *, taco_array *, taco_array *, const int32_t *, const int32_t *, const double *,
    const int32_t *, const int32_t *, const double *, int64_t, int64_t);
const char *spgemm_error(void);
void spgemm_release(taco_array *);
void spgemm_release_on_device(taco_array *);
"""


def test_errors_of_the_runtime_are_told_and_leave_nothing_behind(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    exported("spgemm", tmp_path)
    program = ExportedProgram(tmp_path, DECLARED)
    ffi, library = program.ffi, program.library
    square = sp.csr_array(np.eye(4) + np.eye(4, k=1))
    arrays = [square.indptr.astype(np.int32), square.indices.astype(np.int32), square.data]
    types = ("int32_t *", "int32_t *", "double *")

    def call() -> tuple[int, str, Any]:
        made = [ffi.new("taco_array *") for _ in types]
        given = [
            argument
            for type, array in zip(types * 2, arrays * 2, strict=True)
            for argument in (ffi.cast(type, array.ctypes.data), array.size)
        ]
        status = library.spgemm(*made, *given, 4, 4)
        return status, ffi.string(library.spgemm_error()).decode(), made

    for refused, status, told in (
        ("allocate", 1, "allocate A2_pos: out of memory"),
        ("copy", 4, "copy A2_pos: unknown error"),
        ("launch", 4, "launch spgemm_1: unknown error"),
        ("wait", 4, "run spgemm: unknown error"),
    ):
        program.refused = refused
        found, words, made = call()
        assert (found, words) == (status, told)
        assert program.kept == 0
        assert library.run_main() == 1
        assert "spgemm failed: " in capfd.readouterr().err
        assert all(each.data == ffi.NULL for each in made)
    program.refused = ""
    found, words, made = call()
    assert (found, words) == (0, "")
    values = np.frombuffer(ffi.buffer(made[2].data, 8 * made[2].length))
    np.testing.assert_array_equal(values, [1, 2, 1, 1, 2, 1, 1, 2, 1])
    for each in made:
        library.spgemm_release(each)
        assert (each.data, each.length) == (ffi.NULL, 0)


def test_arrays_that_are_on_the_device_stay_there(tmp_path: Path) -> None:
    exported("spgemm", tmp_path)
    program = ExportedProgram(tmp_path, DECLARED)
    ffi, library = program.ffi, program.library
    square = sp.csr_array(np.eye(4) + np.eye(4, k=1))
    arrays = (square.indptr.astype(np.int32), square.indices.astype(np.int32), square.data)
    types = ("int32_t *", "int32_t *", "double *")
    places = list(map(program.uploaded, arrays))
    given = [ffi.cast(type, place) for type, place in zip(types, places, strict=True)]
    made = [ffi.new("taco_array *") for _ in types]
    assert library.spgemm_on_device(*made, *given, *given, 4, 4) == 0
    assert program.count["copy"] == 2  # numbers that the host reads
    found = [
        program.downloaded(each.data, each.length, dtype)
        for each, dtype in zip(made, ("int32", "int32", "float64"), strict=True)
    ]
    dense = sp.csr_array((found[2], found[1], found[0]), shape=(4, 4)).toarray()
    np.testing.assert_array_equal(dense, (square @ square).toarray())
    for each in made:
        library.spgemm_release_on_device(each)
        assert (each.data, each.length) == (ffi.NULL, 0)
    assert program.kept == len(places)


@pytest.mark.parametrize(
    "commands",
    [
        "split(i,b,w,4), parallelize(b,GPUBlock), parallelize(w,GPUWarp)",
        "fuse(i,j,f), pos(f,p,A), parallelize(p)",  # the host looks for the first and the last row
    ],
)
def test_a_schedule_is_exported_with_its_kernel(
    commands: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    s = tp.schedule("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), target="cuda")
    s.apply(commands).compile().export(tmp_path, A=A, x=np.ones(9), name="rows")
    assert ExportedProgram(tmp_path).library.run_main() == 0
    found = np.array(capfd.readouterr().out.split()[1:], float)
    np.testing.assert_allclose(found, A.sum(axis=1), rtol=1e-14)


def test_a_bound_that_does_not_hold_is_a_status(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    formats = {"A": tp.CSR, "x": tp.dense(1), "y": tp.dense(1)}
    schedule = "bound(i,b,7,MaxExact)"
    kernel = tp.compile("y[i] = A[i,j] * x[j]", formats, schedule=schedule, target="cuda")
    kernel.export(tmp_path / "kept")
    assert ExportedProgram(tmp_path / "kept").library.run_main() == 0
    kernel.export(tmp_path / "broken", A=A, x=np.ones(A.shape[1]))
    assert ExportedProgram(tmp_path / "broken").library.run_main() == 1
    assert capfd.readouterr().err == "kernel failed: a bound does not hold\n"


def test_the_header_is_one_of_c_and_says_what_each_parameter_is(tmp_path: Path) -> None:
    exported("waves", tmp_path)
    _, files = exported("spgemm", tmp_path)
    assert [path.name for path in files] == ["spgemm.cu", "spgemm.h", "main.cu", "taco_cuda.h"]
    header = (tmp_path / "spgemm.h").read_text()
    for line in (
        "C[i,j] = sum(k, A[i,k] * B[k,j])",
        "C2_crd_array  makes the crd of level 2 of C",
        "    const double *A_vals,\n    int64_t A_vals_length,",
        "void spgemm_release(taco_array *array);",
        "const char *spgemm_error(void);",
    ):
        assert line in header
    text = '#include "spgemm.h"\n#include "waves.h"\nint main(void) { return *spgemm_error(); }\n'
    (tmp_path / "use.c").write_text(text)
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-c", "use.c"]
    if shutil.which("gcc") is None:
        pytest.skip("no gcc on the PATH")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["threadIdx", "atomicAdd", "check", "main", "y_vals"])
def test_names_that_mean_something_in_cuda_are_refused(name: str, tmp_path: Path) -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), target="cuda")
    with pytest.raises(tp.OperandError, match="Expected a name"):
        kernel.export(tmp_path, name=name)
    assert not list(tmp_path.iterdir())


def test_nvcc_compiles_and_links_it_without_a_warning(tmp_path: Path) -> None:
    """Host and kernels of a sparse result, for two architectures: nvcc takes seconds for each."""
    nvcc = find_nvcc()
    if nvcc is None:
        pytest.skip("no nvcc on this machine")
    exported("add", tmp_path)
    command = [nvcc.path, "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"]
    for number in (80, 90):
        command += ["-gencode", f"arch=compute_{number},code=sm_{number}"]
    done = subprocess.run(
        [*command, "-O0", "add.cu", "main.cu", "-o", "program"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "program").is_file()
