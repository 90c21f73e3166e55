"""What traced arrays do, by NumPy's names: one table. A function is an entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from taco_py.graph.capture import traced_layouts as layouts
from taco_py.graph.capture import traced_products as products
from taco_py.graph.capture import traced_ufuncs as ufuncs
from taco_py.graph.capture.traced_array import TracedArray
from taco_py.graph.capture.traced_programs import program

REDUCTIONS = ("sum", "prod", "mean", "var", "std", "min", "max", "any", "all")

FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    **{name: ufuncs.reduction(name) for name in REDUCTIONS},
    "amin": ufuncs.reduction("min"), "amax": ufuncs.reduction("max"),
    **{name: ufuncs.place_of_extremum(name) for name in ("argmin", "argmax")},
    **{name: ufuncs.along(name) for name in ("cumsum", "cumprod", "sort", "argsort")},
    **{name: ufuncs.simple(name) for name in ("real", "imag", "angle")},
    "conj": lambda recorder, x: ufuncs.pointwise(recorder, "conjugate", np.conjugate, (x,)),
    "conjugate": lambda recorder, x: ufuncs.pointwise(recorder, "conjugate", np.conjugate, (x,)),
    "multiply": lambda recorder, x, y: x * y, "power": lambda recorder, x, n: x**n,
    "clip": ufuncs.clip, "where": ufuncs.where, "round": ufuncs.rounded, "around": ufuncs.rounded,
    "zeros_like": ufuncs.like(0), "ones_like": ufuncs.like(1), "full_like": ufuncs.full_like,
    "count_nonzero": ufuncs.count_nonzero, "norm": ufuncs.norm,
    "ufunc": ufuncs.ufunc,
    "transpose": layouts.transpose, "permute_dims": layouts.transpose,
    "moveaxis": layouts.moveaxis, "swapaxes": layouts.swapaxes,
    "matrix_transpose": layouts.matrix_transpose, "reshape": layouts.reshape,
    "ravel": layouts.ravel, "flatten": layouts.ravel, "expand_dims": layouts.expand_dims,
    "squeeze": layouts.squeeze, "broadcast_to": layouts.broadcast_to,
    "concatenate": layouts.concatenate, "concat": layouts.concatenate, "stack": layouts.stack,
    "vstack": layouts.vstack, "hstack": layouts.hstack, "astype": layouts.astype,
    "copy": layouts.same, "tocsr": layouts.same, "tocsc": layouts.same, "tocoo": layouts.same,
    "toarray": layouts.to_dense, "todense": layouts.to_dense, "flip": layouts.flip,
    "subscript": layouts.subscript, "take": layouts.take, "split": layouts.split(True),
    "array_split": layouts.split(False),
    "einsum": products.einsum, "tp.einsum": products.einsum, "tp.evaluate": products.evaluate,
    "tp.program": program,
    "matmul": products.matmul, "dot": products.dot, "tensordot": products.tensordot,
    "outer": products.outer, "trace": products.trace, "diagonal": products.diagonal,
    "shape": lambda recorder, x: x.shape, "ndim": lambda recorder, x: x.ndim,
    "size": lambda recorder, x: x.size, "iscomplexobj": lambda recorder, x: x.dtype.kind == "c",
    "isrealobj": lambda recorder, x: x.dtype.kind != "c",
    "traced": TracedArray,
})  # fmt: skip
"""Functions of a recorder and NumPy's arguments."""


def operations(matrices: frozenset[str]) -> dict[str, Any]:
    """What a recorder calls.

    matrices  the operands that are matrices of scipy.sparse, of which * is a product of matrices
    """
    return {**FUNCTIONS, "TracedArray": TracedArray, "matrices": matrices}
