"""How good is the choice of formats on drawn matrices that no tree was grown on?

    python -m benchmarks.format_data ship      trees of three quarters, tested on the rest, shipped

For each matrix and product: the speed over CSR of 100 calls, the conversion paid, as measured, of
the format that the trees choose, of that by the analytic numbers, and of the best one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.format_data import PACKED
from codegen.records import dataclass
from taco_py.tuning.formats import format_model
from taco_py.tuning.formats.choose_format import CALLS, PAYS, UNSURE
from taco_py.tuning.formats.format_data import FormatData, load_formats
from taco_py.tuning.formats.format_features import CONVERSION, FEATURES, GAIN, SECONDS
from taco_py.tuning.formats.format_model import SHIPPED, FormatModel
from taco_py.tuning.formats.train_formats import trained_formats

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Speeds over CSR of each matrix and product, the conversion paid.

    chosen, best  of the format that is chosen, and of the fastest
    inside        the share of gains between their quartiles
    """

    chosen: Array
    best: Array
    inside: float

    def __str__(self) -> str:
        mean, best = (float(np.exp(np.log(each).mean())) for each in (self.chosen, self.best))
        return (
            f"{mean:.3f} geometric mean, {self.chosen.min():.2f} worst, "
            f"{(self.chosen < 0.95).mean():.3f} below 0.95, best {best:.3f}, "
            f"{(self.chosen != 1).mean():.2f} other than CSR, {self.inside:.2f} between quartiles"
        )


def is_tested(data: FormatData) -> Array:
    """Whether each number is of a matrix of the test set, for good."""
    return data.matrix % 4 == 3


def by_trees(model: FormatModel, data: FormatData) -> Array:
    """Return the quartiles of each number by a model."""
    sides: Array = model.predict(data.features.astype(float))[0] * data.expected
    return sides


def by_analytic(data: FormatData) -> Array:
    """Return the quartiles of each number by the analytic price."""
    return np.stack([data.expected / UNSURE, data.expected, data.expected * UNSURE])


def scores(data: FormatData, sides: Array, finite: bool, calls: int = CALLS) -> Scores:
    """Return the scores of choices by quartiles of all numbers."""
    full = data.features[:, FEATURES.index("full")] > 0
    candidates = np.ones(len(full), bool) if finite else full
    pairs = [_of_product(data, sides, candidates, calls, *one) for one in _products(data)]
    gains = data.quantity == GAIN
    inside = (sides[0] <= data.measured) & (data.measured <= sides[2])
    chosen, best = (np.array(each) for each in zip(*pairs, strict=True))
    return Scores(chosen, best, float(inside[gains].mean()))


def _products(data: FormatData) -> Iterator[tuple[int, int]]:
    asked = data.quantity == SECONDS
    yield from zip(data.matrix[asked].tolist(), data.columns[asked].tolist(), strict=True)


def _of_product(
    data: FormatData, sides: Array, candidates: Array, calls: int, matrix: int, columns: int
) -> tuple[float, float]:
    """Return the measured speed of the chosen format and of the best, the conversion paid."""
    mine = data.matrix == matrix
    here = mine & (data.columns == columns)
    usual = np.flatnonzero(here & (data.quantity == SECONDS))[0]
    conversions = {
        str(data.forms[k]): k for k in np.flatnonzero(mine & (data.quantity == CONVERSION))
    }
    best, chosen, promise = 1.0, 1.0, PAYS
    for place in np.flatnonzero(here & (data.quantity == GAIN) & candidates):
        conversion = conversions[str(data.forms[place])]
        found = _speed(data.measured, place, usual, conversion, calls)
        total = calls * sides[1, usual]
        saving = total / (sides[1, conversion] + total / sides[0, place])
        best = max(best, found)
        if saving >= promise:
            chosen, promise = found, saving
    return chosen, best


def _speed(numbers: Array, gain: int, usual: int, conversion: int, calls: int) -> float:
    total = calls * numbers[usual]
    return float(total / (numbers[conversion] + total / numbers[gain]))


def ship(path: Path = PACKED) -> None:
    """Train on three quarters of the matrices, test on the rest, and write the package's model."""
    data = load_formats(path)
    tested = is_tested(data)
    train, test = data.of_matrices(~tested), data.of_matrices(tested)
    model = trained_formats(train)
    print(f"{len({*train.matrix})} matrices trained on, {len({*test.matrix})} tested")
    for finite in (False, True):
        for name, sides in (("trees", by_trees(model, test)), ("analytic", by_analytic(test))):
            print(f"{name:9} finite={finite!s:5}  {scores(test, sides, finite)}")
    model.save(Path(format_model.__file__).parent / SHIPPED)
