"""Kernels of a GPU: the corpus on the emulated device, bad input, and what users read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from benchmarks import gpu
from codegen.devices.emulated_module import EmulatedModule
from codegen.toolchain.cuda.ptxas_report import KernelReport
from codegen.toolchain.errors import NoCompilerError
from taco_py.data.kernels import KERNELS
from tests.corpus.data import dense_result, initial, operands
from tests.corpus.expressions import CASES, Case
from tests.corpus.formats import store, to_dense

GOLDEN = Path(__file__).parent.parent / "golden" / "cuda"
EMULATED = "cuda-emulated"
LARGE = np.empty((4096, 4096), np.float32)  # only its size is looked at
MAIN: dict[str, tuple[str, dict[str, Any]]] = {
    "spmv": ("y[i] = A[i,j] * x[j]", {"A": "csr", "x": "d", "y": "d"}),
    "spmm": ("Y[i,k] = A[i,j] * X[j,k]", {"A": "csr", "X": "dd", "Y": "dd"}),
    "mttkrp": (
        "M[i,r] = T[i,j,k] * B[j,r] * C[k,r]",
        {"T": "sss", "B": "dd", "C": "dd", "M": "dd"},
    ),
    "sddmm": (
        "C[i,j] = S[i,j] * U[i,k] * V[j,k]",
        {"S": "csr", "U": "dd", "V": "dd", "C": "csr"},
    ),
    "dot": ("s = a[i] * b[i]", {"a": "d", "b": "d"}),
    "column_sums": ("y[j] = A[i,j]", {"A": "csr", "y": "d"}),
    "spmv_entries": ("y[i] = A[i,j] * x[j]", {"A": "csr", "x": "d", "y": "d"}),
    "spmv_groups": ("y[i] = A[i,j] * x[j]", {"A": "csr", "x": "d", "y": "d"}),
    "sgemm": ("C[i,j] = A[i,k] * B[k,j]", {"A": LARGE, "B": LARGE}),
}
BY_ENTRIES = (
    "fuse(i,j,ij), pos(ij,p,A), split(p,block,rest,1024), split(rest,warp,part,128), "
    "split(part,each,lane,32), parallelize(block,GPUBlock,IgnoreRaces), "
    "parallelize(warp,GPUWarp,IgnoreRaces), parallelize(lane,GPUThread,Atomics)"
)
BY_GROUPS = (
    "split(i,block,rest,32), split(rest,warp,group,4), parallelize(block,GPUBlock,NoRaces), "
    "parallelize(warp,GPUWarp,NoRaces), parallelize(group,GPUThread,NoRaces), "
    "parallelize(j,GPUThread,Atomics)"
)
SCHEDULES = {"spmv_entries": BY_ENTRIES, "spmv_groups": BY_GROUPS}


@pytest.mark.rotating(4)
@pytest.mark.parametrize("form", ["CSR", "CSC", "dense"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_corpus(case: Case, form: str) -> None:
    arrays, start = operands(case, "mixed"), initial(case)
    forms = {
        n: form if a.ndim == 2 else ("", "s", "", "sss", "ssss")[a.ndim] for n, a in arrays.items()
    }
    usual = form == "dense"
    given = {n: a if usual or not a.ndim else store(a, forms[n]) for n, a in arrays.items()}
    if start is not None:
        given[case.target[0]] = start.copy()
    wanted = dense_result(case.text, arrays, start)
    result = "d" * len(case.result_shape) if case.result_shape else None
    try:
        found = to_dense(tp.evaluate(case.text, given, format=result, target=EMULATED))
    except tp.DeviceError as error:
        assert "dense result" in str(error) or "bool yet" in str(error)  # of a temporary
        pytest.skip("a temporary has no kernel yet")
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_another_process_lowers_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text and its host are on disk: neither planning nor compiling makes loops of a recipe."""
    text, formats = "y[i] = 5 * A[i,j] * x[j]", {"A": "csr", "x": "d", "y": "d"}
    first = tp.compile(text, formats, target=EMULATED)
    assert tp.compile(text, formats, target=EMULATED).compiled[0].hit == "memory"

    def refused(*_: object) -> None:
        raise AssertionError("lowered again")

    for module in ("unit_choices", "loops"):
        monkeypatch.setattr(f"taco_py.compiler.ways.{module}.lower_recipe", refused)
    KERNELS.memo.clear()
    again = tp.compile(text, formats, target=EMULATED)
    assert again.compiled[0].hit == "disk"
    assert (again.source, again.schedule) == (first.source, first.schedule)
    assert again.explain().splitlines()[:-1] == first.explain().splitlines()[:-1]
    np.testing.assert_array_equal(again(A=sp.eye_array(3, format="csr"), x=np.ones(3)), [5, 5, 5])


