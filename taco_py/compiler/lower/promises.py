"""Conditions on ranges that schedules promise, or need: tested first, and then relied on.

bound(i,b,100,MaxExact)      expect n_i == 100, and 100 in place of n_i from there on
fuse(i,j,f), split(f,…)      expect n_i <= 2^62 / n_j
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen import build
from codegen.ir import Block, Const, Expect, Stmt, Var
from codegen.variables import substitute
from taco_py.compiler.lower.environment import EMPTY_SCOPE, Environment
from taco_py.compiler.lower.ranges import Ranges, open_positions
from taco_py.language.provenance.relations import Bound, BoundKind, Fuse


def rely_on_promises(env: Environment, code: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Yield tests of the promised conditions, then `code` with the promised sizes."""
    for fuse in env.provenance.counted_fusions:
        yield from _test(env, fuse)
    sizes: dict[Var, Const] = {}
    for relation in env.provenance.relations:
        if isinstance(relation, Bound):
            yield from _test(env, relation)
            size = env.sizes.get(relation.parent)
            if isinstance(size, Var) and relation.kind is BoundKind.MAX_EXACT:
                sizes[size] = build.const(relation.value)
    yield from substitute(Block(code), sizes).body


def _test(env: Environment, relation: Bound | Fuse) -> Iterator[Stmt]:
    scope, code = EMPTY_SCOPE, list[Stmt]()
    for parent in relation.parents:
        if env.provenance.positions_above(parent) is not None:
            scope, more = open_positions(env, scope, parent)
            code += more
    ranges = map(Ranges(env, scope).full, relation.parents)
    condition = (
        relation.countable(*ranges) if isinstance(relation, Fuse) else relation.holds(*ranges)
    )
    test = Expect(condition)
    if condition != build.const(True):
        yield build.block(*code, test) if code else test
