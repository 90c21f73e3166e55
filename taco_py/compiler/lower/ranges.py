"""The range of a loop whose index has been split, fused or turned into positions.

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
    """One segment of an operand's compressed level, as relations read it."""

    level: Compressed
    segment: Interval

    def coordinate(self, position: Expr) -> Expr:
        return self.level.coordinate(position)

    def search(self, coordinate: Expr) -> Expr:
        """Return the first position whose coordinate is at least `coordinate`; for 0 the first
        of all."""
        if coordinate == build.const(0):
            return self.segment.lo
        return Search(self.level.crd, self.segment.lo, self.segment.hi, coordinate)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of variables at one point of the code."""

    env: Environment
    scope: Scope

    def full(self, variable: str) -> Interval:
        """Return the range of `variable` while no variable that derives from it is known."""
        if variable in self.scope.intervals:
            return self.scope.intervals[variable]
        relation = self.env.provenance.above(variable)
        if relation is None:
            return Interval(build.const(0), self.env.sizes[variable])
        if isinstance(relation, Pos):
            raise InternalError(f"The positions {variable} are asked for before they are known")
        return child_bounds(relation, variable, tuple(map(self.full, relation.parents)))

    def remaining(self, variable: str) -> Interval | None:
        """Return the values of `variable` that the outer loops leave; None if they are not
        adjacent."""
        relation = self.env.provenance.below(variable)
        if not self._is_chosen(variable) or isinstance(relation, Pos):
            return self.full(variable)
        if relation is None:
            return point(self.env.indices[variable])
        if not self.env.provenance.are_neighbours(variable, self.scope.bound):
            return None
        children = tuple(map(self.remaining, relation.children))
        parents = tuple(map(self.full, relation.parents))
        if isinstance(relation, Fuse) and variable == relation.inner:
            parents = (point(self.determined(relation.outer)), parents[1])
        return parent_bounds(relation, variable, parents, tuple(c for c in children if c))

    def _is_chosen(self, variable: str) -> bool:
        return self.env.provenance.is_chosen(variable, self.scope.bound)

    def determined(self, variable: str) -> Expr:
        """Return the value of `variable` where the outer loops determine it."""
        provenance, bound = self.env.provenance, self.scope.bound
        if variable in bound:
            return self.env.indices[variable]
        if provenance.is_computed(variable, bound):
            return self.value(variable)
        relation = provenance.above(variable)
        if relation is None:
            raise InternalError(f"The value of {variable} is asked for before it is known")
        values = tuple(map(self.determined, relation.parents))
        return recover_child(relation, variable, tuple(map(self.full, relation.parents)), values)

    def value(self, variable: str) -> Expr:
        """Return the value of `variable` when all its leaves are known."""
        relation = self.env.provenance.below(variable)
        if relation is None or isinstance(relation, Pos):
            return self.env.indices[variable]
        children = tuple(map(self.value, relation.children))
        parents = tuple(map(self.full, relation.parents))
        return recover_parent(relation, variable, parents, children)

    def inside(self, variable: str, value: Expr | None = None) -> Expr:
        """Tell whether `variable` lies in its range, and so do all variables that it is computed
        from.

        value  its value, where a variable holds that already
        """
        relation = self.env.provenance.below(variable)
        if relation is None or isinstance(relation, Pos):
            return build.const(True)
        below = [self.inside(child) for child in relation.children]
        number = self.value(variable) if value is None else value
        full_range = self.full(variable)
        if isinstance(relation, Split | Divide) and fills(relation, full_range):
            return build.and_(*below)
        return build.and_(*below, build.lt(number, full_range.hi))

    def counted(self, variable: str) -> Interval:
        """Return the range of `variable`, which counts tiles.

        Tiles of a tile end where the tile ends.
        """
        full_range = self.full(variable)
        relation = self.env.provenance.above(variable)
        if not isinstance(relation, Split | Divide) or variable != relation.inner:
            return full_range
        parent = self.full(relation.parent)
        outer_known = self.env.provenance.is_known(relation.outer, self.scope.bound)
        if not outer_known or fills(relation, parent):
            return full_range
        first = (self.determined(relation.outer), build.const(0))
        begin = recover_parent(relation, relation.parent, (parent,), first)
        return Interval(full_range.lo, build.minimum(full_range.hi, build.sub(parent.hi, begin)))

    def open_leaf(self, variable: str) -> str:
        """Return the one leaf of `variable` that no outer loop runs over."""
        leaves = self.env.provenance.leaves(variable)
        (leaf,) = (leaf for leaf in leaves if leaf not in self.scope.bound)
        return leaf


# ---------------------------------------------------------------- positions


def open_positions(env: Environment, scope: Scope, variable: str) -> tuple[Scope, list[Stmt]]:
    """Declare the range of positions for loops over `variable`, the first time."""
    pos = env.provenance.positions_above(variable) or env.provenance.position_of(variable)
    if pos is None or pos.child in scope.intervals:
        return scope, []
    access, levels = chain(env, pos)
    *_, segment = segments(env, scope, access, levels)
    ranges = Ranges(env, scope)
    index = env.provenance.roots(pos.parent)[-1]
    left = ranges.remaining(index) if len(levels) == 1 else None
    level = env.level(access, levels[-1])
    if left is not None and left != ranges.full(index) and isinstance(level, Compressed):
        segment = child_bounds(pos, pos.child, (left,), Entries(level, segment))
    code: list[Stmt] = []
    lo = in_variable(env, f"{pos.child}_begin", segment.lo, code)
    hi = in_variable(env, f"{pos.child}_end", segment.hi, code)
    return scope.ranging(pos.child, Interval(lo, hi)), code


@dataclass(frozen=True, slots=True)
class Opening:
    """Code before loops over entries: `before`, and `inside` an if where `some` entries are
    left."""

    scope: Scope
    before: tuple[Stmt, ...] = ()
    some: Expr = TRUE
    inside: tuple[Stmt, ...] = ()

    def enclose(self, code: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Return the opening, followed by `code`."""
        if not self.before and not self.inside:
            return code
        return (*self.before, build.if_(self.some, build.block(*self.inside, *code)))


