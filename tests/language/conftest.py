"""What tests of the language share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from taco_py.language.notation.functions.defined import DEFINED


@pytest.fixture(autouse=True)
def _forget_functions() -> Iterator[None]:
    """Functions that a test defines are those of that test alone."""
    yield
    for name in tuple(DEFINED.operators):
        DEFINED.forget(name)
