"""Programs that prices are learned from: drawn texts over drawn operands, dense and sparse.

    draw(7)   →   DrawnProgram("y[i,k] = A[i,j] * B[j,k]", operands of drawn sizes and patterns, …)

A number draws the same program on every machine. Products of two and three factors, sums of terms,
functions, and two statements; matrices whose entries are spread evenly, by a power law of rows, in
a band, in blocks, or over few rows of many.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp

Rng = np.random.Generator
MOST_BYTES = 1 << 25
"""Of a dense operand of several modes; larger ones are sparse."""
FORMATS = {"csr": 8, "csc": 2, "coo": 1, "dcsr": 2}
FORMATS_OF_THREE = ("csf", "csf", "coo3")
FUNCTIONS = ("exp", "sqrt", "abs", "log1p")


@dataclass(frozen=True)
class DrawnProgram:
    """A text with its operands.

    digest  of the text and the facts of the operands: two programs of one digest are one
    """

    number: int
    text: str
    operands: dict[str, Any]
    options: dict[str, Any]
    digest: str


def draw(number: int) -> DrawnProgram:
    """Draw the program of a number."""
    rng = np.random.default_rng(number)
    sizes = _sizes(rng)
    kind = rng.choice(["product", "sum", "function", "statements"], p=[0.55, 0.2, 0.1, 0.15])
    text, accesses = _TEXTS[kind](rng)
    dtype = str(rng.choice(["float64", "float32"], p=[0.7, 0.3]))
    operands: dict[str, Any] = {}
    words = [text, dtype]
    for name, indices in accesses.items():
        shape = tuple(sizes[index] for index in indices)
        operands[name], word = _operand(rng, shape, dtype)
        words.append(f"{name} {shape} {word}")
    digest = hashlib.sha256("; ".join(words).encode()).hexdigest()[:16]
    options = {"threads": int(rng.choice([1, 2]))}
    return DrawnProgram(number, text, operands, options, digest)


def _sizes(rng: Rng) -> dict[str, int]:
    """Draw a size for each index, of which some are small."""
    low, high = np.log([4.0, 40_000.0])
    sizes = {index: int(np.exp(rng.uniform(low, high))) for index in "ijkl"}
    for index in "kl":
        if rng.random() < 0.6:
            sizes[index] = int(rng.integers(2, 129))
    return sizes


# ---------------------------------------------------------------- texts


def _subset(rng: Rng, names: str, count: int) -> str:
    return "".join(rng.permutation(list(names))[:count])


def _access(name: str, indices: str) -> str:
    return f"{name}[{','.join(indices)}]"


def _product(rng: Rng) -> tuple[str, dict[str, str]]:
    names = "ijkl"[: int(rng.choice([2, 3, 4], p=[0.3, 0.5, 0.2]))]
    count = int(rng.choice([2, 3], p=[0.65, 0.35]))
    accesses = {}
    for name in "ABC"[:count]:
        order = int(rng.choice([1, 2, 3], p=[0.25, 0.6, 0.15]))
        accesses[name] = _subset(rng, names, min(order, len(names)))
    used = "".join(sorted({index for indices in accesses.values() for index in indices}))
    kept = _subset(rng, used, int(rng.choice([0, 1, 2, 3], p=[0.1, 0.35, 0.45, 0.1])))
    value = " * ".join(_access(name, indices) for name, indices in accesses.items())
    return f"{_access('y', kept)} = {value}", accesses


def _sum(rng: Rng) -> tuple[str, dict[str, str]]:
    indices = _subset(rng, "ij", int(rng.choice([1, 2], p=[0.3, 0.7])))
    names = "ABC"[: int(rng.choice([2, 3]))]
    accesses = dict.fromkeys(names, indices)
    value = f"{rng.choice([' + ', ' - '])}".join(_access(name, indices) for name in names)
    return f"{_access('y', indices)} = {value}", accesses


def _function(rng: Rng) -> tuple[str, dict[str, str]]:
    function = str(rng.choice(FUNCTIONS))
    kept = str(rng.choice(["ij", "i", "j"]))
    value = f"{function}({_access('A', 'ij')}) * {_access('B', str(rng.choice(['i', 'j', 'ij'])))}"
    accesses = {"A": "ij", "B": value.rpartition("[")[2].rstrip("]").replace(",", "")}
    return f"{_access('y', kept)} = {value}", accesses


def _statements(rng: Rng) -> tuple[str, dict[str, str]]:
    reduce, function = rng.choice(["sum", "max"]), rng.choice(["exp", "sqrt"])
    texts = (
        f"s[i] = {reduce}(j, A[i,j]); y[i,j] = A[i,j] / s[i]",
        f"s[i] = {reduce}(j, A[i,j]); y[i,j] = {function}(A[i,j] - s[i])",
        "t[i,k] = A[i,j] * B[j,k]; y[i] = t[i,k] * C[k]",
        "t[j] = A[i,j]; y[i] = A[i,j] * t[j]",
        f"t[i,j] = A[i,j] * B[i,j]; y[i] = {reduce}(j, t[i,j]); z[j] = t[i,j]",
    )
    number = int(rng.integers(len(texts)))
    accesses = {"A": "ij", "B": "jk" if number == 2 else "ij", "C": "k"}
    return texts[number], {n: a for n, a in accesses.items() if f"{n}[" in texts[number]}


_TEXTS: dict[str, Callable[[Rng], tuple[str, dict[str, str]]]] = {
    "product": _product, "sum": _sum, "function": _function, "statements": _statements,
}  # fmt: skip


# ---------------------------------------------------------------- operands


def _operand(rng: Rng, shape: tuple[int, ...], dtype: str) -> tuple[Any, str]:
    """Draw an operand of a shape, and the words of its kind."""
    volume = float(np.prod(shape, dtype=float))
    is_dense = rng.random() < {1: 0.9, 2: 0.4, 3: 0.1}[len(shape)]
    if is_dense and volume * np.dtype(dtype).itemsize <= MOST_BYTES:
        return (rng.random(shape) + 0.5).astype(dtype), "dense"
    count = int(min(volume * 0.3 + 1, np.exp(rng.uniform(np.log(50.0), np.log(2e6)))))
    pattern = str(rng.choice([*PATTERNS]))
    coordinates = PATTERNS[pattern](rng, shape, count)
    values = (rng.random(len(coordinates[0])) + 0.5).astype(dtype)
    seed = f"{pattern} {len(values)} entries"
    if len(shape) == 1:
        matrix = sp.coo_array((values, (coordinates[0],)), shape=shape)
        return tp.tensor(matrix, "s"), f"s {seed}"
    if len(shape) == 2:
        matrix = sp.coo_array((values, coordinates), shape=shape)
        weights = np.array([*FORMATS.values()], float)
        form = str(rng.choice([*FORMATS], p=weights / weights.sum()))
        if form in ("csr", "csc"):
            return matrix.asformat(form), f"{form} {seed}"
        return tp.tensor(matrix.tocsr(), form), f"{form} {seed}"
    form = str(rng.choice(FORMATS_OF_THREE))
    matrix = sp.coo_array((values, coordinates), shape=shape)
    return tp.tensor(matrix, tp.CSF(3) if form == "csf" else tp.COO(3)), f"{form} {seed}"


def _even(rng: Rng, shape: tuple[int, ...], count: int) -> tuple[np.ndarray[Any, Any], ...]:
    return _distinct(tuple(rng.integers(0, n, count) for n in shape), shape)


def _power_law(rng: Rng, shape: tuple[int, ...], count: int) -> tuple[np.ndarray[Any, Any], ...]:
    """Few coordinates of each mode have most entries."""
    skew = rng.uniform(1.0, 3.0)
    every = (np.minimum((n * rng.random(count) ** skew).astype(np.int64), n - 1) for n in shape)
    return _distinct(tuple(every), shape)


def _band(rng: Rng, shape: tuple[int, ...], count: int) -> tuple[np.ndarray[Any, Any], ...]:
    """Entries are near the diagonal."""
    at, width = rng.random(count), rng.uniform(0.0005, 0.05)
    every = (
        np.clip(n * (at + width * rng.standard_normal(count)), 0, n - 1).astype(np.int64)
        for n in shape
    )
    return _distinct(tuple(every), shape)


def _blocks(rng: Rng, shape: tuple[int, ...], count: int) -> tuple[np.ndarray[Any, Any], ...]:
    """Entries are in small full blocks."""
    side = int(rng.choice([2, 4, 8]))
    offsets = np.stack(np.meshgrid(*[np.arange(side)] * len(shape)), -1).reshape(-1, len(shape))
    begins = np.stack(
        [rng.integers(0, max(n // side, 1), max(count // len(offsets), 1)) * side for n in shape],
        -1,
    )
    every = (begins[:, None] + offsets[None]).reshape(-1, len(shape))
    every = every[(every < np.array(shape)).all(axis=1)]
    return _distinct(tuple(every.T), shape)


def _few_rows(rng: Rng, shape: tuple[int, ...], count: int) -> tuple[np.ndarray[Any, Any], ...]:
    """Most coordinates of the first mode are empty."""
    rows = rng.integers(0, shape[0], max(1, min(shape[0], count) // 20))
    rest = (rng.integers(0, n, count) for n in shape[1:])
    return _distinct((rng.choice(rows, count), *rest), shape)


PATTERNS: dict[str, Callable[[Rng, tuple[int, ...], int], tuple[np.ndarray[Any, Any], ...]]] = {
    "even": _even, "power law": _power_law, "band": _band, "blocks": _blocks,
    "few rows": _few_rows,
}  # fmt: skip


def _distinct(
    coordinates: tuple[np.ndarray[Any, Any], ...], shape: tuple[int, ...]
) -> tuple[np.ndarray[Any, Any], ...]:
    """Return each place once."""
    keys = np.unique(np.ravel_multi_index(coordinates, shape))
    places = np.unravel_index(keys, shape)
    return tuple(np.asarray(place, np.int32) for place in places)
