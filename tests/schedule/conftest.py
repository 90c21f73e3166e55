"""What all tests of schedules start from."""

from __future__ import annotations

import pytest

from taco_py.execute import work


@pytest.fixture(autouse=True)
def threads_for_few_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads run however little there is to share: the operands of tests are small."""
    monkeypatch.setattr(work, "PARALLEL", 0)
