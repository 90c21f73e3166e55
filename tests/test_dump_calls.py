"""A part of the dump of calls is the same for two hash seeds, and no verb fails by our fault."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus.calls import ROADS

ROOT = Path(__file__).parent.parent
SHARE = 60
"""Of each road, each so-many-th call is asked for."""
FAULTY = " differentiate "
"""The verb that ends with an InternalError today, of operands on a device."""


def dumped(folder: Path, seed: str) -> subprocess.Popen[str]:
    """Begin to write a part of the dump with a hash seed."""
    command = [sys.executable, "-m", "tests.dump_calls", str(folder), "--share", str(SHARE)]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_the_dump_is_the_same_for_any_hash_seed(tmp_path: Path) -> None:
    folders = tmp_path / "first", tmp_path / "second"
    for process in [dumped(folder, str(seed)) for seed, folder in enumerate(folders)]:
        output, _ = process.communicate()
        assert process.returncode == 0, output
    for road in ROADS:
        first, second = ((folder / road).read_text() for folder in folders)
        assert first.count("\n--- compute\n") >= 1
        assert first == second, road
    lines = (folders[0] / "refusals").read_text().splitlines()
    assert not [line for line in lines if "InternalError" in line and FAULTY not in line]


@pytest.mark.parametrize("road", ROADS)
def test_each_road_has_calls_that_are_described(road: str) -> None:
    from tests.corpus.calls import calls_of

    calls = list(calls_of(road))
    assert len({call.name for call in calls}) == len(calls) > 20
