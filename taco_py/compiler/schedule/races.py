"""Common elements of a loop's iterations, and the strategies by which threads may add to them.

NoRaces    nothing: no two iterations write the same element of the result, or the same workspace
Atomics    elements that are added to, in arrays or as a scalar, where that is one operation
Temporary  the same, and rows of coordinates: in private copies, which are added up
Ordered    as Temporary
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import (
    PRIVATE_COPIES,
    ROWS,
    Assembly,
    Assign,
    Race,
    Unit,
    Workspace,
)
from taco_py.compiler.concrete.tree import assignments, read_in, workspaces_of
from taco_py.compiler.iteration.copied_pattern import copied_pattern
from taco_py.compiler.iteration.graph import IterationGraph, Loop, Range
from taco_py.compiler.iteration.units_share import fills_row, iteration_indices, rows_in_blocks
from taco_py.language.formats import Format
from taco_py.language.notation.operators import ADD, Operator


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why threads cannot share a loop, and the remedy."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return self.reason


STRATEGIES = (Race.ATOMICS, *PRIVATE_COPIES)
"""The strategies for elements that iterations have in common."""


def workspaces_around(graph: IterationGraph, loop: Loop) -> dict[str, Workspace]:
    """Return the workspaces that all iterations share."""
    inside = {w.name for w in workspaces_of(loop.body)}
    return {w.name: w for w in workspaces_of(graph.statement) if w.name not in inside}


def outward(loop: Loop) -> Iterator[Assign]:
    """Yield the assignments to workspaces and results that all iterations share."""
    inside = {w.name for w in workspaces_of(loop.body)}
    return (a for a in assignments(loop.body) if a.target.tensor not in inside)


# ---------------------------------------------------------------- nothing in common


def race_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why two iterations may write the same element."""
    return (
        common_refusal(graph, loop)
        or _summing_refusal(graph, loop)
        or _repeating_refusal(graph, loop)
    )


def common_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why iterations write a workspace that they share."""
    roots = set(iteration_indices(graph, loop))
    targets = {assign.target.tensor for assign in outward(loop)}
    for workspace in workspaces_around(graph, loop).values():
        disjoint = workspace.is_array or fills_row(graph, loop)
        disjoint = disjoint and roots <= set(workspace.indices)
        if workspace.name not in targets or disjoint:
            continue
        if workspace.is_number:
            reason = "its iterations add to one number"
        else:
            over = ", ".join(workspace.indices)
            reason = (
                f"its iterations share one place for values over {over}, the workspace "
                f"{workspace.name}"
            )
        return Refusal(reason, _outside(graph, loop, workspace))
    return None


def _outside(graph: IterationGraph, loop: Loop, workspace: Workspace) -> str:
    """Return commands to share another loop than one that adds to a workspace, or to add safely."""
    name = graph.called(loop)
    single = not workspace.lists_coordinates
    races = () if workspace.is_table else STRATEGIES if single else PRIVATE_COPIES
    commands = [
        f"parallelize({name},{loop.mode.unit.value},{race.value})"
        for race in races
        if (
            _adds_to_copies(graph, loop)
            if race in PRIVATE_COPIES
            else _adds_at_once(workspace.dtype)
        )
    ]
    return " or ".join((*_elsewhere(graph, loop), *commands)) or "leave the loop serial"


def _elsewhere(graph: IterationGraph, loop: Loop) -> tuple[str, ...]:
    """Return the other loop that might be shared, in words."""
    if loop.outer:
        return ("share a loop around it",)
    target_indices = graph.problem.assignment.target.indices
    return ("put an index of the result outside and share that",) if target_indices else ()


def _summing_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    problem = graph.problem
    roots, target = iteration_indices(graph, loop), problem.assignment.target
    if all(root in target.indices for root in roots):
        return None
    if all(assign.target.tensor != target.tensor for assign in outward(loop)):
        return None  # workspaces alone, of which each iteration has elements of its own
    name = graph.called(loop)
    tiles = "" if roots == (loop.index,) else f", tiles of {', '.join(roots)},"
    return Refusal(
        f"the loop {name}{tiles} is summed over: its iterations add to the same elements",
        " or ".join((*_elsewhere(graph, loop), *_ways_to_add(graph, loop)))
        or "leave the loop serial",
    )


def _ways_to_add(graph: IterationGraph, loop: Loop) -> Iterator[str]:
    """Yield the commands by which iterations may add to the same elements of the result."""
    name, unit = graph.called(loop), loop.mode.unit.value
    if _adds_to_copies(graph, loop):
        yield f"let each thread add to a copy: parallelize({name},{unit},Temporary)"
    if _adds_at_once(graph.problem.result.dtype):
        yield f"let them add by atomic operations: parallelize({name},{unit},Atomics)"


def _adds_to_copies(graph: IterationGraph, loop: Loop) -> bool:
    """Tell whether threads can add to private copies."""
    return private_copies_refusal(graph, loop, brief=True) is None


def _adds_at_once(dtype: str) -> bool:
    """Tell whether an addition can be one atomic operation."""
    return not dtype.startswith("complex")


def _is_one_operation(dtype: str, operator: Operator | None) -> bool:
    """Tell whether threads of a GPU update an element atomically, which excludes 16 bytes."""
    return dtype != "complex128" or operator in (None, ADD)


def _repeating_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    operands = dict(graph.problem.operands)
    pos = graph.provenance.positions_above(loop.index)
    tiled = graph.has_places and loop.range is Range.TILES
    copied = copied_pattern(graph.problem) if graph.assembly is Assembly.COPY else None
    copies_positions = copied is not None and pos is not None and pos.tensor == copied.access.tensor
    if pos is not None and tiled and not copies_positions and _repeats(operands[pos.tensor].format):
        return Refusal(
            f"tiles {graph.called(loop)} of positions of {pos.tensor} may have coordinates in "
            "common",
            " or ".join(_ways_to_add(graph, loop)) or "leave the loop serial",
        )
    for iterator in loop.lattice.iterators:
        if iterator.access.tensor not in operands:
            if rows_in_blocks(graph) and loop.mode.unit is Unit.THREAD:
                continue  # each coordinate of a row is there once
            return Refusal(
                f"the loop {graph.called(loop)} walks the workspace {iterator.access.tensor}",
                "leave the loop serial",
            )
        form = operands[iterator.access.tensor].format
        if copied is not None and iterator.access == copied.access:
            continue  # entries with equal coordinates have places of their own
        if not form.levels[iterator.level].unique:
            return Refusal(
                f"the loop {graph.called(loop)} may meet a coordinate of {iterator} more than once",
                "convert the operand to a format without duplicates",
            )
    return None


def _repeats(form: Format) -> bool:
    """Tell whether entries that are not adjacent may have a coordinate in common."""
    return not form.is_unique


# ---------------------------------------------------------------- atomic operations


def atomic_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why an update of common elements is no atomic operation."""
    outer = workspaces_around(graph, loop)
    roots = set(iteration_indices(graph, loop))
    for assign in outward(loop):
        name = assign.target.tensor
        workspace = outer.get(name)
        if workspace is not None and workspace.lists_coordinates:
            return Refusal(
                f"its iterations list the coordinates of {', '.join(workspace.indices)} that they "
                f"add to in the workspace {name}",
                _outside(graph, loop, workspace),
            )
        disjoint = workspace is not None and roots <= set(workspace.indices)
        if assign.operator is None and not disjoint:
            return _assigned(graph, loop, name)
        dtype = graph.problem.result.dtype if workspace is None else workspace.dtype
        operator = assign.operator
        if not (_adds_at_once(dtype) if graph.teams else _is_one_operation(dtype, operator)):
            return Refusal(
                "complex numbers have no atomic addition"
                if graph.teams
                else f"{dtype} has no such atomic operation",
                " or ".join(_ways_to_add(graph, loop)) or "leave the loop serial",
            )
    return None


