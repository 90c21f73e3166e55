"""Units of a GPU in schedules: TACO's own schedules, what is refused, what memory they touch."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.devices.launch_record import Launch
from taco_py.compiler.concrete.nodes import Unit
from taco_py.compiler.schedule.commands import Parallelize
from tests.corpus.data import dense_result
from tests.corpus.formats import store
from tests.schedule.random_schedules import Tally
from tests.schedule.random_units import search

SPMV = "y(i) = A(i,j) * x(j)"
UNITS = (
    "parallelize(block,GPUBlock,IgnoreRaces), parallelize(warp,GPUWarp,{}), "
    "parallelize(thread,GPUThread,{})"
)
IN_THREADS = (
    "split(fpos,block,fpos1,256), split(fpos1,warp,fpos2,64), split(fpos2,thread,fpos3,2), "
    "reorder(block,warp,thread,fpos3), "
)
IN_WARPS = "split(fpos,block,fpos1,64), split(fpos1,warp,nnz,8), "
COLUMNS = (
    "split({0},dense_val_unbounded,thread,32), bound(dense_val_unbounded,dense_val,2,MaxExact), "
)
ATOMICS = UNITS.format("IgnoreRaces", "Atomics")

# What is evaluated, the formats of sparse operands, the schedule (Senanayake et al. 2020, section
# 7, with fewer entries for each thread).
SCHEDULES = {
    "SpMV": (SPMV, {"A": "csr"}, "fuse(i,j,f), pos(f,fpos,A), " + IN_THREADS + ATOMICS),
    "SpMV by rows": (
        SPMV, {"A": "csr"},
        "split(i,block,block_row,32), split(block_row,warp_row,warp,8), pos(j,jpos,A), "
        "split(jpos,thread_nz,thread,32), reorder(block,warp,warp_row,thread,thread_nz), "
        + UNITS.format("IgnoreRaces", "Temporary"),
    ),
    "SpMM": (
        "C(i,k) = A(i,j) * B(j,k)", {"A": "csr"},
        "reorder(i,j,k), fuse(i,j,f), pos(f,fpos,A), " + IN_WARPS + COLUMNS.format("k")
        + "reorder(block,warp,nnz,thread,dense_val), unroll(dense_val,2), " + ATOMICS,
    ),
    "SDDMM": (
        "A(i,k) = B(i,k) * C(i,j) * D(k,j)", {"B": "csr"},
        "reorder(i,k,j), fuse(i,k,f), pos(f,fpos,B), " + IN_WARPS + COLUMNS.format("j")
        + "reorder(block,warp,nnz,thread,dense_val), unroll(dense_val,2), "
        + UNITS.format("Atomics", "ParallelReduction"),
    ),
    "TTV": (
        "A(i,j) = B(i,j,k) * c(k)", {"B": "sss"},
        "fuse(j,k,jk), fuse(i,jk,f), pos(f,fpos,B), " + IN_THREADS + ATOMICS,
    ),
    "MTTKRP": (
        "A(i,j) = B(i,k,l) * C(k,j) * D(l,j)", {"B": "sss"},
        "reorder(i,k,l,j), fuse(k,l,kl), fuse(i,kl,f), pos(f,fpos,B), " + IN_WARPS
        + COLUMNS.format("j") + "reorder(block,warp,dense_val,thread,nnz), " + ATOMICS,
    ),
    "dense row sums by blocks": (
        "y(i) = A(i,j) * x(j)", {},
        "parallelize(i,GPUBlock,NoRaces), parallelize(j,GPUThread,ParallelReduction)",
    ),
}  # fmt: skip
SIZES = {"i": 37, "j": 45, "k": 33, "l": 19}
LONG = {"SDDMM": {"j": 64, "k": 33}, "MTTKRP": {"j": 50}, "SpMM": {"k": 64}}


@pytest.mark.parametrize("name", SCHEDULES)
def test_tacos_schedules_run_as_written(name: str) -> None:
    text, forms, schedule = SCHEDULES[name]
    arrays = _operands(text, forms, {**SIZES, **LONG.get(name, {})})
    given = {n: store(a, forms[n]) if n in forms else a for n, a in arrays.items()}
    order = "d" * text.split("=")[0].count(",") + "d"
    found = tp.evaluate(text, given, schedule=schedule, format=order, target="cuda-emulated")
    np.testing.assert_array_equal(found, dense_result(text, arrays))
    result = {text[0]: tp.dense(len(order))}
    built = tp.schedule(text, **given, **result, target="cuda-emulated")
    for command in tp.Schedule.parse(schedule).commands:
        built.apply(command)
    kernel = built.compile()
    np.testing.assert_array_equal(kernel(**given), found)
    assert kernel.schedule == tp.Schedule.parse(schedule)
    assert "GPUBlock" in str(built.show()) == str(kernel.show())


def _operands(text: str, forms: dict[str, str], sizes: dict[str, int]) -> dict[str, Any]:
    arrays = {}
    for place, part in enumerate(text.split("=")[1].split("*")):
        name, indices = part.strip(" )").split("(")
        random = np.random.default_rng(place)
        shape = tuple(sizes[i] for i in indices.split(","))
        array = random.integers(1, 5, shape) * 1.0
        arrays[name] = array * (random.random(shape) < 0.3) if name in forms else array
    return arrays


def test_units_print_and_parse() -> None:
    text = (
        "split(i,b,w,8), parallelize(b,GPUBlock,NoRaces), parallelize(w,GPUWarp,IgnoreRaces), "
        "parallelize(j,GPUThread,Atomics)"
    )
    assert str(tp.Schedule.parse(text)) == text
    built = tp.Schedule.parse("parallelize(i,GPUBlock)")
    assert str(built) == "parallelize(i,GPUBlock,NoRaces)"


REFUSED = {
    "parallelize(j,GPUThread,Temporary)":
        "GPUBlock or GPUWarp or GPUThread right around the GPUThread j",
    "parallelize(i,GPUWarp)": "GPUBlock right around the GPUWarp i, found nothing",
    "parallelize(i), parallelize(j,GPUThread,Atomics)": "found CPUThread of i",
    "split(i,b,t,2048), parallelize(b,GPUBlock), parallelize(t,GPUThread)":
        "at most 1024 threads a block, found 2048 for t",
    "split(i,b,w,64), parallelize(b,GPUBlock), parallelize(w,GPUWarp)":
        "at most 1024 threads a block, found 64 warps for w",
    "split(i,b,w,8), pos(j,p,A), split(p,q,l,64), reorder(b,w,l,q), parallelize(b,GPUBlock), "
    "parallelize(w,GPUWarp), parallelize(l,GPUThread,Temporary)":
        "at most 32 iterations of l, for the lanes of a warp, found 64",
    "split(i,b,w,8), parallelize(b,GPUBlock), parallelize(w,GPUBlock)": "b around it is parallel",
    "parallelize(i,GPUBlock), parallelize(j,GPUThread)": "its iterations add to one number",
    "parallelize(j,GPUBlock,Ordered)": "atomic operations come in any order",
    "reorder(j,i), parallelize(j,CPUThread,Ordered)": "threads of the grid add in any order",
    "vectorize(j)": "found CPUVector, which it has not",
}  # fmt: skip


@pytest.mark.parametrize("schedule", REFUSED)
def test_what_a_gpu_has_not_is_refused(schedule: str) -> None:
    operands = {"A": sp.csr_array(np.eye(4)), "x": np.ones(4)}
    with pytest.raises(tp.ScheduleError) as refusal:
        tp.evaluate(SPMV, operands, schedule=schedule, target="cuda-emulated")
    assert REFUSED[schedule] in str(refusal.value)
    assert refusal.value.hint
    *before, last = tp.Schedule.parse(schedule).commands
    built = tp.schedule(SPMV, **operands, target="cuda").apply(tp.Schedule(tuple(before)))
    with pytest.raises(tp.ScheduleError, match=re.escape(REFUSED[schedule])):
        built.apply(last)
    assert built.schedule == tp.Schedule(tuple(before))


def test_memory_that_a_block_has_not_is_refused_when_it_is_asked_for() -> None:
    built = tp.schedule(
        "C[i,k] = A[i,j] * X[j,k]", A=tp.CSR, X=tp.dense(2), static={"k": 9000}, target="cuda"
    )
    built.reorder("i", "j", "k").parallelize("i", "blocks")
    with pytest.raises(tp.ScheduleError, match="would need 72000 bytes, of 49152") as refusal:
        built.precompute("A(i,j)*X(j,k)", "k", "kw").compile()
    assert refusal.value.hint


def test_operands_on_a_device_say_what_a_schedule_is_for() -> None:
    a, x = sp.eye_array(5, format="csr"), np.arange(5.0)
    there = tp.device(a, target="cuda-emulated")
    for built in (
        tp.schedule(SPMV, A=there, x=x),
        tp.schedule("ij,j->i", there, x).split("i", "b", "w", 2).parallelize("b", "blocks"),
    ):
        kernel = built.compile()
        np.testing.assert_array_equal(kernel(there, x).to_host(), x)
    with pytest.raises(tp.DeviceError):
        tp.schedule(SPMV, A=there, x=x, target="c")
    found = tp.frontier("y[i] = A[i,j] * x[j]", A=there)
    assert str(found[0].cost) == str(tp.frontier("y[i] = A[i,j] * x[j]", A=a)[0].cost)


def test_the_host_looks_for_the_rows_of_a_range_of_entries() -> None:
    a = sp.random_array((40, 30), density=0.1, format="csr", rng=np.random.default_rng(3))
    a.data = np.round(a.data * 8)
    built = tp.schedule("y[i] = A[i,j] * x[j]", A=a, x=np.ones(30), target="cuda-emulated")
    kernel = built.apply("fuse(i,j,f), pos(f,p,A)").parallelize("p", "threads").compile()
    np.testing.assert_array_equal(kernel(A=a, x=np.ones(30)), a.sum(axis=1))


def test_what_was_chosen_for_a_gpu_is_a_schedule_that_makes_the_same_again() -> None:
    forms = {"A": tp.CSR, "x": tp.dense(1)}
    kernel = tp.compile("y[i] = A[i,j] * x[j]", **forms, target="cuda")
    assert "GPUWarp" in str(kernel.schedule)
    built = tp.schedule("y[i] = A[i,j] * x[j]", **forms, target="cuda").apply(kernel.schedule)
    assert built.compile().source == kernel.source
    assert built.compile().schedule == kernel.schedule
    moves = tp.schedule("y[i] = A[i,j] * x[j]", **forms, target="cuda").legal_moves()
    assert any(isinstance(m, Parallelize) and m.unit is Unit.BLOCK for m in moves)
    with pytest.raises(tp.ScheduleError, match="of which the CPU has none"):
        tp.compile("y[i] = A[i,j] * x[j]", **forms, schedule=built)
    with pytest.raises(tp.OperandTypeError, match="Expected target to be one of c, cuda"):
        tp.schedule("y[i] = A[i,j] * x[j]", **forms, target="gpu")


def test_the_frontier_for_a_gpu_has_what_runs_there() -> None:
    formats = {"B": tp.CSR, "C": tp.CSR}
    on_cpu = tp.frontier("A[i,j] = B[i,k] * C[k,j]", formats)
    on_gpu = tp.frontier("A[i,j] = B[i,k] * C[k,j]", formats, target="cuda")
    assert {str(each.cost) for each in on_gpu} == {str(each.cost) for each in on_cpu}
    assert [each.estimate for each in on_gpu] != [each.estimate for each in on_cpu]
    assert "GPU" not in str(on_gpu[0].schedule)


def test_the_cpu_has_no_units_of_a_gpu() -> None:
    with pytest.raises(tp.ScheduleError, match="of which the CPU has none") as refusal:
        tp.evaluate(SPMV, A=np.eye(3), x=np.ones(3), schedule="parallelize(i,GPUBlock)")
    assert "cuda-emulated" in str(refusal.value.hint)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("seed", range(1, 5))
def test_random_units(seed: int, thorough: bool, request: pytest.FixtureRequest) -> None:
    """In parts, which run side by side, until enough of them were not refused."""
    least = 300 if thorough else 104
    count = max(least, request.config.getoption("--examples")) // 4
    tally, rounds = Tally(), 0
    while tally.ran < count:
        search(max(count - tally.ran, 10), tally, seed + 100 * rounds)
        rounds += 1
    assert rounds <= 6
    assert tally.applied["GPUBlock"]


STAGED = "split(k,k0,k1,8), reorder(i,k0,j,k1), precompute(A(i,j)*B(j,k),k1,k1,w), "


@pytest.mark.parametrize(
    ("units", "memory"),
    [
        ("parallelize(i,GPUBlock), parallelize(k0,GPUThread)", "    double w[8];"),
        ("parallelize(i,GPUBlock), parallelize(k1,GPUThread)", "__shared__ double w[8];"),
        ("parallelize(i,GPUBlock)", "double w[8];"),
    ],
)
def test_workspaces_are_of_a_thread_or_a_block(units: str, memory: str) -> None:
    text, schedule = "C[i,k] = A[i,j] * B[j,k]", STAGED + units
    given = {
        "A": sp.random_array((9, 20), density=0.3, format="csr", rng=np.random.default_rng(2)),
        "B": np.random.default_rng(3).random((20, 21)),
    }
    found = tp.evaluate(text, given, schedule=schedule, format="dd", target="cuda-emulated")
    np.testing.assert_allclose(found, given["A"] @ given["B"])
    formats = {"A": "csr", "B": "dd", "C": "dd"}
    assert memory in tp.compile(text, formats, schedule=schedule, target="cuda").source


def test_memory_that_no_thread_has_is_refused() -> None:
    schedule = "reorder(i,j,k), parallelize(i,GPUBlock), precompute(A(i,j)*B(j,k),k,k,w)"
    given = {"A": sp.csr_array(np.eye(3)), "B": np.ones((3, 5))}
    with pytest.raises(tp.DeviceError, match="w would need memory of a size"):
        tp.evaluate("C[i,k] = A[i,j] * B[j,k]", given, schedule=schedule, target="cuda-emulated")


# ---------------------------------------------------------------- reductions


REDUCTIONS = {
    "sum": "s = A[i,j]",
    "product": "s = prod(i, j, A[i,j])",
    "greatest": "s = max(i, j, A[i,j])",
    "least": "s = min(i, j, A[i,j])",
    "greatest of rows": "s[i] = max(j, A[i,j])",
    "least of rows": "s[i] = min(j, A[i,j])",
    "products of rows": "s[i] = prod(j, A[i,j])",
}


@pytest.mark.rotating(2)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int32"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_units_reduce_by_any_operator(name: str, dtype: str) -> None:
    text = REDUCTIONS[name]
    operand = np.random.default_rng(3).choice([-2, -1, 1, 1, 1], (19, 70)).astype(dtype)
    expected = tp.evaluate_dense(text, A=operand)
    first = "parallelize(i,GPUBlock,{0}), parallelize(j,GPUThread,Atomics)"
    second = (
        "split(i,b,w,4), parallelize(b,GPUBlock,{0}), parallelize(w,GPUWarp,{0}), "
        "parallelize(j,GPUThread,Temporary)"
    )
    race = "NoRaces" if "[i] =" in text else "Atomics"
    for schedule in (None, first.format(race), second.format(race)):
        found = tp.evaluate(text, A=operand, schedule=schedule, target="cuda-emulated")
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("text", ["s = A[i,j]", "s = max(i, j, A[i,j])", "s = prod(i, j, A[i,j])"])
def test_blocks_keep_their_sums_apart_in_order(text: str, dtype: str) -> None:
    operand = np.random.default_rng(4).choice([-3, -1, 1, 1, 1], (19, 70)).astype(dtype)
    schedule = "split(i,b,w,4), parallelize(b,GPUBlock,Ordered), parallelize(w,GPUWarp,Ordered)"
    found = tp.evaluate(text, A=operand, schedule=schedule, target="cuda-emulated")
    np.testing.assert_allclose(found, tp.evaluate_dense(text, A=operand))
    kernel = tp.compile(text, {"A": "dd"}, dtypes=dtype, schedule=schedule, target="cuda")
    assert "atomic" not in kernel.source


def test_units_of_a_block_write_no_sparse_result() -> None:
    with pytest.raises(tp.ScheduleError, match="would write a sparse result"):
        tp.evaluate(
            "C[i,j] = 2 * A[i,j]", A=sp.csr_array(np.eye(4)), target="cuda-emulated",
            schedule="parallelize(i,GPUBlock)",
        )  # fmt: skip


# What once went wrong.
FIXED = (
    ("C[i,j] = A[i,j] - B[i,j] + D[i,j]", "parallelize(j,GPUBlock,NoRaces)"),
    (
        "C[i,j] = A[j,i]",
        "split(i,a,b,1), split(a,c,d,1), split(d,e,f,1), parallelize(c,GPUBlock,NoRaces), "
        "parallelize(e,GPUThread,NoRaces)",
    ),
)


@pytest.mark.parametrize(("text", "schedule"), FIXED)
def test_fixed(text: str, schedule: str) -> None:
    names = [name for name in "ABD" if f"{name}[" in text.split("=")[1]]
    given = {n: np.arange(25.0).reshape(5, 5) * k for k, n in enumerate(names, 1)}
    found = tp.evaluate(text, given, schedule=schedule, format="dd", target="cuda-emulated")
    np.testing.assert_array_equal(found, dense_result(text, given))


STAGED_ROW = (
    "split(k,tile,inside,32), reorder({}), precompute(A(i,k),inside,copied,w), "
    "parallelize(i,GPUBlock), parallelize(j,GPUThread), parallelize(copied,GPUThread)"
)


@pytest.mark.parametrize("order", ["i,tile,j,inside", "i,tile,inside,j"])
def test_workspaces_that_threads_fill_are_in_shared_memory(order: str) -> None:
    """A tile of A's row at a time, read once by the block; threads wait before and after."""
    rng = np.random.default_rng(1)
    given = {"A": rng.integers(-4, 5, (5, 70)) * 1.0, "B": rng.integers(-4, 5, (70, 50)) * 1.0}
    text, schedule = "C[i,j] = A[i,k] * B[k,j]", STAGED_ROW.format(order)
    source = tp.compile(text, given, schedule=schedule, target="cuda").source
    assert "__shared__ double w[32];" in source
    assert source.count("__syncthreads();") >= 2
    found = tp.evaluate(text, given, schedule=schedule, target="cuda-emulated")
    np.testing.assert_array_equal(found, given["A"] @ given["B"])


