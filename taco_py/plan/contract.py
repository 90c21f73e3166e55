"""Splitting: what is better computed first, into a temporary tensor, than inside all loops.

Three reasons to split a term off:

* a product of three or more operands has a cheaper order of pairwise contractions, as A·(B·x) is
  for A·B·x;
* a sum inside a product would be computed again in every round of a loop it does not depend on;
* a sum has an integer or bool type that its accumulation in the result's type would not respect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce as fold
from typing import Any

import numpy as np

from codegen.names import Names
from taco_py.autoschedule.orders import CONVERSION, best_order, needs_copy
from taco_py.concrete.terms import Term, map_terms, reductions, split_terms
from taco_py.cost.estimate import Statistics, result_size
from taco_py.notation.checks import accesses, free_indices
from taco_py.notation.dtypes import expression_dtype
from taco_py.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.notation.operators import ADD, MUL
from taco_py.notation.tree import exchange
from taco_py.plan.formats import default_format
from taco_py.plan.nodes import Operand
from taco_py.plan.paths import TEMPORARY, cheapest_tree
from taco_py.plan.single import Request, statistics
from taco_py.problem import Problem, TensorType

DType = np.dtype[Any]
GAIN = 1.5  # how many times cheaper a split must be


@dataclass(frozen=True, slots=True)
class Split:
    """Assignments to compute in turn, the original target's last, and all their operands."""

    assignments: tuple[Assignment, ...]
    operands: Mapping[str, Operand]
    notes: tuple[str, ...]


@dataclass(slots=True)
class Splitter:
    """Collects temporaries while an assignment is taken apart."""

    operands: dict[str, Operand]
    request: Request
    names: Names
    sizes: Mapping[str, float]
    made: list[Assignment]
    notes: list[str]

    @property
    def dtypes(self) -> dict[str, DType]:
        """The dtype of every tensor that exists so far."""
        return {name: np.dtype(o.type.dtype) for name, o in self.operands.items()}

    def statistics(self, value: Expr) -> Statistics:
        """The patterns of `value`'s operands, and the whole assignment's sizes."""
        known = statistics(Assignment(Access("", ()), value), self.operands)
        return replace(known, sizes={**self.sizes, **known.sizes})

    def temporary(self, value: Expr, keep: Sequence[str], why: str) -> Access:
        """Assign `value`, summed over all but `keep`, to a new tensor and return its access."""
        for index in reversed([i for i in free_indices(value) if i not in keep]):
            value = Reduce(ADD, index, value)
        target = Access(self.names.fresh("T"), tuple(keep))
        assignment = Assignment(target, value)
        formats = {n: o.type.format for n, o in self.operands.items()}
        stats = self.statistics(value)
        form = default_format(assignment, formats)
        shape = tuple(int(stats.sizes[i]) for i in keep)
        nnz = result_size(stats, value, keep)
        dtype = expression_dtype(value, self.dtypes).name
        index = self.request.type.index_dtype
        self.operands[target.tensor] = Operand(TensorType(form, dtype, index), shape, nnz)
        self.made.append(assignment)
        self.notes.append(f"{target.tensor}: {why}")
        return target


def split(
    assignment: Assignment,
    operands: Mapping[str, Operand],
    request: Request,
    names: Names,
    path: Sequence[tuple[int, ...]] | None = None,
    contract: bool = True,
) -> Split:
    """The assignment as a sequence of cheaper ones, or alone when it is best as a whole.

    path      the pairwise contractions of a single product, in einsum's numbering; chosen by cost
              where None
    contract  False keeps products of any number of operands whole
    """
    sizes = statistics(assignment, operands).sizes
    splitter = Splitter(dict(operands), request, names, sizes, [], [])
    value = map_terms(assignment.value, lambda term: _flatten(splitter, term))
    if path is None:
        value = map_terms(value, lambda term: _push_in(splitter, term))
    value = map_terms(value, lambda term: _hoist(splitter, assignment, term))
    if path is not None or contract:
        value = map_terms(value, lambda term: _contract(splitter, assignment, term, path))
    value = _narrow_sums(splitter, assignment, value)
    last = replace(assignment, value=value)
    return Split((*splitter.made, last), splitter.operands, tuple(splitter.notes))


# ---------------------------------------------------------------- sums inside products


