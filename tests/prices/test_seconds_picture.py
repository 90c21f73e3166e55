"""The picture of expected against measured seconds: legible, small, with its figures."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from benchmarks.seconds_picture import PricedPlans, draw_seconds


def drawn_panel(title: str, factor: float, count: int = 12_000) -> PricedPlans:
    rng = np.random.default_rng(0)
    measured = 10.0 ** rng.uniform(-6, -1, count)
    return PricedPlans(title, measured, measured * factor ** rng.choice((-1, 1), count))


def test_figures_are_factors() -> None:
    median, worst = drawn_panel("a", 1.5).figures
    assert median == "off by ×1.5 in the median, 100% by ×2 at most"
    assert worst == "one in ten by more than ×1.5"
    assert drawn_panel("a", 3.0).figures[0] == "off by ×3.0 in the median, 0% by ×2 at most"


def test_a_picture_of_many_plans_is_small_and_in_its_frame() -> None:
    text = draw_seconds([drawn_panel("a < b", 1.5), drawn_panel("c", 3.0)], "12 000 plans")
    assert len(text.encode()) < 150_000
    root = ElementTree.fromstring(text)
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    words = [element for element in root.iter() if element.tag.endswith("text")]
    assert {"a < b", "c", "12 000 plans", "1 ms", "measured time of a plan"} <= {
        str(element.text) for element in words
    }
    for element in words:
        place = float(element.get("x", "0")), float(element.get("y", "0"))
        assert 0 <= place[0] <= width and 0 <= place[1] <= height
