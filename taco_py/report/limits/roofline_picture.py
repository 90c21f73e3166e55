"""A picture of a roofline: what caches and registers can do at most, and where kernels stand below.

    operations a second          the roofs rise with operations a byte, each cache's and memory's,
      |      ____________        up to the peak of the registers; a kernel is a column of marks:
      |    /  /  /    o          at most (ring), expected (diamond), measured (dot)
      |  /  /  /      •
      +------------------ operations a byte

Kernels that only move numbers stand on an axis of bytes a second alone.
(Williams, Waterman and Patterson 2009.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import atan2, ceil, degrees, floor, log10
from typing import TYPE_CHECKING

from codegen.records import dataclass
from taco_py.report.limits.roofline import Roofline

if TYPE_CHECKING:
    from taco_py.report.show.graphs import Drawing

WIDTH, HEIGHT = 780.0, 500.0
LEFT, RIGHT, TOP, BOTTOM = 74.0, 30.0, 78.0, 92.0
"""Pixels of the picture, and around the diagram in it."""
INK, GREY, PALE = "#1d2733", "#6b7785", "#e6eaef"
COLOURS = ("#d1495b", "#e08e45", "#2e8b7a", "#3d6fb6", "#6a4c93")
"""Of roofs, the nearest cache first."""
KERNEL = "#111827"
FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
STEPS = (1, 2, 5)


@dataclass(frozen=True, slots=True)
class Mark:
    """A kind of mark: its name, its colour, and its rate a second."""

    name: str
    shape: str
    rate: float


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis from one number to another, over some pixels."""

    low: float
    high: float
    start: float
    length: float

    def at(self, value: float) -> float:
        """Return the pixel of a number."""
        return self.start + self.length * (log10(value) - log10(self.low)) / self.decades

    @property
    def decades(self) -> float:
        """Count how many powers of ten it spans."""
        return log10(self.high) - log10(self.low)

    @property
    def ticks(self) -> list[float]:
        """Return powers of ten; of a short axis their doubles and halves too."""
        steps = STEPS if self.decades < 2.2 else (1,)
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        every = [step * 10.0**power for power in powers for step in steps]
        return [tick for tick in every if self.low * 0.999 <= tick <= self.high * 1.001]


def draw_roofline(roofline: Roofline) -> Drawing:
    """Draw the roofs, and the possible, expected and measured times."""
    from taco_py.report.show.graphs import Drawing

    shapes = [*_head(roofline)]
    shapes += _diagram(roofline) if roofline.flops and roofline.peak else _bars(roofline)
    shapes += _legend(roofline)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" '
        f'width="{WIDTH:g}" height="{HEIGHT:g}" font-family="{FONT}" font-size="12" '
        f'fill="{INK}">'
    )
    ground = f'<rect width="{WIDTH:g}" height="{HEIGHT:g}" fill="white"/>'
    return Drawing(as_text(roofline), "\n".join((opening, ground, *shapes, "</svg>")) + "\n")


def as_text(roofline: Roofline) -> str:
    """Return the same in words, a line for each roof and each mark."""
    lines = [f"{_title(roofline)}", f"{'processor':<12}{_where(roofline)}"]
    if roofline.peak is not None:
        lines.append(f"{'peak':<12}{format_rate(roofline.peak, 'F/s')}")
    lines += [f"{roof.name:<12}{format_rate(roof.rate, 'B/s')}" for roof in roofline.roofs]
    for mark in _marks(roofline):
        lines.append(f"{mark.name:<12}{format_rate(mark.rate, _unit(roofline))}")
    limiting = roofline.limiting
    if limiting is not None and roofline.seconds:
        lines.append(f"{'because':<12}{limiting.reason}")
    return "\n".join(lines)


