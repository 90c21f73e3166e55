"""Operands for corpus expressions: whole numbers, so that every result is exact and compared for
equality.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import numpy as np

from tests.corpus.expressions import Case

Array = np.ndarray[Any, Any]
Pattern = Literal["mixed", "zero", "full"]
PATTERNS: tuple[Pattern, ...] = ("mixed", "zero", "full")


def operands(case: Case, pattern: Pattern, dtype: Any = np.float64) -> dict[str, Array]:
    """One array a name of the case, the same ones on every call."""
    return {
        name: divisor(case, name, shape, dtype)
        if name in case.divisors
        else array(f"{case.name} {name}", shape, pattern, dtype)
        for name, shape in case.shapes.items()
    }


def initial(case: Case, dtype: Any = np.float64) -> Array | None:
    """What the target of a `+=` holds before."""
    if "+=" not in case.text:
        return None
    return array(f"{case.name} initial", case.result_shape, "full", dtype)


def array(seed: str, shape: tuple[int, ...], pattern: Pattern, dtype: Any = np.float64) -> Array:
    """Small whole numbers. "mixed" has empty and full slices along the first mode and zeros
    elsewhere.
    """
    random = np.random.default_rng(zlib.crc32(seed.encode()))
    values = random.integers(1, 4, shape) * random.choice([-1, 1], shape)
    if not shape:
        return np.asarray(values).astype(dtype)
    match pattern:
        case "zero":
            values = np.zeros(shape, int)
        case "mixed":
            values = np.where(random.random(shape) < 0.5, values, 0)
            values[random.integers(shape[0])] = 0
            if shape[0] > 2:
                values[(values == 0).all(axis=tuple(range(1, len(shape)))).argmin()] = 2
        case "full":
            pass
    return values.astype(dtype)


def divisor(case: Case, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """Powers of two without a zero: quotients are exact."""
    random = np.random.default_rng(zlib.crc32(f"{case.name} {name}".encode()))
    return np.asarray(random.choice([1, 2, 4, -2], shape)).astype(dtype)


def dense_result(
    text: str,
    arrays: Mapping[str, Array],
    start: Array | None = None,
    stored: Mapping[str, Array] | None = None,
) -> Array:
    """What the oracle makes of index notation, whose sums have the type of `numpy.sum`."""
    from taco_py.language.notation.dtypes import sum_dtype
    from taco_py.language.notation.parser import parse_assignment
    from taco_py.language.notation.rewrites.reduce import insert_reductions
    from taco_py.language.oracle import evaluate_dense

    assignment = insert_reductions(parse_assignment(text))
    sum_type = partial(sum_dtype, target=None if start is None else start.dtype)
    return np.asarray(evaluate_dense(assignment, arrays, start, stored, sum_type))
