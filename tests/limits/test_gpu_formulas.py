"""DeepCuts' formulas against values worked out by hand, and what fits a multiprocessor against
NVIDIA's published examples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import taco_py as tp
from codegen.occupancy import occupancy
from codegen.target import MULTIPROCESSORS
from polyhedral.products.gpu_tile import GpuProduct, GpuTile, blocks_at_a_time, tiles_for
from taco_py.cost.machine import MACHINES
from taco_py.limits.gpu_bound import block_work, gpu_bound
from taco_py.limits.gpu_ceilings import GPUS, gpu_named
from taco_py.limits.gpu_formulas import (
    BlockWork,
    balance_ratio,
    global_ratio,
    resources,
    shared_ratio,
    upper_limit,
)
from taco_py.values.operands import give
from taco_py.ways.gpu_tiles import machine_on_gpu

V100, A100 = GPUS["V100"], GPUS["A100"]
TILE = GpuTile(128, 128, 16, 8, 8)
PRODUCT = GpuProduct(1, 1024, 1280, 512)


def work() -> BlockWork:
    return block_work(TILE, PRODUCT, 4)


def test_a_block_of_tiles_by_hand() -> None:
    found = work()
    assert found.blocks == 8 * 10
    assert found.flops == 2 * 128 * 128 * 512
    assert found.global_bytes == 4 * (256 * 512 + 128 * 128)
    assert found.thread_flops / found.thread_loads == 2 * 64 / 16
    assert found.threads == 256


def test_global_memory_limits_small_tiles_alone() -> None:
    """A block of 128 by 128 has 28 operations a byte, and the V100 asks for 17; one of 16 has 4."""
    assert global_ratio(work(), V100) == 1.0
    small = block_work(GpuTile(16, 16, 16, 2, 2), GpuProduct(1, 1024, 1280, 1 << 20), 4)
    assert small.flops / small.global_bytes == pytest.approx(4.0, rel=1e-3)
    assert global_ratio(small, V100) == pytest.approx(4.0 / (15.7e12 / 0.9e12), rel=1e-3)


def test_loads_of_shared_memory_take_their_latency() -> None:
    """8 operations a load, of 19 cycles; twice as many where each load meets a bank twice."""
    assert shared_ratio(work(), V100) == pytest.approx(8 / 19)
    assert shared_ratio(replace(work(), conflicts=2.0), V100) == pytest.approx(8 / 38)
    assert shared_ratio(replace(work(), thread_loads=0.0), V100) == 1.0


@pytest.mark.parametrize(
    ("blocks", "processors", "ratio"),
    [(80, 80, 1.0), (81, 80, 81 / 160), (40, 80, 0.5), (200, 108, 200 / 216)],
)
def test_multiprocessors_run_whole_blocks(blocks: int, processors: int, ratio: float) -> None:
    assert balance_ratio(blocks, processors) == pytest.approx(ratio)


def test_blocks_without_room_are_worth_nothing() -> None:
    assert resources(work(), V100) == 1
    assert resources(replace(work(), threads=2048), V100) == 0
    assert resources(replace(work(), shared_bytes=97 * 1024), V100) == 0
    assert resources(replace(work(), shared_bytes=97 * 1024), A100) == 1
    assert upper_limit(replace(work(), threads=2048), V100) == 0.0


def test_the_limit_is_the_product_of_all() -> None:
    assert upper_limit(work(), V100) == pytest.approx(1.0 * 8 / 19 * 1.0 * 1)
    assert upper_limit(work(), A100) == pytest.approx(8 / 23 * 80 / 108)


@pytest.mark.parametrize(
    ("architecture", "threads", "registers", "shared", "blocks", "limiter"),
    [
        # The CUDA C++ programming guide: 65536 registers, 2048 threads, 32 blocks.
        ("sm_70", 256, 32, 0, 8, "warps"),
        ("sm_70", 256, 64, 0, 4, "registers"),
        ("sm_70", 1024, 64, 0, 1, "registers"),
        ("sm_70", 128, 32, 48 * 1024, 2, "shared memory"),
        ("sm_70", 32, 16, 0, 32, "blocks"),
        # The A100 tuning guide: 164 KB of which each block has 1 KB for the system.
        ("sm_80", 256, 32, 48 * 1024, 3, "shared memory"),
        ("sm_80", 1024, 32, 163 * 1024, 1, "shared memory"),
        ("sm_90", 256, 32, 227 * 1024, 1, "shared memory"),
        ("sm_90", 1024, 32, 0, 2, "warps"),
    ],
)
def test_blocks_at_once_are_those_of_nvidias_guides(
    architecture: str, threads: int, registers: int, shared: int, blocks: int, limiter: str
) -> None:
    found = occupancy(MULTIPROCESSORS[architecture], threads, registers, shared)
    assert (found.blocks, found.limiter) == (blocks, limiter)


def test_tiles_that_are_tried_fit_a_multiprocessor() -> None:
    machine = machine_on_gpu("float32", MACHINES["cuda"])
    tiles = tiles_for(machine)
    assert tiles and all(blocks_at_a_time(tile, machine) >= 1 for tile in tiles)


def test_each_gpu_is_found_by_the_name_of_its_device() -> None:
    assert gpu_named("NVIDIA A100-SXM4-40GB") is A100
    assert gpu_named("Tesla V100-SXM2-16GB") is V100
    assert gpu_named("something else").name == "H100"
    assert all(gpu.multiprocessor.architecture == gpu.architecture for gpu in GPUS.values())


def test_a_kernel_of_a_gpu_has_a_bound() -> None:
    """Blocks of tiles are whole, and so are rounds of multiprocessors: the peak is out of reach."""
    left, right = np.ones((1024, 2048), np.float32), np.ones((2048, 1024), np.float32)
    kernel = tp.compile(
        "C[i,j] = A[i,k] * B[k,j]", A=tp.dense(2), B=tp.dense(2), dtypes="float32", target="cuda",
        static={"i": 1024, "j": 1024, "k": 2048},
    )  # fmt: skip
    (step,) = kernel.plan.kernels
    facts = {name: each.operand for name, each in give({"A": left, "B": right}).items()}
    found = gpu_bound(step, facts, GPUS["H100"])
    assert found.limited_by == "peak" and "multiprocessors busy" in found.why
    assert found.flops == 2 * 1024 * 1024 * 2048
    assert found.seconds > found.flops / GPUS["H100"].floats
