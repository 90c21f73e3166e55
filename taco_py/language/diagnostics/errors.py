"""The error family. A message names the place, what was expected and found; a hint the remedy.

Errors are ordinary exceptions, not frozen dataclasses: a frozen exception that passes through a
context manager loses its message on Python 3.11.
"""

from __future__ import annotations

from taco_py.language.diagnostics.source import Span


class TacoError(Exception):
    """Base class of every error that this package raises deliberately."""

    def __init__(self, message: str, span: Span | None = None, hint: str | None = None) -> None:
        self.message = message
        self.span = span
        self.hint = hint
        parts = [message]
        if span is not None:
            parts.append(span.carets())
        if hint is not None:
            parts.append(f"hint: {hint}")
        super().__init__("\n".join(parts))


class NotationError(TacoError, ValueError):
    """The text is not index notation, or not a legal einsum string."""


class OperandError(TacoError, ValueError):
    """An operand is missing, superfluous, or has the wrong number of modes."""


class DimensionError(TacoError, ValueError):
    """Two uses of one index disagree about its size."""


class OperandTypeError(TacoError, TypeError):
    """An operand's type or dtype is not supported."""


class NumberOverflowError(OperandTypeError, OverflowError):
    """A number is outside the dtype that it takes, as where NumPy raises OverflowError."""


class FormatError(TacoError, ValueError):
    """A format is malformed, or a tensor is stored in another format than was promised."""


class StructureError(TacoError, ValueError):
    """A sparse operand's arrays contradict each other."""


class ScheduleError(TacoError, ValueError):
    """A scheduling command is illegal here; the schedule is unchanged."""


class BoundError(ScheduleError):
    """A range breaks a `bound` of the schedule; nothing was computed."""


class PositionError(TacoError, IndexError):
    """A subscript of a Tensor is invalid, or selects elements that it does not have."""


class OutputError(TacoError, ValueError):
    """The `out=` array cannot hold the result."""


class OutputDtypeError(OutputError, TypeError):
    """The value of `out=` is no array, or its dtype cannot hold the result's."""


class SparseBufferError(FormatError, BufferError):
    """A sparse tensor cannot provide the single buffer that a dense one has."""


class IndexOverflowError(TacoError, OverflowError):
    """A size or a number of nonzeros exceeds the index type."""


class OutOfMemoryError(TacoError, MemoryError):
    """There is too little memory for a result or for a kernel's temporaries.

    wanted, free  the required and the free bytes; None where they are not known
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        hint: str | None = None,
        wanted: int | None = None,
        free: int | None = None,
    ) -> None:
        super().__init__(message, span, hint)
        self.wanted = wanted
        self.free = free


class AddressError(IndexOverflowError, OutOfMemoryError):
    """An array is larger than any memory."""


class FileFormatError(TacoError, ValueError):
    """A file is truncated or malformed; the message names its line."""


class CompilerError(TacoError, RuntimeError):
    """No C compiler was found, or it failed; the message has the command and what it printed."""


class DerivativeError(TacoError, ValueError):
    """There is no derivative of the requested value, or of a value that it depends on."""


class DeviceError(TacoError, RuntimeError):
    """A device is missing or failed, or does not support the computation."""


class MissingExtraError(TacoError, ImportError):
    """An optional library is not installed; the message names the extra."""


class TuningStoreError(TacoError, RuntimeError):
    """A store of tuned plans is invalid, or cannot be read or written; it is unchanged."""


class FarmError(TacoError, RuntimeError):
    """The scheduler or the workers of a tuning farm cannot be reached; the journal has all jobs."""


class InternalError(TacoError, RuntimeError):
    """A fault of this package, never of its user."""
