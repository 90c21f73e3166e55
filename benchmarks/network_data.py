"""The trees and graphs of measured plans, for networks to be trained and compared on.

    python -m benchmarks.network_data            of `benchmarks/data/prices.npz` (`price_data pack`)
    python -m benchmarks.network_data --tiles    of `benchmarks/data/tiles.npz` (`tile_data pack`)

Programs are drawn again by their numbers, and plans made of their texts, so that no measurement is
needed; plans that the compiler no longer makes are left out. The result is a file of arrays in
`benchmarks/results`, which `benchmarks.prices` and `benchmarks.tiles` read.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from pathlib import Path
from typing import Any

import numpy as np

import taco_py as tp
from benchmarks.price_data import PACKED
from benchmarks.price_programs import draw
from benchmarks.tile_data import PACKED as TILES
from benchmarks.tile_kernels import draw_kernel
from taco_py.planner.ir.plan import Plan
from taco_py.running.plan_texts.fitted_plan import parsed_plan
from taco_py.tuning.bench.call_space import space_of
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.networks.form_plans import PlanFormer
from taco_py.tuning.networks.plan_arrays import PlanForms
from taco_py.tuning.networks.train_network import MeasuredProgram
from taco_py.tuning.networks.tree_and_graph import KernelForm
from taco_py.tuning.prices.price_data import PriceData, load_data

RESULTS = Path(__file__).parent / "results"
FORMS, TILE_FORMS = RESULTS / "price_forms.npz", RESULTS / "tile_forms.npz"
MOST_NUMBERS = 5000
"""Programs that are drawn before one that is not met is given up."""
LISTS = ("loops", "loop_parent", "statements", "statement_parent", "nodes", "edges")


@dataclass(frozen=True, eq=False)
class FormedProgram:
    """A program's plans as networks read them.

    number  it is drawn by
    times   of each plan, NaN behind the last
    usual   the place of the plan that is chosen without timing, -1 where it was not measured
    texts   of its plans
    """

    number: int
    digest: str
    plans: PlanForms
    times: np.ndarray[Any, Any]
    usual: int
    texts: tuple[str, ...]

    @property
    def seconds(self) -> np.ndarray[Any, Any]:
        """Return the lower quartile of each plan's times, as `PriceData` has it."""
        return np.asarray(np.nanquantile(self.times.astype(float), 0.25, axis=1))

    @property
    def measured(self) -> MeasuredProgram:
        return MeasuredProgram(self.plans, self.seconds, max(self.usual, 0))


Drawn = tuple[str, str, Mapping[str, Any], Mapping[str, Any]]
"""Digest, text, operands and options of what a number draws."""


def drawn_program(number: int) -> Drawn:
    program = draw(number)
    return program.digest, program.text, program.operands, program.options


def drawn_tiles(number: int) -> Drawn:
    kernel = draw_kernel(number)
    return kernel.digest, kernel.text, kernel.operands, {"threads": 1}


def formed(data: PriceData, drawn: Callable[[int], Drawn]) -> Iterator[FormedProgram]:
    """Yield the programs of data, each with the forms of its plans."""
    waiting = {str(digest): place for place, digest in enumerate(data.digests)}
    for number in count():
        if not waiting or number == MOST_NUMBERS:
            return
        digest, text, operands, options = drawn(number)
        if digest not in waiting:
            continue
        mine = np.flatnonzero(data.program == waiting.pop(digest))
        call = space_of(tunable(text, operands, options))
        former, kept, plans = PlanFormer(call.priced), list[int](), list[Plan]()
        for place in mine.tolist():
            try:
                plan = Plan(parsed_plan(data.plans[place]), call.prepared.plan.result)
                former.forms((plan,))
            except tp.TacoError as error:
                print(f"{number}: {error.message[:80]}")
                continue
            kept.append(place)
            plans.append(plan)
        texts = tuple(data.plans[place] for place in kept)
        usual = call.space.text(())
        place = texts.index(usual) if usual in texts else -1
        yield FormedProgram(number, digest, former.forms(plans), data.times[kept], place, texts)


