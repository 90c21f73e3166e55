"""Kernels of a GPU that combine, in order, what blocks have of values across slabs.

y[j] += X[i,j]   →   blocks: parts[p,j] = sum of X[i,j] over the slabs of block p
threads for j: y[j] = parts[0,j] + parts[1,j] + …
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen import build
from codegen.build import add, block, const, load, mul
from codegen.ir import Array, Assign, Declare, Expr, For, LoopKind, Role, Stmt, Store, Var
from codegen.types import scalar
from taco_py.compiler.ways.slab_kernels.emit_values import identity
from taco_py.compiler.ways.slab_kernels.slab_places import At, Places
from taco_py.language.notation.operators import Operator


def combine_rows(
    places: Places, buffer: str, operator: Operator, parts: Array, count: Expr
) -> Stmt:
    """Return the loop of threads that combine `count` rows of parts."""
    at: At = {}
    element, part = places.variable("element"), places.variable("part")
    indices = [*places.declare_indices(element, places.of.inner, at)]
    row = places.count(places.of.inner)
    value = load(parts, add(mul(part, row), element))
    combined = _combined(places, buffer, operator, part, count, [], value, at)
    body = block(*indices, *combined)
    return For(element, const(0), row, body, kind=LoopKind.PARALLEL)


def combine_slabs(places: Places, buffer: str, operator: Operator, parts: Array) -> Stmt:
    """Return the loop of threads that combine the values of slabs that differ in other indices."""
    at: At = {}
    indices = places.of.graph.buffer(buffer).indices
    rest = [index for index in places.of.slab if index not in indices]
    element, part = places.variable("element"), places.variable("part")
    outside = [*places.declare_indices(element, indices, at)]
    inside = [*places.declare_indices(part, rest, at)]
    value = load(parts, places.row_major(places.of.slab, at))
    combined = _combined(places, buffer, operator, part, places.count(rest), inside, value, at)
    body = block(*outside, *combined)
    return For(element, const(0), places.count(indices), body, kind=LoopKind.PARALLEL)


def combine_values(
    places: Places, buffer: str, operator: Operator, parts: Array, count: Expr
) -> Stmt:
    """Return the loop of one block whose threads combine `count` values."""
    one, part = places.variable("one"), places.variable("part")
    combined = _combined(
        places, buffer, operator, part, count, [], load(parts, part), {}, LoopKind.THREADS
    )
    return For(one, const(0), const(1), block(*combined), kind=LoopKind.BLOCKS)


def _combined(
    places: Places, buffer: str, operator: Operator, part: Var, count: Expr,
    inside: Sequence[Stmt], value: Expr, at: At, kind: LoopKind = LoopKind.SERIAL,
) -> list[Stmt]:  # fmt: skip
    """Return the statements that store `count` values combined."""
    dtype, array = places.dtype(buffer), places.array(buffer)
    total = Var(places.name("total"), scalar(dtype))
    combine = Assign(total, value, operator.c_operator, Role.VALUES)
    place = places.place(buffer, places.of.graph.buffer(buffer).indices, at)
    return [
        Declare(total, identity(operator, dtype), role=Role.VALUES),
        For(part, const(0), count, block(*inside, combine), kind=kind),
        Store(array, place, build.cast(array.element, total)),
    ]
