"""Provenance graph and iteration graph of a loop nest, as text and as SVG.

    provenance  i ─ split 16 ─▶ i0, i1
    loops       i0: tiles, threads
                  i: one tile
                    j: A2
    assembly    C: entries are counted first, then written in place
    paths       A: i dense ▶ j compressed

The SVG has three parts side by side: what variables derive from, the loops inside one another, and
for each operand a line that meets the loops in which its levels' coordinates become known, solid
where a level stores them and dashed where it does not (Senanayake et al. 2020, figure 3).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import Assembly, Merge, Mode, Race, Unit, WorkspaceKind
from taco_py.compiler.concrete.tree import read_in, workspaces_of
from taco_py.compiler.iteration.graph import IterationGraph, Loop
from taco_py.compiler.iteration.printer import graph_text
from taco_py.language.diagnostics.errors import OutputError
from taco_py.language.formats import LevelKind
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.printer import to_text
from taco_py.language.problem import Problem
from taco_py.language.provenance.relations import Relation


@dataclass(frozen=True, slots=True)
class Drawing:
    """A drawing as text, which `print` shows, and as SVG, which notebooks show."""

    text: str
    svg: str

    def __str__(self) -> str:
        return self.text

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the SVG into a file.

        Raises OutputError for a name that says another format, or a file that cannot be made.
        """
        if Path(path).suffix.lower() not in (".svg", ""):
            raise OutputError(
                f"Expected the name of an SVG file, found {str(path)!r}",
                hint="as in loops.svg; other programs turn that into PNG or PDF",
            )
        try:
            Path(path).write_text(self.svg, encoding="utf-8")
        except OSError as error:
            raise OutputError(
                f"Expected to write the drawing to {str(path)!r}, found {error}",
                hint="choose a file in a folder that is there and can be written to",
            ) from error


def draw(graphs: Sequence[IterationGraph]) -> Drawing:
    """Return the graphs of kernels that run one after another."""
    return Drawing("\n\n".join(map(as_text, graphs)), as_svg(graphs))


# ---------------------------------------------------------------- words


def as_text(graph: IterationGraph) -> str:
    """Return the assignment, then each graph with a line for each edge or loop."""
    blocks = (
        ("assignment", [to_text(graph.problem.assignment)]),
        ("provenance", list(_provenance_lines(graph))),
        ("loops", list(_loop_lines(graph))),
        ("assembly", list(_assembly_lines(graph))),
        ("paths", list(_path_lines(graph))),
    )
    return "\n".join(
        f"{head if number == 0 else '':<12}{line}"
        for head, lines in blocks
        for number, line in enumerate(lines)
    )


def _provenance_lines(graph: IterationGraph) -> Iterator[str]:
    """Yield each relation, below the relations of its parents; indices that stay are named last."""
    provenance = graph.provenance
    depths = layers(graph)
    for relation in provenance.relations:
        indent = "  " * max(depths[parent] for parent in relation.parents)
        parents, children = ", ".join(relation.parents), ", ".join(relation.children)
        yield f"{indent}{parents} ─ {label(relation)} ─▶ {children}"
    unrelated = [i for i in all_indices(graph.problem.assignment) if provenance.below(i) is None]
    if unrelated:
        yield ", ".join(unrelated) + (" as written" if provenance.relations else ": all as written")


def label(relation: Relation) -> str:
    """Return a relation's name, and its parameters besides variables: `split 16`, `pos A`."""
    name, _, arguments = str(relation).removesuffix(")").partition("(")
    variables = {*relation.parents, *relation.children}
    words = re.split(r",(?![^(]*\))", arguments)  # not at those inside an access
    parameters = [word for word in words if word not in variables]
    return " ".join((name, *parameters))


def _loop_lines(graph: IterationGraph) -> Iterator[str]:
    for loop, line in zip(graph.loops, graph_text(graph).splitlines(), strict=True):
        yield ", ".join((line, *_name_words(graph, loop), *mode_words(loop.mode)))


def _name_words(graph: IterationGraph, loop: Loop) -> Iterator[str]:
    """Name the workspace that a loop fills, unless it is one number, and the loop's name there."""
    kinds = {w.name: w.kind for w in workspaces_of(graph.statement)}
    tensors = [name for name in loop.fills if kinds[name] is not WorkspaceKind.SCALAR]
    if tensors:
        name = graph.called(loop)
        is_renamed = name in graph.provenance.renamed(tensors[-1]).values()
        yield f"fills {tensors[-1]}" + (f" as {name}" if is_renamed else "")


