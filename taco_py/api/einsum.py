"""`einsum` with NumPy's signature and meaning, over sparse and dense operands."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from taco_py.api.evaluate import (
    COUNTS,
    Settings,
    as_schedule,
    check_static,
    check_threads,
    compute,
)
from taco_py.api.signatures import call_key
from taco_py.api.tensor import as_data
from taco_py.diagnostics.errors import NotationError
from taco_py.driver import KERNELS
from taco_py.formats import Format
from taco_py.notation.einsum import drop_broadcast, parse_einsum, split_operands
from taco_py.notation.nodes import Assignment
from taco_py.schedule.commands import Schedule
from taco_py.storage.tensor_data import Array


@lru_cache(maxsize=1024)
def _parsed(subscripts: str, orders: tuple[int, ...]) -> Assignment:
    return parse_einsum(subscripts, orders)


def einsum(
    *operands: Any,
    out: Array | None = None,
    dtype: DTypeLike | None = None,
    casting: str = "safe",
    optimize: Any = None,
    format: Format | str | None = None,
    schedule: Schedule | str | None = None,
    threads: int | None = None,
    static: Mapping[str, int] | None = None,
) -> Any:
    """NumPy's `einsum`: `einsum("ij,j->i", A, x)` or `einsum(A, [0, 1], x, [1], [0])`.

    Implicit output, ellipsis and repeated subscripts mean what they mean in NumPy.

    out, dtype, casting  as in NumPy
    optimize   False computes the product in one kernel, a list of pairs as from `numpy.einsum_path`
               contracts in that order; otherwise the order of least expected work is chosen
    format, schedule, threads, static   as in `evaluate`

    Raises what `evaluate` raises; NotationError is a ValueError.
    """
    key = None
    if out is None and dtype is None and optimize is None and type(threads) in COUNTS:
        first, *rest = operands or (None,)
        if type(first) is str and static is None:
            key = call_key((first, format, casting, schedule, threads), rest)
            call = KERNELS.memo.get(key)
            if call is not None:
                result = call(*rest)
                if result is not None:
                    return result
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
    path, contract = _optimize(optimize)
    if dtype is None and len({d.dtype for d in datas}) > 1:
        dtype = np.result_type(*(d.dtype for d in datas))  # NumPy converts before it computes
    settings = Settings(
        format,
        as_schedule(schedule),
        check_threads(threads),
        dtype,
        casting,
        check_static(static),
        path,
        contract,
    )
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
