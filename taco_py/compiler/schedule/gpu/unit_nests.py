"""Units of a GPU that share nested loops: the possible nests, and their limits.

    GPUBlock ⊃ GPUThread                 threads of a block
    GPUBlock ⊃ GPUWarp ⊃ GPUThread       lanes of a warp
    … ⊃ GPUThread ⊃ GPUThread            groups of a warp's lanes: 8 for each of 4 iterations
    CPUThread                            threads of the grid, in nothing and around
                                         nothing

A block has as many threads as its loops of units have iterations where that is known, and 256 else.
Where there are more iterations than units, each executes several.

Iterations may add to common elements of arrays by atomic operations. Sums to scalars of their block
are reduced in registers, for any strategy.
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen.machine.gpu import NOMINAL_GPU
from taco_py.compiler.concrete.nodes import (
    INSIDE_BLOCKS,
    ROWS,
    Assembly,
    Race,
    Unit,
    Where,
)
from taco_py.compiler.concrete.tree import assignments, foralls, walk
from taco_py.compiler.iteration.copied_pattern import copied_pattern
from taco_py.compiler.iteration.graph import IterationGraph, Loop, Range
from taco_py.compiler.iteration.units_share import iteration_indices, rows_in_blocks, takes_entries
from taco_py.compiler.schedule.races import (
    Refusal,
    atomic_refusal,
    common_refusal,
    outward,
    race_refusal,
    workspaces_around,
)
from taco_py.compiler.schedule.refused import refused
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.checks import with_linearity
from taco_py.language.notation.operators import ADD

_ENCLOSING_UNITS: dict[Unit, tuple[Unit | None, ...]] = {
    Unit.CORE: (None,),
    Unit.BLOCK: (None,),
    Unit.WARP: (Unit.BLOCK,),
    Unit.THREAD: (Unit.BLOCK, Unit.WARP, Unit.THREAD),
}
"""The units that may share the nearest shared loop around a unit's loop."""


def shared_loops_around(graph: IterationGraph, loop: Loop) -> tuple[Loop, ...]:
    """Return the shared loops around one, outermost first."""
    return tuple(
        other for other in graph.loops if other.mode.parallel is not None and _holds(other, loop)
    )


def _holds(outer: Loop, loop: Loop) -> bool:
    return any(part.body is loop.body for part in foralls(outer.body))


def nest_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why units cannot share a loop at this depth of the nest, or not as many units."""
    outside = shared_loops_around(graph, loop)
    nearest = outside[-1].mode.unit if outside else None
    unit, name = loop.mode.unit, graph.called(loop)
    if nearest is not None and unit not in INSIDE_BLOCKS:
        return Refusal(
            f"the loop {graph.called(outside[0])} around it is parallel",
            "share one of them",
        )
    if nearest not in _ENCLOSING_UNITS[unit]:
        expected = " or ".join(other.value for other in _ENCLOSING_UNITS[unit] if other is not None)
        actual = "nothing" if nearest is None else f"{nearest.value} of {graph.called(outside[-1])}"
        return Refusal(
            f"Expected a loop of {expected} right around the {unit.value} {name}, found {actual}",
            f"split {name}, and parallelize the outer loop by GPUBlock",
        )
    return _group_refusal(graph, loop, outside) or _limit_refusal(graph, loop, outside)


def _group_refusal(graph: IterationGraph, loop: Loop, outside: tuple[Loop, ...]) -> Refusal | None:
    """Say why the lanes of a warp do not form groups that share a loop."""
    if not outside or outside[-1].mode.unit is not Unit.THREAD:
        return None
    outer = outside[-1]
    count, name = iterations(graph, outer), graph.called(outer)
    in_warp = len(outside) > 2 and outside[-2].mode.unit is Unit.WARP
    if in_warp and count in GROUPS and not takes_entries(graph, outer):
        return None
    counts = ", ".join(map(str, GROUPS))
    return Refusal(
        f"Expected a loop of GPUWarp around {name}, of {counts} iterations, for groups of lanes "
        f"that share {graph.called(loop)} inside",
        f"split {name} by {GROUPS[1]}, and parallelize the outer loop by GPUWarp",
    )


GROUPS = (2, 4, 8, 16)
"""The numbers of iterations that groups of a warp's lanes can share."""


