"""Add up sums of 32 bits in 64.

    t = 0                                   t_wide = 0
    for i in 0..n:                          for i in 0..n:
      vector for j in 0..m reducing + t:      t_1 = 0
        t += x[p + j]                  →      vector for j in 0..m reducing + t_1: t_1 += x[p + j]
                                              t_wide += t_1
    y = t                                   y = (float) t_wide

A sum of n terms of 32 bits one after the other has an error of up to n / 2^24 of it, where equal
terms are added. Where the innermost loop does not branch, what it adds is added to the wide sum as
a whole, so that lanes stay of 32 bits, else term by term. A long innermost loop is cut into blocks,
each of which is added to a wide sum (`blocks_of`): in lanes by `vector_sums`, else by
`accumulators`. A short one, as of a row of a sparse matrix, is as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from codegen.build import add, block, cast, minimum, sub, zero
from codegen.ir import (
    Assign,
    Block,
    Comment,
    Const,
    Declare,
    Expr,
    For,
    Function,
    Load,
    LoopKind,
    Module,
    Reduction,
    Role,
    Store,
    Var,
    While,
)
from codegen.names import Names
from codegen.passes.vectorize import is_scalar_call, stride, strides_in
from codegen.records import dataclass
from codegen.tree import children, find, map_children, walk
from codegen.types import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, ScalarType
from codegen.variables import names_beside, rename, substitute

WIDER: Mapping[str, ScalarType] = {FLOAT32.name: FLOAT64, COMPLEX64.name: COMPLEX128}
"""The type in which sums of a type are added up."""
BLOCK = 1024
"""Iterations of a block: sums of its lanes are no longer than some tens, and to add the lanes is
nothing beside them."""
SHORT = 64
"""Iterations up to which a loop of a fixed number is as if it were written out."""

Loop = For | While


def widen_sums(module: Module) -> Module:
    """Return `module` with its sums of 32 bits added up in 64."""
    return map_children(module, lambda f: _function(f) if isinstance(f, Function) else f)


def wider(type: ScalarType) -> ScalarType | None:
    """Return the type that sums of a type are added up in; None where that is their own."""
    return WIDER.get(type.name)


def _function(function: Function) -> Function:
    sums = _Sums()
    sums.look(function.body, ())
    wide = [var for var in sums.terms if sums.is_wide(var)]
    if not wide:
        return function
    names = names_beside(function)
    totals = {var: Var(names.fresh(f"{var.name}_wide"), WIDER[var.type.name]) for var in wide}
    body_ = _Widened(totals, names).of(function.body)
    reads: dict[Var, Expr] = {var: cast(var.type, total) for var, total in totals.items()}
    return replace(function, body=substitute(body_, reads))


@dataclass(slots=True)
class _Sums:
    """Where variables of 32 bits are declared and added to.

    outside  the loops around the declaration of each, by their number
    terms    the loops around each addition, from that of the declaration inwards
    excluded   variables that are assigned otherwise, too
    """

    outside: dict[Var, int] = field(default_factory=dict)
    terms: dict[Var, list[tuple[Loop, ...]]] = field(default_factory=dict)
    excluded: set[Var] = field(default_factory=set)

    def look(self, node: Any, loops: tuple[Loop, ...]) -> None:
        """Note the declarations and assignments below a node."""
        if isinstance(node, Declare) and node.var.type.name in WIDER:
            self.outside[node.var] = len(loops)
        elif isinstance(node, Assign) and node.var in self.outside:
            if node.op != "+":
                self.excluded.add(node.var)
            self.terms.setdefault(node.var, []).append(loops[self.outside[node.var] :])
        elif isinstance(node, For) and not node.is_vector:
            self.excluded.update(reduction.var for reduction in node.reductions)
        if isinstance(node, For | While):
            loops = (*loops, node)
        if isinstance(node, Expr):
            return
        for child in children(node):
            self.look(child, loops)

    def is_wide(self, var: Var) -> bool:
        """Tell whether a variable is a sum of many terms, but for that of one plain loop."""
        laned = var.type.kind != "complex"
        return var not in self.excluded and any(
            _is_long_sum(loops_, laned) for loops_ in self.terms[var]
        )


def _is_long_sum(loops: Sequence[Loop], laned: bool) -> bool:
    """Tell whether loops make a long sum that is not cut into blocks."""
    long_loops = [loop_ for loop_ in loops if not _is_short(loop_)]
    if not long_loops:
        return False
    return len(long_loops) > 1 or not (
        is_plain(long_loops[-1]) and (laned or _is_indirect(long_loops[-1]))
    )


def _is_indirect(loop: Loop) -> bool:
    """Tell whether a loop reads an array at places that are read, or far from each other."""
    assert isinstance(loop, For)
    strides = strides_in(loop)
    return any(stride(load.index, strides) not in (0, 1) for load in find(loop.body, Load))


def _is_short(loop: Loop) -> bool:
    if not isinstance(loop, For):
        return False
    length = sub(loop.stop, loop.start)
    return isinstance(length, Const) and length.value.real <= SHORT


def is_plain(loop: Loop) -> bool:
    """Tell whether a loop adds up without branches and calls that no lanes have."""
    if not isinstance(loop, For) or loop.kind not in (LoopKind.SERIAL, LoopKind.VECTOR):
        return False
    return _is_straight(loop.body) and not any(map(is_scalar_call, walk(loop.body)))


def _is_straight(body: Block) -> bool:
    return all(
        isinstance(stmt, Declare | Assign | Store | Comment)
        or (isinstance(stmt, For) and _is_short(stmt) and _is_straight(stmt.body))
        for stmt in body.body
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Widened:
    """Statements with wide sums.

    totals  the wide variable of each
    """

    totals: Mapping[Var, Var]
    names: Names

    def of(self, node: Any) -> Any:
        """Return a node with wide sums in it."""
        if isinstance(node, Expr):
            return node
        match node:
            case Declare(var, value) if var in self.totals:
                total = self.totals[var]
                return replace(node, var=total, value=cast(total.type, value))
            case Assign(var, value) if var in self.totals:
                total = self.totals[var]
                return replace(node, var=total, value=cast(total.type, value))
            case For() if self._has_sum_of_its_own(node):
                return self._by_itself(node)
        return map_children(node, self.of)

    def _has_sum_of_its_own(self, loop: For) -> bool:
        """Tell whether a loop's sum is added as a unit; complex numbers have no lanes to lose.
        Complex numbers have no lanes to lose.
        """
        if loop.is_vector:
            return True
        laned = all(assign.var.type.kind != "complex" for assign in find(loop.body, Assign))
        return is_plain(loop) and not _is_short(loop) and (laned or _is_indirect(loop))

    def _by_itself(self, loop: For) -> For | Block:
        """Return a loop that adds to variables of its own, which are then added to the wide
        ones."""
        assigned = (assign.var for assign in walk(loop.body) if isinstance(assign, Assign))
        sums = dict.fromkeys(var for var in assigned if var in self.totals)
        if not sums:
            return loop
        partials = {var: Var(self.names.fresh(var.name), var.type) for var in sums}
        return block(
            *(Declare(total, zero(total.type), role=Role.VALUES) for total in partials.values()),
            replace(
                loop,
                body=rename(loop.body, partials),
                reductions=tuple(
                    Reduction(r.op, partials.get(r.var, r.var)) for r in loop.reductions
                ),
            ),
            *(
                Assign(self.totals[var], cast(self.totals[var].type, total), "+", Role.VALUES)
                for var, total in partials.items()
            ),
        )


def blocks_of(
    loop: For, lanes: Sequence[Mapping[Var, Var]], names: Names, size: int = BLOCK
) -> Block:
    """Cut a loop of sums into blocks, each of which is added to a wide sum.

    lanes  the variables that the loop adds to, for each sum that they are part of: several of them
           where the loop has several sums side by side
    """
    sums = tuple(dict.fromkeys(var for lane in lanes for var in lane))
    types = {var: wider(var.type) or var.type for var in sums}
    totals = {var: Var(names.fresh(f"{var.name}_wide"), types[var]) for var in sums}
    begin, end, stop = (Var(names.fresh(name)) for name in ("begin", "end", "stop"))
    part = block(
        Declare(end, minimum(add(begin, size), stop), constant=True),
        *(Declare(lane_sum, zero(lane_sum.type)) for lane in lanes for lane_sum in lane.values()),
        replace(loop, start=begin, stop=end),
        *(
            Assign(totals[var], cast(types[var], add(*(lane[var] for lane in lanes))), "+")
            for var in sums
        ),
    )
    return block(
        Declare(stop, loop.stop, constant=True),
        *(Declare(total, zero(total.type)) for total in totals.values()),
        For(begin, loop.start, stop, part, size),
        *(Assign(var, cast(var.type, total), "+") for var, total in totals.items()),
    )
