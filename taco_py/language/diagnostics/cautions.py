"""Warnings: what a call computes may not be what its author meant. Nothing is refused.

A caution is made where it is found, and given by `give` at each call that it is about; Python's
filters then say how often it is shown: once for each place, by default.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

from taco_py.language.diagnostics.source import Span

_PACKAGE = str(Path(__file__).resolve().parents[2])


class NotationWarning(UserWarning):
    """A text computes something else than what such a text is often meant for."""


class NarrowSumWarning(UserWarning):
    """A sum may pass what its integer type holds, and wraps there."""


class TuningStoreWarning(UserWarning):
    """A store of tuned plans is left out, or a plan in it cannot be read."""


class BackendWarning(UserWarning):
    """A backend of a graph failed, and the host computes its part instead."""


def caution(kind: type[UserWarning], message: str, span: Span | None, hint: str) -> UserWarning:
    """Make a warning with the place in the text and the remedy, as errors have them."""
    parts = [message, *([] if span is None else [span.carets()]), f"hint: {hint}"]
    return kind("\n".join(parts))


def give(cautions: Iterable[UserWarning]) -> None:
    """Show warnings as from the line outside this package that called it."""
    level = 1
    for each in cautions:
        level = level if level > 1 else _user_level()
        warnings.warn(each, stacklevel=level)


def _user_level() -> int:
    """Count the frames from `give` to the first that is not of this package."""
    frame, level = sys._getframe(2), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
