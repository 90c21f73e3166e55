"""The compiler nvcc of the CUDA toolkit."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from codegen.records import dataclass
from codegen.toolchain.compile_unit import TIMEOUT
from codegen.toolchain.cuda.cuda_compilers import FLAGS, CompilerOutput, check_architecture, nearest
from codegen.toolchain.cuda.ptxas_report import parse_report
from codegen.toolchain.errors import CompileError, NoCompilerError
from codegen.toolchain.trust import write_own

_UNSUPPORTED = re.compile(r"(Unsupported gpu architecture|not defined for option)", re.IGNORECASE)
_NO_HOST = re.compile(r"(cl\.exe|[Ff]ailed to preprocess host compiler|gcc: not found|"
                      r"unsupported GNU version|No such file.*(gcc|cc1plus))")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Nvcc:
    """nvcc at `path`; `identity` changes when another one is installed in its place."""

    path: str
    identity: str

    @property
    def name(self) -> str:
        return f"nvcc ({self.path})"

    def compile(
        self, text: str, architecture: str, options: tuple[str, ...], folder: Path
    ) -> CompilerOutput:
        """Return code for `architecture` and its PTX for later ones. Raises CompileError.

        For an architecture that this nvcc does not have, PTX of the nearest older one.
        """
        check_architecture(architecture)
        write_own(folder / "kernel.cu", text.encode())
        number = architecture.removeprefix("sm_")
        try:
            return self._run(architecture, f"[sm_{number},compute_{number}]", options, folder)
        except CompileError as error:
            if not _UNSUPPORTED.search(error.output):
                raise
            older = nearest(architecture, self.architectures())
            if older is None or f"sm_{older}" == architecture:
                raise
        return self._run(f"sm_{older}", f"compute_{older}", options, folder)

    def architectures(self) -> tuple[int, ...]:
        """Return the architectures that it compiles for: (75, 80, 90, …)."""
        process = self._call([self.path, "--list-gpu-code"], Path())
        return tuple(int(number) for number in re.findall(r"sm_(\d+)\b", process.stdout))

    def _run(
        self, architecture: str, code: str, options: tuple[str, ...], folder: Path
    ) -> CompilerOutput:
        number = architecture.removeprefix("sm_")
        command = [self.path, "-fatbin", "-gencode", f"arch=compute_{number},code={code}"]
        command += ["-O3", "-Xptxas", "-v", *FLAGS, *options, "kernel.cu", "-o", "kernel.fatbin"]
        process = self._call(command, folder)
        output = folder / "kernel.fatbin"
        printed = process.stdout + process.stderr
        if process.returncode or not output.exists():
            command_text = f"cd {shlex.quote(str(folder))} && {shlex.join(command)}"
            source, hint = str(folder / "kernel.cu"), _remedy(printed)
            raise CompileError(command_text, printed, source, hint, "nvcc")
        return CompilerOutput(output.read_bytes(), architecture, parse_report(printed))

    def _call(self, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
        # nvcc's own temporary files go where there is room, or where there is found to be none.
        environ = {**os.environ, "LC_ALL": "C"}
        if folder != Path():
            environ["TMPDIR"] = str(folder.absolute())
        try:
            return subprocess.run(
                command,
                cwd=folder,
                env=environ,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            command_text = shlex.join(command)
            raise CompileError(command_text, str(error), str(folder), compiler="nvcc") from error


def _remedy(printed: str) -> str | None:
    if _NO_HOST.search(printed):
        return "nvcc needs a C++ compiler: install g++, or name one by NVCC_PREPEND_FLAGS=-ccbin=…"
    return None


def find_nvcc(environ: Mapping[str, str] = os.environ) -> Nvcc | None:
    """Find $NVCC, else nvcc on the PATH, else in the toolkits' folders. Starts no process.

    Raises NoCompilerError when $NVCC is set and is not a program.
    """
    configured = environ.get("NVCC")
    if configured:
        program = shutil.which(configured, path=environ.get("PATH"))
        if program is None:
            raise NoCompilerError(
                f"Expected the environment variable NVCC to name nvcc, found {configured!r}, which "
                "is not a program",
                hint="unset NVCC, or set it to the path of nvcc",
            )
        return _describe(program, environ)
    places = [environ.get("PATH")]
    roots = (environ.get("CUDA_HOME"), environ.get("CUDA_PATH"), "/usr/local/cuda")
    places += [str(Path(root) / "bin") for root in roots if root]
    for place in places:
        program = shutil.which("nvcc", path=place or "")
        if program is not None:
            return _describe(program, environ)
    return None


def _describe(path: str, environ: Mapping[str, str]) -> Nvcc:
    program = Path(path).resolve()
    facts = program.stat()
    more = [environ.get(name, "") for name in ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")]
    return Nvcc(
        path, " ".join(map(str, ("nvcc", program, facts.st_size, facts.st_mtime_ns, *more)))
    )