def _limit_refusal(graph: IterationGraph, loop: Loop, outside: tuple[Loop, ...]) -> Refusal | None:
    """Say why a block cannot have as many threads, or a warp as many lanes."""
    most, name = iterations(graph, loop), graph.called(loop)
    in_warp = bool(outside) and outside[-1].mode.unit is Unit.WARP
    in_group = bool(outside) and outside[-1].mode.unit is Unit.THREAD
    warp, threads = NOMINAL_GPU.warp_threads, NOMINAL_GPU.most_block_threads
    lanes = warp // iterations(graph, outside[-1]) if in_group else warp
    if loop.mode.unit is Unit.THREAD and (in_warp or in_group) and most > lanes:
        return Refusal(
            f"Expected at most {lanes} iterations of {name}, for the lanes of a "
            f"{'group' if in_group else 'warp'}, found {most}",
            f"split {name} by {lanes}",
        )
    if loop.mode.unit is Unit.WARP:
        most *= warp
    if most > threads:
        counted = f"{most // warp} warps" if loop.mode.unit is Unit.WARP else f"{most}"
        return Refusal(
            f"Expected at most {threads} threads a block, found {counted} for {name}",
            "use smaller tiles",
        )
    return None


def iterations(graph: IterationGraph, loop: Loop) -> int:
    """Return the most iterations of a loop of units; 0 where the schedule does not determine
    them."""
    return graph.provenance.most(graph.provenance.leaf(loop.index, loop.outer)) or 0


def unit_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why units of a GPU cannot share a loop with its strategy for common elements."""
    race = loop.mode.parallel
    refusal = _sparse_refusal(graph, loop) or merge_refusal(graph, loop)
    refusal = refusal or entry_refusal(graph, loop)
    race_conflict = race_refusal(graph, loop)
    if refusal is not None or race_conflict is None or race is Race.NONE:
        return refusal or race_conflict
    if race is Race.IGNORE:
        return common_refusal(graph, loop)
    return _common_refusal(graph, loop)


def _sparse_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why blocks or their parts cannot write a sparse result."""
    if graph.has_places or not loop.writes_result:
        return None
    if rows_in_blocks(graph) and (not loop.outer or _reads_row(graph, loop)):
        return None
    name, tensor = graph.called(loop), graph.problem.assignment.target.tensor
    copies = f"assemble({tensor},Copy), " if copied_pattern(graph.problem) else ""
    return Refusal(
        f"{loop.mode.unit.value} of {name} would write a sparse result, whose entries threads of "
        "the grid count and place",
        f"{copies}parallelize({name},CPUThread,NoRaces), or ask for a dense result",
    )


def _reads_row(graph: IterationGraph, loop: Loop) -> bool:
    """Tell whether threads of a block share a loop over the coordinates of one of its rows."""
    rows = {w.name for w in workspaces_around(graph, loop).values() if w.indices == (loop.index,)}
    read = {iterator.access.tensor for iterator in loop.lattice.iterators}
    return loop.mode.unit is Unit.THREAD and bool(read) and read <= rows


def _common_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why units cannot add to the common elements of their iterations."""
    race = loop.mode.parallel
    numbers = block_numbers(graph, loop)
    for assign in outward(loop):
        name, operator = assign.target.tensor, assign.operator
        if name not in numbers:
            continue
        if operator is None or not (operator.associative and operator.commutative):
            return Refusal(
                f"it does not add to {name}, but assigns it", f"share a loop inside {loop.index}"
            )
    if all(assign.target.tensor in numbers for assign in outward(loop)):
        return None
    if race is Race.ORDERED and sums_in_parts(graph, loop):
        return None
    if race is Race.ORDERED:
        name = graph.called(loop)
        return Refusal(
            "threads of a GPU have no copies of arrays, and atomic operations come in any order",
            f"parallelize({name},{loop.mode.unit.value},Atomics)",
        )
    return atomic_refusal(graph, loop)


def sums_in_parts(graph: IterationGraph, loop: Loop) -> bool:
    """Tell whether all common elements of blocks are scalars, which can have partial sums."""
    scalars = {name for name, w in workspaces_around(graph, loop).items() if w.is_number}
    counted = loop.range is Range.TILES or (loop.range is Range.FULL and loop.plain)
    blocks = loop.mode.unit is Unit.BLOCK and counted
    return blocks and all(assign.target.tensor in scalars for assign in outward(loop))


def merge_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why a merging loop cannot be shared: an iteration begins where the one before it
    ended."""
    if not loop.merges or loop.range is Range.TILES:
        return None
    names = ", ".join(map(str, loop.lattice.iterators))
    name = graph.called(loop)
    return Refusal(
        f"the loop {name} walks {names} along with others, in order",
        f"split {name}: its tiles can be shared",
    )


