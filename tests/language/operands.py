"""Random operands of random programs: their types, formats, fill values, patterns and numbers."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp

FORMATS = {
    0: ("dense",),
    1: ("dense", "dense", "s", "COO"),
    2: ("dense", "CSR", "CSC", "COO", "doubled", "ss", "ds", "sd:1,0", "dd:1,0", "ss:1,0"),
    3: ("dense", "sss", "COO", "dss", "ssd", "sss:2,0,1"),
}
DTYPES = (
    "float64", "float64", "float64", "float32", "float32", "int64", "int64", "int32", "int16",
    "int8", "uint8", "uint16", "uint32", "uint64", "bool", "complex128", "complex64", "float16",
)  # fmt: skip
FILLS: dict[str, tuple[complex, ...]] = {
    "b": (True,),
    "u": (1, 3),
    "i": (1, -1, 3),
    "f": (1.0, -0.5, np.inf, -np.inf, np.nan),
    "c": (1.0, 1j),
}


@dataclass(frozen=True, slots=True)
class Spec:
    """What an operand is, but for its numbers."""

    shape: tuple[int, ...]
    dtype: str
    form: str
    fill: complex | None = None
    below: int | None = None

    def __str__(self) -> str:
        fill = "" if self.fill is None else f" fill {self.fill}"
        return f"{self.dtype}{list(self.shape)} {self.form}{fill}"

    @property
    def is_tensor(self) -> bool:
        """Whether it is a `Tensor`."""
        return self.form[0] in "sd" and self.form != "dense" and self.form != "doubled"


def drawn_spec(random: Random, shape: tuple[int, ...], dtype: str) -> Spec:
    """An operand of a shape and a type in some format, a Tensor now and then with a fill value."""
    form = random.choice(FORMATS[len(shape)])
    if dtype == "float16" or (dtype == "bool" and form == "doubled"):
        form = "dense"  # truths that meet are added up in the type in which they are read
    spec = Spec(shape, dtype, form)
    if not spec.is_tensor or random.random() < 0.6:
        return spec
    return Spec(shape, dtype, form, random.choice(FILLS[np.dtype(dtype).kind]))


def built(spec: Spec, random: np.random.Generator, *, special: bool) -> Any:
    """An operand with random numbers and a random pattern, explicit zeros among them.

    special  whether infinities, NaN and minus zeros are among its floating numbers
    """
    if spec.below is not None:
        return random.integers(0, spec.below, spec.shape).astype(spec.dtype)
    values = _numbers(random, spec, special)
    if spec.form == "dense":
        zeros = random.random(spec.shape) < 0.3
        return np.where(zeros, np.zeros((), spec.dtype), values)[()]
    stored = random.random(spec.shape) < random.choice([0.2, 0.5, 0.5, 0.9])
    coordinates, data = np.nonzero(stored), values[stored]
    if not spec.is_tensor:
        return _of_scipy(spec, coordinates, data)
    fill = {} if spec.fill is None else {"fill_value": spec.fill}
    table = np.stack(coordinates)
    return tp.Tensor.from_coo(table, data, spec.shape, axis=0, format=spec.form, **fill)


def _of_scipy(spec: Spec, coordinates: tuple[Any, ...], data: Any) -> Any:
    if spec.form == "doubled":  # the first entries twice, of half-sized numbers
        coordinates = tuple(np.concatenate([each, each[:2]]) for each in coordinates)
        data = np.concatenate([data, data[:2]])
    found = sp.coo_array((data, coordinates), shape=spec.shape)
    return {"CSR": found.tocsr, "CSC": found.tocsc}.get(spec.form, found.copy)()


def _numbers(random: np.random.Generator, spec: Spec, special: bool) -> Any:
    kind = np.dtype(spec.dtype).kind
    if kind == "b":
        return random.random(spec.shape) < 0.7
    whole = random.integers(0 if kind == "u" else -2, 3, spec.shape)
    if kind in "iu":
        return whole.astype(spec.dtype)
    numbers: Any = whole / random.choice([1, 2], spec.shape)
    if kind == "c":
        numbers = numbers + 1j * random.integers(-1, 2, spec.shape)
    elif special:
        rare = random.choice([np.inf, -np.inf, np.nan, -0.0], spec.shape)
        numbers = np.where(random.random(spec.shape) < 0.15, rare, numbers)
    return numbers.astype(spec.dtype)
