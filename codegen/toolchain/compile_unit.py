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
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from codegen.records import dataclass
from codegen.toolchain.compiler import Compiler
from codegen.toolchain.entries import Entry
from codegen.toolchain.errors import CompileError
from codegen.toolchain.store import Store
from codegen.toolchain.trust import write_own

TIMEOUT = 600.0
"""Seconds after which a compiler is given up."""

RUNTIME_FOLDER = Path(__file__).parent.parent / "runtime"
"""Where taco_runtime.h is."""

_FOLDER_TROUBLE = (
    "No space left on device", "Read-only file system", "Disk quota exceeded", "[Bus error]",
)  # fmt: skip
"""What compilers say when it is the folder that is at fault: a linker that maps a file on a full
disk ends with the last one."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What becomes one file.

    files      of the build folder; the first one is compiled
    flags      after all others
    objects    of other units that it is linked to
    libraries  of the system that it is linked to; the linker takes 1 ms to read each
    output     what is made: `….so`, to be loaded, or `….o`, to be linked to others
    make_late  makes one more object while the first file is compiled
    """

    files: tuple[tuple[str, str], ...]
    flags: tuple[str, ...] = ()
    objects: tuple[Path, ...] = ()
    libraries: tuple[str, ...] = ()
    output: str = "library.so"
    make_late: Callable[[], Path] | None = None


@dataclass(frozen=True, slots=True)
class Compilation:
    """A compiler at work."""

    process: subprocess.Popen[str]
    command: str
    source: Path
    output: Path

    def finish(self) -> Path:
        """Wait for it; the output. Raises CompileError, with the command to repeat it."""
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
    """Write the files of `unit` into `folder` and start compiling them there.

    Raises OSError when the folder cannot be written, CompileError when the compiler does not start.
    """
    for name, text in unit.files:
        write_own(folder / name, text.encode())
    return _start(compiler, unit, flags, folder, unit.files[0][0])


def _start(
    compiler: Compiler, unit: Unit, flags: tuple[str, ...], folder: Path, input_name: str
) -> Compilation:
    """Start compiling or linking a file of `folder`. Raises CompileError when that does not
    start."""
    source, output = folder / input_name, folder / unit.output
    command = [*compiler.command, *_fixed_flags(compiler), *flags, *unit.flags]
    command += ["-c" if output.suffix == ".o" else "-shared", source.name, "-o", output.name]
    if output.suffix != ".o":
        command += [*map(str, unit.objects), *(f"-l{name}" for name in unit.libraries)]
    command_text = f"cd {shlex.quote(str(folder))} && {shlex.join(command)}"
    # The compiler's own temporary files go where there is room, or where there is found to be none.
    environ = {**os.environ, "TMPDIR": str(folder), "LC_ALL": "C"}
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environ,
            stdout=pipe,
            stderr=pipe,
            text=True,
            errors="replace",
            umask=0o077,
        )
    except OSError as error:
        raise CompileError(command_text, str(error), str(source)) from error
    return Compilation(process, command_text, source, output)


def compile_unit(compiler: Compiler, unit: Unit, flags: tuple[str, ...], folder: Path) -> Path:
    """Return the output of `unit`, in `folder`.

    Raises what starting and finishing may raise, and what `make_late` raises.
    """
    if unit.make_late is None:
        return start_compiling(compiler, unit, flags, folder).finish()
    compilation = start_compiling(compiler, replace(unit, output="unit.o"), flags, folder)
    try:
        late = unit.make_late()
    except BaseException:
        compilation.cancel()
        raise
    compiled = compilation.finish()
    linked = replace(unit, objects=(*unit.objects, late))
    return _start(compiler, linked, flags, folder, compiled.name).finish()


def build_entry(
    store: Store,
    key: str,
    compiler: Compiler,
    unit: Unit,
    flags: tuple[str, ...],
    source: str,
    facts: str = "",
) -> Entry:
    """Compile `unit` and store the output under `key`, with its `source` and `facts`.

    Where the folder is at fault, as on a full disk, that is done once more in a private one.

    Raises CompileError, about a folder that is kept for a day, and OSError, or ToolchainError where
    nothing can be written at all.
    """
    folder = store.folder
    try:
        return _built(store, key, compiler, unit, flags, source, facts)
    except OSError as error:
        store.retreat(folder, str(error))
    except CompileError as error:
        if not is_folder_trouble(error):
            raise
        store.retreat(folder, error.output.strip())
    return _built(store, key, compiler, unit, flags, source, facts)


def is_folder_trouble(error: CompileError) -> bool:
    """Tell whether it is the folder that is at fault, not the source."""
    return any(trouble in error.output for trouble in _FOLDER_TROUBLE)


def _built(
    store: Store,
    key: str,
    compiler: Compiler,
    unit: Unit,
    flags: tuple[str, ...],
    source: str,
    facts: str,
) -> Entry:
    """Compile and store. Raises CompileError and OSError."""
    with store.workplace() as place:
        try:
            output = compile_unit(compiler, unit, flags, place)
        except CompileError as error:
            raise moved_error(error, place, store.keep(place, key)) from None
        return store.store(key, output, source, facts)


def moved_error(error: CompileError, place: Path, target: Path) -> CompileError:
    """Return `error` about the build folder after it was moved from `place` to `target`."""
    old, new = str(place), str(target)
    source = target / "kernel.c"
    shown_source = source if source.exists() else error.source.replace(old, new)
    command = error.command.replace(old, new)
    return CompileError(command, error.output, str(shown_source), error.hint, error.compiler)


def _fixed_flags(compiler: Compiler) -> list[str]:
    flags = ["-std=gnu11", "-g0", "-pipe", "-fPIC"]
    flags += ["-fvisibility=hidden", f"-I{RUNTIME_FOLDER}"]
    if compiler.kind == "zig":
        flags += ["-fno-sanitize=undefined"]  # which zig adds by itself
    if sys.platform == "darwin":
        flags += ["-undefined", "dynamic_lookup"]
    return flags


def complete() -> tuple[str, ...]:
    """Return linker flags that refuse undefined symbols."""
    return ("-Wl,-z,defs",) if sys.platform.startswith("linux") else ()
