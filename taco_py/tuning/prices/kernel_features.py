"""What is counted of a kernel before it is compiled: the numbers that learned prices depend on.

    y[i] = A[i,j] * x[j]  by loops(i,j)   →   log seconds of the price, log entries, entries of a
                                              row, bytes, vectors, threads, …

Counts stand as logarithms to the base 2: a tree asks whether there are more than so many. A number
that a kernel does not have, as the skew of rows without a sparse operand, is `ABSENT`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from math import log2, nan, prod

import numpy as np
from numpy.typing import NDArray

from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.estimate import Statistics, result_size
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.cost.spread import Entries, Spread
from taco_py.compiler.dataflow.build_dataflow import is_quick
from taco_py.compiler.schedule.commands import (
    Assemble,
    MergeBy,
    Parallelize,
    Precompute,
    Unroll,
    Vectorize,
)
from taco_py.compiler.ways.way import Way
from taco_py.compiler.ways.ways import WAYS, way_of
from taco_py.language.legal.stored import is_full, is_sparse
from taco_py.language.legal.types import is_complex, is_real
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.tree import all_calls, all_reductions
from taco_py.language.provenance.relations import Split
from taco_py.planner.ir.goal import statistics
from taco_py.planner.ir.nodes import KernelStep, Operand
from taco_py.planner.price import as_sum

ABSENT = -1000.0
"""Stands for a number that there is not: less than all others."""
SAMPLE = 1 << 12
"""Neighbouring entries that are looked at for their distance."""
COMMANDS = (Split, Unroll, Vectorize, Precompute, MergeBy, Assemble, Parallelize)


class KernelFacts:
    """A kernel of a plan with the facts of its operands; what features ask of it is found once.

    seconds  its analytic price
    threads  that may run it
    """

    def __init__(
        self,
        step: KernelStep,
        operands: Mapping[str, Operand],
        machine: Machine,
        seconds: float,
        threads: int,
    ) -> None:
        self.step, self.operands, self.machine = step, operands, machine
        self.seconds, self.threads = seconds, threads
        self.problem = step.problem
        self.target = step.problem.assignment.target
        values = (assignment.value for assignment in step.problem.assignments)
        self.reads = tuple(dict.fromkeys(a for value in values for a in accesses(value)))

    @cached_property
    def stats(self) -> Statistics:
        """Return the sizes and patterns of the operands."""
        return statistics(self.problem.assignment, self.operands, self.machine)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Return the loops of the first term, outermost first."""
        orders = self.step.schedule.orders
        return orders[0] if orders else ()

    @cached_property
    def rounds(self) -> tuple[float, ...]:
        """Return the iterations of each loop of the first term, outermost first."""
        term = as_sum(self.problem, split_terms(self.problem.assignment.value)[0])
        indices = [index for index in self.order if index in self.stats.sizes]
        return tuple(
            self.stats.iterations(term.body, frozenset(indices[: depth + 1]))
            for depth in range(len(indices))
        )

    @cached_property
    def volume(self) -> float:
        """Return the number of coordinates of all indices together."""
        return self.stats.volume(dict.fromkeys((*self.target.indices, *self.order)))

    @cached_property
    def sparse(self) -> tuple[Access, ...]:
        """Return the accesses to sparse operands, that with most entries first."""
        reads = [a for a in self.reads if is_sparse(self.problem.type_of(a.tensor).format)]
        return tuple(sorted(reads, key=lambda access: -self.operands[access.tensor].nnz))

    @cached_property
    def main(self) -> Operand | None:
        """Return the sparse operand with most entries; None where all are dense."""
        return self.operands[self.sparse[0].tensor] if self.sparse else None

    @cached_property
    def dense_bytes(self) -> tuple[float, ...]:
        """Return the bytes of each dense operand, the largest first."""
        reads = [a for a in self.reads if is_full(self.problem.type_of(a.tensor).format)]
        sizes = {a.tensor: self._bytes(self.operands[a.tensor]) for a in reads}
        return tuple(sorted(sizes.values(), reverse=True))

    @cached_property
    def sparse_bytes(self) -> float:
        """Return the bytes of values and coordinates of all sparse operands."""
        names = dict.fromkeys(access.tensor for access in self.sparse)
        return sum(self._bytes(self.operands[name]) for name in names)

    @staticmethod
    def _bytes(operand: Operand) -> float:
        type, item = operand.type, np.dtype(operand.type.element).itemsize
        lists = sum(not level.full for level in type.format.levels)
        return operand.stored * (item + lists * np.dtype(type.index_dtype).itemsize)

    @cached_property
    def result_entries(self) -> float:
        """Return the elements of the result that are stored, expected."""
        if is_full(self.problem.result.format):
            return self.stats.volume(dict.fromkeys(self.target.indices))
        terms = split_terms(self.problem.assignment.value)
        keep = self.target.indices
        return sum(result_size(self.stats, as_sum(self.problem, t).body, keep) for t in terms)

    @property
    def result_bytes(self) -> float:
        """Return the bytes of the values of the result."""
        return self.result_entries * np.dtype(self.problem.result.dtype).itemsize

    def spread(self, level: int) -> Spread | None:
        """Return the distribution of the main operand's entries over the mode of a level."""
        entries = None if self.main is None else self.main.entries
        if entries is None or self.main is None:
            return None
        order = self.main.type.format.mode_order
        mode = order[level] if level < len(order) else order[-1]
        return entries.spread(mode) if entries.has_counts(mode) else None

    @cached_property
    def rows(self) -> Spread | None:
        """Return the distribution over the outermost level of the main operand."""
        return self.spread(0)

    @cached_property
    def columns(self) -> Spread | None:
        """Return the distribution over the innermost level of the main operand."""
        return None if self.main is None else self.spread(len(self.main.shape) - 1)

    @cached_property
    def distance(self) -> float:
        """Return how far the innermost coordinates of neighbouring entries lie apart."""
        entries = None if self.main is None else self.main.entries
        return nan if entries is None else entries.recall("distance", lambda: _distance(entries))

    def counts(self, kind: type) -> float:
        """Count the commands of a kind in the schedule."""
        return float(sum(isinstance(command, kind) for command in self.step.schedule.commands))

    def is_unit(self, access: Access) -> bool:
        """Tell whether the innermost loop runs along the neighbours of an array or list."""
        stored = self.problem.type_of(access.tensor).format.stored(access.indices)
        return bool(self.order and stored and stored[-1] == self.order[-1])

    @cached_property
    def strided(self) -> tuple[Access, ...]:
        """Return the dense operands that the innermost loop visits in strides."""
        dense = [a for a in self.reads if is_full(self.problem.type_of(a.tensor).format)]
        inner = self.order[-1:]
        return tuple(a for a in dense if set(inner) & set(a.indices) and not self.is_unit(a))

    @cached_property
    def gathered(self) -> tuple[Access, ...]:
        """Return the dense operands that are read at coordinates of a sparse one."""
        lists = {i for a in self.sparse for i in a.indices}
        dense = [a for a in self.reads if is_full(self.problem.type_of(a.tensor).format)]
        return tuple(a for a in dense if lists & set(a.indices))


