"""Hold the rows of a block of the result in variables while a sum runs over blocks.

    Y[b:+3] = 0                            y_0 = y_1 = y_2 = 0
    for p in first..last:                  for p in first..last:
      j = crd[p]                             j = crd[p]
      for r in 0..3:                  ->     t = A[9*p] * x[3*j] + A[9*p + 1] * x[3*j + 1] + …
        t = 0                                y_0 += t
        for c in 0..3:                       t_1 = A[9*p + 3] * x[3*j] + …
          t += A[(3*p + r)*3 + c]            y_1 += t_1
               * x[3*j + c]                  …
        Y[b + r] += t                      Y[b] = y_0; Y[b + 1] = y_1; Y[b + 2] = y_2

Each block of A is read once, from its first byte to its last, what it is multiplied by is loaded
once for all of its rows, and the sums of the rows do not wait for each other.

Legal when the loops inside the sum have constant bounds, when all it changes are elements of one
array that it does not read, at places which depend on no variable of the sum and differ by
constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Any

from codegen.build import add, block, sub
from codegen.ir import (
    Array,
    Assign,
    Block,
    Comment,
    Const,
    Declare,
    Expr,
    Fill,
    For,
    Function,
    Load,
    Module,
    Stmt,
    Store,
    Var,
)
from codegen.names import Names
from codegen.passes.panels import columns_of
from codegen.passes.simplify import simplify_tree
from codegen.records import dataclass
from codegen.tree import find, map_children, map_fields
from codegen.types import INT64
from codegen.variables import (
    assigned_vars,
    declared_vars,
    free_vars,
    names_beside,
    rename,
    substitute,
)

MOST_TURNS = 16
"""The longest loop that is written out."""
MOST_STATEMENTS = 160
"""The most statements that a sum has, written out."""
MOST_HELD = 16
"""The most elements of the result that are held: more do not stay in registers."""


def hold_blocks(module: Module) -> Module:
    """Return `module` with the blocks of results in variables wherever the pattern above occurs."""
    return map_children(module, lambda f: _function(f) if isinstance(f, Function) else f)


def _function(function: Function) -> Function:
    names = names_beside(function)
    return map_fields(
        function, lambda name, value: _below(value, names) if name == "body" else value
    )


def _below(node: Any, names: Names) -> Any:
    """Return `node` with each sum that matches changed."""
    if not isinstance(node, Block):
        return map_children(node, lambda child: _below(child, names))
    body: list[Stmt] = []
    for stmt in node.body:
        block_sum = match_sum(stmt, names) if isinstance(stmt, For) else None
        if block_sum is None:
            body.append(_below(stmt, names))
            continue
        fill = _fill_before(body, block_sum)
        body = [other for other in body if other is not fill]
        body += _accumulated(block_sum, fill, names)
    same = len(body) == len(node.body) and all(map(is_, body, node.body))
    return node if same else map_fields(node, lambda _, old: tuple(body))


@dataclass(frozen=True, slots=True)
class BlockSum:
    """A sum over blocks: its loop, the statements of a turn, and the places that these add to.

    base     the first place; the others are as many elements beyond it as `offsets` say
    offsets  of each store, in order
    """

    root: For
    body: tuple[Stmt, ...]
    array: Array
    base: Expr
    offsets: tuple[int, ...]


def match_sum(root: For, names: Names) -> BlockSum | None:
    """Return the sum whose loop is `root`; None where it is no sum over blocks."""
    loops = [stmt for stmt in root.body.body if isinstance(stmt, For)]
    if not root.is_serial or root.unroll or not loops:
        return None
    if columns_of(root) is not None:
        return None  # one loop in another down to one store: rows are panels, or vectors
    turns = Turns(names)
    body = turns.written_out(root.body, {})
    if body is None:
        return None
    stores = [stmt for stmt in body if isinstance(stmt, Store)]
    arrays = {store.array for store in stores}
    if len(arrays) != 1 or any(store.op != "+" for store in stores):
        return None
    (array,) = arrays
    if array.element.kind == "bool" or any(load.array == array for load in find(root, Load)):
        return None
    places = _places(root, body, stores)
    if places is None:
        return None
    base = places[0]
    offsets = [simplify_tree(sub(place, base)) for place in places]
    offsets_ = tuple(
        int(constant.value.real) for constant in offsets if isinstance(constant, Const)
    )
    if len(offsets_) < len(offsets) or len({*offsets_}) > MOST_HELD or len({*offsets_}) < 2:
        return None
    return BlockSum(root, tuple(body), array, base, offsets_)


def _places(root: For, body: Sequence[Stmt], stores: Sequence[Store]) -> list[Expr] | None:
    """Return the places that stores add to, without variables of the sum; None where they depend on
    it."""
    assigned = assigned_vars(root)
    values: dict[Var, Expr] = {}
    places: list[Expr] = []
    for stmt in body:
        if isinstance(stmt, Declare) and stmt.var not in assigned:
            values[stmt.var] = substitute(stmt.value, values)
        if isinstance(stmt, Store):
            places.append(simplify_tree(substitute(stmt.index, values)))
    inner = {root.var} | declared_vars(Block(tuple(body)))
    return None if any(free_vars(place) & inner for place in places) else places


class Turns:
    """Writes out the turns of loops with constant bounds, with new names for what they declare."""

    def __init__(self, names: Names, keeps: Callable[[For], bool] = lambda _: False) -> None:
        """Store the supply of names."""
        self.names = names
        self.keeps = keeps
        self.count = 0

    def written_out(self, body: Block, values: Mapping[Var, Expr]) -> list[Stmt] | None:
        """Return the statements of a body one after another; None where it has others than
        these."""
        statements: list[Stmt] = []
        for stmt in body.body:
            match stmt:
                case Comment():
                    continue
                case Declare() | Assign() | Store():
                    self.count += 1
                    statements.append(simplify_tree(substitute(stmt, values)))
                case For():
                    turns = self._turns(stmt, values)
                    if turns is None:
                        return None
                    statements += turns
                case _:
                    return None
            if self.count > MOST_STATEMENTS:
                return None
        return statements

    def _turns(self, loop: For, values: Mapping[Var, Expr]) -> list[Stmt] | None:
        start, stop = loop.start, loop.stop
        if not (isinstance(start, Const) and isinstance(stop, Const)):
            self.count += 1
            return [simplify_tree(substitute(loop, values))] if self.keeps(loop) else None
        if not loop.is_serial or loop.step != 1 or loop.unroll:
            return None
        first, last = int(start.value.real), int(stop.value.real)
        if not 0 < last - first <= MOST_TURNS:
            return None
        turns: list[Stmt] = []
        for turn in range(first, last):
            body = loop.body
            if turn > first:
                fresh = {v: Var(self.names.fresh(v.name), v.type) for v in _declared(body)}
                body = rename(body, fresh)
            inner = self.written_out(body, {**values, loop.var: Const(turn, loop.var.type)})
            if inner is None:
                return None
            turns += inner
        return turns


def _declared(body: Block) -> list[Var]:
    """Return the variables that a body declares, in order."""
    return list(dict.fromkeys(stmt.var for stmt in find(body, Declare)))


def _fill_before(body: Sequence[Stmt], block_sum: BlockSum) -> Fill | None:
    """Return the last statement of `body` before declarations that fills exactly the block."""
    for stmt in reversed(body):
        match stmt:
            case Comment() | Declare():
                continue
            case Fill(array=array, start=start, count=Const(value=count)) if (
                array == block_sum.array
            ):
                first = simplify_tree(sub(_least(block_sum), start))
                is_full = len({*block_sum.offsets}) == count
                return stmt if first == Const(0, INT64) and is_full else None
        return None
    return None


def _least(block_sum: BlockSum) -> Expr:
    return simplify_tree(add(block_sum.base, min(block_sum.offsets)))


def _accumulated(block_sum: BlockSum, fill: Fill | None, names: Names) -> list[Stmt]:
    """Return the sum over blocks in variables, with their stores after it."""
    element = block_sum.array.element
    sums = {
        offset: Var(names.fresh(f"{block_sum.array.name}_{number}"), element)
        for number, offset in enumerate(sorted({*block_sum.offsets}))
    }
    places = {offset: simplify_tree(add(block_sum.base, offset)) for offset in sums}
    stores = iter(block_sum.offsets)
    roles = [stmt.role for stmt in block_sum.body if isinstance(stmt, Store)]
    role = roles[0]
    body = [
        Assign(sums[next(stores)], stmt.value, "+", stmt.role) if isinstance(stmt, Store) else stmt
        for stmt in block_sum.body
    ]
    before = [
        Declare(
            var, Load(block_sum.array, places[offset]) if fill is None else fill.value, role=role
        )
        for offset, var in sums.items()
    ]
    root = block_sum.root
    elements = f"{len(sums)} elements of {block_sum.array.name}"
    note = f"{elements} in variables while the sum over {root.var.name} runs"
    loop = For(root.var, root.start, root.stop, block(*body), root.step, note=note)
    after = [Store(block_sum.array, places[offset], var, role=role) for offset, var in sums.items()]
    return [*before, loop, *after]
