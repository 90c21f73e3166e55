"""A picture of a graph: the user's operators, and beside them the primitives by what computes them.

Q   K             Q   K            a row a layer; a colour a step: kernels that are called
einsum            contract         together, or a call of NumPy
exp               map exp
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from codegen.records import dataclass
from taco_py.graph.backends.offloaded_run import OffloadedRun
from taco_py.graph.graph_call import GraphCall
from taco_py.graph.nodes import Graph, Node
from taco_py.graph.run.graph_program import GraphProgram, KernelRun, Step

if TYPE_CHECKING:
    from taco_py.report.show.graphs import Drawing

ROW, GAP, HEIGHT, MARGIN, LETTER = 54, 18, 26, 24, 7.4
"""Pixels from row to row, between boxes, of a box, around the picture, and of a letter's width."""
COLOURS = ("#cfe3f5", "#d9f0d3", "#fde3c5", "#ead8f0", "#f9d5d3", "#e3dcd2", "#d5eef0")
"""Of steps, in turn."""
PLAIN, LEAF = "#ffffff", "#f0f0f0"


@dataclass(frozen=True, slots=True)
class Box:
    """A value in the picture: its text, its middle, its width, its colour, and what it tells when
    the mouse is over it."""

    text: str
    x: float
    y: float
    width: float
    colour: str
    title: str


def draw_graph(call: GraphCall, name: str, operands: Sequence[Any] = ()) -> Drawing:
    """Draw the operators of a trace, and its primitives in the colours of the steps.

    operands  at whose sizes backends compute regions
    """
    from taco_py.report.show.graphs import Drawing

    operators = _panel(call.trace.graph, {})
    program = call.program_of(operands)
    primitives = _panel(call.primitives, _colours(program))
    heads = (f"{name}: operators", f"primitives, in {len(program.steps)} steps")
    shapes: list[str] = []
    left: float = MARGIN
    for head, panel in zip(heads, (operators, primitives), strict=True):
        width = max([len(head) * LETTER, *(box.x + box.width / 2 for box in panel.values())])
        shapes.append(f'<g transform="translate({left:g},{MARGIN})">')
        shapes.append(_words(0, 12, head, anchor="start", weight="bold"))
        graph = call.trace.graph if panel is operators else call.primitives
        shapes += _edges(graph, panel)
        shapes += (shape for box in panel.values() for shape in _box(box))
        shapes.append("</g>")
        left += width + 3 * MARGIN
    height = 2 * MARGIN + max(
        (box.y + HEIGHT for panel in (operators, primitives) for box in panel.values()), default=0
    )
    return Drawing(str(call.trace.graph), _document(shapes, left, height))


def _colours(program: GraphProgram) -> dict[str, tuple[str, str]]:
    """Return the colour of each primitive, and which steps compute it."""
    colours: dict[str, tuple[str, str]] = {}
    for number, step in enumerate(program.steps):
        label = f"step {number + 1}: {_computes(step)}"
        for node in step.nodes:
            colour, before = colours.get(node.name, (COLOURS[number % len(COLOURS)], ""))
            colours[node.name] = colour, f"{before}, {label}" if before else label
    return colours


def _computes(step: Step) -> str:
    if isinstance(step, OffloadedRun):
        return step.task.backend.name
    return "kernels" if isinstance(step, KernelRun) else "NumPy"


def _panel(graph: Graph, colours: Mapping[str, tuple[str, str]]) -> dict[str, Box]:
    """Place each value: a row for each layer, near its inputs."""
    rows: dict[int, list[str]] = {}
    for name, layer in _layers(graph).items():
        rows.setdefault(layer, []).append(name)
    nodes = graph.by_name
    widths = {name: len(_text(nodes.get(name), name)) * LETTER + 14 for name in graph.facts}
    widest = max((_width(row, widths) for row in rows.values()), default=0.0)
    boxes: dict[str, Box] = {}
    for layer in sorted(rows):
        row = sorted(rows[layer], key=lambda name: _above(nodes.get(name), boxes))
        left = (widest - _width(row, widths)) / 2
        for name in row:
            node = nodes.get(name)
            colour, steps = colours.get(name, (PLAIN if node is not None else LEAF, ""))
            title = "  ".join(filter(None, (str(graph.facts[name]), _place(node), steps)))
            middle = left + widths[name] / 2
            y = ROW * (layer + 0.8)
            boxes[name] = Box(_text(node, name), middle, y, widths[name], colour, title)
            left += widths[name] + GAP
    return boxes


def _layers(graph: Graph) -> dict[str, int]:
    """Return the longest way from a leaf to each value; a leaf is right above its first reader."""
    layers: dict[str, int] = {}
    for node in graph.nodes:
        layers[node.name] = 1 + max((layers.get(operand, 0) for operand in node.inputs), default=0)
    for leaf in graph.leaves:
        readers = [layers[node.name] for node in graph.nodes if leaf.name in node.inputs]
        layers[leaf.name] = min(readers, default=1) - 1
    return layers


def _width(row: Sequence[str], widths: Mapping[str, float]) -> float:
    return sum(widths[name] for name in row) + GAP * (len(row) - 1)


def _above(node: Node | None, placed: Mapping[str, Box]) -> float:
    """Return the mean place of a value's inputs."""
    read = [placed[name].x for name in (node.inputs if node else ()) if name in placed]
    return sum(read) / len(read) if read else 0.0


def _text(node: Node | None, name: str) -> str:
    if node is None:
        return name
    function = node.get("function") or node.get("call") or ""
    return f"{name} = {' '.join(filter(None, (node.operator, str(function))))}"


def _place(node: Node | None) -> str:
    return node.place if node is not None else ""


def _edges(graph: Graph, boxes: Mapping[str, Box]) -> Iterator[str]:
    """Yield lines from row to row, and curves around the rows between."""
    for node in graph.nodes:
        for name in dict.fromkeys(node.inputs):
            yield f'<path d="{_way(boxes[name], boxes[node.name])}" fill="none" stroke="#777"/>'


def _way(start: Box, end: Box) -> str:
    if end.y - start.y < 1.5 * ROW:
        return f"M {start.x:g} {start.y + HEIGHT / 2:g} L {end.x:g} {end.y - HEIGHT / 2:g}"
    left, right = start.x + start.width / 2, end.x + end.width / 2
    bend = max(left, right) + GAP + (end.y - start.y) / 8
    middle = (start.y + end.y) / 2
    curve = f"{bend:g} {start.y:g} {bend:g} {middle:g}"
    return f"M {left:g} {start.y:g} Q {curve} Q {bend:g} {end.y:g} {right:g} {end.y:g}"


def _box(box: Box) -> Iterator[str]:
    yield (
        f'<rect x="{box.x - box.width / 2:g}" y="{box.y - HEIGHT / 2:g}" width="{box.width:g}" '
        f'height="{HEIGHT}" rx="5" fill="{box.colour}" stroke="#333">'
        f"<title>{escape(box.title)}</title></rect>"
    )
    yield _words(box.x, box.y + 4, box.text)


def _words(x: float, y: float, text: str, anchor: str = "middle", weight: str = "normal") -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-weight="{weight}" '
        f'pointer-events="none">{escape(text)}</text>'
    )


def _document(shapes: Sequence[str], width: float, height: float) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" font-family="monospace" font-size="12">'
    )
    ground = f'<rect width="{width:g}" height="{height:g}" fill="white"/>'
    return "\n".join((head, ground, *shapes, "</svg>")) + "\n"
