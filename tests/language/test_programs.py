"""Random programs of the whole language give what the oracle gives.

`pytest tests/language/test_programs.py --examples 2000` searches for longer.
"""

from __future__ import annotations

import warnings
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck

from tests.language.programs import Program, outcome, programs


def test_programs(request: pytest.FixtureRequest) -> None:
    settings = hypothesis.settings(
        max_examples=3 * request.config.getoption("--examples"),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

    def agrees(program: Program) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert outcome(program) in ("equal", "refused"), outcome(program)

    check: Any = settings(hypothesis.given(programs())(agrees))
    check()
