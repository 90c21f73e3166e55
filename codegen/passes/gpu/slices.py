"""Teams on a device: threads that are many, each with slices of common arrays as memory of its own.

    team for piece in 0..pieces:              slots = min(pieces, as many as there is memory for)
      setup: w = new f64[n]                   w = new f64[slots * n]
      of each piece: … w[j] …           →     parallel for slot in 0..slots:
                                                w_begin = slot * n
                                                for round in 0..: piece = slot + round * slots
                                                  … w[w_begin + j] …

Where a team's threads need no memory, each piece is an iteration of a parallel loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from codegen import build
from codegen.ir import (
    Allocate,
    Array,
    AtomicStore,
    Block,
    Declare,
    Expr,
    Fill,
    For,
    Function,
    Load,
    LoopKind,
    Module,
    Reserve,
    Sort,
    Stmt,
    Store,
    Team,
    Var,
)
from codegen.machine.target import Target, UnsupportedError
from codegen.names import Names
from codegen.passes.outline_kernels import NO_TABLE
from codegen.tree import map_children, rewrite
from codegen.variables import names_beside


def cut_slices(module: Module, target: Target) -> Module:
    """Make teams loops that a device's threads share. Raises UnsupportedError."""
    return map_children(module, lambda f: _function(f, target) if isinstance(f, Function) else f)


def _function(function: Function, target: Target) -> Function:
    names = names_beside(function)

    def share(node: Any) -> Any:
        if not isinstance(node, Team):
            return node
        return build.block(*_shared(node, names, target))

    return rewrite(function, share)


def _shared(team: Team, names: Names, target: Target) -> Iterator[Stmt]:
    """Yield the loop over a team's pieces."""
    if team.parts:
        raise UnsupportedError("threads of a device put no parts of a result together")
    allocations = tuple(_local_arrays(team.setup))
    if not allocations:
        yield For(team.piece, build.const(0), team.count, team.body, kind=LoopKind.PARALLEL)
        return
    slots, slot, number = (Var(names.fresh(name)) for name in ("slots", "slot", "round"))
    slice_size = build.add(*(build.mul(a.size, a.array.element.itemsize) for a in allocations))
    room = build.maximum(build.div(target.gpu.slice_bytes, build.maximum(slice_size, 1)), 1)
    yield Declare(slots, build.minimum(team.count, room, target.gpu.slice_threads), constant=True)
    yield from (replace(a, size=build.mul(slots, a.size)) for a in allocations)
    begins = {a.array: Var(names.fresh(f"{a.array.name}_begin")) for a in allocations}
    places = (Declare(begins[a.array], build.mul(slot, a.size), constant=True) for a in allocations)
    rest = build.sub(build.add(team.count, slots), build.add(slot, 1))
    declaration = Declare(team.piece, build.add(slot, build.mul(number, slots)), constant=True)
    body = build.block(declaration, *_sliced(team.body, begins).body)
    rounds = For(number, build.const(0), build.div(rest, slots), body)
    shared = build.block(*places, rounds)
    yield For(slot, build.const(0), slots, shared, kind=LoopKind.PARALLEL)


def _local_arrays(setup: Block) -> Iterator[Allocate]:
    for stmt in setup.body:
        if not isinstance(stmt, Allocate):
            raise UnsupportedError(NO_TABLE)
        yield stmt


def _sliced(body: Block, begins: Mapping[Array, Expr]) -> Block:
    """Return a piece's work, on the slices that begin there."""

    def shift(node: Any) -> Any:
        node = map_children(node, shift)
        match node:
            case Load(array=array) | Store(array=array) | AtomicStore(array=array):
                if array in begins:
                    return replace(node, index=build.add(begins[array], node.index))
            case Fill(array=array) if array in begins:
                return replace(node, start=build.add(begins[array], node.start))
            case Sort(array=array) if array in begins:
                return replace(node, start=build.add(begins[array], node.start), marks=None)
            case Reserve(array=array) if array in begins:
                raise UnsupportedError(f"a thread of a device cannot enlarge {array.name}")
        return node

    return map_children(body, shift)
