"""What traced arrays do, by NumPy's names: one table. A function is an entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from taco_py.graph.capture import composed_functions as functions
from taco_py.graph.capture import composed_layouts as moved
from taco_py.graph.capture import traced_layouts as layouts
from taco_py.graph.capture import traced_products as products
from taco_py.graph.capture import traced_ufuncs as ufuncs
from taco_py.graph.capture.traced_array import TracedArray
from taco_py.graph.capture.traced_calls import CALLS
from taco_py.graph.capture.traced_programs import program
from taco_py.graph.capture.traced_texts import evaluate, kernel, statements_on

REDUCTIONS = ("sum", "prod", "mean", "var", "std", "min", "max", "any", "all")

Table = Mapping[str, Callable[..., Any]]
"""Functions of a recorder and NumPy's arguments, by their names."""

ELEMENTS: Table = MappingProxyType({
    "ufunc": ufuncs.ufunc,
    **{name: ufuncs.simple(name) for name in ("real", "imag", "angle")},
    "conj": lambda recorder, x: ufuncs.pointwise(recorder, "conjugate", np.conjugate, (x,)),
    "conjugate": lambda recorder, x: ufuncs.pointwise(recorder, "conjugate", np.conjugate, (x,)),
    "multiply": lambda recorder, x, y: x * y, "power": lambda recorder, x, n: x**n,
    "clip": ufuncs.clip, "where": ufuncs.where, "select": functions.select,
    "round": functions.rounded, "around": functions.rounded,
    "nan_to_num": functions.nan_to_num, "isclose": functions.isclose,
    "polyval": functions.polyval, "zeros_like": ufuncs.like(0), "ones_like": ufuncs.like(1),
    "empty_like": ufuncs.like(0), "full_like": ufuncs.full_like,
})  # fmt: skip

SUMS: Table = MappingProxyType({
    **{name: ufuncs.reduction(name) for name in REDUCTIONS},
    "amin": ufuncs.reduction("min"), "amax": ufuncs.reduction("max"),
    **{name: ufuncs.place_of_extremum(name) for name in ("argmin", "argmax")},
    **{name: ufuncs.along(name) for name in ("cumsum", "cumprod", "sort", "argsort")},
    **{f"nan{name}": functions.without_nan(name) for name in ("sum", "prod", "mean")},
    "count_nonzero": ufuncs.count_nonzero, "linalg.norm": functions.norm,
    "average": functions.average, "cov": functions.cov, "ptp": functions.ptp,
    "logaddexp.reduce": functions.logaddexp_reduce, "trapezoid": functions.trapezoid,
    "allclose": functions.allclose, "array_equal": functions.array_equal,
})  # fmt: skip

LAYOUTS: Table = MappingProxyType({
    "transpose": layouts.transpose, "permute_dims": layouts.transpose,
    "moveaxis": layouts.moveaxis, "swapaxes": layouts.swapaxes,
    "matrix_transpose": layouts.matrix_transpose, "reshape": layouts.reshape,
    "ravel": layouts.ravel, "flatten": layouts.flatten, "expand_dims": layouts.expand_dims,
    "squeeze": layouts.squeeze, "broadcast_to": layouts.broadcast_to,
    "concatenate": layouts.concatenate, "concat": layouts.concatenate, "stack": layouts.stack,
    "vstack": layouts.vstack, "hstack": layouts.hstack, "column_stack": moved.column_stack,
    "block": moved.block, "tile": moved.tile, "repeat": moved.repeat, "meshgrid": moved.meshgrid,
    "atleast_1d": moved.at_least(1), "atleast_2d": moved.at_least(2),
    "split": layouts.split(True), "array_split": layouts.split(False),
    "vsplit": moved.divided(0), "hsplit": moved.divided(1), "unstack": moved.unstack,
    "subscript": layouts.subscript, "take": layouts.take,
    "take_along_axis": moved.take_along_axis, "flip": layouts.flip,
    "fliplr": lambda recorder, x: layouts.flip(recorder, x, 1),
    "flipud": lambda recorder, x: layouts.flip(recorder, x, 0),
    "rot90": moved.rot90, "roll": moved.roll, "diff": moved.diff,
    "tril": moved.triangle(True), "triu": moved.triangle(False), "diag": moved.diag,
    "astype": layouts.astype, "copy": layouts.copied, "tocsr": layouts.same, "tocsc": layouts.same,
    "tocoo": layouts.same, "toarray": layouts.to_dense, "todense": layouts.to_dense,
})  # fmt: skip

PRODUCTS: Table = MappingProxyType({
    "einsum": products.einsum, "tp.einsum": products.einsum, "tp.evaluate": evaluate,
    "tp.statements": statements_on, "tp.kernel": kernel,
    "tp.program": program,
    "matmul": products.matmul, "dot": products.dot, "tensordot": products.tensordot,
    "outer": products.outer, "trace": products.trace, "diagonal": products.diagonal,
    "vdot": functions.vdot, "inner": functions.inner, "vecdot": functions.vecdot,
    "kron": functions.kron, "cross": functions.cross, "linalg.multi_dot": functions.multi_dot,
})  # fmt: skip

KNOWN: Table = MappingProxyType({
    "shape": lambda recorder, x: x.shape, "ndim": lambda recorder, x: x.ndim,
    "size": lambda recorder, x, axis=None: x.size if axis is None else x.shape[axis],
    "iscomplexobj": lambda recorder, x: x.dtype.kind == "c",
    "isrealobj": lambda recorder, x: x.dtype.kind != "c",
    "traced": TracedArray,
})  # fmt: skip
"""What is known before there is data."""


def operations(matrices: frozenset[str]) -> dict[str, Any]:
    """What a recorder calls.

    matrices  the operands that are matrices of scipy.sparse, of which * is a product of matrices
    """
    known = {**ELEMENTS, **SUMS, **LAYOUTS, **PRODUCTS, **CALLS, **KNOWN}
    return {**known, "TracedArray": TracedArray, "matrices": matrices}
