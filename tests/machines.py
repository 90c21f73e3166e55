"""Calls that are planned and run for other machines than the nominal one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

from taco_py.call import prepare
from taco_py.cost.machine import NOMINAL
from taco_py.execute import run
from taco_py.kernels import KERNELS
from taco_py.plan.ir.goal import Request


@contextmanager
def planned_for(**fields: Any) -> Iterator[None]:
    """Plan calls for the nominal machine with other values of some fields."""
    request = partial(Request, machine=replace(NOMINAL, **fields))
    KERNELS.memo.clear()
    with mock.patch.object(prepare, "Request", request):
        yield
    KERNELS.memo.clear()


def always_threads() -> Callable[..., Any]:
    """Share each parallel loop, however few iterations it has."""
    return mock.patch.object(run, "useful_threads", lambda problem, tensors, limit, machine: limit)
