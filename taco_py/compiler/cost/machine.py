"""The machine that plans are made for: what its operations cost, and where each choice pays.

    Machine()                                  the nominal machine, `NOMINAL`
    NOMINAL.with_costs(hash_workspace_steps=100) one whose hash workspaces are ten times dearer

A step is one iteration of an innermost loop that does not vectorise: 1 to 2 ns. The last words of
a field are its unit; a `ratio` or a `share` has none.

`python -m benchmarks.run costs` measures many of these numbers. "Measured" says what it found, in
the unit of the field, with other programs on the same two cores and operands that fit the caches.
The numbers differ a little from what was measured: operands may be larger, and a measured kernel
does more than the one operation. `python -m benchmarks.run chosen` measures whether they choose
good schedules.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from typing import Any

from codegen.machine.target import TARGETS, Target
from codegen.records import dataclass
from taco_py.compiler.cost.machine_calls import CallCosts
from taco_py.compiler.cost.machine_copies import CopyCosts
from taco_py.compiler.cost.machine_dense import DenseCosts
from taco_py.compiler.cost.machine_loops import LoopCosts
from taco_py.compiler.cost.machine_units import UnitCosts
from taco_py.data.kept_calibration import AS_SHIPPED


@dataclass(frozen=True, slots=True)
class Machine:
    """The costs of one machine's operations, and the amounts of work from which choices pay.

    target  what kernels are made for: a language, a machine, and what runs them
    price   where the costs are from: as shipped, or when and where they were calibrated
    """

    target: Target = TARGETS["c"]
    step_seconds: float = 1.5e-9
    loops: LoopCosts = LoopCosts()
    copies: CopyCosts = CopyCosts()
    dense: DenseCosts = DenseCosts()
    calls: CallCosts = CallCosts()
    units: UnitCosts = UnitCosts()
    price: str = AS_SHIPPED

    def with_costs(self, **costs: float) -> Machine:
        """Return a machine with other costs, each in the record that has a field of its name.

        >>> NOMINAL.with_costs(merge_steps=3.0).loops.merge_steps
        3.0
        """
        changes: dict[str, Any] = {}
        for name in ("loops", "copies", "dense", "calls", "units"):
            record = getattr(self, name)
            names = {field.name for field in fields(record)} & costs.keys()
            changes[name] = replace(record, **{field: costs.pop(field) for field in names})
        return replace(self, **(changes | costs))

    @property
    def is_gpu(self) -> bool:
        """Tell whether kernels run on a GPU, emulated or not."""
        return self.target.is_gpu

    @property
    def teams(self) -> bool:
        """Tell whether threads are few and take large ranges of a loop, with memory of their
        own."""
        return not self.is_gpu

    def copied_element(self, nbytes: float) -> float:
        """Return the seconds of each element of a dense copy of so many bytes."""
        calls, near = self.calls, nbytes <= self.loops.near_cache_bytes
        return calls.copied_element_seconds if near else calls.far_copied_element_seconds

    def __hash__(self) -> int:
        """Return a hash in constant time, for machines are parts of many keys and seldom differ."""
        return hash(self.step_seconds)

    def shared_seconds(self, seconds: float, threads: int) -> float:
        """Return the seconds of work that threads share, where it is enough to wake them."""
        units = self.units
        if threads == 1 or seconds < units.parallel_iterations * 1e-9:
            return seconds
        gain = 1.0 + units.further_thread_share * (threads - 1)
        return units.waking_seconds + seconds / gain

    def of_type(self, item_bytes: int) -> Machine:
        """Return the machine for elements of so many bytes: vectors hold more of smaller ones."""
        share = min(1.0, item_bytes / DOUBLE_BYTES)
        loops = self.loops
        return self.with_costs(
            vector_steps=loops.vector_steps * share,
            dense_vector_steps=loops.dense_vector_steps * share,
        )

    @property
    def vector_scatter_steps(self) -> float:
        """Return the extra cost of an addition to memory in a vectorised innermost loop.

        Measured: 0.05 for rows of 16 to 64 elements in the near caches.
        """
        return self.loops.vector_steps * (self.loops.scatter_steps - 1.0)

    @property
    def lane_sum_steps(self) -> float:
        """Return `lane_sum_seconds` in steps."""
        return self.dense.lane_sum_seconds / self.step_seconds

    @property
    def quickest_steps(self) -> float:
        """Return the least that an innermost iteration costs, in loops or as a dense product."""
        dense = 1 / self.calls.dense_products_per_second / self.step_seconds
        return min(self.loops.vector_steps, dense)


DOUBLE_BYTES = 8
"""Bytes of the elements for which vectors are priced."""
NOMINAL = Machine()
"""The machine that plans are made for where no other is given."""

UNAVAILABLE_STEPS = 1e5
"""What kernels of a machine do not do: plans without it take less, however they do it."""
HOST_COPY_RATIO = 3.0
"""How many times more a copy in another order weighs beside the steps of kernels than on a CPU: its
entries go to the host and back. More would take orders of loops that store what no product is in.
Not measured."""


@cache
def machine_of(target: str) -> Machine:
    """Return the machine of a target's name.

    A GPU has no hash tables over several indices, and copies in another order are made on the host.
    """
    if target == NOMINAL.target.name:
        return NOMINAL
    machine = replace(NOMINAL, target=TARGETS[target])
    if not machine.is_gpu:
        return machine
    copies = NOMINAL.copies
    return machine.with_costs(
        hash_workspace_steps=UNAVAILABLE_STEPS,
        hash_key_steps=UNAVAILABLE_STEPS,
        transposed_entry_steps=copies.transposed_entry_steps * HOST_COPY_RATIO,
        transposed_row_steps=copies.transposed_row_steps * HOST_COPY_RATIO,
        sorted_entry_steps=copies.sorted_entry_steps * HOST_COPY_RATIO,
    )
