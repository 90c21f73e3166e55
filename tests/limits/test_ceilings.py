"""What is measured of the processor: sensible, kept for later processes, and stored as it was."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

import taco_py as tp
from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.errors import ToolchainError
from codegen.toolchain.store import Store
from codegen.toolchain.trial import Trial, TrialResult
from taco_py.report.limits import measure_ceilings
from taco_py.report.limits.ceilings import Ceilings, Rate, Roof, from_json, higher, to_json
from taco_py.report.limits.measure_ceilings import array_bytes, ceilings_here
from taco_py.report.limits.probe_code import EACH_LEVEL, FIGURES, LEVELS
from tests.machines import on_machine


def made_up(peak: float = 1e10, memory: float = 1e9) -> Ceilings:
    roofs = (
        Roof("L1", 1 << 15, False, Rate(1e11, 2e11)),
        Roof("memory", 0, True, Rate(memory, 2 * memory)),
    )
    rate = Rate(peak, 2 * peak)
    return Ceilings("some processor", "2021-01-01 12:00", 2, 32, 16, rate, rate, rate, roofs)


def test_the_processor_here_reads_its_first_cache_faster_than_memory() -> None:
    with on_machine("real"):
        found = ceilings_here()
    rates = [roof.rate.one for roof in found.roofs]
    assert rates[0] > 1.5 * rates[-1] and rates[-1] > 1e8
    assert found.doubles.one > 1e8 and found.floats.one > 1e8 and found.loads.one > 1e7
    assert found.roofs[-1].name == "memory" and found.when


class Counting:
    """A cache of kernels that measures nothing, and counts how often it is asked to."""

    def __init__(self, folder: Path, figures: list[float]) -> None:
        self.cache = KernelCache(store=Store(folder))
        self.figures, self.asked = figures, 0

    def measure(self, source: str, trials: list[Trial]) -> tuple[TrialResult, ...]:
        self.asked += 1
        return (TrialResult(struct.pack(f"{len(self.figures)}d", *self.figures)),)


def counting(monkeypatch: pytest.MonkeyPatch, folder: Path, peak: float) -> Counting:
    count = FIGURES + EACH_LEVEL * LEVELS
    found = Counting(folder, [peak] * 2 * count)
    monkeypatch.setattr(found.cache, "try_out", found.measure)
    monkeypatch.setattr(measure_ceilings, "KERNELS", found.cache)
    return found


def test_they_are_measured_once_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = counting(monkeypatch, tmp_path, 2e10)
    assert ceilings_here() == ceilings_here()
    assert first.asked == 1
    later = counting(monkeypatch, tmp_path, 1e10)
    assert ceilings_here().doubles == Rate(2e10, 2e10)  # another process reads what is kept
    assert later.asked == 0
    again = ceilings_here(anew=True)
    assert later.asked == 1
    assert again.doubles == Rate(2e10, 2e10)  # the higher of both


@pytest.mark.parametrize("figures", [[0.0], [float("nan")], [1e10] * 3])
def test_what_makes_no_sense_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, figures: list[float]
) -> None:
    found = counting(monkeypatch, tmp_path, 1e10)
    count = len(found.figures)
    found.figures = figures * count if len(figures) == 1 else figures
    with pytest.raises(tp.CompilerError, match="figures"):
        ceilings_here()


def test_damaged_notes_are_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = counting(monkeypatch, tmp_path, 1e10)
    ceilings_here()
    monkeypatch.setattr(found.cache, "text", lambda name: '{"processor": 3}')
    found.cache.memo.clear()
    ceilings_here()
    assert found.asked == 2


def test_a_missing_compiler_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing() -> None:
        raise ToolchainError("Expected a C compiler, found none", hint="install one")

    counting(monkeypatch, tmp_path, 1e10)
    monkeypatch.setattr(measure_ceilings, "native_target", missing)
    with pytest.raises(tp.CompilerError, match="found none"):
        ceilings_here()


def test_json_reads_back() -> None:
    found = made_up()
    assert from_json(json.loads(json.dumps(to_json(found)))) == found
    with pytest.raises(ValueError, match="rates above 0"):
        from_json({**to_json(found), "doubles": [0.0, 1.0]})


def test_the_higher_of_two_measurements_counts() -> None:
    found = higher(made_up(1e10, 3e9), made_up(2e10, 1e9))
    assert found.doubles.one == 2e10 and found.roofs[-1].rate.one == 3e9


def test_threads_share_what_they_do_not_have_alone() -> None:
    found = made_up()
    assert found.peak("float64", 1) == 1e10 and found.peak("float64", 2) == 2e10
    assert found.peak("int32") is None
    assert Rate(10.0, 25.0).of(2, 4) == 20.0


def test_arrays_lie_in_their_cache_and_beyond_all() -> None:
    caches = (32 << 10, 512 << 10, 16 << 20)
    alone, together = array_bytes(caches, 2)
    assert all(size < cache for size, cache in zip(alone, caches, strict=False))
    assert alone[-1] > caches[-1]
    assert together[2] == alone[2] // 2 and together[0] == alone[0]
    assert array_bytes((), 1)[0][:3] == [0, 0, 0]