def _flatten(splitter: Splitter, expr: Expr) -> Expr:
    """`sum(j, sum(k, B * C) * x)` → `sum(j, sum(k, B * C * x))`: one product under all its sums.

    Multiplication distributes over a sum; the order of the sums is then free to choose. Integer
    sums of another type than the product's wrap by themselves and stay.
    """
    match expr:
        case Reduce(operator, _, body) if operator == ADD:
            return replace(expr, body=_flatten(splitter, body))
        case Call(operator, (left, right)) if operator == MUL:
            dtypes = splitter.dtypes
            whole = expression_dtype(expr, dtypes)
            parts = [_flatten(splitter, left), _flatten(splitter, right)]
            sums: list[Reduce] = []
            for place, other in ((0, 1), (1, 0)):
                while _leaves(parts[place], parts[other], sums, whole, dtypes):
                    sum_ = parts[place]
                    assert isinstance(sum_, Reduce)
                    sums.append(sum_)
                    parts[place] = sum_.body
            product: Expr = replace(expr, args=tuple(parts))
            for sum_ in reversed(sums):
                product = replace(sum_, body=product)
            return product
    return expr


def _push_in(splitter: Splitter, expr: Expr) -> Expr:
    """`sum(j, sum(k, A[i,j] * B[i,k]))` → `sum(j, A[i,j]) * sum(k, B[i,k])`.

    An index that one factor alone has is summed there, so that its loop is beside those of the
    other factors and not around or inside them. Integer products of another type keep their sums.
    """
    (term, *more) = split_terms(expr)
    factors = list(_factors(term.body))
    if more or term.negative or sum(bool(free_indices(f)) for f in factors) < 2:
        return expr
    dtypes = splitter.dtypes
    whole = expression_dtype(term.body, dtypes)
    around = []
    for index in reversed(term.reduced):
        users = [k for k, f in enumerate(factors) if index in free_indices(f)]
        if len(users) == 1 and expression_dtype(factors[users[0]], dtypes) == whole:
            factors[users[0]] = Reduce(ADD, index, factors[users[0]])
        else:
            around.append(index)
    if len(around) == len(term.reduced):
        return expr
    value = fold(lambda a, b: Call(MUL, (a, b)), factors)
    for index in around:
        value = Reduce(ADD, index, value)
    return value


def _leaves(
    expr: Expr, other: Expr, sums: Sequence[Reduce], whole: DType, dtypes: Mapping[str, DType]
) -> bool:
    """Whether `expr` is a sum that may be moved around its product with `other`."""
    if not isinstance(expr, Reduce) or expr.operator != ADD:
        return False
    own = expression_dtype(expr, dtypes)
    clash = any(expr.index in access.indices for access in accesses(other))
    taken = any(sum_.index == expr.index for sum_ in sums)
    return not clash and not taken and (own == whole or own.kind in "fc")


def _hoist(splitter: Splitter, assignment: Assignment, expr: Expr) -> Expr:
    """Compute first each inner sum that loops around it would repeat."""
    (term, *more) = split_terms(expr)
    if more:
        return expr
    inner = tuple(reductions(term.body))
    if not inner:
        return expr
    stats = splitter.statistics(expr)
    problem = _draft(splitter, assignment, expr)
    order = best_order(problem, term, stats).order
    for sum_ in inner:
        own = frozenset(i for a in accesses(sum_) for i in a.indices)
        needs = free_indices(sum_)
        depth = max((order.index(i) + 1 for i in needs), default=0)
        inside = stats.iterations(term.body, frozenset(order[:depth]) | own)
        alone = stats.iterations(sum_.body, own) + TEMPORARY * result_size(stats, sum_, needs)
        copied = copy_cost(stats, problem, term, order, accesses(sum_))
        if copied:
            inside += copied
            alone += _own_copies(splitter, stats, sum_)
        if alone * GAIN < inside:
            others = ",".join(i for i in order[:depth] if i not in needs)
            why = f"this sum does not depend on {others}, whose loop would repeat it"
            if not others:
                why = "by itself, this sum needs fewer operands in another order"
            expr = exchange(expr, sum_, splitter.temporary(sum_, needs, why))
    return expr


def _own_copies(splitter: Splitter, stats: Statistics, sum_: Reduce) -> float:
    """What the copies cost that `sum_` needs when it is computed by itself."""
    (term, *more) = split_terms(sum_)
    if more:
        return 0.0
    part = Assignment(Access("", free_indices(sum_)), sum_)
    form = default_format(part, {n: o.type.format for n, o in splitter.operands.items()})
    result = replace(splitter.request.type, format=form)
    problem = replace(_draft(splitter, part, sum_), result=result)
    return copy_cost(stats, problem, term, best_order(problem, term, stats).order)


def _draft(splitter: Splitter, assignment: Assignment, value: Expr) -> Problem:
    whole = replace(assignment, value=value)
    names = dict.fromkeys(a.tensor for a in accesses(value))
    types = tuple((name, splitter.operands[name].type) for name in names)
    return Problem(whole, types, splitter.request.type, splitter.request.static)


