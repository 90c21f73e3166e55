"""`python -m benchmarks.stages CALL FOLDER`: the stages of two calls of a process, as JSON.

The first SpMV, with `import taco_py`, and CALL after it: milliseconds of each stage in the calling
thread, where an import inside a stage counts as import alone. The files that the compiler reads,
and its command, are kept in FOLDER/SpMV and FOLDER/CALL.
"""

from __future__ import annotations

import builtins
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

SPMV = "SpMV"
CALLS = {
    "SpMM": "C[i,k] = A[i,j] * U[j,k]",
    "SpGEMM": "C[i,k] = A[i,j] * B[j,k]",
    "SDDMM": "C[i,j] = A[i,j] * U[i,k] * V[k,j]",
    "sum": "C[i,j] = A[i,j] + B[i,j]",
}
TOTAL = "total"
STAGES = ("imports", "planning", "lowering", "passes", "emitting", "compiler", "loading", "running")
# Functions by the module and the name through which they are called, and their stages.
FUNCTIONS = (
    ("taco_py.compiler.driver", "_lowered", "lowering"),
    ("codegen.passes.order", "run_passes", "passes"),
    ("codegen.emit.c", "emit_c", "emitting"),
    ("codegen.runtime.kernel_cache", "KernelCache._build", "compiler"),
    ("codegen.runtime.kernel_cache", "KernelCache._load", "loading"),
)
Function = Callable[..., Any]


class Clock:
    """How long the main thread has been in each stage; a stage inside another interrupts it."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.stack = ["planning"]
        self.restart()

    def restart(self) -> None:
        self.started = self.changed = time.perf_counter()
        self.seconds = dict.fromkeys(STAGES, 0.0)

    def switch(self) -> None:
        now = time.perf_counter()
        self.seconds[self.stack[-1]] += now - self.changed
        self.changed = now

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self.switch()
        self.stack.append(name)
        try:
            yield
        finally:
            self.switch()
            self.stack.pop()

    def result(self) -> dict[str, float]:
        """Milliseconds of all, and of each stage."""
        self.switch()
        seconds = {TOTAL: self.changed - self.started, **self.seconds}
        return {name: 1e3 * value for name, value in seconds.items()}

    def timed(self, stage: str, function: Function) -> Function:
        """`function`, which is `stage` in the main thread."""

        @wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            if threading.get_ident() != self.thread or self.stack[-1] == stage:
                return function(*arguments, **keywords)
            with self.stage(stage):
                return function(*arguments, **keywords)

        return call


class Watch:
    """Times the functions of FUNCTIONS as soon as their modules are imported.

    folder  where files and command of the next kernel are kept
    """

    def __init__(self, clock: Clock, folder: Path) -> None:
        self.clock = clock
        self.folder = folder
        replacements = [(m, n, self._timed(stage)) for m, n, stage in FUNCTIONS]
        replacements.append(("codegen.runtime.kernel_cache", "callables", self._timed_calls))
        replacements.append(("codegen.toolchain.compile_unit", "start_compiling", self._kept))
        self.waiting = replacements
        self.old = builtins.__import__
        self.timed_import = clock.timed("imports", self.old)
        builtins.__import__ = self._import

    def _import(self, *arguments: Any, **keywords: Any) -> Any:
        found = self.timed_import(*arguments, **keywords)
        for row in tuple(self.waiting):
            module = sys.modules.get(row[0])
            if module is not None and not module.__spec__._initializing:  # type: ignore[union-attr]
                self.waiting.remove(row)
                *owners, name = row[1].split(".")
                owner: Any = getattr(module, owners[0]) if owners else module
                setattr(owner, name, row[2](getattr(owner, name)))
        return found

    def _timed(self, stage: str) -> Callable[[Function], Function]:
        return lambda function: self.clock.timed(stage, function)

    def _timed_calls(self, callables: Function) -> Function:
        def timed(*arguments: Any) -> dict[str, Function]:
            found = callables(*arguments)
            return {name: self.clock.timed("running", call) for name, call in found.items()}

        return timed

    def _kept(self, start_compiling: Function) -> Function:
        def kept(compiler: Any, unit: Any, flags: Any, folder: Path) -> Any:
            if threading.get_ident() == self.clock.thread and unit.output.endswith(".so"):
                self.folder.mkdir()
                for name, text in unit.files:
                    (self.folder / name).write_text(text)
            started = start_compiling(compiler, unit, flags, folder)
            if (self.folder / unit.files[0][0]).exists():
                (self.folder / "command").write_text(started.command.partition(" && ")[2])
            return started

        return kept


def main(second: str, folder: Path) -> None:
    rng = np.random.default_rng(0)
    sparse, other = (sp.random_array((1000, 1000), density=0.01, format="csr") for _ in range(2))
    dense = rng.random((1000, 1000))
    tensors = {"A": sparse, "B": other, "U": dense, "V": dense}
    operands = {name: tensor for name, tensor in tensors.items() if f"{name}[" in CALLS[second]}
    x = np.ones(1000)
    clock = Clock()
    watch = Watch(clock, folder / SPMV)
    clock.restart()
    import taco_py as tp

    tp.einsum("ij,j->i", sparse, x)
    first = clock.result()
    watch.folder = folder / second
    clock.restart()
    tp.evaluate(CALLS[second], **operands)
    print(json.dumps({SPMV: first, second: clock.result()}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
