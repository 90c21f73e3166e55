"""The least seconds of a kernel on a CPU, and what says so.

    bound(step, facts, ceilings, threads)   →   Bound(2.4e-03, "peak", "…", flops, bytes)

Whatever a kernel does, it takes as long as each of these alone: its operations at the peak of the
registers; its loads from the nearest cache; and for each cache, what must come in from behind it.
(DeepCuts, Jung et al. 2021, has the same for GPUs; the roofline is Williams et al. 2009.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil

from codegen.records import dataclass
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.compiler.ways.ways import way_of
from taco_py.language.diagnostics.memory_errors import bytes_text
from taco_py.planner.ir.nodes import KernelStep, Operand
from taco_py.report.limits.ceilings import LANES, Ceilings
from taco_py.report.limits.kernel_work import Work, work_of_step
from taco_py.report.limits.loop_nest import (
    LoopNest,
    bytes_into,
    entry_loads,
    loop_turns,
    shares,
    single_loads,
    widely_read,
)
from taco_py.report.limits.schedule_nest import nest_of
from taco_py.report.limits.tile_nest import TileNest, tile_nest_of


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that a kernel waits for: its name, how long at least, and why so much of it.

    amount  operations, bytes or loads
    rate    of these a second, at most
    """

    name: str
    seconds: float
    amount: float
    rate: float
    reason: str


@dataclass(frozen=True, slots=True)
class Bound:
    """The least seconds that a kernel, or several in turn, can take here.

    limited_by  the name of what takes longest: "peak", "loads", "L1", "L2", "L3", "memory"
    reason      the same in words
    flops       operations that it cannot do without, 0 where nobody counts them
    bytes       that it reads and writes at least
    limits      all that was looked at, the longest first; of several kernels, those of the longest
    """

    seconds: float
    limited_by: str
    reason: str
    flops: float
    bytes: float
    limits: tuple[Limit, ...] = ()


NOTHING = Bound(0.0, "nothing", "nothing is known of it", 0.0, 0.0)
"""Of what nobody knows."""


def bound(
    step: KernelStep,
    facts: Mapping[str, Operand],
    ceilings: Ceilings,
    threads: int = 1,
    memory: Mapping[str, str] | None = None,
) -> Bound:
    """Return the least seconds of a kernel of the CPU on operands with these facts.

    threads  that run it, at most
    memory   behind each of its operands, None if each has its own
    """
    work = work_of_step(step, facts, memory)
    threads = 1 if step.schedule.serial else min(threads, ceilings.threads)
    return bound_of_work(work, shape_of(step, work), ceilings, threads)


def shape_of(step: KernelStep, work: Work) -> LoopNest | TileNest | None:
    """Return the loops of a kernel as far as they are known before anything is compiled."""
    way = way_of(step.schedule.make)
    if way.in_loops:
        return nest_of(step, work)
    return tile_nest_of(step, work) if way.name == "tiles" else None


def bound_of_work(
    work: Work, shape: LoopNest | TileNest | None, ceilings: Ceilings, threads: int
) -> Bound:
    """Return the least seconds of some work in a nest of loops, or in any."""
    nest = shape.nest if isinstance(shape, TileNest) else shape
    if nest is not None and nest.shared_at == len(nest.loops):
        threads = 1
    tile = shape if isinstance(shape, TileNest) else None
    limits = [*_peak(work, nest, tile, ceilings, threads)]
    limits += _from_caches(work, nest, ceilings, threads)
    if nest is not None and tile is None:
        limits += _loads(nest, ceilings, threads)
    limits.sort(key=lambda limit: -limit.seconds)
    if not limits:
        return Bound(0.0, "nothing", "it has nothing to do", work.flops, work.bytes)
    first = limits[0]
    return Bound(first.seconds, first.name, first.reason, work.flops, work.bytes, tuple(limits))


