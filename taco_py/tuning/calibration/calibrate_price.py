"""The analytic price calibrated for this machine: probes are timed, and factors fitted to them.

probes  →  compiled, run once  →  the parts of their prices  →  timed in turns, the least of each
        →  factors of the parts  →  a file beside the kernels

Nothing is written before all is measured: who interrupts it keeps what there was.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from time import monotonic, perf_counter, thread_time

import numpy as np

from codegen.records import dataclass
from codegen.toolchain.compiler_version import version_line
from codegen.toolchain.errors import ToolchainError
from codegen.toolchain.processor import cpu_name
from taco_py.compiler.cost.calibrated import COEFFICIENTS, parts, price_version, with_factors
from taco_py.compiler.cost.machine import NOMINAL, Machine
from taco_py.data.kept_calibration import (
    Calibration,
    MeasuredProbe,
    keep_calibration,
    machine_digest,
    make_home,
    path_here,
)
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import CompilerError
from taco_py.planner.ir.plan import Plan
from taco_py.planner.plan_price import PricedFor
from taco_py.tuning.bench.call_space import space_of
from taco_py.tuning.bench.plan_bench import PlanBench
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.calibration.calibration_report import CalibrationReport
from taco_py.tuning.calibration.fit_factors import fit_factors
from taco_py.tuning.calibration.probes import PROBES, Probe

LEAST_SECONDS = 2e-4
"""One time takes so long at least: shorter calls are repeated within it."""
PREPARING, TIMING = 0.8, 0.9
"""The parts of the time after which no more probes are compiled, and none is timed again."""
LEAST_TURNS, QUIET_TURNS = 3, 15
"""Times of each probe at least, and those after which it ends where none was shorter by `LOWER`."""
LOWER = 0.01
ROUNDS = 3
"""Fits, each of the parts near the factors before: whether threads are woken depends on them."""
LINEAR = 0.02
"""The share by which the parts of a price may miss it: a probe beyond is left out."""


@dataclass(slots=True, eq=False)
class _RunningProbe:
    """A probe that was compiled and ran: its plan, its call, and the least of its times."""

    about: Probe
    plan: Plan
    priced: PricedFor
    call: Callable[[], object]
    repeats: int
    least: float

    def time(self) -> None:
        """Take one time more.

        That of one thread is its own, so that others may run between; several wait for each other.
        """
        clock = thread_time if self.about.threads == 1 else perf_counter
        begin = clock()
        for _ in range(self.repeats):
            self.call()
        self.least = min(self.least, (clock() - begin) / self.repeats)

    def price(self, machine: Machine) -> float:
        """Return the expected seconds of the plan on a machine."""
        return replace(self.priced, machine=machine).plan(self.plan)


def calibrate_price(seconds: float, save: bool) -> CalibrationReport:
    """Measure the probes, fit the factors, and keep them for plans to come.

    seconds  for all of it; fewer probes are measured where that is little, and nothing is kept then

    Raises CompilerError without a compiler, and OSError where nothing can be kept.
    """
    begin = monotonic()
    try:
        path_here()
    except ToolchainError as error:
        raise CompilerError(error.message, hint=error.hint) from error
    if save:
        make_home()
    several = [probe for probe in PROBES if probe.threads <= KERNELS.cores]
    progress = _Progress(len(several))
    try:
        ready = _prepare(several, begin + PREPARING * seconds, progress)
        _time(ready, begin + TIMING * seconds, progress)
    finally:
        progress.end()
    calibration = _fitted(ready)
    missing = len(several) - len(ready)
    if not save or missing:
        reason = f"{missing} of {len(several)} probes were not measured: give it more seconds"
        return CalibrationReport(
            calibration, NOMINAL, False, reason if save else "it was not to be saved"
        )
    keep_calibration(calibration)
    return CalibrationReport(calibration, NOMINAL, True)


def _prepare(probes: Sequence[Probe], until: float, progress: _Progress) -> list[_RunningProbe]:
    """Return the probes that could be compiled and run until a time, one at least."""
    ready: list[_RunningProbe] = []
    for probe in probes:
        if ready and monotonic() > until:
            break
        ready.append(_compiled(probe))
        progress.tell(len(ready), "compiled")
    return ready


def _compiled(probe: Probe) -> _RunningProbe:
    """Return a probe with its kernel, which ran once. Raises what a call raises."""
    computation = tunable(probe.text, probe.make_operands(), {"threads": probe.threads})
    call, bench = space_of(computation), PlanBench(computation)
    text = call.space.text(())
    bench.build(text)
    bench.first(text)
    run = bench.calls[text]
    run()
    begin = perf_counter()
    run()
    seconds = perf_counter() - begin
    repeats = max(1, min(1000, int(LEAST_SECONDS / max(seconds, 1e-9))))
    return _RunningProbe(probe, call.space.plan(()), call.priced, run, repeats, seconds)


def _time(ready: Sequence[_RunningProbe], until: float, progress: _Progress) -> None:
    """Time the probes in turns, until a time or as long as some take less than before."""
    turn = quiet = 0
    while turn < LEAST_TURNS or (quiet < QUIET_TURNS and monotonic() < until):
        before = [probe.least for probe in ready]
        for probe in ready:
            probe.time()
        lower = (probe.least < (1 - LOWER) * old for probe, old in zip(ready, before, strict=True))
        turn, quiet = turn + 1, 0 if any(lower) else quiet + 1
        progress.tell(turn, "times of each")


def _fitted(ready: Sequence[_RunningProbe]) -> Calibration:
    """Return the factors that the times of probes have."""
    shipped = [probe.price(NOMINAL) for probe in ready]
    largest = [_largest(parts(probe.price, NOMINAL, {})) for probe in ready]
    factors = dict.fromkeys(COEFFICIENTS, 1.0)
    for _ in range(ROUNDS):
        factors = _nearer(ready, factors)
    machine = with_factors(NOMINAL, factors)
    probes = tuple(
        MeasuredProbe(
            probe.about.name, probe.about.threads, probe.least, price, probe.price(machine), name
        )
        for probe, name, price in zip(ready, largest, shipped, strict=True)
    )  # fmt: skip
    return Calibration(
        machine_digest(), price_version(), cpu_name(), compiler_words(),
        date.today().isoformat(), tuple(factors.items()), probes,
    )  # fmt: skip


def _largest(seconds: Mapping[str, float]) -> str:
    """Return the part of a price that has most of it."""
    return max(seconds, key=seconds.__getitem__)


def _nearer(ready: Sequence[_RunningProbe], factors: Mapping[str, float]) -> dict[str, float]:
    """Return the factors that times have, with the parts that prices have near other factors."""
    machine = with_factors(NOMINAL, factors)
    rows, measured = [], []
    for probe in ready:
        seconds = parts(probe.price, NOMINAL, factors)
        total = sum(seconds[name] * factors[name] for name in COEFFICIENTS)
        if abs(total / probe.price(machine) - 1) < LINEAR:
            rows.append([seconds[name] for name in COEFFICIENTS])
            measured.append(probe.least)
    fitted = fit_factors(np.array(rows).reshape(-1, len(COEFFICIENTS)), np.array(measured))
    return dict(zip(COEFFICIENTS, (round(float(f), 4) for f in fitted), strict=True))


def compiler_words() -> str:
    """Return the compiler with its version and the flags that were added: "gcc 12.2 -O1"."""
    compiler = KERNELS.compiler
    words = version_line(compiler.command).split()
    version = next((word for word in reversed(words) if word[:1].isdigit()), "")
    return " ".join((compiler.kind, *filter(None, (version,)), *KERNELS.flags))


@dataclass(frozen=True, slots=True, eq=False)
class _Progress:
    """A line that shows how many probes were measured, written over itself on a terminal."""

    probes: int

    @property
    def visible(self) -> bool:
        return sys.stderr is not None and sys.stderr.isatty()

    def tell(self, count: int, what: str) -> None:
        """Show one step more."""
        if self.visible:
            sys.stderr.write(f"\r{self.probes} probes: {count} {what:<14}")
            sys.stderr.flush()

    def end(self) -> None:
        """Leave the line."""
        if self.visible:
            sys.stderr.write("\n")
            sys.stderr.flush()
