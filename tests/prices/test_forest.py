"""Trees as arrays: what they sum up to, and files that are none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.data.kernels import KERNELS
from taco_py.tuning.prices.forest import forest_in, forest_of, with_constant
from taco_py.tuning.prices.kernel_features import FEATURES
from taco_py.tuning.prices.price_model import PriceModel

COUNT = len(FEATURES)


def drawn_tree(numbers: Random, depth: int) -> dict[str, Any]:
    if depth == 0 or numbers.random() < 0.2:
        return {"value": numbers.uniform(-1, 1)}
    return {
        "feature": numbers.randrange(COUNT),
        "threshold": numbers.uniform(-1, 1),
        "left": drawn_tree(numbers, depth - 1),
        "right": drawn_tree(numbers, depth - 1),
    }


def value_of(tree: dict[str, Any], row: np.ndarray[Any, Any]) -> float:
    while "value" not in tree:
        tree = tree["left" if row[tree["feature"]] <= tree["threshold"] else "right"]
    value: float = tree["value"]
    return value


def drawn_model(seed: int) -> PriceModel:
    numbers = Random(seed)
    middle, spread = (forest_of(drawn_tree(numbers, 5) for _ in range(7)) for _ in range(2))
    return PriceModel(middle, spread, np.full(COUNT, -50.0), np.full(COUNT, 50.0))


def wide_model(seed: int) -> PriceModel:
    """A drawn price that knows kernels of any counts: it likes plans that others do not."""
    every = np.full(COUNT, 1e4)
    return replace(drawn_model(seed), least=-every, most=every, digest="")


@pytest.mark.parametrize("seed", range(5))
def test_a_forest_is_the_sum_of_its_trees(seed: int) -> None:
    numbers = Random(seed)
    trees = [drawn_tree(numbers, numbers.randint(0, 6)) for _ in range(numbers.randint(0, 9))]
    rows = np.random.default_rng(seed).uniform(-1, 1, (20, COUNT))
    wanted = [sum(value_of(t, row) for t in trees) for row in rows]
    _ = KERNELS.pool  # the host's functions are there
    np.testing.assert_allclose(forest_of(trees).predict(rows), wanted)
    np.testing.assert_allclose(forest_of(trees).predict_by_level(rows), wanted)
    assert len(forest_of(trees).predict(rows[:0])) == 0


def test_a_constant_is_added_to_each_sum() -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (20, COUNT))
    forest = forest_of(drawn_tree(Random(seed), 4) for seed in range(3))
    np.testing.assert_allclose(with_constant(forest, 0.7).predict(rows), forest.predict(rows) + 0.7)


def test_models_come_back_from_files(tmp_path: Path) -> None:
    model, rows = drawn_model(0), np.random.default_rng(0).uniform(-1, 1, (50, COUNT))
    model.save(tmp_path / "m.npz")
    again = tp.load_price(tmp_path / "m.npz")
    assert isinstance(again, PriceModel)
    pairs = zip(again.ratios(rows), model.ratios(rows), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-4)


def test_quartiles_are_around_the_median_and_nothing_is_known_far_away() -> None:
    model, rows = drawn_model(1), np.random.default_rng(1).uniform(-1, 1, (200, COUNT))
    low, middle, high = model.ratios(rows)
    assert (low <= middle).all() and (middle <= high).all()
    rows[::2, list(FEATURES).index("bytes")] = 60.0
    low, middle, high = model.ratios(rows)
    assert (middle[::2] == 1.0).all() and (middle[1::2] != 1.0).all()
    assert model.predict(rows)[1][::2].all()


DAMAGES = {
    "an array is missing": lambda a: a.pop("middle.left"),
    "a node leads beyond the last": lambda a: a["spread.left"].__setitem__(0, 10_000),
    "a node leads back": lambda a: a["spread.left"].__setitem__(slice(None), 0),
    "a feature that there is not": lambda a: a["spread.feature"].__setitem__(0, COUNT),
    "a threshold is no number": lambda a: a["spread.threshold"].__setitem__(0, np.nan),
    "a value is infinite": lambda a: a["spread.value"].__setitem__(0, np.inf),
    "arrays of other lengths": lambda a: a.update({"spread.value": a["spread.value"][:-1]}),
    "no ranges": lambda a: a.pop("least"),
    "another version": lambda a: a.update(
        about=np.array(str(a["about"]).replace('"version": 1', '"version": 9'))
    ),
    "other features": lambda a: a.update(about=np.array(str(a["about"]).replace("price", "cost"))),
    "no header": lambda a: a.update(about=np.array("{}")),
    "objects": lambda a: a.update(least=np.array([{}], object)),
}


@pytest.mark.rotating(1)
@pytest.mark.parametrize("damage", DAMAGES)
def test_files_that_are_no_models_are_refused(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    drawn_model(2).save(path)
    with np.load(path) as file:
        arrays = {name: file[name].copy() for name in file.files}
    DAMAGES[damage](arrays)
    np.savez(path, **arrays)
    with pytest.raises(tp.FileFormatError):
        tp.load_price(path)


@pytest.mark.parametrize("content", [b"", b"nothing at all", b"\x80\x04]\x94."])
def test_files_of_something_else_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    path.write_bytes(content)
    with pytest.raises(tp.FileFormatError, match="found something else"):
        tp.load_price(path)


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    drawn_model(3).save(path)
    whole = path.read_bytes()
    for share in (0.1, 0.5, 0.9):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(tp.FileFormatError, match="one that is cut off"):
            tp.load_price(path)


def test_arrays_of_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    np.savez(path, x=np.zeros(3))
    with pytest.raises(tp.FileFormatError, match="Expected the header of a learned price"):
        tp.load_price(path)
    np.save(path.with_suffix(".npy"), np.zeros(3))
    with pytest.raises(tp.FileFormatError, match="found something else"):
        tp.load_price(path.with_suffix(".npy"))
    with pytest.raises(FileNotFoundError):
        tp.load_price(tmp_path / "none.npz")


def test_circles_end(tmp_path: Path) -> None:
    arrays = forest_of([drawn_tree(Random(4), 3)]).arrays("f")
    arrays["f.left"][:] = (np.arange(len(arrays["f.left"])) + 1) % len(arrays["f.left"])
    arrays["f.right"][:] = arrays["f.left"]
    with pytest.raises(tp.FileFormatError, match="levels at most"):
        forest_in(arrays, "f", COUNT, "mine.npz")
