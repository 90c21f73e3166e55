"""Blocks of models computed as a whole give NumPy's numbers."""

from __future__ import annotations

import numpy as np
import pytest

import taco_py as tp
from taco_py.graph.run.graph_program import KernelRun
from tests.graph.blocks import BLOCKS, operands_of, reference
from tests.graph.random_programs import failures


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_gives_numpys_numbers(name: str) -> None:
    fused = tp.fuse(BLOCKS[name])
    for size in (20, 33):
        operands = operands_of(name, size)
        np.testing.assert_allclose(fused(*operands), reference(name, operands), rtol=1e-9)
    (traces,) = fused.traces.values()
    assert len(traces) == 1, "another size needs no other trace"


def test_nothing_of_the_masks_size_is_dense() -> None:
    graph = tp.fuse(BLOCKS["attention"]).graph(*operands_of("attention", 24))
    graph()
    (step,) = graph.call.program.steps
    assert isinstance(step, KernelRun) and step.statements is not None
    wide = [each.target for each in step.statements.assignments if len(each.target.indices) == 3]
    stored = {target.tensor for target in wide} - {*step.statements.results}
    assert stored == {*step.statements.formats}
    assert {str(form) for form in step.statements.formats.values()} == {"dds"}


def test_random_programs_give_numpys_numbers(request: pytest.FixtureRequest) -> None:
    count = 30 if request.config.getoption("--thorough") else 4
    assert not [*failures(count, seed=40)]
