"""What do the first SpMV of a process, with its import, a second new kernel, and a step cost?

With an empty kernel cache, stage by stage, and from the cache on disk. The step is the first one of
the training of a perceptron (`training_models.py`), without import: also in processor time, of
which other processes take nothing. The stages are those of the
calling thread: `compiler` is the time that it waits, of which cc1, as and ld are processor time.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from benchmarks.measure import Record, record
from benchmarks.processes import ROOT, install, printed
from benchmarks.stages import CALLS, TOTAL

PROCESSES = 15
IMPORTED = """
import time, numpy as np, scipy.sparse as sp
A, x = sp.random_array((1000, 1000), density=0.01, format="csr"), np.ones(1000)
start = time.perf_counter()
import taco_py as tp
tp.einsum("ij,j->i", A, x)
print(1e3 * (time.perf_counter() - start))
"""
STEP = """
import json, time
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
import numpy as np
import taco_py as tp
from benchmarks.measure import in_threads
from benchmarks.training_models import perceptron

def used(who):
    usage = getrusage(who)
    return usage.ru_utime + usage.ru_stime

model = perceptron(np.random.default_rng(0))
step = tp.train_step(model.loss, rate=1e-3)
state = step.begin(model.parameters)
with in_threads(2):
    before = time.perf_counter(), used(RUSAGE_SELF), used(RUSAGE_CHILDREN)
    step(state, **model.data)
    after = time.perf_counter(), used(RUSAGE_SELF), used(RUSAGE_CHILDREN)
print(json.dumps([1e3 * (b - a) for a, b in zip(before, after)]))
"""
STEP_STAGES = ("time", "processor, this process", "processor, compilers")
STEPS = 5
WRITE_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""As an installed package has it, whatever this process was told."""

Samples = dict[str, dict[str, list[float]]]


def run() -> Iterator[Record]:
    yield from _totals()
    yield from _training_step()
    samples: Samples = {}
    for _ in range(PROCESSES):
        for second in CALLS:
            for input_name, stages in _stages(second).items():
                for stage, milliseconds in stages.items():
                    samples.setdefault(input_name, {}).setdefault(stage, []).append(milliseconds)
    for input_name, stages in samples.items():
        for stage, values in stages.items():
            yield record("first_call", input_name, stage, values, "ms")


def _totals() -> Iterator[Record]:
    """The first SpMV without anything that measures its stages, of the checkout and installed.

    The sources of a checkout are looked at for edits.
    """
    samples: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as installed:
        install(Path(installed))
        roots = {"": ROOT, ", installed": Path(installed)}
        for root in roots.values():
            printed(IMPORTED, WRITE_BYTECODE, root)
        for _ in range(PROCESSES):
            for place, root in roots.items():
                with tempfile.TemporaryDirectory() as folder:
                    for name in ("cold", "from disk"):
                        environment = {"TACO_PY_CACHE_DIR": folder, **WRITE_BYTECODE}
                        value = printed(IMPORTED, environment, root)
                        samples.setdefault(f"{name}{place}", []).append(value)
    for name, values in samples.items():
        yield record("first_call", "SpMV, with import taco_py", name, values, "ms")


def _training_step() -> Iterator[Record]:
    """The first step of a training, with an empty cache of kernels and with kernels on disk."""
    samples: dict[tuple[str, str], list[float]] = {}
    for _ in range(STEPS):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("cold", "from disk"):
                done = subprocess.run(
                    [sys.executable, "-c", STEP],
                    capture_output=True,
                    text=True,
                    check=True,
                    cwd=ROOT,
                    env={**os.environ, "TACO_PY_CACHE_DIR": folder, **WRITE_BYTECODE},
                )
                for stage, value in zip(STEP_STAGES, json.loads(done.stdout), strict=True):
                    samples.setdefault((name, stage), []).append(value)
    for (name, stage), values in samples.items():
        yield record("first_call", "step of a perceptron", f"{name}, {stage}", values, "ms")


def _stages(second: str) -> dict[str, dict[str, float]]:
    """Milliseconds of each stage, of the first call of a process and of `second` after it."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.stages", second, folder],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "TACO_PY_CACHE_DIR": f"{folder}/cache", **WRITE_BYTECODE},
        )
        calls: dict[str, dict[str, float]] = json.loads(done.stdout)
        return {
            f"{name}, stage by stage": stages | _compiler_stages(Path(folder) / name)
            for name, stages in calls.items()
            if TOTAL in stages
        }


def _compiler_stages(folder: Path) -> dict[str, float]:
    """Processor time of the programs that the compiler starts for the kernel kept in `folder`."""
    command = shlex.split((folder / "command").read_text())
    output = command.index("-o")
    head, tail = command[: output - 1], command[output + 2 :]
    head.remove("-shared")
    return {
        "  cc1": _processor_time([*head, "-S", command[output - 1], "-o", "k.s"], folder),
        "  as": _processor_time([head[0], "-c", "k.s", "-o", "k.o"], folder),
        "  ld": _processor_time([*head, "-shared", "k.o", "-o", "k.so", *tail], folder),
    }


def _processor_time(command: list[str], folder: Path) -> float:
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True)
    after = getrusage(RUSAGE_CHILDREN)
    return 1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
