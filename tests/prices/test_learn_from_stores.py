"""Prices that are learned from a store of tuned plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.tuning.prices.learn_price import data_of_path, data_of_store
from taco_py.tuning.prices.price_data import PriceData
from taco_py.tuning.prices.train_price import FEWEST
from tests.prices.test_train_price import drawn_times

rng = np.random.default_rng(0)
A = sp.random_array((80, 60), density=0.1, format="csr", rng=rng)
CALLS: dict[str, dict[str, Any]] = {
    "y[i] = A[i,j] * x[j]": {"A": A, "x": rng.random(60)},
    "C[i,k] = A[i,j] * B[j,k]": {"A": A, "B": rng.random((60, 4))},
    "s[i] = sum(j, A[i,j]); y[i,j] = A[i,j] * s[i]": {"A": A},
}


def filled(store: tp.TuningStore) -> None:
    for text, operands in CALLS.items():
        tp.tune(text, operands, trials=3, store=store, threads=1)


def programs(data: PriceData) -> int:
    return len({*data.digests[data.program]})


def test_tuning_keeps_what_is_counted_beside_the_times(tmp_path: Path) -> None:
    with tp.TuningStore(tmp_path / "tuning.sqlite") as store:
        filled(store)
        data = data_of_store(store.file)
    assert programs(data) == 3 and len(data.rest) >= 6
    assert np.isfinite(data.measured).all() and np.isfinite(data.features).all()
    assert (data.analytic > 0).all() and (data.measured > 0).all()
    assert data.plans and all("return" in plan for plan in data.plans)
    again = data_of_path(tmp_path / "tuning.sqlite")
    np.testing.assert_array_equal(again.features, data.features)
    with pytest.raises(tp.TuningStoreError, match=f"times of {FEWEST} plans at least"):
        tp.learn(tmp_path / "tuning.sqlite")


def test_counts_go_where_records_go(tmp_path: Path) -> None:
    with tp.TuningStore() as store, tp.TuningStore() as other, tp.TuningStore() as third:
        filled(store)
        store.export(tmp_path / "log.jsonl")
        other.load(tmp_path / "log.jsonl")
        third.merge(store)
        wanted = data_of_store(store.file).features
        for copy in (other, third):
            np.testing.assert_array_equal(data_of_store(copy.file).features, wanted)


@pytest.mark.parametrize("counts", ["", "{}", "nothing", '{"features":"other","rest":0,"rows":[]}'])
def test_records_without_counts_of_this_release_are_passed_over(counts: str) -> None:
    text, operands = next(iter(CALLS.items()))
    with tp.TuningStore() as store:
        key = store.key(text, operands)
        store.add(tp.TuningRecord(key, "y", "", 1e-6, counts=counts))
        assert len(data_of_store(store.file).rest) == 0


def test_a_model_stays_until_there_is_a_fifth_more(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    path = tmp_path / "times.npz"
    drawn_times(FEWEST).save(path)
    model = tp.learn(path)
    drawn_times(int(1.1 * FEWEST)).save(path)
    assert tp.learn(path, earlier=model) is model
    drawn_times(int(1.3 * FEWEST)).save(path)
    assert tp.learn(path, earlier=model) != model


def test_what_is_neither_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"nothing")
    with pytest.raises(tp.FileFormatError, match="found neither"):
        tp.learn(tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        tp.learn(tmp_path / "y")
