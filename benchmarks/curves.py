"""Curves over logarithmic axes as SVG text, without a plotting library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, floor, log2, log10

WIDTH, HEIGHT, LEFT, TOP = 300, 220, 58, 30
COLOURS = ("#b03030", "#2060a0", "#308040", "#907020")


@dataclass(frozen=True, slots=True)
class Panel:
    """One diagram: a title, named curves over the same abscissae, powers of two, and a ring in the
    colour of each curve at the places of `marks`, one a curve."""

    title: str
    across: Sequence[float]
    curves: Mapping[str, Sequence[float]]
    marks: Sequence[tuple[float, float]] = ()


def svg(panels: Sequence[Panel], across: str, up: str, columns: int = 3) -> str:
    """The panels side by side, `columns` a row, with both axes labelled."""
    legend = tuple(_legend(tuple(panels[0].curves)))
    return _page([partial(_panel, panel) for panel in panels], across, up, columns, legend)


@dataclass(frozen=True, slots=True)
class Cloud:
    """One diagram of points, each with its abscissa and its ordinate."""

    title: str
    points: Sequence[tuple[float, float]]


def scatter(clouds: Sequence[Cloud], across: str, up: str, columns: int = 3) -> str:
    """Points over two logarithmic axes side by side, `columns` a row."""
    return _page([partial(_cloud, cloud) for cloud in clouds], across, up, columns)


def _page(
    diagrams: Sequence[Callable[[float, float], Iterator[str]]],
    across: str,
    up: str,
    columns: int,
    legend: Sequence[str] = (),
) -> str:
    """Diagrams side by side, each drawn at the corner that it is given."""
    rows = -(-len(diagrams) // columns)
    width = columns * (WIDTH + LEFT) + LEFT
    height = rows * (HEIGHT + 2 * TOP) + 2 * TOP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for number, draw in enumerate(diagrams):
        row, column = divmod(number, columns)
        lines += draw(LEFT + column * (WIDTH + LEFT), 2 * TOP + row * (HEIGHT + 2 * TOP))
    lines += legend
    lines.append(f'<text x="{width / 2}" y="{height - 8}" text-anchor="middle">{across}</text>')
    lines.append(f'<text x="12" y="{TOP}">{up}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _cloud(cloud: Cloud, x: float, y: float) -> Iterator[str]:
    across = _decades([point[0] for point in cloud.points])
    up = _decades([point[1] for point in cloud.points])
    yield f'<text x="{x + WIDTH / 2}" y="{y - 8}" text-anchor="middle">{cloud.title}</text>'
    yield f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#888"/>'
    for power in across:
        at = x + WIDTH * (power - across[0]) / (len(across) - 1)
        yield f'<path d="M{at:.1f} {y}v{HEIGHT}" stroke="#ddd"/>'
        yield f'<text x="{at:.1f}" y="{y + HEIGHT + 14}" text-anchor="middle">1e{power}</text>'
    for power in up:
        at = y + HEIGHT * (up[-1] - power) / (len(up) - 1)
        yield f'<path d="M{x} {at:.1f}h{WIDTH}" stroke="#ddd"/>'
        yield f'<text x="{x - 6}" y="{at + 4:.1f}" text-anchor="end">1e{power}</text>'
    for a, b in cloud.points:
        cx = x + WIDTH * (log10(a) - across[0]) / (len(across) - 1)
        cy = y + HEIGHT * (up[-1] - log10(b)) / (len(up) - 1)
        yield f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="2.5" fill="{COLOURS[0]}"/>'


def _decades(values: Sequence[float]) -> range:
    """The powers of ten around some values, at least one decade."""
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return range(low, max(high, low + 1) + 1)


def _legend(names: Sequence[str]) -> Iterator[str]:
    for number, name in enumerate(names):
        x = 160 + 170 * number
        yield f'<rect x="{x}" y="{TOP - 14}" width="18" height="4" fill="{COLOURS[number]}"/>'
        yield f'<text x="{x + 24}" y="{TOP - 8}">{name}</text>'


def _panel(panel: Panel, x: float, y: float) -> Iterator[str]:
    every = [v for curve in panel.curves.values() for v in curve]
    ticks = _ticks(every)
    low, high = log10(ticks[0]), log10(ticks[-1])
    first, last = log2(min(panel.across)), log2(max(panel.across))

    def place(a: float, b: float) -> tuple[float, float]:
        across = x + WIDTH * (log2(a) - first) / (last - first)
        return across, y + HEIGHT * (high - log10(b)) / (high - low)

    yield f'<text x="{x + WIDTH / 2}" y="{y - 8}" text-anchor="middle">{panel.title}</text>'
    yield f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#888"/>'
    for tick in ticks:
        _, at = place(panel.across[0], tick)
        yield f'<path d="M{x} {at:.1f}h{WIDTH}" stroke="#ddd"/>'
        yield f'<text x="{x - 6}" y="{at + 4:.1f}" text-anchor="end">{tick:.0e}</text>'
    for power in range(round(first), round(last) + 1, 2):
        at = x + WIDTH * (power - first) / (last - first)
        yield f'<text x="{at:.1f}" y="{y + HEIGHT + 14}" text-anchor="middle">{power}</text>'
    for number, curve in enumerate(panel.curves.values()):
        places = (place(a, b) for a, b in zip(panel.across, curve, strict=True))
        points = " ".join(f"{across:.1f},{up:.1f}" for across, up in places)
        stroke = f'stroke="{COLOURS[number]}" stroke-width="2"'
        yield f'<polyline points="{points}" fill="none" {stroke}/>'
    for number, mark in enumerate(panel.marks):
        across, up = place(*mark)
        stroke = f'stroke="{COLOURS[number]}" stroke-width="2"'
        yield f'<circle cx="{across:.1f}" cy="{up:.1f}" r="6" fill="none" {stroke}/>'


def _ticks(values: Sequence[float]) -> list[float]:
    """Powers of ten around some values; within two decades, 1, 2 and 5 times these."""
    powers = [10.0**power for power in _decades(values)]
    if len(powers) > 3:
        return powers
    finer = sorted(factor * power for power in powers for factor in (1, 2, 5))
    below = [tick for tick in finer if tick <= min(values)]
    above = [tick for tick in finer if tick >= max(values)]
    return [tick for tick in finer if below[-1] <= tick <= above[0]]
