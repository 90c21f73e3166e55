"""A sum of products over a triangle, as contractions of rectangles.

    for i in 0..N, j in 0..i + 1, k: C[i, j] += A[i, k] * B[j, k]

    for i0 in 0..N step edge, i1 = min(i0 + edge, N):
      C[i0..i1, 0..i0+1] += A * B                   columns of all rows i0..i1, in one call
      corner = A * B for i0..i1, j in i0+1..i1      columns of some rows only, in another call
      for i in i0..i1, j in i0+1..i+1: C[i, j] += corner[i - i0, j - i0 - 1]

Every row and every column of the corner belongs to some instance, so that no other element is read.
"""

from __future__ import annotations

from collections.abc import Mapping

from codegen.build import add, block, const, load, lt, maximum, minimum, mul, sub, zero
from codegen.ir import (
    Allocate,
    Array,
    Block,
    Declare,
    Expr,
    Fill,
    For,
    If,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.records import dataclass
from polyhedral.affine import Affine
from polyhedral.model import Loop
from polyhedral.products.blocked import LINE
from polyhedral.products.contraction_code import Data
from polyhedral.programs.product_call import Caller, highest, lowest, start, value_of


@dataclass(frozen=True, slots=True, eq=False)
class _Strip:
    """The strip loop from `first` to `end`, the loop that is cut, and the `fixed` other loops."""

    caller: Caller
    strip: Loop
    cut: Loop
    first: Var
    end: Var
    corner: Array
    fixed: Mapping[str, tuple[Expr, Expr]]

    def part(self, low: Expr, high: Expr, into: Data | None = None) -> Stmt:
        """Return the product for `low` to `high` of the loop that is cut."""
        lower = {name: begin for name, (begin, _) in self.fixed.items()}
        sizes = {name: size for name, (_, size) in self.fixed.items()}
        lower |= {self.strip.name: self.first, self.cut.name: low}
        sizes |= {self.strip.name: sub(self.end, self.first), self.cut.name: sub(high, low)}
        return self.caller.call(lower, sizes, into)


def in_strips(caller: Caller) -> Block:
    """Return the calls for all instances of a statement whose loops are a triangle."""
    region, names, values = caller.plan.region, caller.names, caller.parameters
    strip, cut = region.loop(region.strip), region.loop(region.cut)
    first, end = Var(names.fresh(f"{strip.name}_first")), Var(names.fresh(f"{strip.name}_end"))
    corner = Array(names.fresh("corner"), caller.plan.element, Storage.LOCAL)
    fixed = {
        loop.name: (lowest(loop, values), sub(highest(loop, values), lowest(loop, values)))
        for loop in region.loops
        if loop not in (strip, cut)
    }
    edge = caller.plan.edge
    one = _Strip(caller, strip, cut, first, end, corner, fixed)
    last = highest(strip, values)
    body = block(Declare(end, minimum(add(first, edge), last), True), *_parts(one))
    loop = For(first, lowest(strip, values), last, body, edge)
    (_, depth) = fixed[caller.plan.contraction.contraction.depth[0]]
    room = Allocate(corner, const(edge * edge), align=LINE)
    return block(If(lt(0, depth), block(room, loop)))


def _parts(one: _Strip) -> list[Stmt]:
    """Return the corner before the columns of all rows, their product, and the corner after it."""
    lower, upper = one.cut.lower, one.cut.upper
    names = one.caller.names
    low, begin, stop, high = (
        Var(names.fresh(f"{one.cut.name}_{name}")) for name in ("low", "begin", "stop", "high")
    )
    return [
        Declare(low, maximum(*(_at(one, bound, least=True) for bound in lower)), True),
        Declare(high, minimum(*(_at(one, bound, least=False) for bound in upper)), True),
        Declare(begin, minimum(*(high, maximum(*(_at(one, b, least=False) for b in lower)))), True),
        Declare(stop, maximum(begin, minimum(*(_at(one, b, least=True) for b in upper))), True),
        one.part(begin, stop),
        *([_corner(one, low, begin)] if _leans(one, lower) else []),
        *([_corner(one, stop, high)] if _leans(one, upper) else []),
    ]


def _leans(one: _Strip, bounds: tuple[Affine, ...]) -> bool:
    return any(bound.coefficient(one.strip.name) for bound in bounds)


def _at(one: _Strip, bound: Affine, least: bool) -> Expr:
    """Return the least or the greatest value of `bound` in the strip."""
    rises = bound.coefficient(one.strip.name) > 0
    end = one.first if rises == least else sub(one.end, 1)
    return value_of(bound, {**one.caller.parameters, one.strip.name: end})


def _corner(one: _Strip, low: Expr, high: Expr) -> If:
    """Return the code for columns that not all rows have.

    Their product is computed separately, and each row gets its columns.
    """
    caller, names = one.caller, one.caller.names
    product = caller.plan.contraction.contraction
    strides: dict[str, Expr] = {
        product.rows[0]: const(caller.plan.edge),
        product.columns[0]: const(1),
    }
    data = Data(one.corner, strides)
    row, column = Var(names.fresh(one.strip.name)), Var(names.fresh(one.cut.name))
    values = {**caller.parameters, one.strip.name: row, one.cut.name: column}
    use = caller.plan.uses[0]
    into = caller.arguments.arrays[use.array]
    place = add(
        mul(sub(row, one.first), strides[one.strip.name]),
        mul(sub(column, low), strides[one.cut.name]),
    )
    add_element = Store(into.array, start(use, into, values), load(one.corner, place), "+")
    bounds = (maximum(low, lowest(one.cut, values)), minimum(high, highest(one.cut, values)))
    inner = For(column, *bounds, block(add_element))
    clear = Fill(one.corner, const(0), const(caller.plan.edge**2), zero(one.corner.element))
    rows = For(row, one.first, one.end, block(inner))
    return If(lt(low, high), block(clear, one.part(low, high, data), rows))
