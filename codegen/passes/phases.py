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

from typing import Any

from codegen.ir import (
    Array,
    Block,
    Fill,
    Function,
    Reserve,
    Role,
    SetLength,
    Sort,
    Storage,
    Store,
    VectorStore,
)
from codegen.passes.dead_code import clean
from codegen.passes.parameters import prune
from codegen.passes.simplify import simplify_tree
from codegen.tree import rewrite, walk

PHASES = ("evaluate", "assemble", "compute")
_DROPPED = {"evaluate": None, "assemble": Role.VALUES, "compute": Role.ASSEMBLY}


def select_phase(function: Function, phase: str, name: str) -> Function:
    """The part of `function` that `phase` needs, as a function called `name`.

    In `compute` the result's arrays have their final size: a growing array that is still written
    becomes an OUTPUT, and one that is only read an INPUT. Raises ValueError for an unknown phase.
    """
    if phase not in PHASES:
        raise ValueError(f"Expected a phase out of {', '.join(PHASES)}, found {phase!r}")
    role = _DROPPED[phase]
    body = function.body if role is None else _without(function.body, role)
    named = Function(name, function.arrays, function.scalars, body, function.threaded)
    if phase == "evaluate":
        return named
    if phase == "compute":
        named = _with_fixed_sizes(named)
    return prune(clean(simplify_tree(named)))


def _without(body: Block, role: Role) -> Block:
    return rewrite(
        body,
        lambda node: (
            _keep(node, lambda s: getattr(s, "role", None) is not role)
            if isinstance(node, Block)
            else node
        ),
    )


def _keep(block: Block, wanted: Any) -> Block:
    body = tuple(stmt for stmt in block.body if wanted(stmt))
    return block if len(body) == len(block.body) else Block(body)


def _with_fixed_sizes(function: Function) -> Function:
    """`function` on arrays that someone made beforehand, at their final size."""
    written = {
        node.array
        for node in walk(function.body)
        if isinstance(node, Store | VectorStore | Fill | Sort)
    }

    def fixed(node: Any) -> Any:
        match node:
            case Block():
                return _keep(node, lambda s: not _resizes(s))
            case Array(storage=Storage.GROWING):
                return _as(node, Storage.OUTPUT if node in written else Storage.INPUT)
            case Array(storage=Storage.OUTPUT) if node not in written:
                return _as(node, Storage.INPUT)
        return node

    return rewrite(function, fixed)


def _as(array: Array, storage: Storage) -> Array:
    return Array(array.name, array.element, storage)


def _resizes(stmt: object) -> bool:
    """Whether `stmt` resizes a parameter. (Children come first: GROWING is already OUTPUT here.)"""
    match stmt:
        case SetLength():
            return True
        case Reserve(array=array):
            return array.storage is not Storage.LOCAL
    return False