def _assembly_lines(graph: IterationGraph) -> Iterator[str]:
    """Yield how a sparse result is assembled, where that has been said or chosen."""
    if graph.assembly is not None:
        yield f"{graph.problem.assignment.target.tensor}: {ASSEMBLIES[graph.assembly]}"


ASSEMBLIES = {
    Assembly.APPEND: "each entry is appended to those before it",
    Assembly.INSERT: "entries are counted first, then written in place",
    Assembly.COPY: "coordinates are copied from an operand before the loops",
}
"""How each way to assemble reads."""


def mode_words(mode: Mode) -> Iterator[str]:
    """Yield how a loop is carried out, unless it is one iteration after another, step by step."""
    if mode.parallel is not None:
        races = "" if mode.parallel is Race.NONE else f" ({mode.parallel.value})"
        word = "threads" if mode.unit is Unit.CORE else mode.unit.value
        yield f"{word}{races}"
    if mode.vector:
        yield "vector"
    if mode.unroll:
        yield f"unrolled {mode.unroll}"
    if mode.merge is Merge.GALLOP:
        yield "galloping"


def _path_lines(graph: IterationGraph) -> Iterator[str]:
    for access in paths(graph):
        levels = (f"{index} {kind.value}" for index, kind in levels_of(graph.problem, access))
        yield f"{access.tensor}: " + " ▶ ".join(levels)


def paths(graph: IterationGraph) -> tuple[Access, ...]:
    """Return the operands' accesses that have indices, each once."""
    return tuple(dict.fromkeys(a for a in accesses(graph.problem.assignment.value) if a.indices))


def levels_of(problem: Problem, access: Access) -> tuple[tuple[str, LevelKind], ...]:
    """Return the index and the kind of each level of an operand, the root first."""
    form = problem.type_of(access.tensor).format
    return tuple(
        (access.indices[mode], level.kind)
        for mode, level in zip(form.mode_order, form.levels, strict=True)
    )


def layers(graph: IterationGraph) -> dict[str, int]:
    """Count how many relations lie above each variable of the provenance graph."""
    depths = dict.fromkeys(all_indices(graph.problem.assignment), 0)
    for relation in graph.provenance.relations:
        below = 1 + max(depths[parent] for parent in relation.parents)
        depths.update(dict.fromkeys(relation.children, below))
    return depths


# ---------------------------------------------------------------- pictures

