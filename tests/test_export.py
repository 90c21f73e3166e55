"""Exported kernels compile by themselves, with warnings as errors, and give the same result."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.data.kernels import KERNELS

rng = np.random.default_rng(1)
A = sp.random_array((13, 9), density=0.3, format="csr", rng=rng)
B = sp.random_array((9, 11), density=0.3, format="csr", rng=rng)
T = tp.Tensor.from_coo(rng.integers(0, 6, (30, 3)), rng.random(30), (6, 6, 6), format=tp.CSF(3))
X = rng.random((9, 7))
Operands = dict[str, Any]

CASES: tuple[tuple[str, str, Operands, Operands], ...] = (
    ("spmv", "y[i] = A[i,j] * x[j]", {"A": A, "x": rng.random(9)}, {"y": tp.dense(1)}),
    ("spgemm", "C[i,j] = A[i,k] * B[k,j]", {"A": A, "B": B}, {"C": tp.CSR}),
    (
        "sddmm",
        "D[i,j] = A[i,j] * U[i,k] * V[j,k]",
        {"A": A, "U": rng.random((13, 4)), "V": rng.random((9, 4))},
        {"D": tp.CSR},
    ),
    (
        "mttkrp",
        "M[i,r] = T[i,k,l] * C[k,r] * D[l,r]",
        {"T": T, "C": rng.random((6, 3)), "D": rng.random((6, 3))},
        {"M": tp.dense(2)},
    ),
    ("add", "C[i,j] = A[i,j] + E[i,j]", {"A": A, "E": A * 2}, {"C": tp.CSR}),
    ("gemm", "C[i,j] = X[i,k] * Y[k,j]", {"X": X, "Y": X.T.copy()}, {"C": tp.dense(2)}),
    ("turned", "C[i,j] = X[i,j] + Y[j,i]", {"X": X, "Y": rng.random((7, 9))}, {"C": "dd:1,0"}),
    ("chain", "D[i,l] = A[i,j] * B[j,k] * C[k,l]", {"A": A, "B": B, "C": B.T.tocsr()}, {}),
    (
        "often",
        "v[j] = (A[i,j] + m[j]) * (A[i,j] + m[j])",
        {"A": A, "m": rng.random(A.shape[1])},
        {},
    ),
    ("sums", "s = sum(i, sum(j, A[i,j] + m[j]))", {"A": A, "m": rng.random(A.shape[1])}, {}),
    ("waves", "y[i] = z[i] * z[i]", {"z": np.array([1 + 2j, -3j, np.inf])}, {}),
    ("vast", "y[i] = z[i] * z[i]", {"z": np.float32([np.inf, -np.inf, 3e38, 0.1])}, {}),
    ("edges", "y[i] = -z[i]", {"z": np.array([complex(1, np.inf), complex(-0.0, 2)])}, {}),
    ("few", "s = b[i] * c[i]", {"b": np.int32([3, -4]), "c": np.int32([5, 6])}, {}),
)


def compiled(text: str, operands: Operands, formats: Operands) -> Any:
    forms = {name: tp.tensor(obj).format for name, obj in operands.items()}
    dtypes = {name: obj.dtype for name, obj in operands.items()}
    return tp.compile(text, {**forms, **formats}, dtypes=dtypes)


def build(files: tuple[Path, ...], *flags: str) -> dict[str, list[float]]:
    """Compile in the folder of the files, run, and read the arrays that are printed."""
    sources = [path.name for path in files if path.suffix == ".c"]
    command = [*KERNELS.compiler.command, "-Wall", "-Wextra", "-Werror", *flags, *sources]
    folder = files[0].parent
    made = subprocess.run(
        [*command, "-o", "program", "-lm"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    ran = subprocess.run(["./program"], cwd=folder, capture_output=True, text=True, check=True)
    rows = (line.split(":") for line in ran.stdout.splitlines())
    return {name: [float(word) for word in words.split()] for name, words in rows}


def arrays_of(result: Any, target: str) -> dict[str, Any]:
    """The arrays of a result under the names that programs print them by."""
    data = tp.tensor(result).data
    found = {
        f"{target}_{number + 1}_{what}": array
        for number, level in enumerate(data.levels)
        for what, array in (("pos", level.pos), ("crd", level.crd))
        if array is not None
    }
    return {**found, f"{target}_vals": stored(data.values, data)}


def stored(values: Any, data: Any) -> Any:
    if data.format.is_dense:
        values = values.transpose(data.format.mode_order)
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.view(flat.real.dtype) if np.iscomplexobj(flat) else flat


@pytest.mark.parametrize(("name", "text", "operands", "formats"), CASES, ids=lambda c: str(c)[:8])
def test_exported_files_give_the_same_result(
    name: str, text: str, operands: Operands, formats: Operands, tmp_path: Path
) -> None:
    kernel = compiled(text, operands, formats)
    files = kernel.export(tmp_path / name, operands, name=name)
    assert {path.name for path in files} >= {f"{name}.h", "main.c", "taco_runtime.h"}
    printed = build(files)
    expected = arrays_of(kernel(**operands), kernel.plan.steps[-1].target)
    assert printed.keys() == expected.keys()
    for array, values in expected.items():
        np.testing.assert_allclose(printed[array], values, rtol=1e-14, err_msg=array)


@pytest.mark.parametrize("flags", [("-O3", "-fopenmp"), ("-O2", "-std=c11"), ("-O1", "-std=c99")])
def test_other_flags(flags: tuple[str, ...], tmp_path: Path) -> None:
    if "-fopenmp" in flags and not KERNELS.compiler.has_openmp:
        pytest.skip("the compiler has no OpenMP")
    _, text, operands, formats = CASES[1]
    build(compiled(text, operands, formats).export(tmp_path), *flags)


def test_an_example_is_made_up_where_none_is_given(tmp_path: Path) -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), static={"i": 4})
    printed = build(kernel.export(tmp_path))
    assert any(printed["y_vals"])


def test_a_schedule_is_exported_with_its_kernel(tmp_path: Path) -> None:
    _, text, operands, _ = CASES[0]
    s = tp.schedule(text, A=tp.CSR, x=tp.dense(1), y=tp.dense(1)).split("i", "i0", "i1", 4)
    files = s.parallelize("i0").compile().export(tmp_path, operands)
    np.testing.assert_allclose(build(files)["y_vals"], A @ operands["x"], rtol=1e-14)


@pytest.mark.parametrize(("most", "size"), [(1_000_000, 6), (4, 4)])
def test_an_example_is_no_larger_than_it_has_to_be(tmp_path: Path, most: int, size: int) -> None:
    formats = {"A": tp.CSR, "x": tp.dense(1), "y": tp.dense(1)}
    schedule = f"bound(i,b,{most},MaxConstraint)"
    kernel = tp.compile("y[i] = A[i,j] * x[j]", formats, schedule=schedule)
    assert len(build(kernel.export(tmp_path))["y_vals"]) == size


def test_an_example_is_as_bounds_promise(tmp_path: Path) -> None:
    formats = {"A": tp.CSR, "x": tp.dense(1), "y": tp.dense(1)}
    kernel = tp.compile("y[i] = A[i,j] * x[j]", formats, schedule="bound(i,b,7,MaxExact)")
    assert len(build(kernel.export(tmp_path / "kept"))["y_vals"]) == 7
    files = kernel.export(tmp_path / "broken", A=A, x=np.ones(A.shape[1]))
    with pytest.raises(subprocess.CalledProcessError) as caught:
        build(files)
    assert caught.value.stderr == "kernel failed: a bound does not hold\n"


@pytest.mark.parametrize(
    "bound", ["bound(i0,b,4,MaxExact)", "bound(i1,b,3,MinConstraint)", "bound(i0,b,1,MinExact)"]
)
def test_an_example_that_breaks_a_bound_is_not_made_up(bound: str, tmp_path: Path) -> None:
    kernel = tp.compile(
        "y[i] = A[i,j] * x[j]", A="dd", x="d", schedule=f"split(i,i0,i1,2), {bound}"
    )
    with pytest.raises(tp.BoundError, match=r"made up for main\.c\n.*hint: pass small ones"):
        kernel.export(tmp_path)
    assert not list(tmp_path.iterdir())


def test_operands_of_which_a_bound_holds_are_an_example(tmp_path: Path) -> None:
    schedule = "split(i,i0,i1,2), bound(i0,b,4,MaxExact)"
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A="dd", x="d", schedule=schedule)
    assert kernel.export(tmp_path, A=np.ones((8, 3)), x=np.ones(3))


@pytest.mark.parametrize(
    ("text", "schedule", "expected"),
    [
        ("y[i] = A[i,j]", "reorder(i,j)", [1 + 1j, 4]),  # coordinates that no kernel reads
        ("y[i] = B[i,j]", "precompute(B(i,j),j,j,w)", [1 + 1j, 4]),  # nothing that threads fail by
        ("y[i] = B[i,j]", "divide(j,v1,v2,4), precompute(B(i,j),{v1,v2},{v1,v2},w)", [1 + 1j, 4]),
    ],
)
def test_what_others_compile_has_no_warnings_and_is_right_with_any_flags(
    tmp_path: Path, text: str, schedule: str, expected: list[complex]
) -> None:
    formats = {"A": tp.CSR} if "A" in text else {"B": tp.dense(2)}
    matrix = np.array([[3 + 3j, -2 - 2j], [0, 4]])
    dtypes = dict.fromkeys(formats, "complex128")
    kernel = tp.compile(text, formats, schedule=schedule, dtypes=dtypes, static={"j": 2})
    operand = sp.csr_array(matrix) if "A" in text else matrix
    files = kernel.export(tmp_path, dict.fromkeys(formats, operand))
    found = np.array(build(files, "-O3", "-march=native", "-fno-trapping-math")["y_vals"])
    np.testing.assert_array_equal(found.view(complex), expected)


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("", "name of a folder"),
        (3, "name of a folder"),
        (None, "name of"),
        ("/dev/null/x", "make the"),
    ],
)
def test_a_folder_has_a_name_and_can_be_made(folder: Any, found: str) -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1))
    with pytest.raises(tp.OperandError, match=found):
        kernel.export(folder)


def test_nothing_is_overwritten_but_what_was_exported(tmp_path: Path) -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1))
    (tmp_path / "main.c").write_bytes(b"/* mine \xff */")
    with pytest.raises(tp.OperandError, match="found a file that was not exported"):
        kernel.export(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["main.c"]
    assert (tmp_path / "main.c").read_bytes() == b"/* mine \xff */"
    (tmp_path / "main.c").unlink()
    assert kernel.export(tmp_path) == kernel.export(tmp_path)


INSERTED = (
    (1, "reorder(i,k,j), assemble(C,Insert)"),
    (2, "fuse(i,j,f), pos(f,p,A), split(p,a,b,4), parallelize(a)"),
    (4, "parallelize(i), assemble(C,Insert)"),
)


@pytest.mark.parametrize(("case", "schedule"), INSERTED)
def test_what_counts_first_has_nothing_that_is_not_used(
    case: int, schedule: str, tmp_path: Path
) -> None:
    _, text, operands, formats = CASES[case]
    forms = {name: tp.tensor(obj).format for name, obj in operands.items()}
    kernel = tp.compile(text, {**forms, **formats}, schedule=schedule)
    printed = build(kernel.export(tmp_path, operands))
    for array, values in arrays_of(kernel(**operands), text[0]).items():
        np.testing.assert_allclose(printed[array], values, rtol=1e-14, err_msg=array)


def test_the_header_says_what_each_parameter_is(tmp_path: Path) -> None:
    _, text, operands, formats = CASES[1]
    compiled(text, operands, formats).export(tmp_path, name="spgemm")
    header = (tmp_path / "spgemm.h").read_text()
    for line in (
        "C[i,j] = sum(k, A[i,k] * B[k,j])",
        "C2_crd_buffer  makes the crd of level 2 of C",
        "A_vals         reads the values of A, ds/float64/int32",
        "n_j            the size of index j",
        "int32_t spgemm(",
        "void spgemm_release(taco_buffer *buffer);",
    ):
        assert line in header


def test_what_cannot_be_exported_is_refused_in_words(tmp_path: Path) -> None:
    kernel = tp.compile("C[i,j] = A[i,j] + B[i,j]", A=tp.CSR, B=tp.CSC, C=tp.CSR)
    with pytest.raises(tp.FormatError, match="found a step that makes"):
        kernel.export(tmp_path)
    spmv = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1))
    for name in (
        "2fast",
        "a-b",
        "",
        "main",
        "printf(",
        "int",
        "taco_runtime",
        "stdout",
        "sinl",
        "isnan",
    ):
        with pytest.raises(tp.OperandError, match="Expected a name for C functions"):
            spmv.export(tmp_path, name=name)
    gemm = tp.compile("C[i,j] = X[i,k] * Y[k,j]", X=tp.dense(2), Y=tp.dense(2))
    taken = ((gemm, "product"), *((spmv, name) for name in ("check", "puts", "exit", "y_vals")))
    for kernel, name in taken:
        with pytest.raises(tp.OperandError, match="Expected a name that means nothing else"):
            kernel.export(tmp_path, name=name)
    with pytest.raises(tp.OperandError, match="Expected a small example"):
        spmv.export(tmp_path, A=sp.csr_array(np.ones((400, 400))), x=np.ones(400))
    assert not list(tmp_path.iterdir())