# ---------------------------------------------------------------- what memory is touched


RANDOM = np.random.default_rng(0)
SPARSE = sp.random_array((300, 300), density=0.01, format="csr", rng=RANDOM)
STREAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "SpMM": (
        "y[i,k] = A[i,j] * B[j,k]", {"A": SPARSE, "B": RANDOM.random((300, 128))},
    ),
    "SDDMM": (
        "y[i,k] = A[i,k] * C[i,j] * D[k,j]",
        {"A": SPARSE, "C": RANDOM.random((300, 128)), "D": RANDOM.random((300, 128))},
    ),
    "scaled rows": (
        "y[i,j] = a[i] * B[i,j]", {"a": RANDOM.random(300), "B": RANDOM.random((300, 256))},
    ),
    "triad": ("y[i] = a[i] + 3 * b[i]", {"a": RANDOM.random(9000), "b": RANDOM.random(9000)}),
    "dot": ("s = a[i] * b[i]", {"a": RANDOM.random(9000), "b": RANDOM.random(9000)}),
    "row sums": ("y[i] = B[i,j]", {"B": RANDOM.random((300, 256))}),
    "column sums": ("y[j] = B[i,j]", {"B": RANDOM.random((300, 256))}),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_neighbours_in_memory_go_to_neighbouring_threads(name: str, launches: list[Launch]) -> None:
    text, operands = STREAMS[name]
    order = "d" * (text.split("=")[0].count(",") + 1) if "[" in text.split("=")[0] else None
    found = tp.evaluate(text, operands, format=order, target="cuda-emulated")
    np.testing.assert_allclose(found, tp.evaluate_dense(text, **operands))
    assert launches
    sectors = sum(launch.sectors for launch in launches)
    assert sectors <= 1.1 * sum(launch.ideal_sectors for launch in launches)


