"""Pictures of graphs: every value has a box, every operand a line, every step a colour."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

import taco_py as tp

SVG = "{http://www.w3.org/2000/svg}"


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return np.sort(e / e.sum(-1, keepdims=True))


def test_every_value_has_a_box_and_every_operand_a_line(tmp_path: Path) -> None:
    graph = tp.fuse(_softmax).graph(np.ones((3, 4)))
    graph.save(tmp_path / "softmax.svg")
    root = ElementTree.parse(tmp_path / "softmax.svg").getroot()
    panels = root.findall(f"{SVG}g")
    for panel, drawn in zip(panels, (graph.operators, graph.primitives), strict=True):
        assert len(panel.findall(f"{SVG}rect")) == len(drawn.facts)
        edges = sum(len({*node.inputs}) for node in drawn.nodes)
        assert len(panel.findall(f"{SVG}path")) == edges
        texts = {each.text for each in panel.findall(f"{SVG}text")}
        assert {f"{node.name}" for node in drawn.nodes} <= {str(t).split(" ")[0] for t in texts}
    assert ElementTree.fromstring(graph._repr_svg_()).tag == f"{SVG}svg"


def test_steps_have_colours_and_boxes_do_not_meet() -> None:
    graph = tp.fuse(_softmax).graph(np.ones((3, 4)))
    root = ElementTree.fromstring(graph._repr_svg_())
    _, primitives = root.findall(f"{SVG}g")
    told = [rect.findtext(f"{SVG}title") or "" for rect in primitives.findall(f"{SVG}rect")]
    assert any("step 1: kernels" in each for each in told)
    assert any("NumPy" in each for each in told)
    colours = {rect.get("fill") for rect in primitives.findall(f"{SVG}rect")}
    assert len(colours) >= 3
    rows: dict[str, list[tuple[float, float]]] = {}
    for rect in primitives.findall(f"{SVG}rect"):
        x, width = float(rect.get("x", 0)), float(rect.get("width", 0))
        rows.setdefault(rect.get("y", ""), []).append((x, x + width))
    for row in rows.values():
        ordered = sorted(row)
        assert all(end <= start for (_, end), (start, _) in pairwise(ordered))
