"""What a user can send us when a fault is ours."""

from __future__ import annotations

import tempfile
import traceback
from pathlib import Path

from taco_py.language.diagnostics.errors import InternalError


def internal_error(verb: str, what: str, error: Exception, more: str = "") -> InternalError:
    """Return `error` as a fault of ours: a file with the traceback is written, and the message
    names it.

    verb, what  what was being done, complete enough to do it again
    more        what belongs into the file alone: texts of kernels
    """
    hint = "this is a fault of taco_py: please report it"
    dump = _dump("\n".join((f"{verb} {what}", more, *traceback.format_exception(error))))
    if dump is not None:
        hint += f" with the file {dump}"
    return InternalError(f"Expected to {verb} {what}, found {_shown(error)}", hint=hint)


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _dump(text: str) -> Path | None:
    """Return a new file with this text, None where none can be written."""
    try:
        path = Path(tempfile.mkdtemp(prefix="taco_py-report-")) / "report.txt"
        path.write_text(text)
    except OSError:
        return None
    return path
