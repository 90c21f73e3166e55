"""Expected against measured seconds as a picture: a panel for each price, as SVG text.

expected
|        . ·/ .      a point is a plan, or several in one place: then it is darker;
|     .·:/:·         on the diagonal seconds are as expected, in the band they are off by a
|   ·:/:·.           factor of two at most
+---------- measured
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Any

import numpy as np

from taco_py.report.limits.roofline_picture import COLOURS, FONT, GREY, INK, PALE, Axis

SIDE, LEFT, TOP, BOTTOM, BETWEEN, RIGHT = 330.0, 78.0, 84.0, 74.0, 44.0, 30.0
"""Pixels of the side of a panel, around the panels, and between them."""
DOT = 2
"""Pixels of a dot; plans of one dot's place are one dot."""
SHADES = ((1, 0.3), (2, 0.55), (5, 0.9))
"""Plans of a dot from which on it is as opaque."""
NAMES = {-6: "1 µs", -5: "10 µs", -4: "100 µs", -3: "1 ms", -2: "10 ms", -1: "100 ms", 0: "1 s"}


@dataclass(frozen=True, slots=True)
class PricedPlans:
    """What plans were expected to take by a price, and what they took."""

    title: str
    measured: np.ndarray[Any, Any]
    expected: np.ndarray[Any, Any]

    @property
    def factors(self) -> np.ndarray[Any, Any]:
        """By which factor the seconds of each plan are off, at least 1."""
        off: np.ndarray[Any, Any] = np.exp2(np.abs(np.log2(self.expected / self.measured)))
        return off

    @property
    def figures(self) -> tuple[str, str]:
        """How far seconds are off, and the share of those that are off by two at most."""
        middle, worst = np.quantile(self.factors, (0.5, 0.9))
        share = np.mean(self.factors <= 2)
        median = f"off by ×{middle:.1f} in the median, {share:.0%} by ×2 at most"
        return median, f"one in ten by more than ×{worst:.1f}"


def draw_seconds(panels: Sequence[PricedPlans], caption: str) -> str:
    """The panels side by side, over the same axes."""
    width = LEFT + len(panels) * (SIDE + BETWEEN) - BETWEEN + RIGHT
    height = TOP + SIDE + BOTTOM
    every = np.concatenate([part for panel in panels for part in (panel.measured, panel.expected)])
    low, high = 10.0 ** floor(log10(every.min())), 10.0 ** ceil(log10(every.max()))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" font-family="{FONT}" font-size="12" '
        f'fill="{INK}">',
        f'<rect width="{width:g}" height="{height:g}" fill="white"/>',
    ]
    for number, panel in enumerate(panels):
        x = LEFT + number * (SIDE + BETWEEN)
        across, up = Axis(low, high, x, SIDE), Axis(low, high, TOP + SIDE, -SIDE)
        lines += _frame(panel, across, up, with_names=number == 0)
        lines += _dots(panel, across, up, COLOURS[(0, 3)[number % 2]])
    middle = TOP + SIDE / 2
    lines.append(
        f'<text transform="translate(16 {middle:g}) rotate(-90)" text-anchor="middle">'
        "expected time of a plan</text>"
    )
    lines.append(_text(width / 2, TOP + SIDE + 40, "measured time of a plan", INK, "middle"))
    lines.append(_text(width / 2, TOP + SIDE + 60, caption, GREY, "middle"))
    return "\n".join((*lines, "</svg>", ""))


def _frame(panel: PricedPlans, across: Axis, up: Axis, with_names: bool) -> Iterator[str]:
    """The title and the figures of a panel, its axes, the diagonal and the band."""
    left, right, top, bottom = across.start, across.start + SIDE, TOP, TOP + SIDE
    yield (
        f'<text x="{left:g}" y="{top - 48:g}" font-size="14" font-weight="600">'
        f"{escape(panel.title)}</text>"
    )
    for line, words in enumerate(panel.figures):
        yield _text(left, top - 28 + 17 * line, words, GREY)
    two = SIDE * log10(2) / across.decades
    corners = (
        (left, bottom), (left, bottom - two), (right - two, top), (right, top),
        (right, top + two), (left + two, bottom),
    )  # fmt: skip
    yield f'<path d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in corners)}Z" fill="{PALE}"/>'
    for tick in across.ticks:
        x, y, name = across.at(tick), up.at(tick), NAMES.get(round(log10(tick)), f"{tick:g} s")
        yield f'<path d="M{x:.1f} {top:g}V{bottom:g}M{left:g} {y:.1f}H{right:g}" stroke="{PALE}"/>'
        yield _text(x, bottom + 17, name, GREY, "middle")
        if with_names:
            yield _text(left - 7, y + 4, name, GREY, "end")
    yield (
        f'<path d="M{left:g} {bottom:g}L{right:g} {top:g}" stroke="{GREY}" stroke-dasharray="4 3"/>'
    )
    yield (
        f'<rect x="{left:g}" y="{top:g}" width="{SIDE:g}" height="{SIDE:g}" fill="none" '
        f'stroke="{GREY}"/>'
    )


def _dots(panel: PricedPlans, across: Axis, up: Axis, colour: str) -> Iterator[str]:
    """A path of dots for each shade."""
    places = Counter(
        (round(across.at(x) / DOT) * DOT, round(up.at(y) / DOT) * DOT)
        for x, y in zip(panel.measured.tolist(), panel.expected.tolist(), strict=True)
    )
    bounds = [least for least, _ in SHADES[1:]] + [len(panel.measured) + 1]
    for (least, opacity), most in zip(SHADES, bounds, strict=True):
        dots = "".join(
            f"M{x} {y}h0" for (x, y), count in sorted(places.items()) if least <= count < most
        )
        if dots:
            yield (
                f'<path d="{dots}" stroke="{colour}" stroke-width="{DOT + 0.5:g}" '
                f'stroke-linecap="round" stroke-opacity="{opacity:g}" fill="none"/>'
            )


def _text(x: float, y: float, words: str, colour: str, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}"'
    return f"<text {place}>{escape(words)}</text>"
