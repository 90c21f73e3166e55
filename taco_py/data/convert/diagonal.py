"""Repeated indices: A[i,i] reads the diagonal of A, T[i,i,j] one entry a pair (i, j)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from taco_py.data.storage.pack import pack_coo, unpack
from taco_py.data.storage.sizes import index_dtype_of
from taco_py.data.storage.tensor_data import TensorData, dense_data
from taco_py.language.diagnostics.errors import DimensionError, OperandError
from taco_py.language.formats import COO, LETTERS, Format, dense


def diagonal(data: TensorData, labels: Sequence[Hashable]) -> TensorData:
    """Return the entries at which modes with the same label have the same coordinate.

    labels  one a mode, as the indices of an access. The result has one mode a label, in the order
            in which the labels first appear, stored in `diagonal_format`. Of a dense tensor it is a
            view, of a sparse one new arrays with duplicates summed.

    Raises OperandError for a wrong number of labels and DimensionError where modes with one label
    differ in size.

    >>> diagonal(from_numpy(np.array([[1, 2], [3, 4]])), "ii").values
    array([1, 4])
    """
    if len(labels) != len(data.shape):
        raise OperandError(
            f"Expected a label for each of {len(data.shape)} modes, found {len(labels)}",
            hint="write one index for each mode",
        )
    distinct = list(dict.fromkeys(labels))
    shape = tuple(size_of(data, labels, label) for label in distinct)
    format = diagonal_format(data.format, labels)
    if data.format.is_dense:
        numbers = [distinct.index(label) for label in labels]
        view = np.einsum(data.values, numbers, list(range(len(distinct))))
        return dense_data(view, format, data.fill)
    coords, values = unpack(data)
    selected = np.ones(len(values), dtype=np.bool_)
    firsts = [labels.index(label) for label in distinct]
    for mode, label in enumerate(labels):
        first = labels.index(label)
        if first != mode:
            selected &= coords[mode] == coords[first]
    coordinates = [coords[first][selected] for first in firsts]
    return pack_coo(coordinates, values[selected], shape, format, index_dtype_of(data), data.fill)


def diagonal_format(format: Format, labels: Sequence[Hashable]) -> Format:
    """Return the format of the result of `diagonal`.

    It is dense of dense, COO of COO; else, for each label, dense where all its levels are dense and
    compressed elsewhere, in the order in which the labels appear from the root down. A dense level
    is compressed too where a compressed level has moved above it: it would have elements that were
    not stored.

    >>> str(diagonal_format(CSR, "ii")), str(diagonal_format(Format.parse("dds"), "iij"))
    ('s', 'ds')
    >>> str(diagonal_format(Format.parse("sds"), "iji"))
    'ss'
    """
    distinct = list(dict.fromkeys(labels))
    if format.is_dense:
        return dense(len(distinct))
    if format.is_coo:
        return COO(len(distinct))
    down = list(dict.fromkeys(labels[mode] for mode in format.mode_order))
    levels = []
    for label in down:
        label_levels = [
            level
            for level, mode in zip(format.levels, format.mode_order, strict=True)
            if labels[mode] == label
        ]
        full = all(level.full for level in label_levels) and not _listed_below(
            format, labels, label
        )
        levels.append(LETTERS["d" if full else "s"])
    return Format(tuple(levels), tuple(distinct.index(label) for label in down))


def _listed_below(format: Format, labels: Sequence[Hashable], label: Hashable) -> bool:
    """Tell whether a sparse level below the first level of `label` has a label from above it."""
    down = format.stored(labels)
    place = down.index(label)
    below = zip(down[place:], format.levels[place:], strict=True)
    return any(inner in down[:place] and not level.full for inner, level in below)


def size_of(data: TensorData, labels: Sequence[Hashable], label: Hashable) -> int:
    """Return the size of all modes with this label. Raises DimensionError where they differ."""
    sizes = {mode: data.shape[mode] for mode, other in enumerate(labels) if other == label}
    first = next(iter(sizes))
    for mode, size in sizes.items():
        if size != sizes[first]:
            raise DimensionError(
                f"Expected modes {first} and {mode} to have the same size for the repeated index "
                f"{label!r}, found {sizes[first]} and {size}",
                hint="slice the tensor so that both modes have the same size",
            )
    return sizes[first]
