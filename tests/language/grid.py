"""The grid: every function, operator, reduction and update in every format and type.

    python -m tests.language.grid [N] [--seed S] [--about max]

N kernels are drawn, all of them where N is not given; each runs on five sets of data. Results are
compared with the dense oracle, and with NumPy's own function where operands store something.
Outcomes other than equal are printed; the exit status is 1 where there are any.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import taco_py as tp
from tests.corpus.formats import to_dense
from tests.language.cases import DATA, DTYPES, FLOATING, FORMATS, Text, texts
from tests.language.data import operand

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """A text over operands of one format and one type: a kernel."""

    text: Text
    form: str
    dtype: str

    def __str__(self) -> str:
        return f"{self.text.text}   {self.form} {self.dtype}"


def cells() -> Iterator[Cell]:
    """All cells of the grid."""
    for form in FORMATS:
        for text in texts(3 if form == "sss" else 2):
            for dtype in DTYPES:
                yield Cell(text, form, dtype)


def drawn(count: int, seed: int) -> list[Cell]:
    """Some cells, each kind of text about as often as others."""
    every = list(cells())
    order = np.random.default_rng(seed).permutation(len(every))[:count]
    return [every[place] for place in order]


def tried(cell: Cell, seed: int) -> Iterator[tuple[str, str]]:
    """Compute a cell on each set of data: its outcome, "equal" or "refused" where as it should be,
    and the set of data.
    """
    for data in DATA:
        random = np.random.default_rng((zlib.crc32(f"{cell}{data}".encode()), seed))
        yield outcome(cell, data, random), data


def outcome(cell: Cell, data: str, random: np.random.Generator) -> str:
    """Compute a cell on one set of data and compare."""
    text = cell.text
    made = {
        name: operand(random, text.order, cell.dtype, cell.form, data, name == text.exponent)
        for name in text.names
        if name != "y"
    }
    given = {name: each[0] for name, each in made.items()}
    dense = {name: each[1] for name, each in made.items()}
    if "y" in text.names:
        start = operand(random, 2, cell.dtype, "dense", data, False)[0]
        given["y"] = dense["y"] = start.reshape(-1)[: len(start)].copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle = _computed(lambda: tp.evaluate_dense(text.text, **given))
        found = _computed(lambda: to_dense(tp.evaluate(text.text, **given)))
    if isinstance(oracle, Exception) or isinstance(found, Exception):
        return _refused(oracle, found, cell, dense)
    if found.dtype != oracle.dtype or found.shape != oracle.shape:
        return f"{found.dtype}{found.shape}, the oracle {oracle.dtype}{oracle.shape}"
    if not close(found, oracle):
        return difference(found, oracle, "the oracle")
    if text.numpy is None:
        return "equal"
    stored = np.logical_and.reduce([each[2] for each in made.values()])
    return _compared_with_numpy(cell, dense, found, stored)


def _computed(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return error


def _refused(oracle: Any, found: Any, cell: Cell, dense: dict[str, Array]) -> str:
    """An error is right where both have the same, one of ours."""
    if not isinstance(oracle, tp.TacoError) or isinstance(oracle, tp.InternalError):
        return f"the oracle: {_shown(oracle)}, evaluate: {_shown(found)}"
    if type(oracle) is not type(found):
        return f"the oracle: {_shown(oracle)}, evaluate: {_shown(found)}"
    ordered = cell.dtype.startswith("complex")  # NumPy has an order of complex numbers
    numpy = None if cell.text.numpy is None else _computed(lambda: _numpy(cell, dense))
    if numpy is None or isinstance(numpy, Exception) or ordered or cell.dtype == "bool":
        return "refused"
    return f"refused, where NumPy has a result: {_shown(found)}"


def _shown(value: Any) -> str:
    if isinstance(value, Exception):
        return f"{type(value).__name__}: {str(value).splitlines()[0][:150]}"
    return "a result"


SCIPYS = ("erf", "sigmoid")
"""Functions of SciPy's, which makes float64 of all integers."""


def _numpy(cell: Cell, dense: dict[str, Array]) -> Array:
    args = [dense[name] for name in cell.text.names]
    if cell.text.about in FLOATING and args[0].dtype.kind in "biu":
        small = args[0].itemsize <= 2 and cell.text.about not in SCIPYS
        args = [arg.astype(np.float32 if small else np.float64) for arg in args]
    if cell.text.about == "where":
        args[0] = args[0] != 0
    if cell.text.about == "round" and args[0].dtype.kind == "b":
        return args[0]  # NumPy makes float16 of them
    with np.errstate(all="ignore"):
        assert cell.text.numpy is not None
        return np.asarray(cell.text.numpy(*args))


def _compared_with_numpy(cell: Cell, dense: dict[str, Array], found: Array, stored: Array) -> str:
    """Compare with NumPy's function, where all operands store something if it is pointwise."""
    numpy = _computed(lambda: _numpy(cell, dense))
    if isinstance(numpy, Exception):
        return f"a result, where NumPy has none: {_shown(numpy)}"
    if found.dtype != numpy.dtype:
        return f"dtype {found.dtype}, NumPy's {numpy.dtype}"
    if cell.text.about in ("prod", "*=") and not stored.all():
        return "equal"  # what is absent annihilates, where NumPy's 0 * nan is nan
    if cell.text.pointwise:
        found, numpy = np.where(stored, found, 0), np.where(stored, numpy, 0)
    return "equal" if close(found, numpy) else difference(found, numpy, "NumPy")


def close(found: Array, wanted: Array) -> bool:
    """Equal, or of inexact numbers within 32 units in the last place, or those of the largest."""
    return bool(_near(found, wanted).all())


def _near(found: Array, wanted: Array) -> Array:
    with np.errstate(all="ignore"):
        if wanted.dtype.kind not in "fc":
            return np.asarray(found == wanted)
        eps = 32 * np.finfo(wanted.dtype).eps
        if wanted.dtype.kind == "c":  # C and NumPy need not agree which part is not finite
            both = ~(np.isfinite(found) | np.isfinite(wanted))
            found, wanted = np.where(both, 0, found), np.where(both, 0, wanted)
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        return np.asarray(same | (np.abs(found - wanted) <= eps * (np.abs(wanted) + 1e-3)))


def difference(found: Array, wanted: Array, whose: str) -> str:
    """Say where results differ first."""
    place = tuple(int(k) for k in np.argwhere(~_near(found, wanted))[0]) if found.ndim else ()
    return f"{found[place]} at {place}, {whose} {wanted[place]}"


def main(arguments: list[str]) -> int:
    """Run the grid, or N kernels of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.language.grid")
    parser.add_argument(
        "count", nargs="?", type=int, default=None, help="kernels, all if not given"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--about", help="only texts about this")
    parser.add_argument("--quick", action="store_true", help="compile with -Og")
    given = parser.parse_args(arguments)
    if given.quick:
        from taco_py.data.kernels import KERNELS

        KERNELS.compile_with(("-Og",))
    every = drawn(10**9 if given.count is None else given.count, given.seed)
    outcomes: Counter[str] = Counter()
    for cell in every:
        if given.about is not None and cell.text.about != given.about:
            continue
        for found, data in tried(cell, given.seed):
            outcomes[found if found in ("equal", "refused") else "wrong"] += 1
            if found not in ("equal", "refused"):
                print(f"{cell} {data}: {found}", flush=True)
    print(", ".join(f"{count} {what}" for what, count in outcomes.items()))
    return int(outcomes["wrong"] > 0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("TACO_PY_CACHE_DIR", folder)
        status = main(sys.argv[1:])
    sys.exit(status)
