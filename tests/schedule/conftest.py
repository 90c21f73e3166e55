"""What all tests of schedules start from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from codegen.devices.launch_record import Launch
from tests.counted_launches import counted_launches
from tests.machines import always_threads


@pytest.fixture(autouse=True)
def threads_for_few_iterations() -> Iterator[None]:
    """Threads run however little there is to share: the operands of tests are small."""
    with always_threads():
        yield


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[Launch]:
    """What each launch on a device that counts has done."""
    return counted_launches(monkeypatch)
