"""From one format to another, and diagonals."""

from taco_py.convert.convert import convert, describe, recopied, taken_over
from taco_py.convert.diagonal import diagonal, diagonal_format

__all__ = ["convert", "describe", "diagonal", "diagonal_format", "recopied", "taken_over"]
