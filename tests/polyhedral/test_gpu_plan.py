"""Tiles of contractions for a GPU: what is chosen for which sizes, and how operands are copied."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import pytest

from codegen.build import const
from codegen.ir import Const
from codegen.machine.gpu import GPUS
from polyhedral.products import gpu_plan
from polyhedral.products.gpu_plan import plan_on_gpu
from polyhedral.products.gpu_staging import Staging, staging, write_cycles
from polyhedral.products.gpu_tile import (
    LONGEST_RUN,
    MOST_REGISTERS,
    GpuArithmetic,
    GpuProduct,
    GpuTile,
    best_tile,
    blocks_asked_for,
    registers_of,
    seconds_of,
    shared_bytes_of,
    tiles_for,
)
from tests.polyhedral.test_contraction import found

HOPPER = GpuArithmetic(GPUS["H100"], 4, 1)
DOUBLES = replace(HOPPER, element_bytes=8, product_instructions=2)
WIDEST = replace(HOPPER, element_bytes=16, product_instructions=8)
MACHINES = {"floats": HOPPER, "doubles": DOUBLES, "complex doubles": WIDEST}
SIZES = [
    GpuProduct(1, 4096, 4096, 4096), GpuProduct(1, 300, 500, 200), GpuProduct(1, 64, 64, 1e6),
    GpuProduct(1000, 32, 32, 32), GpuProduct(1, 17, 4000, 3), GpuProduct(1, 1, 1, 1),
]  # fmt: skip


def test_the_plan_prints_as_its_module_says() -> None:
    tile = best_tile(HOPPER, GpuProduct(1, 4096, 4096, 4096))
    plan = plan_on_gpu(found("ik,kj->ij"), HOPPER, tile, {"i": 4096, "j": 4096, "k": 4096})
    assert textwrap.indent(str(plan), "    ") in str(gpu_plan.__doc__)


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_tiles_stay_within_the_limits(machine: GpuArithmetic) -> None:
    size = machine.element_bytes
    tiles = tiles_for(machine)
    assert tiles
    for tile in tiles:
        assert (
            tile.threads <= machine.gpu.most_block_threads
            and tile.threads % machine.gpu.warp_threads == 0
        )
        assert registers_of(tile, size) <= MOST_REGISTERS
        assert blocks_asked_for(tile, machine) * tile.threads * MOST_REGISTERS <= 1 << 16
        assert shared_bytes_of(tile, size, 2 * LONGEST_RUN) <= machine.gpu.block_shared_bytes


def test_large_products_reuse_most_and_small_ones_have_a_block_for_each_multiprocessor() -> None:
    large = best_tile(HOPPER, GpuProduct(1, 4096, 4096, 4096))
    assert (large.rows, large.columns, large.thread_rows, large.thread_columns) == (128, 128, 8, 8)
    for size in (256, 512, 1024):
        tile = best_tile(HOPPER, GpuProduct(1, size, size, size))
        assert tile.parts * (size // tile.rows) * (size // tile.columns) >= 64
        assert tile.accumulators < large.accumulators


def test_the_depth_is_split_where_tiles_are_few() -> None:
    deep = best_tile(HOPPER, GpuProduct(1, 64, 64, 1e6))
    assert deep.parts >= HOPPER.gpu.multiprocessors // 2
    assert best_tile(HOPPER, GpuProduct(1, 4096, 4096, 4096)).parts == 1
    assert best_tile(HOPPER, GpuProduct(1000, 64, 64, 1000)).parts == 1
    whole = replace(deep, parts=1)
    product = GpuProduct(1, 64, 64, 1e6)
    assert seconds_of(deep, HOPPER, product) * 4 < seconds_of(whole, HOPPER, product)


def _places(plan: Staging) -> list[tuple[int, int]]:
    """The edge and depth of all that the threads copy, a thread's copies beside each other."""
    found = []
    for thread in range(plan.threads):
        for copy in range(plan.copies):
            edge, depth = plan.place(const(thread), const(copy))
            assert isinstance(edge, Const) and isinstance(depth, Const)
            found.append((int(edge.value.real), int(depth.value.real)))
    return found


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("along_depth", [True, False])
def test_every_element_is_copied_once_by_neighbours(
    machine: GpuArithmetic, along_depth: bool
) -> None:
    size = machine.element_bytes
    tiles = {best_tile(machine, sizes) for sizes in SIZES}
    for tile in {replace(tile, parts=1) for tile in tiles}:
        for edge, own in ((tile.rows, tile.thread_rows), (tile.columns, tile.thread_columns)):
            plan = staging(tile, edge, own, along_depth, machine)
            places = _places(plan)
            assert sorted(places) == [(e, k) for e in range(edge) for k in range(tile.depth)]
            assert plan.padding * size % min(16, own * size) == 0  # runs stay aligned
            first = places[:: plan.copies][: machine.gpu.warp_threads]
            at = [(e * tile.depth + k if along_depth else k * edge + e) * size for e, k in first]
            whole = len(at) * size / 32
            assert len({place // 32 for place in at}) <= whole  # sectors of 32 bytes


@pytest.mark.parametrize("size", [4, 8, 16])
def test_padding_lets_lanes_write_to_all_banks(size: int) -> None:
    tile = GpuTile(128, 128, 8, 8, 8) if size == 4 else GpuTile(64, 64, 8, 4, 4)
    machine = replace(HOPPER, element_bytes=size)
    plan = staging(tile, tile.rows, tile.thread_rows, True, machine)
    assert write_cycles(plan, machine) == 1
    assert write_cycles(replace(plan, padding=0), machine) > 1
