"""Random programs of the whole language give what the oracle gives.

`pytest tests/language/test_programs.py --examples 2000` searches for longer, and

    python -m tests.language.search [seconds] [--seed S]

prints every program that differs.
"""

from __future__ import annotations

from random import Random

import hypothesis
import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st

from tests.language.outcomes import outcome
from tests.language.programs import program


def test_programs(request: pytest.FixtureRequest) -> None:
    settings = hypothesis.settings(
        max_examples=6 * request.config.getoption("--examples"),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )

    def agrees(random: Random) -> None:
        drawn = program(random)
        for seed in range(2):
            assert outcome(drawn, seed) in ("equal", "refused"), (drawn, outcome(drawn, seed))

    settings(hypothesis.given(st.randoms(use_true_random=False))(agrees))()
