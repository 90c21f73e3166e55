"""The table of the functions that implement Tensors as arrays (`data/tensors/behaviour.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType, ModuleType
from typing import Any

from taco_py.arrays import standard
from taco_py.arrays.element_functions import (
    clip,
    conj,
    imag,
    nonzero,
    real,
)
from taco_py.arrays.elements_at import subscript
from taco_py.arrays.elementwise import elementwise
from taco_py.arrays.extremum_places import place_of_extremum
from taco_py.arrays.matrix_products import dot, matmul
from taco_py.arrays.numpy_functions import array_function, ufunc
from taco_py.arrays.numpy_surface import elements, layouts
from taco_py.arrays.reductions import reduced, std, var
from taco_py.arrays.scans import cumulative
from taco_py.arrays.shapes import permute, reshape, squeeze
from taco_py.arrays.sorted_elements import argsort, distinct_values, sort
from taco_py.arrays.subscripts_of_modes import diagonal, repeat
from taco_py.data.tensors.remapped_tensor import in_format
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import OperandError

VERSIONS = ("2024.12", "2023.12", "2022.12")
"""Versions of the array API standard; the first includes the functions of the others."""


def namespace(version: str | None = None) -> ModuleType:
    """Return the module of the standard's functions. Raises OperandError for another version."""
    if version not in (None, *VERSIONS):
        raise OperandError(
            f"Expected the array API {VERSIONS[0]} or before, found {version!r}", hint=VERSIONS[0]
        )
    return standard


def in_chosen_format(tensor: Tensor) -> Tensor:
    """Return a matrix in the format that suits repeated products."""
    from taco_py.tuning.formats.chosen_tensor import stored_as_chosen  # many never choose

    return stored_as_chosen(tensor)


OPERATIONS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "argsort": argsort, "array_function": array_function, "clip": clip, "conj": conj,
    "cumulative": cumulative, "diagonal": diagonal, "distinct_values": distinct_values,
    "dot": dot, "elementwise": elementwise, "imag": imag,
    "in_chosen_format": in_chosen_format,
    "in_remapped_format": in_format, "matmul": matmul,
    "matrix_transpose": layouts.matrix_transpose, "moveaxis": layouts.moveaxis,
    "namespace": namespace, "nonzero": nonzero, "permute": permute,
    "place_of_extremum": place_of_extremum, "real": real, "reduced": reduced, "repeat": repeat,
    "reshape": reshape, "round": elements.rounded, "sort": sort, "squeeze": squeeze,
    "swapaxes": layouts.swapaxes, "std": std, "subscript": subscript, "take": layouts.take,
    "ufunc": ufunc, "var": var,
})  # fmt: skip
"""Functions by the names that `BEHAVIOUR.find` looks up."""
