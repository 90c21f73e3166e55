"""Warnings that point at the line of the user who called this project, however deep they arise.

script.py:3      tp.evaluate(…)     ◄── the warning names this line
taco_py/…, codegen/…                    frames of the project, which are passed over
"""

from __future__ import annotations

import sys
import threading
import warnings
from types import FrameType

PACKAGES = frozenset({"codegen", "polyhedral", "taco_py"})
"""The packages of the project, which call one another."""


def warn_user(warning: Warning) -> None:
    """Show a warning as from the line outside the project that called it."""
    frame = _user_frame()
    warnings.warn_explicit(
        warning,
        type(warning),
        frame.f_code.co_filename,
        frame.f_lineno,
        frame.f_globals.get("__name__", "<string>"),
        frame.f_globals.setdefault("__warningregistry__", {}),
    )


def _user_frame() -> FrameType:
    """Find the caller of the project; in a thread of the project, that of the main thread."""
    frame: FrameType | None = sys._getframe(1)
    if threading.current_thread() is not threading.main_thread():
        waiting = sys._current_frames().get(threading.main_thread().ident or 0)
        frame = waiting if waiting is not None and _innermost_own(waiting) else frame
    assert frame is not None
    frame = _innermost_own(frame) or frame
    while frame.f_back is not None and _is_own(frame):
        frame = frame.f_back
    return frame


def _innermost_own(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the project; None where there is none."""
    while frame is not None and not _is_own(frame):
        frame = frame.f_back
    return frame


def _is_own(frame: FrameType) -> bool:
    """Tell whether a frame runs code of the project; text that it executes has no module."""
    module = frame.f_globals.get("__name__", "codegen")
    return str(module).partition(".")[0] in PACKAGES
