"""What schedules promise about ranges: tested before anything else, and then relied on.

bound(i,b,100,MaxExact)      expect n_i == 100, and 100 in place of n_i from there on
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen import build
from codegen.ir import Block, Const, Expect, Stmt, Var
from codegen.variables import substitute
from taco_py.lower.environment import EMPTY_SCOPE, Environment
from taco_py.lower.ranges import Ranges, open_positions
from taco_py.provenance.relations import Bound, BoundKind


def rely_on_promises(env: Environment, code: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """`code` behind the tests of what is promised, with the sizes that are."""
    sizes: dict[Var, Const] = {}
    for relation in env.provenance.relations:
        if isinstance(relation, Bound):
            yield from _test(env, relation)
            size = env.sizes.get(relation.parent)
            if isinstance(size, Var) and relation.kind is BoundKind.MAX_EXACT:
                sizes[size] = build.const(relation.value)
    yield from substitute(Block(code), sizes).body


def _test(env: Environment, bound: Bound) -> Iterator[Stmt]:
    scope, code = EMPTY_SCOPE, list[Stmt]()
    if env.provenance.positions_above(bound.parent) is not None:
        scope, code = open_positions(env, scope, bound.parent)
    held = Expect(bound.holds(Ranges(env, scope).whole(bound.parent)))
    yield build.block(*code, held) if code else held
