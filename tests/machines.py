"""Calls that are planned and run for other machines than the one here, and the nominal one.

    with on_machine("avx2+one_core"): ...      a test of what is chosen names the machine
    pytest --machine sse2+small_caches         all tests as if on another processor

A machine is pretended in front of `codegen.toolchain.processor`: its files of /proc and /sys are
others. Kernels are compiled without the instructions that it lacks, and SciPy's OpenBLAS runs the
kernels of its processor.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock
from zlib import crc32

import pytest

from codegen.libraries.blas_routines import OPENBLAS
from codegen.runtime import blas
from codegen.toolchain import processor
from taco_py.calls.call import planner_request
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.data.kernels import KERNELS
from taco_py.planner.ir.goal import Request
from taco_py.running.execute import run

NO_BLAS, UNKNOWN, OF_CYTHON = "", "?", "Cython"
UNLOADED = NO_BLAS, UNKNOWN, OF_CYTHON
"""Those that no variable makes OpenBLAS be."""
_ROOT, _load_blas = processor.ROOT, blas.load
_affinity = getattr(os, "sched_getaffinity", lambda process: range(os.cpu_count() or 1))
KIB, MIB = 1 << 10, 1 << 20


@dataclass(frozen=True)
class Machine:
    """What differs from the real machine; None for what does not.

    needs    the feature that the real processor must have for kernels to run
    lacks    a pattern of the names of features that it has not
    flags    of the compiler, so that it uses none of these
    caches   bytes of the data caches, the nearest first
    blas     the processor whose kernels OpenBLAS runs, `UNKNOWN` where it does not say it,
             `OF_CYTHON` for routines of whatever BLAS SciPy has, `NO_BLAS` where there is none
    """

    needs: str | None = None
    lacks: str | None = None
    flags: tuple[str, ...] | None = None
    caches: tuple[int, ...] | None = None
    cores: int | None = None
    blas: str | None = None

    def __or__(self, other: Machine) -> Machine:
        """Both; where they differ, what `other` says."""
        both = {each.name: getattr(other, each.name) for each in fields(other)}
        return replace(self, **{name: value for name, value in both.items() if value is not None})


BEYOND_SSE2 = r"pni|ssse3|sse4.*|avx.*|fma.*|f16c|xop|bmi.*|v?aes|v?pclmulqdq|gfni"
MACHINES = {
    "real": Machine(),
    "sse2": Machine("sse2", BEYOND_SSE2, ("-mno-sse3",), blas="Prescott"),
    "avx": Machine("avx", r"avx.+|fma.*", ("-mno-avx2", "-mno-fma"), blas="Sandybridge"),
    "avx2": Machine("avx2", r"avx512.*", ("-mno-avx512f",), blas="Haswell"),
    "avx512": Machine("avx512f", blas="SkylakeX"),
    "small_caches": Machine(caches=(32 * KIB, 256 * KIB, 2 * MIB)),
    "usual_caches": Machine(caches=(32 * KIB, MIB, 32 * MIB)),
    "large_caches": Machine(caches=(48 * KIB, 2 * MIB, 260 * MIB)),
    "one_core": Machine(cores=1),
    "two_cores": Machine(cores=2),
    "eight_cores": Machine(cores=8),
    "old_blas": Machine(blas="Haswell"),
    "oldest_blas": Machine(blas="Nehalem"),
    "cython_blas": Machine(blas=OF_CYTHON),
    "unknown_blas": Machine(blas=UNKNOWN),
    "no_blas": Machine(blas=NO_BLAS),
}
"""By name; names with `+` between are the machine with all of that."""

SERVER = "avx512+two_cores+usual_caches"
"""A whole machine, for tests of what is chosen: nothing of it is asked of the one here."""

IN_TURN = (
    "real",
    "sse2+one_core",
    "avx+small_caches",
    "avx2+eight_cores",
    "avx2+large_caches",
    "avx512+old_blas",
    "avx2+oldest_blas",
    "small_caches+unknown_blas",
    "two_cores+cython_blas",
    "one_core+no_blas",
)
"""What CI takes in turn: each commit one of them that the processor can pretend to be."""


def machine_named(name: str) -> Machine:
    """The machine of a name such as "avx2+one_core". Raises KeyError for others."""
    found = Machine()
    for each in name.split("+"):
        found = found | MACHINES[each]
    return found


def missing_feature(name: str) -> str | None:
    """The feature that the processor here would need to run the kernels of a machine."""
    needs = machine_named(name).needs
    return needs if needs and needs not in _real_flags() else None


def machine_in_turn(rotation: str) -> str:
    """One of `IN_TURN`, by a number: unlike with the remainder, any grid meets any machine."""
    possible = [name for name in IN_TURN if missing_feature(name) is None]
    return possible[crc32(f"machine {rotation}".encode()) % len(possible)]


@cache
def _real_flags() -> frozenset[str]:
    with mock.patch.object(processor, "ROOT", _ROOT):
        return processor.cpu_flags()


def pretend(name: str) -> None:
    """Be another machine until the process ends, which has loaded no BLAS yet."""
    machine = machine_named(name)
    if machine == Machine():
        return
    if machine.blas not in (None, *UNLOADED):
        os.environ["OPENBLAS_CORETYPE"] = machine.blas
    if machine.cores is not None and machine.cores > len(_affinity(0)):
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that share a core wait asleep
    atexit.register(_patched(name, machine).close)


@contextmanager
def on_machine(name: str) -> Iterator[None]:
    """Be another machine, or "real" for the one here, whatever all tests pretend.

    Its kernels run here even where the processor lacks a feature: vectors that it has not are
    several of its own.
    """
    machine = machine_named(name)
    flags = KERNELS._flags
    try:
        with _patched(name, machine) as patches:
            if machine.blas:
                if _load_blas() is None:
                    pytest.skip("there is no library with the BLAS")
                named = partial(_load_named, machine.blas)
                patches.enter_context(mock.patch.object(blas, "load", named))
            KERNELS.compile_with((*flags, *(machine.flags or ())))
            yield
    finally:
        KERNELS.compile_with(flags)
        _forget()


def _patched(name: str, machine: Machine) -> ExitStack:
    """The patches that make the machine here another one; they have begun."""
    stack = ExitStack()
    root = _ROOT
    if machine != Machine():
        root = Path(tempfile.mkdtemp(prefix="machine-"))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        _write_files(root, name, machine)
    some = _affinity(0) if machine.cores is None else set(range(machine.cores))
    load: Callable[[], blas.Loaded | None] = _load_blas
    if machine.blas in UNLOADED:
        load = partial(_load_named, machine.blas)
    stack.enter_context(mock.patch.object(processor, "ROOT", root))
    stack.enter_context(
        mock.patch.object(os, "sched_getaffinity", lambda process: some, create=True)
    )
    stack.enter_context(mock.patch.object(blas, "load", load))
    _forget()
    return stack


@cache
def _load_named(core: str) -> blas.Loaded | None:
    """The library as if it said that it runs the kernels of this processor."""
    if core == OF_CYTHON:
        return blas._from_capsules(OPENBLAS)
    loaded = None if core == NO_BLAS else _load_blas()
    return None if loaded is None else replace(loaded, core=core)


def _write_files(root: Path, name: str, machine: Machine) -> None:
    """What `codegen.toolchain.processor` reads of a machine."""
    with mock.patch.object(processor, "ROOT", _ROOT):
        facts, flags, caches = processor._cpuinfo(), _real_flags(), processor.cache_sizes()
    if machine.lacks is not None:
        flags = frozenset(flag for flag in flags if not re.fullmatch(machine.lacks, flag))
    if machine.needs is not None:
        flags |= {machine.needs}
    facts["model name"] = f"{facts.get('model name', 'processor')} as {name}"
    facts["flags"] = " ".join(sorted(flags))
    (root / "proc").mkdir()
    lines = (f"{key}\t: {value}\n" for key, value in facts.items())
    (root / "proc/cpuinfo").write_text("".join(lines))
    for place, size in enumerate(machine.caches or caches):
        folder = root / f"sys/devices/system/cpu/cpu0/cache/index{place}"
        folder.mkdir(parents=True)
        (folder / "type").write_text("Unified\n")
        (folder / "size").write_text(f"{size >> 10}K\n")


def _forget() -> None:
    """Forget what was made or asked of another machine."""
    KERNELS._environment = None
    KERNELS._kernels.clear()
    KERNELS.limit_threads(KERNELS._most_threads)


@contextmanager
def planned_for(**fields: Any) -> Iterator[None]:
    """Plan calls for the nominal machine with other values of some fields."""
    request = partial(Request, machine=NOMINAL.with_costs(**fields))
    KERNELS.memo.clear()
    with mock.patch.object(planner_request, "Request", request):
        yield
    KERNELS.memo.clear()


def always_threads() -> Callable[..., Any]:
    """Share each parallel loop, however few iterations it has."""
    return mock.patch.object(run, "useful_threads", lambda step, tensors, limit, machine: limit)
