"""A search for random programs that differ from the oracle, or end in an error of ours.

    python -m tests.language.search [seconds] [--seed S] [--data D] [--plans P] [--program S-N]

Each text runs on D sets of numbers: the first makes its plan and kernels, the others take the short
way of repeated calls. With the first numbers it also runs by P other plans, in one to three
threads. A program is made again from what stands before it: S-N.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from random import Random

from taco_py.data.kernels import KERNELS
from tests.language.outcomes import outcome
from tests.language.programs import program

RIGHT = ("equal", "refused")


def main(arguments: list[str]) -> int:
    """Draw programs for some seconds and print those that are wrong; 1 where there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.language.search")
    parser.add_argument("seconds", nargs="?", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=int, default=3, help="sets of numbers for each text")
    parser.add_argument("--plans", type=int, default=0, help="other plans for each text")
    parser.add_argument("--program", help="one program alone, by its name")
    given = parser.parse_args(arguments)
    KERNELS.compile_with(("-Og",))
    outcomes: Counter[str] = Counter()
    if given.program:
        return int(_tried(given.program, given.data, given.plans)["wrong"] > 0)
    end, count = time.monotonic() + given.seconds, 0
    while time.monotonic() < end:
        name = f"{given.seed}-{count}"
        outcomes.update(_tried(name, given.data, given.plans))
        count += 1
    print(f"{count} texts:", ", ".join(f"{n} {what}" for what, n in outcomes.items()))
    return int(outcomes["wrong"] > 0)


def _tried(name: str, data: int, plans: int) -> Counter[str]:
    """The outcomes of one text; those that are wrong are printed."""
    drawn, outcomes = program(Random(name)), Counter[str]()
    for seed in range(data):
        others = range(1, 1 + plans) if seed == 0 else ()
        found = outcome(drawn, seed, others)
        outcomes[found if found in RIGHT else "wrong"] += 1
        if found not in RIGHT:
            print(f"{name} data {seed}: {drawn}\n    {found}", flush=True)
        if found != "equal":
            break
    return outcomes


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("TACO_PY_CACHE_DIR", folder)
        status = main(sys.argv[1:])
    sys.exit(status)
