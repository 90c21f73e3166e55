"""Index notation + loop orders → concrete index notation.

The loop orders (one for each additive term, from the user or an adviser) decide everything else:

1. The *prefix* is the longest run of result indices with which every order begins. Its loops are
   shared by all terms. Where the result can be added to, it ends before a loop would merge more
   than MERGED_TERMS of them.
2. If the prefix covers the result, each sum becomes a scalar workspace:

       y[i] = b[i] - sum(j, A[i,j] * x[j])
       → forall i ( where(y[i] = b[i] - t, forall j t += A[i,j] * x[j]) )

3. Otherwise terms scatter below the prefix: straight into a result that allows it (dense levels),
   else into a workspace over the remaining result indices, a row if there is one, a hash table if
   more:

       C[i,j] = sum(k, A[i,k] * B[k,j]) with order i, k, j
       → forall i ( where(forall j C[i,j] = w[j], forall k forall j w[j] += A[i,k] * B[k,j]) )

(Kjolstad et al. 2019, sections 5 and 6.) Sums inside products become scalar workspaces at the
innermost loop they depend on. Where an order has the loops of such a sum outside some that it
depends on, it becomes a dense row over these, filled before them:

       H[i,k] = sum(j, A[i,j] * X[j,k]) / d[k] with order i, j, k
       → forall i ( where(forall k H[i,k] = w[k] / d[k],
                          forall j forall k w[k] += A[i,j] * X[j,k]) )
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import field, replace
from itertools import pairwise

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.concrete.case_counts import cases_of_sum
from taco_py.compiler.concrete.inner_sums import bound_in, own_indices, sum_key
from taco_py.compiler.concrete.nodes import (
    Assign,
    Statement,
    Where,
    Workspace,
    WorkspaceKind,
    forall,
)
from taco_py.compiler.concrete.nodes import (
    Sequence as Both,
)
from taco_py.compiler.concrete.terms import Term, map_terms, reductions, split_terms
from taco_py.language.legal.absent import restricts
from taco_py.language.legal.cases import LOOP_CASES, MERGED_TERMS
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import FILLED, Operator
from taco_py.language.notation.tree import exchange, map_children
from taco_py.language.problem import Problem
from taco_py.language.provenance.provenance import UNDERIVED, Provenance

Order = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Concretizer:
    """The facts that every step below needs."""

    problem: Problem
    names: Names
    dtypes: dict[str, np.dtype[np.generic]]
    provenance: Provenance

    def workspace(self, reduce: Reduce, row: Order) -> Workspace:
        """Return a workspace of the dtype of `reduce`: a dense one over `row`, a scalar where it is
        ()."""
        dtype = expression_dtype(reduce, self.dtypes)
        name = self.names.fresh("w" if row else "t")
        self.dtypes[name] = dtype  # sums around it read it
        kind = WorkspaceKind.DENSE if row else WorkspaceKind.SCALAR
        return Workspace(name, row, kind, dtype.name, operator=reduce.operator)

    def total(self, operator: Operator) -> Workspace:
        """Return a scalar workspace of the result's dtype."""
        return self._scalar(self.problem.result.dtype, operator)

    def _scalar(self, dtype: str, operator: Operator) -> Workspace:
        name = self.names.fresh("t")
        return Workspace(name, (), WorkspaceKind.SCALAR, dtype, operator=operator)


def result_order(problem: Problem) -> Order:
    """Return the result's indices in storage order, outermost level first."""
    return problem.stored(problem.assignment.target)


def concretize(
    problem: Problem,
    orders: tuple[Order, ...],
    provenance: Provenance = UNDERIVED,
    taken: tuple[str, ...] = (),
) -> Statement:
    """Return the statement that computes `problem` with the loop order `orders[t]` for its t-th
    term.

    Each order holds every index of its term and of the result once, or where `provenance` replaces
    an index, the variables that it is replaced by. Workspaces have other names than those `taken`.
    """
    terms = split_terms(problem.assignment.value)
    orders = tuple(provenance.loops(order) for order in orders)
    operands = dict(problem.operands)
    maker = Concretizer(
        problem,
        Names((*operands, problem.assignment.target.tensor, *taken)),
        {name: np.dtype(t.dtype) for name, t in problem.operands},
        provenance,
    )
    prefix = shared_prefix(problem, terms, orders, provenance)
    depth = len(result_indices(problem, prefix))
    if depth == problem.result.format.order:
        return _gather(maker, orders, prefix)
    if can_scatter(problem, depth) and _begins_anywhere(problem, terms):
        target, consume = problem.assignment.target, None
    else:
        workspace = _scatter_workspace(maker, prefix, terms[0].operator)
        target = workspace.access
        consume = workspace
    nests = tuple(
        _nest(maker, target, term.signed(problem.result.dtype), _without(order, prefix), term)
        for term, order in zip(terms, orders, strict=True)
    )
    body: Statement = nests[0] if len(nests) == 1 else Both(nests)
    if consume is not None:
        value: Expr = consume.access
        if consume.initial != 0:  # which is absent where nothing was reduced
            value = Call(FILLED, (value, Literal(0)))
        drain = Assign(problem.assignment.target, value)
        body = Where(consume, forall(consume.indices, drain), body)
    return forall(prefix, body)