def format_rate(rate: float, unit: str) -> str:
    """Return an amount with its unit: "78.9 GF/s"."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.3g} {prefix}{unit}"
    return f"{rate:.3g} {unit}"


def _unit(roofline: Roofline) -> str:
    return "F/s" if roofline.flops and roofline.peak else "B/s"


def _marks(roofline: Roofline) -> Iterator[Mark]:
    """Yield the possible, expected and measured times of all kernels together."""
    amount = roofline.flops if _unit(roofline) == "F/s" else roofline.bytes
    for name, seconds in (
        ("at most", roofline.seconds),
        ("expected", roofline.expected),
        ("measured", roofline.measured),
    ):
        if seconds and amount:
            yield Mark(name, name, amount / seconds)


def _title(roofline: Roofline) -> str:
    texts = [kernel.text for kernel in roofline.kernels]
    if not texts:
        return "No kernel is known well enough"
    return "; ".join(texts) if len(texts) <= 2 else f"{texts[0]}; and {len(texts) - 1} others"


def _where(roofline: Roofline) -> str:
    if not roofline.roofs:
        return f"{roofline.processor}, {roofline.dtype}"
    count = roofline.threads
    threads = f", {count} thread{'s' * (count > 1)}" if count else ""
    when = f", measured {roofline.when}" if roofline.when else ", from its data sheet"
    return f"{roofline.processor}{threads}, {roofline.dtype}{when}"


def _head(roofline: Roofline) -> Iterator[str]:
    yield _words(LEFT, 30, _cut(_title(roofline), 78), size=16, weight="600")
    yield _words(LEFT, 50, _where(roofline), colour=GREY)


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"


# ---------------------------------------------------------------- operations over bytes


def _diagram(roofline: Roofline) -> Iterator[str]:
    x_axis, y_axis = _axes(roofline)
    yield from _grid(x_axis, y_axis)
    yield from _roofs(roofline, x_axis, y_axis)
    yield from _column(roofline, x_axis, y_axis)
    middle = x_axis.start + x_axis.length / 2
    yield _words(middle, HEIGHT - BOTTOM + 34, "operations a byte", "middle", GREY)
    yield (
        f'<text transform="translate(20,{TOP + (HEIGHT - TOP - BOTTOM) / 2:.1f}) rotate(-90)" '
        f'text-anchor="middle" fill="{GREY}">operations a second</text>'
    )


def _axes(roofline: Roofline) -> tuple[Axis, Axis]:
    """Return axes with room for every roof's edge and every mark."""
    peak = roofline.peak or 1.0
    edges = [peak / roof.rate for roof in roofline.roofs]
    places = [*edges, _intensity(roofline)]
    rates = [mark.rate for mark in _marks(roofline)]
    low, high = min(places) / 5, max(places) * 5
    least = min([*rates, low * max(roof.rate for roof in roofline.roofs) * 4])
    x_axis = Axis(low, high, LEFT, WIDTH - LEFT - RIGHT)
    down = HEIGHT - BOTTOM
    return x_axis, Axis(least / 3, peak * 2.5, down, TOP - down)


def _intensity(roofline: Roofline) -> float:
    return roofline.flops / max(roofline.bytes, 1.0)


