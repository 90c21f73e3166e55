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


def draw_roofline(found: Roofline) -> Drawing:
    """Draw the roofs, and the possible, expected and measured times."""
    from taco_py.report.show.graphs import Drawing

    shapes = [*_head(found)]
    shapes += _diagram(found) if found.flops and found.peak else _bars(found)
    shapes += _legend(found)
    whole = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" '
        f'width="{WIDTH:g}" height="{HEIGHT:g}" font-family="{FONT}" font-size="12" '
        f'fill="{INK}">'
    )
    ground = f'<rect width="{WIDTH:g}" height="{HEIGHT:g}" fill="white"/>'
    return Drawing(as_text(found), "\n".join((whole, ground, *shapes, "</svg>")) + "\n")


def as_text(found: Roofline) -> str:
    """Return the same in words, a line for each roof and each mark."""
    lines = [f"{_title(found)}", f"{'processor':<12}{_where(found)}"]
    if found.peak is not None:
        lines.append(f"{'peak':<12}{shown(found.peak, 'F/s')}")
    lines += [f"{roof.name:<12}{shown(roof.rate, 'B/s')}" for roof in found.roofs]
    for mark in _marks(found):
        lines.append(f"{mark.name:<12}{shown(mark.rate, _unit(found))}")
    limiting = found.limiting
    if limiting is not None and found.seconds:
        lines.append(f"{'because':<12}{limiting.why}")
    return "\n".join(lines)


def shown(rate: float, unit: str) -> str:
    """Return an amount with its unit: "78.9 GF/s"."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= size:
            return f"{rate / size:.3g} {prefix}{unit}"
    return f"{rate:.3g} {unit}"


def _unit(found: Roofline) -> str:
    return "F/s" if found.flops and found.peak else "B/s"


def _marks(found: Roofline) -> Iterator[Mark]:
    """Yield the possible, expected and measured times of all kernels together."""
    amount = found.flops if _unit(found) == "F/s" else found.bytes
    for name, seconds in (
        ("at most", found.seconds),
        ("expected", found.expected),
        ("measured", found.measured),
    ):
        if seconds and amount:
            yield Mark(name, name, amount / seconds)


def _title(found: Roofline) -> str:
    texts = [each.text for each in found.kernels]
    if not texts:
        return "No kernel is known well enough"
    return "; ".join(texts) if len(texts) <= 2 else f"{texts[0]}; and {len(texts) - 1} others"


def _where(found: Roofline) -> str:
    if not found.roofs:
        return f"{found.processor}, {found.dtype}"
    threads = f", {found.threads} thread{'s' * (found.threads > 1)}" if found.threads else ""
    when = f", measured {found.when}" if found.when else ", from its data sheet"
    return f"{found.processor}{threads}, {found.dtype}{when}"


def _head(found: Roofline) -> Iterator[str]:
    yield _words(LEFT, 30, _cut(_title(found), 78), size=16, weight="600")
    yield _words(LEFT, 50, _where(found), colour=GREY)


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"


# ---------------------------------------------------------------- operations over bytes


def _diagram(found: Roofline) -> Iterator[str]:
    across, up = _axes(found)
    yield from _grid(across, up)
    yield from _roofs(found, across, up)
    yield from _column(found, across, up)
    middle = across.start + across.length / 2
    yield _words(middle, HEIGHT - BOTTOM + 34, "operations a byte", "middle", GREY)
    yield (
        f'<text transform="translate(20,{TOP + (HEIGHT - TOP - BOTTOM) / 2:.1f}) rotate(-90)" '
        f'text-anchor="middle" fill="{GREY}">operations a second</text>'
    )


def _axes(found: Roofline) -> tuple[Axis, Axis]:
    """Return axes with room for every roof's edge and every mark."""
    peak = found.peak or 1.0
    edges = [peak / roof.rate for roof in found.roofs]
    places = [*edges, _intensity(found)]
    rates = [mark.rate for mark in _marks(found)]
    low, high = min(places) / 5, max(places) * 5
    least = min([*rates, low * max(roof.rate for roof in found.roofs) * 4])
    across = Axis(low, high, LEFT, WIDTH - LEFT - RIGHT)
    down = HEIGHT - BOTTOM
    return across, Axis(least / 3, peak * 2.5, down, TOP - down)


