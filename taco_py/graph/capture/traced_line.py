"""The line of the user's function that an operation comes from."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from taco_py.language.diagnostics.errors import OperandTypeError, TacoError
from taco_py.language.diagnostics.source import Source, Span

FOLDERS = (str(Path(__file__).resolve().parents[2]), str(Path(np.__file__).resolve().parent))
"""Folders whose code is not the user's."""


def user_frame() -> FrameType | None:
    """Find the innermost frame that is neither of this package nor of NumPy or SciPy."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_foreign(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _is_foreign(file: str) -> bool:
    return file.startswith(FOLDERS) or "/scipy/" in file or file.startswith("<__array_function__")


def user_place() -> str:
    """Write the user's file and line, as in model.py:12."""
    frame = user_frame()
    return "" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def user_span() -> Span | None:
    """Make a span of the user's line, None where its text is not known."""
    frame = user_frame()
    if frame is None:
        return None
    return span_of(frame.f_code.co_filename, frame.f_lineno)


def span_of(file: str, line: int) -> Span | None:
    """Make a span of a line of a file, None where its text is not known."""
    text = linecache.getline(file, line).strip()
    return Span(Source(text, f"{Path(file).name}:{line}"), 0, len(text)) if text else None


def refuse(message: str, hint: str, error: type[TacoError] = OperandTypeError) -> NoReturn:
    """Raise an error that shows the user's line."""
    raise _at_line(error(message, hint=hint))


def call_with_line(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function, and show the user's line in its errors."""
    try:
        return function(*args, **options)
    except TacoError as error:
        raise _at_line(error) from error.__cause__


def _at_line(error: TacoError) -> TacoError:
    """Return an error that shows the user's line, the same one if it does."""
    place = user_place()
    if error.span is not None or not place or error.message.endswith(place):
        return error
    return type(error)(f"{error.message}, in {place}", user_span(), error.hint)
