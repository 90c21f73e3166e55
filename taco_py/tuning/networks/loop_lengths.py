"""How many iterations the loops of a scheduled kernel are expected to make.

loops(i,j), split(i,i0,i1,32)  of 1000 rows with 5 entries each   →   i0 32, i 32, j 5
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, prod

from taco_py.compiler.concrete.terms import split_terms
from taco_py.language.provenance.provenance import Provenance
from taco_py.language.provenance.relations import Bound, Coord, Divide, Fuse, Pos, Rename, Split
from taco_py.planner.ir.goal import real_statistics
from taco_py.planner.price import as_sum
from taco_py.tuning.prices.kernel_features import KernelFacts


class LoopLengths:
    """The iterations of the loops of one kernel; what is asked twice is counted once."""

    def __init__(self, facts: KernelFacts, provenance: Provenance) -> None:
        problem = facts.problem
        self.facts, self.provenance = facts, provenance
        self.stats = real_statistics(problem.assignment, facts.operands, facts.machine)
        self.sizes = self.stats.sizes
        self.body = as_sum(problem, split_terms(problem.assignment.value)[0]).body
        self.visits: dict[frozenset[str], float] = {}

    def of(self, index: str, outer: Iterable[tuple[str, float]]) -> float:
        """Return the iterations of a loop in an iteration of those around it.

        outer  the loops around it, the outermost first, with their iterations
        """
        enclosing = tuple(outer)
        if self.provenance.is_derived(index):
            return max(1.0, self.extent(index))
        before = frozenset(name for name, _ in enclosing if name in self.sizes)
        tiles = prod(
            count
            for name, count in enclosing
            if name not in self.sizes and index in self.provenance.roots(name)[:1]
        )
        return max(1.0, self._visited(before | {index}) / self._visited(before) / tiles)

    def _visited(self, indices: frozenset[str]) -> float:
        """Return the combinations of coordinates of some indices that loops come to."""
        some = frozenset(index for index in indices if index in self.sizes)
        if some not in self.visits:
            self.visits[some] = max(self.stats.iterations(self.body, some), 1e-9)
        return self.visits[some]

    def extent(self, variable: str) -> float:
        """Return the values of a variable, all tiles around it taken alike."""
        match self.provenance.above(variable):
            case None:
                return float(self.sizes.get(variable, 1.0))
            case Split(parent=parent, outer=outer, size=size):
                extent = self.extent(parent)
                return ceil(extent / size) if variable == outer else min(size, extent)
            case Divide(parent=parent, outer=outer, parts=parts):
                extent = self.extent(parent)
                return min(parts, extent) if variable == outer else ceil(extent / parts)
            case Fuse(outer=outer, inner=inner):
                return self.extent(outer) * self.extent(inner)
            case Pos(tensor=tensor):
                operand = self.facts.operands.get(tensor)
                return 1.0 if operand is None else max(1.0, operand.nnz)
            case Bound(parent=parent) | Coord(parent=parent) | Rename(parent=parent):
                return self.extent(parent)

    def step(self, variable: str) -> float:
        """Return the coordinates that an iteration of a loop goes on by."""
        match self.provenance.above(variable):
            case Split(parent=parent, outer=outer, size=size):
                return self.step(parent) * (size if variable == outer else 1)
            case Divide(parent=parent, outer=outer, parts=parts):
                tile = ceil(self.extent(parent) / parts)
                return self.step(parent) * (tile if variable == outer else 1)
            case Bound(parent=parent) | Rename(parent=parent):
                return self.step(parent)
        return 1.0
