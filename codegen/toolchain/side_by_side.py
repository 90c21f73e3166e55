"""Calls that wait for compilers, some at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Input = TypeVar("Input")
Output = TypeVar("Output")


def map_side_by_side(
    function: Callable[[Input], Output], inputs: Iterable[Input], workers: int
) -> list[Output]:
    """Map a function over values in order, by several threads.

    >>> map_side_by_side(abs, [-1, 2], 2)
    [1, 2]

    Raises what the function raises, for the first value of which it does. Where the system allows
    no more threads, the caller's does all.
    """
    values = list(inputs)
    if workers < 2 or len(values) < 2:
        return [function(value) for value in values]
    from concurrent.futures import ThreadPoolExecutor  # 10 ms that most processes do without

    with ThreadPoolExecutor(workers) as pool:
        try:
            waiting = [pool.submit(function, value) for value in values]
        except RuntimeError:
            return [function(value) for value in values]
        try:
            return [future.result() for future in waiting]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
