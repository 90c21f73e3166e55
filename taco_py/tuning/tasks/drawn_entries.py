"""Coordinates of a sparse operand that are like a description says, the same every time.

Each mode has a sampler; entries take a coordinate of each, are told apart, and those that fell
together are drawn again. With `degrees` a mode's coordinates are those of a graph with given
degrees (the configuration model, Bollobás 1980).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from taco_py.tuning.tasks.operand_description import BAND, EVEN, POWER, OperandDescription

Columns = list[NDArray[np.int64]]
Sampler = Callable[[int], NDArray[np.int64]]
ROUNDS = 24
"""Times that entries which fell together are drawn again."""
DENSE = 0.5
"""Part of the elements from which the places that stay empty are drawn instead."""
MOST_PLACES = 2**62


def coordinates_of(description: OperandDescription) -> Columns:
    """Return the coordinates of each entry, in row-major order, no two alike.

    There may be fewer than were asked for, where degrees or bands leave no room for more.
    """
    shape, count = description.shape, description.entries
    volume = prod(shape)
    if not count or not volume:
        return [np.zeros(0, np.int64) for _ in shape]
    rng = np.random.default_rng(description.seed)
    plain = not description.degrees and description.rows == "random" and description.run <= 1
    if plain and volume <= 2**26 and count > DENSE * volume:
        places = rng.permutation(volume)[:count]
        return list(np.unravel_index(np.sort(places), shape))
    samplers = [_sampler(description, mode, rng) for mode in range(len(shape))]
    return _distinct(description, samplers, rng)


def _distinct(
    description: OperandDescription, samplers: Sequence[Sampler], rng: np.random.Generator
) -> Columns:
    shape, count = description.shape, description.entries
    columns: Columns = [np.zeros(0, np.int64) for _ in shape]
    for _ in range(ROUNDS):
        missing = count - len(columns[0])
        if missing <= 0:
            break
        drawn = _in_runs(description, samplers, missing, rng)
        merged = [np.concatenate(pair) for pair in zip(columns, drawn, strict=True)]
        columns = _unique(merged, shape)
    if len(columns[0]) > count:
        selection = np.sort(rng.permutation(len(columns[0]))[:count])
        columns = [column[selection] for column in columns]
    return columns


def _in_runs(
    description: OperandDescription,
    samplers: Sequence[Sampler],
    count: int,
    rng: np.random.Generator,
) -> Columns:
    """Draw entries, each at the beginning of a run along the last mode."""
    length = max(1, round(description.run))
    starts = -(-count // length)
    columns = [sample(starts) for sample in samplers]
    if description.rows == BAND and len(columns) > 1 and not description.degrees:
        columns[-1] = _near_diagonal(description, columns[0], rng)
    if length == 1:
        return columns
    columns = [np.repeat(column, length) for column in columns]
    columns[-1] = (columns[-1] + np.tile(np.arange(length), starts)) % description.shape[-1]
    return columns


def _near_diagonal(
    description: OperandDescription, rows: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    first, last = description.shape[0], description.shape[-1]
    width = max(1, round(min(description.exponent, 1.0) * last))
    return (rows * last // first + rng.integers(0, width, len(rows)) - width // 2) % last


def _unique(columns: Columns, shape: Sequence[int]) -> Columns:
    """Return the entries told apart, in row-major order."""
    if prod(shape) <= MOST_PLACES:
        places = np.unique(np.ravel_multi_index(columns, tuple(shape)))
        return [column.astype(np.int64) for column in np.unravel_index(places, tuple(shape))]
    order = np.lexsort(columns[::-1])
    ordered = [column[order] for column in columns]
    new = np.ones(len(order), bool)
    new[1:] = np.any([column[1:] != column[:-1] for column in ordered], axis=0)
    return [column[new] for column in ordered]


# ---------------------------------------------------------------- samplers of a mode


def _sampler(description: OperandDescription, mode: int, rng: np.random.Generator) -> Sampler:
    """Return a function that draws coordinates of a mode."""
    size = description.shape[mode]
    degrees = description.degrees[mode] if description.degrees else ()
    if degrees:
        return _of_degrees(degrees, size, rng)
    if mode == 0 and not description.degrees and description.rows == EVEN:
        return _of_turns(size, rng)
    if mode == 0 and not description.degrees and description.rows == POWER:
        weights = np.arange(1, size + 1, dtype=np.float64) ** -description.exponent
        return _of_weights(weights, rng)
    return lambda count: rng.integers(0, size, count)


def _of_turns(size: int, rng: np.random.Generator) -> Sampler:
    """Return each coordinate as often as all others, or once more."""

    def draw(count: int) -> NDArray[np.int64]:
        rest = rng.permutation(size)[: count % size]
        return np.concatenate((np.tile(np.arange(size), count // size), rest)).astype(np.int64)

    return draw


def _of_weights(weights: NDArray[np.float64], rng: np.random.Generator) -> Sampler:
    """Return coordinates by chance, each with its weight; which one has which is by chance too."""
    names, ends = rng.permutation(len(weights)), np.cumsum(weights)
    return lambda count: names[np.searchsorted(ends, rng.random(count) * ends[-1], "right")]


def _of_degrees(
    degrees: Sequence[tuple[float, float]], size: int, rng: np.random.Generator
) -> Sampler:
    """Draw so many coordinates with so many entries each, in an order by chance."""
    counts = np.repeat([length for _, length in degrees], [round(count) for count, _ in degrees])[
        :size
    ]
    if not len(counts) or counts.sum() <= 0:
        return lambda count: rng.integers(0, size, count)
    names, ends = rng.permutation(size)[: len(counts)], np.cumsum(counts)

    def draw(count: int) -> NDArray[np.int64]:
        stretched = (np.arange(count) + rng.random()) * (ends[-1] / count)
        places = np.minimum(np.searchsorted(ends, stretched, "right"), len(names) - 1)
        return rng.permutation(names[places])

    return draw
