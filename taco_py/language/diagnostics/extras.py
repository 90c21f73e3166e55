"""Optional libraries, imported at their first use."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from taco_py.language.diagnostics.errors import MissingExtraError


def library(name: str, install: str, without: str = "") -> Any:
    """Import an optional library. Raises MissingExtraError where it is not installed.

    without  an alternative that does not need it, for the hint
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"Expected {install} to be installed, found none ({error})",
            hint=f"pip install {install}" + (without and f"; {without}"),
        ) from error