def test_entries_are_split_evenly(launches: list[Launch]) -> None:
    """One row has half of all entries, and yet no thread does more than others."""
    per_thread = 256
    half = 256 * per_thread
    lengths = np.array([half, *[64] * (half // 64)])
    pos = np.concatenate([[0], np.cumsum(lengths)])
    crd = np.concatenate([np.arange(n) for n in lengths])
    matrix = sp.csr_array((np.ones(2 * half), crd, pos), shape=(len(lengths), half))
    schedule = (
        f"fuse(i,j,f), pos(f,fpos,A), split(fpos,block,fpos1,{256 * per_thread}), "
        f"split(fpos1,warp,fpos2,{32 * per_thread}), split(fpos2,thread,fpos3,{per_thread}), "
        "reorder(block,warp,thread,fpos3), " + ATOMICS
    )
    found = tp.evaluate(SPMV, A=matrix, x=np.ones(half), schedule=schedule, target="cuda-emulated")
    np.testing.assert_array_equal(found, lengths)
    (launch,) = launches
    read = [place.accesses for place in launch.places if place.buffer == "A_vals"]
    assert sum(read) == 2 * half
    assert launch.shape.blocks * launch.shape.threads * per_thread == 2 * half
    assert launch.imbalance <= 1.01  # searches for rows take a step more or less


def test_skewed_rows_are_split_by_themselves() -> None:
    lengths = np.full(3000, 4)
    lengths[5] = 300000
    pos = np.concatenate([[0], np.cumsum(lengths)])
    crd = np.concatenate([np.arange(n) for n in lengths])
    skewed = sp.csr_array((np.ones(pos[-1]), crd, pos), shape=(3000, 300000))
    told = str(tp.explain(SPMV, A=skewed, x=np.ones(300000), target="cuda-emulated"))
    assert "entries of A for each warp, its lanes over neighbours" in told.split("not ")[0]
    even = sp.random_array((3000, 3000), density=0.01, format="csr", rng=RANDOM)
    told = str(tp.explain(SPMV, A=even, x=np.ones(3000), target="cuda-emulated"))
    assert "a warp for each i, lanes over j" in told.split("not ")[0]
    assert "blocks of 256 threads, no shared memory" in told


@pytest.mark.parametrize("text", ["C[i,j] = A[i,j] + D[i,j]", "C[i,j] = A[i,j] + B[i,j]"])
def test_a_promise_of_no_races_is_about_races_alone(text: str) -> None:
    """Iterations that begin where the one before has come to have no order among threads."""
    dense = np.eye(9)
    form = {"A": store(dense, "csr"), "B": store(dense, "csr"), "D": dense}
    for race in ("NoRaces", "IgnoreRaces", "Atomics", "Temporary"):
        with pytest.raises(tp.ScheduleError, match=r"walks A2.* in order"):
            tp.evaluate(
                text, {name: form[name] for name in "ABD" if f"{name}[" in text}, format="dd",
                schedule=f"parallelize(j,CPUThread,{race})", target="cuda-emulated",
            )  # fmt: skip


@pytest.mark.parametrize("unit", ["CPUThread", "GPUBlock"])
def test_a_promise_of_no_races_that_is_broken_is_the_schedules_fault(unit: str) -> None:
    with pytest.raises(tp.ScheduleError) as caught:
        tp.evaluate(
            "y[j] = D[i,j] * w[i]", D=np.ones((9, 5)), w=np.ones(9), target="cuda-emulated",
            schedule=f"parallelize(i,{unit},IgnoreRaces)",
        )  # fmt: skip
    assert f"as parallelize(i,{unit},IgnoreRaces) promises, found race in" in str(caught.value)
    assert f"hint: parallelize(i,{unit},Atomics)" in str(caught.value)


def test_faults_of_ours_have_texts_of_kernels_in_the_report_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A race that nobody promised not to be there, as where a choice of atomics is forgotten."""
    monkeypatch.setattr("codegen.devices.reports.RACES", ())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(tp.InternalError) as caught:
        tp.evaluate(
            "y[j] = D[i,j] * w[i]", D=np.ones((9, 5)), w=np.ones(9), target="cuda-emulated",
            schedule="parallelize(i,CPUThread,IgnoreRaces)",
        )  # fmt: skip
    told = str(caught.value)
    assert "Expected to run evaluate on cuda-emulated, found EmulationError" in told
    assert "#include" not in told
    report = Path(told.rpartition(" with the file ")[2])
    assert "#include" in report.read_text() and "race in global memory" in report.read_text()
