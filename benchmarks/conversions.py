"""How fast is one format made of another?

COO to CSR of entries in order and in any order, and CSR to CSC, by one thread and by two; CSR into
padded rows, runs and diagonals, and back, beside SciPy's where it has one, else CSR to CSC of ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.inputs import matrices
from benchmarks.measure import OURS, REFERENCE, Contest, Record, in_turns, record
from taco_py.data.kernels import KERNELS


def run() -> Iterator[Record]:
    for contest in contests():
        for name, seconds in in_turns(contest.contenders).items():
            yield record("conversions", contest.input, name, [1e3 * t for t in seconds], "ms")


def contests() -> Iterator[Contest]:
    for name, a in inputs():
        ordered, rng = a.tocoo(), np.random.default_rng(0)
        place = rng.permutation(a.nnz)
        mixed = sp.coo_array(
            (ordered.data[place], (ordered.row[place], ordered.col[place])), shape=a.shape
        )
        for what, given, target in (
            ("CSR to CSC", a, tp.CSC),
            ("COO to CSR", ordered, tp.CSR),
            ("COO in any order to CSR", mixed, tp.CSR),
        ):
            contenders = {REFERENCE: partial(convert_by_scipy, given, target)}
            for threads in (1, 2):
                own = f"{OURS}, {threads} thread{'s' * (threads > 1)}"
                contenders[own] = partial(convert_by_tacopy, given, target, threads)
            yield Contest(f"{what}, {name}", contenders)
    yield from remapped_contests()


def remapped_contests() -> Iterator[Contest]:
    """Into each format whose levels are derived from the modes, and back."""
    for name, a, texts in remapped_inputs():
        for text in texts:
            csr = tp.tensor(a)
            stored = csr.to_format(text)
            own = f"{OURS}, 1 thread"
            there: dict[str, Any] = {"CSR to CSC, 1 thread": partial(to_format, csr, "csc")}
            back = dict(there)
            if text in ("dia", "bsr(2,2)"):
                there = {REFERENCE: partial(scipy_to, a, text)}
                back = {REFERENCE: scipy_to(a, text).tocsr}
            there[own], back[own] = partial(to_format, csr, text), partial(to_format, stored, "csr")
            yield Contest(f"CSR to {text}, {name}", there)
            yield Contest(f"{text} to CSR, {name}", back)


def scipy_to(given: Any, text: str) -> Any:
    return given.todia() if text == "dia" else given.tobsr((2, 2))


def remapped_inputs() -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    """Matrices of 5 million entries, and formats that hold them without much waste."""
    rng, n = np.random.default_rng(0), 500_000
    rows = np.repeat(np.arange(n), 10)
    columns = (rows + rng.integers(-3000, 3000, 10 * n)) % n
    values = rng.integers(1, 4, 10 * n).astype(float)
    near = sp.coo_array((values, (rows, columns)), shape=(n, n)).tocsr()
    yield "ten a row, near the diagonal", near, ("ell", "sell(8)", "rle")
    offsets = (-700, -699, -698, -1, 0, 1, 698, 699, 700)
    nine = sp.diags_array([rng.random(n) for _ in offsets], offsets=offsets, shape=(n, n))
    yield "nine diagonals", nine.tocsr(), ("dia", "sdia(8)", "bsr(2,2)")
    yield "nine symmetric diagonals", (nine + nine.T).tocsr(), ("sym",)
    columns = np.tile(np.arange(0, 40, 4), n) + rng.integers(0, 4, 10 * n)
    pos = np.arange(0, 10 * n + 1, 10)
    parts = (values, columns.astype(np.int32), pos.astype(np.int32))
    yield "one of four", sp.csr_array(parts, shape=(n, 40)), ("nm(2,4)",)


def to_format(given: Any, target: str) -> Any:
    if KERNELS.cores != 1:
        tp.set_threads(1)
    return given.to_format(target)


def inputs() -> Iterator[tuple[str, Any]]:
    """The usual matrices, and one whose columns are far apart."""
    yield from matrices()
    rng, n = np.random.default_rng(1), 500_000
    places = rng.integers(0, n, (2, 10 * n))
    yield "scattered", sp.coo_array((rng.random(10 * n), tuple(places)), shape=(n, n)).tocsr()


def without_flags(given: Any) -> Any:
    """The same arrays, of which SciPy has not remembered anything."""
    if given.format == "coo":
        return sp.coo_array((given.data, (given.row, given.col)), shape=given.shape)
    return sp.csr_array((given.data, given.indices, given.indptr), shape=given.shape)


def convert_by_scipy(given: Any, target: Any) -> Any:
    return without_flags(given).asformat("csr" if target == tp.CSR else "csc")


def convert_by_tacopy(given: Any, target: Any, threads: int) -> Any:
    if KERNELS.cores != threads:
        tp.set_threads(threads)
    return tp.tensor(without_flags(given), format=target)


if __name__ == "__main__":
    for each in run():
        print(each.input, each.contender, f"{each.minimum:.1f} ms")
