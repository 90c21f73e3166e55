"""Keys tell how many threads calls may use: as many as when keys were made, before any test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import benchmarks  # noqa: F401 - it limits the threads of calls, whichever test imports it first
import taco_py as tp


@pytest.fixture(autouse=True)
def usual_threads() -> Iterator[None]:
    """Whatever other modules have set meanwhile."""
    tp.set_threads(None)
    yield
    tp.set_threads(None)
