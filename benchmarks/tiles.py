"""Do networks choose tiles better than the analytic model? On kernels that none was trained on.

    python -m benchmarks.tiles     takes the file of `benchmarks.network_data --tiles`

Kernels are in four parts by their digests; each part is priced by networks that were trained on the
other three. A row for each price: the analytic model of tiles (Narasimhan et al. 2021), the trees
of learned prices, whose features know no sizes of tiles, a network over operations with three
losses, one over loops. The figures are those of `price_metrics`, speed-ups over the loops as
written.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.network_data import TILE_FORMS, FormedProgram, load, price_data_of
from benchmarks.price_metrics import Tested, scores, table
from benchmarks.prices import trees
from benchmarks.tile_kernels import TiledKernel, draw_kernel, tile_of
from benchmarks.tile_model import chosen_tile, tile_price, traffic_price
from taco_py.tuning.networks.train_network import Training, trained_network
from taco_py.tuning.prices.model_file import Origin

PARTS = 4
NETWORKS: dict[str, tuple[str, Training]] = {
    "GraphSAGE, pairs": ("graph", Training("pairs")),
    "GraphSAGE, ListMLE": ("graph", Training("list")),
    "GraphSAGE, seconds": ("graph", Training("seconds")),
    "tree LSTM, ListMLE": ("tree", Training("list")),
}
CLOCK = 3e-10
"""Seconds of a cycle, so that prices of tiles are of the order of seconds."""
Expect = Callable[[list[FormedProgram], list[FormedProgram]], list[Tested]]


def part_of(one: FormedProgram) -> int:
    return int(one.digest, 16) % PARTS


def written(one: FormedProgram) -> int:
    """The place of the loops as written."""
    return next((place for place, text in enumerate(one.texts) if "split(" not in text), -1)


def by_model(price: Callable[[TiledKernel, tuple[int, ...]], float]) -> Expect:
    """What the analytic model expects; it is trained on nothing."""

    def expect(_: list[FormedProgram], test: list[FormedProgram]) -> list[Tested]:
        rows = []
        for one in test:
            kernel = draw_kernel(one.number)
            cycles = [price(kernel, tile_of(kernel, text)) for text in one.texts]
            rows.append(Tested(one.seconds, np.array(cycles) * CLOCK, written(one)))
        return rows

    return expect


def by_trees(train: list[FormedProgram], test: list[FormedProgram]) -> list[Tested]:
    price = trees(price_data_of(train))
    return [Tested(one.seconds, price(price_data_of([one])), written(one)) for one in test]


def by_network(kind: str, training: Training) -> Expect:
    def expect(train: list[FormedProgram], test: list[FormedProgram]) -> list[Tested]:
        begin = time.monotonic()
        measured = [replace(one.measured, usual=max(written(one), 0)) for one in train]
        network = trained_network(kind, measured, training, Origin())
        print(f"{kind} {training.loss}: {time.monotonic() - begin:.0f} s", flush=True)
        return [Tested(one.seconds, network.seconds(one.plans), written(one)) for one in test]

    return expect


def choice_of_model(programs: list[FormedProgram]) -> list[float]:
    """How much longer the tile that the model chooses takes than the best, for each kernel."""
    errors = []
    for one in programs:
        kernel = draw_kernel(one.number)
        tiles = [tile_of(kernel, text) for text in one.texts]
        if chosen_tile(kernel) in tiles:
            mine = one.seconds[tiles.index(chosen_tile(kernel))]
            errors.append(float(mine / one.seconds.min()) - 1.0)
    return errors


def main(arguments: list[str] | None = None) -> None:
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    programs = load(TILE_FORMS)
    prices: dict[str, Expect] = {
        "analytic model": by_model(tile_price), "its bytes alone": by_model(traffic_price),
        "trees": by_trees,
    }  # fmt: skip
    prices |= {name: by_network(*how) for name, how in NETWORKS.items()}
    rows = {}
    for name, expect in prices.items():
        tested: list[Tested] = []
        for part in range(PARTS):
            train = [one for one in programs if part_of(one) != part]
            tested += expect(train, [one for one in programs if part_of(one) == part])
        rows[name] = scores(tested)
    print(f"{len(programs)} kernels, {sum(len(one.texts) for one in programs)} tiles")
    print(table(rows))
    errors = choice_of_model(programs)
    print(f"the tile that the analytic model chooses takes {np.mean(errors):.3f} longer on average")


if __name__ == "__main__":
    sys.exit(main())
