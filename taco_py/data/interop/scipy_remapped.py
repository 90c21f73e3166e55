"""scipy.sparse arrays that are borrowed as remapped formats: bsr and dia."""

from __future__ import annotations

from typing import Any

from taco_py.data.interop.scipy_blocks import from_bsr, is_bsr
from taco_py.data.interop.scipy_diagonals import from_dia, is_dia
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.formats.remapped import RemappedFormat


def is_remapped(x: Any) -> bool:
    """Tell whether `x` is a scipy.sparse array that is borrowed as a remapped format."""
    return is_bsr(x) or is_dia(x)


def format_of_remapped(x: Any) -> RemappedFormat:
    """Return the format of a bsr or dia array, after checking its lengths."""
    return from_remapped(x)[1]


def from_remapped(x: Any) -> tuple[TensorData, RemappedFormat]:
    """Return the stored tensor of a bsr or dia array, and its format."""
    return from_bsr(x) if is_bsr(x) else from_dia(x)
