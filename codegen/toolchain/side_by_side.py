"""Calls that wait for compilers, some at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


def map_side_by_side(
    function: Callable[[Given], Made], given: Iterable[Given], workers: int
) -> list[Made]:
    """Return what a function makes of each value, in order, with so many threads.

    >>> map_side_by_side(abs, [-1, 2], 2)
    [1, 2]

    Raises what the function raises, for the first value of which it does. Where the system allows
    no more threads, the caller's does all.
    """
    values = list(given)
    if workers < 2 or len(values) < 2:
        return [function(value) for value in values]
    from concurrent.futures import ThreadPoolExecutor  # 10 ms that most processes do without

    with ThreadPoolExecutor(workers) as pool:
        try:
            waiting = [pool.submit(function, value) for value in values]
        except RuntimeError:
            return [function(value) for value in values]
        try:
            return [each.result() for each in waiting]
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
