"""Run a piece of code in fresh processes and read the number it prints."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def printed(code: str, environment: Mapping[str, str] | None = None, root: Path = ROOT) -> float:
    """The number that `code` prints last in a new interpreter, which imports us from `root`."""
    path = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
        env={**os.environ, "PYTHONPATH": path, **(environment or {})},
    )
    return float(done.stdout.split()[-1])


def install(folder: Path) -> None:
    """Install the checkout into an empty folder, as pip does for users, without what it needs."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    with tempfile.TemporaryDirectory() as copy:
        ignored = shutil.ignore_patterns(".*", "build", "__pycache__")
        sources = shutil.copytree(ROOT, Path(copy) / "sources", ignore=ignored)
        subprocess.run([*command, str(folder), str(sources)], check=True, capture_output=True)
