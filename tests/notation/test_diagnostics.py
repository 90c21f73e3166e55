"""Carets under the place, and errors that keep what they were told."""

from __future__ import annotations

import doctest
import pickle

import pytest

from taco_py.language.diagnostics import errors, source
from taco_py.language.diagnostics.errors import NotationError, TacoError
from taco_py.language.diagnostics.source import Source, Span
from taco_py.language.notation import parser

LONG = "a + " * 100


@pytest.mark.parametrize(
    ("text", "start", "stop", "carets"),
    [
        ("y = a b", 6, 7, "  y = a b\n        ^"),
        ("y = a b", 4, 7, "  y = a b\n      ^^^"),
        ("y = ", 4, 5, "  y = \n      ^"),
        ("", 0, 1, "  \n  ^"),
        ("y =\n  a b\n+ c", 8, 9, "    a b\n      ^"),
        ("y = a\n+ b", 4, 9, "  y = a\n      ^"),
        ("y =\ta b", 6, 7, "  y =\ta b\n     \t  ^"),
        (LONG, 200, 201, f"  …{LONG[160:280]}…\n   {' ' * 40}^"),
        (LONG, 0, 400, f"  {LONG[:120]}…\n  {'^' * 120}"),
        (LONG, 396, 397, f"  …{LONG[356:]}\n   {' ' * 40}^"),
    ],
)
def test_carets(text: str, start: int, stop: int, carets: str) -> None:
    assert Span(Source(text), start, stop).carets() == carets


def test_an_error_is_made_of_message_carets_and_hint() -> None:
    span = Span(Source("y = 2x"), 5, 6)
    error = NotationError("Expected *, found 'x'", span, "write *")
    assert str(error) == "Expected *, found 'x'\n  y = 2x\n       ^\nhint: write *"
    assert (error.message, error.span, error.hint) == ("Expected *, found 'x'", span, "write *")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) and copy.span == span and copy.hint == "write *"
    assert str(NotationError("alone")) == "alone"


def test_every_error_is_a_taco_error_and_a_builtin_one() -> None:
    family = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, TacoError) and value is not TacoError
    ]
    assert len(family) > 10
    builtin = (
        ValueError, TypeError, IndexError, OverflowError, MemoryError, RuntimeError, ImportError,
    )  # fmt: skip
    assert all(issubclass(each, builtin) for each in family)


@pytest.mark.parametrize("module", [source, parser])
def test_examples_in_docstrings(module: object) -> None:
    tried = doctest.testmod(module)  # type: ignore[arg-type]
    assert tried.attempted > 0 and tried.failed == 0
