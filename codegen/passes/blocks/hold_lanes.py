"""Hold the lanes of a slice of the result while a sum runs over what is stored for the slice.

    for p in first..last:                      y_held[0..8] = Y[b:+8]
      for l in 0..8:                           for p in first..last:
        if m[p] >> l & 1:                        prefetch A[8*p + 512]
          Y[b + l] += A[8*p + l] * x[d[p] + l]   for l in 0..8:
                                        ->         y_held[l] += m[p] >> l & 1 ? A[8*p + l] * …
                                                                               : -0.0
                                               Y[b:+8] = y_held[0..8]

The lanes then stay in a vector, and the C compiler loads x under a mask: what is not stored is not
read. A sum with -0.0 is the other number itself, whichever that is.

Legal when the inner loop has constant bounds and adds, once each turn and under one condition at
most, to neighbours in an array that the loops do not read or write otherwise.
"""

from __future__ import annotations

from codegen.build import add, block, mul
from codegen.ir import (
    Allocate,
    Array,
    Block,
    Const,
    Declare,
    Expr,
    For,
    Load,
    Module,
    Prefetch,
    Select,
    Stmt,
    Storage,
    Store,
)
from codegen.names import Names
from codegen.passes.blocks.one_store import declared_and_last, one_store, rewrite_loops
from codegen.passes.simplify import simplify_tree
from codegen.records import dataclass
from codegen.tree import find
from codegen.types import INT64, ScalarType
from codegen.variables import assigned_vars, declared_vars, free_vars, substitute

LANES = range(2, 33)
"""How many lanes a slice may have."""
AHEAD = 512
"""Elements between a position and what is prefetched there: 256 to 512 do equally well."""


def hold_lanes(module: Module) -> Module:
    """Return `module` with the lanes of slices held wherever the pattern above occurs."""
    return rewrite_loops(module, _hold_slice)


def _hold_slice(root: For, names: Names) -> list[Stmt] | None:
    slice = match_slice(root)
    return None if slice is None else [_accumulated(slice, names)]


@dataclass(frozen=True, slots=True)
class Slice:
    """A sum over what is stored for a slice.

    root     its loop
    before   what this declares, before its loop over lanes
    lanes    that loop
    store    what is added, and where
    place    of lane 0
    present  under which condition
    """

    root: For
    before: tuple[Declare, ...]
    lanes: For
    store: Store
    place: Expr
    present: Expr


def match_slice(root: For) -> Slice | None:
    """Return the sum whose loop is `root`; None where it is none over lanes."""
    if not root.is_serial or root.unroll or root.step != 1:
        return None
    split = declared_and_last(root.body)
    if split is None or not isinstance(split[1], For):
        return None
    before, lanes = split
    if not isinstance(lanes, For) or not _counts_lanes(lanes):
        return None
    pattern = one_store(lanes.body, {})
    if pattern is None:
        return None
    store, present = pattern
    if present is None:
        return None  # rows of columns are panels
    if store.op != "+" or identity_of(store.array.element) is None:
        return None
    if any(load.array == store.array for load in find(root, Load)):
        return None
    outside = {declare.var: declare.value for declare in before}
    index = simplify_tree(substitute(store.index, outside))
    place = simplify_tree(substitute(index, {lanes.var: Const(0, INT64)}))
    changing = assigned_vars(root) | declared_vars(root.body) | {root.var, lanes.var}
    if free_vars(place) & changing or any(True for _ in find(place, Load)):
        return None
    if simplify_tree(substitute(index, {lanes.var: Const(1, INT64)})) != simplify_tree(
        add(place, 1)
    ):
        return None
    return Slice(root, before, lanes, store, place, present)


def _counts_lanes(loop: For) -> bool:
    bounds = (loop.start, loop.stop)
    constant = all(isinstance(bound, Const) for bound in bounds)
    if not constant or not loop.is_serial or loop.step != 1 or loop.unroll:
        return False
    first, last = (int(bound.value.real) for bound in bounds if isinstance(bound, Const))
    return first == 0 and last in LANES


def identity_of(element: ScalarType) -> Const | None:
    """Return the neutral element of addition; None where there is none."""
    if element.kind == "float":
        return Const(-0.0, element)
    return Const(0, element) if element.kind in ("int", "uint") else None


def _accumulated(slice: Slice, names: Names) -> Block:
    """Return the sum with its lanes held."""
    store, lane, count = slice.store, slice.lanes.var, slice.lanes.stop
    array = store.array
    buffer = Array(names.fresh(f"{array.name}_held"), array.element, Storage.LOCAL)
    nothing = identity_of(array.element)
    assert nothing is not None
    value = Select(slice.present, store.value, nothing)
    inner = Store(buffer, lane, value, "+", store.role)
    lanes = For(lane, slice.lanes.start, count, block(inner))
    first = {lane: Const(0, INT64)}
    ahead = [
        Prefetch(load.array, simplify_tree(add(substitute(load.index, first), AHEAD)))
        for load in find(store.value, Load)
        if _streams(load, slice)
    ]
    elements = f"{_number(count)} elements of {array.name}"
    note = f"{elements} in a vector while the sum over {slice.root.var.name} runs"
    root = slice.root
    loop = For(
        root.var, root.start, root.stop, block(*slice.before, *ahead, lanes), root.step, note=note
    )
    load = Store(buffer, lane, Load(array, add(slice.place, lane)), role=store.role)
    back = Store(array, add(slice.place, lane), Load(buffer, lane), role=store.role)
    return block(
        Allocate(buffer, count, align=64),
        For(lane, slice.lanes.start, count, block(load)),
        loop,
        For(lane, slice.lanes.start, count, block(back)),
    )


def _number(count: Expr) -> int:
    assert isinstance(count, Const)
    return int(count.value.real)


def _streams(load: Load, slice: Slice) -> bool:
    """Tell whether a load comes to each element of an array in turn: lanes of one position after
    those of the one before."""
    values = {declare.var: declare.value for declare in slice.before}
    index = substitute(load.index, values)
    lane, position, count = slice.lanes.var, slice.root.var, slice.lanes.stop
    expected = add(mul(position, count), lane)
    return simplify_tree(index) == simplify_tree(expected)
