"""The coefficients of prices that are calibrated, and the machine whose costs they multiply.

    coefficients      iterations 0.3, merges 1.0, …
    step_seconds      1.5e-9  →  0.45e-9
    merge_steps       2.0 steps of 1.5 ns  →  6.7 steps of 0.45 ns, the same 3 ns

`COEFFICIENTS` is the one table: each cost of `Machine` stands in one row, or in `UNCHANGED`. A
price is a sum of counts times costs, so that it is linear in the factors as long as a plan stays
the same; `parts` reads the summands off prices of machines that differ a little, and nothing that
prices has to say them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace

from codegen.records import dataclass
from taco_py.compiler.cost.machine import Machine, machine_of
from taco_py.data.kept_calibration import AS_SHIPPED, Calibration, calibration_here
from taco_py.data.kernels import KERNELS
from taco_py.language.release import VERSION

STEP = "step_seconds"
RECORDS = ("loops", "copies", "dense", "calls", "units")


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A factor of costs that one part of a machine decides.

    of      what is counted
    costs   the fields of the machine's records that it multiplies; the first one stands for all
    """

    of: str
    costs: tuple[str, ...]


COEFFICIENTS: Mapping[str, Coefficient] = {
    "iterations": Coefficient(
        "an iteration of a loop that does not vectorise",
        (
            STEP, "scatter_steps", "held_row_steps", "row_lookup_steps", "row_lookup_loop_steps",
            "strided_product_seconds",
        ),
    ),
    "merges": Coefficient(
        "a coordinate in a loop that merges lists", ("merge_steps", "gallop_merge_steps",
        "misprediction_steps", "window_steps"),
    ),
    "writes": Coefficient(
        "an entry that is written out of order, or moved",
        (
            "row_workspace_steps", "row_addition_steps", "row_lookup_entry_steps",
            "hash_workspace_steps", "hash_key_steps", "transposed_entry_steps",
            "transposed_row_steps", "sorted_entry_steps", "folded_entry_steps",
            "temporary_entry_steps", "own_element_steps", "dense_root_row_steps",
            "marked_entry_steps", "placed_block_steps",
        ),
    ),
    "vectors": Coefficient(
        "an element in a loop that vectorises, or of a dense copy",
        (
            "dense_vector_steps", "vector_steps", "quick_byte_seconds", "misordered_array_steps",
            "contiguous_byte_seconds", "inner_loop_seconds", "lane_sum_seconds",
            "dense_temporary_element_steps", "near_element_steps", "near_row_steps",
            "cleared_element_steps", "gathered_element_steps", "copied_element_seconds",
            "far_copied_element_seconds",
        ),
    ),
    "lines": Coefficient(
        "a line from beyond the near caches",
        (
            "line_steps", "next_line_steps", "far_line_steps", "far_byte_seconds",
            "memory_byte_seconds", "far_strided_product_seconds",
            "memory_bytes_per_second",
        ),
    ),
    "products": Coefficient(
        "a product of dense tensors in tiles",
        (
            "dense_products_per_second", "tiled_byte_seconds", "packed_element_seconds",
            "strided_element_seconds", "tiled_matrix_seconds", "tile_result_byte_seconds",
        ),
    ),
    "functions": Coefficient(
        "a function such as exp",
        (
            "function_steps", "called_function_steps", "function_byte_seconds",
            "slow_byte_seconds", "compared_byte_seconds", "extremum_seconds",
        ),
    ),
    "calls": Coefficient(
        "a call of a kernel, of a library, of threads",
        (
            "kernel_call_seconds", "plan_step_seconds", "copy_call_seconds", "waking_seconds",
            "awake_seconds", "library_call_seconds", "library_matrix_seconds", "view_seconds",
            "conversion_seconds", "distribution_seconds",
        ),
    ),
}  # fmt: skip
UNCHANGED = frozenset(
    (
        "compile_seconds", "lined_up_call_seconds", "lined_up_least_seconds",
        "iteration_latency_seconds", "atomic_seconds",
    )
)  # fmt: skip
"""Costs that no probe measures: those of compiling, of copies on the way of a call, and of GPUs."""
SMALL = 1e-3
"""The part by which a factor is changed for `parts`."""


