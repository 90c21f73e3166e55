"""The values of a sparse result whose structure is an input: nothing is assembled, sorted or grown.

    team for piece in 0..pieces:
      pC2 = C2_pos[first]                     the positions of a range's entries are inputs, too
      for i in first..last: … C_vals[pC2] = …

Only where threads share tiles of entries that begin within rows are the entries counted first.
(`taco_py.compiler.lower.sparse_result.pattern` has what becomes of one entry.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

from codegen import build
from codegen.ir import Expect, Stmt, Var
from taco_py.compiler.concrete.nodes import Forall, Statement, WorkspaceKind
from taco_py.compiler.iteration.graph import Range
from taco_py.compiler.lower.environment import EMPTY_SCOPE, Environment
from taco_py.compiler.lower.sparse_result.pattern import FixedResult
from taco_py.compiler.lower.sparse_result.result import ZERO, Result, make_result
from taco_py.compiler.lower.threads.teams import Pieces, loops, share_out


def lower_recomputed(
    env: Environment, statement: Statement, setup: tuple[Stmt, ...]
) -> Iterator[Stmt]:
    """Yield the code of a kernel that computes the values of a sparse result in its structure.

    setup  the allocation of workspaces that are not private to threads
    """
    pattern = _fixed_result(env, make_result(env))
    env = _unordered(env, pattern.rows)
    if env.graph.in_pieces and isinstance(statement, Forall):
        yield from _by_threads(env, statement)
        return
    yield from setup
    result = replace(
        pattern, starts=tuple(ZERO for _ in pattern.groups), stops=pattern.before(None)
    )
    yield from loops(env, result, statement, EMPTY_SCOPE)


def _by_threads(env: Environment, forall: Forall) -> Iterator[Stmt]:
    pieces, before = share_out(env, forall)
    pattern = _fixed_result(env, pieces.result)
    yield from before
    extent = pieces.extent
    if extent is not None:
        mine = replace(pattern, starts=pattern.before(extent.lo), stops=pattern.before(extent.hi))
        yield _team(pieces, mine)
        return
    yield from pieces.counting(None)
    all_match = map(build.eq, pieces.totals, pattern.before(None))
    yield from (Expect(matches) for matches in all_match)
    yield _team(pieces, replace(pattern, starts=pieces.offsets, cut=True))


def _team(pieces: Pieces, result: FixedResult) -> Stmt:
    return pieces.team(*loops(pieces.env, result, pieces.forall, pieces.inner))


def _fixed_result(env: Environment, result: Result) -> FixedResult:
    names = [group.counter.name for group in result.groups]
    ends, totals = (
        tuple(Var(env.names.fresh(f"{name}_{what}")) for name in names) for what in ("end", "total")
    )
    arguments = {field.name: getattr(result, field.name) for field in fields(result)}
    rows = frozenset(_rows(env, result))
    cut = _comes_entry_by_entry(env) or _comes_in_tiles(env)
    return FixedResult(**arguments, ends=ends, totals=totals, rows=rows, cut=cut)


def _comes_entry_by_entry(env: Environment) -> bool:
    """Tell whether a loop around the last one walks a table, one of its entries at a time."""
    walked = [(loop, i) for loop in env.graph.loops for i in loop.lattice.iterators]
    return any(
        loop.writes_result and i.level < len(workspace.indices) - 1
        for loop, i in walked
        for workspace in (arrays.workspace for arrays in env.workspaces.values())
        if workspace.name == i.access.tensor and workspace.is_table
    )


def _comes_in_tiles(env: Environment) -> bool:
    """Tell whether a loop runs over tiles of fused indices, which begin and end within a row."""
    return any(
        loop.writes_result
        and env.provenance.is_derived(loop.index)
        and len(env.provenance.roots(loop.index)) > 1
        for loop in env.graph.loops
    )


def _rows(env: Environment, result: Result) -> Iterator[str]:
    """Yield the row workspaces that make up a segment of the result, and are read once.

    Their loop runs over a full index, whose level is a group by itself.
    """
    for name, arrays in env.workspaces.items():
        reading = [
            loop
            for loop in env.graph.loops
            if any(i.access.tensor == name for i in loop.lattice.iterators)
        ]
        workspace = arrays.workspace
        if workspace.kind is not WorkspaceKind.ROW or workspace.reread or len(reading) != 1:
            continue
        (loop,) = reading
        level = _level_of(env, loop.index)
        group = None if level is None else result.group_of(level)
        alone = group is not None and group.first == group.last == level
        if alone and loop.writes_result and loop.range is Range.FULL:
            yield name


def _level_of(env: Environment, index: str) -> int | None:
    """Return the result's level that has the coordinates of `index`."""
    if index not in env.target.indices:
        return None
    mode = env.target.indices.index(index)
    return env.tensors[env.target.tensor].type.format.mode_order.index(mode)


def _unordered(env: Environment, rows: frozenset[str]) -> Environment:
    """Return the environment in which the order of these rows is free."""
    workspaces = {
        name: replace(arrays, workspace=replace(arrays.workspace, ordered=False))
        if name in rows
        else arrays
        for name, arrays in env.workspaces.items()
    }
    return replace(env, workspaces=workspaces)
