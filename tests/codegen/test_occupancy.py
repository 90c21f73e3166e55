"""How many blocks run at once: what NVIDIA's occupancy calculator says of the same numbers."""

from __future__ import annotations

import pytest

from codegen.machine.gpu import MULTIPROCESSORS
from codegen.occupancy import Occupancy, occupancy

# architecture, threads a block, registers a thread, shared bytes a block → blocks, warps, limiter
TABLE = (
    ("sm_90", 256, 32, 0, 8, 64, "warps"),
    ("sm_90", 256, 33, 0, 6, 48, "registers"),
    ("sm_90", 256, 40, 0, 6, 48, "registers"),
    ("sm_90", 256, 64, 0, 4, 32, "registers"),
    ("sm_90", 256, 255, 0, 1, 8, "registers"),
    ("sm_90", 96, 65, 0, 9, 27, "registers"),
    ("sm_90", 32, 16, 0, 32, 32, "blocks"),
    ("sm_90", 1024, 32, 48 * 1024, 2, 64, "warps"),
    ("sm_90", 128, 32, 48 * 1024, 4, 16, "shared memory"),
    ("sm_80", 128, 32, 48 * 1024, 3, 12, "shared memory"),
    ("sm_80", 64, 32, 0, 32, 64, "warps"),
    ("sm_86", 1024, 32, 0, 1, 32, "warps"),
    ("sm_86", 32, 32, 0, 16, 16, "blocks"),
    ("sm_89", 64, 32, 0, 24, 48, "warps"),
)


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_what_runs_at_once(row: tuple[str, int, int, int, int, int, str]) -> None:
    architecture, block, registers, shared, blocks, warps, limiter = row
    has = MULTIPROCESSORS[architecture]
    found = occupancy(has, block, registers, shared)
    assert found == Occupancy(blocks, warps, has.warps, limiter)