def entry_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why iterations of a loop over entries of several levels are not single entries."""
    if not takes_entries(graph, loop):
        return None
    name, indices = graph.called(loop), iteration_indices(graph, loop)
    inside = [graph.loop_of(part) for part in foralls(loop.body) if part.index in indices]
    merging = next((inner for inner in inside if inner.merges), None)
    if merging is not None:
        names = ", ".join(map(str, merging.lattice.iterators))
        return Refusal(
            f"each thread takes an entry of {name}, but {merging.index} walks {names} together",
            f"split {name}, and share the outer loop",
        )
    for part in walk(loop.body):
        if isinstance(part, Where) and not _is_summed_up(part, indices):
            return Refusal(
                f"each thread takes an entry of {name}, but what is made of {part.workspace.name} "
                f"needs all entries over {', '.join(indices[1:])}",
                f"share the loop over {indices[0]} as it is, without pos",
            )
    return None


def _is_summed_up(where: Where, indices: tuple[str, ...]) -> bool:
    """Tell whether partial sums of a workspace over some entries can be added up later."""
    if not any(part.index in indices for part in foralls(where.producer)):
        return True
    name, operator = where.workspace.name, where.workspace.operator
    for assign in assignments(where.consumer):
        read = [linear for a, linear in with_linearity(assign.value) if a.tensor == name]
        alone = assign.value == where.workspace.access or (operator == ADD and all(read))
        if read and (assign.operator != operator or not alone or len(read) > 1):
            return False
    return True


def block_numbers(graph: IterationGraph, loop: Loop) -> frozenset[str]:
    """Return the scalars around a loop of which each block has one."""
    if loop.mode.unit not in INSIDE_BLOCKS:
        return frozenset()
    outside = shared_loops_around(graph, loop)
    names = set(_workspace_names(outside[0])) if outside else set()
    if outside and outside[0].mode.parallel is Race.ORDERED and sums_in_parts(graph, outside[0]):
        names |= {assign.target.tensor for assign in outward(outside[0])}
    workspaces = workspaces_around(graph, loop).values()
    return frozenset(w.name for w in workspaces if w.is_number and w.name in names)


def _workspace_names(loop: Loop) -> Iterator[str]:
    return (part.workspace.name for part in walk(loop.body) if isinstance(part, Where))


def units_of(on_gpu: bool) -> tuple[Unit, ...]:
    """Return the units that share loops on a GPU or the CPU, beside the lanes of a vector."""
    return tuple(_ENCLOSING_UNITS) if on_gpu else (Unit.CORE,)


def check_units(graph: IterationGraph, on_gpu: bool) -> None:
    """Raise ScheduleError for units, or a strategy of assembly, that a GPU or the CPU lacks."""
    if not on_gpu and graph.assembly is Assembly.COPY:
        tensor = graph.problem.assignment.target.tensor
        raise refused(
            f"assemble({tensor},{Assembly.COPY.value})",
            "threads of the CPU write parts of a result one behind another",
            f'assemble({tensor},Insert), or target="cuda"',
        )
    for loop in graph.loops:
        unit = loop.mode.unit
        if loop.mode.parallel is None or unit is Unit.CORE or on_gpu:
            continue
        raise ScheduleError(
            f"Expected CPUThread or CPUVector for the loop {graph.called(loop)}, found "
            f"{unit.value}, of which the CPU has none",
            hint='target="cuda" computes it on a GPU, target="cuda-emulated" by the same kernels '
            "without one; on the command line -cuda and -cuda=emulated",
        )


def strategy(graph: IterationGraph, loop: Loop) -> Race | None:
    """Return the strategy that code needs for common elements of units of a GPU.

    Atomic operations of an inner loop serve all outer loops that ignore races, as in TACO's
    schedules.
    """
    race = loop.mode.parallel
    if race is None or race is Race.NONE:
        return race
    if race_refusal(graph, loop) is None:
        return Race.NONE
    if race is Race.ORDERED and sums_in_parts(graph, loop):
        return Race.ORDERED
    if race is not Race.IGNORE:
        return Race.ATOMICS
    inside = (inner.mode.parallel for inner in foralls(loop.body))
    atomic = Race.ATOMICS in inside and atomic_refusal(graph, loop) is None
    return Race.ATOMICS if atomic else Race.IGNORE


def memory_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why threads cannot have a private workspace that does not fit registers."""
    for part in walk(loop.body):
        if not isinstance(part, Where) or part.workspace.is_number:
            continue
        workspace = part.workspace
        if workspace.is_table or workspace.kind in ROWS:
            return Refusal(
                f"each thread would need a list of coordinates for the workspace {workspace.name}",
                "leave the loop serial",
            )
    return None
