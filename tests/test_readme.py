"""The README's Python blocks run, one after the other, and print what they say they print."""

from __future__ import annotations

import contextlib
import io
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PROMISE = re.compile(r"#\s*→\s*(.*)$", re.MULTILINE)


def test_there_is_a_tour() -> None:
    assert len(BLOCKS) >= 4


def test_the_tour_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In `print(x)  # → text`, the text is compared with what is printed."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "readme"}
    for number, block in enumerate(BLOCKS):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            exec(compile(block, f"README.md block {number}", "exec"), names)
        promised = [match[1].strip() for match in PROMISE.finditer(block)]
        lines = [line.strip() for line in shown.getvalue().splitlines()]
        missing = [line for line in promised if line not in lines]
        assert not missing, f"block {number} printed\n{shown.getvalue()}"


def test_the_map_names_folders_that_exist_and_all_of_them() -> None:
    named = set(re.findall(r"^\| `([\w./]+)/?` \|", README, re.MULTILINE))
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
    commands = re.findall(r"^    (python3 run\.py \w+)", README, re.MULTILINE)
    assert commands[:2] == ["python3 run.py demo", "python3 run.py test"]
    assert "python3 run.py test" in (ROOT / ".ci" / "run").read_text()


def test_the_extras_that_the_readme_names_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = set(re.findall(r"tacopy\[(\w+)\]", README))
    assert named <= set(project["optional-dependencies"])
