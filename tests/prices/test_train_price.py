"""Training: what is in the times is found, and too little is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import taco_py as tp
from taco_py.tuning.prices.kernel_features import FEATURES
from taco_py.tuning.prices.price_data import TIMES, PriceData, join_data, load_data

COUNT = len(FEATURES)
THREADS = [*FEATURES].index("threads")


def drawn_times(plans: int, seed: int = 0) -> PriceData:
    """Plans of one to three kernels, of which those with two threads take half of their price."""
    rng = np.random.default_rng(seed)
    parts = []
    for number in range(plans):
        kernels = int(rng.integers(1, 4))
        rows = rng.uniform(0, 20, (kernels, COUNT))
        rows[:, THREADS] = rng.integers(1, 3, kernels)
        seconds = rng.uniform(1e-4, 1e-3, kernels)
        taken = (seconds * np.where(rows[:, THREADS] == 2, 0.5, 2.0)).sum() + 1e-5
        times = taken * rng.uniform(1.0, 1.05, 5)
        parts.append(PriceData.of_plan(f"{number % 40:x}", 1e-5, [*seconds], rows, [*times]))
    return replace(join_data(parts), machine=("processor", "gcc", "2026-11-30"))


def test_factors_of_kernels_are_found_from_the_times_of_plans(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    drawn_times(600).save(tmp_path / "times.npz")
    model = tp.learn(tmp_path / "times.npz")
    rows = np.random.default_rng(1).uniform(1, 19, (200, COUNT))
    rows[:, THREADS] = np.arange(200) % 2 + 1
    low, middle, high = model.ratios(rows)
    wanted = np.where(rows[:, THREADS] == 2, 0.5, 2.0)
    assert np.median(np.abs(np.log2(middle / wanted))) < 0.3
    assert (low <= middle).all() and (middle <= high).all()
    assert model.origin.records == 600 and model.origin.digest
    assert (model.origin.processor, model.origin.compiler) == ("processor", "gcc")


def test_a_factor_that_all_programs_have_in_common_is_learned(tmp_path: Path) -> None:
    """Plans that all take eight times their price, whatever is in them."""
    pytest.importorskip("lightgbm")
    data = drawn_times(300)
    replace(data, times=data.times * 8).save(tmp_path / "times.npz")
    model = tp.learn(tmp_path / "times.npz")
    _, middle, _ = model.ratios(data.features.astype(float))
    expected = data.rest + np.bincount(data.plan, data.seconds * middle, len(data.rest))
    assert 0.9 < np.median(expected / (8 * data.measured)) < 1.1


def test_times_of_several_machines_are_not_mixed() -> None:
    data = drawn_times(10)
    with pytest.raises(tp.FileFormatError, match="one processor"):
        join_data([data, replace(data, machine=("another", "gcc", ""))])


def test_few_plans_are_refused(tmp_path: Path) -> None:
    drawn_times(20).save(tmp_path / "times.npz")
    with pytest.raises(tp.TuningStoreError, match=r"Expected the times of \d+ plans .* found 20"):
        tp.learn(tmp_path / "times.npz")


def test_times_come_back_from_files_and_programs_are_parted_as_a_whole(tmp_path: Path) -> None:
    data = drawn_times(100)
    data.save(tmp_path / "times.npz")
    again = load_data(tmp_path / "times.npz")
    np.testing.assert_array_equal(again.times, data.times)
    some = np.arange(len(data.digests)) % 3 == 0
    mine, others = data.of_programs(some), data.of_programs(~some)
    assert len(mine.rest) + len(others.rest) == 100
    assert {*mine.digests}.isdisjoint(others.digests)
    np.testing.assert_allclose(
        np.sort(np.concatenate([mine.analytic, others.analytic])), np.sort(data.analytic)
    )
    assert mine.times.shape[1] == TIMES


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"nothing at all"])
def test_files_of_something_else_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "times.npz").write_bytes(content)
    with pytest.raises(tp.FileFormatError):
        tp.learn(tmp_path / "times.npz")


def test_files_with_other_features_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "times.npz"
    drawn_times(10).save(path)
    with np.load(path) as file:
        arrays = {name: file[name].copy() for name in file.files}
    arrays["names"][0] = "cost"
    np.savez(path, **arrays)
    with pytest.raises(tp.FileFormatError, match="features of this release"):
        tp.learn(path)
