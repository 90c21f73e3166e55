"""How many threads kernels may use."""

from __future__ import annotations

from taco_py.kernels import KERNELS
from taco_py.values.settings import check_threads


def set_threads(count: int | None) -> None:
    """Let calls that do not say `threads=` use at most `count` threads from now on.

    None, as at the beginning, is for the least of OMP_NUM_THREADS, OMP_THREAD_LIMIT, the processors
    that the process may run on, and the quota of its container; these are read again. Raises
    ScheduleError, a ValueError, for what is no positive integer.
    """
    KERNELS.limit_threads(check_threads(count))


def get_threads() -> int:
    """How many threads a call may use that does not say `threads=`."""
    return KERNELS.cores
