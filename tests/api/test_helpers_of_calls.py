"""Functions that calls made before may call are those that their text names."""

from __future__ import annotations

import pytest

from taco_py.running.replay.call_text import HELPERS
from taco_py.running.replay.helpers import PLACES, Helper


@pytest.mark.parametrize("place", sorted(PLACES))
def test_each_function_is_there(place: str) -> None:
    assert callable(Helper(place).function())


def test_what_texts_name_may_be_called() -> None:
    assert {helper.place for helper in HELPERS.values()} <= PLACES
