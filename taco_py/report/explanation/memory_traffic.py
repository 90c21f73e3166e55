"""How many bytes a kernel moves into each cache, for explain().

An operand with the outermost loop's index comes in as that loop goes on: once. Another one is used
again in every iteration of it: it comes in once where it fits into the cache, else an element an
iteration of the innermost loop, or a line where these are no neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from codegen.machine.target import Target
from codegen.types import scalar
from polyhedral.nests.traffic import traffic_line
from taco_py.compiler.cost.machine import NOMINAL, Machine
from taco_py.compiler.ways.ways import way_of
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access
from taco_py.planner.ir.nodes import KernelStep
from taco_py.running.execute.run import sizes_of
from taco_py.running.execute.work import work_of


def describe_traffic(
    step: KernelStep,
    tensors: Mapping[str, TensorData] | None,
    target: Target,
    machine: Machine = NOMINAL,
) -> str:
    """Return a line for a kernel whose way knows; nothing where an operand is not known."""
    data_of = {n: (tensors or {}).get(step.source(n)) for n, _ in step.problem.operands}
    present = {name: data for name, data in data_of.items() if data is not None}
    if not data_of or len(present) < len(data_of) or not step.schedule.orders[0]:
        return ""
    way = way_of(step.schedule.make)
    if way.traffic is not None:
        return way.traffic(step.problem, step.schedule.make, sizes_of(step, present), target)
    return (
        _of_loops(step, present, target.processor.cache_bytes, machine.loops.line_bytes)
        if way.in_loops
        else ""
    )


def _of_loops(
    step: KernelStep, tensors: Mapping[str, TensorData], caches: Sequence[int], line: int
) -> str:
    work = work_of(step, tensors)
    used = tuple(dict.fromkeys(accesses(step.problem.assignment)))
    result_bytes = _written_bytes(step, tensors, work)
    amounts = [
        result_bytes
        + sum(_read(step, access, tensors[access.tensor], work, cache, line) for access in used)
        for cache in caches
    ]
    return f"{traffic_line(amounts)}, at most"


def _read(
    step: KernelStep, access: Access, data: TensorData, work: int, cache: int, line: int
) -> int:
    """Return the bytes of an operand that come into a cache, for its size and lines."""
    order = step.schedule.orders[0]
    stored = data.format.stored(access.indices)
    size = bytes_of(data)
    if size <= cache or not stored or stored[0] == order[0]:
        return size
    return work * (data.values.itemsize if stored[-1] == order[-1] else line)


def _written_bytes(step: KernelStep, tensors: Mapping[str, TensorData], work: int) -> int:
    target, result = step.problem.assignment.target, step.problem.result
    sizes = sizes_of(step, tensors)
    places = prod(sizes[index] for index in target.indices)
    count = places if result.format.is_dense else min(places, work)
    return count * scalar(result.dtype).itemsize


def bytes_of(data: TensorData) -> int:
    """Return the bytes of the values and coordinates of a tensor."""
    arrays = (array for level in data.levels for array in (level.pos, level.crd))
    return data.values.nbytes + sum(array.nbytes for array in arrays if array is not None)
