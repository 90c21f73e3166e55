"""Keys tell how many threads calls may use, whatever tests before have left."""

from __future__ import annotations

import pytest

import taco_py as tp


@pytest.fixture(autouse=True)
def usual_threads() -> None:
    """As many threads as when keys were made as tests were collected."""
    tp.set_threads(None)
