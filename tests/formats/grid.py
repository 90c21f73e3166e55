"""The grid: expressions over operands in every format, with results in many.

    python -m tests.formats.grid [N] [--seed S] [--about sddmm]

N kernels are drawn, 4 400 where N is not given; each runs on five sets of data, and what comes out
is compared with the dense oracle. Differences are printed; the exit status is 1 where there are
any.
"""

from __future__ import annotations

import argparse
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import taco_py as tp
from tests.corpus.formats import to_dense

Array = np.ndarray[Any, Any]

EXPRESSIONS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "spmv": ("y[i] = A[i,j] * x[j]", ("A",), "d"),
    "transposed spmv": ("y[j] = A[i,j] * z[i]", ("A",), "d"),
    "spmm": ("Y[i,k] = A[i,j] * X[j,k]", ("A",), "dd"),
    "spgemm": ("Y[i,k] = A[i,j] * C[j,k]", ("A", "C"), "ss"),
    "add": ("Y[i,j] = A[i,j] + B[i,j]", ("A", "B"), "ss"),
    "subtract dense": ("Y[i,j] = A[i,j] - D[i,j]", ("A",), "dd"),
    "multiply": ("Y[i,j] = A[i,j] * B[i,j]", ("A", "B"), "ss"),
    "multiply dense": ("Y[i,j] = A[i,j] * D[i,j]", ("A",), "ss"),
    "sddmm": ("Y[i,j] = A[i,j] * U[i,k] * V[j,k]", ("A",), "ss"),
    "gram": ("Y[i,k] = A[j,i] * A[j,k]", ("A",), "ss"),
    "chain": ("Y[i,l] = A[i,j] * C[j,k] * E[k,l]", ("A", "C", "E"), "ss"),
    "sums times sums": (
        "Y[i,k] = (A[i,j] + B[i,j]) * (C[j,k] + F[j,k])",
        ("A", "B", "C", "F"),
        "ss",
    ),
    "whole sum": ("s = A[i,j]", ("A",), ""),
    "rows": ("s[i] = A[i,j]", ("A",), "d"),
    "columns": ("s[j] = A[i,j]", ("A",), "d"),
    "residual": ("y[i] = z[i] - A[i,j] * x[j]", ("A",), "d"),
    "largest": ("m[i] = max(j, A[i,j])", ("A",), "d"),
    "ttv": ("Y[i,j] = T[i,j,k] * w[k]", ("T",), "ss"),
    "ttm": ("Y[i,j,l] = T[i,j,k] * W[k,l]", ("T",), "ssd"),
    "mttkrp": ("Y[i,l] = T[i,j,k] * V2[j,l] * W[k,l]", ("T",), "dd"),
    "mode 1": ("s[j] = T[i,j,k]", ("T",), "d"),
}
"""By its name: the text, the operands that are stored in a format, and a letter for each mode of
the result, d where it is dense as a rule."""

SHAPES: dict[str, tuple[int, ...]] = {
    "A": (13, 12), "B": (13, 12), "C": (12, 9), "D": (13, 12), "E": (9, 7), "F": (12, 9),
    "T": (6, 5, 7), "U": (13, 3), "V": (12, 3), "V2": (5, 4), "W": (7, 4), "X": (12, 4),
    "w": (7,), "x": (12,), "z": (13,),
}  # fmt: skip
KINDS = "dsrbmhu"
REMAPPED = ("bsr(3,2)", "bsr(13,12)", "ell", "sell(4)", "dia", "sdia(8)", "rle", "nm(4,4)",
            "blocked(2,3,ss)")  # fmt: skip
PATTERNS = ("de", "se", "de:1,0", "be", "he")
MATRICES = (
    *(f"{a}{b}{order}" for a, b in product(KINDS, KINDS) for order in ("", ":1,0")),
    "uq", "uq:1,0", *PATTERNS, *REMAPPED,
)  # fmt: skip
TENSORS = (
    *("".join(kinds) for kinds in product("dsrbmh", repeat=3)), "uqq", "sss:2,0,1", "dbm:1,0,2",
    "blocked(2,2,3,sss)",
)  # fmt: skip
RESULTS = (None, "dense", "csr", "csc", "coo", "ss", "db", "rm", "hs", "sdia(4)", "bsr(2,3)")
DTYPES = ("float64", "float32", "int64", "int8", "complex128", "bool")
KERNELS = 4400
DATA = ("some", "empty", "full", "one row", "one entry")


