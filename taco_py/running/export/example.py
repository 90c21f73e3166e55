"""Small operands to run an exported kernel on: the same each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from taco_py.data.storage.pack import pack_coo
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.language.diagnostics.errors import FormatError, OperandError
from taco_py.language.fill import converted
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Assignment
from taco_py.language.problem import TensorType
from taco_py.language.provenance.relations import Bound, BoundKind

SIZE = 6
"""Of each index whose size is neither compiled in nor promised."""


def example(
    statements: Sequence[Assignment],
    types: Mapping[str, TensorType],
    static: Mapping[str, int],
    bounds: Sequence[Bound],
) -> dict[str, TensorData]:
    """Return an operand of each type that statements read; of a sparse one a third of the values is
    stored.

    static  sizes that are compiled in
    bounds  what the operands have to keep

    Raises OperandError for a format that does not hold every pattern.
    """
    sizes = _promised(bounds) | dict(static)
    shapes = {
        access.tensor: tuple(sizes.get(i, SIZE) for i in access.indices)
        for statement in statements
        for access in accesses(statement)
    }
    rng = np.random.default_rng(0)
    operands = {}
    for name, type in types.items():
        try:
            operands[name] = _operand(shapes[name], type, rng)
        except FormatError as error:
            raise OperandError(
                f"Expected operands for main.c, found none made up for {name} in the format "
                f"{type.format}, which does not hold every pattern",
                hint=f'pass small ones, as in export("folder", {name}=…)',
            ) from error
    return operands


def _promised(bounds: Sequence[Bound]) -> dict[str, int]:
    """Return the size of each index that is said to end somewhere, as small as may be."""
    sizes = {b.parent: b.value for b in bounds if b.kind is BoundKind.MAX_EXACT}
    for bound in bounds:
        if bound.kind is BoundKind.MAX_CONSTRAINT:
            sizes.setdefault(bound.parent, min(SIZE, bound.value))
    return sizes


def _operand(shape: tuple[int, ...], type: TensorType, rng: np.random.Generator) -> TensorData:
    values = rng.integers(1, 9, shape).astype(type.element)
    if type.format.is_dense:
        return TensorData(type.format, shape, (LevelArrays(),) * len(shape), values)
    coords: Any = np.nonzero(rng.random(shape) < 1 / 3)
    fill = converted(type.fill, np.dtype(type.dtype), values.dtype)
    return pack_coo(list(coords), values[coords], shape, type.format, type.index_dtype, fill)
