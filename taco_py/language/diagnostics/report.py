"""Reports that users can send when a fault is ours."""

from __future__ import annotations

import tempfile
import traceback
from pathlib import Path

from taco_py.language.diagnostics.errors import InternalError


def internal_error(verb: str, what: str, error: Exception, more: str = "") -> InternalError:
    """Write the traceback of `error` to a file, and return an InternalError that names the file.

    verb, what  the failed action, complete enough to reproduce it
    more        further text for the file: sources of kernels
    """
    hint = "this is a fault of taco_py: please report it"
    dump = _dump("\n".join((f"{verb} {what}", more, *traceback.format_exception(error))))
    if dump is not None:
        hint += f" with the file {dump}"
    return InternalError(f"Expected to {verb} {what}, found {_one_line(error)}", hint=hint)


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _dump(text: str) -> Path | None:
    """Write a text to a new file; return its path, None where that fails."""
    try:
        path = Path(tempfile.mkdtemp(prefix="taco_py-report-")) / "report.txt"
        path.write_text(text)
    except OSError:
        return None
    return path
