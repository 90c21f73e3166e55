"""C text tried out: compiled, and its functions called on samples in a process of its own.

What divides by zero or never ends there stops that process and not this one, and the samples before
are known to be well.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from codegen.records import dataclass
from codegen.toolchain.compile_unit import Unit, compile_unit
from codegen.toolchain.compiler import Compiler

SECONDS = 20.0
"""After which a function is taken to have no end."""
STRICT = ("-Werror=implicit-function-declaration", "-Werror=return-type")
"""Flags that make errors of what would go wrong later."""

_CALLS = """
import ctypes, os, sys
library, name, arguments, result = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
call = getattr(ctypes.CDLL(library), name)
call.restype = None
data = sys.stdin.buffer.read()
out = ctypes.create_string_buffer(result)
for start in range(0, len(data), arguments):
    sample = ctypes.create_string_buffer(data[start : start + arguments], arguments)
    call(sample, out)
    os.write(1, out.raw)
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """Samples of a function `void name(const T *arguments, R *result)`.

    samples    the arguments of each call, one after the other
    arguments  bytes of the arguments of one call
    result     bytes of its result
    """

    name: str
    samples: bytes
    arguments: int
    result: int


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The results, one after the other, and why there are no more where there are fewer."""

    results: bytes
    stopped: str = ""


def try_out(
    compiler: Compiler, folder: Path, source: str, trials: Sequence[Trial]
) -> tuple[TrialResult, ...]:
    """Compile C text with exported functions in a folder, and call each on its samples.

    Raises CompileError.
    """
    unit = Unit((("trial.c", source),), STRICT, libraries=("m",))
    library = compile_unit(compiler, unit, compiler.flags_for(source), folder)
    return tuple(_called(library, trial) for trial in trials)


def _called(library: Path, trial: Trial) -> TrialResult:
    sizes = (str(trial.arguments), str(trial.result))
    command = [sys.executable, "-I", "-S", "-c", _CALLS, str(library), trial.name, *sizes]
    try:
        process = subprocess.run(
            command, input=trial.samples, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        return TrialResult(error.stdout or b"", f"no end within {SECONDS:.0f} s")
    if process.returncode == 0:
        return TrialResult(process.stdout)
    return TrialResult(process.stdout, _reason(process.returncode, process.stderr))


def _reason(code: int, printed: bytes) -> str:
    """Say why a process ended: the name of a signal, or the last line that it printed."""
    if code < 0:
        return f"an end of the process by {signal.Signals(-code).name}"
    lines = printed.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"an end of the process with status {code}"
