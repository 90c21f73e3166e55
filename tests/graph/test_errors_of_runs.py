"""Errors while a graph runs name the user's lines; interrupts end it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.graph.run.graph_program import NumpyRun

x = np.arange(12.0).reshape(3, 4)


def two_kinds(a: Any, b: Any) -> Any:
    return np.cumsum(np.exp(a), axis=1) @ b


def notes_of(error: BaseException) -> str:
    return " ".join((str(error), *getattr(error, "__notes__", ())))


@pytest.mark.parametrize("warm", [0, 2])
def test_sizes_that_do_not_fit_name_the_line(warm: int) -> None:
    fused = tp.fuse(two_kinds)
    for _ in range(warm):
        fused(x, np.ones(4))
    with pytest.raises((tp.TacoError, ValueError)) as caught:
        fused(x, np.ones(5))
    assert "test_errors_of_runs.py" in notes_of(caught.value)


@pytest.mark.parametrize("warm", [0, 2])
@pytest.mark.parametrize(
    "error",
    [ValueError("wrong"), MemoryError(), KeyboardInterrupt()],
    ids=lambda e: type(e).__name__,
)
def test_errors_of_numpy_name_the_line_and_interrupts_pass(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, warm: int
) -> None:
    fused = tp.fuse(two_kinds)
    for _ in range(warm):
        fused(x, np.ones(4))
    fused.routes.clear()  # the short way gives up, then the long one tells

    def failing(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(NumpyRun, "run", failing)
    with pytest.raises(type(error)) as caught:
        fused(x, np.ones(4))
    named = "test_errors_of_runs.py" in notes_of(caught.value)
    assert named is isinstance(error, Exception)
    monkeypatch.undo()
    np.testing.assert_allclose(fused(x, np.ones(4)), two_kinds(x, np.ones(4)))


@pytest.mark.parametrize(
    "function", [lambda a, b: (a @ b) @ a, lambda a, b: np.cumsum(a @ b, axis=1) @ a]
)
@pytest.mark.parametrize("warm", [0, 2])
def test_the_memory_guard_names_the_line(function: Callable[..., Any], warm: int) -> None:
    fused = tp.fuse(function)
    large = np.ones((300, 300))
    for _ in range(warm):
        fused(large, large)
    before = tp.get_memory_limit()
    tp.set_memory_limit("100 kB")
    try:
        with pytest.raises(tp.OutOfMemoryError) as caught:
            fused(large, large)
    finally:
        tp.set_memory_limit(before)
    assert "test_errors_of_runs.py" in notes_of(caught.value)