ROW, COLUMN, MARGIN = 56, 84, 24
LETTER = 7.4
"""Distances in pixels: between rows, between columns, around; and a letter's width."""
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a picture: shapes in coordinates of its own, and its size."""

    shapes: tuple[str, ...]
    width: float
    height: float


def as_svg(graphs: Sequence[IterationGraph]) -> str:
    """Return the whole picture, one kernel above the other. Every text in it is escaped."""
    kernels = [_kernel_part(graph) for graph in graphs]
    width = max((part.width for part in kernels), default=0) + 2 * MARGIN
    height = sum(part.height for part in kernels) + 2 * MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" font-family="monospace" font-size="12">',
        f'<rect width="{width:g}" height="{height:g}" fill="white"/>',
    ]
    top: float = MARGIN
    for part in kernels:
        lines += _placed(part, MARGIN, top)
        top += part.height
    return "\n".join((*lines, "</svg>")) + "\n"


def _placed(part: Part, x: float, y: float) -> tuple[str, ...]:
    return (f'<g transform="translate({x:g},{y:g})">', *part.shapes, "</g>")


def _kernel_part(graph: IterationGraph) -> Part:
    """Return the assignment, and below it the two graphs side by side."""
    title = "; ".join((to_text(graph.problem.assignment), *_assembly_lines(graph)))
    left, right = _provenance_part(graph), _loops_part(graph)
    shapes = (
        _words(0, 12, title, anchor="start", weight="bold"),
        *_placed(left, 0, ROW / 2),
        *_placed(right, left.width + MARGIN, ROW / 2),
    )
    width = max(left.width + MARGIN + right.width, len(title) * LETTER)
    return Part(shapes, width, max(left.height, right.height) + ROW)


def _provenance_part(graph: IterationGraph) -> Part:
    places = _places(graph)
    shapes: list[str] = []
    for relation in graph.provenance.relations:
        shapes += _relation_shapes(relation, places)
    for name, (x, y) in places.items():
        leaf = graph.provenance.below(name) is None
        shapes.append(_ring(x, y, "#eef" if leaf else "white"))
        shapes.append(_words(x, y + 4, name))
    width = max((x for x, _ in places.values()), default=0) + COLUMN / 2
    height = max((y for _, y in places.values()), default=0) + ROW / 2
    return Part(tuple(shapes), width, height)


def _places(graph: IterationGraph) -> dict[str, tuple[float, float]]:
    """Return the place of each variable: a row a layer, side by side in order of appearance."""
    places: dict[str, tuple[float, float]] = {}
    counts: dict[int, int] = {}
    for name, depth in layers(graph).items():
        place = counts.get(depth, 0)
        counts[depth] = place + 1
        places[name] = (COLUMN / 2 + place * COLUMN, ROW / 2 + depth * ROW * 1.4)
    return places


def _relation_shapes(relation: Relation, places: dict[str, tuple[float, float]]) -> Iterator[str]:
    """Yield lines from the parents to the relation's name, and arrows from there to the
    children."""
    ends = [places[name] for name in (*relation.parents, *relation.children)]
    x = sum(place[0] for place in ends) / len(ends)
    y = min(places[name][1] for name in relation.children) - ROW * 0.7
    for parent in relation.parents:
        px, py = places[parent]
        yield _line(px, py + 14, x, y - 10, "#555")
    for child in relation.children:
        cx, cy = places[child]
        yield _line(x, y + 6, cx, cy - 14, "#555")
    yield _words(x, y + 1, label(relation), colour="#555")


def _loops_part(graph: IterationGraph) -> Part:
    """Return the loops as boxes inside one another, and beside them the operands' paths."""
    shapes: list[str] = []
    depth = max((len(loop.outer) for loop in graph.loops), default=0)
    lines = list(_loop_lines(graph))
    width = max((len(line.strip()) for line in lines), default=0) * LETTER + 16
    for row, (loop, line) in enumerate(zip(graph.loops, lines, strict=True)):
        x, y = len(loop.outer) * 16.0, row * ROW + ROW / 4
        fill = "#fff3d6" if loop.mode.parallel is not None else "#f4f4f4"
        shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{ROW / 2:g}" rx="4" '
            f'fill="{fill}" stroke="#333"/>'
        )
        shapes.append(_words(x + 8, y + ROW / 4 + 4, line.strip(), anchor="start"))
    first = depth * 16 + width + COLUMN / 2
    accesses_drawn = paths(graph)
    for number, access in enumerate(accesses_drawn):
        colour = COLOURS[number % len(COLOURS)]
        shapes += _path_shapes(graph, access, first + number * COLUMN / 2, colour)
    full_width = first + len(accesses_drawn) * COLUMN / 2
    return Part(tuple(shapes), full_width, (len(graph.loops) + 0.5) * ROW)


def _path_shapes(graph: IterationGraph, access: Access, x: float, colour: str) -> Iterator[str]:
    """Yield an operand's name above a line through the rows of its levels' loops."""
    yield _words(x, 4, access.tensor, colour=colour, weight="bold")
    last: float = 8
    for index, kind in levels_of(graph.problem, access):
        row = _row_of(graph.loops, access, index)
        if row is None:
            continue
        y = row * ROW + ROW / 2
        yield _line(x, last, x, y, colour, dashed=kind.full)
        yield f'<circle cx="{x:g}" cy="{y:g}" r="5" fill="{colour}"/>'
        yield _words(x + 9, y + 4, index, anchor="start", colour=colour)
        last = y


def _row_of(loops: Sequence[Loop], access: Access, index: str) -> int | None:
    """Return the first loop over an index of the notation in which `access` is read."""
    rows = (row for row, loop in enumerate(loops) if loop.index == index)
    return next((row for row in rows if access in read_in(loops[row].body)), None)


def _words(
    x: float,
    y: float,
    text: str,
    anchor: str = "middle",
    colour: str = "black",
    weight: str = "normal",
) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="4 3"' if dashed else ""
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" '
        f'stroke-width="1.5"{dash}/>'
    )


def _ring(x: float, y: float, fill: str) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="14" fill="{fill}" stroke="#333"/>'