def _intensity(found: Roofline) -> float:
    return found.flops / max(found.bytes, 1.0)


def _grid(across: Axis, up: Axis) -> Iterator[str]:
    """Yield lines at the ticks, with their numbers."""
    right, bottom = across.start + across.length, up.start
    for tick in across.ticks:
        x = across.at(tick)
        yield _line(x, TOP, x, bottom, PALE, 1)
        yield _words(x, bottom + 17, f"{tick:g}", "middle", GREY)
    for tick in up.ticks:
        y = up.at(tick)
        yield _line(across.start, y, right, y, PALE, 1)
        yield _words(across.start - 8, y + 4, shown(tick, "F/s"), "end", GREY, 11)
    yield _line(across.start, bottom, right, bottom, GREY, 1)


def _roofs(found: Roofline, across: Axis, up: Axis) -> Iterator[str]:
    """Draw rising roofs, each in its colour, and the flat one of the peak."""
    peak = found.peak or 1.0
    right = across.start + across.length
    last = found.roofs[-1]
    left = max(across.low, up.low / last.rate)
    corner = peak / last.rate
    under = (
        f"{across.at(left):.1f},{up.at(left * last.rate):.1f} "
        f"{across.at(corner):.1f},{up.at(peak):.1f} {right:.1f},{up.at(peak):.1f} "
        f"{right:.1f},{up.start:.1f} {across.at(left):.1f},{up.start:.1f}"
    )
    yield f'<polygon points="{under}" fill="#3d6fb6" opacity="0.06"/>'
    for roof, colour in zip(found.roofs, COLOURS, strict=False):
        begin, end = max(across.low, up.low / roof.rate), min(peak / roof.rate, across.high)
        x1, y1 = across.at(begin), up.at(begin * roof.rate)
        x2, y2 = across.at(end), up.at(end * roof.rate)
        yield _line(x1, y1, x2, y2, colour, 2)
        yield _along(x1, y1, x2, y2, f"{roof.name}  {shown(roof.rate, 'B/s')}", colour)
    first = across.at(peak / found.roofs[0].rate)
    yield _line(first, up.at(peak), right, up.at(peak), INK, 2.5)
    told = f"peak of registers  {shown(peak, 'F/s')}"
    yield _words(first, up.at(peak) - 9, told, "start", INK, 12, "600")


def _along(x1: float, y1: float, x2: float, y2: float, text: str, colour: str) -> str:
    """Return words above a rising line, along it."""
    share = 0.04
    x, y = x1 + share * (x2 - x1), y1 + share * (y2 - y1)
    turn = degrees(atan2(y2 - y1, x2 - x1))
    return (
        f'<text transform="translate({x:.1f},{y:.1f}) rotate({turn:.1f})" dy="-5" '
        f'fill="{colour}" font-size="11" font-weight="600">{escape(text)}</text>'
    )


def _column(found: Roofline, across: Axis, up: Axis) -> Iterator[str]:
    """Yield the marks of all kernels above one another, joined by a dotted line."""
    x = across.at(_intensity(found))
    marks = sorted(_marks(found), key=lambda mark: -mark.rate)
    yield _line(x, up.start, x, up.at(max(mark.rate for mark in marks)), KERNEL, 1.2, "2 4")
    roof = up.at(found.peak or 1.0)
    heights = [max(up.at(mark.rate), roof + 18) for mark in marks]
    for mark, y in zip(marks, _apart(heights), strict=True):
        yield from _mark(mark, x, up.at(mark.rate))
        right = x < across.start + across.length * 0.66
        anchor, place = ("start", x + 14) if right else ("end", x - 14)
        words = f"{mark.name}  {shown(mark.rate, _unit(found))}"
        yield _words(place, y + 4, words, anchor, KERNEL, 12, "600", halo=True)


