"""Kernels of GPUs whose warps have other widths: nothing of CUDA's text says how wide they are."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from codegen.emit.cuda import unit_of
from codegen.emit.cuda_functions import definitions
from codegen.ir import For, LoopKind
from codegen.machine.gpu import NOMINAL_GPU, Gpu
from tests.codegen.functions import I, block, const

CALLED = (
    "taco_lanes_add_f64", "taco_lanes8_max_i64", "taco_threads_add_c64", "taco_runs_add_f64",
    "taco_lanes_sort_int64", "taco_threads_sort_int64",
)  # fmt: skip
WIDE = replace(NOMINAL_GPU, warp_threads=64)


def texts(gpu: Gpu) -> str:
    """Return the definitions of all functions that depend on the width of a warp."""
    return "\n".join(definitions([f"{name}(a);" for name in CALLED], (), gpu))


@pytest.mark.parametrize(
    ("width", "mask", "zeros"),
    [(16, "0xffff", "__clz(heads << (31 - lane))"), (32, "0xffffffff", "__clz(heads << (31 - l"),
     (64, "0xffffffffffffffff", "__clzll(heads << (63 - lane))")],
)  # fmt: skip
def test_functions_are_those_of_warps_of_any_width(width: int, mask: str, zeros: str) -> None:
    text = texts(replace(NOMINAL_GPU, warp_threads=width))
    assert {*re.findall(r"_sync\((0x\w+)", text)} == {mask} and zeros in text
    assert {*re.findall(r"threadIdx\.x [/%] (\d+)", text)} == {str(width)}
    assert {*re.findall(r"lane == (\d+) \|\|", text)} == {"0", str(width - 1)}
    assert f"parts[{1024 // width}]" in text and f"blockDim.x / {width}" in text


def test_masks_of_wide_warps_have_a_bit_for_each_lane() -> None:
    text = texts(WIDE)
    assert "const unsigned long long group = 0xffull << threadIdx.x % 64 / 8 * 8;" in text
    assert "const unsigned long long heads = __ballot_sync(" in text


@pytest.mark.parametrize("width", [16, 64])
def test_units_of_a_block_are_counted_by_warps(width: int) -> None:
    loops = [For(I, const(0), const(9), block(), kind=kind) for kind in LoopKind]
    units = [unit for loop in loops if (unit := unit_of(loop, width)) is not None]
    numbers = {n for unit in units for n in re.findall(r"\d+$", f"{unit.first}\n{unit.step}", re.M)}
    assert numbers == {str(width)}