def _assigned(graph: IterationGraph, loop: Loop, tensor: str) -> Refusal:
    """Say why elements cannot be assigned by iterations that may write the same one."""
    usual = race_refusal(graph, loop)
    remedy = f"share a loop inside {graph.called(loop)}" if usual is None else usual.remedy
    return Refusal(f"it assigns elements of {tensor} and does not add to them", remedy)


# ---------------------------------------------------------------- copies


def private_copies_refusal(
    graph: IterationGraph, loop: Loop, *, brief: bool = False
) -> Refusal | None:
    """Say why threads cannot add to private copies.

    brief  without the remedy where elements are assigned
    """
    target = graph.problem.assignment.target.tensor
    outer = workspaces_around(graph, loop)
    for assign in outward(loop):
        name = assign.target.tensor
        if name == target and not graph.has_places:
            return Refusal(
                f"{target} stores coordinates, and copies of it are not added up",
                "ask for a dense result, or share a loop over its outermost level with NoRaces",
            )
        if name in outer and outer[name].is_table:
            return Refusal(
                f"the workspace {name} is a table of coordinates, and copies of it are not added "
                "up",
                _outside(graph, loop, outer[name]),
            )
        inside = name in outer and set(outer[name].indices) & set(loop.outer)
        if inside and outer[name].kind in ROWS:
            return Refusal(
                f"the workspace {name} is a list of coordinates of {', '.join(sorted(inside))}, "
                "whose loop is around it, and copies of whole lists are not made for each",
                f"share the loop over {' or '.join(sorted(inside))}, or leave the loop serial",
            )
        operator = assign.operator
        if operator is None or not (operator.associative and operator.commutative):
            return Refusal("", "") if brief else _assigned(graph, loop, name)
    return ranges_refusal(graph, loop)


def ranges_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why the loop cannot be shared in ranges."""
    pos = graph.provenance.position_of(loop.index) if loop.range is Range.POSITIONS else None
    if pos is not None and all(a.tensor != pos.tensor for a in read_in(loop.body)):
        return Refusal(
            f"the loop {graph.called(loop)} is over positions of {pos.tensor}, which it does not "
            "read",
            f"share a loop around it, or leave {pos.tensor} where it is read",
        )
    operands = dict(graph.problem.operands)
    for iterator in loop.lattice.iterators:
        tensor = iterator.access.tensor
        if tensor in operands and operands[tensor].format.levels[iterator.level].branchless:
            return Refusal(
                f"{iterator} has one coordinate at a time, which takes no loop",
                f"share the loop around it, or store {tensor} as CSR or CSF",
            )
    return disorder_refusal(graph, loop)


def disorder_refusal(graph: IterationGraph, loop: Loop) -> Refusal | None:
    """Say why a range of coordinates cannot be found, as they are unordered."""
    sorted_ = {r.tensor for r in graph.requirements if r.ordered}
    operands = dict(graph.problem.operands)
    for iterator in loop.lattice.iterators:
        tensor = iterator.access.tensor
        if tensor not in operands:
            return Refusal(
                f"the coordinates of the workspace {tensor} may come in any order",
                "share a loop that fills it, or leave the loop serial",
            )
        form = operands[tensor].format
        if tensor not in sorted_ and not form.levels[iterator.level].ordered:
            return Refusal(
                f"the coordinates of {iterator} may come in any order",
                f"store {tensor} in an ordered format",
            )
    return None