def open_chain(env: Environment, scope: Scope, pos: Pos) -> Opening:
    """Declare the remaining positions of the levels of `pos`, before the first loop over them."""
    access, levels = chain(env, pos)
    left = scope.piece_of(pos.child) or Ranges(env, scope).remaining(pos.child)
    if (access, levels[-1]) in scope.left or left is None:
        return Opening(scope)
    before: list[Stmt] = []
    lo = in_variable(env, f"{pos.child}_from", left.lo, before)
    hi = in_variable(env, f"{pos.child}_to", left.hi, before)
    inside: list[Stmt] = []
    first, last = lo, build.sub(hi, 1)
    spans = tuple(segments(env, scope, access, levels))
    scope = scope.leaving(access, levels[-1], Interval(lo, hi))
    for level, above in reversed(tuple(zip(levels[1:], spans[:-1], strict=True))):
        name = f"p{access.tensor}{level}"
        first = parent_position(env, access, level, above, first)
        first = in_variable(env, f"{name}_first", first, inside)
        last = parent_position(env, access, level, Interval(first, above.hi), last)
        last = in_variable(env, f"{name}_last", last, inside)
        scope = scope.leaving(access, level - 1, Interval(first, build.add(last, 1)))
    some = build.lt(lo, hi) if inside else build.const(True)
    return Opening(scope, tuple(before), some, tuple(inside))


def chain(env: Environment, pos: Pos) -> tuple[Access, tuple[int, ...]]:
    """Return the access whose entries `pos` runs over, and its fused levels, outermost first."""
    roots = env.provenance.roots(pos.parent)
    for access in env.iterators:
        if pos.means(access.tensor, access.indices, roots):
            form = env.tensors[access.tensor].type.format
            levels = (form.mode_order.index(access.indices.index(root)) for root in roots)
            return access, tuple(levels)
    raise InternalError(f"{pos} names no operand with {', '.join(roots)}")


def is_absent(env: Environment, scope: Scope, forall: Forall) -> bool:
    """Tell whether a loop over an operand's positions has nothing to do.

    The operand stores nothing here, or all values that the loop computes are zero here.
    """
    provenance = env.provenance
    pos = provenance.positions_above(forall.index) or provenance.position_of(forall.index)
    if pos is None:
        return False
    regions = scope.regions(env)
    nothing = all(regions.is_absent(assign.value) for assign in assignments(forall.body))
    return nothing or chain(env, pos)[0] in scope.absent


def walked_positions(env: Environment, scope: Scope, forall: Forall) -> Pos | None:
    """Return the operand's positions through which a loop over an index walks, if it does.

    It does not where the operand stores nothing.
    """
    pos = env.provenance.position_of(forall.index)
    if pos is None:
        return None
    access, _ = chain(env, pos)
    return pos if access in read_in(forall.body) and access not in scope.absent else None


def segments(
    env: Environment, scope: Scope, access: Access, levels: tuple[int, ...]
) -> Iterator[Interval]:
    """Yield the range of positions of each level, below the position that `scope` has above the
    first."""
    parent = scope.position(access, levels[0] - 1)
    if parent is None:
        raise InternalError(f"Entries of {access.tensor} are counted before their parent is known")
    segment = point(parent)
    form = env.tensors[access.tensor].type.format
    for level in levels:
        if form.levels[level].full:
            size = env.sizes[access.indices[form.mode_order[level]]]
            segment = Interval(build.mul(segment.lo, size), build.mul(segment.hi, size))
        else:
            functions = env.level(access, level)
            segment = Interval(functions.bounds(segment.lo)[0], functions.bounds(segment.hi)[0])
        yield segment


def parent_position(
    env: Environment, access: Access, level: int, above: Interval, position: Expr
) -> Expr:
    """Return the position in `above` below which `position` of `level` lies."""
    form = env.tensors[access.tensor].type.format
    if form.levels[level].full:
        return build.div(position, env.sizes[access.indices[form.mode_order[level]]])
    functions = env.level(access, level)
    if not isinstance(functions, Compressed):
        return position
    after = Search(functions.pos, build.add(above.lo, 1), above.hi, position, after=True)
    return build.sub(after, 1)


def in_variable(env: Environment, name: str, value: Expr, code: list[Stmt]) -> Expr:
    """Return `value`, declared as a variable unless it is a variable or a constant."""
    if isinstance(value, Var | Const):
        return value
    var = Var(env.names.fresh(name))
    code.append(Declare(var, value, constant=True))
    return var
