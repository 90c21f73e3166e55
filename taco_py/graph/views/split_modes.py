"""Reshapes that split and merge modes are layouts: all values have the modes that they split into.

    y = reshape(x) to (n, c, h * w);  z = reshape((y - mean(y over 2))) to (n, c, h, w)
    →   x1 = view of x, (n, c, h * w);  z = view of (x1 - mean(x1 over 2)), (n, c, h, w)

    q = reshape(X @ W) to (n, 4, d // 4)
    →   q = X[n,k] W1[k,4,d // 4], W1 = view of W

So operands are read in views, which take no memory where their elements lie in a row, and results
are shown in views of what kernels store. Modes that are never apart stay one mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from codegen.records import dataclass
from taco_py.graph.extents import ONE, Extent, product
from taco_py.graph.graph_builder import GraphBuilder, is_layout
from taco_py.graph.nodes import Graph, Node, Shape
from taco_py.graph.views.modes_of_values import (
    Modes,
    ModesOfValues,
    is_cut,
    is_reshape,
    modes_of_values,
)

Part = tuple[int, int]
"""A mode of a value, and the place of a factor in it."""


def split_modes(graph: Graph) -> Graph:
    """Return a graph of primitives without reshapes that are layouts, but for views of leaves and
    results."""
    if not any(map(is_reshape, graph.nodes)):
        return graph
    values = modes_of_values(graph)
    return _Rewriting(graph, values).graph() if values.reshapes else graph


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """The modes of a value after the rewrite, each with the parts of the modes before.

    shape    their sizes
    parts    of each mode, the first one first
    differ   whether they are others than before
    """

    shape: Shape
    parts: tuple[tuple[Part, ...], ...]
    differ: bool

    def place(self, part: Part) -> int:
        """Return the mode that has a part."""
        return next(place for place, parts in enumerate(self.parts) if part in parts)

    def places(self, mode: int) -> list[int]:
        """Return the modes that have parts of a mode before."""
        return [
            place
            for place, parts in enumerate(self.parts)
            if any(axis == mode for axis, _ in parts)
        ]


class _Rewriting:
    """The graph that is made.

    names  of each value in it, with the modes after the rewrite
    axes   of each value
    views  of values with the modes before
    """

    def __init__(self, graph: Graph, values: ModesOfValues) -> None:
        self.before = graph
        self.builder = GraphBuilder(graph)
        self.values = values
        self.runs = _modes_kept_together(values)
        facts = graph.facts
        self.axes = {
            name: self._axes(modes, facts[name].shape) for name, modes in values.modes.items()
        }
        self.names: dict[str, str] = {}
        self.views: dict[str, str] = {}

    def graph(self) -> Graph:
        """Return the graph after the rewrite."""
        builder = self.builder
        for leaf in self.before.leaves:
            name, axes = builder.renamed[leaf.name], self.axes[leaf.name]
            self.views[leaf.name] = name
            self.names[leaf.name] = self._reshaped(name, axes.shape) if axes.differ else name
        for node in self.before.nodes:
            builder.place, builder.origin = node.place, node.origin
            self.names[node.name] = self._rewritten(node)
        for name in self.before.outputs:
            builder.renamed[name] = self._view(name)
        return builder.finish()

    def _reshaped(self, name: str, shape: Shape) -> str:
        dtype = self.builder.facts[name].dtype
        return self.builder.add("numpy", (name,), shape, dtype, call="reshape")

    def _view(self, name: str) -> str:
        """Name a value with the modes that it had."""
        if name not in self.views:
            new = self.names[name]
            shape = self.before.facts[name].shape
            self.views[name] = self._reshaped(new, shape) if self.axes[name].differ else new
        return self.views[name]

    # ------------------------------------------------------------ modes

    def _axes(self, modes: Modes, shape: Shape) -> Axes:
        """Return the modes of a value after the rewrite: factors of those before, or several."""
        terms = self.values.terms
        leaves: list[tuple[int | None, Part]] = []
        for axis, variable in enumerate(modes):
            factors = [None] if variable is None else [*terms.leaves(variable)]
            leaves += [(factor, (axis, place)) for place, factor in enumerate(factors)]
        parts: list[list[Part]] = []
        last: int | None = None
        for leaf, part in leaves:
            if leaf is not None and last is not None and self.runs.get(last) == leaf:
                parts[-1].append(part)
            else:
                parts.append([part])
            last = leaf
        by_part = {part: leaf for leaf, part in leaves}
        counts = [sum(axis == mode for _, (axis, _) in leaves) for mode in range(len(modes))]
        sizes: list[Extent] = []
        for group in parts:
            (axis, _), *more = group
            if not more and counts[axis] == 1:
                sizes.append(shape[axis])
                continue
            variables = [leaf for part in group if (leaf := by_part[part]) is not None]
            sizes.append(product([terms.size(leaf) for leaf in variables]) if variables else ONE)
        identity = [[(axis, 0)] for axis in range(len(modes))]
        return Axes(tuple(sizes), tuple(map(tuple, parts)), parts != identity)

    # ------------------------------------------------------------ primitives

    def _rewritten(self, node: Node) -> str:
        """Make a node with the modes after the rewrite."""
        builder, axes = self.builder, self.axes[node.name]
        if node.name in self.values.reshapes:
            return self._as_layout(node)
        numpy = node.operator == "numpy" and not is_cut(node)
        if (
            numpy
            or node.operator == "notation"
            or not (axes.differ or any(self.axes[name].differ for name in node.inputs))
        ):
            inputs = [self._view(name) for name in node.inputs]
            attributes = dict(node.attributes)
            name = builder.add(node.operator, inputs, node.shape, node.dtype, **attributes)
            return self._reshaped(name, axes.shape) if axes.differ else name
        inputs = [self.names[name] for name in node.inputs]
        attributes = {**dict(node.attributes), **self._attributes(node)}
        if is_layout(node):
            return builder.layout(node.operator, inputs[0], attributes["source"], axes.shape)
        return builder.add(node.operator, inputs, axes.shape, node.dtype, **attributes)

    def _as_layout(self, node: Node) -> str:
        """Put modes of size 1 where the result of a reshape has them."""
        (name,) = node.inputs
        operand, result = self.axes[name], self.axes[node.name]
        wide = iter([at for at, size in enumerate(operand.shape) if size.constant != 1])
        source = [None if size.constant == 1 else next(wide) for size in result.shape]
        operator = "expand" if len(source) >= len(operand.shape) else "squeeze"
        return self.builder.layout(operator, self.names[name], source, result.shape)

    def _attributes(self, node: Node) -> Mapping[str, object]:
        """Return the attributes that speak of modes."""
        operands, result = [self.axes[name] for name in node.inputs], self.axes[node.name]
        if is_layout(node):
            return {"source": self._source(node.get("source"), operands[0], result)}
        if node.operator == "reduce":
            axes = {place for mode in node.get("axes") for place in operands[0].places(mode)}
            return {"axes": tuple(sorted(axes))}
        if node.operator == "contract":
            numbers: dict[Part, int] = {}
            pairs = (*zip(node.get("labels"), operands, strict=True), (node.get("kept"), result))
            *labels, output = (self._labels(group, axes, numbers) for group, axes in pairs)
            return {"labels": tuple(labels), "kept": output}
        if node.get("call") == "slice":
            key = node.get("key")
            return {"key": tuple(key[axis] for (axis, _), *_ in operands[0].parts)}
        if node.get("call") == "concatenate":
            return {"axis": result.place((node.get("axis"), 0))}
        if node.operator in ("gather", "scatter"):
            at, of = (operands[0], result) if node.operator == "gather" else (result, operands[0])
            return {"modes": tuple(self._modes(node.get("modes"), at, of))}
        return {}

    def _source(
        self, source: Sequence[int | None], operand: Axes, result: Axes
    ) -> tuple[int | None, ...]:
        places: list[int | None] = []
        for (axis, factor), *_ in result.parts:
            old = source[axis]
            places.append(None if old is None else operand.place((old, factor)))
        return tuple(places)

    def _labels(
        self, labels: Sequence[int], axes: Axes, numbers: dict[Part, int]
    ) -> tuple[int, ...]:
        """Return a label for each mode: of the label before and the place of the factor in it."""
        firsts = [(labels[axis], factor) for (axis, factor), *_ in axes.parts]
        return tuple(numbers.setdefault(first, len(numbers)) for first in firsts)

    def _modes(
        self, modes: Sequence[int | tuple[int, tuple[int, ...]]], at: Axes, of: Axes
    ) -> Iterator[int | tuple[int, tuple[int, ...]]]:
        for (axis, factor), *_ in at.parts:
            entry = modes[axis]
            if isinstance(entry, int):
                yield of.place((entry, factor))
            else:
                place, lines = entry
                yield place, tuple(of.place((line, 0)) for line in lines)


def _modes_kept_together(values: ModesOfValues) -> Mapping[int, int]:
    """Return the factors that another one comes right after in all values, with that one.

    Only of factors of one mode of some value: elsewhere arrays need not have them in a row.
    """
    terms = values.terms
    after: dict[int, set[int | None]] = {}
    ahead: dict[int, set[int | None]] = {}
    inside: set[tuple[int, int]] = set()
    for modes in values.modes.values():
        factors = [[None] if v is None else [*terms.leaves(v)] for v in modes]
        row = [leaf for group in factors for leaf in group]
        inside.update(
            (one, other) for group in factors for one, other in pairwise(group)
            if one is not None and other is not None
        )  # fmt: skip
        for one, other in pairwise((None, *row, None)):
            if one is not None:
                after.setdefault(one, set()).add(other)
            if other is not None:
                ahead.setdefault(other, set()).add(one)
    return {
        one: other
        for one, other in inside
        if after[one] == {other} and ahead[other] == {one} and one != other
        and not terms.firm & {one, other}
    }  # fmt: skip
