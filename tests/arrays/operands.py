"""Tensors of all orders, formats, types and fill values, beside arrays of their elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import taco_py as tp

Array = np.ndarray[Any, Any]


def drawn(
    format: str, shape: tuple[int, ...], dtype: Any = np.float64, fill: Any = 0, seed: int = 0
) -> tuple[tp.Tensor, Array]:
    """A Tensor about half of whose elements have the fill value, and the same as an array."""
    rng = np.random.default_rng(seed)
    array = np.where(rng.random(shape) < 0.5, fill, rng.integers(1, 5, shape)).astype(dtype)
    return tp.Tensor.from_numpy(array, format, fill_value=fill), array


OPERANDS: tuple[tuple[tp.Tensor, Array], ...] = (
    drawn("ds", (4, 5)),
    drawn("ss:1,0", (4, 5), np.int16),
    drawn("ss", (4, 5), np.float64, 2),
    drawn("dss", (2, 3, 4)),
    drawn("s", (6,), np.int64, -1),
    drawn("dd", (3, 2), np.float32),
    drawn("uc", (3, 4), np.float32),
    drawn("uqc", (2, 3, 4), np.float64, -1),
    drawn("ds", (3, 0)),
    drawn("ds:1,0", (1, 4), np.complex128),
)
"""What operations are tried on."""


def name_of(operand: tuple[tp.Tensor, Array]) -> str:
    """What tells a case in the list of tests."""
    t, _ = operand
    return f"{t.format}-{'x'.join(map(str, t.shape))}-{t.dtype}-{t.fill_value}"


def elements(found: Any) -> Array:
    """A result as an array."""
    return found.to_numpy() if isinstance(found, tp.Tensor) else np.asarray(found)


def agree(tacos: Callable[[], Any], numpys: Callable[[], Any]) -> Any:
    """Compare what is computed with NumPy's, dtype and shape too; where NumPy raises, an error of
    ours has to be raised. Returns what was computed."""
    try:
        with np.errstate(all="ignore"):
            wanted = np.asarray(numpys())
    except (TypeError, ValueError, IndexError):
        try:
            found = tacos()
        except tp.TacoError:
            return None
        raise AssertionError(f"NumPy refuses what gives {found}") from None
    found = tacos()
    array = elements(found)
    assert array.dtype == wanted.dtype
    assert array.shape == wanted.shape
    np.testing.assert_allclose(array, wanted, rtol=1e-6)
    return found
