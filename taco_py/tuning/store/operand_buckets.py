"""How large and how sparse operands are, in powers of two: what tuned plans are kept under.

    A of 1000 by 500, 20 000 entries, rows of 5 to 40   →   size i0 10, size i1 9, entries t1 15,
                                                            density t1 5, mean t1.0 5, …

It is read off what planning knows (`cost.spread`): sizes and numbers of entries at once; entries of
rows in a pass over positions up to 2^18 and from a sample beyond; runs of neighbours from a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from weakref import ref

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.cost.spread import Entries, recall_in
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import Array
from taco_py.planner.ir.nodes import Operand
from taco_py.tuning.store.problem_text import KeyedProblem, Names

MOMENTS = ("mean", "most", "square")
"""Of the entries of a mode's coordinates."""
SAMPLED = 64
"""Elements of an array by which it is known again."""
WINDOWS, WINDOW = 16, 1024
"""Samples of neighbouring coordinates, and the length of each."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """What was measured, by its name, and its class: the number of bits."""

    measures: tuple[str, ...]
    values: tuple[int, ...]


def bucket(number: float) -> int:
    """Return the number of bits of a number, rounded: 0 of 0, 1 of 1, 4 of 8 to 15."""
    return round(float(number)).bit_length()


def distance(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """Count how many doublings lie between two, all measures taken together."""
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))


def buckets_of(keyed: KeyedProblem, names: Names) -> Buckets:
    """Return the buckets of a problem's operands, in order of their new names."""
    buckets: list[tuple[str, int]] = []
    sizes = keyed.sizes()
    for index, new in names.indices.items():
        if index in sizes:
            buckets.append((f"size {new}", bucket(sizes[index])))
    for name, new in names.tensors.items():
        operand = keyed.operands.get(name)
        if operand is not None and operand.entries is not None:
            measures = _measures_of(new, len(operand.shape))
            buckets += zip(measures, _remembered(operand, operand.entries), strict=True)
    return Buckets(tuple(name for name, _ in buckets), tuple(value for _, value in buckets))


def _measures_of(name: str, order: int) -> Iterator[str]:
    """Yield the measures of a sparse operand, in the order of `_summary`."""
    yield from (f"entries {name}", f"density {name}")
    yield from (f"{what} {name}.{mode}" for mode in range(order) for what in MOMENTS)
    yield f"run {name}"


@dataclass(frozen=True, slots=True, eq=False)
class CachedBuckets:
    """The buckets of an operand that was met, with what tells that it is the same.

    arrays  its coordinates and positions, as long as they are there
    sample  some of these: who writes others in place gets the buckets of what was there before
    """

    values: tuple[int, ...]
    arrays: tuple[ref[Array], ...]
    sample: bytes

    def is_of(self, arrays: Sequence[Array]) -> bool:
        """Tell whether the measures belong to these arrays."""
        same = all(link() is array for link, array in zip(self.arrays, arrays, strict=True))
        return same and self.sample == _sample(arrays)


def _sample(arrays: Sequence[Array]) -> bytes:
    """Return a few elements of each."""
    return b"".join(array[:: max(1, len(array) // SAMPLED)].tobytes() for array in arrays)


def _remembered(operand: Operand, entries: Entries) -> tuple[int, ...]:
    """Return the buckets of an operand, which are found once for its arrays."""
    data = entries.data
    lists = (array for level in data.levels for array in (level.pos, level.crd))
    arrays = tuple(array for array in lists if isinstance(array, np.ndarray))
    key = ("buckets", data.format, data.shape, operand.nnz, *map(id, arrays))
    cached = KERNELS.memo.get(key) if arrays else None
    if cached is not None and cached.is_of(arrays):
        values: tuple[int, ...] = cached.values
        return values
    values = tuple(_summary(operand, entries))
    if arrays:
        KERNELS.memo.put(key, CachedBuckets(values, tuple(map(ref, arrays)), _sample(arrays)))
    return values


def _summary(operand: Operand, entries: Entries) -> Iterator[int]:
    """Return entries, elements for each of them, moments of the entries of each mode, and runs."""
    yield bucket(operand.nnz)
    volume = 1.0
    for size in operand.shape:
        volume *= size
    yield bucket(min(volume / max(operand.nnz, 1.0), 2.0**62))
    on_host = isinstance(entries.data.values, np.ndarray)
    for mode in range(len(operand.shape)):
        moments = (0, 0, 0)
        if on_host and entries.has_counts(mode) and operand.nnz:
            spread = entries.spread(mode)
            moments = (bucket(spread.mean), bucket(spread.most), bucket(spread.square))
        yield from moments
    yield bucket(run_of(entries)) if on_host else 0


def run_of(entries: Entries) -> float:
    """Return the mean length of runs of neighbouring coordinates in the last list, from a sample:
    the width of blocks, where entries are in blocks. 0 where the last level is no list."""
    return recall_in(entries, "run of neighbours")(lambda: _mean_run_length(entries))


def _mean_run_length(entries: Entries) -> float:
    data = entries.data
    last = data.format.levels[-1] if data.levels else None
    if last is None or not (last.is_list or last.chained):
        return 0.0
    crd = data.levels[-1].crd
    if crd is None or len(crd) < 2:
        return 0.0
    starts = np.linspace(0, max(len(crd) - WINDOW, 0), WINDOWS).astype(np.int64)
    steps = [np.diff(crd[at : at + WINDOW]) for at in np.unique(starts)]
    jumps = sum(int((step != 1).sum()) for step in steps)
    return (sum(map(len, steps)) + 1) / (jumps + 1)