def price_data_of(programs: Sequence[FormedProgram]) -> PriceData:
    """Return the same plans as what prices by features learn from."""
    rows, seconds, plan, rest, times, program = [], [], [], [], [], []
    begin = 0
    for place, one in enumerate(programs):
        rows += [one.plans.forms[k].kernel for kernels in one.plans.kernels for k in kernels]
        seconds += [one.plans.seconds[k] for kernels in one.plans.kernels for k in kernels]
        plan += [begin + n for n, kernels in enumerate(one.plans.kernels) for _ in kernels]
        rest.append(one.plans.rest)
        times.append(one.times)
        program += [place] * len(one.times)
        begin += len(one.times)
    return PriceData(
        np.array(rows, np.float32), np.array(seconds), np.array(plan, np.int32),
        np.concatenate(rest), np.concatenate(times), np.array(program, np.int32),
        np.array([one.digest for one in programs]),
    )  # fmt: skip


# ---------------------------------------------------------------- files


def save(programs: Sequence[FormedProgram], path: Path) -> None:
    """Write programs to a file of arrays."""
    forms = [form for one in programs for form in one.plans.forms]
    arrays: dict[str, Any] = {"kernel": np.array([form.kernel for form in forms])}
    for name in LISTS:
        parts = [getattr(form, name) for form in forms]
        arrays[name] = np.concatenate(parts)
        arrays[f"count {name}"] = np.array([len(part) for part in parts])
    kernels = [kernels for one in programs for kernels in one.plans.kernels]
    arrays.update(
        number=np.array([one.number for one in programs]),
        digest=np.array([one.digest for one in programs]),
        usual=np.array([one.usual for one in programs]),
        forms=np.array([len(one.plans.forms) for one in programs]),
        plans=np.array([len(one.plans.kernels) for one in programs]),
        seconds=np.concatenate([one.plans.seconds for one in programs]),
        rest=np.concatenate([one.plans.rest for one in programs]),
        times=np.concatenate([one.times for one in programs]),
        kernels=np.array([k for some in kernels for k in some]),
        texts=np.frombuffer("\0".join(t for one in programs for t in one.texts).encode(), np.uint8),
    )
    arrays["count kernels"] = np.array([len(some) for some in kernels])
    path.parent.mkdir(exist_ok=True)
    np.savez_compressed(path, **arrays)


def load(path: Path) -> list[FormedProgram]:
    """Return the programs of a file of `save`."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    lists = {name: _parts(arrays[name], arrays[f"count {name}"]) for name in LISTS}
    forms = [
        KernelForm(kernel, *parts)
        for kernel, *parts in zip(arrays["kernel"], *(lists[name] for name in LISTS), strict=True)
    ]
    kernels = [tuple(part.tolist()) for part in _parts(arrays["kernels"], arrays["count kernels"])]
    texts = arrays["texts"].tobytes().decode().split("\0")
    of_forms, of_plans = _bounds(arrays["forms"]), _bounds(arrays["plans"])
    programs = []
    for place, (mine, plans) in enumerate(zip(of_forms, of_plans, strict=True)):
        one = PlanForms(
            tuple(forms[mine]), arrays["seconds"][mine], tuple(kernels[plans]),
            arrays["rest"][plans],
        )  # fmt: skip
        programs.append(
            FormedProgram(
                int(arrays["number"][place]), str(arrays["digest"][place]), one,
                arrays["times"][plans], int(arrays["usual"][place]), tuple(texts[plans]),
            )
        )  # fmt: skip
    return programs


def _bounds(counts: np.ndarray[Any, Any]) -> list[slice]:
    return [slice(begin, end) for begin, end in pairwise([0, *accumulate(counts.tolist())])]


def _parts(rows: np.ndarray[Any, Any], counts: np.ndarray[Any, Any]) -> list[Any]:
    return [rows[bounds] for bounds in _bounds(counts)]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiles", action="store_true")
    parser.add_argument("--data", type=Path)
    options = parser.parse_args(arguments)
    drawn, packed, path = (
        (drawn_tiles, TILES, TILE_FORMS) if options.tiles else (drawn_program, PACKED, FORMS)
    )
    begin = time.monotonic()
    data = load_data(options.data or packed)
    places = {str(digest): place for place, digest in enumerate(data.digests)}
    programs = sorted(formed(data, drawn), key=lambda one: places[one.digest])
    save(programs, path)
    plans = sum(len(one.texts) for one in programs)
    seconds = time.monotonic() - begin
    print(f"{len(programs)} programs, {plans} plans, {seconds:.0f} s, {path.stat().st_size} bytes")


if __name__ == "__main__":
    sys.exit(main())
