"""How many threads calls use that do not say it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
import taco_py.running.replay.find as short
from codegen.toolchain.thread_limits import thread_limit

X = np.random.default_rng(0).random((400, 400))
TEXT = "C[i,j] = A[i,j] * A[i,j]"


@pytest.fixture(autouse=True)
def as_many_as_cores() -> Iterator[None]:
    yield
    tp.set_threads(None)


def test_as_many_as_cores_unless_limited() -> None:
    assert tp.get_threads() == thread_limit()
    tp.set_threads(3)
    assert tp.get_threads() == 3
    tp.set_threads(None)
    assert tp.get_threads() == thread_limit()


def used(call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of threads that kernels were called with, once and by their short way."""
    found: list[int] = []
    usual = short.define

    def define(parts: Any, kernels: Any, limit: int, more: Any) -> Any:
        found.append(limit)
        return usual(parts, kernels, limit, more)

    monkeypatch.setattr(short, "define", define)
    monkeypatch.setattr("taco_py.running.replay.make_call.define", define)
    call()
    call()
    return found


@pytest.mark.parametrize("way", ["evaluate", "kernel"])
def test_calls_that_were_made_before_follow(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tp.compile(TEXT, A=tp.dense(2), C=tp.dense(2))

    def call() -> Any:
        return kernel(A=X) if way == "kernel" else tp.evaluate(TEXT, A=X)

    for count in (4, 1, 2):
        tp.set_threads(count)
        assert used(call, monkeypatch) == [count]
        np.testing.assert_array_equal(call(), X * X)


@pytest.mark.parametrize("count", [0, -1, 1.5, "2", True])
def test_numbers_that_are_none(count: Any) -> None:
    with pytest.raises(ValueError, match="positive number of threads"):
        tp.set_threads(count)
    assert tp.get_threads() == thread_limit()


def test_explain_says_how_many_threads_run_and_why() -> None:
    spmv = "y[i] = A[i,j] * x[j]"
    small, large = (sp.eye_array(n, format="csr") for n in (10, 40_000))

    def told(matrix: sp.csr_array, threads: int | None) -> str:
        x = np.ones(matrix.shape[1])
        text = tp.explain(spmv, A=matrix, x=x, threads=threads, schedule_budget=0)
        (line,) = (line for line in text.splitlines() if line.startswith("  threads "))
        return line.split(maxsplit=1)[1]

    assert (
        told(small, 2) == "1, for 10 iterations are less than the 30000 that others are woken for"
    )
    assert told(large, 2) == "2, for there are up to 40000 iterations to share"
    assert told(large, 1).startswith("1, for no more may be used: threads=")
    kernel = tp.compile(spmv, A=tp.CSR, x=tp.dense(1), threads=3)
    assert "threads     3, and 1 where there are less than 30000 iterations" in kernel.explain()
