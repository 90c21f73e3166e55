"""Operands of the grid: numbers of each type, the special ones among them, in each format."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp

Array = np.ndarray[Any, Any]


def shape_of(order: int, data: str) -> tuple[int, ...]:
    """The shape of operands with that many modes."""
    rows = 0 if data == "no rows" else 5
    columns = 0 if data == "no columns" else 6
    return (rows, columns) if order == 2 else (rows, 4, columns)


def values_of(random: np.random.Generator, count: int, dtype: str, data: str) -> Array:
    """Numbers of a type; "special" ones include its limits, infinities, NaN and a minus zero."""
    type = np.dtype(dtype)
    match type.kind:
        case "b":
            return random.random(count) < 0.6
        case "i" | "u":
            least = 0 if type.kind == "u" else -9
            small = random.integers(least, 10, count).astype(type)
            if data != "special":
                return small
            limits = np.iinfo(type)
            rare = np.array([limits.min, limits.max, limits.min + 1, limits.max - 1, 0, 1], type)
            return np.where(random.random(count) < 0.4, random.choice(rare, count), small)
        case "f":
            found = (random.standard_normal(count) * random.choice([0.3, 2.0, 20.0], count)).astype(
                type
            )
            if data != "special":
                return found
            rare = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 0.5, -2.5], type)
            return np.where(random.random(count) < 0.5, random.choice(rare, count), found)
        case _:
            found = random.standard_normal(count) + 1j * random.standard_normal(count)
            rare = np.array([0.0, 1.0, -1.0, 1j, 2.0 - 1j])
            keep = random.random(count) < (0.4 if data == "special" else 0.0)
            return np.where(keep, random.choice(rare, count), found).astype(type)


def operand(
    random: np.random.Generator, order: int, dtype: str, form: str, data: str, exponent: bool
) -> tuple[Any, Array, Array]:
    """An operand in a format, the same as a dense array, and where it stores something.

    exponent  whether negative integers are left out, and large ones
    """
    shape = shape_of(order, data)
    stored = random.random(shape) < 0.45
    if shape[0]:
        stored[random.integers(shape[0])] = False
    if data == "empty":
        stored[:] = False
    if form == "dense":
        stored[:] = True
    values = values_of(random, int(stored.sum()), dtype, data)
    if exponent and values.dtype.kind in "iu":
        values = (np.abs(values.astype(np.float64)) % 5).astype(values.dtype)
    dense = np.zeros(shape, dtype)
    dense[stored] = values
    coordinates = np.nonzero(stored)
    if form == "dense":
        return dense, dense, stored
    if form in ("CSR", "CSC", "COO") and order == 2:
        found = sp.coo_array((values, coordinates), shape=shape)
        return {"CSR": found.tocsr, "CSC": found.tocsc, "COO": found.copy}[form](), dense, stored
    data_of = np.stack(coordinates) if order else np.zeros((0, 1), int)
    tensor = tp.Tensor.from_coo(data_of, values, shape, axis=0, format=form)
    return tensor, dense, stored