def shared_prefix(
    problem: Problem,
    terms: tuple[Term, ...],
    orders: tuple[Order, ...],
    provenance: Provenance = UNDERIVED,
) -> Order:
    """Return the loops over result indices with which all orders begin, as far as they may be
    shared.

    A loop that meets a coordinate more than once (COO) can only add up: it is never shared.
    """
    prefix: list[str] = []
    pairs = zip(terms, orders, strict=True)
    around = (without_inner(term, order, provenance) for term, order in pairs)
    for column in zip(*around, strict=False):
        variable = column[0]
        same = all(other == variable for other in column)
        if not same or not _in_place(problem, provenance, tuple(prefix), variable):
            break
        if not _may_share(problem, terms, variable):
            break
        if can_scatter(problem, 0) and _merges_many(problem, terms, provenance.roots(variable)):
            break
        prefix.append(variable)
    return tuple(prefix)


def without_inner(term: Term, order: Order, provenance: Provenance = UNDERIVED) -> Order:
    """Return the loops of a term without those of the sums inside it, which fill workspaces."""
    inner = frozenset[str]().union(*map(bound_in, reductions(term.body)))
    return tuple(v for v in order if not inner.issuperset(provenance.roots(v)))


def row_of(sum_: Reduce, order: Order) -> Order:
    """Return the indices an inner sum depends on whose loops come after one of its own in an order.

    The sum is then computed for all of them at once.
    """
    needs = free_indices(sum_)
    return tuple(v for v in order[_begins(sum_, order) :] if v in needs)


def _begins(sum_: Reduce, order: Order) -> int:
    """Count how many loops come before the first of a sum's own."""
    own = own_indices(sum_)
    return next((place for place, v in enumerate(order) if v in own), len(order))


def _next_sum(expr: Expr, order: Order, around: Collection[str]) -> Reduce | None:
    """Return the sum of an expression to be made first: an inner one where it begins before one of
    the loops `around` the expression; None where there is no sum."""
    sums = (each for outermost in reductions(expr) for each in _from_inside(outermost, order))
    for sum_, depth in sums:
        if depth == 0 or any(v in around for v in order[_begins(sum_, order) :]):
            return sum_
    return None


def _from_inside(sum_: Reduce, order: Order, depth: int = 0) -> Iterator[tuple[Reduce, int]]:
    """Yield a sum after the sums inside it that may be made before its own loops, with their
    depths."""
    (term, *_) = split_terms(sum_)
    for inner in reductions(term.body):
        for each, below in _from_inside(inner, order, depth + 1):
            needs = set(free_indices(each)).difference(row_of(each, order))
            if needs.isdisjoint(own_indices(sum_)):
                yield each, below
    yield sum_, depth


def result_indices(problem: Problem, loops: Order) -> Order:
    """Those of `loops` that are over an index of the result itself, not over its tiles."""
    return tuple(v for v in loops if v in problem.assignment.target.indices)


def _in_place(problem: Problem, provenance: Provenance, prefix: Order, variable: str) -> bool:
    """Tell whether a loop after `prefix` goes on through the result, appending where that is
    needed.

    Tiles of an index that is appended to come before it and in order; those of several indices
    meet a coordinate of the outer ones again, which a level allows that has no coordinates, or that
    stores one for each entry of the level below.
    """
    result = result_order(problem)
    roots = provenance.roots(variable)
    if not is_sparse(problem.result.format):
        return set(roots) <= set(result)
    done = len(result_indices(problem, prefix))
    levels = problem.result.format.levels[done : done + len(roots)]
    return (
        result[done : done + len(roots)] == roots
        and all(level.full or below.branchless for level, below in pairwise(levels))
        and provenance.goes_on(prefix, variable)
    )


