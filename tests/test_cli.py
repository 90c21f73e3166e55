"""The command-line tool: what it prints, writes and refuses. Bad input is status 2 and one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import taco_py as tp
from taco_py.tool.cli import main
from taco_py.tool.flags import FLAGS

ROOT = Path(__file__).parent.parent
SPMV = "y(i)=A(i,j)*x(j)"
A = sp.random_array((30, 20), density=0.2, format="csr", rng=np.random.default_rng(0))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scipy.io.mmwrite("A.mtx", A)


def tool(*arguments: str, stdout: Any = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-c",
        "import sys; from taco_py.tool.cli import main; sys.exit(main())",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [*command, *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=environment,
    )


def test_everything_at_once() -> None:
    x = np.linspace(0, 1, 20)
    tp.write(x, "x.tns")
    done = tool(
        SPMV, "-f=A:ds", "-s=split(i,i0,i1,32)", "-print-concrete", "-print-iteration-graph",
        "-print-nocolor", "-write-source=s.c", "-time=3", "-i=A:A.mtx", "-i=x:x.tns", "-o=y:y.tns",
        "-verify",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for expected in (
        "forall i0 parallel",
        "i ─ split 32 ─▶ i0, i1",
        "A: 30 x 20, 120 stored, ds",
        "verified",
    ):
        assert expected in done.stdout
    assert re.search(r"Compute: [\d.]+ ms at best of 3", done.stdout)
    np.testing.assert_allclose(tp.read("y.tns").to_numpy(), A @ x)
    for function in ("evaluate", "compute", "assemble"):
        assert f"int32_t {function}(" in Path("s.c").read_text()


BAD: tuple[tuple[tuple[str, ...], str], ...] = (
    ((SPMV, "-f=A:d!"), "Expected level letters"),
    ((SPMV, "-f=A"), "Expected -f=<tensor>:<format>, found -f=A"),
    ((SPMV, "-f=A:s"), "Expected a format of 2 levels"),
    ((SPMV, "-f=B:ds"), "Expected one of y, A, x for -f, found B"),
    (("y(i)=A(i,j)*",), "found the end of the text"),
    ((SPMV, "x(i)=y(i)"), "Expected one expression, found 2"),
    ((SPMV, "-coda"), "Expected a flag of taco-py, found -coda"),
    ((SPMV, "-cuda=now"), "Expected -cuda or -cuda=emulated, found -cuda=now"),
    ((SPMV, "-cuda", "-print-compute"), "kernels of a GPU assemble and compute as one"),
    ((SPMV, "-cuda", "-write-assembly=f.c"), "Expected -write-assembly without -cuda"),
    ((SPMV, "-cuda", "-nthreads=2"), "Expected -nthreads without -cuda"),
    ((SPMV, "-cuda", "-s=vectorize(j)"), "found CPUVector, which it has not"),
    (
        (SPMV, "-cuda", "-s=split(i,b,t,2048),parallelize(b,GPUBlock),parallelize(t,GPUThread)"),
        "at most 1024 threads a block, found 2048 for t",
    ),
    (
        (
            "C(i,k)=A(i,j)*B(j,k)",
            "-cuda",
            "-f=A:ds",
            "-s=reorder(i,j,k),parallelize(i,GPUBlock),precompute(A(i,j)*B(j,k),k,k,w)",
        ),
        "leave -cuda out to compute it on the CPU",
    ),
    ((SPMV, "-tim"), "did you mean -time?"),
    ((SPMV, "-print-compute=yes"), "Expected -print-compute without a value"),
    ((SPMV, "-write-source"), "Expected -write-source=<file>, found no value"),
    ((SPMV, "-i=A:none.mtx"), "No such file or directory: 'none.mtx'"),
    ((SPMV, "-d=i:x"), "Expected sizes below 10^15, with commas between them"),
    ((SPMV, "-d=k:3"), "the indices are i, j"),
    ((SPMV, "-d=A:3"), "Expected 2 sizes for A, found 1"),
    ((SPMV, "-d=i:3", "-d=i:4"), "Expected one size of i, found 3 in -d=i:3 and 4 in -d=i:4"),
    ((SPMV, "-d=i:3,4"), "Expected 1 size for i, found 2"),
    ((SPMV, "-d=A:3,4", "-d=j:5"), "Expected one size of j, found 4 in -d=A:3,4 and 5 in -d=j:5"),
    ((SPMV, "-t=A:real"), "Expected a type for A out of"),
    ((SPMV, "-time=often"), "Expected a positive number for -time, found often"),
    ((SPMV, "-nthreads=0"), "Expected a positive number for -nthreads, found 0"),
    ((SPMV, "-g=A:many"), "or a number from 0 to 1 for -g=A, found many"),
    ((SPMV, "-s=split(k,a,b,3)"), "there is no loop over k"),
    ((SPMV, "-s=parallelize(i,GPUBlock)"), "found GPUBlock, of which the CPU has none"),
    ((SPMV, "-f=A:ds", "-g=A:s", "-d=i:9999999", "-verify"), "for -verify, found"),
    (
        (SPMV, "-prefix=1 x", "-print-compute"),
        "C functions may begin with for -prefix, found '1 x'",
    ),
    ((SPMV, "-prefix=taco_"), "may begin with for -prefix, found 'taco_'"),
    ((SPMV, "-f=A:ds", "-f=A:sd"), "Expected one -f for A, found ds and sd"),
    ((SPMV, "-i=A:A.mtx", "-i=A:B.mtx"), "Expected one -i for A, found A.mtx and B.mtx"),
    ((SPMV, "-g=A:d", "-g=A:s"), "Expected one -g for A, found d and s"),
    ((SPMV, "-t=A:int", "-t=A:int"), "Expected one -t for A, found int and int"),
    ((SPMV, "-g=A:d", "-d=i:9", "-o=y:none/y.tns"), "can be written, found none/y.tns"),
    ((SPMV, "-g=A:d", "-d=i:9", "-o=y:y.txt"), "ends in one of .tns, .ttx, .mtx"),
    ((SPMV, "-g=A:d", "-d=i:9", "-o=y:y.mtx"), "can hold y, a tensor of order 1, found y.mtx"),
    (("s = A(i,j)", "-g=A:d", "-d=i:9", "-o=s:s.tns"), "a tensor of order 0, found s.tns"),
    (("s = A(i,j)*x(j)", "-f=A:ds", "-O=folder"), "-O, found the number s"),
    ((SPMV, "-g=A:d", "-d=i:9", "-O=/dev/null"), "a folder that can be written to, found /dev/n"),
    (
        (SPMV, "-g=A:s", "-d=i:9", "-d=j:9999999999999"),
        "at most 2^40 elements to choose from for A",
    ),
    ((SPMV, "-export=/dev/null"), "Expected a folder that can be written to, found /dev/null"),
    ((SPMV, "-write-source=."), "Expected a file that can be written, found ."),
    (("y(i)+=A(i,j)*x(j)", "-f=y_new:d"), "Expected one of y, A, x for -f, found y_new"),
    (("-f=A:ds",), "Expected an expression, found none"),
    ((), "Expected an expression, found none"),
    (("dmo",), "Expected"),
)


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_line_and_status_2(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    shown = capsys.readouterr()
    (line,) = shown.err.splitlines()
    assert message in line
    assert line.startswith("taco-py: ")


def test_sizes_are_those_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tp.write(tp.tensor(sp.eye_array(5, format="csr")), "A.mtx")
    assert main((SPMV, "-f=A:ds", "-i=A:A.mtx", "-d=i:5", "-d=A:5,5", "-o=y:y.tns")) == 0
    for said in ("-d=i:6", "-d=A:6,5"):
        assert main((SPMV, "-f=A:ds", "-i=A:A.mtx", said, "-o=y:y.tns")) == 2
        expected = f"taco-py: Expected one size of i, found 5 in A.mtx and 6 in {said}\n"
        assert capsys.readouterr().err == expected


def test_files_without_sizes_take_those_of_flags(capsys: pytest.CaptureFixture[str]) -> None:
    Path("A.tns").write_text("1 2 3.0\n")
    Path("empty.tns").touch()
    for file in ("A.tns", "empty.tns"):
        for said in (("-d=A:4,5",), ("-d=i:4", "-d=j:5")):
            flags = ["-f=A:ds", f"-i=A:{file}", *said, "-g=x:d", "-verify", "-o=y:y.tns"]
            assert main([SPMV, *flags]) == 0
            assert tp.read("y.tns").shape == (4,)
    assert main([SPMV, "-f=A:ds", "-i=A:empty.tns"]) == 2
    assert "or -d= on the command line" in capsys.readouterr().err


def test_memory_that_is_not_there_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("taco_py.tool.data._values", refused)
    assert main([SPMV, "-f=A:ds", "-g=A:s", "-d=i:100", "-d=j:100", "-time"]) == 2
    assert "memory for A, which is made up of 700 values" in capsys.readouterr().err


def test_a_result_that_does_not_fit_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("x", "y"):
        tp.write(np.ones(1), f"{name}.tns")
    flags = ["-f=C:dd", "-f=x:s", "-f=y:s", "-d=i:30000000", "-d=j:30000000"]
    said = [f"-i={name}:{name}.tns" for name in ("x", "y")]
    assert main(["C(i,j) = x(i) * y(j)", *flags, *said, "-time"]) == 2
    assert "memory for C in the format dd" in capsys.readouterr().err


def test_a_result_that_is_added_to_is_an_operand_too(capsys: pytest.CaptureFixture[str]) -> None:
    y, x = np.arange(30.0), np.ones(20)
    tp.write(y, "y.tns")
    tp.write(x, "x.tns")
    flags = ["-f=A:ds", "-i=A:A.mtx", "-i=x:x.tns", "-i=y:y.tns", "-verify", "-o=y:new.tns"]
    assert main(["y(i)+=A(i,j)*x(j)", *flags, "-o=y:again.tns.gz"]) == 0
    assert capsys.readouterr().out == "verified\n"
    np.testing.assert_allclose(tp.read("new.tns").to_numpy(), y + A @ x)
    np.testing.assert_allclose(tp.read("again.tns.gz").to_numpy(), y + A @ x)
    assert main(["E(i,j)+=A(i,j)*x(j)", "-f=A:ds", "-f=E:ds", "-g=A:s", "-g=E:s", "-verify"]) == 0
    assert capsys.readouterr().out == "verified\n"


def test_an_interrupt_is_a_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("taco_py.tool.cli.run_tool", interrupted)
    assert main([SPMV]) == 130
    assert capsys.readouterr().err == "taco-py: interrupted\n"


def test_a_reader_that_goes_away_is_no_error() -> None:
    """As `head -1` does; what is printed is shorter than the pipe, and written at the end."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = tool(SPMV, "-f=A:ds", stdout=pipe)
    assert (done.returncode, done.stderr) == (141, "")


