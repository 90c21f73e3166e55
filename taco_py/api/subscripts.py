"""`einsum` the long way: from subscripts to an assignment that is computed."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from taco_py.api.arguments import Settings
from taco_py.api.compute import compute
from taco_py.api.tensor import as_data
from taco_py.diagnostics.errors import NotationError
from taco_py.notation.einsum import drop_broadcast, parse_einsum, split_operands
from taco_py.notation.nodes import Assignment
from taco_py.storage.tensor_data import Array


@lru_cache(maxsize=1024)
def _parsed(subscripts: str, orders: tuple[int, ...]) -> Assignment:
    return parse_einsum(subscripts, orders)


def contract(
    operands: tuple[Any, ...],
    optimize: Any,
    settings: Settings,
    out: Array | None,
    key: tuple[object, ...] | None,
) -> Any:
    """The einsum of its positional arguments.

    key  under which to remember the short way for calls like this one
    """
    subscripts, tensors = split_operands(operands)
    datas = [as_data(t) for t in tensors]
    orders = tuple(len(d.shape) for d in datas)
    if isinstance(subscripts, str):
        assignment = _parsed(subscripts, orders)
    else:
        assignment = parse_einsum(subscripts, orders)
    named = {f"op{k}": t for k, t in enumerate(tensors)}
    shapes = {f"op{k}": d.shape for k, d in enumerate(datas)}
    broadcast = drop_broadcast(assignment, shapes)
    path, whole = _optimize(optimize)
    dtype = settings.dtype
    if dtype is None and len({d.dtype for d in datas}) > 1:
        dtype = np.result_type(*(d.dtype for d in datas))  # NumPy converts before it computes
    settings = replace(settings, dtype=dtype, path=path, contract=whole)
    return compute(broadcast.assignment, named, settings, out, broadcast.squeezed, key)


def _optimize(optimize: Any) -> tuple[tuple[tuple[int, ...], ...] | None, bool]:
    """The pairs of an explicit path, or None, and whether products may be taken apart."""
    if optimize is None or optimize is True or optimize in ("greedy", "optimal", "auto"):
        return None, True
    if optimize is False:
        return None, False
    if isinstance(optimize, list | tuple):
        pairs = [p for p in optimize if not isinstance(p, str)]
        if all(isinstance(p, list | tuple) and all(isinstance(k, int) for k in p) for p in pairs):
            return tuple(tuple(p) for p in pairs), True
        if len(optimize) == 2 and optimize[0] in ("greedy", "optimal"):
            return None, True
    raise NotationError(
        f"Expected optimize to be a bool, 'greedy', 'optimal' or a list of pairs, found "
        f"{optimize!r}",
        hint='as numpy.einsum_path returns it: ["einsum_path", (0, 1), (0, 1)]',
    )
