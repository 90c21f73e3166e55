"""The learned choice of formats of this release, on matrices that it was not trained on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import taco_py as tp
from benchmarks.format_data import PACKED, recounted
from benchmarks.format_scores import by_analytic, by_trees, is_tested, scores
from taco_py.tuning.formats.format_data import FormatData, join_formats, load_formats, no_formats
from taco_py.tuning.formats.format_features import FEATURES
from taco_py.tuning.formats.format_model import FormatModel, load_format_model, shipped_formats
from taco_py.tuning.formats.train_formats import trained_formats

LEAST_MEAN = 1.08
"""The geometric mean of speeds over CSR, 100 calls with the conversion paid. It may rise."""


@pytest.fixture(scope="module")
def data() -> FormatData:
    return load_formats(PACKED)


@pytest.fixture(scope="module")
def model() -> FormatModel:
    shipped = shipped_formats()
    assert shipped is not None
    return shipped


@pytest.mark.parametrize("finite", [False, True])
def test_choices_for_unseen_matrices_pay(
    finite: bool, data: FormatData, model: FormatModel
) -> None:
    test = data.of_matrices(is_tested(data))
    learned = scores(test, by_trees(model, test), finite)
    analytic = scores(test, by_analytic(test), finite)
    means = [float(np.exp(np.log(each.chosen).mean())) for each in (learned, analytic)]
    assert means[0] >= max(LEAST_MEAN, means[1]), (str(learned), str(analytic))
    assert (learned.chosen < 0.95).mean() < 0.05, str(learned)
    assert 0.35 < learned.inside < 0.65, "quartiles hold about half"


def test_features_are_those_that_the_model_reads(data: FormatData) -> None:
    """Where a feature has changed: benchmarks.format_data count, pack, ship."""
    sizes = {int(m): float(data.features[data.matrix == m][0, 0]) for m in {*data.matrix}}
    small = sorted(sizes, key=lambda number: sizes[number])[:6]
    for number in small:
        before = data.of_matrices(data.matrix == number)
        after = recounted(number, before)
        np.testing.assert_allclose(after.features, before.features, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(after.expected, before.expected)


def test_the_file_is_small_and_reads_back(model: FormatModel, tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    model.save(path)
    assert path.stat().st_size < 150_000
    rows = np.random.default_rng(0).random((20, len(FEATURES))) * 20
    again = load_format_model(path)
    np.testing.assert_array_equal(again.predict(rows)[0], model.predict(rows)[0])
    with pytest.raises(tp.FileFormatError, match="Expected the features of this release"):
        tp.load_price(path)


def test_counts_beyond_the_training_data_keep_the_analytic_numbers(model: FormatModel) -> None:
    rows = np.tile(model.most, (2, 1))
    rows[1, FEATURES.index("item bytes")] = 64.0
    sides, outside = model.predict(rows)
    assert outside.tolist() == [False, True]
    np.testing.assert_array_equal(sides[:, 1], 1.0)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"nothing at all"])
def test_files_of_something_else_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    path.write_bytes(content)
    with pytest.raises(tp.FileFormatError, match="Expected a file of a choice of formats"):
        load_format_model(path)
    with pytest.raises(tp.FileFormatError, match="Expected a file of what formats took"):
        load_formats(path)


def test_too_few_numbers_are_refused() -> None:
    with pytest.raises(tp.TacoError, match="Expected 500 numbers at least"):
        trained_formats(no_formats())
    assert len(join_formats([]).expected) == 0