def test_bad_input_in_a_process_of_its_own() -> None:
    done = tool(SPMV, "-f=A:d!")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1


def test_the_default_is_to_print_the_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([SPMV, "-f=A:ds"]) == 0
    alone = capsys.readouterr().out
    assert "int32_t evaluate(" in alone
    assert main([SPMV, "--f=A:ds", "-print-evaluate", "-prefix=spmv_"]) == 0
    assert capsys.readouterr().out == alone.replace("evaluate", "spmv_evaluate")


def test_kernels_of_a_gpu_are_printed_written_and_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main([SPMV, "-f=A:ds", "-cuda"]) == 0
    alone = capsys.readouterr().out
    assert "__global__" in alone
    assert "evaluate_1(" in alone
    flags = ["-f=A:ds", "-cuda=emulated", "-prefix=spmv_", "-print-kernels", "-write-source=s.cu"]
    assert main([SPMV, *flags]) == 0
    assert capsys.readouterr().out == alone.replace("evaluate", "spmv_evaluate")
    assert Path("s.cu").read_text() == alone.replace("evaluate", "spmv_evaluate")
    assert main([SPMV, "-f=A:ds", "-cuda", "-export=gpu"]) == 0
    assert {"kernel.cu", "kernel.h", "main.cu"} <= {path.name for path in Path("gpu").iterdir()}
    flags = ["-f=A:ds", "-cuda=emulated", "-i=A:A.mtx", "-o=y:y.tns", "-verify", "-time=2"]
    units = "split(i,b,w,8), parallelize(b,GPUBlock), parallelize(w,GPUWarp)"
    assert main([SPMV, *flags, f"-s={units}", "-print-schedule", "-explain"]) == 0
    shown = capsys.readouterr().out
    for expected in ("GPUBlock,NoRaces", "launches", ", emulated: times of a GPU", "verified"):
        assert expected in shown
    monkeypatch.setenv("TACO_PY_CUDA_DRIVER", "/nowhere/libcuda.so.1")
    done = tool(SPMV, "-f=A:ds", "-cuda", "-time")
    assert done.returncode == 1
    assert "Expected the driver of CUDA, found none" in done.stderr


