"""Launches on an emulated device that counts what memory does."""

from __future__ import annotations

from typing import Any

import pytest

from codegen.devices.emulated import EmulatedDevice
from codegen.devices.launch_record import Launch
from taco_py.compiler import devices
from taco_py.data.kernels import KERNELS


def counted_launches(monkeypatch: pytest.MonkeyPatch) -> list[Launch]:
    """What each launch from now on has done, in order: the emulated device is one that counts."""
    found: list[Launch] = []

    class Counting(EmulatedDevice):
        def load(self, text: str, options: Any = ()) -> Any:
            module = super().load(text, options)
            launch = module.launch

            def counted(*arguments: Any, **named: Any) -> Launch:
                found.append(launch(*arguments, **named))
                return found[-1]

            module.launch = counted  # type: ignore[method-assign]
            return module

    device = Counting(KERNELS, counting=True)
    monkeypatch.setattr(devices, "device_of", lambda target: device)
    monkeypatch.setattr(devices, "remembered", lambda key, make: make())
    return found
