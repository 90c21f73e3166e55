"""Where nvcc is at hand: it compiles the very texts that the emulated device runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.devices.kernels import CASES
from tests.devices.names import EVERY_NAME
from tests.devices.nvcc import as_one, check_compiles, needs_nvcc


@needs_nvcc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_nvcc_accepts_all_texts(architecture: str, tmp_path: Path) -> None:
    texts = [case.text for case in (*CASES, EVERY_NAME)]
    check_compiles(as_one(texts), architecture, tmp_path)
