"""Run the tests as if on other processors, one after another, and print what fails on each.

python -m tests.pretended_machines                            all machines
python -m tests.pretended_machines sse2 avx2+one_core         these
python -m tests.pretended_machines -- tests/plan -x           with arguments for pytest

What the processor here lacks is never used: a machine with more is left out, with the reason.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.machines import MACHINES, machine_named, missing_feature

ROOT = Path(__file__).parent.parent
PYTEST = ("-m", "pytest", "--numprocesses=auto", "--dist=worksteal")


def main(arguments: Sequence[str]) -> int:
    """Run the tests on each machine; 1 where any fails, 2 where a name is none of a machine."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    names, rest = arguments[:cut] or list(MACHINES), arguments[cut + 1 :]
    try:
        lacking = {name: missing_feature(name) for name in names}
    except KeyError as error:
        print(f"Expected names among {', '.join(MACHINES)}, found {error.args[0]}")
        return 2
    lines, failed = [], False
    for name, missing in lacking.items():
        if missing:
            lines.append(f"{name:24} left out: no {missing} here")
            continue
        print(f"--- {name}: {machine_named(name)}", flush=True)
        command = [sys.executable, *PYTEST, "--machine", name, *rest]
        printed, status = _run(command)
        failed = failed or status != 0
        lines.append(f"{name:24} {printed}")
    print("\n".join(lines))
    return int(failed)


def _run(command: Sequence[str]) -> tuple[str, int]:
    """Run a command, whose lines are printed; the last of them, and its status."""
    last = ""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip() or last
    return last, process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
