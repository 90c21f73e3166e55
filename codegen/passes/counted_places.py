"""Count the places that a loop appends at by its own variable, where it computes long functions.

    for p in a..b:                     const ahead = q - a
      y[q] = exp(x[p])         ->      for p in a..b:
      q++                                y[p + ahead] = exp(x[p])
                                       q += max(b - a, 0)

No variable is then carried from one iteration to the next, and the loop may take vector lanes
(`vectorize`). Other loops are left: what they append is moved faster than it is computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from codegen.build import add, block, const, maximum, sub
from codegen.infer import c_function
from codegen.ir import (
    Apply,
    Assign,
    Block,
    Comment,
    Const,
    Declare,
    For,
    Function,
    Module,
    Store,
    Var,
)
from codegen.names import Names
from codegen.passes.vectorize import lanes_of
from codegen.tree import find, map_children, rewrite
from codegen.variables import declared_vars, names_beside, substitute, variables_read


def count_places(module: Module) -> Module:
    """Return `module` with loops over long functions that append counted by their variables."""
    return map_children(module, lambda f: _function(f) if isinstance(f, Function) else f)


def _function(function: Function) -> Function:
    names = names_beside(function)
    return rewrite(function, lambda node: _counted(node, names))


def _counted(node: Any, names: Names) -> Any:
    if not isinstance(node, For) or not node.is_serial or node.step != 1:
        return node
    if node.unroll or not any(c_function(call).is_long for call in find(node.body, Apply)):
        return node
    counted = counted_by_loop(node, names)
    if counted is None:
        return node
    before, loop, after = counted
    return node if lanes_of(loop) is None else block(*before, loop, *after)


def counted_by_loop(
    node: For, names: Names
) -> tuple[tuple[Declare, ...], For, tuple[Assign, ...]] | None:
    """Return a loop that appends, with positions computed from its own variable; None for
    others.
    """
    places = tuple(_places(node))
    if not places:
        return None
    body = tuple(s for s in node.body.body if not (isinstance(s, Assign) and s.var in places))
    ahead = {place: Var(names.fresh(f"{place.name}_ahead"), place.type) for place in places}
    at = {place: add(node.var, ahead[place]) for place in places}
    loop = replace(node, body=Block(tuple(substitute(stmt, at) for stmt in body)))
    before = tuple(Declare(ahead[p], sub(p, node.start), constant=True) for p in places)
    rounds = maximum(sub(node.stop, node.start), const(0))
    return before, loop, tuple(Assign(place, rounds, "+") for place in places)


def _places(loop: For) -> Iterator[Var]:
    """Yield the variables that each iteration adds one to, after all else that it does."""
    if not all(isinstance(s, Declare | Assign | Store | Comment) for s in loop.body.body):
        return
    local = declared_vars(loop.body)
    limits = variables_read(block(Declare(loop.var, add(loop.start, loop.stop))))
    ends = list(loop.body.body)
    while ends and isinstance(last := ends[-1], Assign) and last.op == "+":
        ends.pop()
        is_single = sum(assign.var == last.var for assign in find(loop.body, Assign)) == 1
        one = isinstance(last.value, Const) and last.value.value == 1
        is_counter = last.var.type.is_integer and last.var not in local and last.var not in limits
        if is_single and one and is_counter:
            yield last.var