def _apart(places: Sequence[float], least: float = 16.0) -> list[float]:
    """Return the heights of words that stand no nearer than their letters are high."""
    found: list[float] = []
    for place in places:
        found.append(max(place, found[-1] + least) if found else place)
    return found


def _mark(mark: Mark, x: float, y: float) -> Iterator[str]:
    stroke = f'stroke="{KERNEL}" stroke-width="2"'
    if mark.shape == "expected":
        points = f"{x:.1f},{y - 7:.1f} {x + 7:.1f},{y:.1f} {x:.1f},{y + 7:.1f} {x - 7:.1f},{y:.1f}"
        yield f'<polygon points="{points}" fill="#f2c14e" {stroke}/>'
        return
    fill = "white" if mark.shape == "at most" else KERNEL
    yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6.5" fill="{fill}" {stroke}/>'


# ---------------------------------------------------------------- bytes alone


def _bars(found: Roofline) -> Iterator[str]:
    """Yield a bar for each roof, and the marks as lines across all of them."""
    marks = [*_marks(found)]
    rates = [*(roof.rate for roof in found.roofs), *(mark.rate for mark in marks)]
    if not rates:
        return
    across = Axis(min(rates) / 4, max(rates) * 2, LEFT, WIDTH - LEFT - RIGHT)
    bottom = HEIGHT - BOTTOM
    for tick in across.ticks:
        x = across.at(tick)
        yield _line(x, TOP, x, bottom, PALE, 1)
        yield _words(x, bottom + 17, shown(tick, "B/s"), "middle", GREY, 11)
    high = (bottom - TOP) / (len(found.roofs) + len(marks))
    for row, (roof, colour) in enumerate(zip(found.roofs, COLOURS, strict=False)):
        y, width = TOP + row * high, across.at(roof.rate) - LEFT
        yield (
            f'<rect x="{LEFT:g}" y="{y + high / 4:.1f}" width="{width:.1f}" '
            f'height="{high / 2:.1f}" rx="3" fill="{colour}" opacity="0.8"/>'
        )
        yield _words(LEFT - 8, y + high / 2 + 4, roof.name, "end", colour, 12, "600")
        told = shown(roof.rate, "B/s")
        yield _words(LEFT + width - 8, y + high / 2 + 4, told, "end", "white", 11, "600")
    for row, mark in enumerate(marks, len(found.roofs)):
        x, y = across.at(mark.rate), TOP + (row + 0.5) * high
        yield _line(x, TOP, x, y, KERNEL, 1.2, "2 4")
        yield from _mark(mark, x, y)
        words = f"{mark.name}  {shown(mark.rate, 'B/s')}"
        right = x < across.start + across.length * 0.66
        anchor, place = ("start", x + 14) if right else ("end", x - 14)
        yield _words(place, y + 4, words, anchor, KERNEL, 12, "600", halo=True)
    yield _line(LEFT, bottom, LEFT + across.length, bottom, GREY, 1)
    yield _words(LEFT + across.length / 2, bottom + 34, "bytes a second", "middle", GREY)


# ---------------------------------------------------------------- shapes


def _legend(found: Roofline) -> Iterator[str]:
    """Say why no more is possible, below the diagram."""
    limiting = found.limiting
    if limiting is None or not found.seconds:
        return
    yield _words(LEFT, HEIGHT - 30, "No more is possible here, for", colour=GREY)
    yield _words(LEFT, HEIGHT - 13, _cut(limiting.why, 105), weight="600")


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
    around = ' paint-order="stroke" stroke="white" stroke-width="4"' * halo
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
        f'font-size="{size:g}" font-weight="{weight}"{around}>{escape(text)}</text>'
    )


def _line(
    x1: float, y1: float, x2: float, y2: float, colour: str, width: float, dash: str = ""
) -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width:g}" stroke-linecap="round"{dashed}/>'
    )
