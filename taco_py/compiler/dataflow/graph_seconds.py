"""The expected seconds of a dataflow graph: what its instructions take, and the bytes that move.

    over j:  v = load S[i,j];  e = exp v;  z = reduce add e
    →  slabs · (a pass + the lanes of z) + elements · (load, add: quick; exp: a function)
       + bytes that come from beyond the near caches

Instructions run on whole vectors, so each takes as long as the bytes of its type say. Counts are of
one thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from math import frexp, prod
from types import MappingProxyType
from typing import assert_never

import numpy as np

from codegen.libraries.scalar_functions import c_function
from codegen.records import dataclass
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.dataflow.moved_bytes import (
    Caches,
    Sizes,
    count_slabs,
    sizes_in_slab,
    traffic,
)
from taco_py.compiler.dataflow.nodes import (
    Compute,
    Dataflow,
    Instruction,
    Load,
    Memory,
    Pass,
    Pick,
    Prefetch,
    Reduce,
    Store,
    value_made,
    values_read,
)
from taco_py.language.notation.nodes import Literal
from taco_py.language.notation.operators import Operator

NEAR_BYTES = 1 << 20
"""Bytes of a slab that its passes read again from a cache of the core."""
VECTOR_BYTES = 64
"""Bytes of the vectors in which loops run."""
SLOW = ("/", "%", "sqrt")
"""Operators of one instruction that takes as long as many quick ones."""
EXTREMA = ("min", "max")
"""Operators whose reductions compare, with numbers that are none (NaN) among them."""
LENGTHS = MappingProxyType({"exp": 1.0, "expm1": 1.6, "log": 2.0, "log1p": 2.5, "log2": 2.5})
LONG = 2.8
"""How many times as long as an exponential a function takes, and any other. Measured: 1.5 to 1.8,
1.7 to 2.2 and 2.2 to 2.8 times; sines 2.2 to 3.1, tanh 2.5 to 3.3, erf 2.4 to 3.4, sigmoid and
cube roots 2.6 to 3.9."""


@dataclass(frozen=True, slots=True)
class Work:
    """What the instructions of a kernel do.

    passes   runs of loops inside of slabs
    parts    of these, parts of rows: their first line follows no line that was read before
    lanes    sums of such a loop, whose lanes are added up or wait for those of the last run
    extrema  minima and maxima of such a loop
    quick    bytes that loads and quick operators make
    compared  bytes that minima and maxima of a loop are taken of
    slow     bytes that divisions and roots make
    functions  bytes that functions of tens of instructions make, in vectors
    called   elements of functions that no vector code computes
    """

    passes: float = 0.0
    parts: float = 0.0
    lanes: float = 0.0
    extrema: float = 0.0
    quick: float = 0.0
    compared: float = 0.0
    slow: float = 0.0
    functions: float = 0.0
    called: float = 0.0

    def __add__(self, other: Work) -> Work:
        names = [field.name for field in fields(self)]
        return Work(*(getattr(self, name) + getattr(other, name) for name in names))

    def times(self, count: float) -> Work:
        """Return the work done so many times."""
        return Work(*(getattr(self, field.name) * count for field in fields(self)))

    def seconds(self, machine: Machine, moving: float = 0.0) -> float:
        """Return the seconds that it takes, with bytes that move beside its instructions.

        moving  the seconds of these bytes: loops compute while lines are on their way
        """
        loops = machine.loops
        overhead = (
            self.passes * machine.dense.inner_loop_seconds
            + self.parts * loops.line_steps * machine.step_seconds
            + self.lanes * machine.dense.lane_sum_seconds
            + self.extrema * loops.extremum_seconds
        )
        computing = (
            self.quick * loops.quick_byte_seconds
            + self.compared * loops.compared_byte_seconds
            + self.slow * loops.slow_byte_seconds
            + self.functions * loops.function_byte_seconds
            + self.called * loops.called_function_steps * machine.step_seconds
        )
        return overhead + max(computing, moving)


def seconds_of_graph(graph: Dataflow, sizes: Sizes, machine: Machine) -> float:
    """Return the seconds of one thread for a graph at sizes of its indices."""
    caches = Caches(NEAR_BYTES, machine.loops.far_cache_bytes)
    amount = traffic(graph, sizes, caches).dram
    moving = moving_seconds(amount, array_bytes(graph, sizes), machine)
    work = work_of_graph(graph, sizes, machine.loops.near_cache_bytes)
    return work.seconds(machine, moving)


def moving_seconds(amount: float, footprint: float, machine: Machine) -> float:
    """Return the seconds of bytes that move from and to arrays of so many bytes together."""
    loops = machine.loops
    if footprint <= loops.near_cache_bytes:
        return 0.0
    far = footprint <= loops.far_cache_bytes
    return amount * (loops.far_byte_seconds if far else loops.memory_byte_seconds)


def array_bytes(graph: Dataflow, sizes: Sizes) -> float:
    """Return the bytes of all arrays of a graph that are in main memory."""
    return sum(
        np.dtype(buffer.dtype).itemsize * prod(sizes[index] for index in buffer.indices)
        for buffer in graph.buffers
        if buffer.memory is Memory.DRAM
    )


def work_of_graph(graph: Dataflow, sizes: Sizes, near_bytes: float = 0.0) -> Work:
    """Return the work of all instructions.

    near_bytes  of all arrays up to which lines are in a near cache already
    """
    total, dtypes = Work(), {buffer.name: buffer.dtype for buffer in graph.buffers}
    near = array_bytes(graph, sizes) <= near_bytes
    for map in graph.maps:
        inner, slabs = sizes_in_slab(map, sizes), count_slabs(map, sizes)
        blocks = {index.name for index in map.slab if index.block > 1}
        for one in map.passes:
            work = work_of_pass(one, inner, dtypes)
            if not near and {*one.over[-1:]} & blocks:
                work += Work(parts=work.passes * _count_rows(graph, one))
            total += work.times(slabs)
    return total


def _count_rows(graph: Dataflow, one: Pass) -> int:
    """Count the matrices in main memory that a pass goes through along its innermost loop."""
    read = {step.buffer for step in one.body if isinstance(step, Load | Store)}
    arrays = [graph.buffer(name) for name in read]
    return sum(
        array.memory is Memory.DRAM and len(array.indices) > 1 and one.over[-1] in array.indices
        for array in arrays
    )


def work_of_pass(one: Pass, inner: Sizes, dtypes: Mapping[str, str]) -> Work:
    """Return the work of a pass over one slab: of each instruction in the loops that it needs.

    over i,j:  b / t where neither has j: as often as i alone, and one element of a vector
    """
    runs = prod(inner[index] for index in one.over[:-1])
    total, depths = Work(passes=runs), dict[str, int]()
    for step in one.body:
        depth = _depth_of(step, one.over, depths)
        if isinstance(step, Prefetch):
            continue
        name = value_made(step)
        if name is not None:
            depths[name] = 0 if isinstance(step, Reduce) else depth
        if depth < len(one.over):
            rounds = prod(inner[index] for index in one.over[:depth])
            total += work_of_step(step, inner, dtypes, VECTOR_BYTES).times(rounds)
            continue
        rounds = runs * inner[one.over[-1]] if one.over else 1.0
        total += work_of_step(step, inner, dtypes).times(rounds)
        total += _work_at_ends(step, one, runs)
    return total


def _depth_of(step: Instruction, over: tuple[str, ...], depths: Mapping[str, int]) -> int:
    """Return how many of the loops of a pass an instruction depends on, the outermost first."""
    if isinstance(step, Reduce | Store):
        return len(over)
    values = max((depths.get(name, 0) for name in values_read(step)), default=0)
    indices = step.indices if isinstance(step, Load | Pick) else ()
    places = [at for at, index in enumerate(over, 1) if index in indices]
    return max(values, max((depths.get(index, 0) for index in indices), default=0), *places, 0)


def _work_at_ends(step: Instruction, one: Pass, runs: float) -> Work:
    """Return the work at the end of a loop, where lanes of a vector are combined."""
    if isinstance(step, Reduce) and one.over:
        return Work(extrema=1.0) if step.operator.c_operator in EXTREMA else Work(lanes=1.0)
    if isinstance(step, Store) and step.operator is not None and one.over:
        return Work(lanes=runs)
    return Work()


def work_of_step(
    step: Instruction, inner: Sizes, dtypes: Mapping[str, str], least: int = 0
) -> Work:
    """Return the work of one run of an instruction.

    least  bytes that it takes as long as, where it makes one element of a vector
    """
    match step:
        case Reduce(_, dtype, operator) if operator.c_operator in EXTREMA:
            return Work(compared=_size(dtype, least))
        case Compute(_, dtype, operator, (_, Literal(value))) if _is_power(operator, value):
            return Work(quick=_size(dtype, least))
        case Compute(_, dtype, operator) | Reduce(_, dtype, operator):
            return work_of_operator(operator, dtype, least)
        case Load(_, dtype, _, indices) if any(index not in inner for index in indices):
            return Work(slow=_size(dtype, least))
        case Load(_, dtype) | Pick(_, dtype):
            return Work(quick=_size(dtype, least))
        case Store(operator=None) | Prefetch():
            return Work()
        case Store(buffer, _, _, operator):
            assert operator is not None
            loaded = Work(quick=_size(dtypes[buffer], least))
            return loaded + work_of_operator(operator, dtypes[buffer], least)
    assert_never(step)


def _is_power(operator: Operator, value: object) -> bool:
    """Tell whether a quotient by a number is a product with another, as by a power of 2."""
    return operator.c_operator == "/" and isinstance(value, float) and abs(frexp(value)[0]) == 0.5


def _size(dtype: str, least: int) -> float:
    return float(max(np.dtype(dtype).itemsize, least))


def work_of_operator(operator: Operator, dtype: str, least: int = 0) -> Work:
    """Return the work of an operator that makes one element of a type."""
    return _work_of(operator.c_operator, dtype, _size(dtype, least))


def _work_of(name: str, dtype: str, size: float) -> Work:
    if name in SLOW:
        return Work(slow=size)
    function = c_function(name, dtype)
    if function is None or (function.vectorizes and not function.is_long):
        return Work(quick=size)
    return Work(functions=size * LENGTHS.get(name, LONG)) if function.is_long else Work(called=1.0)
