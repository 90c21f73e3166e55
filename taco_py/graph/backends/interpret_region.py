"""Regions computed by NumPy, a primitive at a time: what any backend can be compared with.

A program of this kind is all that a portable runtime needs: the region's graph, which texts keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.graph.extents import Extent, compiled
from taco_py.graph.node_table import REDUCTIONS
from taco_py.graph.nodes import Graph, Node
from taco_py.graph.number_functions import element_function

Numbers = Sequence[Any]
Run = Callable[[Sequence[Any], Numbers], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Interpreted:
    """A region made ready: for each primitive what computes it.

    steps  the name, the names of what it reads, what computes it, and the numbers that it asks for
    """

    graph: Graph
    steps: tuple[tuple[Node, Run, Callable[..., Numbers] | None], ...]

    def run(self, constants: Mapping[str, Any], arrays: Sequence[Any]) -> list[Any]:
        """Compute the outputs of the inputs' values."""
        values = dict(zip((leaf.name for leaf in self.graph.inputs), arrays, strict=True))
        operands = list(values.values())
        values.update(constants)
        with np.errstate(all="ignore"):
            for node, run, numbers in self.steps:
                result = run(
                    [values[name] for name in node.inputs], numbers(*operands) if numbers else ()
                )
                values[node.name] = np.asarray(result).astype(node.dtype, copy=False)
        return [values[name] for name in self.graph.outputs]


def interpreted(graph: Graph) -> Interpreted:
    """Make a region ready. Raises KeyError for a primitive that is not in `RUNS`."""
    names = tuple(leaf.name for leaf in graph.inputs)
    steps = []
    for node in graph.nodes:
        extents = extents_of(node)
        numbers = compiled(extents, names) if extents else None
        steps.append((node, RUNS[node.operator](node), numbers))
    return Interpreted(graph, tuple(steps))


def extents_of(node: Node) -> list[Extent]:
    """Return the numbers that a primitive asks for besides its operands."""
    if node.operator == "broadcast" or node.get("call") in ("reshape", "broadcast_to"):
        return [*node.shape]
    return [extent for entry in node.get("key", ()) for extent in entry[1:] if extent is not None]


def _map(node: Node) -> Run:
    function = function_of(node.get("function"))
    assert function is not None
    return lambda arrays, numbers: function(*arrays)


def function_of(name: str) -> Callable[..., Any] | None:
    """Return one of NumPy's or SciPy's functions of elements, None where neither has it."""
    return element_function(name)


def _reduce(node: Node) -> Run:
    name, axes = node.get("function"), node.get("axes")
    if name not in REDUCTIONS:
        raise ValueError(f"Expected a reduction, found {name!r:.80}")
    function = getattr(np, name)
    options = {"dtype": node.dtype} if node.get("function") in ("sum", "prod") else {}
    return lambda arrays, numbers: function(arrays[0], axis=axes, **options)


def _contract(node: Node) -> Run:
    labels, output_labels = [list(axes) for axes in node.get("labels")], list(node.get("kept"))

    def run(arrays: Sequence[Any], numbers: Numbers) -> Any:
        pairs = (part for pair in zip(arrays, labels, strict=True) for part in pair)
        return np.einsum(*pairs, output_labels, optimize=True)

    return run


def apply_layout(source: Sequence[int | None], array: Any) -> Any:
    """Move modes to where a layout has them, with modes of size 1 where it has none."""
    axes = [axis for axis in source if axis is not None]
    off = tuple(axis for axis in range(np.ndim(array)) if axis not in axes)
    view = np.transpose(array, (*axes, *off))
    view = np.squeeze(view, tuple(range(len(axes), np.ndim(array))))
    new = tuple(axis for axis, mode in enumerate(source) if mode is None)
    return np.expand_dims(view, new) if new else view


def _layout(node: Node) -> Run:
    source = node.get("source")
    return lambda arrays, numbers: apply_layout(source, arrays[0])


def _broadcast(node: Node) -> Run:
    source = node.get("source")
    return lambda arrays, numbers: np.broadcast_to(apply_layout(source, arrays[0]), tuple(numbers))


def _numpy(node: Node) -> Run:
    from taco_py.graph.run.left_to_numpy import compute

    call = node.get("call")
    return lambda arrays, numbers: compute(node, call, arrays, numbers)


RUNS: Mapping[str, Callable[[Node], Run]] = MappingProxyType({
    "map": _map, "reduce": _reduce, "contract": _contract, "broadcast": _broadcast,
    **dict.fromkeys(("transpose", "expand", "squeeze"), _layout), "numpy": _numpy,
})  # fmt: skip
"""Primitives by their operators."""
