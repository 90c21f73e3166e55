"""What a loop runs over when its index has been split, fused or turned into positions.

Loops over tiles only count. The loop over an index itself then runs over what the tiles around it
leave of the index: neighbouring coordinates, every so-many-th coordinate, or a range of an
operand's entries. For entries of several levels at once (`fuse` and `pos`), the positions of the
levels above are found by binary search, once where the range begins and once where it ends; between
them the ordinary loops over these levels keep track.
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen import build
from codegen.ir import TRUE, Const, Declare, Expr, Search, Stmt, Var
from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import Forall
from taco_py.compiler.concrete.tree import assignments, read_in
from taco_py.compiler.levels import Compressed
from taco_py.compiler.lower.environment import Environment, Scope
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.nodes import Access
from taco_py.language.provenance.relations import (
    Divide,
    Fuse,
    Interval,
    Pos,
    Split,
    child_bounds,
    fills,
    parent_bounds,
    point,
    recover_child,
    recover_parent,
)


@dataclass(frozen=True, slots=True)
class Entries:
    """One segment of an operand's compressed level, as relations ask for it."""

    level: Compressed
    segment: Interval

    def coordinate(self, position: Expr) -> Expr:
        return self.level.coordinate(position)

    def search(self, coordinate: Expr) -> Expr:
        """Return the first position whose coordinate is at least this one; the first of all for
        0."""
        if coordinate == build.const(0):
            return self.segment.lo
        return Search(self.level.crd, self.segment.lo, self.segment.hi, coordinate)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of variables at one point of the code."""

    env: Environment
    scope: Scope

    def whole(self, variable: str) -> Interval:
        """Return the values of `variable` when nothing that derives from it is known."""
        if variable in self.scope.intervals:
            return self.scope.intervals[variable]
        relation = self.env.provenance.above(variable)
        if relation is None:
            return Interval(build.const(0), self.env.sizes[variable])
        if isinstance(relation, Pos):
            raise InternalError(f"The positions {variable} are asked for before they are known")
        return child_bounds(relation, variable, tuple(map(self.whole, relation.parents)))

    def remaining(self, variable: str) -> Interval | None:
        """Return the values of `variable` that the loops around leave; None if they are not
        neighbours."""
        relation = self.env.provenance.below(variable)
        if not self._chosen(variable) or isinstance(relation, Pos):
            return self.whole(variable)
        if relation is None:
            return point(self.env.indices[variable])
        if not self.env.provenance.are_neighbours(variable, self.scope.bound):
            return None
        children = tuple(map(self.remaining, relation.children))
        parents = tuple(map(self.whole, relation.parents))
        if isinstance(relation, Fuse) and variable == relation.inner:
            parents = (point(self.known(relation.outer)), parents[1])
        return parent_bounds(relation, variable, parents, tuple(c for c in children if c))

    def _chosen(self, variable: str) -> bool:
        return self.env.provenance.is_chosen(variable, self.scope.bound)

    def known(self, variable: str) -> Expr:
        """Return the value of `variable` where the loops around determine it."""
        provenance, bound = self.env.provenance, self.scope.bound
        if variable in bound:
            return self.env.indices[variable]
        if provenance.is_computed(variable, bound):
            return self.value(variable)
        relation = provenance.above(variable)
        if relation is None:
            raise InternalError(f"The value of {variable} is asked for before it is known")
        values = tuple(map(self.known, relation.parents))
        return recover_child(relation, variable, tuple(map(self.whole, relation.parents)), values)

    def value(self, variable: str) -> Expr:
        """Return the value of `variable` when all its leaves are known."""
        relation = self.env.provenance.below(variable)
        if relation is None or isinstance(relation, Pos):
            return self.env.indices[variable]
        children = tuple(map(self.value, relation.children))
        parents = tuple(map(self.whole, relation.parents))
        return recover_parent(relation, variable, parents, children)

    def inside(self, variable: str, value: Expr | None = None) -> Expr:
        """Tell whether `variable` lies in its range, and so does all that it is computed from.

        value  what `value` gives for it, where that stands in a variable already
        """
        relation = self.env.provenance.below(variable)
        if relation is None or isinstance(relation, Pos):
            return build.const(True)
        below = [self.inside(child) for child in relation.children]
        found = self.value(variable) if value is None else value
        whole = self.whole(variable)
        if isinstance(relation, Split | Divide) and fills(relation, whole):
            return build.and_(*below)
        return build.and_(*below, build.lt(found, whole.hi))

    def counted(self, variable: str) -> Interval:
        """Return the values of `variable`, which counts tiles: those of a tile of tiles end where
        what was cut ends."""
        whole = self.whole(variable)
        relation = self.env.provenance.above(variable)
        if not isinstance(relation, Split | Divide) or variable != relation.inner:
            return whole
        parent = self.whole(relation.parent)
        outer_known = self.env.provenance.is_known(relation.outer, self.scope.bound)
        if not outer_known or fills(relation, parent):
            return whole
        first = (self.known(relation.outer), build.const(0))
        begin = recover_parent(relation, relation.parent, (parent,), first)
        return Interval(whole.lo, build.minimum(whole.hi, build.sub(parent.hi, begin)))

    def open_leaf(self, variable: str) -> str:
        """Return the one leaf of `variable` that no loop around is over."""
        leaves = self.env.provenance.leaves(variable)
        (leaf,) = (leaf for leaf in leaves if leaf not in self.scope.bound)
        return leaf


# ---------------------------------------------------------------- positions


def open_positions(env: Environment, scope: Scope, variable: str) -> tuple[Scope, list[Stmt]]:
    """Declare the range of positions that loops over `variable` choose from, the first time."""
    pos = env.provenance.positions_above(variable) or env.provenance.position_of(variable)
    if pos is None or pos.child in scope.intervals:
        return scope, []
    access, levels = chain(env, pos)
    *_, found = segments(env, scope, access, levels)
    ranges = Ranges(env, scope)
    index = env.provenance.roots(pos.parent)[-1]
    left = ranges.remaining(index) if len(levels) == 1 else None
    level = env.level(access, levels[-1])
    if left is not None and left != ranges.whole(index) and isinstance(level, Compressed):
        found = child_bounds(pos, pos.child, (left,), Entries(level, found))
    code: list[Stmt] = []
    lo = named(env, f"{pos.child}_begin", found.lo, code)
    hi = named(env, f"{pos.child}_end", found.hi, code)
    return scope.ranging(pos.child, Interval(lo, hi)), code


@dataclass(frozen=True, slots=True)
class Opening:
    """What stands before loops over entries: `before`, and `inside` an if where `some` are left."""

    scope: Scope
    before: tuple[Stmt, ...] = ()
    some: Expr = TRUE
    inside: tuple[Stmt, ...] = ()

    def around(self, code: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return `code` behind what stands before it."""
        if not self.before and not self.inside:
            return code
        return (*self.before, build.if_(self.some, build.block(*self.inside, *code)))


