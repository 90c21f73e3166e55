"""The iteration graph as text: a line for each loop, with what it runs over."""

from __future__ import annotations

from taco_py.compiler.iteration.graph import IterationGraph, Loop, Range


def graph_text(graph: IterationGraph) -> str:
    """Print, for each loop, its index, its region, and its lattice where it merges levels."""
    return "\n".join(_line(loop) for loop in graph.loops)


def _line(loop: Loop) -> str:
    indent = "  " * len(loop.outer)
    part = PARTS[loop.range]
    if loop.range is Range.TILES:
        return f"{indent}{loop.index}: tiles"
    if loop.plain:
        return f"{indent}{loop.index}: {part or 'the whole dimension'}"
    merge = f", merge lattice {loop.lattice}" if loop.merges else ""
    return f"{indent}{loop.index}: {loop.region}{', ' if part else ''}{part}{merge}"


PARTS = {
    Range.FULL: "",
    Range.TILES: "tiles",
    Range.TILE: "one tile",
    Range.STRIDED: "one coordinate of each tile",
    Range.POSITIONS: "a range of positions",
}
"""How each part of an index reads."""
