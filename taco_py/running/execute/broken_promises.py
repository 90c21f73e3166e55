"""Which promise or need of a schedule does not hold, where a kernel found that one does not."""

from __future__ import annotations

from collections.abc import Mapping

from codegen import build
from codegen.ir import Const, Expr
from codegen.records import dataclass
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.errors import BoundError
from taco_py.language.notation.checks import accesses
from taco_py.language.problem import Problem
from taco_py.language.provenance.provenance import Provenance
from taco_py.language.provenance.relations import (
    Bound,
    BoundKind,
    Fuse,
    Interval,
    Pos,
    child_bounds,
)

_PROMISES = {
    BoundKind.MIN_EXACT: "begins at",
    BoundKind.MIN_CONSTRAINT: "begins at no less than",
    BoundKind.MAX_EXACT: "ends at",
    BoundKind.MAX_CONSTRAINT: "ends at no more than",
}


def broken_promise(
    problem: Problem,
    provenance: Provenance,
    sizes: Mapping[str, int],
    operands: Mapping[str, TensorData],
) -> BoundError | None:
    """Describe the first promise that does not hold; return None if all hold."""
    ranges = _Ranges(problem, provenance, sizes, operands)
    for fuse in provenance.counted_fusions:
        outer, inner = map(ranges.range, fuse.parents)
        if fuse.countable(outer, inner) != build.const(True):
            return _uncountable(fuse, outer, inner)
    for relation in provenance.relations:
        if isinstance(relation, Bound):
            interval = ranges.range(relation.parent)
            if relation.holds(interval) != build.const(True):
                return _error(relation, interval)
    return None


def _uncountable(fuse: Fuse, outer: Interval, inner: Interval) -> BoundError:
    return BoundError(
        f"Expected {fuse.fused} to have at most 2^62 values, of which {fuse} makes tiles, found "
        f"{_number(outer.length)} of {fuse.outer} and {_number(inner.length)} of {fuse.inner}",
        hint=f"fuse less, or make tiles of positions: pos({fuse.fused},p,…) with an operand that "
        f"stores {fuse.fused}",
    )


def _error(bound: Bound, interval: Interval) -> BoundError:
    begins = bound.kind in (BoundKind.MIN_EXACT, BoundKind.MIN_CONSTRAINT)
    edge = interval.lo if begins else interval.hi
    value = _number(edge)
    return BoundError(
        f"Expected that the range of {bound.parent} {_PROMISES[bound.kind]} {bound.value}, as "
        f"{bound} promises, found that it {'begins' if begins else 'ends'} at {value}",
        hint=f"leave the command out, or promise {value}",
    )


def _number(value: Expr) -> int | Expr:
    return int(value.value.real) if isinstance(value, Const) else value


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Ranges of variables for given operands."""

    problem: Problem
    provenance: Provenance
    sizes: Mapping[str, int]
    operands: Mapping[str, TensorData]

    def range(self, variable: str) -> Interval:
        relation = self.provenance.above(variable)
        zero = build.const(0)
        if relation is None:
            return Interval(zero, build.const(self.sizes[variable]))
        if isinstance(relation, Pos):
            return Interval(zero, build.const(self.entries(relation)))
        return child_bounds(relation, variable, tuple(map(self.range, relation.parents)))

    def entries(self, pos: Pos) -> int:
        """Count how many positions the last of an operand's levels has that `pos` runs over."""
        roots = self.provenance.roots(pos.parent)
        (access,) = {
            access
            for access in accesses(self.problem.assignment)
            if pos.means(access.tensor, access.indices, roots)
        }
        form = self.problem.type_of(pos.tensor).format
        level = form.mode_order.index(access.indices.index(roots[-1]))
        crd = self.operands[pos.tensor].levels[level].crd
        return 0 if crd is None else len(crd)
