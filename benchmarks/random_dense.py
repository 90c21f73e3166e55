"""Random dense einsums against the faster of `numpy.einsum(optimize=True)` and `opt_einsum`.

    python -m benchmarks.random_dense 100 [--seed 1] [--seconds 0.3] [--slowest 12]

draws that many expressions of two or three operands of order 1 to 5, with short and long sizes, in
both float types, half of them contractions of two; compares each result with NumPy's of doubles,
times all three in turns on one thread (set OPENBLAS_NUM_THREADS=1 and OMP_NUM_THREADS=1), and
prints the geometric mean of the speed relative to the faster peer, the share of those below 0.9 and
below 0.5, and the slowest. A result that differs is printed as WRONG, and makes the command fail.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Any

import numpy as np

import taco_py as tp
from benchmarks.measure import in_turns
from benchmarks.peers import library

LETTERS = "abcdefg"
POINTS = (1e5, 2e7)
"""The least and the most products of elements."""
ELEMENTS = 4e6
"""The most elements of an array."""
SHORT, LONG = (2, 16), (17, 400)
ORDER = 5
"""The most modes of an array."""
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}
"""The largest difference, as a part of what the absolute values of the terms add up to."""


@dataclass(frozen=True, slots=True)
class Einsum:
    """An expression, the size of each index, and the operands' type."""

    text: str
    sizes: dict[str, int]
    dtype: str

    def __str__(self) -> str:
        sizes = " ".join(f"{index}{size}" for index, size in sorted(self.sizes.items()))
        return f"{self.text:<24} {self.dtype}  {sizes}"

    @property
    def points(self) -> float:
        return float(prod(self.sizes.values()))

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Those of the operands, the result's last."""
        terms = self.text.replace("->", ",").split(",")
        return [tuple(self.sizes[index] for index in term) for term in terms]


@dataclass(slots=True)
class Tally:
    """What was measured: the speed relative to the faster peer, and of what."""

    ratios: list[tuple[float, Einsum, str]] = field(default_factory=list)
    wrong: int = 0

    def add(self, einsum: Einsum, seconds: dict[str, float]) -> None:
        ours = seconds.pop("ours")
        peer = min(seconds, key=lambda name: seconds[name])
        told = f"{1e6 * ours:.0f} us, {peer} {1e6 * seconds[peer]:.0f} us"
        self.ratios.append((seconds[peer] / ours, einsum, told))

    def report(self, slowest: int) -> str:
        if not self.ratios:
            return "nothing was measured"
        found = np.array([ratio for ratio, *_ in self.ratios])
        mean = np.exp(np.log(found).mean())
        shares = ", ".join(
            f"{100 * (found < bound).mean():.0f} % below {bound}" for bound in (0.9, 0.5)
        )
        rows = sorted(self.ratios, key=lambda each: each[0])[:slowest]
        lines = [f"  {ratio:5.2f}  {einsum!s:<66} {told}" for ratio, einsum, told in rows]
        head = f"{len(found)} einsums: geometric mean {mean:.2f}, {shares}; {self.wrong} wrong"
        return "\n".join([head, *lines])


# ---------------------------------------------------------------- drawing


def draw(random: np.random.Generator) -> Einsum:
    """An einsum of as many points as are measured."""
    while True:
        found = _drawn(random)
        low, high = POINTS
        fits = all(prod(shape) <= ELEMENTS for shape in found.shapes)
        if low <= found.points <= high and fits:
            return found


def _drawn(random: np.random.Generator) -> Einsum:
    """Half of all are contractions of two operands; the others have any indices anywhere."""
    letters = LETTERS[: random.integers(2, len(LETTERS) + 1)]
    if random.random() < 0.5:
        *terms, kept = _contraction(random, letters)
    else:
        count = int(random.choice([2, 2, 3]))
        terms = [_term(random, letters) for _ in range(count)]
        met = sorted(set("".join(terms)))
        kept = _shuffled(random, [index for index in met if random.random() < 0.6][:ORDER])
    sizes = {index: _size(random) for index in sorted(set("".join(terms)))}
    dtype = str(random.choice(["float32", "float64"]))
    return Einsum(f"{','.join(terms)}->{kept}", sizes, dtype)


CLASSES = ((0, 1, 2), (0, 2), (1, 2), (0, 1))
"""The arrays, two operands and the result, that have a batch's index, rows', columns', depth's."""


def _contraction(random: np.random.Generator, letters: str) -> list[str]:
    """The indices of left, right and the result, each in any order."""
    while True:
        classes = {letter: CLASSES[random.integers(len(CLASSES))] for letter in letters}
        arrays = [[x for x in letters if array in classes[x]] for array in range(3)]
        if all(arrays[:2]) and max(map(len, arrays)) <= ORDER:
            return [_shuffled(random, array) for array in arrays]


def _shuffled(random: np.random.Generator, indices: Sequence[str]) -> str:
    return "".join(random.permutation(list(indices))) if indices else ""


def _term(random: np.random.Generator, letters: str) -> str:
    order = random.integers(1, min(ORDER, len(letters)) + 1)
    return _shuffled(random, letters)[:order]


def _size(random: np.random.Generator) -> int:
    low, high = SHORT if random.random() < 0.5 else LONG
    return int(np.exp(random.uniform(np.log(low), np.log(high + 1))))


# ---------------------------------------------------------------- measuring


def measure(einsum: Einsum, random: np.random.Generator, seconds: float, tally: Tally) -> None:
    operands = [random.standard_normal(s).astype(einsum.dtype) for s in einsum.shapes[:-1]]
    ours = partial(tp.einsum, einsum.text, *operands, threads=1)
    if not _agrees(einsum, operands, ours()):
        tally.wrong += 1
        print(f"WRONG  {einsum}", flush=True)
        return
    contenders: dict[str, Callable[[], Any]] = {"ours": ours}
    contenders["numpy"] = partial(np.einsum, einsum.text, *operands, optimize=True)
    opt_einsum = library("opt_einsum")
    if opt_einsum is not None:
        shapes = [operand.shape for operand in operands]
        contenders["opt_einsum"] = partial(
            opt_einsum.contract_expression(einsum.text, *shapes), *operands
        )
    times = in_turns(contenders, seconds)
    tally.add(einsum, {name: min(each) for name, each in times.items()})


def _agrees(einsum: Einsum, operands: Sequence[np.ndarray[Any, Any]], found: Any) -> bool:
    doubles = [operand.astype("float64") for operand in operands]
    expected = np.einsum(einsum.text, *doubles, optimize=True)
    largest = np.einsum(einsum.text, *map(np.abs, doubles), optimize=True)
    difference = np.abs(np.asarray(found, "float64") - expected)
    plain = found.dtype == einsum.dtype and np.shape(found) == expected.shape
    return bool(plain and (difference <= TOLERANCE[einsum.dtype] * (largest + 1e-300)).all())


def run(count: int, seed: int, seconds: float) -> Iterator[Tally]:
    """What was measured after each of `count` einsums."""
    random = np.random.default_rng(seed)
    tally = Tally()
    for _ in range(count):
        measure(draw(random), random, seconds, tally)
        yield tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.random_dense", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each einsum's repetitions")
    parser.add_argument("--slowest", type=int, default=12, help="how many of them to print")
    asked = parser.parse_args()
    tally = Tally()
    for tally in run(asked.count, asked.seed, asked.seconds):
        if sys.stderr.isatty():
            print(f"\r{len(tally.ratios)}", end="", file=sys.stderr)
    print(tally.report(asked.slowest))
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
