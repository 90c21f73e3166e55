"""What plans took: arrays of kernels and of plans, in a file that anyone can learn from.

kernels  features, analytic seconds, and the plan of each
plans    the seconds of what is no kernel, all times, and the program of each
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import chain, compress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import FileFormatError
from taco_py.tuning.prices.forest import Rows
from taco_py.tuning.prices.kernel_features import FEATURES

TIMES = 12
"""Times of a plan that are kept."""
BETWEEN_PLANS = "\0"
MOST_TEXT = 1 << 28
"""Characters of all texts of plans in a file at most."""


@dataclass(frozen=True, slots=True, eq=False)
class PriceData:
    """Plans that were measured.

    features  of each kernel, a row
    seconds   of each kernel by the analytic price
    plan      of each kernel, its number
    rest      seconds of each plan's copies and calls by the analytic price
    times     of each plan, NaN behind the last
    program   of each plan, its place among `digests`
    digests   of texts and operands; one program is trained on, or tested, as a whole
    plans     the text of each plan, so that its features can be counted again; none where they are
              not kept
    machine   the processor, its compiler and the day on which the plans ran; "" where that is
              unknown
    """

    features: NDArray[np.float32]
    seconds: Rows
    plan: NDArray[np.int32]
    rest: Rows
    times: NDArray[np.float32]
    program: NDArray[np.int32]
    digests: NDArray[np.str_]
    plans: tuple[str, ...] = ()
    machine: tuple[str, str, str] = ("", "", "")

    @classmethod
    def nothing(cls) -> PriceData:
        """Return the data of no plan."""
        return cls(
            np.zeros((0, len(FEATURES)), np.float32), np.zeros(0), np.zeros(0, np.int32),
            np.zeros(0), np.zeros((0, TIMES), np.float32), np.zeros(0, np.int32),
            np.zeros(0, np.str_),
        )  # fmt: skip

    @classmethod
    def of_plan(
        cls,
        digest: str,
        rest: float,
        seconds: Sequence[float],
        rows: Rows,
        times: Sequence[float],
        text: str = "",
    ) -> PriceData:
        """Return the data of one plan."""
        row = np.full((1, TIMES), np.nan, np.float32)
        row[0, : len(times)] = times[:TIMES]
        count = len(seconds)
        return cls(
            rows.astype(np.float32).reshape(count, len(FEATURES)), np.array(seconds, float),
            np.zeros(count, np.int32), np.array([rest]), row, np.zeros(1, np.int32),
            np.array([digest]), (text,),
        )  # fmt: skip

    @property
    def measured(self) -> Rows:
        """Return the lower quartile of each plan's times: what else ran made some longer."""
        quartile: Rows = np.nanquantile(self.times.astype(np.float64), 0.25, axis=1)
        return quartile

    @property
    def analytic(self) -> Rows:
        """Return the seconds of each plan by the analytic price."""
        total: Rows = self.rest + np.bincount(self.plan, self.seconds, len(self.rest))
        return total

    def of_programs(self, some: NDArray[np.bool_]) -> PriceData:
        """Return the data of some of the programs, a truth for each."""
        plans = some[self.program]
        kernels = plans[self.plan]
        numbers, programs = np.cumsum(plans) - 1, np.cumsum(some) - 1
        return PriceData(
            self.features[kernels], self.seconds[kernels],
            numbers[self.plan[kernels]].astype(np.int32), self.rest[plans], self.times[plans],
            programs[self.program[plans]].astype(np.int32), self.digests[some],
            tuple(compress(self.plans, plans)), self.machine,
        )  # fmt: skip

    def save(self, path: str | Path) -> None:
        """Write a file of the arrays."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        texts = zlib.compress(BETWEEN_PLANS.join(self.plans).encode(), 9)
        arrays["plans"] = np.frombuffer(texts, np.uint8)
        with Path(path).open("wb") as file:
            np.savez_compressed(file, names=np.array([*FEATURES]), **arrays)


def join_data(parts: Sequence[PriceData]) -> PriceData:
    """Return the data of all parts, which ran on one machine; programs of one digest are one.

    Raises FileFormatError for times of several processors or compilers.
    """
    if not parts:
        return PriceData.nothing()
    machines = {part.machine[:2] for part in parts}
    if len(machines) > 1:
        raise FileFormatError(
            f"Expected times of one processor and compiler, found {len(machines)}",
            hint="learn a price for each",
        )
    digests = list(dict.fromkeys(str(d) for part in parts for d in part.digests))
    place = {digest: number for number, digest in enumerate(digests)}

    def plans() -> Iterator[NDArray[np.int32]]:
        before = 0
        for part in parts:
            yield part.plan + np.int32(before)
            before += len(part.rest)

    programs = (
        np.array([place[str(d)] for d in part.digests], np.int32)[part.program] for part in parts
    )
    return PriceData(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.seconds for part in parts]),
        np.concatenate([*plans()]),
        np.concatenate([part.rest for part in parts]),
        np.concatenate([part.times for part in parts]),
        np.concatenate([*programs]),
        np.array(digests),
        tuple(chain.from_iterable(part.plans for part in parts)),
        (*machines.pop(), max(part.machine[2] for part in parts)),
    )


def read_arrays(path: str | Path, noun: str) -> dict[str, Any]:
    """Return the arrays of a file by name; nothing in the file is run. Raises FileFormatError.

    noun  what the file is of, in messages
    """
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (BadZipFile, ValueError, EOFError, KeyError, zlib.error) as error:
        raise FileFormatError(
            f"Expected a file of {noun}, found none in {path}: {error}"
        ) from error


def load_data(path: str | Path, any_features: bool = False) -> PriceData:
    """Return the data of a file; nothing in the file is run.

    any_features  whether its features may be others than `FEATURES`

    Raises FileFormatError.
    """
    arrays = read_arrays(path, "what plans took")
    names = [str(name) for name in arrays.pop("names", ())]
    if names != [*FEATURES] and not any_features:
        differences = sorted({*names} ^ {*FEATURES})
        raise FileFormatError(
            f"Expected the features of this release, found others in {path}: "
            f"{', '.join(differences[:5])}",
            hint="count them again: python -m benchmarks.price_data count",
        )
    missing = [field.name for field in fields(PriceData) if field.name not in arrays]
    if missing:
        raise FileFormatError(f"Expected the array {missing[0]} in {path}, found none")
    values = {field.name: arrays[field.name] for field in fields(PriceData)}
    if values["machine"].shape != (3,):
        raise FileFormatError(f"Expected processor, compiler and day in {path}, found others")
    values["machine"] = tuple(map(str, values["machine"]))
    values["plans"] = _texts(values["plans"], path)
    data = PriceData(**values)
    _check_shapes(data, len(names), path)
    return data


def _check_shapes(data: PriceData, features: int, path: str | Path) -> None:
    """Raise FileFormatError where arrays of a file do not fit each other."""
    kernels, plans, programs = len(data.seconds), len(data.rest), len(data.digests)
    fits = (
        data.features.shape == (kernels, features)
        and data.times.shape == (plans, TIMES)
        and len(data.plans) in (0, plans)
        and _are_places(data.plan, kernels, plans)
        and _are_places(data.program, plans, programs)
    )
    if not fits:
        raise FileFormatError(f"Expected kernels of plans of programs in {path}, found others")


def _are_places(array: NDArray[Any], count: int, most: int) -> bool:
    """Tell whether an array has so many places below a number."""
    if array.shape != (count,) or array.dtype.kind != "i":
        return False
    return not count or (int(array.min()) >= 0 and int(array.max()) < most)


def _texts(packed: NDArray[np.uint8], path: str | Path) -> tuple[str, ...]:
    """Return the texts of plans. Raises FileFormatError."""
    try:
        unpack = zlib.decompressobj()
        text = unpack.decompress(packed.tobytes(), MOST_TEXT).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise FileFormatError(f"Expected texts of plans in {path}, found others") from error
    return tuple(text.split(BETWEEN_PLANS)) if text else ()
