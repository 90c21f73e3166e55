"""What the README and the page for contributors say of the project's commands and folders."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.pages import DOCS, PAGES, README, ROOT

MOST_WORDS = 700
_EXTRA = re.compile(r"(?:tacopy|\.)\[(\w+)\]\"")
ARCHITECTURE = (DOCS / "architecture.md").read_text()


def test_the_readme_is_short() -> None:
    words = re.findall(r"\S*\w\S*", README.read_text())
    assert len(words) <= MOST_WORDS


def test_the_map_names_folders_that_exist_and_all_of_them() -> None:
    named = set(re.findall(r"^\| `([\w./]+)/?` \|", ARCHITECTURE, re.MULTILINE))
    assert named
    assert not {name for name in named if not (ROOT / name).exists()}
    folders = {
        f"{package}/{path.name}/"
        for package in ("taco_py", "codegen")
        for path in (ROOT / package).iterdir()
        if path.is_dir() and any(path.glob("*.py")) and _has_code(path)
    }
    unnamed = folders - {f"{name.rstrip('/')}/" for name in named}
    assert not unnamed


def _has_code(folder: Path) -> bool:
    return any(path.read_text().strip() for path in folder.rglob("*.py"))


def test_the_two_commands_are_the_ones_that_ci_and_users_run() -> None:
    commands = re.findall(r"^    (python3 run\.py \w+)", README.read_text(), re.MULTILINE)
    assert commands[:2] == ["python3 run.py demo", "python3 run.py test"]
    assert "python3 run.py test" in (ROOT / ".ci" / "run").read_text()


def test_the_extras_that_pages_name_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {name for page in PAGES for name in _EXTRA.findall(page.read_text())}
    assert named and named <= set(project["optional-dependencies"])


def test_the_version_has_a_section_in_the_changelog() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[:2] == ["Unreleased", project["version"]]