def test_functions_of_each_phase(capsys: pytest.CaptureFixture[str]) -> None:
    product = ("C(i,j)=A(i,k)*B(k,j)", "-f=A:ds", "-f=B:ds", "-f=C:ds")
    for flag, function in (("compute", "compute"), ("assembly", "assemble")):
        assert main([*product, f"-print-{flag}", f"-write-{flag}={flag}.c"]) == 0
        shown = capsys.readouterr().out
        assert f"int32_t {function}(" in shown
        assert Path(f"{flag}.c").read_text() == shown


def test_made_up_operands(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["-f=A:ds", "-f=B:ds", "-f=C:ds", "-g=A:0.2", "-g=B:s", "-d=i:50", "-d=B:40,30"]
    assert main(["C(i,j)=A(i,k)*B(k,j)", *flags, "-t=A:int", "-t=B:float", "-O=all",
                 "-verify", "-write-time=t.csv"]) == 0  # fmt: skip
    assert "verified" in capsys.readouterr().out
    assert {path.name for path in Path("all").iterdir()} == {"A.tns", "B.tns", "C.tns"}
    assert tp.read("all/A.tns").shape == (50, 40)
    assert len(Path("t.csv").read_text().split(",")) == 4


def test_a_wrong_result_is_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("taco_py.language.oracle.evaluate_dense", lambda *_: np.zeros(30))
    assert main([SPMV, "-f=A:ds", "-i=A:A.mtx", "-verify"]) == 1
    assert "WRONG" in capsys.readouterr().out


def test_other_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["-f=A:ds", "-write-graph=g.svg", "-export=c", "-print-schedule", "-explain"]
    assert main([SPMV, *flags]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("parallelize(i,CPUThread,NoRaces)\nruns      1 kernel, 0 copies\n")
    assert "\nsizes     i, j taken for 1000" in printed
    assert "\nkernel    y[i] = " in printed
    ElementTree.parse("g.svg")
    assert {"kernel.c", "kernel.h", "main.c"} <= {path.name for path in Path("c").iterdir()}


def test_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["-help"], ["--help"], ["-h"]):
        assert main(arguments) == 0
        shown = capsys.readouterr().out
        assert all(f"  -{flag}" in shown for flag in FLAGS)
    assert main(["-help=scheduling"]) == 0
    assert "split        takes a variable" in capsys.readouterr().out
    assert main(["-version"]) == 0
    assert capsys.readouterr().out == f"taco-py {tp.__version__}\n"
