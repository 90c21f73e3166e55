"""What a compiler of CUDA C++ is: text and an architecture to what the driver loads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from codegen.records import dataclass
from codegen.toolchain.cuda.ptxas_report import KernelReport
from codegen.toolchain.errors import ToolchainError

ARCHITECTURE = re.compile(r"sm_(\d{2,3})([af]?)")
FLAGS = ("-std=c++17", "--fmad=true")
"""For every kernel: as the C kernels, products and sums become one operation with one rounding."""


@dataclass(frozen=True, slots=True)
class CompilerOutput:
    """A text after a compiler.

    architecture  that the code is for: older than was asked for where the compiler does not have it
    reports       of each kernel; none where the driver is to compile PTX
    """

    image: bytes
    architecture: str
    reports: tuple[KernelReport, ...]


class CudaCompiler(Protocol):
    """`name` is what errors call it, `identity` changes with its version."""

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> str: ...

    def compile(
        self, text: str, architecture: str, options: tuple[str, ...], folder: Path
    ) -> CompilerOutput:
        """Compile in an empty `folder`. Raises CompileError."""


def check_architecture(architecture: str) -> tuple[int, str]:
    """Return the number and letter of "sm_90a". Raises ToolchainError for another text."""
    match = ARCHITECTURE.fullmatch(architecture)
    if match is None:
        raise ToolchainError(
            f"Expected an architecture like sm_90, found {architecture!r}",
            hint="sm_ and the compute capability: sm_80 for A100, sm_90 for H100 and H200",
        )
    return int(match[1]), match[2]


def nearest(architecture: str, numbers: tuple[int, ...]) -> int | None:
    """Return the number of `architecture` where a compiler has it, else the largest one below it.

    The driver compiles PTX of that one for the device. None where there is none below.
    """
    requested, _ = check_architecture(architecture)
    return max((number for number in numbers if number <= requested), default=None)
