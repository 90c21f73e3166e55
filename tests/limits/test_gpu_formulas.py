"""DeepCuts' formulas against values worked out by hand, and what fits a multiprocessor against
NVIDIA's published examples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import taco_py as tp
from codegen.machine.gpu import GPUS, MULTIPROCESSORS, NOMINAL_GPU, gpu_named
from codegen.occupancy import occupancy
from polyhedral.products.gpu_tile import GpuTile, blocks_at_a_time, tiles_for
from taco_py.arguments.operands import bind_operands
from taco_py.compiler.ways.gpu_tiles import arithmetic_of
from taco_py.report.limits import plan_bound as plan_bound_module
from taco_py.report.limits import roofline
from taco_py.report.limits.gpu_bound import block_resources, gpu_bound
from taco_py.report.limits.gpu_formulas import balance_ratio, has_room
from taco_py.report.limits.plan_bound import plan_bound

V100, A100 = GPUS["V100"], GPUS["A100 40GB"]
BLOCK = block_resources(GpuTile(128, 128, 16, 8, 8), 4)


@pytest.mark.parametrize(
    ("blocks", "processors", "ratio"),
    [(80, 80, 1.0), (81, 80, 81 / 160), (40, 80, 0.5), (200, 108, 200 / 216)],
)
def test_multiprocessors_run_whole_blocks(blocks: int, processors: int, ratio: float) -> None:
    assert balance_ratio(blocks, processors) == pytest.approx(ratio)


def test_blocks_need_room() -> None:
    assert BLOCK.threads == 256
    assert has_room(BLOCK, V100)
    assert not has_room(replace(BLOCK, threads=2048), V100)
    assert not has_room(replace(BLOCK, shared_bytes=97 * 1024), V100)
    assert has_room(replace(BLOCK, shared_bytes=97 * 1024), A100)


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
    machine = arithmetic_of("float32", NOMINAL_GPU)
    tiles = tiles_for(machine)
    assert tiles and all(blocks_at_a_time(tile, machine) >= 1 for tile in tiles)


@pytest.mark.parametrize(
    ("device", "name", "rate"),
    [
        ("NVIDIA A100-SXM4-40GB", "A100 40GB", 1.555e12),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB", 2.04e12),
        ("NVIDIA A100 80GB PCIe", "A100 80GB", 2.04e12),
        ("Tesla V100-SXM2-16GB", "V100", 0.9e12),
        ("Tesla V100S-PCIE-32GB", "V100S", 1.134e12),
        ("NVIDIA H100 80GB HBM3", "H100", 3.35e12),
        ("NVIDIA H100 NVL", "H100 NVL", 3.94e12),
        ("NVIDIA H200", "H200", 4.8e12),
    ],
)
def test_each_gpu_is_found_by_the_name_of_its_device(device: str, name: str, rate: float) -> None:
    found = gpu_named(device)
    assert found is not None and (found.name, found.memory_bytes_per_second) == (name, rate)
    assert found.multiprocessor.architecture == found.architecture


@pytest.mark.parametrize("device", ["NVIDIA GH200 480GB", "NVIDIA A100-SXM-64GB", ""])
def test_gpus_that_are_not_in_the_table_have_no_figures(device: str) -> None:
    assert gpu_named(device) is None


def test_a_plan_for_a_gpu_without_figures_has_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tp.compile("C[i,j,k] = A[k,j,i]", A=tp.dense(3), target="cuda-emulated")
    assert plan_bound(kernel.plan).seconds > 0
    for module in (roofline, plan_bound_module):
        monkeypatch.setattr(module, "gpu_here", lambda: None)
    assert plan_bound(kernel.plan).seconds == 0
    words = str(kernel.roofline())
    assert "without figures" in words and "at most" not in words and "data sheet" not in words


def test_a_kernel_of_a_gpu_has_a_bound() -> None:
    """Blocks of tiles are whole, and so are rounds of multiprocessors: the peak is out of reach."""
    left, right = np.ones((1024, 2048), np.float32), np.ones((2048, 1024), np.float32)
    kernel = tp.compile(
        "C[i,j] = A[i,k] * B[k,j]", A=tp.dense(2), B=tp.dense(2), dtypes="float32", target="cuda",
        static={"i": 1024, "j": 1024, "k": 2048},
    )  # fmt: skip
    (step,) = kernel.plan.kernels
    facts = {name: each.operand for name, each in bind_operands({"A": left, "B": right}).items()}
    found = gpu_bound(step, facts, GPUS["H100"])
    assert found.limited_by == "peak" and "multiprocessors busy" in found.reason
    assert found.flops == 2 * 1024 * 1024 * 2048
    assert found.seconds > found.flops / GPUS["H100"].float_operations_per_second
