"""Other plans of any call: comparisons of prices that are decided the other way, drawn by a seed.

    with other_plan(7): tp.evaluate(…)    a plan that prices would not choose, with the same value

The decisions of all rules are reached, whatever makes the plan: calls of `evaluate` and `einsum`,
texts of several statements, masks, semirings, subscripts, traced functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock
from zlib import crc32

from taco_py.data.kernels import KERNELS
from taco_py.planner import search

SHARE = 3
"""Of so many decisions, one is reversed."""


@contextmanager
def other_plan(seed: int) -> Iterator[None]:
    """Plan calls with some decisions reversed; 0 reverses none."""
    decide = search._if_it_pays

    def reverse_some(rule: Any, candidate: Any, program: Any, site: Any, context: Any) -> Any:
        decision = context.log.next_decision(rule.name, site.target)
        if crc32(f"{seed} {decision}".encode()) % SHARE == 0:
            reversed_ = context.goal.reversed ^ {decision}
            context = replace(context, goal=replace(context.goal, reversed=reversed_))
        return decide(rule, candidate, program, site, context)

    KERNELS.memo.clear()
    with mock.patch.object(search, "_if_it_pays", reverse_some if seed else decide):
        yield
    KERNELS.memo.clear()
