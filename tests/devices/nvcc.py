"""What nvcc says of texts of CUDA, several of them in one run of it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

NVCC = shutil.which("nvcc")
needs_nvcc = pytest.mark.skipif(
    NVCC is None, reason="no nvcc on the PATH: CUDA text is only emulated here"
)
QUICK = ("-Xcicc", "-O0", "-Xptxas", "-O0")
"""Options for texts of which is asked that they compile: half of the time goes into better code."""


def as_one(texts: Iterable[str]) -> str:
    """Texts one below the other, each in a namespace of its own, with names as C++ has them.

    `#include <stdint.h>` / `static … f(…)` twice → `#include <stdint.h>` / `namespace text_0 { … }`
    """
    heads: dict[str, None] = {}
    bodies = []
    for number, text in enumerate(texts):
        lines = text.replace('extern "C" ', "").split("\n")
        heads.update(dict.fromkeys(line for line in lines if line.startswith("#include")))
        body = "\n".join(line for line in lines if not line.startswith("#include"))
        bodies.append(f"namespace text_{number} {{\n{body}\n}}")
    return "\n".join([*heads, *bodies])


def check_compiles(text: str, architecture: str, folder: Path, options: Iterable[str] = ()) -> None:
    """Compile `text` without a warning."""
    (folder / "kernels.cu").write_text(text)
    command = [str(NVCC), f"-arch={architecture}", "-cubin", "-Werror", "all-warnings", *options]
    done = subprocess.run(
        [*command, "kernels.cu"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "kernels.cubin").exists()
