"""Where two orders of rewriting leave other bytes: what to look at when a rewrite changes.

266, near caches of 0 bytes: main 44696 near 55352, reversed: main 33744 near 44400

No rewrite raises bytes, so any order is right; which one is better is no matter of principle. The
list has the random graphs on which the table's order and its reverse disagree.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from taco_py.compiler.dataflow.moved_bytes import Caches, Traffic
from taco_py.compiler.dataflow.optimize import optimize
from taco_py.compiler.dataflow.rewrites.rewrite_table import REWRITES
from tests.dataflow.test_rewrites import drawn

GOLDEN = Path(__file__).parent / "golden" / "policies.txt"
SEEDS, SIZE = 300, 37.0
NEAR = (0, 100_000)
"""Bytes of near caches: none, and ones that hold a slab."""
LAST = 10_000


def disagreements() -> Iterator[str]:
    """Yield a line for each graph and cache on which the two orders leave other bytes."""
    for seed in range(SEEDS):
        graph_and_form = drawn(seed)
        if graph_and_form is None:
            continue
        graph, form = graph_and_form
        sizes = dict.fromkeys(form.order, SIZE)
        for near in NEAR:
            caches = Caches(near, LAST)
            first = optimize(graph, sizes, caches).after
            second = optimize(graph, sizes, caches, tuple(reversed(REWRITES))).after
            if first != second:
                yield (
                    f"{seed}, near caches of {near} bytes: {_bytes(first)}, "
                    f"reversed: {_bytes(second)}"
                )


def _bytes(amounts: Traffic) -> str:
    return f"main {amounts.dram:.0f} near {amounts.near:.0f}"


def test_the_orders_of_rewrites_disagree_where_they_did(update_golden: bool) -> None:
    lines = "".join(f"{line}\n" for line in disagreements())
    if update_golden:
        GOLDEN.write_text(lines)
    assert lines == GOLDEN.read_text()