def _grid(x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    """Yield lines at the ticks, with their numbers."""
    right, bottom = x_axis.start + x_axis.length, y_axis.start
    for tick in x_axis.ticks:
        x = x_axis.at(tick)
        yield _line(x, TOP, x, bottom, PALE, 1)
        yield _words(x, bottom + 17, f"{tick:g}", "middle", GREY)
    for tick in y_axis.ticks:
        y = y_axis.at(tick)
        yield _line(x_axis.start, y, right, y, PALE, 1)
        yield _words(x_axis.start - 8, y + 4, format_rate(tick, "F/s"), "end", GREY, 11)
    yield _line(x_axis.start, bottom, right, bottom, GREY, 1)


def _roofs(roofline: Roofline, x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    """Draw rising roofs, each in its colour, and the flat one of the peak."""
    peak = roofline.peak or 1.0
    right = x_axis.start + x_axis.length
    last = roofline.roofs[-1]
    left = max(x_axis.low, y_axis.low / last.rate)
    corner = peak / last.rate
    under = (
        f"{x_axis.at(left):.1f},{y_axis.at(left * last.rate):.1f} "
        f"{x_axis.at(corner):.1f},{y_axis.at(peak):.1f} {right:.1f},{y_axis.at(peak):.1f} "
        f"{right:.1f},{y_axis.start:.1f} {x_axis.at(left):.1f},{y_axis.start:.1f}"
    )
    yield f'<polygon points="{under}" fill="#3d6fb6" opacity="0.06"/>'
    for roof, colour in zip(roofline.roofs, COLOURS, strict=False):
        begin, end = max(x_axis.low, y_axis.low / roof.rate), min(peak / roof.rate, x_axis.high)
        x1, y1 = x_axis.at(begin), y_axis.at(begin * roof.rate)
        x2, y2 = x_axis.at(end), y_axis.at(end * roof.rate)
        yield _line(x1, y1, x2, y2, colour, 2)
        yield _text_along(x1, y1, x2, y2, f"{roof.name}  {format_rate(roof.rate, 'B/s')}", colour)
    first = x_axis.at(peak / roofline.roofs[0].rate)
    yield _line(first, y_axis.at(peak), right, y_axis.at(peak), INK, 2.5)
    label = f"peak of registers  {format_rate(peak, 'F/s')}"
    yield _words(first, y_axis.at(peak) - 9, label, "start", INK, 12, "600")


def _text_along(x1: float, y1: float, x2: float, y2: float, text: str, colour: str) -> str:
    """Return words above a rising line, along it."""
    share = 0.04
    x, y = x1 + share * (x2 - x1), y1 + share * (y2 - y1)
    turn = degrees(atan2(y2 - y1, x2 - x1))
    return (
        f'<text transform="translate({x:.1f},{y:.1f}) rotate({turn:.1f})" dy="-5" '
        f'fill="{colour}" font-size="11" font-weight="600">{escape(text)}</text>'
    )


def _column(roofline: Roofline, x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    """Yield the marks of all kernels above one another, joined by a dotted line."""
    x = x_axis.at(_intensity(roofline))
    marks = sorted(_marks(roofline), key=lambda mark: -mark.rate)
    yield _line(x, y_axis.start, x, y_axis.at(max(mark.rate for mark in marks)), KERNEL, 1.2, "2 4")
    roof = y_axis.at(roofline.peak or 1.0)
    heights = [max(y_axis.at(mark.rate), roof + 18) for mark in marks]
    for mark, y in zip(marks, _spaced(heights), strict=True):
        yield from _mark(mark, x, y_axis.at(mark.rate))
        right = x < x_axis.start + x_axis.length * 0.66
        anchor, place = ("start", x + 14) if right else ("end", x - 14)
        words = f"{mark.name}  {format_rate(mark.rate, _unit(roofline))}"
        yield _words(place, y + 4, words, anchor, KERNEL, 12, "600", halo=True)


def _spaced(places: Sequence[float], least: float = 16.0) -> list[float]:
    """Return the heights of words that stand no nearer than their letters are high."""
    heights: list[float] = []
    for place in places:
        heights.append(max(place, heights[-1] + least) if heights else place)
    return heights


def _mark(mark: Mark, x: float, y: float) -> Iterator[str]:
    stroke = f'stroke="{KERNEL}" stroke-width="2"'
    if mark.shape == "expected":
        points = f"{x:.1f},{y - 7:.1f} {x + 7:.1f},{y:.1f} {x:.1f},{y + 7:.1f} {x - 7:.1f},{y:.1f}"
        yield f'<polygon points="{points}" fill="#f2c14e" {stroke}/>'
        return
    fill = "white" if mark.shape == "at most" else KERNEL
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6.5" fill="{fill}" {stroke}/>'


# ---------------------------------------------------------------- bytes alone


def _bars(roofline: Roofline) -> Iterator[str]:
    """Yield a bar for each roof, and the marks as lines across all of them."""
    marks = [*_marks(roofline)]
    rates = [*(roof.rate for roof in roofline.roofs), *(mark.rate for mark in marks)]
    if not rates:
        return
    x_axis = Axis(min(rates) / 4, max(rates) * 2, LEFT, WIDTH - LEFT - RIGHT)
    bottom = HEIGHT - BOTTOM
    for tick in x_axis.ticks:
        x = x_axis.at(tick)
        yield _line(x, TOP, x, bottom, PALE, 1)
        yield _words(x, bottom + 17, format_rate(tick, "B/s"), "middle", GREY, 11)
    high = (bottom - TOP) / (len(roofline.roofs) + len(marks))
    for row, (roof, colour) in enumerate(zip(roofline.roofs, COLOURS, strict=False)):
        y, width = TOP + row * high, x_axis.at(roof.rate) - LEFT
        yield (
            f'<rect x="{LEFT:g}" y="{y + high / 4:.1f}" width="{width:.1f}" '
            f'height="{high / 2:.1f}" rx="3" fill="{colour}" opacity="0.8"/>'
        )
        yield _words(LEFT - 8, y + high / 2 + 4, roof.name, "end", colour, 12, "600")
        label = format_rate(roof.rate, "B/s")
        yield _words(LEFT + width - 8, y + high / 2 + 4, label, "end", "white", 11, "600")
    for row, mark in enumerate(marks, len(roofline.roofs)):
        x, y = x_axis.at(mark.rate), TOP + (row + 0.5) * high
        yield _line(x, TOP, x, y, KERNEL, 1.2, "2 4")
        yield from _mark(mark, x, y)
        words = f"{mark.name}  {format_rate(mark.rate, 'B/s')}"
        right = x < x_axis.start + x_axis.length * 0.66
        anchor, place = ("start", x + 14) if right else ("end", x - 14)
        yield _words(place, y + 4, words, anchor, KERNEL, 12, "600", halo=True)
    yield _line(LEFT, bottom, LEFT + x_axis.length, bottom, GREY, 1)
    yield _words(LEFT + x_axis.length / 2, bottom + 34, "bytes a second", "middle", GREY)


# ---------------------------------------------------------------- shapes


def _legend(roofline: Roofline) -> Iterator[str]:
    """Say why no more is possible, below the diagram."""
    limiting = roofline.limiting
    if limiting is None or not roofline.seconds:
        return
    yield _words(LEFT, HEIGHT - 30, "No more is possible here, for", colour=GREY)
    yield _words(LEFT, HEIGHT - 13, _cut(limiting.reason, 105), weight="600")


def _words(
    x: float,
    y: float,
    text: str,
    anchor: str = "start",
    colour: str = INK,
    size: float = 12,
    weight: str = "normal",
    halo: bool = False,
) -> str:
    outline = ' paint-order="stroke" stroke="white" stroke-width="4"' * halo
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
        f'font-size="{size:g}" font-weight="{weight}"{outline}>{escape(text)}</text>'
    )


def _line(
    x1: float, y1: float, x2: float, y2: float, colour: str, width: float, dash: str = ""
) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width:g}" stroke-linecap="round"{dashed}/>'
    )
