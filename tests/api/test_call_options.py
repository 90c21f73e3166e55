"""The options of calls as one checked class."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import taco_py as tp
from taco_py.arguments.options import CHECKED_LATER, CHECKS, CallOptions
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.diagnostics.option_table import options_of

READ_BY_DOORS = {"out", "semiring", "mask", "replace", "memory_limit"}
"""The options of `evaluate` that are no part of `CallOptions`: arrays, and limits of memory."""


def test_every_option_of_evaluate_is_checked() -> None:
    assert {*CHECKS, *CHECKED_LATER} | READ_BY_DOORS == options_of("evaluate")


def test_mistakes_are_reported_in_one_order() -> None:
    with pytest.raises(ScheduleError, match="threads"):
        CallOptions.of({"target": "abacus", "allow": "everything", "threads": 0})
    with pytest.raises(tp.OperandTypeError, match="allow"):
        CallOptions.of({"target": "abacus", "allow": "everything", "threads": 1})


def test_schedules_that_are_timed_need_data() -> None:
    assert CallOptions.of({"schedule": "measure"}) == CallOptions(measure=True)
    assert CallOptions.of({"schedule": "tuned"}) == CallOptions(tuned=True)
    with pytest.raises(ScheduleError, match="for formats alone"):
        CallOptions.of_kernel({"schedule": "measure"})


def test_plans_do_not_depend_on_the_results_that_are_wanted() -> None:
    options = CallOptions.of({"outputs": ["P", "z"], "shape": [3], "border": "fill"})
    assert options == CallOptions()
    assert hash(options) == hash(CallOptions())


def test_options_are_read_by_name() -> None:
    places = [
        f"{path}:{node.lineno}"
        for path in Path(tp.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("options", "settings", "keywords")
        and isinstance(node.slice, ast.Constant | ast.UnaryOp | ast.Slice)
        and not (isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str))
    ]
    assert places == []