def _peak(
    work: Work,
    nest: LoopNest | None,
    tile: TileNest | None,
    ceilings: Ceilings,
    threads: int,
) -> Iterator[Limit]:
    """Yield operations in registers: on the thread that has most of them, in whole vectors."""
    dtype = work.problem.result.dtype
    one = ceilings.peak(dtype)
    if one is None or not work.flops:
        return
    thread_nest = nest if tile is None else None  # tiles are shared in several ways
    share = 1.0 / threads if thread_nest is None else shares(thread_nest.loops, threads)
    lanes = max(1, ceilings.vector_bytes * LANES[dtype] // 8)
    full = tile.vector_share(lanes) if tile is not None else _full_vectors(nest, lanes)
    total = ceilings.peak(dtype, threads) or one
    seconds = work.flops / full * max(share / one, 1.0 / total)
    reason = _describe_peak(work, share, threads, full)
    yield Limit("peak", seconds, work.flops, total * full, reason)


def _describe_peak(work: Work, share: float, threads: int, full: float) -> str:
    cores = "a core" if threads == 1 else f"{threads} cores"
    parts = [f"its {work.flops:.3g} operations take as long in the registers of {cores}"]
    if share * threads > 1.001:
        parts.append(f"one of {threads} threads has {share:.0%} of them")
    if full < 0.99:
        parts.append(f"vectors are {full:.0%} full")
    return "; ".join(parts)


def _full_vectors(nest: LoopNest | None, lanes: int) -> float:
    """Return the share of vectors' lanes that an innermost loop fills: of few iterations, or one
    alone where it meets elements that are no neighbours, for nothing gathers them."""
    if nest is None or not nest.loops:
        return 1.0
    if any(not widely_read(nest, array) for array in nest.arrays):
        return 1.0 / lanes
    inner = nest.loops[-1]
    if not inner.rounds:
        return 1.0
    vectorized = [array for array in nest.arrays if inner.index in array.indices]
    if any(array.sparse for array in vectorized):
        return 1.0
    neighbours = len(nest.loops) > 1 and nest.loops[-2].index == inner.index
    tiled = bool(vectorized) and inner.fixed and not neighbours
    return inner.rounds / lanes / ceil(inner.rounds / lanes) if tiled else 1.0


def _loads(nest: LoopNest, ceilings: Ceilings, threads: int) -> Iterator[Limit]:
    """Yield loads of elements one by one, where no vectors can be read; and the turns of loops,
    each of which takes an instruction as fast as these at least."""
    rate = ceilings.loads.of(threads, ceilings.threads)
    seconds_per_load = max(shares(nest.loops, threads) / ceilings.loads.one, 1.0 / rate)
    loads = single_loads(nest, float(ceilings.registers))
    if loads:
        names = "elements that are no neighbours along the innermost loop are loaded one by one"
        yield Limit("loads", loads * seconds_per_load, loads, rate, names)
    entries = entry_loads(nest, ceilings.vector_bytes)
    if entries:
        names = f"entries of a sparse operand take {entries:.3g} loads"
        yield Limit("entries", entries * seconds_per_load, entries, rate, names)
    turns = loop_turns(nest)
    if turns:
        names = f"its loops take {turns:.3g} turns around the innermost one"
        yield Limit("turns", turns * seconds_per_load, turns, rate, names)


def _from_caches(
    work: Work, nest: LoopNest | None, ceilings: Ceilings, threads: int
) -> Iterator[Limit]:
    """Return the least bytes that come from each cache into the nearer ones and into registers.

    All operands and the result are touched once, and no cache has more of them than it holds; what
    the loops' order asks for beside that, `loop_nest` knows. Where no cache is known, any may hold
    what is touched.
    """
    if len(ceilings.roofs) < 2:
        return
    holds, line, is_private = float(ceilings.register_bytes), 1, True
    for roof in ceilings.roofs:
        sharers = threads if is_private else 1
        compulsory = max(0.0, work.bytes - holds * sharers)
        reloads = 0.0 if nest is None else bytes_into(nest, holds, line, sharers)
        traffic = max(work.bytes if roof is ceilings.roofs[0] else compulsory, reloads)
        if traffic > 0:
            rate = roof.rate.of(threads, ceilings.threads)
            reason = _describe_bytes(roof.name, traffic, work)
            yield Limit(roof.name, traffic / rate, traffic, rate, reason)
        holds, line, is_private = float(roof.bytes), NOMINAL.loops.line_bytes, not roof.shared


def _describe_bytes(name: str, traffic: float, work: Work) -> str:
    times = traffic / work.bytes if work.bytes else 1.0
    repetition = f", {times:.3g} times what its arrays have" if times > 1.05 else ""
    return f"{bytes_text(round(traffic))} must come from {name}{repetition}"
