"""Options and settings of the whole test suite.

pytest --combinations some    few, some, pairs or all of the formats of each corpus expression
pytest --examples 500         how many random programs each property test compiles
pytest --update-golden        write golden files instead of comparing with them
"""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).parent.parent

# Kernels that tests compile are kept beside pytest's own cache, never in the user's.
os.environ.setdefault("TACO_PY_CACHE_DIR", str(ROOT / ".pytest_cache" / "kernels"))

hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tacopy")
    group.addoption(
        "--combinations",
        choices=("few", "some", "pairs", "all"),
        default="some",
        help="format combinations of each corpus expression: each format once … every combination",
    )
    group.addoption(
        "--examples", type=int, default=30, help="random programs compiled by each property test"
    )
    group.addoption(
        "--update-golden", action="store_true", help="write golden files instead of comparing"
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are written instead of compared."""
    return bool(request.config.getoption("--update-golden"))
