"""The table of composed functions, by NumPy's names. A function is an entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface import composed_products, elements, layouts, statistics

COMPOSED: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "moveaxis": layouts.moveaxis, "swapaxes": layouts.swapaxes,
    "matrix_transpose": layouts.matrix_transpose, "flip": layouts.flip,
    "fliplr": lambda m: layouts.flip(m, 1), "flipud": lambda m: layouts.flip(m, 0),
    "rot90": layouts.rot90, "take": layouts.take, "unstack": layouts.unstack,
    "split": layouts.split, "array_split": layouts.array_split, "vsplit": layouts.vsplit,
    "hsplit": layouts.hsplit, "stack": layouts.stack, "vstack": layouts.vstack,
    "hstack": layouts.hstack, "column_stack": layouts.column_stack, "block": layouts.block,
    "atleast_1d": layouts.at_least(1), "atleast_2d": layouts.at_least(2), "tile": layouts.tile,
    "roll": layouts.roll, "repeat": layouts.repeat, "meshgrid": layouts.meshgrid,
    "diff": layouts.diff, "trace": layouts.trace,
    "dot": composed_products.dot, "inner": composed_products.inner,
    "vdot": composed_products.vdot, "vecdot": composed_products.vecdot,
    "kron": composed_products.kron, "cross": composed_products.cross,
    "multi_dot": composed_products.multi_dot,
    "round": elements.rounded, "around": elements.rounded, "nan_to_num": elements.nan_to_num,
    "isclose": elements.isclose, "allclose": elements.allclose,
    "array_equal": elements.array_equal, "polyval": elements.polyval,
    "ptp": statistics.ptp, "average": statistics.average, "cov": statistics.cov,
    **{f"nan{f.__name__}": statistics.without_nan(f) for f in (np.sum, np.prod, np.mean)},
    "trapezoid": statistics.trapezoid, "norm": statistics.norm,
    "shape": lambda a: a.shape, "ndim": lambda a: a.ndim,
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
    "copy": lambda a: a.copy(), "iscomplexobj": lambda x: x.dtype.kind == "c",
    "isrealobj": lambda x: x.dtype.kind != "c",
})  # fmt: skip
"""Functions of Tensors and traced arrays. Tables of one kind of arrays may have better ones."""
