"""Are the bounds of performance bounds, and do they find the best parameters before compiling?

For each kernel a grid of parameters (tile sizes, loop orders, vector widths, threads) is compiled
and measured whole, every point: the bound is compared with what was measured; then how good the
best of the few is that prices and bounds rank first, and how many points have to be measured where
those are left out whose bound is no better than what was measured already.

    python -m benchmarks.limits [names] [--points 300]
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import Record, record
from taco_py.arguments.operands import bind_operands
from taco_py.calls.kernels.kernel import Kernel, compile_plan
from taco_py.compiler.schedule.commands import Make
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import TacoError
from taco_py.planner.plan_price import PricedFor
from taco_py.report.limits.kernel_bound import Bound
from taco_py.report.limits.measure_ceilings import ceilings_here
from taco_py.report.limits.plan_bound import plan_bound
from taco_py.tuning.space.plan_rank import rank

POINTS = 300
SEED = 7
LEAST_SECONDS, MOST_SECONDS = 0.02, 0.12
"""For the repetitions of one point."""
ROUNDS = 7
TOP = 0.05
SWEEPS, FAST = 3, 2.0
"""How often points are measured again that took no more than so many times the best."""
CLOSE = 1.1
Operands = Mapping[str, Any]


@dataclass(frozen=True)
class Point:
    """Parameters: a schedule, or one of the ways that no command names, and threads."""

    schedule: str
    threads: int
    make: tuple[str, tuple[int, ...]] | None = None

    def __str__(self) -> str:
        made = f"{self.make[0]}{self.make[1]}" if self.make else self.schedule
        return f"{made}, {self.threads} threads"


@dataclass(frozen=True)
class Grid:
    """A kernel, its operands, and which parameters it is tried with.

    tiles    sizes that each index is cut into, 0 for not at all
    makes    ways and their parameters
    """

    text: str
    operands: Operands
    tiles: Mapping[str, Sequence[int]]
    makes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    formats: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured:
    """A point with its bound, its expected seconds and what it took."""

    point: Point
    bound: Bound
    price: float
    seconds: float
    kernel: Any = field(compare=False, repr=False)


def grids() -> Iterator[tuple[str, Grid]]:
    """The kernels, dense and sparse, with one sparse operand and with two."""
    rng = np.random.default_rng(0)
    product = "C[i,j] = A[i,k] * B[k,j]"
    widths = tuple(("tiles", width) for width in ((), (4,), (8,), (16,), (32,)))
    yield (
        "gemm",
        Grid(
            product,
            {"A": rng.random((240, 288)), "B": rng.random((288, 320))},
            {"i": (0, 4, 12, 48), "j": (0, 8, 16, 64), "k": (0, 4, 16, 96)},
            widths,
        ),
    )
    yield (
        "batched",
        Grid(
            "C[b,i,j] = A[b,i,k] * B[b,k,j]",
            {"A": rng.random((1000, 16, 24)), "B": rng.random((1000, 24, 20))},
            {"b": (0, 8), "i": (0, 4), "j": (0, 4, 8), "k": (0, 4, 8)},
            widths,
        ),
    )
    matrix = sp.random_array((3000, 3000), density=0.003, format="csr", rng=rng)
    yield (
        "spmm",
        Grid(
            product,
            {"A": matrix, "B": rng.random((3000, 64))},
            {"i": (0, 8, 64, 512), "j": (0, 4, 8, 16, 32), "k": (0, 256, 1024)},
        ),
    )
    cube = sp.random_array((300, 200, 150), density=0.006, format="coo", rng=rng)
    yield (
        "mttkrp",
        Grid(
            "M[i,r] = T[i,k,l] * C[k,r] * D[l,r]",
            {"T": cube, "C": rng.random((200, 32)), "D": rng.random((150, 32))},
            {"i": (0, 8, 64), "r": (0, 4, 8, 16), "k": (0, 32), "l": (0, 32)},
            formats={"T": tp.CSF(3), "M": tp.dense(2)},
        ),
    )
    sampled = sp.random_array((1500, 1200), density=0.01, format="csr", rng=rng)
    yield (
        "sddmm",
        Grid(
            "D[i,j] = S[i,j] * U[i,k] * V[j,k]",
            {"S": sampled, "U": rng.random((1500, 24)), "V": rng.random((1200, 24))},
            {"i": (0, 16, 128), "j": (0, 16, 64, 256), "k": (0, 4, 8)},
        ),
    )
    yield (
        "ttm",
        Grid(
            "M[i,k,r] = T[i,k,l] * D[l,r]",
            {"T": cube, "D": rng.random((150, 32))},
            {"i": (0, 8, 64), "r": (0, 4, 8, 16), "k": (0, 32), "l": (0, 32)},
            formats={"T": tp.CSF(3), "M": "ssd"},
        ),
    )
    other = sp.random_array((3000, 3000), density=0.002, format="csr", rng=rng)
    yield (
        "add",
        Grid(
            "C[i,j] = A[i,j] + B[i,j]",
            {"A": matrix, "B": other},
            {"i": (0, 8, 64, 512), "j": (0, 16, 64, 512)},
        ),
    )
    yield (
        "transpose",
        Grid(
            "C[k,j,i] = A[i,j,k]",
            {"A": rng.random((48, 40, 56))},
            {"i": (0, 4, 8, 16, 32), "j": (0, 8), "k": (0, 4, 8, 16, 32)},
            (("transpose", ()),),
        ),
    )


# ---------------------------------------------------------------- points


def points(grid: Grid, count: int, threads: Sequence[int]) -> Iterator[Point]:
    """The ways first, then loops in every order without tiles, then orders of tiles by chance."""
    for make in grid.makes:
        yield from (Point("", each, make) for each in threads)
    for order in permutations(grid.tiles):
        yield from (Point(f"reorder({','.join(order)})", each) for each in threads)
    chance = random.Random(SEED)
    for _ in range(40 * count):
        yield Point(_tiled(grid, chance), chance.choice(threads))


def _tiled(grid: Grid, chance: random.Random) -> str:
    """Commands that cut some indices and nest all loops in some order."""
    commands, loops = [], []
    for index, sizes in grid.tiles.items():
        size = chance.choice(sizes)
        if size:
            outer, inner = f"{index}0", f"{index}1"
            commands.append(f"split({index},{outer},{inner},{size})")
            loops += [outer, inner]
        else:
            loops.append(index)
    chance.shuffle(loops)
    for at, loop in enumerate(loops):  # a tile's loop stands outside of what is in it
        other = loop[:-1] + "0"
        if loop.endswith("1") and loops.index(other) > at:
            there = loops.index(other)
            loops[at], loops[there] = loops[there], loops[at]
    return ", ".join([*commands, f"reorder({','.join(loops)})"])


def kernel_of(grid: Grid, point: Point) -> Kernel:
    """The kernel with these parameters. Raises ScheduleError."""
    formats = {
        name: grid.formats.get(name) or (tp.CSR if sp.issparse(each) else tp.dense(each.ndim))
        for name, each in grid.operands.items()
    } | dict(grid.formats)
    schedule = point.schedule or None
    asked: dict[str, Any] = {"schedule": schedule, "threads": point.threads}
    made: Any = tp.compile(grid.text, formats, **asked)
    if point.make is None:
        return made
    (step,) = made.plan.kernels
    commands = tuple(c for c in step.schedule.commands if not isinstance(c, Make))
    make = Make(*point.make)
    step = replace(step, schedule=Schedule((*commands, make)))
    plan = replace(made.plan, program=made.plan.program.with_kernel(step))
    told = (made.formats, made.types, made.requested, made.options)
    return compile_plan(made.statements, made.elaborated, plan, *told, made.over)


# ---------------------------------------------------------------- measuring


def measured(
    grid: Grid,
    count: int,
    threads: Sequence[int],
    known: dict[str, float],
    sweeps: int,
    keep: Callable[[], object],
) -> list[Measured]:
    """Every point that is not refused, measured, if not before.

    known  seconds of points by their names, to which those that are measured now are added
    keep   called now and then, to keep these
    """
    operands = {n: _stored(grid, n, each) for n, each in grid.operands.items()}
    facts = {name: each.operand for name, each in bind_operands(operands).items()}
    out: Any = None
    met: set[Any] = set()
    found: list[Measured] = []
    with ThreadPoolExecutor(2) as pool:
        waiting = points(grid, count, threads)
        while len(found) < count:
            batch = [point for _, point in zip(range(8), waiting, strict=False)]
            if not batch:
                break
            made = [*pool.map(lambda point: _made(grid, point), batch)]  # done before any is timed
            for point, kernel in zip(batch, made, strict=True):
                key = kernel and (kernel.plan.steps, point.threads)
                if kernel is None or key in met:
                    continue
                met.add(key)
                if out is None and kernel.plan.result.format.is_dense:
                    out = np.empty(result_shape(grid))
                bound = plan_bound(kernel.plan, facts, point.threads)
                if str(point) not in known:
                    known[str(point)] = seconds_of(kernel, operands, out)
                price = PricedFor(facts, kernel.plan.machine, point.threads).plan(kernel.plan)
                found.append(Measured(point, bound, price, known[str(point)], kernel))
            keep()
    return in_turns(found[:count], operands, out, known, sweeps)


def in_turns(
    found: Sequence[Measured],
    operands: Operands,
    out: Any,
    known: dict[str, float],
    sweeps: int,
) -> list[Measured]:
    """The same, with those measured again in turns that are fast or ranked first: what else runs
    makes a point slower for a while, and the best of many is better for that than that of few."""
    for _ in range(sweeps):
        fast = FAST * min(known[str(each.point)] for each in found)
        ranked = sorted(found, key=lambda each: rank(each.price, each.bound))
        few = {str(each.point) for each in ranked[: round(2 * TOP * len(found))]}
        for each in found:
            name = str(each.point)
            if known[name] <= fast or name in few:
                known[name] = min(known[name], seconds_of(each.kernel, operands, out))
    return [replace(each, seconds=known[str(each.point)]) for each in found]


def _stored(grid: Grid, name: str, operand: Any) -> Any:
    form = grid.formats.get(name)
    return operand if form is None else tp.tensor(operand, form)


def _made(grid: Grid, point: Point) -> Kernel | None:
    try:
        return kernel_of(grid, point)
    except TacoError:
        return None


def result_shape(grid: Grid) -> tuple[int, ...]:
    """The shape of the result."""
    target, *factors = re.findall(r"(\w+)\[([\w,]+)\]", grid.text)
    sizes: dict[str, int] = {}
    for name, indices in factors:
        sizes.update(zip(indices.split(","), grid.operands[name].shape, strict=True))
    return tuple(sizes[index] for index in target[1].split(","))


def seconds_of(kernel: Callable[..., Any], operands: Operands, out: Any) -> float:
    """The least seconds of some calls that write into `out`, where the result is dense."""
    kernel(**operands, out=out)
    best, start, rounds = float("inf"), time.perf_counter(), 0
    while rounds < ROUNDS or time.perf_counter() < start + LEAST_SECONDS:
        begin = time.perf_counter()
        kernel(**operands, out=out)
        best = min(best, time.perf_counter() - begin)
        rounds += 1
        if time.perf_counter() > start + MOST_SECONDS:
            break
    return best


# ---------------------------------------------------------------- what came out


@dataclass(frozen=True)
class Verdict:
    """What a grid says of the bounds.

    sound    the share of points that were measured no faster than their bound
    top      seconds of the best of the few ranked first, over those of the best of all
    bound    the same by the bound alone, which ranks many alike
    rank     how many points in the bounds' order until one is close to the best
    pruned   how many are measured where those are left out that cannot be better, over all
    same     seconds of the best of these over those of the best of all
    """

    sound: float
    top: float
    bound: float
    rank: int
    pruned: float
    same: float


def verdict(found: Sequence[Measured]) -> Verdict:
    best = min(each.seconds for each in found)
    ranked = sorted(found, key=lambda each: rank(each.price, each.bound))
    few = ranked[: max(1, round(TOP * len(found)))]
    close = next(n for n, each in enumerate(ranked, 1) if each.seconds <= CLOSE * best)
    tried: list[Measured] = []
    for each in ranked:
        if not tried or each.bound.seconds < min(one.seconds for one in tried):
            tried.append(each)
    by_bound = sorted(found, key=lambda each: rank(0.0, each.bound)[::-1])[: len(few)]
    return Verdict(
        sum(each.bound.seconds <= each.seconds for each in found) / len(found),
        min(each.seconds for each in few) / best,
        min(each.seconds for each in by_bound) / best,
        close,
        len(tried) / len(found),
        min(each.seconds for each in tried) / best,
    )


def run(
    names: Sequence[str] = (),
    count: int = POINTS,
    threads: Sequence[int] = (1,),
    kept: Path | None = None,
    sweeps: int = SWEEPS,
) -> Iterator[Record]:
    """Every grid, or those that are named.

    kept  a file of times, which are not measured again; new ones are added
    """
    ceilings_here(anew=True)
    times = json.loads(kept.read_text()) if kept is not None and kept.exists() else {}
    for name, grid in grids():
        if names and name not in names:
            continue

        def keep() -> None:
            if kept is not None:
                kept.write_text(json.dumps(times, indent=1))

        found = measured(grid, count, threads, times.setdefault(name, {}), sweeps, keep)
        keep()
        gc.collect()
        said = verdict(found)
        note = (
            f"{len(found)} points; bound holds on {said.sound:.1%}; best of the top 5 % "
            f"{said.top:.3f} of the best, by the bound alone {said.bound:.3f}; close at place "
            f"{said.rank}; "
            f"measured with bounds {said.pruned:.1%}, then {said.same:.3f} of the best"
        )
        best = min(found, key=lambda each: each.seconds)
        yield record("limits", name, str(best.point), [1e3 * best.seconds], "ms", note)
        for each in sorted(found, key=lambda each: rank(each.price, each.bound)):
            told = f"bound {1e3 * each.bound.seconds:.4f} by {each.bound.limited_by}"
            yield record("limits", name, str(each.point), [1e3 * each.seconds], "ms", told)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--all", action="store_true", help="print every point")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--sweeps", type=int, default=SWEEPS, help="times that fast ones go again")
    parser.add_argument("--kept", type=Path, help="a file of times, to which new ones are added")
    asked = parser.parse_args()
    for each in run(asked.names, asked.points, asked.threads, asked.kept, asked.sweeps):
        if asked.all or "points;" in each.note:
            print(
                f"{each.input:<10} {each.minimum:9.4f} ms  {each.contender}  {each.note}",
                flush=True,
            )


if __name__ == "__main__":
    main()
