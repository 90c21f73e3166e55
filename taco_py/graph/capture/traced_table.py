"""What traced arrays do, by NumPy's names: one table. A function is an entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from types import MappingProxyType
from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface.statistics import logaddexp_reduce
from taco_py.arrays.numpy_surface.surface_table import COMPOSED
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


def note_composed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a recorder's function of a composed one, which knows no recorder."""

    def note(recorder: Any, *args: Any, **options: Any) -> Any:
        return function(*args, **options)

    parameters = signature(function).parameters.values()
    before = Parameter("recorder", Parameter.POSITIONAL_ONLY)
    note.__signature__ = signature(function).replace(  # type: ignore[attr-defined]
        parameters=[before, *parameters]
    )
    return note


ELEMENTS: Table = MappingProxyType({
    "ufunc": ufuncs.ufunc,
    **{name: ufuncs.simple(name) for name in ("real", "imag", "angle")},
    "conj": lambda recorder, x: ufuncs.pointwise(recorder, "conjugate", np.conjugate, (x,)),
    "conjugate": lambda recorder, x: ufuncs.pointwise(recorder, "conjugate", np.conjugate, (x,)),
    "multiply": lambda recorder, x, y: x * y, "power": lambda recorder, x, n: x**n,
    "clip": ufuncs.clip, "where": ufuncs.where, "select": ufuncs.select,
    "zeros_like": ufuncs.like(0), "ones_like": ufuncs.like(1), "empty_like": ufuncs.like(0),
    "full_like": ufuncs.full_like,
})  # fmt: skip

SUMS: Table = MappingProxyType({
    **{name: ufuncs.reduction(name) for name in REDUCTIONS},
    "amin": ufuncs.reduction("min"), "amax": ufuncs.reduction("max"),
    **{name: ufuncs.place_of_extremum(name) for name in ("argmin", "argmax")},
    **{name: ufuncs.function_along_axis(name) for name in ("cumsum", "cumprod", "sort", "argsort")},
    "count_nonzero": ufuncs.count_nonzero,
    "logaddexp.reduce": note_composed(logaddexp_reduce),
})  # fmt: skip

LAYOUTS: Table = MappingProxyType({
    "transpose": layouts.transpose, "permute_dims": layouts.transpose, "reshape": layouts.reshape,
    "ravel": layouts.ravel, "flatten": layouts.flatten, "expand_dims": layouts.expand_dims,
    "squeeze": layouts.squeeze, "broadcast_to": layouts.broadcast_to,
    "concatenate": layouts.concatenate, "concat": layouts.concatenate,
    "subscript": layouts.subscript, "take_along_axis": layouts.take_along_axis,
    "tril": layouts.triangle(True), "triu": layouts.triangle(False), "diag": layouts.diag,
    "astype": layouts.astype, "copy": layouts.copied, "tocsr": layouts.same, "tocsc": layouts.same,
    "tocoo": layouts.same, "toarray": layouts.to_dense, "todense": layouts.to_dense,
})  # fmt: skip

PRODUCTS: Table = {
    "einsum": products.einsum, "tp.einsum": products.einsum, "tp.evaluate": evaluate,
    "tp.statements": statements_on, "tp.kernel": kernel,
    "tp.program": program,
    "matmul": products.matmul, "tensordot": products.tensordot, "outer": products.outer,
    "diagonal": products.diagonal,
}  # fmt: skip

NOTED: Table = MappingProxyType(
    {name: note_composed(function) for name, function in COMPOSED.items()}
)
"""Functions that Tensors have too. Those of the other tables come before them."""


def operations(matrices: frozenset[str]) -> dict[str, Any]:
    """Return the functions that a recorder calls, by name.

    matrices  the operands that are matrices of scipy.sparse, of which * is a product of matrices
    """
    tables = {**NOTED, **ELEMENTS, **SUMS, **LAYOUTS, **PRODUCTS, **CALLS}
    return {**tables, "traced": TracedArray, "TracedArray": TracedArray, "matrices": matrices}
