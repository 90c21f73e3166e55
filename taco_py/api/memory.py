"""How much memory calls may take, and how much of results that are gone is kept."""

from __future__ import annotations

from taco_py.arguments.option_checks import integer
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.by_level.index_checks import look_at_indices
from taco_py.data.tensors.byte_counts import check_memory_limit
from taco_py.language.diagnostics.errors import OperandError


def set_kept_memory(size: int | None) -> None:
    """Keep at most so many bytes of results that are gone, for results to come.

    >>> tp.set_kept_memory(64 * 2**20)
    >>> tp.set_kept_memory(None)

    What nothing has used for a second is given back anyway.

    size  in bytes; 0 keeps none; None, as at the beginning, 256 MB, or an eighth of what is free
          where that is less

    Raises OperandError, a ValueError, for what is no number of bytes.
    """
    KERNELS.keep_memory(_checked(size))


def clear_memory() -> None:
    """Give the memory back to the system that is kept of results that are gone.

    >>> tp.clear_memory()
    >>> tp.set_kept_memory(0); tp.clear_memory(); tp.set_kept_memory(None)
    """
    KERNELS.clear_memory()


def set_memory_limit(limit: int | str | None) -> None:
    """Let calls that do not say `memory_limit=` take at most so much memory at once.

    >>> tp.set_memory_limit("2GB")
    >>> tp.get_memory_limit()
    2000000000
    >>> tp.set_memory_limit(None)

    What needs more is refused before it is begun, or as soon as its arrays would grow beyond it.

    limit  in bytes, or a text as "2GB" or "512MiB"; None, as at the beginning, for four fifths of
           the memory that is free

    Raises OperandError, a ValueError, for what is no positive number of bytes.
    """
    KERNELS.memory.set(check_memory_limit(limit))


def set_index_checks(on: bool) -> None:
    """Look at the index arrays of operands, each array object once, or trust them.

    >>> tp.set_index_checks(False)
    >>> tp.set_index_checks(True)

    Kernels read without bounds checks: damaged arrays that are trusted give wrong numbers or end
    the process. Trust saves about a nanosecond an entry of each array that is new.

    on  True, as at the beginning, or False

    Raises OperandError, a ValueError, for another value.
    """
    if not isinstance(on, bool):
        raise OperandError(
            f"Expected True or False, found {on!r}", hint="as in tp.set_index_checks(False)"
        )
    look_at_indices(on)


def get_memory_limit() -> int | None:
    """Return how many bytes a call may take that does not say `memory_limit=`.

    >>> print(tp.get_memory_limit())
    None
    >>> tp.set_memory_limit("512MiB"); tp.get_memory_limit()
    536870912
    >>> tp.set_memory_limit(None)
    """
    return KERNELS.memory.process


def _checked(size: int | None) -> int | None:
    if size is None:
        return None
    count = integer(size)
    if count is None or count < 0:
        raise OperandError(
            f"Expected a number of bytes, 0 or more, found {size!r}",
            hint="as in set_kept_memory(256 * 1024**2); 0 keeps nothing",
        )
    return count
