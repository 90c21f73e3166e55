"""How fast is what is done with the elements of a product where they are made?

Ten epilogues of X W, as in layers of networks forward and backward: X dense, of 4096 by 64 elements
and more, or the adjacency matrix of a graph, with W of 64 columns. `apart` makes the product, then
all that reads it as one call; `none` is each operation by itself. Results are float32, compared
with NumPy's in float64 to four digits. Two threads; torch takes part in dense products where it is
installed.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.inputs import shared_loader
from benchmarks.measure import OURS, REFERENCE, Compute, Record, in_threads, in_turns, record
from taco_py.tool.inputs import rmat
from tests.epilogue.functions_of_products import EPILOGUES, of_product, operands_of

DENSE = ((4096, 64, 512), (16384, 64, 512), (4096, 256, 512))
"""Rows, depth and columns."""
COLUMNS, THREADS = 64, 2
REAL = ("pubmed_adj",)
DIGITS = 1e-4
SECONDS = 1.5


def run() -> Iterator[Record]:
    with in_threads(THREADS):
        yield from compared(tuple(EPILOGUES))


def compared(names: tuple[str, ...]) -> Iterator[Record]:
    """Each epilogue of each product: the times of all contenders."""
    for title, left, columns in main_loops():
        given = operands_of(left, columns)
        for name in names:
            contenders = dict(_contenders(name, given))
            expected = _parts(of_product(EPILOGUES[name])(*map(_exact, given)))
            notes = {key: _note(each(), expected) for key, each in contenders.items()}
            for key, times in in_turns(contenders, SECONDS).items():
                milliseconds = [1e3 * each for each in times]
                yield record("epilogues", f"{title}: {name}", key, milliseconds, "ms", notes[key])


def main_loops() -> Iterator[tuple[str, Any, int]]:
    """The left operand of each product, and its columns."""
    rng = np.random.default_rng(0)
    for rows, depth, columns in DENSE:
        left = rng.standard_normal((rows, depth))
        yield f"{rows} by {depth} by {columns}", left, columns
    yield f"rmat (scale 15), {COLUMNS}", sp.csr_array(rmat(15, 8)), COLUMNS
    loader = shared_loader()
    for name in REAL if loader is not None else ():
        yield f"{name}, {COLUMNS}", sp.csr_array(loader.matrix(name).astype(np.float32)), COLUMNS


def _contenders(name: str, given: tuple[Any, ...]) -> Iterator[tuple[str, Compute]]:
    whole = of_product(EPILOGUES[name])
    yield REFERENCE, partial(whole, *given)
    yield OURS, partial(tp.fuse(whole), *given)
    yield f"{OURS}, apart", partial(_apart, tp.fuse(_product), tp.fuse(EPILOGUES[name]), given)
    yield f"{OURS}, none", partial(tp.fuse(whole, optimize="none"), *given)
    in_torch = None if sp.issparse(given[0]) else _with_torch(name, given)
    if in_torch is not None:
        yield "torch.compile", in_torch


def _exact(operand: Any) -> Any:
    """An operand in float64."""
    return operand.astype(np.float64) if operand.dtype.kind == "f" else operand


def _product(left: Any, right: Any) -> Any:
    return left @ right


def _apart(
    product: Callable[..., Any], epilogue: Callable[..., Any], given: tuple[Any, ...]
) -> Any:
    left, right, *others = given
    return epilogue(product(left, right), *others)


def _with_torch(name: str, given: tuple[Any, ...]) -> Compute | None:
    """The epilogue in torch, compiled for CPUs; None where torch is not installed."""
    try:
        import torch
    except ImportError:
        return None
    from benchmarks.epilogues_in_torch import TORCH_EPILOGUES

    torch.compiler.reset()  # else it gives up on a function that was compiled for others
    torch.set_num_threads(THREADS)
    tensors = [torch.from_numpy(each) for each in given]
    compiled = torch.compile(of_product(TORCH_EPILOGUES[name]))
    return partial(compiled, *tensors)


def _parts(result: Any) -> list[Any]:
    found = result if isinstance(result, tuple) else (result,)
    return [np.asarray(each, np.float64) for each in found]


def _note(result: Any, expected: list[Any]) -> str:
    """Empty, or how far a result is from the reference's."""
    found = _parts(result)
    pairs = zip(found, expected, strict=True)
    away = max(float(np.max(np.abs(a - b) / (1 + np.abs(b)), initial=0)) for a, b in pairs)
    return "" if away < DIGITS else f"WRONG by {away:.1e}"


def main() -> None:
    """Print the table of the epilogues that are asked for, and what they gain on the whole."""
    from benchmarks.run import printed

    parser = argparse.ArgumentParser(prog="python -m benchmarks.epilogues", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(EPILOGUES))
    found = list(printed(compared(tuple(parser.parse_args().names))))
    ours = {each.input: each.minimum for each in found if each.contender == OURS}
    for other in (f"{OURS}, apart", f"{OURS}, none", REFERENCE):
        times = {each.input: each.minimum for each in found if each.contender == other}
        gains = [times[name] / ours[name] for name in ours]
        least = min(gains)
        mean = statistics.geometric_mean(gains)
        print(f"  {other}: {mean:.2f} times as long in the mean, {least:.2f} at least")


if __name__ == "__main__":
    main()
