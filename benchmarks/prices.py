"""Do learned prices rank plans better than the analytic one? On programs that none was trained on.

    python -m benchmarks.prices                features alone: trained on three quarters of the
                                               programs, tested on the rest
    python -m benchmarks.prices --ship         the trees are the price of the package from now on
    python -m benchmarks.prices --networks     networks besides, on the same programs: takes the
                                               file of `benchmarks.network_data`, some minutes
    python -m benchmarks.prices --picture FILE.svg
                                               draws expected against measured seconds: each program
                                               by trees that were grown on the others of four parts

A row for each price: the analytic one, the mean of what was measured, a linear model of the
features, trees; a recursive network over the loops of a plan (Baghdadi et al. 2021), one over the
operations of each kernel (Kaufman et al. 2021). The figures are those of `price_metrics`. The
networks are kept in `benchmarks/results` for `benchmarks.searches`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.network_data import FORMS, RESULTS, FormedProgram, load
from benchmarks.price_data import PACKED
from benchmarks.price_metrics import Tested, scores, table
from benchmarks.seconds_picture import PricedPlans, draw_seconds
from taco_py.tuning.networks.network import Network
from taco_py.tuning.networks.train_network import Training, trained_network
from taco_py.tuning.prices import price_choice
from taco_py.tuning.prices.model_file import Origin
from taco_py.tuning.prices.price_choice import SHIPPED
from taco_py.tuning.prices.price_data import PriceData, load_data
from taco_py.tuning.prices.train_price import trained

PARTS = 4
"""Of the programs: one of them is the test set."""
Price = Callable[[PriceData], np.ndarray[Any, Any]]
"""The expected seconds of each plan."""
NETWORKS: dict[str, tuple[str, Training]] = {
    "tree LSTM": ("tree", Training("speed-up")),
    "tree LSTM alone": ("tree", Training("speed-up", prior=False)),
    "tree LSTM, pairs": ("tree", Training("pairs and seconds")),
    "GraphSAGE": ("graph", Training("seconds")),
    "GraphSAGE, pairs": ("graph", Training("pairs and seconds")),
}
"""Kinds and trainings by the names of rows; alone: without the analytic price."""


def is_tested(data: PriceData) -> np.ndarray[Any, Any]:
    """Whether each program is in the test set: by its digest, for good."""
    return np.array([is_test(str(digest)) for digest in data.digests])


def is_test(digest: str) -> bool:
    """Whether the program of a digest is in the test set."""
    return part_of(digest) == 0


def part_of(digest: str) -> int:
    """The part of the programs that a digest is in, for good."""
    return int(digest, 16) % PARTS


def by_other_parts(data: PriceData) -> np.ndarray[Any, Any]:
    """The seconds of each plan by trees that were grown on programs of the other parts."""
    expected = np.zeros(len(data.rest))
    parts = np.array([part_of(str(digest)) for digest in data.digests])
    for part in range(PARTS):
        mine = parts == part
        if mine.any():
            price = trees(data.of_programs(~mine))
            expected[mine[data.program]] = price(data.of_programs(mine))
    return expected


def picture(data: PriceData) -> str:
    """Both prices of all plans against what they took, as SVG text."""
    processor, _, when = data.machine
    panels = (
        PricedPlans("Analytic price", data.measured, data.analytic),
        PricedPlans("Learned price, from other programs", data.measured, by_other_parts(data)),
    )
    count = f"{len(data.rest):,}".replace(",", "\u202f")
    where = f"{count} plans of {len(data.digests)} drawn programs, {processor}, {when}"
    return draw_seconds(panels, f"{where}. Grey: off by ×2 at most.")


def analytic(data: PriceData) -> np.ndarray[Any, Any]:
    return data.analytic


def mean_of(train: PriceData) -> Price:
    """The analytic price times the mean ratio."""
    ratio = float(np.exp2(np.mean(np.log2(train.measured / train.analytic))))
    return lambda data: data.analytic * ratio


def linear(train: PriceData) -> Price:
    """The analytic price times a linear model of the features, by ridge regression."""

    def design(data: PriceData) -> np.ndarray[Any, Any]:
        features = np.maximum(data.features.astype(float), -20.0)
        weights = data.seconds / data.analytic[data.plan]
        sums = np.zeros((len(data.rest), features.shape[1]))
        np.add.at(sums, data.plan, features * weights[:, None])
        return np.hstack([sums, np.ones((len(sums), 1))])

    rows = design(train)
    wanted = np.log2(train.measured / train.analytic)
    weights = np.linalg.solve(rows.T @ rows + np.eye(rows.shape[1]), rows.T @ wanted)
    return lambda data: data.analytic * np.exp2(np.clip(design(data) @ weights, -6, 6))


def trees(train: PriceData) -> Price:
    """The analytic price times the trees."""
    model = trained(train)

    def price(data: PriceData) -> np.ndarray[Any, Any]:
        _, middle, _ = model.ratios(data.features.astype(float))
        return data.rest + np.bincount(data.plan, data.seconds * middle, len(data.rest))

    return price


def tested(data: PriceData, expected: np.ndarray[Any, Any], usual: Sequence[int]) -> list[Tested]:
    """The plans of each program with what they were expected to take.

    usual  of each program, the place of its usual plan; none for the first plan of each
    """
    measured, programs = data.measured, list[Tested]()
    for number in range(len(data.digests)):
        mine = np.flatnonzero(data.program == number)
        place = usual[number] if len(usual) else 0
        programs.append(Tested(measured[mine], expected[mine], place))
    return programs


def by_features(train: PriceData, test: PriceData, usual: Sequence[int]) -> dict[str, Any]:
    """The rows of prices by features."""
    prices = {
        "analytic": analytic, "mean": mean_of(train), "linear": linear(train),
        "trees": trees(train),
    }  # fmt: skip
    return {name: scores(tested(test, price(test), usual)) for name, price in prices.items()}


def by_networks(train: list[FormedProgram], test: list[FormedProgram]) -> dict[str, Any]:
    """The rows of networks, which are kept in files."""
    rows = {}
    for name, (kind, training) in NETWORKS.items():
        begin = time.monotonic()
        network = trained_network(kind, [one.measured for one in train], training, Origin())
        print(f"{name}: trained in {time.monotonic() - begin:.0f} s", flush=True)
        network.save(network_path(name))
        rows[name] = scores(of_network(network, test))
    return rows


def network_path(name: str) -> Path:
    """The file of the network of a row."""
    return RESULTS / f"{name.replace(',', '').replace(' ', '_')}.npz"


def of_network(network: Network, test: list[FormedProgram]) -> list[Tested]:
    """The plans of each program with what a network expects."""
    return [Tested(one.seconds, network.seconds(one.plans), one.usual) for one in test]


def check_alike(data: PriceData, programs: list[FormedProgram]) -> None:
    """Raise ValueError where forms are not of the plans of the data, in their order."""
    counts = np.bincount(data.program, minlength=len(data.digests))
    plans = [(str(d), int(n)) for d, n in zip(data.digests, counts, strict=True)]
    if plans != [(one.digest, len(one.texts)) for one in programs]:
        raise ValueError("Expected forms of the same plans: python -m benchmarks.network_data")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=PACKED)
    parser.add_argument("--networks", action="store_true")
    parser.add_argument("--ship", action="store_true")
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args(arguments)
    if options.picture is not None:
        options.picture.write_text(picture(load_data(options.data)), encoding="utf-8")
        print(f"drawn into {options.picture}")
        return
    if not options.networks:
        data = load_data(options.data)
        some = is_tested(data)
        rows = by_features(data.of_programs(~some), data.of_programs(some), ())
        print(f"{(~some).sum()} programs trained on, {some.sum()} tested")
        print(table(rows))
        if options.ship:
            trained(data.of_programs(~some)).save(Path(price_choice.__file__).parent / SHIPPED)
        return
    programs = load(FORMS)
    data = load_data(options.data)
    check_alike(data, programs)
    train = [one for one in programs if not is_test(one.digest) and one.usual >= 0]
    test = [one for one in programs if is_test(one.digest)]
    usual = [one.usual for one in test]
    some = {one.digest for one in train}
    in_training = np.array([str(digest) in some for digest in data.digests])
    rows = by_features(data.of_programs(in_training), data.of_programs(is_tested(data)), usual)
    rows |= by_networks(train, test)
    print(f"{len(train)} programs trained on, {len(test)} tested")
    print(table(rows))


if __name__ == "__main__":
    sys.exit(main())
