"""The emulated device: right kernels give NumPy's results and no report, wrong ones a report."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.devices.emulated import EmulatedDevice
from codegen.devices.reports import EmulationError
from codegen.runtime.kernel_cache import KernelCache
from tests.devices.kernels import CASES, COMPACT, GEMM, ROTATE, Case, run
from tests.devices.mutations import MUTATIONS, Mutation
from tests.devices.names import EVERY_NAME

SEEDS = range(20)


@pytest.mark.parametrize("case", (*CASES, EVERY_NAME), ids=lambda case: case.name)
def test_right_kernels_agree_with_numpy(case: Case, cache: KernelCache) -> None:
    for seed in SEEDS:
        device = EmulatedDevice(cache, seed=seed, counting=seed % 5 == 0)
        run(device, case, np.random.default_rng(seed))


def test_contexts_of_the_system_do_as_well(cache: KernelCache) -> None:
    """Where no switch is written for the processor."""
    for case in (GEMM, ROTATE, COMPACT):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            run(EmulatedDevice(cache, seed=seed), case, rng, options=("-DEMULATED_CONTEXTS",))


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.case.name}-{m.what}")
def test_mistakes_are_found(mutation: Mutation, cache: KernelCache) -> None:
    """Each of three orders of threads finds it."""
    for seed in range(3):
        device = EmulatedDevice(cache, seed=seed, most_steps=10**6)
        with pytest.raises(EmulationError) as caught:
            run(device, mutation.case, np.random.default_rng(seed), mutation.text)
        assert mutation.fault in {report.fault for report in caught.value.reports}, str(
            caught.value
        )
        assert all(report.line > 1 for report in caught.value.reports)
