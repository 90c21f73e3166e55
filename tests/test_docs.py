"""The README and the pages of `docs/`: their Python runs, their links lead somewhere, and the site
has them all. None of this needs MkDocs."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import taco_py as tp
from codegen.runtime.blas import available
from taco_py.compiler.schedule.parser import syntax
from taco_py.tool.flags import FLAGS
from tests.pages import DOCS, PAGES, README, ROOT, blocks, headings, links, run

WITH_CODE = {
    "README.md", "index.md", "getting-started.md", "notation.md", "functions.md", "formats.md",
    "semantics.md", "schedules.md", "planner.md", "programs.md", "performance.md",
    "export-and-command-line.md", "examples.md", "cuda.md",
}  # fmt: skip

OF_BLAS = {"backends.md"}
"""Pages that promise what a computer with a BLAS prints."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_run_and_print_what_they_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In `print(x)  # → text`, the text is compared with what is printed, in this order."""
    monkeypatch.chdir(tmp_path)
    if page.name in OF_BLAS and not available("float64", None):
        pytest.skip("it shows what a BLAS is left, and none is here")
    for number, promised, printed in run(page):
        left = iter(printed)
        missing = [line for line in promised if line not in left]
        assert not missing, f"{page.name} block {number} printed\n" + "\n".join(printed)


def test_pages_with_code_promise_results() -> None:
    for page in PAGES:
        if page.name in WITH_CODE:
            assert any("# →" in block for block in blocks(page)), page.name
    assert {page.name for page in PAGES} >= WITH_CODE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_between_files_resolve(page: Path) -> None:
    for link in links(page):
        assert link.target.exists(), f"{page.name}: no file {link.target.relative_to(ROOT)}"
        inside = DOCS in link.target.parents
        assert page == README or inside, f"{page.name} links to {link.target}, outside the site"
        if link.heading:
            known = headings(link.target)
            assert link.heading in known, f"{page.name}: no heading {link.heading} among {known}"


def test_the_site_has_every_page_once() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = re.findall(r"^\s+- .+: (\S+\.md)$", nav, re.MULTILINE)
    assert sorted(listed) == sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md"))


def test_every_page_is_linked_from_the_home_page() -> None:
    home = DOCS / "index.md"
    linked = {link.target for link in links(home)}
    assert linked >= set(DOCS.rglob("*.md")) - {home}


def test_every_scheduling_command_and_flag_has_its_place() -> None:
    schedules = (DOCS / "schedules.md").read_text()
    assert not [name for name in syntax() if f"`{name}(" not in schedules]
    tool = (DOCS / "export-and-command-line.md").read_text()
    assert not [flag for flag in FLAGS if f"`-{flag}" not in tool and flag != "print-nocolor"]


def test_the_picture_shows_what_the_compiler_makes() -> None:
    """Its text and schedule lead to the C beside them."""
    text, schedule, *code = drawn()
    formats = {"A": tp.CSR, "x": tp.dense(1), "y": tp.dense(1)}
    source = tp.compile(text, formats, schedule=schedule).source
    written = {line.strip() for line in source.splitlines()}
    assert not set(code) - written


def drawn() -> list[str]:
    """The picture's index notation, its schedule, and each line of C."""
    picture = ElementTree.parse(DOCS / "pictures" / "road.svg")
    boxes: dict[str, list[str]] = {}
    for each in picture.iter("{http://www.w3.org/2000/svg}text"):
        if each.get("class") == "title":
            box = boxes.setdefault(str(each.text), [])
        elif each.get("class") != "note":
            box.append(str(each.text).strip())
    (text,), commands = boxes["text and formats"], boxes["schedule"]
    return [text, re.sub(r"\)(?=\w)", "), ", "".join(commands)), *boxes["C"]]
