"""The calibration of prices for the processor and the compiler here: a file beside the kernels.

    ~/.cache/tacopy/calibration-4f1c….json
    {"machine": "4f1c…", "version": "0.1 93ab…", "processor": "AMD EPYC, x86_64",
     "compiler": "gcc 12.2", "day": "2026-11-30", "factors": {"iterations": 0.31, …},
     "probes": [["SpMV, 2000 rows", 1, 1.1e-05, 3.1e-05, 1.2e-05, "iterations"], …], "digest": "…"}

The name of the file has the digest of the processor, its cores, the compiler and its flags, so that
machines that share a folder have a file each. It is read when the first plan of a process is made,
under the rules of the kernel cache: others may not have written it (`codegen.toolchain.trust`).
What cannot be read is warned of once, and prices are as shipped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from math import exp, isfinite, log
from pathlib import Path
from typing import Any

from codegen.records import dataclass
from codegen.toolchain.entries import replace_file
from codegen.toolchain.errors import KernelCacheWarning, ToolchainError
from codegen.toolchain.processor import core_count, cpu_identity, digest
from codegen.toolchain.store import LAYOUT
from codegen.toolchain.trust import check_folder, make_folder, read_own
from codegen.user_line import warn_user
from taco_py.data.kernels import KERNELS

NAME = "calibration"
"""What is told to the kernel cache, and what names of files begin with."""
VARIABLE = "TACO_PY_CALIBRATION"
"""The environment variable that is "off" where prices are to be as shipped."""
AS_SHIPPED = "as shipped"
"""Said of prices that no calibration has changed."""
LEAST, MOST = 1 / 64, 64.0
"""Factors are between these: what is beyond is no measurement."""
UNREADABLE = (ValueError, TypeError, KeyError, OverflowError, RecursionError)
"""What reading a file raises that is no calibration."""


@dataclass(frozen=True, slots=True)
class MeasuredProbe:
    """A kernel that was timed, and what prices expect of it.

    seconds     measured
    shipped     expected by the price as shipped, and calibrated
    coefficient  that has the largest part in the price as shipped
    """

    name: str
    threads: int
    seconds: float
    shipped: float
    calibrated: float
    coefficient: str


@dataclass(frozen=True, slots=True)
class Calibration:
    """Factors of the costs of a machine, by which its kernels take what their prices say.

    machine    the digest of the processor, its cores, the compiler and its flags
    version    of the prices that the factors belong to
    factors    of each coefficient; 1.0 as shipped
    """

    machine: str
    version: str
    processor: str
    compiler: str
    day: str
    factors: tuple[tuple[str, float], ...]
    probes: tuple[MeasuredProbe, ...] = ()

    @property
    def identity(self) -> str:
        """Return a digest that two calibrations have in common if their prices are the same."""
        return digest(self.machine, self.version, repr(self.factors))

    @property
    def label(self) -> str:
        """Return when and where it was measured."""
        return f"calibrated {self.day} on {self.processor}, {self.compiler}"

    def probes_of(self, coefficient: str) -> tuple[MeasuredProbe, ...]:
        """Return the probes in whose price a coefficient has the largest part."""
        return tuple(probe for probe in self.probes if probe.coefficient == coefficient)


def off_by(probes: tuple[MeasuredProbe, ...]) -> tuple[float, float]:
    """Return the median factor between expected and measured seconds: as shipped, calibrated.

    >>> off_by((MeasuredProbe("", 1, 2.0, 1.0, 2.0, ""), MeasuredProbe("", 1, 1.0, 2.0, 1.0, "")))
    (2.0, 1.0)
    """
    shipped = _median(abs(log(probe.shipped / probe.seconds)) for probe in probes)
    calibrated = _median(abs(log(probe.calibrated / probe.seconds)) for probe in probes)
    return round(exp(shipped), 6), round(exp(calibrated), 6)


def _median(numbers: Iterable[float]) -> float:
    ordered = sorted(numbers)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


# ---------------------------------------------------------------- what prices follow


def calibration_here() -> Calibration | None:
    """Return the calibration that plans are made by now; None for prices as shipped."""
    key = NAME, KERNELS.flags
    price: Any = KERNELS.told.get(NAME) or KERNELS.memo.get(key)
    if price is None:
        price = _read_here() or AS_SHIPPED
        KERNELS.memo.put(key, price)
    return price if isinstance(price, Calibration) else None


def calibration_identity() -> str:
    """Return the part of keys on disk that tells prices apart, "" for prices as shipped."""
    calibration = calibration_here()
    return "" if calibration is None else f" {NAME} {calibration.identity}"


def follow_calibration(calibration: Calibration | str | None) -> None:
    """Make plans by a calibration from now on, or `AS_SHIPPED`; None for the one that is kept.

    Plans that were made before are forgotten.
    """
    if calibration is None:
        KERNELS.told.pop(NAME, None)
        KERNELS.memo.clear()
    else:
        KERNELS.tell(NAME, calibration)


def machine_digest() -> str:
    """Return the digest of the processor, its cores, the compiler and its flags. Raises
    NoCompilerError."""
    compiler = KERNELS.compiler
    flags = (compiler.openmp, *compiler.flags, *KERNELS.flags)
    return digest(cpu_identity(), str(core_count()), compiler.identity, *flags)


# ---------------------------------------------------------------- the file


def path_here() -> Path:
    """Return the path of the calibration of this machine. Raises NoCompilerError."""
    return KERNELS.home / f"{NAME}-{machine_digest()}.json"


def make_home() -> None:
    """Make the folder of calibrations, into which nobody else can write. Raises OSError."""
    if not check_folder(KERNELS.home, alone=True):
        make_folder(KERNELS.home / LAYOUT)


def keep_calibration(calibration: Calibration) -> None:
    """Write the calibration of this machine; later plans follow it. Raises OSError."""
    path = path_here()
    make_home()
    fields = _to_json(calibration)
    replace_file(path, json.dumps({**fields, "digest": checksum_of(fields)}, indent=1).encode())
    follow_calibration(None)


def forget_calibration() -> bool:
    """Remove the calibration of this machine, and return whether there was one. Raises OSError."""
    path = path_here()
    existed = path.exists()
    path.unlink(missing_ok=True)
    follow_calibration(None)
    return existed


def _read_here() -> Calibration | None:
    """Return the calibration that is kept for this machine; None where none can be read."""
    if os.environ.get(VARIABLE, "").strip().lower() == "off":
        return None
    home = KERNELS.home
    try:
        if not any(home.glob(f"{NAME}-*.json")):
            return None
        path = path_here()
        if not path.exists():
            return None
        check_folder(home, alone=True)
        return parse_calibration(read_own(path), machine_digest())
    except ToolchainError:
        return None
    except (OSError, *UNREADABLE) as error:
        _warn(home, error)
        return None


def parse_calibration(data: bytes, machine: str) -> Calibration:
    """Return the calibration of a machine that a file has. Raises an error of `UNREADABLE`."""
    fields = json.loads(data)
    if not isinstance(fields, dict):
        raise ValueError("it has no fields")
    checksum = fields.pop("digest")
    if checksum != checksum_of(fields):
        raise ValueError("its digest is not the one kept with it")
    calibration = _from_json(fields)
    if calibration.machine != machine:
        raise ValueError("it is of another machine")
    return calibration


def _to_json(calibration: Calibration) -> dict[str, Any]:
    """Return the fields that a file has."""
    names = ("machine", "version", "processor", "compiler", "day")
    probes = [
        [p.name, p.threads, p.seconds, p.shipped, p.calibrated, p.coefficient]
        for p in calibration.probes
    ]
    words = {name: getattr(calibration, name) for name in names}
    return {**words, "factors": dict(calibration.factors), "probes": probes}


def _from_json(fields: Mapping[str, Any]) -> Calibration:
    """Return the calibration of a file's fields. Raises an error of `UNREADABLE`."""
    words = {
        name: str(fields[name]) for name in ("machine", "version", "processor", "compiler", "day")
    }
    factors = tuple((str(name), checked_factor(f)) for name, f in dict(fields["factors"]).items())
    probes = []
    for name, threads, *seconds, coefficient in fields["probes"]:
        measured, shipped, calibrated = (_checked_seconds(number) for number in seconds)
        probes.append(
            MeasuredProbe(str(name), int(threads), measured, shipped, calibrated, str(coefficient))
        )
    return Calibration(**words, factors=factors, probes=tuple(probes))


def checked_factor(value: Any) -> float:
    """Return a factor. Raises ValueError for a number that is none, as NaN."""
    factor = float(value)
    if not LEAST <= factor <= MOST:
        raise ValueError(f"Expected a factor from {LEAST:g} to {MOST:g}, found {value!r:.40}")
    return factor


def _checked_seconds(value: Any) -> float:
    seconds = float(value)
    if not (isfinite(seconds) and seconds > 0):
        raise ValueError(f"Expected seconds above 0, found {value!r:.40}")
    return seconds


def checksum_of(fields: Mapping[str, Any]) -> str:
    """Return the digest that a file keeps of its other fields."""
    return digest(json.dumps(fields, sort_keys=True))


def _warn(home: Path, error: Exception) -> None:
    """Warn that a calibration is not used, once for a folder."""
    mark = f"{NAME} in {home}"
    if mark not in KERNELS.told:
        KERNELS.told[mark] = True
        warn_user(
            KernelCacheWarning(
                f"The calibration of prices in {home} is not used, prices are as shipped: {error}. "
                "`taco-py calibrate` measures it again, `taco-py calibrate --reset` removes it."
            )
        )
