"""The cache lines that a kernel's loops touch, in order, and the misses of the best of all caches.

Loops are interpreted, not compiled, and every access to an array's values is written down. A cache
that knows the future and drops the line that is needed last (Belady 1966) misses no more often than
any other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any

import numpy as np
import pytest

from taco_py.calls.kernels.kernel import Kernel
from tests.codegen import interpreter
from tests.interpreted import interpreted

LINE = 64
Trace = list[tuple[str, int]]
"""Arrays and elements, as they are touched."""


class Recorded(np.ndarray[Any, Any]):
    """An array that writes down which elements are read and written one by one."""

    name: str
    trace: Trace

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, int | np.integer):
            self.trace.append((self.name, int(place)))
        return np.asarray(self)[place]

    def __setitem__(self, place: Any, value: Any) -> None:
        if isinstance(place, int | np.integer):
            self.trace.append((self.name, int(place)))
        np.asarray(self)[place] = value


def recorded(kernel: Kernel, monkeypatch: pytest.MonkeyPatch, **operands: Any) -> Trace:
    """What one call of a kernel touches."""
    trace: Trace = []

    class State(interpreter.State):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            for name, array in self.arrays.items():
                own = array.view(Recorded)
                own.name, own.trace = name, trace
                self.arrays[name] = own

    monkeypatch.setattr(interpreter, "State", State)
    (step,) = kernel.plan.kernels
    made = interpreted(step.recipe())
    again = replace(kernel, compiled=(made,), kernels={(step.target, "evaluate"): made})
    again(**operands)
    return [place for place in trace if "_vals" in place[0]]


def least_bytes(trace: Trace, holds: int, item: int = 8) -> int:
    """The bytes that enter the best cache of so many bytes, in whole lines."""
    lines = [(name, at * item // LINE) for name, at in trace]
    return LINE * misses(lines, holds // LINE)


def misses(lines: Sequence[tuple[str, int]], room: int) -> int:
    """How often the best cache of so many lines has to fetch one.

    a b a c a b, room for 2   →   4: a, b, c in the place of b, b
    """
    after: list[int] = [0] * len(lines)
    seen: dict[tuple[str, int], int] = {}
    for at in reversed(range(len(lines))):
        after[at] = seen.get(lines[at], len(lines))
        seen[lines[at]] = at
    held: dict[tuple[str, int], int] = {}
    latest: list[tuple[int, tuple[str, int]]] = []
    count = 0
    for at, line in enumerate(lines):
        if line not in held:
            count += 1
            while len(held) >= room:
                use, other = heappop(latest)
                if held.get(other) == -use:
                    del held[other]
        held[line] = after[at]
        heappush(latest, (-after[at], line))
    return count
