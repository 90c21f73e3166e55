"""The provenance graph: which loop variables derive from which indices, and how their values are
recovered."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import pairwise
from math import ceil

from codegen.records import dataclass
from taco_py.language.provenance.relations import (
    Bound,
    BoundKind,
    Coord,
    Divide,
    Fuse,
    Pos,
    Relation,
    Rename,
    Split,
)


@dataclass(frozen=True, slots=True)
class Provenance:
    """Relations of a schedule, each after the relations that define its parents. Without any, every
    index is a loop."""

    relations: tuple[Relation, ...] = ()

    def with_relation(self, relation: Relation) -> Provenance:
        return Provenance((*self.relations, relation))

    def below(self, variable: str) -> Relation | None:
        """Return the relation that replaces `variable` by its children; a `Rename` replaces
        nothing."""
        replacing = (r for r in self.relations if not isinstance(r, Rename))
        return next((r for r in replacing if variable in r.parents), None)

    def above(self, variable: str) -> Relation | None:
        """Return the relation that defines `variable`; None for an index of the notation."""
        return next((r for r in self.relations if variable in r.children), None)

    @property
    def has_tiles(self) -> bool:
        """Tell whether a split or a divide cuts an index, or a variable, into tiles."""
        return any(isinstance(relation, Split | Divide) for relation in self.relations)

    def count_values(self, variable: str, sizes: Mapping[str, float]) -> float:
        """Count the values of a variable: the tiles of its parent, or the coordinates of a tile.

        sizes  of the indices
        """
        relation = self.above(variable)
        if relation is None:
            return sizes.get(variable, 1.0)
        count = self.count_values(relation.parents[0], sizes)
        match relation:
            case Split(size=size):
                return ceil(count / size) if variable == relation.outer else float(size)
            case Divide(parts=parts):
                return float(parts) if variable == relation.outer else ceil(count / parts)
        return count

    @property
    def counted_fusions(self) -> tuple[Fuse, ...]:
        """Return the fusions whose values are counted, because they are tiled or bounded.

        A loop over pairs of stored coordinates counts nothing, nor does a loop over positions.
        """
        counting = [r for r in self.relations if isinstance(r, Split | Divide | Bound)]
        fusions = (fuse for relation in counting for fuse in self._fusions_above(relation.parent))
        return tuple(dict.fromkeys(fusions))

    def _fusions_above(self, variable: str) -> Iterator[Fuse]:
        relation = self.above(variable)
        if relation is None or isinstance(relation, Pos):
            return
        for parent in relation.parents:
            yield from self._fusions_above(parent)
        if isinstance(relation, Fuse):
            yield relation

    def most(self, variable: str) -> int | None:
        """Return an upper bound of the number of values of `variable`, None where relations imply
        none."""
        relation = self.above(variable)
        match relation:
            case Split(parent=parent, inner=inner, size=size):
                if variable == inner:
                    return size
                length = self.most(parent)
                return None if length is None else -(-length // size)
            case Divide(parent=parent, outer=outer, parts=parts):
                if variable == outer:
                    return parts
                length = self.most(parent)
                return None if length is None else -(-length // parts)
            case Bound(value=value, kind=BoundKind.MAX_EXACT | BoundKind.MAX_CONSTRAINT):
                return value
            case Bound(parent=parent) | Rename(parent=parent):
                return self.most(parent)
        return None

    def renamed(self, workspace: str) -> dict[str, str]:
        """Return the names that variables take in the loops that fill `workspace`.

        Each key is a loop variable, each value the name of its copy.
        """
        renames = (r for r in self.relations if isinstance(r, Rename))
        return {r.parent: r.child for r in renames if r.workspace == workspace}

    def leaves(self, variable: str) -> tuple[str, ...]:
        """Return the loop variables that replace `variable`; itself if nothing does."""
        relation = self.below(variable)
        if relation is None:
            return (variable,)
        leaves = (leaf for child in relation.children for leaf in self.leaves(child))
        return tuple(dict.fromkeys(leaves))

    def leaf(self, index: str, outer: Container[str]) -> str:
        """Return the loop variable that stands for `index` inside loops over `outer`."""
        leaves = self.leaves(index)
        return next((leaf for leaf in leaves if leaf not in outer), leaves[-1])

    def roots(self, variable: str) -> tuple[str, ...]:
        """Return the indices of the notation that `variable` derives from, outer ones first."""
        relation = self.above(variable)
        if relation is None:
            return (variable,)
        roots = (root for parent in relation.parents for root in self.roots(parent))
        return tuple(dict.fromkeys(roots))

    def variables(self, indices: Iterable[str]) -> tuple[str, ...]:
        """Return the loop variables of these indices, without duplicates."""
        return tuple(dict.fromkeys(leaf for index in indices for leaf in self.leaves(index)))

    def completed(self, variable: str, bound: frozenset[str]) -> tuple[str, ...]:
        """Return the indices that `variable` determines together with `bound`, but `bound` alone
        does not."""
        determined = bound | {variable}
        return tuple(
            root for root in self.roots(variable) if determined.issuperset(self.leaves(root))
        )

    def loops(self, order: Iterable[str]) -> tuple[str, ...]:
        """Return a loop order over leaves as the loops that are generated.

        The last leaf of an index becomes the loop over the index itself, within the tiles that the
        leaves before it chose: `split(i,i0,i1,8)` in the order `i0, k, i1` gives `i0, k, i`. A leaf
        of several indices stays a loop where it is not the last one of each, or leaves no interval
        of each: `fuse(i,j,f), split(f,f0,f1,8)` in the order `f1, f0` gives `f1, f0, i, j`, and
        `split(j,a,b,8), fuse(i,a,f)` in the order `f, b` gives `f, i, j`.
        """
        bound: frozenset[str] = frozenset()
        loops: list[str] = []
        for variable in order:
            indices = self.completed(variable, bound)
            if self._stays(variable, indices, bound):
                loops.append(variable)
            loops += indices or (variable,)
            bound |= {variable}
        return tuple(dict.fromkeys(loops))

    def _stays(self, variable: str, indices: tuple[str, ...], bound: frozenset[str]) -> bool:
        """Tell whether a leaf stays a loop beside loops over the `indices` that it completes.

        It does where it chooses tiles of further indices too, or where the values of an index that
        `bound` leaves are no interval.
        """
        roots = self.roots(variable)
        return len(roots) > 1 and not (
            set(roots) <= set(indices) and self._are_intervals(indices, bound)
        )

    def _are_intervals(self, indices: tuple[str, ...], bound: frozenset[str]) -> bool:
        return all(
            self.are_neighbours(index, bound.union(indices[:place]))
            for place, index in enumerate(indices)
        )

    def goes_on(self, prefix: tuple[str, ...], variable: str) -> bool:
        """Tell whether loops over `prefix`, then `variable`, traverse the indices in ascending
        order.

        They do where each tile lies in the tile of the loop before, from the largest to the
        smallest. A loop over tiles that are fused otherwise returns to coordinates that it has
        visited.
        """
        index = self.roots(variable)[0]
        if not self._fuses_in_order(index):
            return False
        leaves = self.leaves(index)
        outer = tuple(leaf for leaf in leaves if leaf in prefix)
        return variable not in leaves or (*outer, variable) == leaves[: len(outer) + 1]

    def _fuses_in_order(self, variable: str) -> bool:
        """Tell whether fused tiles of `variable` are neighbours, the larger of them outside."""
        tiles = tuple(self._tiles(variable))
        fusions = dict.fromkeys(f for f in map(self.below, tiles) if isinstance(f, Fuse))
        ways = ((f.outer, f.inner) for f in fusions if {f.outer, f.inner} <= set(tiles))
        return all(way in pairwise(tiles) for way in ways) and all(
            self._fuses_in_order(fusion.fused) for fusion in fusions
        )

    def _tiles(self, variable: str) -> Iterator[str]:
        """Yield the tiles that `variable` is cut into, largest first, before any fusion."""
        relation = self.below(variable)
        if relation is None or isinstance(relation, Fuse):
            yield variable
        else:
            for child in relation.children:
                yield from self._tiles(child)

    def counts_ranges(self, variable: str) -> bool:
        """Tell whether neighbouring values of `variable` are neighbouring ranges of one index."""
        relation = self.above(variable)
        if relation is None:
            return True
        cuts = isinstance(relation, Split | Divide | Bound) and variable == relation.children[0]
        return cuts and self.counts_ranges(relation.parents[0])

    def is_chosen(self, variable: str, bound: frozenset[str]) -> bool:
        """Tell whether a loop in `bound` is over a tile of `variable`, or over all of it."""
        return not bound.isdisjoint(self.leaves(variable))

    def is_known(self, variable: str, bound: frozenset[str]) -> bool:
        """Tell whether loops over `bound` determine `variable`, through its children or its
        parents."""
        if self.is_computed(variable, bound):
            return True
        relation = self.above(variable)
        if relation is None or isinstance(relation, Pos | Coord):
            return False
        return all(self.is_known(parent, bound) for parent in relation.parents)

    def is_computed(self, variable: str, bound: frozenset[str]) -> bool:
        """Tell whether loops over `bound` determine `variable` through its children."""
        relation = self.below(variable)
        if variable in bound or relation is None or isinstance(relation, Pos | Coord):
            return variable in bound
        return all(self.is_computed(child, bound) for child in relation.children)

    def are_neighbours(self, variable: str, bound: frozenset[str]) -> bool:
        """Tell whether loops over `bound` leave one interval of values of `variable`.

        They do not where an inner tile is determined before the outer tile, nor for the inner of
        two fused variables before the outer variable is determined.
        """
        relation = self.below(variable)
        if relation is None or isinstance(relation, Pos) or not self.is_chosen(variable, bound):
            return True
        if isinstance(relation, Fuse) and variable == relation.inner:
            if not self.is_known(relation.outer, bound):
                return False
        elif len(relation.children) == 2:
            outer, inner = relation.children
            if self.is_chosen(inner, bound) and not bound.issuperset(self.leaves(outer)):
                return False
        return all(self.are_neighbours(child, bound) for child in relation.children)

    def is_derived(self, variable: str) -> bool:
        return self.above(variable) is not None

    def position_of(self, index: str) -> Pos | None:
        """Return the `pos` that iterates `index` or its innermost tile; None if there is none."""
        variable = index
        while (relation := self.below(variable)) is not None:
            if isinstance(relation, Pos):
                return relation
            variable = relation.children[-1]
        return None

    def tiles_above(self, variable: str) -> Iterator[str]:
        """Yield the outer loop variables that choose the tiles containing `variable`."""
        relation = self.above(variable)
        if relation is None:
            return
        if isinstance(relation, Split | Divide) and variable == relation.inner:
            yield relation.outer
        for parent in relation.parents:
            yield from self.tiles_above(parent)

    def positions_above(self, variable: str) -> Pos | None:
        """Return the nearest `pos` among the ancestors of `variable`; None if there is none."""
        relation = self.above(variable)
        while relation is not None:
            if isinstance(relation, Pos):
                return relation
            relation = self.above(relation.parents[0])
        return None

    def __str__(self) -> str:
        return ", ".join(map(str, self.relations))


UNDERIVED = Provenance()
"""Every loop is over an index of the notation."""
