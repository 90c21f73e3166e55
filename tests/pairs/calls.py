"""A call that features change: statements, operands as they are stored, options, and a verb."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp

SIZES = {"i": 6, "j": 5, "k": 4, "l": 3}
"""Sizes of indices; blocks of formats need not divide them."""
STATEMENTS = (
    ("y[i] = A[i,j] * x[j]", {"A": "ij", "x": "j"}),
    ("C[i,k] = A[i,j] * B[j,k]", {"A": "ij", "B": "jk"}),
    ("C[i,j] = A[i,j] * D[i,j] + E[i,j]", {"A": "ij", "D": "ij", "E": "ij"}),
    ("y[i] = A[i,j] * B[j,k] * z[k]", {"A": "ij", "B": "jk", "z": "k"}),
    ("s = A[i,j] * x[j]", {"A": "ij", "x": "j"}),
)
"""Texts, and the indices of their operands. `A` is the operand whose storage features change."""


@dataclass(frozen=True)
class Call:
    """What is called, with which operands, how.

    statements  the last one is the result's
    values      of operands, as dense arrays
    storage     of operands that are no NumPy arrays: a name of scipy's, or a format of Tensors
    fill        the value of the elements that Tensors do not store
    options     of `tp.evaluate`
    out         whether the result goes to an array that is passed
    verb        a name of `VERBS` in tests/pairs/verbs.py
    features    the names of those that were applied
    """

    statements: tuple[str, ...]
    values: Mapping[str, np.ndarray[Any, Any]]
    storage: Mapping[str, str] = field(default_factory=dict)
    fill: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)
    out: bool = False
    verb: str = "evaluate"
    features: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All statements."""
        return "; ".join(self.statements)

    @property
    def last(self) -> str:
        """The statement of the result."""
        return self.statements[-1]

    @property
    def target(self) -> str:
        """The access on the left of the last statement."""
        return re.split(r"\s*[^\w\[\], ]*=", self.last, maxsplit=1)[0].strip()

    @property
    def modes(self) -> tuple[str, ...]:
        """The indices of the result."""
        inside = re.search(r"\[(.*)\]", self.target)
        return tuple(inside.group(1).split(",")) if inside else ()

    def with_options(self, **options: Any) -> Call:
        """The same call with more options; None of an option that it has already is an error."""
        return replace(self, options={**self.options, **options})

    def with_values(self, **values: Any) -> Call:
        """The same call with more operands, or others."""
        return replace(self, values={**self.values, **values})

    def with_last(self, text: str, *before: str) -> Call:
        """The same call with another last statement, and statements before it."""
        return replace(self, statements=(*self.statements[:-1], *before, text))

    def operands(self) -> dict[str, Any]:
        """The operands as a user passes them."""
        return {name: self._stored(name, array) for name, array in self.values.items()}

    def _stored(self, name: str, array: np.ndarray[Any, Any]) -> Any:
        storage = self.storage.get(name, "numpy")
        if storage == "numpy":
            return array.copy()
        if storage == "fortran":
            return np.asfortranarray(array)
        if storage.startswith("scipy."):
            return getattr(sp, storage.removeprefix("scipy."))(array)
        fill = array.dtype.type(self.fill) if name == "A" and self.fill else None
        return tp.tensor(array, format=_format(storage), fill_value=fill)

    def __str__(self) -> str:
        stored = ", ".join(f"{name}: {form}" for name, form in self.storage.items())
        types = ", ".join(sorted({str(each.dtype) for each in self.values.values()}))
        return f"{self.verb}({self.text!r}; {stored}; {types}) {' + '.join(self.features)}"


def _format(storage: str) -> Any:
    """A format by its letters or by a call, as "BSR((2, 2))"."""
    name, _, argument = storage.partition("((")
    if not argument:
        return getattr(tp, storage, storage)
    sizes = tuple(int(size) for size in argument.rstrip(")").split(","))
    return getattr(tp, name)(sizes)


def base(number: int, rng: np.random.Generator, dtype: str = "float64") -> Call:
    """One of the texts over random operands, of which about half of the elements are 0."""
    text, indices = STATEMENTS[number % len(STATEMENTS)]
    values = {}
    for name, letters in indices.items():
        shape = tuple(SIZES[letter] for letter in letters)
        numbers = rng.integers(1, 4, shape) * (rng.random(shape) < 0.6)
        values[name] = numbers.astype(dtype)
    return Call((text,), values)
