"""The bytes that must enter a cache, against what enters the best of all caches while loops run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.arguments.operands import bind_operands
from taco_py.report.limits.kernel_work import Counted, work_of_step
from taco_py.report.limits.loop_nest import (
    LoopNest,
    NestLoop,
    bytes_into,
    entry_loads,
    loop_turns,
    shares,
    single_loads,
    widely_read,
)
from taco_py.report.limits.schedule_nest import nest_of
from tests.limits.recorded_lines import LINE, least_bytes, misses, recorded

RNG = np.random.default_rng(3)
PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
DENSE = {"A": RNG.random((10, 12)), "B": RNG.random((12, 16))}
SPARSE = {
    "A": sp.random_array((16, 12), density=0.3, format="csr", rng=RNG), "B": DENSE["B"]
}  # fmt: skip
COPIED = {"A": RNG.random((24, 32))}
CASES = [
    (PRODUCT, DENSE, "reorder(i,k,j)"),
    (PRODUCT, DENSE, "reorder(i,j,k)"),
    (PRODUCT, DENSE, "reorder(k,j,i)"),
    (PRODUCT, DENSE, "split(i,i0,i1,4), split(j,j0,j1,8), reorder(i0,j0,k,i1,j1)"),
    (PRODUCT, DENSE, "split(i,i0,i1,7), split(k,k0,k1,5), reorder(k0,i0,i1,k1,j)"),
    (PRODUCT, SPARSE, "reorder(i,k,j)"),
    (PRODUCT, SPARSE, "reorder(j,i,k)"),
    ("C[j,i] = A[i,j]", COPIED, "reorder(i,j)"),
    ("C[j,i] = A[i,j]", COPIED, "split(i,i0,i1,8), split(j,j0,j1,8), reorder(i0,j0,i1,j1)"),
]
CACHES = (128, 512, 1024)


def nest_and_kernel(text: str, operands: dict[str, Any], schedule: str) -> tuple[LoopNest, Any]:
    formats = {n: tp.CSR if sp.issparse(each) else tp.dense(2) for n, each in operands.items()}
    kernel = tp.compile(text, formats, schedule=schedule, threads=1)
    (step,) = kernel.plan.kernels
    facts = {name: each.operand for name, each in bind_operands(operands).items()}
    nest = nest_of(step, work_of_step(step, facts))
    assert nest is not None
    return nest, kernel


@pytest.mark.parametrize(("text", "operands", "schedule"), CASES, ids=lambda each: str(each)[:40])
def test_no_cache_is_entered_by_less(
    text: str, operands: dict[str, Any], schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nest, kernel = nest_and_kernel(text, operands, schedule)
    trace = recorded(kernel, monkeypatch, **operands)
    least = [least_bytes(trace, cache) for cache in CACHES]
    assert all(
        bytes_into(nest, cache, LINE) <= entered
        for cache, entered in zip(CACHES, least, strict=True)
    )


def test_the_bound_is_near_where_an_order_walks_past_the_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """B comes in again for each row of A: the bound says so, and it is so."""
    nest, kernel = nest_and_kernel(*CASES[0])
    entered = least_bytes(recorded(kernel, monkeypatch, **DENSE), 512)
    once = sum(each.nbytes for each in DENSE.values())
    assert entered / 2 < bytes_into(nest, 512, LINE) <= entered
    assert entered > 3 * once


def test_the_best_cache_is_the_one_that_knows_the_future() -> None:
    lines = [(name, 0) for name in "abacab"]
    assert misses(lines, 2) == 4
    assert misses(lines, 3) == 3
    assert misses(lines, 1) == 6


def square(order: str, size: float = 100.0) -> LoopNest:
    arrays = tuple(
        Counted(name, tuple(indices), (size,) * 2, 8)
        for name, indices in (("A", "ik"), ("B", "kj"), ("C", "ij"))
    )
    return LoopNest(tuple(NestLoop(index, size) for index in order), arrays)


def test_all_comes_in_once_where_it_fits() -> None:
    nest = square("ikj")
    assert bytes_into(nest, 3 * 80000, 64) == 0
    assert bytes_into(nest, 0, 1) >= 3 * 80000


def test_elements_across_the_innermost_loop_are_loaded_one_by_one() -> None:
    assert not single_loads(square("ikj"), 32)
    by_columns = square("ijk")
    assert [a.tensor for a in by_columns.arrays if not widely_read(by_columns, a)] == ["B"]
    assert 0.6e6 < single_loads(by_columns, 32) <= 1e6  # of a million products


def test_turns_of_outer_loops_are_counted() -> None:
    loops = (NestLoop("i", 100.0), NestLoop("k", 20.0), NestLoop("j", 64.0))
    assert loop_turns(LoopNest(loops, ())) == 100 + 2000
    written_out = (*loops[:2], NestLoop("j", 8.0, fixed=True))
    assert loop_turns(LoopNest(written_out, ())) == 100 + 2000 / 8


def test_entries_are_loaded_each_time_that_loops_meet_them() -> None:
    entries = Counted(
        "A", ("i", "k"), (100.0, 50.0), 12, 500.0, (100.0, 500.0), sparse=True, reads_crd=True
    )
    values = replace(entries, item=8, reads_crd=False)
    rows = (NestLoop("i", 100.0), NestLoop("k", 5.0))
    once = LoopNest((*rows, NestLoop("r", 16.0)), (entries,))
    again = LoopNest((NestLoop("j", 4.0), *rows, NestLoop("r", 16.0)), (entries,))
    assert entry_loads(once, 32) == 2 * 500
    assert entry_loads(again, 32) == 4 * 2 * 500
    assert entry_loads(replace(once, arrays=(values,)), 32) == 500
    assert entry_loads(square("ikj"), 32) == 0


def test_entries_that_loops_meet_innermost_are_loaded_in_vectors() -> None:
    entries = Counted("A", ("i", "k"), (100.0, 50.0), 8, 500.0, (100.0, 500.0), sparse=True)
    rows = (NestLoop("i", 100.0), NestLoop("k", 5.0))
    assert entry_loads(LoopNest(rows, (entries,)), 32) == 500 / 4
    assert entry_loads(LoopNest(rows, (entries,)), 0) == 500
    assert entry_loads(LoopNest((NestLoop("j", 4.0), *rows), (entries,)), 32) == 500 / 4
    short, full = (NestLoop("r", rounds, fixed=True) for rounds in (2.0, 4.0))
    assert entry_loads(LoopNest((*rows, short), (entries,)), 32) == 500 / 4
    assert entry_loads(LoopNest((*rows, full), (entries,)), 32) == 500


@pytest.mark.parametrize("at", range(3))
def test_loops_without_rounds_let_nothing_in(at: int) -> None:
    nest = square("ikj")
    loops = tuple(
        replace(loop, rounds=loop.rounds * (n != at)) for n, loop in enumerate(nest.loops)
    )
    arrays = tuple(
        replace(each, extents=tuple(100.0 * (i != "ikj"[at]) for i in each.indices))
        for each in nest.arrays
    )
    assert bytes_into(LoopNest(loops, arrays), 0, 64) == 80000  # of the array without the index


@pytest.mark.parametrize(
    ("rounds", "threads", "share"), [(9, 2, 5 / 9), (8, 2, 0.5), (1, 4, 1.0), (7, 1, 1.0)]
)
def test_one_thread_has_the_remainder(rounds: int, threads: int, share: float) -> None:
    assert shares([NestLoop("i", float(rounds), shared=True)], threads) == pytest.approx(share)
