"""C text to a shared object, by calling the compiler directly.

setuptools would add 0.4 s. Measured here with gcc 12: a sparse kernel takes 0.1 s, half of which is
the compiler's start, the standard headers and the linker. Python.h would cost 0.05 s more and
cffi's glue another 0.05, so kernels have neither: Python reaches them through one shared object
that is built once (codegen/runtime/host.py).
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from codegen.records import dataclass
from codegen.toolchain.compiler import Compiler
from codegen.toolchain.errors import CompileError

TIMEOUT = 600.0
"""Seconds after which a compiler is given up."""

RUNTIME_FOLDER = Path(__file__).parent.parent / "runtime"
"""Where taco_runtime.h is."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What becomes one shared object: files of the build folder, the first of which is compiled."""

    files: tuple[tuple[str, str], ...]
    flags: tuple[str, ...] = ()  # after all others


@dataclass(frozen=True, slots=True)
class Compilation:
    """A compiler at work."""

    process: subprocess.Popen[str]
    command: str
    source: Path
    output: Path

    def finish(self) -> Path:
        """Wait for it; the shared object. Raises CompileError, with the command to repeat it."""
        try:
            printed = "".join(self.process.communicate(timeout=TIMEOUT))
        except subprocess.TimeoutExpired as error:
            self.cancel()
            raise CompileError(self.command, str(error), str(self.source)) from error
        except BaseException:
            self.cancel()
            raise
        if self.process.returncode != 0 or not self.output.exists():
            raise CompileError(self.command, printed, str(self.source))
        return self.output

    def cancel(self) -> None:
        """End the compiler."""
        self.process.kill()
        self.process.communicate()


def start_compiling(
    compiler: Compiler, unit: Unit, flags: tuple[str, ...], folder: Path
) -> Compilation:
    """Write the files of `unit` into `folder` and start compiling them to a shared object there.

    Raises OSError when the folder cannot be written, CompileError when the compiler does not start.
    """
    for name, text in unit.files:
        (folder / name).write_text(text)
    source, output = folder / unit.files[0][0], folder / "library.so"
    command = [*compiler.command, *_fixed_flags(compiler), *flags, *unit.flags]
    command += [source.name, "-o", output.name, *_libraries()]
    shown = f"cd {shlex.quote(str(folder))} && {shlex.join(command)}"
    # The compiler's own temporary files go where there is room, or where there is found to be none.
    environ = {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C"}
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=environ, stdout=pipe, stderr=pipe, text=True, errors="replace"
        )
    except OSError as error:
        raise CompileError(shown, str(error), str(source)) from error
    return Compilation(process, shown, source, output)


def compile_unit(compiler: Compiler, unit: Unit, flags: tuple[str, ...], folder: Path) -> Path:
    """The shared object of `unit`, in `folder`. Raises what starting and finishing may raise."""
    return start_compiling(compiler, unit, flags, folder).finish()


def _fixed_flags(compiler: Compiler) -> list[str]:
    flags = ["-std=gnu11", "-g0", "-pipe", "-fPIC", "-shared"]
    flags += ["-fvisibility=hidden", f"-I{RUNTIME_FOLDER}"]
    if compiler.kind == "zig":
        flags += ["-fno-sanitize=undefined"]  # which zig adds by itself
    if sys.platform == "darwin":
        flags += ["-undefined", "dynamic_lookup"]
    return flags


def complete() -> tuple[str, ...]:
    """Linker flags that refuse a shared object with symbols that are defined nowhere."""
    return ("-Wl,-z,defs",) if sys.platform.startswith("linux") else ()


def _libraries() -> list[str]:
    return ["-lm", "-ldl", "-lpthread"] if sys.platform.startswith("linux") else ["-lm"]