def test_explain_says_what_kernels_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a compiler reports, and what follows; that there is none; that it is emulated."""
    text, formats = "C[i,j] = A[i,j] + A[i,j] * B[i,j]", {"A": "csr", "B": "dd", "C": "dd"}
    taken = {"evaluate_1": KernelReport("evaluate_1", "sm_90", 40, 512, 8, 4, 16)}
    monkeypatch.setattr(
        "taco_py.report.explanation.gpu_resources.compiled_reports", lambda *_: taken
    )
    kernel = tp.compile(text, formats, target="cuda")
    told = kernel.explain()
    assert (
        "takes       evaluate_1: 40 registers a thread, 12 bytes spilled, 512 bytes of shared "
        "memory a block; 6 blocks at once, 48 of 64 warps, for there are 65536 registers\n" in told
    )
    expected = re.search(r"expected  (\S+) s in kernels of a GPU, without copies", told)
    chosen = re.search(r"(\S+) µs expected", told)
    assert expected
    assert chosen
    assert float(expected[1]) == pytest.approx(float(chosen[1]) * 1e-6, rel=0.05)
    assert "limit     1024 threads and 49152 shared bytes a block\n" in told
    tiles = tp.compile("C[i,j] = A[i,k] * B[k,j]", {"A": "dd", "B": "dd"}, target=EMULATED)
    told = tiles.explain()
    chosen = re.search(r"a thread: (\S+) µs expected", told)
    assert chosen
    assert f"expected  {float(chosen[1]) * 1e-6:.1e} s in kernels of a GPU" in told
    monkeypatch.undo()

    def none() -> None:
        raise NoCompilerError("Expected a compiler of CUDA, found none", hint="install nvcc")

    monkeypatch.setattr("codegen.devices.cuda.binaries.find_cuda_compiler", none)
    other = tp.compile("y[i] = 3 * a[i] + 77", {"a": "d", "y": "d"}, target="cuda").explain()
    assert "takes       registers and what runs at once are known once nvcc is there: ins" in other
    emulated = tp.compile(text, formats, target=EMULATED).explain()
    assert 'takes       emulated; target="cuda" has registers' in emulated
    sparse = tp.compile("C[i,j] = A[i,j] + B[i,j]", dict.fromkeys("ABC", "csr"), target=EMULATED)
    assert "expected  not estimated: there are no figures for such kernels" in sparse.explain()


@pytest.mark.parametrize("name", MAIN)
def test_main_kernels_read_well(name: str, request: pytest.FixtureRequest) -> None:
    text, formats = MAIN[name]
    source = tp.compile(text, formats, target="cuda", schedule=SCHEDULES.get(name)).source
    path = GOLDEN / f"{name}.cu"
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
    assert source == path.read_text()
    assert source.count("\n") <= 120


def test_arrays_with_gaps_and_negative_strides() -> None:
    a = np.arange(40.0).reshape(5, 8)
    x = np.arange(16.0)
    for view, vector in ((a[::2, ::-1], x[::-2]), (a.T[:5, :5], x[10:0:-2])):
        found = tp.evaluate("y[i] = A[i,j] * x[j]", A=view, x=vector, target=EMULATED)
        np.testing.assert_array_equal(found, view @ vector)


def test_results_go_where_they_are_asked_for() -> None:
    a = sp.random_array((20, 30), density=0.2, format="csr", rng=np.random.default_rng(1))
    x, out = np.ones(30), np.full((20, 2), 7.0)
    found = tp.einsum("ij,j->i", a, x, out=out[:, 0], target=EMULATED)
    np.testing.assert_allclose(found, a @ x)
    assert (out[:, 1] == 7).all()


def test_kernels_are_compiled_without_data_and_called() -> None:
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), target=EMULATED)
    a = sp.random_array((20, 30), density=0.2, format="csr", rng=np.random.default_rng(1))
    for x in (np.ones(30), np.arange(30.0)):
        np.testing.assert_allclose(kernel(A=a, x=x), a @ x)


def test_a_missing_gpu_is_said_with_what_to_do() -> None:
    with pytest.raises(tp.DeviceError, match="cuda-emulated"):
        tp.evaluate("y[i] = 2 * x[i]", x=np.ones(3), target="cuda")


def test_targets_have_names() -> None:
    with pytest.raises(tp.OperandTypeError, match="c, cuda, cuda-emulated"):
        tp.evaluate("y[i] = 2 * x[i]", x=np.ones(3), target="gpu")


def test_the_benchmark_is_ready_for_a_gpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of its cases, small and emulated, give SciPy's results."""
    monkeypatch.setattr(gpu, "SECONDS", 0.0)
    monkeypatch.setattr(gpu, "RESULTS", tmp_path / "benchmarks" / "results")
    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr("sys.argv", ["gpu", "--target", EMULATED, "--small"])
    gpu.main()
    printed = capsys.readouterr().out
    assert "SGEMM" in printed and "WRONG" not in printed
    rows = json.loads((tmp_path / "benchmarks" / "results" / "gpu.json").read_text())["rows"]
    assert len(rows) >= 12 and all(row["right"] for row in rows)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("y[i] = A[i,j] * x[j]; z[i] = 2 * y[i]", {}),
        ("y[i] = A[i,j] * x[j]; z[i] = 2 * y[i]", {"outputs": ("y", "z")}),
        ("y[i] = x[i+k] * x[k]", {"shape": 10, "border": "fill"}),
        ("h[p[i]] += x[i]", {"shape": 7}),
        ("h[p[i]] max= x[i]", {"shape": 7}),
        ("y[i] = x[i] * i", {}),
        ("y[i] = A[i,j] * x[j]", {"semiring": "min_plus"}),
        ("C[i,k] = A[i,j] * A[j,k]", {"mask": sp.eye_array(20, format="csr")}),
        ("y[i] = A[i,j] * x[j]", {"schedule": "measure"}),
    ],
)
def test_every_way_to_ask_computes_on_the_device(
    text: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    launches: list[str] = []
    usual = EmulatedModule.launch

    def counted(module: EmulatedModule, kernel: str, *arguments: Any, **others: Any) -> Any:
        launches.append(kernel)
        return usual(module, kernel, *arguments, **others)

    monkeypatch.setattr(EmulatedModule, "launch", counted)
    rng = np.random.default_rng(1)
    every = {
        "A": sp.random_array((20, 20), density=0.2, format="csr", rng=rng),
        "x": rng.random(20),
        "p": np.arange(20) % 7,
    }
    given = {name: value for name, value in every.items() if f"{name}[" in text}
    found = tp.evaluate(text, given, target=EMULATED, **options)
    wanted = tp.evaluate(text, given, **options)
    assert launches
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for ours, theirs in pairs:
        np.testing.assert_allclose(to_dense(ours), to_dense(theirs))


@pytest.mark.parametrize("fill", [0, 1, 7])
def test_reductions_over_other_fill_values(fill: int) -> None:
    """No plan marks loops for threads of a CPU: units of the GPU share them."""
    rng = np.random.default_rng(2)
    b, a = rng.integers(0, 4, (3, 32)), rng.integers(0, 4, (40, 6))
    z = np.full(32, fill)
    z[3], stored = 2, tp.Tensor.from_coo(([3],), np.array([2]), (32,), format="s", fill_value=fill)
    for text, given in (
        ("y[i] = B[i,k] * z[k]", {"B": b, "z": z}),
        ("y[i] = max(k, B[i,k] + z[k])", {"B": b, "z": z}),
        ("y[j] = min(i, A[i,j])", {"A": a}),
        ("y[j] = argmax(i, A[i,j])", {"A": a}),
        ("y[j] = any(i, A[i,j] > 2)", {"A": a}),
        ("y[j] max= A[i,j]", {"A": a}),
    ):
        sparse = {**given, "z": stored} if "z" in given else given
        found = tp.evaluate(text, sparse, format="d", target=EMULATED)
        np.testing.assert_array_equal(found, tp.evaluate_dense(text, given))
        told = str(tp.explain(text, sparse, format="d", target=EMULATED))
        assert "Temporary" not in told and "CPUThread (Atomics)" not in told
