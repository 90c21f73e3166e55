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
from taco_py.compiler.concrete.inner_sums import bound_in, sum_key, summed_indices
from taco_py.compiler.concrete.nodes import (
    Assign,
    Statement,
    Where,
    Workspace,
    WorkspaceKind,
    forall,
)
from taco_py.compiler.concrete.nodes import (
    Sequence as Statements,
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
    """The facts that every step needs."""

    problem: Problem
    names: Names
    dtypes: dict[str, np.dtype[np.generic]]
    provenance: Provenance

    def workspace(self, reduce: Reduce, row: Order) -> Workspace:
        """Return a workspace for `reduce`: a dense one over `row`, a scalar where that is ()."""
        dtype = expression_dtype(reduce, self.dtypes)
        name = self.names.fresh("w" if row else "t")
        self.dtypes[name] = dtype  # outer sums read it
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
    reserved: tuple[str, ...] = (),
) -> Statement:
    """Return the statement that computes `problem` with the loop order `orders[t]` for its term t.

    Each order has every index of its term and of the result once, or where `provenance` replaces an
    index, the variables that it is replaced by. Workspaces have other names than those in
    `reserved`.
    """
    terms = split_terms(problem.assignment.value)
    orders = tuple(provenance.loops(order) for order in orders)
    operands = dict(problem.operands)
    maker = Concretizer(
        problem,
        Names((*operands, problem.assignment.target.tensor, *reserved)),
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
    body: Statement = nests[0] if len(nests) == 1 else Statements(nests)
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
    """Return the loops over result indices with which all orders begin, as far as terms may share
    them.

    A loop that visits a coordinate more than once (COO) can only add up: it is never shared.
    """
    prefix: list[str] = []
    pairs = zip(terms, orders, strict=True)
    outer = (without_inner(term, order, provenance) for term, order in pairs)
    for column in zip(*outer, strict=False):
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
    """Return the loops of a term without the loops of inner sums, which fill workspaces."""
    inner = frozenset[str]().union(*map(bound_in, reductions(term.body)))
    return tuple(v for v in order if not inner.issuperset(provenance.roots(v)))


def row_of(sum_: Reduce, order: Order) -> Order:
    """Return the indices of an inner sum whose loops come after one of the sum's loops.

    The sum is then computed for all of them at once.
    """
    needs = free_indices(sum_)
    return tuple(v for v in order[_begins(sum_, order) :] if v in needs)


def _begins(sum_: Reduce, order: Order) -> int:
    """Count the loops before the first loop of a sum itself."""
    indices = summed_indices(sum_)
    return next((place for place, v in enumerate(order) if v in indices), len(order))


def _next_sum(expr: Expr, order: Order, outer: Collection[str]) -> Reduce | None:
    """Return the sum of an expression to compute first, None where there is none.

    It is an inner sum where that begins before one of the `outer` loops of the expression.
    """
    sums = (pair for outermost in reductions(expr) for pair in _from_inside(outermost, order))
    for sum_, depth in sums:
        if depth == 0 or any(v in outer for v in order[_begins(sum_, order) :]):
            return sum_
    return None


def _from_inside(sum_: Reduce, order: Order, depth: int = 0) -> Iterator[tuple[Reduce, int]]:
    """Yield the inner sums that may be computed before a sum's loops, then the sum, with depths."""
    (term, *_) = split_terms(sum_)
    for inner in reductions(term.body):
        for nested, below in _from_inside(inner, order, depth + 1):
            needs = set(free_indices(nested)).difference(row_of(nested, order))
            if needs.isdisjoint(summed_indices(sum_)):
                yield nested, below
    yield sum_, depth


def result_indices(problem: Problem, loops: Order) -> Order:
    """Return the loops that run over an index of the result itself, not over its tiles."""
    return tuple(v for v in loops if v in problem.assignment.target.indices)


def _in_place(problem: Problem, provenance: Provenance, prefix: Order, variable: str) -> bool:
    """Tell whether a loop after `prefix` visits the next levels of the result in order.

    Tiles of an index that is appended to come before it and in order; those of several indices
    revisit a coordinate of the outer ones, which a level allows that has no coordinates, or that
    stores one for each entry of the level below.
    """
    result = result_order(problem)
    roots = provenance.roots(variable)
    if not is_sparse(problem.result.format):
        return set(roots) <= set(result)
    depth = len(result_indices(problem, prefix))
    levels = problem.result.format.levels[depth : depth + len(roots)]
    return (
        result[depth : depth + len(roots)] == roots
        and all(level.full or below.branchless for level, below in pairwise(levels))
        and provenance.goes_on(prefix, variable)
    )


def _may_share(problem: Problem, terms: tuple[Term, ...], index: str) -> bool:
    """Tell whether no operand repeats coordinates of `index`, unless the result repeats them
    too."""
    repeats = any(index in repeated(problem, term) for term in terms)
    return not repeats or copies_pattern(problem)


def _merges_many(problem: Problem, terms: tuple[Term, ...], indices: Order) -> bool:
    """Tell whether a loop over these indices would merge too many terms or cases."""

    def is_merged(access: Access) -> bool:
        form = problem.type_of(access.tensor).format
        levels = zip(form.stored(access.indices), form.levels, strict=True)
        return any(index in indices and not level.full for index, level in levels)

    merged = [term.body for term in terms if any(map(is_merged, accesses(term.body)))]
    few = MERGED_TERMS.allows(len(merged)) and LOOP_CASES.allows(cases_of_sum(merged, is_merged))
    return not few


def repeated(problem: Problem, term: Term, folded: Collection[Access] = ()) -> frozenset[str]:
    """Return the indices of which the term's operands may store a coordinate more than once.

    folded  the accesses that are read from copies without duplicates
    """
    indices: set[str] = set()
    for access in accesses(term.body):
        if access in folded:
            continue
        form = problem.type_of(access.tensor).format
        stored = form.stored(access.indices)
        repeats = (k for k, level in enumerate(form.levels) if not level.unique)
        indices.update(stored[next(repeats, len(stored)) :])
    return frozenset(indices)


def copies_pattern(problem: Problem) -> bool:
    """Tell whether the result is a coordinate list with one entry for each entry of an operand.

    Then duplicates stay duplicates, so that a list with duplicates may be walked directly.
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
    """Tell whether elements of the result may have the initial value of their reduction.

    A sparse result has only zeros in levels that store all coordinates.
    """
    return all(term.operator.additive for term in terms) or not is_sparse(problem.result.format)


def fits_row(problem: Problem) -> bool:
    """Tell whether a row workspace can hold the full result."""
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
    """The sums computed inside some loops so far: workspaces with their producers, at each depth.

    loops     the outer loops, outermost first
    computed  the workspace of each sum, by the key of the sum
    """

    maker: Concretizer
    loops: Sequence[str]
    producers: dict[int, list[tuple[Workspace, Statement]]] = field(default_factory=dict)
    computed: dict[Hashable, Access] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=dict)

    def replaced(self, value: Expr, order: Order, depth_of: Callable[[Reduce], int]) -> Expr:
        """Return the value with workspaces for its sums; equal sums share one.

        depth_of  the number of loops around a sum
        """
        while sum_ := _next_sum(value, order, self.loops):
            key = sum_key(sum_)
            if key not in self.computed:
                workspace = self.maker.workspace(sum_, row_of(sum_, order))
                if not workspace.indices:
                    workspace = replace(workspace, stored=self._stored(key))
                term = split_terms(sum_)[0]
                body = term.signed(workspace.dtype)
                producer = _nest(self.maker, workspace.access, body, order, term)
                read = (self.depths.get(access.tensor, 0) for access in accesses(sum_))
                depth = max((depth_of(sum_), *read))
                self.producers.setdefault(depth, []).append((workspace, producer))
                self.computed[key], self.depths[workspace.name] = workspace.access, depth
            value = exchange(value, sum_, self.computed[key])
        return value

    def _stored(self, key: Hashable) -> Access | None:
        """Return the side result that equals the sum of a key, in terms of the sums so far."""
        for side in self.maker.problem.side:
            sum_ = map_children(side.value, self._with_computed)
            if isinstance(sum_, Reduce) and sum_key(sum_) == key:
                return side.target
        return None

    def _with_computed(self, expr: Expr) -> Expr:
        """Return an expression with workspaces for sums that are computed already."""
        inside = map_children(expr, self._with_computed)
        workspace = self.computed.get(sum_key(inside)) if isinstance(inside, Reduce) else None
        return inside if workspace is None else workspace

    def enclose(self, statement: Statement, depth: int) -> Statement:
        """Return the statement with the sums of one depth computed before it."""
        for workspace, producer in reversed(self.producers.get(depth, [])):
            statement = Where(workspace, statement, producer)
        return statement


def _gather(maker: Concretizer, orders: tuple[Order, ...], prefix: Order) -> Statement:
    """Return loops over all of the result's indices around the assignment to it.

    Equal sums are computed once. A sum is inside the loops that come before the sum's loops in the
    order of its term.
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
        statement = sums.enclose(statement, depth)
        if depth:
            statement = forall((prefix[depth - 1],), statement)
    return statement


def _nest(maker: Concretizer, target: Access, value: Expr, order: Order, term: Term) -> Statement:
    """Return loops over `order` around `target += value`.

    Each inner sum is at the loop that completes its indices. Where the innermost loops add to
    one element of the result, they add to a scalar first: `where(y[i] += t, forall j t += …)`.
    """
    indices = {*term.reduced, *target.indices}
    loops = [v for v in order if indices.intersection(maker.provenance.roots(v))]
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
        statement = sums.enclose(statement, depth)
        if total is not None and depth == summed:
            statement = Where(total, Assign(target, total.access, term.operator), statement)
        if depth:
            statement = forall((loops[depth - 1],), statement)
    return statement


def _summed_from(maker: Concretizer, target: Access, loops: list[str], value: Expr) -> int:
    """Count the `loops` around the innermost ones, which add to one element of the result.

    All of them, if the innermost loops have one iteration each.
    """
    if target != maker.problem.assignment.target:
        return len(loops)
    depth = len(loops)
    while depth and not set(maker.provenance.roots(loops[depth - 1])) & set(target.indices):
        depth -= 1
    branchless = {
        access.indices[mode]
        for access in accesses(value)
        for level, mode in enumerate(maker.problem.type_of(access.tensor).format.mode_order)
        if maker.problem.type_of(access.tensor).format.levels[level].branchless
    }
    return len(loops) if branchless.issuperset(loops[depth:]) else depth


def _without(order: Order, prefix: Order) -> Order:
    return tuple(i for i in order if i not in prefix)
