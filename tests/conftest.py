"""Options and settings of the whole test suite.

pytest --thorough             the longer searches of the two options below, and the kernels of each
                              third test with the flags that users get
pytest --combinations some    few, some, pairs or all of the formats of each corpus expression
pytest --examples 500         how many random programs each property test compiles
pytest --update-golden        write golden files instead of comparing with them

Kernels are compiled with -Og, in less than half of the time: what most tests ask is what the
generated C means. Modules and tests with the marker `user_flags` ask what the C compiler makes of
it, with the flags that users get; between them they have every kind of kernel.
"""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

import hypothesis
import pytest

from taco_py.kernels import KERNELS

ROOT = Path(__file__).parent.parent

# Kernels that tests compile are kept beside pytest's own cache, never in the user's.
os.environ.setdefault("TACO_PY_CACHE_DIR", str(ROOT / ".pytest_cache" / "kernels"))

hypothesis.settings.register_profile("local", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


QUICK = ("-Og",)
"""Compiler flags of tests without the marker `user_flags`."""

FEW = {"combinations": "few", "examples": 10}
THOROUGH = {"combinations": "some", "examples": 30}
"""What the two options are where they are not given, without --thorough and with it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tacopy")
    group.addoption(
        "--combinations",
        choices=("few", "some", "pairs", "all"),
        help="format combinations of each corpus expression: each format once … every combination",
    )
    group.addoption("--examples", type=int, help="random programs compiled by each property test")
    group.addoption(
        "--thorough",
        action="store_true",
        help="longer searches, each third test with the flags that users get: what CI runs",
    )
    group.addoption(
        "--update-golden", action="store_true", help="write golden files instead of comparing"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "user_flags: compiled with the flags that users get")
    for name, value in (THOROUGH if config.option.thorough else FEW).items():
        if config.getoption(name) is None:
            setattr(config.option, name, value)


def pytest_runtest_setup(item: pytest.Item) -> None:
    KERNELS.compile_with(() if _with_user_flags(item) else QUICK)


def _with_user_flags(item: pytest.Item) -> bool:
    """Whether a test asks for the flags that users get, or is one of the third that has them with
    --thorough: the same ones each time."""
    third = item.config.getoption("--thorough") and crc32(item.nodeid.encode()) % 3 == 0
    return bool(third or item.get_closest_marker("user_flags"))


@pytest.fixture
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether longer searches are asked for."""
    return bool(request.config.getoption("--thorough"))


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are written instead of compared."""
    return bool(request.config.getoption("--update-golden"))