# ---------------------------------------------------------------- products of many


def _factors(expr: Expr) -> Iterator[Expr]:
    match expr:
        case Call(operator, (left, right)) if operator == MUL:
            yield from _factors(left)
            yield from _factors(right)
        case _:
            yield expr


def _contract(
    splitter: Splitter,
    assignment: Assignment,
    expr: Expr,
    path: Sequence[tuple[int, ...]] | None,
) -> Expr:
    """Take a product of three or more tensors apart where that is cheaper."""
    (term, *more) = split_terms(expr)
    factors = list(_factors(term.body))
    tensors = [f for f in factors if free_indices(f)]
    if more or term.negative or len(tensors) < 3 or not _distinct(term):
        return expr
    if path is None and not term.reduced:
        return expr  # pairs would save no loop, for nothing is summed between them
    if len({expression_dtype(f, splitter.dtypes) for f in factors}) > 1:
        return expr  # a product of the narrower ones alone would wrap or round on its own
    numbers = [f for f in factors if not free_indices(f)]
    stats = splitter.statistics(expr)
    kept = tuple(dict.fromkeys(assignment.target.indices))
    if path is None:
        tree = cheapest_tree(stats, tensors, kept)
        every = frozenset(i for a in accesses(term.body) for i in a.indices)
        whole = stats.iterations(term.body, every | set(kept))
        if tree.cost * GAIN >= whole:
            draft = _draft(splitter, assignment, expr)
            whole += copy_cost(stats, draft, term, best_order(draft, term, stats).order)
        if tree.cost * GAIN >= whole:
            return expr
        path = tree.path
        why = f"in pairs about {tree.cost:.2g} operations instead of {whole:.2g} in one kernel"
    else:
        why = "the contraction order was given"
    return _follow(splitter, term, tensors, numbers, kept, path, why)


def copy_cost(
    stats: Statistics,
    problem: Problem,
    term: Term,
    order: tuple[str, ...],
    among: Sequence[Access] | None = None,
) -> float:
    """What the copies cost that this loop order needs, of all operands or those `among`."""
    return sum(
        CONVERSION * stats.patterns[a.tensor].nnz
        for a in dict.fromkeys(accesses(term.body) if among is None else among)
        if needs_copy(problem, term, a, order)
    )


def _distinct(term: Term) -> bool:
    """Whether each operand is multiplied as it is: every index summed at the top of the term."""
    return not any(True for _ in reductions(term.body))


def _follow(
    splitter: Splitter,
    term: Term,
    tensors: list[Expr],
    numbers: list[Expr],
    kept: tuple[str, ...],
    path: Sequence[tuple[int, ...]],
    why: str,
) -> Expr:
    """Contract along `path`, but for the last product, which stays in the assignment."""
    rest = list(tensors)
    for pair in path:
        chosen = [rest[k] for k in pair]
        left = [f for k, f in enumerate(rest) if k not in pair]
        if not left:
            break
        needed = {i for f in left for i in free_indices(f)} | set(kept)
        product = fold(lambda a, b: Call(MUL, (a, b)), chosen)
        keep = tuple(i for i in free_indices(product) if i in needed)
        rest = [*left, splitter.temporary(product, keep, why)]
    value = fold(lambda a, b: Call(MUL, (a, b)), [*numbers, *rest])
    remaining = set(free_indices(value))
    for index in reversed([i for i in term.reduced if i in remaining]):
        value = Reduce(ADD, index, value)
    return value


# ---------------------------------------------------------------- types


def has_narrow_sums(assignment: Assignment, operands: Mapping[str, Operand]) -> bool:
    """Whether a sum's own type wraps or saturates where adding up in the result's would not."""
    dtypes = {name: np.dtype(o.type.dtype) for name, o in operands.items()}
    whole = expression_dtype(assignment.value, dtypes)
    sums = [t for t in split_terms(assignment.value) if t.reduced]
    own = [expression_dtype(t.body, dtypes) for t in sums]
    return any(dtype != whole and dtype.kind in "bui" for dtype in own)


def _narrow_sums(splitter: Splitter, assignment: Assignment, value: Expr) -> Expr:
    """Compute first each sum whose own type wraps or saturates where the result's would not."""
    dtypes = splitter.dtypes
    whole = expression_dtype(value, dtypes)

    def narrow(expr: Expr) -> Expr:
        if not isinstance(expr, Reduce):
            return expr
        own = expression_dtype(expr, dtypes)
        if own == whole or own.kind not in "bui":
            return expr
        why = f"its sum is of type {own}, the result's of type {whole}"
        return splitter.temporary(expr, free_indices(expr), why)

    if isinstance(value, Literal):
        return value
    return map_terms(value, narrow)
