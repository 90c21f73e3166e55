"""help() of the public names: complete, short, and with examples that run."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

FUNCTIONS = sorted(name for name in tp.__all__ if inspect.isfunction(getattr(tp, name)))
TUNING = {name: getattr(tp.tuning, name) for name in tp.tuning.__all__}
OF_NETWORKS = sorted(f"nn.{name}" for name in tp.nn.__all__)
OF_TUNING = sorted(f"tuning.{name}" for name, found in TUNING.items() if inspect.isfunction(found))
CLASSES = (
    "DeviceTensor", "Format", "Kernel", "Program", "Pullback", "Pushforward", "Schedule", "Tensor",
    "TrainState", "TrainStep", "TunedCall", "TuningRecord", "TuningStore",
)  # fmt: skip
GLOBALS: dict[str, Any] = {"tp": tp, "np": np, "sp": sp, **{n: getattr(tp, n) for n in tp.__all__}}
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods, class methods and properties of a class."""
    for name, found in vars(cls).items():
        if not name.startswith("_") and not inspect.ismemberdescriptor(found):
            yield name, getattr(found, "__func__", found)


def public() -> Iterator[tuple[str, Any]]:
    """Every public function, class and method that users call, by its name."""
    yield from ((name, getattr(tp, name)) for name in FUNCTIONS)
    yield from ((name, TUNING[name.partition(".")[2]]) for name in OF_TUNING)
    yield from ((name, getattr(tp.nn, name.partition(".")[2])) for name in OF_NETWORKS)
    for name in (*CLASSES, *(own for own, found in TUNING.items() if inspect.isclass(found))):
        cls = TUNING.get(name) or getattr(tp, name)
        yield name, cls
        yield from ((f"{name}.{each}", found) for each, found in methods(cls))


PUBLIC = dict(public())


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", PUBLIC)
def test_the_first_sentence_is_a_sentence_of_at_most_18_words(name: str) -> None:
    first, *_ = (inspect.getdoc(PUBLIC[name]) or "").split("\n\n")
    assert first.strip().endswith("."), f"{name} has {first!r}"
    assert len(first.split()) <= 18, first


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", [*FUNCTIONS, *OF_NETWORKS, *OF_TUNING])
def test_every_argument_is_named_in_the_text(name: str) -> None:
    function: Callable[..., Any] = PUBLIC[name]
    text = inspect.getdoc(function) or ""
    wanted = inspect.signature(function).parameters
    behind = text.rpartition(">>>")[2]
    missing = [each for each in wanted if not re.search(rf"\b{each}\b", behind)]
    assert not missing, f"{name} does not say what {missing} are"


@pytest.mark.rotating(1)
@pytest.mark.parametrize("name", [*FUNCTIONS, *OF_NETWORKS, *OF_TUNING, *CLASSES])
def test_there_are_two_examples_that_run(name: str) -> None:
    found = PUBLIC[name]
    assert (inspect.getdoc(found) or "").count(">>> ") >= 2, name


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_run(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    example = doctest.DocTestParser().get_doctest(text, dict(GLOBALS), name, None, None)
    lines: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    tp.set_threads(1)
    try:
        runner.run(example, out=lines.append)
    finally:
        tp.set_threads(None)
    assert not runner.failures, "".join(lines)
