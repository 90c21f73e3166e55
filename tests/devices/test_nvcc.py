"""Where nvcc is at hand: it compiles the very texts that the emulated device runs."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.devices.kernels import CASES
from tests.devices.names import EVERY_NAME

NVCC = shutil.which("nvcc")


@pytest.mark.skipif(NVCC is None, reason="no nvcc on the PATH: CUDA text is only emulated here")
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_nvcc_accepts_all_texts(architecture: str, tmp_path: Path) -> None:
    """Each in a file of its own, in one run of nvcc."""
    texts = {case.name: case.text for case in CASES} | {"every_name": EVERY_NAME.text}
    for name, text in texts.items():
        (tmp_path / f"{name}.cu").write_text(text)
    command = [str(NVCC), f"-arch={architecture}", "-cubin", "--threads", "2"]
    command += ["-Werror", "all-warnings", *(f"{name}.cu" for name in texts)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path.stem for path in tmp_path.glob("*.cubin")} == set(texts)
