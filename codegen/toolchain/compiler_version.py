"""What a compiler says of its version."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

SECONDS = 60.0


def version_line(command: Sequence[str]) -> str:
    """Return the first line that a compiler prints of its version, "" where it prints none.

    ("cc",)  →  "cc (Debian 12.2.0-14) 12.2.0"
    """
    try:
        process = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, errors="replace",
            timeout=SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = process.stdout.strip().splitlines()
    return lines[0].strip() if lines else ""