@dataclass(frozen=True, slots=True)
class Cell:
    """An expression over operands in these formats: a kernel."""

    name: str
    formats: tuple[str, ...]
    result: str | None
    dtype: str

    def __str__(self) -> str:
        return f"{self.name}   {' '.join(self.formats)} -> {self.result} {self.dtype}"


def drawn(count: int, seed: int, about: str = "") -> Iterator[Cell]:
    """Draw kernels, each expression about as often as others."""
    random = np.random.default_rng(seed)
    names = [name for name in EXPRESSIONS if about in name]
    for number in range(count):
        name = names[number % len(names)]
        _, operands, letters = EXPRESSIONS[name]
        forms = tuple(
            str(random.choice(TENSORS if len(SHAPES[one]) == 3 else MATRICES)) for one in operands
        )
        result = RESULTS[random.integers(len(RESULTS))] if len(letters) == 2 else None
        yield Cell(name, forms, result, str(random.choice(DTYPES)))


def array(random: np.random.Generator, shape: tuple[int, ...], dtype: str, data: str) -> Array:
    """Draw an array; what "some" leaves out is 0."""
    numbers = random.integers(1, 4, shape)
    kept = random.random(shape) < 0.3
    match data:
        case "empty":
            kept[:] = False
        case "full":
            kept[:] = True
        case "one row":
            kept[:] = False
            kept[random.integers(shape[0])] = True
        case "one entry":
            kept[:] = False
            kept[tuple(random.integers(size) for size in shape)] = True
    return np.where(kept, numbers, 0).astype(dtype)


def outcome(cell: Cell, data: str, seed: int) -> str:
    """Compute a kernel on one set of data: "equal" where it is the dense oracle's result."""
    random = np.random.default_rng((zlib.crc32(f"{cell}{data}".encode()), seed))
    text, stored, _ = EXPRESSIONS[cell.name]
    dense, given = {}, {}
    for name, shape in SHAPES.items():
        if f"{name}[" in text:
            sparse = name in stored
            dense[name] = array(random, shape, cell.dtype, data if sparse else "full")
            given[name] = dense[name]
            if sparse:
                form = cell.formats[stored.index(name)]
                if form in PATTERNS:
                    dense[name] = (dense[name] != 0).astype(cell.dtype)
                try:
                    given[name] = tp.tensor(dense[name], format=form)
                except tp.FormatError:
                    return "refused"  # as n:m with more entries
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            oracle = np.asarray(tp.evaluate_dense(text, **dense))
        except tp.TacoError:
            return "refused"  # as the largest of complex numbers
        try:
            found = np.asarray(to_dense(tp.evaluate(text, format=cell.result, **given)))
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    if found.dtype != oracle.dtype or found.shape != oracle.shape:
        return f"{found.dtype}{found.shape}, the oracle {oracle.dtype}{oracle.shape}"
    tolerance = 1e-4 if found.dtype == np.float32 else 1e-12
    return "equal" if np.allclose(found, oracle, tolerance, tolerance) else "other numbers"


def main(words: list[str]) -> int:
    """Run the grid."""
    parser = argparse.ArgumentParser(prog="python -m tests.formats.grid")
    parser.add_argument("count", nargs="?", type=int, default=KERNELS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--about", default="")
    asked = parser.parse_args(words)
    counts: Counter[str] = Counter()
    for number, cell in enumerate(drawn(asked.count, asked.seed, asked.about), 1):
        for data in DATA:
            found = outcome(cell, data, asked.seed)
            counts[found if found in ("equal", "refused") else "wrong"] += 1
            if found not in ("equal", "refused"):
                print(f"{cell}, {data}: {found}", flush=True)
        if number % 100 == 0:
            print(f"{number} kernels, {dict(counts)}", file=sys.stderr, flush=True)
    print(f"{sum(counts.values())} cases: {dict(counts)}")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
