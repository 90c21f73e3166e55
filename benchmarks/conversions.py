"""How fast is one format made of another?

COO to CSR of entries in order and in any order, and CSR to CSC, by one thread and by two.
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
from taco_py.kernels import KERNELS


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
