"""The values of a sparse result whose structure is given: nothing is assembled, sorted or grown.

    team for piece in 0..pieces:
      pC2 = C2_pos[first]                     where the entries of a range go, is given as well
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
from taco_py.compiler.lower.sparse_result.pattern import Given
from taco_py.compiler.lower.sparse_result.result import ZERO, Result, make_result
from taco_py.compiler.lower.threads.teams import Pieces, loops, share_out


def lower_recomputed(
    env: Environment, statement: Statement, setup: tuple[Stmt, ...]
) -> Iterator[Stmt]:
    """Yield the code of a kernel that computes the values of a sparse result and reads its
    structure.

    setup  the allocation of workspaces, where threads do not have their own
    """
    whole = _given(env, make_result(env))
    env = _unordered(env, whole.rows)
    if env.graph.in_pieces and isinstance(statement, Forall):
        yield from _by_threads(env, statement)
        return
    yield from setup
    result = replace(whole, starts=tuple(ZERO for _ in whole.groups), stops=whole.before(None))
    yield from loops(env, result, statement, EMPTY_SCOPE)


def _by_threads(env: Environment, forall: Forall) -> Iterator[Stmt]:
    pieces, before = share_out(env, forall)
    whole = _given(env, pieces.whole)
    yield from before
    extent = pieces.extent
    if extent is not None:
        mine = replace(whole, starts=whole.before(extent.lo), stops=whole.before(extent.hi))
        yield _team(pieces, mine)
        return
    yield from pieces.counting(None)
    all_met = map(build.eq, pieces.totals, whole.before(None))
    yield from (Expect(met) for met in all_met)
    yield _team(pieces, replace(whole, starts=pieces.begun, cut=True))


def _team(pieces: Pieces, result: Given) -> Stmt:
    return pieces.team(*loops(pieces.env, result, pieces.forall, pieces.inner))


def _given(env: Environment, whole: Result) -> Given:
    names = [group.counter.name for group in whole.groups]
    ends, totals = (
        tuple(Var(env.names.fresh(f"{name}_{what}")) for name in names) for what in ("end", "total")
    )
    known = {each.name: getattr(whole, each.name) for each in fields(whole)}
    rows = frozenset(_rows(env, whole))
    cut = _comes_entry_by_entry(env) or _comes_in_tiles(env)
    return Given(**known, ends=ends, totals=totals, rows=rows, cut=cut)


def _comes_entry_by_entry(env: Environment) -> bool:
    """Tell whether a loop around the last one walks a table, and so meets each of its entries."""
    walked = [(loop, i) for loop in env.graph.loops for i in loop.lattice.iterators]
    return any(
        loop.writes_result and i.level < len(workspace.indices) - 1
        for loop, i in walked
        for workspace in (arrays.workspace for arrays in env.workspaces.values())
        if workspace.name == i.access.tensor and workspace.is_table
    )


def _comes_in_tiles(env: Environment) -> bool:
    """Tell whether a loop is over tiles of fused indices, which begin and end within a row."""
    return any(
        loop.writes_result
        and env.provenance.is_derived(loop.index)
        and len(env.provenance.roots(loop.index)) > 1
        for loop in env.graph.loops
    )


def _rows(env: Environment, whole: Result) -> Iterator[str]:
    """Yield the workspaces with a row that makes up a segment of the result, and is read for that
    once.

    Their loop runs over all of an index, which is that of a level with segments of its own.
    """
    for name, arrays in env.workspaces.items():
        reading = [
            loop
            for loop in env.graph.loops
            if any(i.access.tensor == name for i in loop.lattice.iterators)
        ]
        workspace = arrays.workspace
        if workspace.kind is not WorkspaceKind.ROW or workspace.kept or len(reading) != 1:
            continue
        (loop,) = reading
        level = _level_of(env, loop.index)
        group = None if level is None else whole.group_of(level)
        alone = group is not None and group.first == group.last == level
        if alone and loop.writes_result and loop.range is Range.WHOLE:
            yield name


def _level_of(env: Environment, index: str) -> int | None:
    """Return the result's level that has the coordinates of `index`."""
    if index not in env.target.indices:
        return None
    mode = env.target.indices.index(index)
    return env.tensors[env.target.tensor].type.format.mode_order.index(mode)


def _unordered(env: Environment, rows: frozenset[str]) -> Environment:
    """Where nobody asks for the order of these rows."""
    workspaces = {
        name: replace(arrays, workspace=replace(arrays.workspace, ordered=False))
        if name in rows
        else arrays
        for name, arrays in env.workspaces.items()
    }
    return replace(env, workspaces=workspaces)
