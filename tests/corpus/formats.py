"""The formats that each operand and each result of a corpus expression is tried in.

A format is named as a person names it; `store` makes an operand of that format from an array,
taking the road a user would take: NumPy and scipy classes where they exist, `tp.tensor` elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp

# Formats whose every pair is tried, and further ones that are tried at least once in each place.
OPERANDS: dict[int, tuple[str, ...]] = {
    0: ("dense",),
    1: ("dense", "s"),
    2: ("dense", "CSR", "CSC", "COO", "ss"),
    3: ("dense", "sss", "COO"),
    4: ("dense", "ssss"),
}
MORE_OPERANDS: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("COO",),
    2: ("ss:1,0", "sd", "uc", "sd:1,0", "dd:1,0"),
    3: ("dss", "ssd", "sds:2,0,1", "sss:1,2,0", "uqq", "suc", "dds"),
    4: ("COO", "dsss", "ssss:3,1,0,2"),
}
# None: the format that the rules for results choose.
RESULTS: dict[int, tuple[str | None, ...]] = {
    0: (None,),
    1: (None, "d", "s"),
    2: (None, "dd", "ds", "ds:1,0", "ss"),
    3: (None, "ddd", "sss"),
    4: (None, "ssss"),
}
MORE_RESULTS: dict[int, tuple[str | None, ...]] = {
    0: (),
    1: ("u",),
    2: ("uq", "ss:1,0", "sd", "uc", "dd:1,0"),
    3: ("dss", "uqq", "sds:2,0,1", "ssd", "ddd:2,0,1"),
    4: ("dddd", "uqqq"),
}


def store(array: np.ndarray[Any, Any], name: str) -> Any:
    """`array` in the format called `name`: an ndarray, a scipy array or a `tp.Tensor`."""
    if array.ndim == 0:
        return array[()]
    match name, array.ndim:
        case "dense", _:
            return array
        case "CSR", 2:
            return sp.csr_array(array)
        case "CSC", 2:
            return sp.csc_array(array)
        case "COO", _:
            return sp.coo_array(array)
    return tp.tensor(array, format=name)


def to_dense(result: Any) -> np.ndarray[Any, Any]:
    """Any result as an array."""
    if isinstance(result, tp.Tensor):
        return result.to_numpy()
    if sp.issparse(result):
        return np.asarray(result.toarray())
    return np.asarray(result)


def operand_options(order: int, *, more: bool) -> Sequence[str]:
    return OPERANDS[order] + (MORE_OPERANDS[order] if more else ())


def result_options(order: int, *, more: bool) -> Sequence[str | None]:
    return RESULTS[order] + (MORE_RESULTS[order] if more else ())
