"""Conversions between formats, and diagonals."""

from taco_py.data.convert.convert import convert, describe, recopied
from taco_py.data.convert.diagonal import diagonal, diagonal_format

__all__ = ["convert", "describe", "diagonal", "diagonal_format", "recopied"]
