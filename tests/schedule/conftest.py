"""What all tests of schedules start from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from codegen.devices.emulated import EmulatedDevice
from codegen.devices.launch_record import Launch
from taco_py import devices
from taco_py.kernels import KERNELS
from tests.machines import always_threads


@pytest.fixture(autouse=True)
def threads_for_few_iterations() -> Iterator[None]:
    """Threads run however little there is to share: the operands of tests are small."""
    with always_threads():
        yield


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Launch]]:
    """What each launch on a device that counts has done."""
    found: list[Launch] = []

    class Counting(EmulatedDevice):
        def load(self, text: str, options: Any = ()) -> Any:
            module = super().load(text, options)
            launch = module.launch

            def counted(*arguments: Any, **named: Any) -> Launch:
                record = launch(*arguments, **named)
                found.append(record)
                return record

            module.launch = counted  # type: ignore[method-assign]
            return module

    device = Counting(KERNELS, counting=True)
    monkeypatch.setattr(devices, "device_of", lambda target: device)
    monkeypatch.setattr(devices, "remembered", lambda key, make: make())
    yield found
