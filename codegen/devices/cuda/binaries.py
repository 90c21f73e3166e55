"""Compiled kernels of CUDA, kept in the kernel cache by text, architecture, options and compiler.

binary = CudaBinaries(cache).get(text, "sm_90")
binary.image                                 # what the driver loads
compile_report(cache, text, "sm_80")         # registers, shared memory and spills, without a GPU
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from codegen.records import dataclass
from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.cuda.cuda_compilers import (
    FLAGS,
    CompilerOutput,
    CudaCompiler,
    check_architecture,
)
from codegen.toolchain.cuda.find_compiler import find_cuda_compiler
from codegen.toolchain.cuda.ptxas_report import KernelReport
from codegen.toolchain.entries import Entry
from codegen.toolchain.processor import digest
from codegen.toolchain.trust import read_own


@dataclass(frozen=True, slots=True)
class CudaBinary:
    """Kernels as the driver loads them.

    architecture  that the code is for
    compiler      that made it
    reports       what each kernel takes, none where the driver is still to compile PTX
    """

    image: bytes
    architecture: str
    compiler: str
    reports: tuple[KernelReport, ...]

    def report(self, kernel: str) -> KernelReport | None:
        """Return the resources that `kernel` takes, where the compiler reported them."""
        return next((report for report in self.reports if report.kernel == kernel), None)


class CudaBinaries:
    """Kernels that one compiler makes; found when it is first needed, where none is given."""

    def __init__(self, cache: KernelCache, compiler: CudaCompiler | None = None) -> None:
        self._cache = cache
        self._compiler = compiler

    @property
    def compiler(self) -> CudaCompiler:
        """Return the compiler."""
        if self._compiler is None:
            self._compiler = find_cuda_compiler()
        return self._compiler

    def get(self, text: str, architecture: str, options: tuple[str, ...] = ()) -> CudaBinary:
        """Return the binary of `text`, from disk or compiled.

        Raises NoCompilerError, CompileError, and ToolchainError for what is no architecture.
        """
        check_architecture(architecture)
        compiler = self.compiler
        key = digest("cuda", text, architecture, compiler.identity, *FLAGS, *options)

        def build(folder: Path) -> tuple[Path, str]:
            compiled = compiler.compile(text, architecture, options, folder)
            output = folder / "kernels.fatbin"
            output.write_bytes(compiled.image)
            return output, _facts(compiled)

        entry = self._cache.load_other(key, build, text)
        return _binary(entry, compiler.name)


def compile_report(
    cache: KernelCache,
    text: str,
    architecture: str,
    options: tuple[str, ...] = (),
    compiler: CudaCompiler | None = None,
) -> dict[str, KernelReport]:
    """Return the resources of each kernel of `text` on `architecture`, which need not be present.

    Raises NoCompilerError and CompileError.
    """
    binary = CudaBinaries(cache, compiler).get(text, architecture, options)
    return {report.kernel: report for report in binary.reports}


def _facts(compiled: CompilerOutput) -> str:
    reports = [dataclasses.asdict(report) for report in compiled.reports]
    return json.dumps({"architecture": compiled.architecture, "reports": reports})


def _binary(entry: Entry, compiler: str) -> CudaBinary:
    facts = json.loads(entry.facts)
    reports = tuple(KernelReport(**row) for row in facts["reports"])
    return CudaBinary(read_own(entry.library), facts["architecture"], compiler, reports)
