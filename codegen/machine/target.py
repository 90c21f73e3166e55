"""What code is made for: a language, a machine, and the device that runs it.

    TARGETS["cuda-emulated"]   →   CUDA C++ for the nominal GPU, run on the CPU

These are facts given as arguments, never asked of the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from codegen.machine.cpu import Processor
from codegen.machine.gpu import NOMINAL_GPU, Gpu
from codegen.records import dataclass

if TYPE_CHECKING:
    from codegen.types import ScalarType


class UnsupportedError(RuntimeError):
    """Something that no code of a target does."""


class Where(Enum):
    """What runs the code: this process, a device that checks each access, or one of its own."""

    NATIVE = "native"
    EMULATED = "emulated"
    DEVICE = "device"


DEFAULT_TARGET = "c"
"""The name of the target of calls that name none."""


@dataclass(frozen=True, slots=True)
class Target:
    """A language, a machine, and what runs the code.

    name      what users call it
    language  by whose name `passes.order` has passes and `codegen.languages` what writes its text
    machine   that code is made for
    where     what runs it
    flags     of the compiler, beyond those that every kernel is built with
    openmp    whether the compiler has OpenMP. Without it, loops keep their `omp simd` pragmas,
              which need -fopenmp-simd or else are ignored
    """

    name: str = DEFAULT_TARGET
    language: str = "c"
    machine: Processor | Gpu = Processor()
    where: Where = Where.NATIVE
    flags: tuple[str, ...] = ()
    openmp: bool = False

    @property
    def is_default(self) -> bool:
        """Tell whether this is the target of calls that name none."""
        return self.name == DEFAULT_TARGET

    @property
    def is_gpu(self) -> bool:
        """Tell whether the code is for a GPU, emulated or not."""
        return isinstance(self.machine, Gpu)

    @property
    def processor(self) -> Processor:
        """Return the CPU that code is made for."""
        assert isinstance(self.machine, Processor)
        return self.machine

    @property
    def gpu(self) -> Gpu:
        """Return the GPU that code is made for."""
        assert isinstance(self.machine, Gpu)
        return self.machine

    def lanes(self, scalar: ScalarType) -> int:
        """Count how many values of `scalar` a vector register holds; 1 where vectors of it are not
        used."""
        if scalar.kind != "float" or isinstance(self.machine, Gpu):
            return 1
        return max(1, self.machine.vector_bytes // scalar.itemsize)


CUDA = Target("cuda", "cuda", NOMINAL_GPU, Where.DEVICE)
TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (Target(), CUDA, replace(CUDA, name="cuda-emulated", where=Where.EMULATED))
}
"""What `target=` may name."""
