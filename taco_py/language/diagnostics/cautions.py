"""Warnings that a call may not compute what its author meant; it computes all the same. Nothing is
refused.

A caution is created where its cause is found, and issued at each call by `issue_warnings`; Python's
filters decide how often it is shown: once for each place, by default.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

from taco_py.language.diagnostics.source import Span

_PACKAGE = str(Path(__file__).resolve().parents[2])


class NotationWarning(UserWarning):
    """A text computes something else than such texts are often meant to."""


class NarrowSumWarning(UserWarning):
    """A sum may overflow its integer type, and wraps there."""


class TuningStoreWarning(UserWarning):
    """A store of tuned plans is left out, or a plan in it cannot be read."""


class LearnedPriceWarning(UserWarning):
    """A learned price is left out, and plans have their analytic price."""


class BackendWarning(UserWarning):
    """A backend of a graph failed, and the host computes its part instead."""


def caution(kind: type[UserWarning], message: str, span: Span | None, hint: str) -> UserWarning:
    """Build a warning with the place in the text and the remedy, as errors have."""
    parts = [message, *([] if span is None else [span.carets()]), f"hint: {hint}"]
    return kind("\n".join(parts))


def issue_warnings(cautions: Iterable[UserWarning]) -> None:
    """Show warnings at the line outside this package that called it."""
    level = 1
    for warning in cautions:
        level = level if level > 1 else _user_level()
        warnings.warn(warning, stacklevel=level)


def _user_level() -> int:
    """Return the stack level, seen from `issue_warnings`, of the first frame outside this
    package."""
    frame, level = sys._getframe(2), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