def with_factors(machine: Machine, factors: Mapping[str, float]) -> Machine:
    """Return a machine whose costs are so many times its own, in seconds.

    factors  by the names of `COEFFICIENTS`; those that are missing are 1
    """
    step = factors.get("iterations", 1.0)
    costs = {}
    for name, coefficient in COEFFICIENTS.items():
        factor = factors.get(name, 1.0)
        for cost in coefficient.costs:
            costs[cost] = cost_of(machine, cost) * _ratio(cost, factor, step)
    return machine.with_costs(**costs)


def _ratio(cost: str, factor: float, step: float) -> float:
    """Return the ratio of a cost's number after and before, in its own unit."""
    if cost.endswith("_steps"):
        return factor / step
    return 1 / factor if cost.endswith("_per_second") else factor


def cost_of(machine: Machine, name: str) -> float:
    """Return the cost of a machine that has a name, in the unit of the name."""
    records = (machine, *(getattr(machine, record) for record in RECORDS))
    return float(next(getattr(record, name) for record in records if hasattr(record, name)))


def seconds_of(machine: Machine, name: str) -> float:
    """Return the seconds of one operation that a coefficient counts.

    >>> seconds_of(Machine(), "merges") / Machine().step_seconds
    2.0
    """
    cost, *_ = COEFFICIENTS[name].costs
    value = cost_of(machine, cost)
    if cost.endswith("_steps"):
        return value * machine.step_seconds
    return 1 / value if cost.endswith("_per_second") else value


def parts(
    price: Callable[[Machine], float], machine: Machine, factors: Mapping[str, float]
) -> dict[str, float]:
    """Return the seconds in a price that each coefficient multiplies, by its name.

    price    the seconds of a plan on a machine, the same plan for all
    factors  near which they are read off

    They add up to the price: it is linear in the factors, but for what changes with a comparison of
    two of its own numbers.
    """
    seconds = {}
    for name in COEFFICIENTS:
        at = factors.get(name, 1.0)
        more, less = (
            price(with_factors(machine, {**factors, name: at * (1 + change)}))
            for change in (SMALL, -SMALL)
        )
        seconds[name] = max(0.0, (more - less) / (2 * SMALL) / at)
    return seconds


# ---------------------------------------------------------------- the machine of plans


def machine_here(target: str) -> Machine:
    """Return the machine of a target's name, by the calibration that there is of it.

    Kernels of GPUs have the price as shipped.
    """
    machine, calibration = machine_of(target), calibration_here()
    if calibration is None or machine.is_gpu or calibration.version != price_version():
        return machine
    key = "machine", target, calibration.identity
    calibrated: Machine | None = KERNELS.memo.get(key)
    if calibrated is None:
        calibrated = apply(machine, calibration)
        KERNELS.memo.put(key, calibrated)
    return calibrated


def apply(machine: Machine, calibration: Calibration) -> Machine:
    """Return a machine with the costs of a calibration."""
    factors = {name: f for name, f in calibration.factors if name in COEFFICIENTS}
    return replace(with_factors(machine, factors), price=calibration.label)


def as_shipped(machine: Machine) -> Machine:
    """Return a machine without the calibration of its costs."""
    return machine if machine.price == AS_SHIPPED else machine_of(machine.target.name)


def price_version() -> str:
    """Return the version of prices: factors of another one are not used."""
    shipped = Machine()
    costs = [(name, cost_of(shipped, name)) for name in costs_of(shipped)]
    return f"{VERSION} {hashlib.sha256(repr(costs).encode()).hexdigest()[:16]}"


def costs_of(machine: Machine) -> Iterable[str]:
    """Yield the names of a machine's costs: fields in steps, seconds, or so many a second."""
    yield STEP
    for record in RECORDS:
        for field in fields(getattr(machine, record)):
            if field.name.endswith(("_steps", "_seconds", "_per_second")):
                yield field.name
