"""Random programs of threads: a race is reported just where the definition says there is one.

Each thread does a list of steps: it reads, writes or adds to a cell, or meets others. By definition
two accesses to one cell race where they are of two threads, one of them is no read, not both are
atomics, and neither comes before the other by steps and meetings.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from codegen.devices.emulated import EmulatedDevice
from codegen.devices.reports import EmulationError, Fault
from codegen.runtime.kernel_cache import KernelCache

READ, WRITE, ADD, MEET_WARP, MEET_BLOCK, NOTHING = range(6)
LANES, WARPS, CELLS = 4, 2, 5
"""Lanes of a warp that take part; the others go to barriers only."""

_TEXT = r"""
extern "C" __global__ void steps(int count, const int *program, const unsigned *masks, int *cells,
                                 int *sink)
{
    __shared__ int shared_cells[8];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (threadIdx.x < 8)
        shared_cells[threadIdx.x] = 0;
    __syncthreads();
    int *place = USED;
    int t = (blockIdx.x * (blockDim.x / 32) + warp) * 4 + lane % 4, sum = 0;
    for (int s = 0; s < count; s++) {
        int step = program[t * count + s], cell = step & 15, kind = step >> 4;
        switch (lane < 4 || kind == 4 ? kind : 5) {
        case 0: sum += place[cell]; break;
        case 1: place[cell] = s; break;
        case 2: atomicAdd(&place[cell], 1); break;
        case 3: __syncwarp(masks[t * count + s]); break;
        case 4: __syncthreads(); break;
        }
    }
    if (lane < 4)
        sink[t] = sum;
}
"""


@dataclass(frozen=True)
class Program:
    """Steps (kind, cell) of each thread, and the lanes that it meets at each."""

    steps: tuple[tuple[tuple[int, int], ...], ...]
    meets: tuple[tuple[frozenset[int], ...], ...]
    blocks: int


def draw(rng: np.random.Generator, blocks: int) -> Program:
    """A program of `blocks`; its meetings are such that all arrive."""
    threads, count = blocks * WARPS * LANES, int(rng.integers(3, 9))
    steps = [[(NOTHING, 0)] * count for _ in range(threads)]
    meets = [[frozenset({t})] * count for t in range(threads)]
    weights, density = rng.dirichlet([1.0, 1.0, 1.0]), rng.choice([0.08, 0.15, 0.35])
    for s, (b, w) in itertools.product(
        range(count), itertools.product(range(blocks), range(WARPS))
    ):
        lanes = [(b * WARPS + w) * LANES + lane for lane in range(LANES)]
        kind = rng.random()
        if kind < 0.4:
            groups = rng.integers(0, 2 if kind < 0.2 else 1, LANES)
            for t, group in zip(lanes, groups, strict=True):
                steps[t][s] = MEET_WARP, 0
                meets[t][s] = frozenset(o for o, g in zip(lanes, groups, strict=True) if g == group)
            continue
        for t in lanes:
            used = rng.random() < density
            steps[t][s] = (
                int(rng.choice(3, p=weights)) if used else NOTHING,
                int(rng.integers(CELLS)),
            )
    for s, b in itertools.product(range(count), range(blocks)):
        if rng.random() < 0.15:
            mine = range(b * WARPS * LANES, (b + 1) * WARPS * LANES)
            for t in mine:
                steps[t][s], meets[t][s] = (MEET_BLOCK, 0), frozenset(mine)
    return Program(tuple(map(tuple, steps)), tuple(map(tuple, meets)), blocks)


def clocks(program: Program) -> Iterator[tuple[int, int, int, dict[int, int]]]:
    """(thread, kind, cell, how many steps of each thread come before) of each access."""
    threads, count = len(program.steps), len(program.steps[0])
    known = [{t: 0} for t in range(threads)]
    for s in range(count):
        before = [dict(each) for each in known]
        for t in range(threads):
            kind, cell = program.steps[t][s]
            if kind in (MEET_WARP, MEET_BLOCK):
                for other, theirs in itertools.product(program.meets[t][s], range(threads)):
                    value = before[other].get(theirs, 0)
                    known[t][theirs] = max(known[t].get(theirs, 0), value)
            elif kind != NOTHING:
                yield t, kind, cell, dict(known[t])
            known[t][t] = s + 1


def has_race(program: Program, shared: bool) -> bool:
    """By the definition, over all pairs."""
    accesses = list(clocks(program))
    block = WARPS * LANES
    for (t, kind, cell, mine), (o, other, place, theirs) in itertools.combinations(accesses, 2):
        if t == o or cell != place or (shared and t // block != o // block):
            continue
        if kind == other and kind in (READ, ADD):
            continue
        # an access at step s has known[t][t] == s, and is known to those that have s + 1 or more
        if not (mine.get(o, 0) > theirs[o] or theirs.get(t, 0) > mine[t]):
            return True
    return False


def _reported(cache: KernelCache, program: Program, shared: bool, seed: int) -> set[Fault]:
    device = EmulatedDevice(cache, seed=seed)
    count = len(program.steps[0])
    code = np.array([[kind << 4 | cell for kind, cell in row] for row in program.steps], "i4")
    masks = np.array(
        [[sum(1 << o % LANES for o in met) & 15 for met in row] for row in program.meets], "u4"
    )
    buffers = [device.allocate(array.nbytes) for array in (code, masks)]
    device.upload(buffers[0], code)
    device.upload(buffers[1], masks)
    cells, sink = device.allocate(32, "cells"), device.allocate(4 * len(code), "sink")
    device.fill(cells)
    module = device.load(_TEXT.replace("USED", "shared_cells" if shared else "cells"))
    arguments = [np.int32(count), *buffers, cells, sink]
    try:
        module.launch("steps", program.blocks, 32 * WARPS, 0, arguments)
    except EmulationError as error:
        return {report.fault for report in error.reports}
    return set()


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "global"])
def test_races_are_those_of_the_definition(cache: KernelCache, shared: bool) -> None:
    rng = np.random.default_rng(5)
    kind = Fault.SHARED_RACE if shared else Fault.GLOBAL_RACE
    found = 0
    for number in range(400):
        program = draw(rng, blocks=int(rng.integers(1, 3)))
        want = {kind} if has_race(program, shared) else set()
        assert _reported(cache, program, shared, number) == want, (number, program)
        found += bool(want)
    assert 100 < found < 300
