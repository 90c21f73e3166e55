"""How fast are blocks of models computed as a whole, in each way to choose their kernels?

The five blocks are masked softmax attention, instance normalisation with an activation, attention
without a softmax, a layer of a graph convolutional network, and layer normalisation with a product,
GELU and the residual. A sixth function reads a sparse value twice, before and after what no kernel
computes. The reference is the block as
written, attention's of dense arrays; `torch.compile` of dense tensors takes part where torch is
installed. Each way is one of `optimize=`: its first call is shown too, in which it plans and
compiles, with the number of kernel calls that it chose and what it expects them to take.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import OURS, REFERENCE, Compute, Contest, Record, records
from taco_py.graph.selection.strategies import STRATEGIES
from tests.graph.blocks import BLOCKS, operands_of, reference, walk_weights

SIZES = (64, 512)


def run() -> Iterator[Record]:
    return compared(SIZES)


def compared(sizes: tuple[int, ...]) -> Iterator[Record]:
    """Each block at each size: the times of all contenders, then those of first calls."""
    for size in sizes:
        for name, block in (*BLOCKS.items(), ("walk_weights", walk_weights)):
            rows = 20 * size if name == "walk_weights" else size
            operands = operands_of(name, rows)
            title = f"{name}, {rows}"
            first: list[Record] = []
            contenders: dict[str, Compute] = {REFERENCE: _reference(name, operands)}
            for way in STRATEGIES:
                contenders[f"{OURS} {way}"] = _begun(block, operands, way, title, first)
            if (compiled := _with_torch(name, operands)) is not None:
                contenders["torch.compile"] = compiled
            yield from records("fused", iter((Contest(title, contenders),)))
            yield from first


def _reference(name: str, operands: tuple[Any, ...]) -> Compute:
    """The block as NumPy and SciPy compute it, sparse operands as they are where it can."""
    if name == "graph_convolution":
        return partial(BLOCKS[name], *operands)
    if name == "walk_weights":
        return partial(walk_weights, *operands)
    return partial(reference, name, operands)


def _begun(
    block: Callable[..., Any], operands: tuple[Any, ...], way: str, title: str, first: list[Record]
) -> Compute:
    """The block in one way, called once; how long that took is added to the first calls."""
    fused = tp.fuse(block, optimize=way)
    begun = time.perf_counter()
    fused(*operands)
    spent = time.perf_counter() - begun
    taken = fused.graph(*operands).call.decision.selected
    note = f"{taken.kernels} kernel{'' if taken.kernels == 1 else 's'}"
    if taken.expected is not None:
        note += f", {'measured' if taken.measured else 'expected'} {taken.expected:.3g} s"
    label = f"{OURS} {way}, first"
    first.append(Record("fused", title, label, "s", spent, spent, 1, note))
    return partial(fused, *operands)


def _with_torch(name: str, operands: tuple[Any, ...]) -> Compute | None:
    """The block in torch, compiled by inductor for CPUs; None where torch is not installed."""
    try:
        import torch
    except ImportError:
        return None
    from benchmarks.fused_in_torch import TORCH_BLOCKS

    if name not in TORCH_BLOCKS:
        return None
    torch.set_num_threads(2)
    dense = (each.toarray() if sp.issparse(each) else each for each in operands)
    given = [torch.from_numpy(np.ascontiguousarray(each)) for each in dense]
    compiled = torch.compile(TORCH_BLOCKS[name])
    return lambda: compiled(*given).numpy()


def main() -> None:
    """Print the table of the sizes that are asked for."""
    from benchmarks.run import printed

    parser = argparse.ArgumentParser(prog="python -m benchmarks.fused", description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES))
    for _ in printed(compared(tuple(parser.parse_args().sizes))):
        pass


if __name__ == "__main__":
    main()
