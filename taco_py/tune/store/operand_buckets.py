"""How large and how sparse operands are, in powers of two: what tuned plans are kept under.

    A of 1000 by 500, 20 000 entries, rows of 5 to 40   →   size i0 10, size i1 9, entries t1 15,
                                                            density t1 5, mean t1.0 5, …

It is read off what planning knows (`cost.spread`): sizes and numbers of entries at once; entries of
rows in a pass over positions up to 2^18 and from a sample beyond; runs of neighbours from a sample.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from codegen.records import dataclass
from taco_py.cost.spread import Entries, recall_in
from taco_py.formats import LevelKind
from taco_py.plan.ir.nodes import Operand
from taco_py.tune.store.problem_text import Computation, Names

WINDOWS, WINDOW = 16, 1024
"""Samples of neighbouring coordinates, and the length of each."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """What was measured, by its name, and its class: the number of bits."""

    measures: tuple[str, ...]
    values: tuple[int, ...]


def bucket(number: float) -> int:
    """The number of bits of a number, rounded: 0 of 0, 1 of 1, 4 of 8 to 15."""
    return round(float(number)).bit_length()


def distance(one: tuple[int, ...], other: tuple[int, ...]) -> int:
    """How many doublings lie between two, all measures taken together."""
    return sum(abs(a - b) for a, b in zip(one, other, strict=True))


def buckets_of(computation: Computation, names: Names) -> Buckets:
    """The buckets of a computation's operands, in order of their new names."""
    found: list[tuple[str, int]] = []
    sizes = computation.sizes()
    for index, new in names.indices.items():
        if index in sizes:
            found.append((f"size {new}", bucket(sizes[index])))
    for name, new in names.tensors.items():
        operand = computation.operands.get(name)
        if operand is not None and operand.entries is not None:
            found += _of_sparse(new, operand, operand.entries)
    return Buckets(tuple(name for name, _ in found), tuple(value for _, value in found))


def _of_sparse(name: str, operand: Operand, entries: Entries) -> Iterator[tuple[str, int]]:
    """Entries, elements for each of them, moments of the entries of each mode, and runs."""
    yield f"entries {name}", bucket(operand.nnz)
    volume = 1.0
    for size in operand.shape:
        volume *= size
    yield f"density {name}", bucket(min(volume / max(operand.nnz, 1.0), 2.0**62))
    on_host = isinstance(entries.data.values, np.ndarray)
    for mode in range(len(operand.shape)):
        moments = (0, 0, 0)
        if on_host and entries.known(mode) and operand.nnz:
            spread = entries.spread(mode)
            moments = (bucket(spread.mean), bucket(spread.most), bucket(spread.square))
        for what, value in zip(("mean", "most", "square"), moments, strict=True):
            yield f"{what} {name}.{mode}", value
    yield f"run {name}", bucket(run_of(entries)) if on_host else 0


def run_of(entries: Entries) -> float:
    """The mean length of runs of neighbouring coordinates in the last list, from a sample: the
    width of blocks, where entries are in blocks. 0 where the last level is no list."""
    return recall_in(entries, "run of neighbours")(lambda: _found_run(entries))


def _found_run(entries: Entries) -> float:
    data = entries.data
    lists = (LevelKind.COMPRESSED, LevelKind.SINGLETON)
    if not data.levels or data.format.levels[-1].kind not in lists:
        return 0.0
    crd = data.levels[-1].crd
    if crd is None or len(crd) < 2:
        return 0.0
    starts = np.linspace(0, max(len(crd) - WINDOW, 0), WINDOWS).astype(np.int64)
    steps = [np.diff(crd[at : at + WINDOW]) for at in np.unique(starts)]
    apart = sum(int((each != 1).sum()) for each in steps)
    return (sum(map(len, steps)) + 1) / (apart + 1)