def _distance(entries: Entries) -> float:
    """Return the mean distance of neighbouring coordinates of the innermost list, of a sample."""
    lists = [level.crd for level in entries.data.levels if level.crd is not None]
    if not lists or len(lists[-1]) < 2:
        return 0.0
    start = max(0, (len(lists[-1]) - SAMPLE) // 2)
    some = np.asarray(lists[-1][start : start + SAMPLE]).astype(np.int64)
    return float(np.median(np.abs(np.diff(some))))


def _log(value: float) -> float:
    """Return the logarithm of a count; 0 for one and less."""
    return log2(value) if value > 1.0 else 0.0


def _of_spread(get: Callable[[Spread], float]) -> Callable[[Spread | None], float]:
    return lambda spread: nan if spread is None else get(spread)


_mean = _of_spread(lambda s: _log(s.mean))
_most = _of_spread(lambda s: _log(s.most / max(s.mean, 1e-9)))
_skew = _of_spread(lambda s: _log(s.square / max(s.mean, 1e-9)))
_present = _of_spread(lambda s: s.distinct / max(s.size, 1))


def _loop(facts: KernelFacts, depth: int) -> float:
    """Return the iterations of a loop inside an iteration of those around it."""
    rounds = (1.0, *facts.rounds)
    place = depth if depth >= 0 else len(rounds) + depth
    if not 0 < place < len(rounds) + (depth < 0):
        return nan
    return _log(rounds[place] / max(rounds[place - 1], 1e-9))


Feature = Callable[[KernelFacts], float]


def _of_way(way: Way) -> Feature:
    return lambda facts: float(way_of(facts.step.schedule.make) is way)


def _of_commands(kind: type) -> Feature:
    return lambda facts: facts.counts(kind)


FEATURES: dict[str, Feature] = {
    "price": lambda f: log2(max(f.seconds, 1e-12)),
    "threads": lambda f: float(f.threads),
    "serial": lambda f: float(f.step.schedule.serial),
    **{f"way {name}": _of_way(way) for name, way in WAYS.items() if not way.on_gpu},
    "way parameters": lambda f: _log(prod(f.step.schedule.make.parameters or (1,))),
    "reuses": lambda f: float(way_of(f.step.schedule.make).reuses),
    # loops
    "loops": lambda f: float(len(f.order)),
    "terms": lambda f: float(len(split_terms(f.problem.assignment.value))),
    "iterations": lambda f: _log(f.rounds[-1] if f.rounds else 1.0),
    "volume": lambda f: _log(f.volume),
    "iterations of a coordinate": lambda f: log2(
        max((f.rounds[-1] if f.rounds else 1.0) / max(f.volume, 1.0), 1e-12)
    ),
    "outer loop": lambda f: _loop(f, 1),
    "second loop": lambda f: _loop(f, 2),
    "inner loop": lambda f: _loop(f, -1),
    **{kind.__name__.lower(): _of_commands(kind) for kind in COMMANDS},
    "static sizes": lambda f: float(len(f.problem.static)),
    "rows looked up": lambda f: float(len(f.step.looked_up)),
    # operations
    "calls": lambda f: float(sum(1 for _ in all_calls(f.problem.assignment.value))),
    "functions": lambda f: float(
        sum(not is_quick(c.operator) for c in all_calls(f.problem.assignment.value))
    ),
    "reductions": lambda f: float(sum(1 for _ in all_reductions(f.problem.assignment.value))),
    "values": lambda f: float(len(f.problem.assignments)),
    "item": lambda f: float(np.dtype(f.problem.result.dtype).itemsize),
    "complex": lambda f: float(is_complex(f.problem.result.dtype)),
    "real": lambda f: float(is_real(f.problem.result.dtype)),
    # the result
    "result order": lambda f: float(len(f.target.indices)),
    "result dense": lambda f: float(is_full(f.problem.result.format)),
    "result entries": lambda f: _log(f.result_entries),
    "result along inner loop": lambda f: float(f.is_unit(f.target)),
    "result waits": lambda f: float(_waits(f)),
    "entries of a result's": lambda f: _log(
        (f.rounds[-1] if f.rounds else 1.0) / max(f.result_entries, 1.0)
    ),
    # dense operands
    "dense operands": lambda f: float(len(f.dense_bytes)),
    "dense bytes": lambda f: _log(sum(f.dense_bytes)),
    "largest dense bytes": lambda f: _log(f.dense_bytes[0] if f.dense_bytes else 0.0),
    "strided": lambda f: float(len(f.strided)),
    "strided bytes": lambda f: _log(sum(_operand_bytes(f, a) for a in f.strided)),
    "gathered": lambda f: float(len(f.gathered)),
    "gathered bytes": lambda f: _log(sum(_operand_bytes(f, a) for a in f.gathered)),
    "gathered along inner loop": lambda f: float(sum(f.is_unit(a) for a in f.gathered)),
    # sparse operands
    "sparse operands": lambda f: float(len(f.sparse)),
    "sparse bytes": lambda f: _log(f.sparse_bytes),
    "entries": lambda f: nan if f.main is None else _log(f.main.nnz),
    "density": lambda f: (
        nan if f.main is None else log2(max(f.main.nnz, 0.5) / max(prod(f.main.shape), 1))
    ),
    "lists": lambda f: (
        nan if f.main is None else float(sum(not v.full for v in f.main.type.format.levels))
    ),
    "row entries": lambda f: _mean(f.rows),
    "row most": lambda f: _most(f.rows),
    "row skew": lambda f: _skew(f.rows),
    "rows present": lambda f: _present(f.rows),
    "column entries": lambda f: _mean(f.columns),
    "column skew": lambda f: _skew(f.columns),
    "distance": lambda f: _log(f.distance + 1.0),
    "bytes": lambda f: _log(_all_bytes(f)),
    "bytes past near cache": lambda f: _log(_all_bytes(f) / f.machine.loops.near_cache_bytes),
    "bytes past far cache": lambda f: _log(_all_bytes(f) / f.machine.loops.far_cache_bytes),
    # copies (`copy_features`)
    **dict.fromkeys(("step reformat", "step gather", "step cast", "step locate"), lambda _: 0.0),
    **dict.fromkeys(
        ("outer size", "outer size before", "lists of the copy", "order changes"), lambda _: nan
    ),
}
"""What is counted, by names that model files and `explain()` have."""
MONOTONE = ("bytes", "iterations", "sparse bytes", "dense bytes")
"""Counts of which more never take less time, all others equal."""


def _waits(facts: KernelFacts) -> bool:
    """Tell whether the result is added to in another order than it is stored."""
    stored = facts.problem.result.format.stored(facts.target.indices)
    return tuple(facts.order[: len(stored)]) != tuple(stored)


def _operand_bytes(facts: KernelFacts, access: Access) -> float:
    operand = facts.operands[access.tensor]
    return operand.stored * np.dtype(operand.type.element).itemsize


def _all_bytes(facts: KernelFacts) -> float:
    return sum(facts.dense_bytes) + facts.sparse_bytes + facts.result_bytes


def features_of(facts: KernelFacts) -> NDArray[np.float64]:
    """Return the numbers of `FEATURES` for a kernel."""
    return np.fromiter(_numbers(facts), np.float64, len(FEATURES))


def _numbers(facts: KernelFacts) -> Iterator[float]:
    for feature in FEATURES.values():
        value = float(feature(facts))
        yield value if abs(value) < 1e30 else ABSENT
