"""Three functions out of one: evaluate, assemble the structure only, compute the values only.

    evaluate                           assemble                    compute
    for p in 0..n:                     for p in 0..n:              for p in 0..n:
      reserve crd q + 1    !assembly     reserve crd q + 1           vals[q] = a[p]
      crd[q] = j           !assembly     crd[q] = j                  q += 1
      reserve vals q + 1   !values       q += 1
      vals[q] = a[p]       !values
      q += 1

So a fixed pattern is recomputed without assembly (Kjolstad et al. 2017, section 6.3).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from codegen.ir import (
    Block,
    Function,
    Role,
    Team,
)
from codegen.passes.dead_code import clean
from codegen.passes.parameters import prune
from codegen.passes.simplify import simplify_tree
from codegen.tree import map_fields, rewrite

PHASES = ("evaluate", "assemble", "compute")
_DROPPED = {"evaluate": None, "assemble": Role.VALUES, "compute": Role.ASSEMBLY}


def select_phase(function: Function, phase: str, name: str) -> Function:
    """The part of `function` that `phase` needs, as a function called `name`.

    In `compute` the values still grow where they have not the room: on operands of another pattern
    a kernel then makes too many or too few values, for its caller to notice, but writes nowhere
    else. Raises ValueError for an unknown phase.
    """
    if phase not in PHASES:
        raise ValueError(f"Expected a phase out of {', '.join(PHASES)}, found {phase!r}")
    role = _DROPPED[phase]
    body = function.body if role is None else without_role(function.body, role)
    named = Function(name, function.arrays, function.scalars, body, function.threaded)
    if phase == "evaluate":
        return named
    return prune(clean(simplify_tree(named)))


def without_role(body: Block, role: Role) -> Block:
    """`body` without the statements of this role, and without parts of arrays that have it."""

    def keep(node: Any) -> Any:
        match node:
            case Block(body=statements):
                return map_fields(node, lambda _, old: _other(statements, role))
            case Team(parts=parts):
                return replace(node, parts=_other(parts, role))
        return node

    return rewrite(body, keep)


def _other(nodes: tuple[Any, ...], role: Role) -> tuple[Any, ...]:
    """Those of `nodes` that have another role or none."""
    kept = tuple(node for node in nodes if getattr(node, "role", None) is not role)
    return nodes if len(kept) == len(nodes) else kept