def _may_share(problem: Problem, terms: tuple[Term, ...], index: str) -> bool:
    """Tell whether no operand has `index` in a level with duplicates, or the result repeats
    them."""
    repeats = any(index in repeated(problem, term) for term in terms)
    return not repeats or copies_pattern(problem)


def _merges_many(problem: Problem, terms: tuple[Term, ...], indices: Order) -> bool:
    """Tell whether many terms have an operand that stores coordinates of one of these indices, or
    the terms have many cases together."""

    def is_merged(access: Access) -> bool:
        form = problem.type_of(access.tensor).format
        levels = zip(form.stored(access.indices), form.levels, strict=True)
        return any(index in indices and not level.full for index, level in levels)

    merged = [term.body for term in terms if any(map(is_merged, accesses(term.body)))]
    few = MERGED_TERMS.allows(len(merged)) and LOOP_CASES.allows(cases_of_sum(merged, is_merged))
    return not few


def repeated(problem: Problem, term: Term, folded: Collection[Access] = ()) -> frozenset[str]:
    """Return the indices of which the term's operands may store a coordinate more than once.

    folded  those that are read from copies which store each once
    """
    found: set[str] = set()
    for access in accesses(term.body):
        if access in folded:
            continue
        form = problem.type_of(access.tensor).format
        stored = form.stored(access.indices)
        repeats = (k for k, level in enumerate(form.levels) if not level.unique)
        found.update(stored[next(repeats, len(stored)) :])
    return frozenset(found)


def copies_pattern(problem: Problem) -> bool:
    """Tell whether the result is a coordinate list with one entry for each of one operand's.

    Then equal coordinates stay as many as they were, so a list with duplicates may be walked
    directly.
    """
    if not problem.result.format.is_coo:
        return False
    terms = split_terms(problem.assignment.value)
    if len(terms) != 1:
        return False
    sparse = [a for a in accesses(terms[0].body) if is_sparse(problem.type_of(a.tensor).format)]
    return len(set(sparse)) == 1 and (
        restricts(terms[0].body, sparse[0])
        and problem.type_of(sparse[0].tensor).format.is_coo
        and problem.stored(sparse[0]) == result_order(problem)
    )


def can_scatter(problem: Problem, depth: int) -> bool:
    """Tell whether the levels of the result from `depth` on can be written in any order."""
    return all(level.full for level in problem.result.format.levels[depth:])


def _begins_anywhere(problem: Problem, terms: tuple[Term, ...]) -> bool:
    """Tell whether elements of the result may be what they are reduced from before they are
    reached: a sparse result has zeros alone in levels that store all coordinates."""
    return all(term.operator.additive for term in terms) or not is_sparse(problem.result.format)


def fits_row(problem: Problem) -> bool:
    """Tell whether a row workspace holds the whole result."""
    return _is_short(problem, result_order(problem))


def _is_short(problem: Problem, rest: Order) -> bool:
    return len(rest) == 1 and rest[0] not in problem.vast


def _scatter_workspace(maker: Concretizer, prefix: Order, operator: Operator) -> Workspace:
    rest = _without(result_order(maker.problem), prefix)
    short = _is_short(maker.problem, rest)
    kind = WorkspaceKind.ROW if short else WorkspaceKind.HASH
    levels = maker.problem.result.format.levels
    ordered = all(level.ordered for level in levels[len(levels) - len(rest) :])
    return Workspace(
        maker.names.fresh("w"),
        rest,
        kind,
        maker.problem.result.dtype,
        ordered or not short,
        operator=operator,
    )


