"""Run a piece of code in fresh processes and read the number it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def printed(code: str, environment: Mapping[str, str] | None = None) -> float:
    """The number that `code` prints last in a new interpreter."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path, **(environment or {})},
    )
    return float(done.stdout.split()[-1])
