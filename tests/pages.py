"""The README and the pages of `docs/` as data: their Python blocks, headings and links."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = (README, *sorted(DOCS.rglob("*.md")))

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_PROMISE = re.compile(r"#\s*→\s*(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Link:
    """A link: the file it names, absolute, and the heading behind `#`, or ""."""

    target: Path
    heading: str


def blocks(page: Path) -> tuple[str, ...]:
    """The page's Python blocks, in order."""
    return tuple(_BLOCK.findall(page.read_text()))


def headings(page: Path) -> frozenset[str]:
    """The page's headings as links name them: `## What runs?` is `what-runs`."""
    found = _HEADING.findall(_FENCED.sub("", page.read_text()))
    return frozenset(map(_slug, found))


def _slug(heading: str) -> str:
    words = re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower()
    return re.sub(r"[-\s]+", "-", words)


def links(page: Path) -> Iterator[Link]:
    """The page's links to files of the project, not those to other sites."""
    text = _CODE.sub("", _FENCED.sub("", page.read_text()))
    for address in _LINK.findall(text):
        if "://" in address:
            continue
        file, _, heading = address.partition("#")
        yield Link((page.parent / file).resolve() if file else page, heading)


def run(page: Path) -> Iterator[tuple[int, list[str], list[str]]]:
    """Run the page's blocks one after another, with names of their own.

    Yields each block's number, the lines it promises in `print(x)  # → line`, and those it prints.
    """
    names: dict[str, Any] = {"__name__": page.stem}
    for number, block in enumerate(blocks(page), 1):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            exec(compile(block, f"{page.name} block {number}", "exec"), names)
        promised = [line.strip() for line in _PROMISE.findall(block)]
        yield number, promised, [line.strip() for line in shown.getvalue().splitlines()]
