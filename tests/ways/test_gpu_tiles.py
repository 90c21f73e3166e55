"""Products in tiles of shared memory and registers: results, what memory they touch, and when they
are chosen. Kernels run emulated, which checks races, bounds and memory that nobody wrote."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import taco_py as tp
from codegen.devices.cuda.binaries import compile_report
from codegen.devices.emulated import EmulatedDevice
from codegen.devices.launch_record import Launch
from codegen.devices.reports import EmulationError, Fault
from taco_py.compiler import driver
from taco_py.compiler.schedule.commands import Make
from taco_py.compiler.ways.recipe import Recipe
from taco_py.data.kernels import KERNELS
from tests.counted_launches import counted_launches
from tests.devices.nvcc import needs_nvcc
from tests.end_to_end.test_cuda import EMULATED, GOLDEN

WAY = "cuda_tiles"
Tile = tuple[int, ...]


@cache
def in_tiles(text: str, tile: Tile, dtype: str) -> driver.CompiledKernel:
    """The kernel of `ik,kj->ij` in tiles of a size, for operands of any size."""
    operands, result = text.split("->")
    left, right = operands.split(",")
    product = f"C[{','.join(result)}] = A[{','.join(left)}] * B[{','.join(right)}]"
    formats = {name: "d" * len(part) for name, part in (("A", left), ("B", right))}
    recipe = tp.compile(product, formats, target=EMULATED).compiled[-1].recipe
    problem = recipe.problem
    types = tuple((name, replace(type, dtype=dtype)) for name, type in problem.operands)
    problem = replace(problem, operands=types, result=replace(problem.result, dtype=dtype))
    made = recipe.schedule.with_way(Make(WAY, tile))
    return driver.compile_recipe(Recipe(problem, made, target=EMULATED))


def run(kernel: driver.CompiledKernel, sizes: dict[str, int], **arrays: Any) -> None:
    """Call a kernel, its arguments found by what its parameters are bound to."""
    arguments: list[Any] = []
    for _, source in kernel.parameters:
        assert source is not None
        array = arrays.get(source.tensor)
        if source.what == "values":
            arguments.append(array)
        elif source.what == "size":
            arguments.append(sizes[source.index])
        else:
            assert array is not None
            arguments.append(array.strides[source.level] // array.itemsize)
    kernel.call(*arguments)


def numbers(rng: np.random.Generator, shape: list[int], dtype: str, gap: int) -> Any:
    """Small whole numbers, of which any sum is exact; every `gap`-th row of what lies in memory."""
    whole = [shape[0] * gap, *shape[1:]]
    values: Any = rng.integers(0 if dtype.startswith("u") else -4, 5, whole)
    if dtype.startswith("complex"):
        values = values + 1j * rng.integers(-4, 5, whole)
    return values.astype(dtype)[::gap]


CASES: list[tuple[str, Tile, str]] = [
    ("ik,kj->ij", (16, 16, 8, 2, 2), "float32"),
    ("ki,jk->ij", (32, 32, 8, 4, 4), "float32"),
    ("ik,kj->ij", (32, 64, 16, 8, 4), "float64"),
    ("bik,bkj->bij", (16, 32, 8, 2, 4), "int64"),
    ("ik,kj->ij", (16, 16, 8, 2, 2, 3), "float32"),
    ("aebf,dfce->abcd", (16, 16, 16, 2, 2), "complex64"),
    ("bik,kjb->ijb", (16, 16, 8, 2, 2, 2), "uint8"),
    ("ikl,lkj->ji", (32, 16, 8, 4, 2), "complex128"),
]


@pytest.mark.rotating(2)
@pytest.mark.parametrize(("text", "tile", "dtype"), CASES)
@given(data=st.data())
def test_results_at_all_borders(text: str, tile: Tile, dtype: str, data: st.DataObject) -> None:
    kernel = in_tiles(text, tile, dtype)
    names = sorted(set(text) - set(",->"))
    most = {2: 40, 3: 21, 4: 6}[len(text.split(",")[0])]
    sizes = {name: data.draw(st.integers(1, most), label=name) for name in names}
    gap = data.draw(st.integers(1, 3), label="gap")
    operands, result = text.split("->")
    left, right = operands.split(",")
    rng = np.random.default_rng(1)
    a, b = (numbers(rng, [sizes[x] for x in part], dtype, gap) for part in (left, right))
    c = numbers(rng, [sizes[x] for x in result], dtype, gap)
    run(kernel, sizes, A=a, B=b, C=c)
    np.testing.assert_array_equal(c, np.einsum(text, a, b))


def test_a_sum_of_no_terms_is_0() -> None:
    kernel = in_tiles("ik,kj->ij", (16, 16, 8, 2, 2), "float32")
    c = np.full((20, 18), np.nan, np.float32)
    a, b = np.ones((20, 0), np.float32), np.ones((0, 18), np.float32)
    run(kernel, {"i": 20, "j": 18, "k": 0}, A=a, B=b, C=c)
    assert not c.any()


def test_what_is_behind_a_border_does_not_come_in() -> None:
    """NaN and infinity in the last row and column, which threads behind the border read again."""
    a, b = np.ones((19, 9), np.float32), np.ones((9, 21), np.float32)
    a[-1, -1], b[-1, -1] = np.inf, np.nan
    kernel = in_tiles("ik,kj->ij", (16, 16, 8, 2, 2), "float32")
    c = np.zeros((19, 21), np.float32)
    run(kernel, {"i": 19, "j": 21, "k": 9}, A=a, B=b, C=c)
    np.testing.assert_array_equal(c, np.einsum("ik,kj->ij", a, b))


def test_sums_have_the_same_bits_each_time() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.random((20, 500), np.float32), rng.random((500, 20), np.float32)
    kernel = in_tiles("ik,kj->ij", (16, 16, 8, 2, 2, 4), "float32")
    first, *others = (np.empty((20, 20), np.float32) for _ in range(3))
    for c in (first, *others):
        run(kernel, {"i": 20, "j": 20, "k": 500}, A=a, B=b, C=c)
    assert all(np.array_equal(first, c) for c in others)
    np.testing.assert_allclose(first, a @ b, rtol=1e-5)


# ---------------------------------------------------------------- what is touched


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[Launch]:
    """What each launch on a device that counts has done."""
    return counted_launches(monkeypatch)


@pytest.mark.parametrize(
    ("text", "tile", "dtype"),
    [
        ("ik,kj->ij", (128, 128, 8, 8, 8), "float32"),
        ("ki,kj->ij", (64, 64, 8, 8, 4), "float32"),
        ("ik,jk->ij", (64, 64, 8, 4, 4), "float64"),
        ("bik,bkj->bij", (32, 32, 8, 4, 4), "complex64"),
    ],
)
def test_full_tiles_read_whole_sectors_and_few_elements(
    text: str, tile: Tile, dtype: str, launches: list[Launch]
) -> None:
    rows, columns, depth, own_rows, own_columns = tile
    kernel = in_tiles(text, tile, dtype)
    sizes = {"b": 2, "i": 2 * rows, "j": 2 * columns, "k": 4 * depth}
    operands, result = text.split("->")
    rng = np.random.default_rng(1)
    left, right = ([sizes[x] for x in part] for part in operands.split(","))
    a, b = (numbers(rng, shape, dtype, 1) for shape in (left, right))
    c = np.empty([sizes[x] for x in result], dtype)
    run(kernel, sizes, A=a, B=b, C=c)
    np.testing.assert_array_equal(c, np.einsum(text, a, b))
    launch = launches[-1]
    assert launch.sectors <= 1.1 * launch.ideal_sectors
    batch = sizes["b"] if "b" in text else 1
    products = batch * sizes["i"] * sizes["j"] * sizes["k"]
    of_global = sum(place.accesses for place in launch.places if place.kind == "read")
    assert of_global == products / rows + products / columns
    threads = launch.shape.blocks * launch.shape.threads
    written = (rows + columns) * depth * threads // launch.shape.threads * 5  # a step more
    stored = sum(place.accesses for place in launch.places if place.kind == "write")
    assert launch.accesses_per_thread is not None
    shared = int(launch.accesses_per_thread.sum()) - of_global - stored - written
    assert shared == products / own_rows + products / own_columns
    assert launch.imbalance == 1.0


@pytest.mark.parametrize("which", [1, 2])
def test_each_barrier_of_a_step_is_needed(which: int) -> None:
    """Without one, threads read what others have not written yet, or write what others read."""
    kernel = in_tiles("ik,kj->ij", (16, 16, 8, 2, 2), "float32")
    parts = kernel.source.split("__syncthreads();")
    assert len(parts) == 4
    first, rest = parts[: which + 1], parts[which + 1 :]
    text = ";".join("__syncthreads();".join(each) for each in (first, rest))
    device = EmulatedDevice(KERNELS, seed=1)
    n = 40
    buffers = [device.allocate(n * n * 4) for _ in range(3)]
    for buffer in buffers:
        device.upload(buffer, np.ones(n * n, np.float32))
    sizes = [np.int64(n)] * 6
    with pytest.raises(EmulationError) as caught:
        device.load(text).launch("evaluate_1", 2, 64, 0, [*buffers, *sizes])
    assert caught.value.reports[0].fault in (Fault.SHARED_RACE, Fault.UNINITIALISED)


# ---------------------------------------------------------------- when they are chosen


def explained(text: str, *operands: Any) -> str:
    return tp.explain(text, *operands, target="cuda")


def test_explain_says_tiles_threads_memory_and_why() -> None:
    large = np.empty((4096, 4096), np.float32)
    told = explained("ik,kj->ij", large, large)
    for part in (
        "tiles of 128 by 128, depth 8, 8 by 8 a thread, 256 threads",
        "registers: 64 of sums, 16 of factors, 8 ahead, 40 others: 128 of 128 expected",
        "= 8320 of 49152 bytes",
        "not a thread for each element",
        "blocks of 256 threads, 8320 bytes of shared memory",
    ):
        assert part in told


@pytest.mark.parametrize(
    ("text", "shapes", "tiled"),
    [
        ("ik,kj->ij", [(300, 200), (200, 100)], True),
        ("bik,bkj->bij", [(50, 64, 64), (50, 64, 64)], True),
        ("i,j->ij", [(300,), (300,)], False),
        ("ik,k->i", [(300, 300), (300,)], False),
        ("ij,ij->ij", [(300, 300), (300, 300)], False),
        ("ik,kj->ij", [(2, 300), (300, 300)], False),
    ],
)
def test_products_with_reuse_are_tiled(
    text: str, shapes: list[tuple[int, ...]], tiled: bool
) -> None:
    told = explained(text, *(np.ones(shape, np.float32) for shape in shapes))
    assert ("tiles of" in told) == tiled


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float64", "complex128", "float16", "bool"])
def test_all_numbers_are_multiplied_in_tiles(dtype: str) -> None:
    """Halves once they are widened; a sum of truths is none."""
    text = "C[i,j] = A[i,k] * B[k,j]"
    given = {"A": np.ones((70, 50), dtype), "B": np.ones((50, 60), dtype)}
    found = tp.evaluate(text, given, target=EMULATED)
    np.testing.assert_array_equal(found, tp.evaluate_dense(text, given))
    assert ("tiles of" in explained("ik,kj->ij", *given.values())) == (dtype != "bool")


# ---------------------------------------------------------------- what nvcc makes of it


@needs_nvcc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_registers_and_shared_memory_are_as_planned(architecture: str) -> None:
    """Of the main kernel; that it spills nothing, test_cuda_compiled has for all of them."""
    text = (GOLDEN / "sgemm.cu").read_text()
    report = compile_report(KERNELS, text, architecture)["evaluate_1"]
    assert report.registers <= 128 and report.spill_stores == report.stack == 0
    assert f"= {report.shared_bytes} of 49152 bytes" in text