def open_chain(env: Environment, scope: Scope, pos: Pos) -> Opening:
    """Before the first loop over the levels of `pos`: the positions of each that are left."""
    access, levels = chain(env, pos)
    left = scope.piece_of(pos.child) or Ranges(env, scope).remaining(pos.child)
    if (access, levels[-1]) in scope.left or left is None:
        return Opening(scope)
    before: list[Stmt] = []
    lo = named(env, f"{pos.child}_from", left.lo, before)
    hi = named(env, f"{pos.child}_to", left.hi, before)
    inside: list[Stmt] = []
    first, last = lo, build.sub(hi, 1)
    spans = tuple(segments(env, scope, access, levels))
    scope = scope.leaving(access, levels[-1], Interval(lo, hi))
    for level, above in reversed(tuple(zip(levels[1:], spans[:-1], strict=True))):
        name = f"p{access.tensor}{level}"
        first = parent_position(env, access, level, above, first)
        first = named(env, f"{name}_first", first, inside)
        last = parent_position(env, access, level, Interval(first, above.hi), last)
        last = named(env, f"{name}_last", last, inside)
        scope = scope.leaving(access, level - 1, Interval(first, build.add(last, 1)))
    some = build.lt(lo, hi) if inside else build.const(True)
    return Opening(scope, tuple(before), some, tuple(inside))


def chain(env: Environment, pos: Pos) -> tuple[Access, tuple[int, ...]]:
    """Return the access whose entries `pos` runs over, and its levels that are fused, outermost
    first."""
    roots = env.provenance.roots(pos.parent)
    for access in env.iterators:
        if pos.means(access.tensor, access.indices, roots):
            form = env.tensors[access.tensor].type.format
            levels = (form.mode_order.index(access.indices.index(root)) for root in roots)
            return access, tuple(levels)
    raise InternalError(f"{pos} names no operand with {', '.join(roots)}")


def is_absent(env: Environment, scope: Scope, forall: Forall) -> bool:
    """Tell whether a loop is about positions of an operand that has none here, or that stands in
    values alone that are zero here."""
    provenance = env.provenance
    pos = provenance.positions_above(forall.index) or provenance.position_of(forall.index)
    if pos is None:
        return False
    regions = scope.regions(env)
    nothing = all(regions.is_absent(assign.value) for assign in assignments(forall.body))
    return nothing or chain(env, pos)[0] in scope.absent


def walked_positions(env: Environment, scope: Scope, forall: Forall) -> Pos | None:
    """Return the operand's positions through which a loop over an index walks, if it does; it does
    not where the operand has nothing."""
    pos = env.provenance.position_of(forall.index)
    if pos is None:
        return None
    access, _ = chain(env, pos)
    return pos if access in read_in(forall.body) and access not in scope.absent else None


def segments(
    env: Environment, scope: Scope, access: Access, levels: tuple[int, ...]
) -> Iterator[Interval]:
    """For each level: the positions below the one that `scope` has reached above the first."""
    parent = scope.position(access, levels[0] - 1)
    if parent is None:
        raise InternalError(f"Entries of {access.tensor} are counted before their parent is known")
    found = point(parent)
    form = env.tensors[access.tensor].type.format
    for level in levels:
        if form.levels[level].full:
            size = env.sizes[access.indices[form.mode_order[level]]]
            found = Interval(build.mul(found.lo, size), build.mul(found.hi, size))
        else:
            functions = env.level(access, level)
            found = Interval(functions.bounds(found.lo)[0], functions.bounds(found.hi)[0])
        yield found


def parent_position(
    env: Environment, access: Access, level: int, above: Interval, position: Expr
) -> Expr:
    """Return the position, one of those in `above`, below which `position` of `level` lies."""
    form = env.tensors[access.tensor].type.format
    if form.levels[level].full:
        return build.div(position, env.sizes[access.indices[form.mode_order[level]]])
    functions = env.level(access, level)
    if not isinstance(functions, Compressed):
        return position
    after = Search(functions.pos, build.add(above.lo, 1), above.hi, position, after=True)
    return build.sub(after, 1)


def named(env: Environment, name: str, value: Expr, code: list[Stmt]) -> Expr:
    """Return `value`, declared as a variable unless it is one already."""
    if isinstance(value, Var | Const):
        return value
    var = Var(env.names.fresh(name))
    code.append(Declare(var, value, constant=True))
    return var
