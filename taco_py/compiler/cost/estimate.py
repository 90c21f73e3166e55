"""How many iterations a loop order makes: expected counts.

For loops bound so far S, an access A restricts them to the fraction of coordinate tuples over S ∩
indices(A) that some stored entry projects to, min(1, nnz / Π sizes); of a tensor with dense inner
levels these are blocks, that have all coordinates of these. Products multiply fractions, sums add
them. (The "uniform" statistics of Galley; Ahrens et al. 2022 compare the same sets
symbolically.)

Where an operand's coordinates are at hand, how its entries are spread over them takes the place of
uniformity, and how they meet another's that of independence (`spread`, `joint`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from math import expm1, prod

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.cost.joint import Joint
from taco_py.compiler.cost.machine import NOMINAL, Machine
from taco_py.compiler.cost.sets import Bound, Number, Numbers, One, Sets, product
from taco_py.compiler.cost.shares import independent
from taco_py.compiler.cost.spread import Entries, recall_in
from taco_py.language.formats import Format
from taco_py.language.legal.absent import restricts
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Expr

CELLS = 4096
"""Groups of elements of a result that are told apart by their operands' rows and columns."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is known of one operand: how many entries are stored, in which format, and which."""

    nnz: float
    format: Format
    entries: Entries | None = None

    @property
    def sparse(self) -> bool:
        return is_sparse(self.format)


@dataclass(frozen=True, slots=True)
class Statistics:
    """The sizes of all indices and the pattern of each tensor, and the machine they are met on.

    joints  what is known of several operands together, by the expression they are in
    """

    sizes: Mapping[str, float]
    patterns: Mapping[str, Pattern]
    machine: Machine = NOMINAL
    joints: dict[Expr, Joint] = field(init=False, default_factory=dict, compare=False, repr=False)

    def key(self, *uses: Access) -> tuple[object, ...]:
        """Return a hashable key of the facts about these accesses and their indices."""
        return self.machine, self._sizes(uses), tuple(self._patterns(uses))

    def stored(self, *uses: Access) -> tuple[object, ...]:
        """Return `key` but for the formats of sparse tensors."""
        facts = ((name, p and (p.nnz, p.entries, p.sparse)) for name, p in self._patterns(uses))
        return self.machine, self._sizes(uses), tuple(facts)

    def _sizes(self, uses: Iterable[Access]) -> tuple[tuple[str, float | None], ...]:
        indices = dict.fromkeys(i for access in uses for i in access.indices)
        return tuple((index, self.sizes.get(index)) for index in indices)

    def _patterns(self, uses: Iterable[Access]) -> Iterator[tuple[str, Pattern | None]]:
        tensors = dict.fromkeys(access.tensor for access in uses)
        return ((name, self.patterns.get(name)) for name in tensors)

    def volume(self, indices: Iterable[str]) -> float:
        """Return the number of coordinate tuples over a set of indices."""
        return prod((self.sizes[i] for i in indices), start=1.0)

    def volumes(self, sets: Sets) -> Numbers:
        """Return the number of coordinate tuples over each of many sets of indices."""
        return product(np.array([self.sizes[index] for index in sets.names]), sets.has)

    def access_fraction(self, access: Access, bound: frozenset[str]) -> float:
        """Return the fraction of tuples over its bound indices under which `access` stores
        something."""
        return float(self.access_share(access, One(bound)))

    def access_share(self, access: Access, bound: Bound, visited: bool = True) -> Number:
        """Return `access_fraction` for one set of indices, or for each of many.

        visited  whether coordinates of dense levels count that store nothing below: loops over them
                 visit these, but reach nothing inside
        """
        pattern = self.patterns[access.tensor]
        if not pattern.sparse:
            return 1.0
        indices = tuple(dict.fromkeys(access.indices))
        sizes = tuple(self.sizes.get(index, 1.0) for index in indices)
        rows = _dense_above(pattern, access) if visited else ()

        def find(some: Bound) -> Number:
            return self._share(pattern, access, indices, sizes, rows, some)

        form = pattern.format
        block = form.stored(access.indices)[form.depth :]
        key = (access.indices, sizes, pattern.nnz, bool(rows), rows if rows[1:] else (), block)
        return bound.map_over(indices, find, recall_in(pattern.entries, key))

    def stores_few_rows(self, access: Access) -> bool:
        """Tell whether a dense root of an access has fewer entries than coordinates."""
        pattern = self.patterns[access.tensor]
        form = pattern.format
        if not pattern.sparse or not form.levels[0].full:
            return False
        size = self.sizes[access.indices[form.mode_order[0]]]
        blocks = (
            pattern.nnz if form.depth == form.order else pattern.nnz / self._block(pattern, access)
        )
        return blocks < size

    def _share(
        self,
        pattern: Pattern,
        access: Access,
        indices: tuple[str, ...],
        sizes: tuple[float, ...],
        rows: tuple[str, ...],
        bound: Bound,
    ) -> Number:
        compressed = _compressed_indices(pattern, access)
        pairs = zip(indices, sizes, strict=True)
        size_of = [size if index in compressed else 1.0 for index, size in pairs]
        volume = bound.most(1.0, bound.product(indices, size_of))
        blocks = pattern.nnz / self._block(pattern, access)
        share = bound.least(1.0, blocks / volume)
        if pattern.nnz < 1.0:
            share = self._anywhere(indices, bound, share)
        if len(rows) > 1:
            share = self._all_rows(indices, rows, bound, share)
        if (pattern.entries is not None or rows) and len(access.indices) > 1:
            alone = [1.0 if rows else self._alone(pattern, access, index) for index in indices]
            share = bound.alone(indices, alone, share)
        return share

    def _all_rows(
        self, indices: Sequence[str], rows: Sequence[str], bound: Bound, share: Number
    ) -> Number:
        """Return all where only indices of several dense levels above all lists are bound."""
        total: Number = share
        for index in rows:
            total = bound.where(index, 1.0, total)
        for index in (i for i in indices if i not in rows):
            total = bound.where(index, share, total)
        return total

    def _block(self, pattern: Pattern, access: Access) -> float:
        """Return the elements of each block of a tensor with dense inner levels, 1 of one
        without."""
        inner = set(access.indices) - _compressed_indices(pattern, access)
        return max(1.0, prod((self.sizes.get(index, 1.0) for index in inner), start=1.0))

    def _anywhere(self, indices: Sequence[str], bound: Bound, share: Number) -> Number:
        """Return the share where some of an access's own indices are bound, all where none is."""
        total: Number = 1.0
        for index in indices:
            total = bound.where(index, share, total)
        return total

    def _alone(self, pattern: Pattern, access: Access, index: str) -> float:
        """Return the share of one index's coordinates under which anything is stored."""
        mode = access.indices.index(index)
        if pattern.entries is None or not pattern.entries.has_counts(mode):
            if index not in _compressed_indices(pattern, access):
                return 1.0
            blocks = pattern.nnz / self._block(pattern, access)
            return min(1.0, blocks / max(1.0, self.sizes.get(index, 1.0)))
        spread = pattern.entries.spread(mode)
        return min(1.0, spread.distinct / spread.size)

    def fraction(self, expr: Expr, bound: frozenset[str]) -> float:
        """Return the fraction of tuples over `bound` at which `expr` is not plainly zero."""
        return float(self.share(expr, One(bound)))

    def share(
        self, expr: Expr, bound: Bound, share_of: Callable[[Access], Number] | None = None
    ) -> Number:
        """Return `fraction` for one set of indices, or for each of many.

        share_of  `access_share` of its accesses, where that is at hand
        """
        result = independent(expr, bound, share_of or (lambda a: self.access_share(a, bound)))
        joint = self.joint(expr)
        if not joint.pairs:
            return result
        factor = joint.factor(bound)
        result = result * factor
        if not np.any(factor > 1.0):
            return result
        most = bound.least(joint.most(bound), 1.0)  # as many as when independent can always be
        return np.where(factor > 1.0, bound.least(result, most), result)

    def joint(self, expr: Expr) -> Joint:
        """Return the joint facts of the operands without which `expr` is zero."""
        if expr not in self.joints:
            uses = [a for a in accesses(expr) if self.patterns[a.tensor].entries is not None]
            entries = {a.tensor: e for a in uses if (e := self.patterns[a.tensor].entries)}
            restricting = (a for a in uses if restricts(expr, a))
            self.joints[expr] = Joint(restricting, entries, self.sizes)
        return self.joints[expr]

    def iterations(self, expr: Expr, bound: frozenset[str]) -> float:
        """Return the expected number of tuples over `bound` that loops around `expr` visit."""
        return self.volume(bound) * self.fraction(expr, bound)


