"""The provenance graph: which variables of loops derive from which indices, and in which order
they give them back."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from itertools import pairwise

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
    """Relations, each after those that make its parents. Without any, every index is a loop."""

    relations: tuple[Relation, ...] = ()

    def with_relation(self, relation: Relation) -> Provenance:
        return Provenance((*self.relations, relation))

    def below(self, variable: str) -> Relation | None:
        """Return the relation that replaces `variable` by others, which a `Rename` does not."""
        replacing = (r for r in self.relations if not isinstance(r, Rename))
        return next((r for r in replacing if variable in r.parents), None)

    def above(self, variable: str) -> Relation | None:
        """Return the relation that made `variable`; None for an index of the notation."""
        return next((r for r in self.relations if variable in r.children), None)

    @property
    def counted_fusions(self) -> tuple[Fuse, ...]:
        """Those whose values are counted, for tiles are made of them or a bound is promised; a loop
        over pairs of stored coordinates counts nothing, nor does one over positions."""
        counting = [r for r in self.relations if isinstance(r, Split | Divide | Bound)]
        found = (fuse for relation in counting for fuse in self._fusions_above(relation.parent))
        return tuple(dict.fromkeys(found))

    def _fusions_above(self, variable: str) -> Iterator[Fuse]:
        relation = self.above(variable)
        if relation is None or isinstance(relation, Pos):
            return
        for parent in relation.parents:
            yield from self._fusions_above(parent)
        if isinstance(relation, Fuse):
            yield relation

    def most(self, variable: str) -> int | None:
        """Count how many values a variable has at most, where tiles and bounds alone say it."""
        relation = self.above(variable)
        match relation:
            case Split(parent=parent, inner=inner, size=size):
                if variable == inner:
                    return size
                whole = self.most(parent)
                return None if whole is None else -(-whole // size)
            case Divide(parent=parent, outer=outer, parts=parts):
                if variable == outer:
                    return parts
                whole = self.most(parent)
                return None if whole is None else -(-whole // parts)
            case Bound(value=value, kind=BoundKind.MAX_EXACT | BoundKind.MAX_CONSTRAINT):
                return value
            case Bound(parent=parent) | Rename(parent=parent):
                return self.most(parent)
        return None

    def renamed(self, workspace: str) -> dict[str, str]:
        """What variables are called in the loops that fill `workspace`, where that is another name.

        The loops themselves are over the variables of which these are copies.
        """
        renames = (r for r in self.relations if isinstance(r, Rename))
        return {r.parent: r.child for r in renames if r.workspace == workspace}

    def leaves(self, variable: str) -> tuple[str, ...]:
        """Return the variables of loops that `variable` is replaced by, itself if none."""
        relation = self.below(variable)
        if relation is None:
            return (variable,)
        found = (leaf for child in relation.children for leaf in self.leaves(child))
        return tuple(dict.fromkeys(found))

    def leaf(self, index: str, around: Container[str]) -> str:
        """Return the variable that the loop over `index` stands for, inside loops over those
        `around`."""
        leaves = self.leaves(index)
        return next((leaf for leaf in leaves if leaf not in around), leaves[-1])

    def roots(self, variable: str) -> tuple[str, ...]:
        """Return the indices of the notation that `variable` derives from, outer ones first."""
        relation = self.above(variable)
        if relation is None:
            return (variable,)
        found = (root for parent in relation.parents for root in self.roots(parent))
        return tuple(dict.fromkeys(found))

    def variables(self, indices: Iterable[str]) -> tuple[str, ...]:
        """Return the loops over these indices: leaves, each once."""
        return tuple(dict.fromkeys(leaf for index in indices for leaf in self.leaves(index)))

    def completed(self, variable: str, bound: frozenset[str]) -> tuple[str, ...]:
        """Return the indices that are known with `variable` and were not with `bound` alone."""
        now = bound | {variable}
        return tuple(root for root in self.roots(variable) if now.issuperset(self.leaves(root)))

    def loops(self, order: Iterable[str]) -> tuple[str, ...]:
        """Return a loop order over leaves as the loops that are generated.

        The last leaf of an index becomes the loop over the index itself, within the tiles that the
        leaves before it chose: `split(i,i0,i1,8)` in the order `i0, k, i1` gives `i0, k, i`. A leaf
        of several indices stays a loop where it is not the last one of each, or leaves no interval
        of each: `fuse(i,j,f), split(f,f0,f1,8)` in the order `f1, f0` gives `f1, f0, i, j`, and
        `split(j,a,b,8), fuse(i,a,f)` in the order `f, b` gives `f, i, j`.
        """
        bound: frozenset[str] = frozenset()
        found: list[str] = []
        for variable in order:
            indices = self.completed(variable, bound)
            if self._stays(variable, indices, bound):
                found.append(variable)
            found += indices or (variable,)
            bound |= {variable}
        return tuple(dict.fromkeys(found))

    def _stays(self, variable: str, indices: tuple[str, ...], bound: frozenset[str]) -> bool:
        """Tell whether loops over the `indices` that a leaf completes cannot stand for the one over
        it: it chooses tiles of others too, or `bound` leaves no interval of each, those before it
        known."""
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
        """Tell whether loops over `prefix` and then `variable` meet what they derive from in order.

        They do where each tile lies in the one chosen before, from the largest to the smallest. A
        loop over tiles that are fused otherwise comes back to those that it has met.
        """
        index = self.roots(variable)[0]
        if not self._fuses_in_order(index):
            return False
        leaves = self.leaves(index)
        chosen = tuple(leaf for leaf in leaves if leaf in prefix)
        return variable not in leaves or (*chosen, variable) == leaves[: len(chosen) + 1]

    def _fuses_in_order(self, variable: str) -> bool:
        """Tell whether fused tiles of `variable` are neighbours, the larger of them outside."""
        tiles = tuple(self._tiles(variable))
        fusions = dict.fromkeys(f for f in map(self.below, tiles) if isinstance(f, Fuse))
        ways = ((f.outer, f.inner) for f in fusions if {f.outer, f.inner} <= set(tiles))
        return all(way in pairwise(tiles) for way in ways) and all(
            self._fuses_in_order(fusion.fused) for fusion in fusions
        )

    def _tiles(self, variable: str) -> Iterator[str]:
        """Yield the tiles that `variable` is cut into, from the largest to the smallest, before
        they are fused with others."""
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
        """Tell whether loops over `bound` determine `variable`: by what derives from it, or by what
        it derives from."""
        if self.is_computed(variable, bound):
            return True
        relation = self.above(variable)
        if relation is None or isinstance(relation, Pos | Coord):
            return False
        return all(self.is_known(parent, bound) for parent in relation.parents)

    def is_computed(self, variable: str, bound: frozenset[str]) -> bool:
        """Tell whether loops over `bound` determine `variable` by what derives from it."""
        relation = self.below(variable)
        if variable in bound or relation is None or isinstance(relation, Pos | Coord):
            return variable in bound
        return all(self.is_computed(child, bound) for child in relation.children)

    def are_neighbours(self, variable: str, bound: frozenset[str]) -> bool:
        """Tell whether the values of `variable` that loops over `bound` leave are one interval.

        They are not where an inner tile is known before the outer one, and of the inner one of two
        fused variables before the outer one is known.
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
        """Return the `pos` through which `index`, or its innermost tile, is iterated."""
        variable = index
        while (relation := self.below(variable)) is not None:
            if isinstance(relation, Pos):
                return relation
            variable = relation.children[-1]
        return None

    def tiles_above(self, variable: str) -> Iterator[str]:
        """What chooses the tiles that `variable` is in."""
        relation = self.above(variable)
        if relation is None:
            return
        if isinstance(relation, Split | Divide) and variable == relation.inner:
            yield relation.outer
        for parent in relation.parents:
            yield from self.tiles_above(parent)

    def positions_above(self, variable: str) -> Pos | None:
        """Return the nearest `pos` that `variable` derives from."""
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
