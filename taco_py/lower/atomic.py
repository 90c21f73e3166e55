"""Updates of the result by several threads at once.

Threads that share a range of an operand's entries in order meet on the rows that such a range
begins or ends in the middle of, and on no others:

    if i is the first or the last row of the tile:  atomic y[i] += t
    else:                                           y[i] += t
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen import build
from codegen.ir import FALSE, TRUE, AtomicStore, Expr, If, Stmt, Store
from taco_py.lower.environment import Environment, Scope
from taco_py.lower.ranges import chain
from taco_py.notation.nodes import Access
from taco_py.provenance.relations import Pos


def add_atomically(
    env: Environment, scope: Scope, shared: str, update: AtomicStore
) -> Iterator[Stmt]:
    """`update` inside a loop over `shared`, a plain store where no other thread comes as well."""
    met = _met_by_others(env, scope, env.provenance.positions_above(shared))
    plain = Store(update.array, update.index, update.value, update.op, update.role)
    if met == TRUE:
        yield update
    elif met == FALSE:
        yield plain
    else:
        yield If(met, build.block(update), build.block(plain))


def _met_by_others(env: Environment, scope: Scope, pos: Pos | None) -> Expr:
    """Whether threads with other tiles of `pos` may add to the element that is known here."""
    if pos is None:
        return TRUE
    access, levels = chain(env, pos)
    form = env.tensors[access.tensor].type.format
    indices = [access.indices[form.mode_order[level]] for level in levels]
    common = [
        level for level, index in zip(levels, indices, strict=True) if index in env.target.indices
    ]
    in_order = common == list(levels[: len(common)])
    unique = all(form.levels[level].unique for level in common)
    if not common or not in_order or not unique or (access, levels[-1]) not in scope.left:
        return TRUE
    return _at_edge(scope, access, common[-1], levels[-1])


def _at_edge(scope: Scope, access: Access, level: int, last: int) -> Expr:
    """Whether a tile of positions of `last` begins or ends in the middle of what is below this
    position of `level`."""
    if level == last:
        return FALSE
    position = scope.position(access, level)
    left = scope.left[access, level]
    if position is None:
        return TRUE
    return build.or_(build.eq(position, left.lo), build.eq(position, build.sub(left.hi, 1)))