@dataclass(frozen=True, slots=True)
class _Sums:
    """The sums made inside some loops so far: at each depth workspaces with their producers.

    loops  those around, outermost first
    """

    maker: Concretizer
    loops: Sequence[str]
    producers: dict[int, list[tuple[Workspace, Statement]]] = field(default_factory=dict)
    made: dict[Hashable, Access] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=dict)

    def replaced(self, value: Expr, order: Order, depth_of: Callable[[Reduce], int]) -> Expr:
        """Return the value with workspaces in the place of its sums, equal ones made once.

        depth_of  how many of the loops are around a sum
        """
        while sum_ := _next_sum(value, order, self.loops):
            key = sum_key(sum_)
            if key not in self.made:
                workspace = self.maker.workspace(sum_, row_of(sum_, order))
                if not workspace.indices:
                    workspace = replace(workspace, stored=self._stored(key))
                term = split_terms(sum_)[0]
                body = term.signed(workspace.dtype)
                producer = _nest(self.maker, workspace.access, body, order, term)
                read = (self.depths.get(access.tensor, 0) for access in accesses(sum_))
                depth = max((depth_of(sum_), *read))
                self.producers.setdefault(depth, []).append((workspace, producer))
                self.made[key], self.depths[workspace.name] = workspace.access, depth
            value = exchange(value, sum_, self.made[key])
        return value

    def _stored(self, key: Hashable) -> Access | None:
        """Return the side result that is the sum with a key, which reads the sums made so far."""
        for side in self.maker.problem.side:
            sum_ = map_children(side.value, self._of_made)
            if isinstance(sum_, Reduce) and sum_key(sum_) == key:
                return side.target
        return None

    def _of_made(self, expr: Expr) -> Expr:
        """Return an expression with workspaces in the place of sums that are made."""
        inside = map_children(expr, self._of_made)
        found = self.made.get(sum_key(inside)) if isinstance(inside, Reduce) else None
        return inside if found is None else found

    def around(self, statement: Statement, depth: int) -> Statement:
        """Return the statement with the sums at one depth made before it."""
        for workspace, producer in reversed(self.producers.get(depth, [])):
            statement = Where(workspace, statement, producer)
        return statement


def _gather(maker: Concretizer, orders: tuple[Order, ...], prefix: Order) -> Statement:
    """Return loops over all of the result's indices around the assignment to it; equal sums are
    made once.

    A sum is made inside those loops that come before its own in the order of its term.
    """
    assignment = maker.problem.assignment
    remaining = iter(orders)
    sums = _Sums(maker, prefix)

    def gather(expr: Expr) -> Expr:
        """Return the term `expr` with its sums replaced; terms come in `split_terms`' order."""
        order = next(remaining)
        return sums.replaced(
            expr, order, lambda sum_: sum(v in prefix for v in order[: _begins(sum_, order)])
        )

    value = map_terms(assignment.value, gather)
    statement: Statement = Assign(assignment.target, value, assignment.operator)
    for depth in range(len(prefix), -1, -1):
        statement = sums.around(statement, depth)
        if depth:
            statement = forall((prefix[depth - 1],), statement)
    return statement


def _nest(maker: Concretizer, target: Access, value: Expr, order: Order, term: Term) -> Statement:
    """Return loops over `order` around `target += value`.

    Each inner sum stands at the loop that completes its indices. Where the innermost loops add to
    one element of the result, they add to a scalar first: `where(y[i] += t, forall j t += …)`.
    """
    own = {*term.reduced, *target.indices}
    loops = [v for v in order if own.intersection(maker.provenance.roots(v))]
    summed = _summed_from(maker, target, loops, value)
    total = maker.total(term.operator) if summed < len(loops) else None
    sums = _Sums(maker, loops)

    def completed(sum_: Reduce) -> int:
        needs = set(free_indices(sum_)).difference(row_of(sum_, order))
        return max((loops.index(i) + 1 for i in needs if i in loops), default=0)

    value = sums.replaced(value, order, completed)
    into = target if total is None else total.access
    statement: Statement = Assign(into, value, term.operator)
    for depth in range(len(loops), -1, -1):
        statement = sums.around(statement, depth)
        if total is not None and depth == summed:
            statement = Where(total, Assign(target, total.access, term.operator), statement)
        if depth:
            statement = forall((loops[depth - 1],), statement)
    return statement


def _summed_from(maker: Concretizer, target: Access, loops: list[str], value: Expr) -> int:
    """Count how many of `loops` are around those that add to one element of the result, all if
    these make one round each."""
    if target != maker.problem.assignment.target:
        return len(loops)
    depth = len(loops)
    while depth and not set(maker.provenance.roots(loops[depth - 1])) & set(target.indices):
        depth -= 1
    once = {
        access.indices[mode]
        for access in accesses(value)
        for level, mode in enumerate(maker.problem.type_of(access.tensor).format.mode_order)
        if maker.problem.type_of(access.tensor).format.levels[level].branchless
    }
    return len(loops) if once.issuperset(loops[depth:]) else depth


def _without(order: Order, prefix: Order) -> Order:
    return tuple(i for i in order if i not in prefix)
