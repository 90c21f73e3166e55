"""How many threads kernels may use."""

from __future__ import annotations

from taco_py.arguments.option_checks import check_threads
from taco_py.data.kernels import KERNELS


def set_threads(count: int | None) -> None:
    """Let calls that do not say `threads=` use at most so many threads.

    >>> tp.set_threads(1)
    >>> tp.get_threads()
    1
    >>> tp.set_threads(None)

    count  from 1 on; None, as at the beginning, for the least of OMP_NUM_THREADS,
           OMP_THREAD_LIMIT, the processors that the process may run on, and the quota of its
           container, which are read again

    Raises ScheduleError, a ValueError, for what is no positive integer.
    """
    KERNELS.limit_threads(check_threads(count))


def get_threads() -> int:
    """Return how many threads a call may use that does not say `threads=`.

    >>> tp.get_threads() >= 1
    True
    >>> tp.set_threads(3); tp.get_threads()
    3
    >>> tp.set_threads(None)
    """
    return KERNELS.cores