def _dense_above(pattern: Pattern, access: Access) -> tuple[str, ...]:
    """Return the indices of dense levels above all lists: loops over them visit all coordinates.

    Dense levels above a list with free places count its places: these are as many as its entries.
    """
    form = pattern.format
    if not form.levels[0].full:
        return ()
    count = next(place for place, level in enumerate(form.levels) if not level.full)
    if form.levels[count].kind.branchless:
        count = 1
    return form.stored(access.indices)[:count]


def _compressed_indices(pattern: Pattern, access: Access) -> set[str]:
    """Return the indices down to the last of which `access` has a list of coordinates."""
    return set(pattern.format.stored(access.indices)[: pattern.format.depth])


def result_size(stats: Statistics, value: Expr, keep: Sequence[str]) -> float:
    """Return the expected number of nonzeros of `value` over `keep`; what meets in one place adds
    up.

    Rows and columns with many entries get as much more of what is added up, so that more of it
    meets in one place: F products fall on element (i,j) with the probability p_i · p_j, operands'
    shares of entries in row i and in column j, and hit Σ 1 - exp(-F · p_i · p_j) elements. They are
    no more than where all operands have anything over `keep`: sum(k, S[i,j] * U[i,k] * V[j,k]) is
    stored where S is.
    """
    everything = frozenset(i for a in accesses(value) for i in a.indices)
    total = stats.iterations(value, everything | frozenset(keep))
    if everything <= set(keep):
        return min(total, stats.volume(frozenset(keep)))
    cells = [(1.0, 1.0)]  # how many there are, each with which share of what is added up
    for index in keep:
        groups = _shares(stats, value, index)
        if len(cells) * len(groups) > CELLS:
            groups = ((stats.sizes[index], 1.0 / max(stats.sizes[index], 1.0)),)
        cells = [(n * count, p * share) for n, p in cells for count, share in groups]
    size = sum(count * -expm1(-min(total * share, 700.0)) for count, share in cells)
    return min(size, stats.iterations(value, frozenset(keep)))


def _shares(stats: Statistics, value: Expr, index: str) -> tuple[tuple[float, float], ...]:
    """Count how many coordinates of an index have which share of the entries of an operand."""
    size = stats.sizes[index]
    for access in stats.joint(value).accesses:
        entries = stats.patterns[access.tensor].entries
        if index in access.indices and entries is not None:
            mode = access.indices.index(index)
            if entries.has_counts(mode):
                spread = entries.spread(mode)
                total = max(spread.entries, 1)
                return tuple((count, share / total) for count, share in spread.groups)
    return ((size, 1.0 / max(size, 1.0)),)
