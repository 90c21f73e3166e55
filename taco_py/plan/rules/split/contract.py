"""Products of three or more tensors as contractions in turn, where that is cheaper.

A·B·x is A·(B·x), as `paths` finds; all steps but the last make temporaries. Most steps are pairs; a
product that a sparse factor samples is a step of more, as S·U·V is in (S·U·V)·X.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from taco_py.concrete.terms import Term, reductions, split_terms, summed
from taco_py.cost.machine import GAIN
from taco_py.notation.checks import free_indices
from taco_py.notation.dtypes import expression_dtype
from taco_py.notation.nodes import Assignment, Expr
from taco_py.plan.algebra.contraction_trees import near_trees
from taco_py.plan.algebra.products import Product, as_product, typed_first
from taco_py.plan.costs import QUICKEST, chain_cost, kernel_cost
from taco_py.plan.ir.goal import SMALL
from taco_py.plan.splitter import Splitter

Path = tuple[tuple[int, ...], ...]


def contract(splitter: Splitter, assignment: Assignment, expr: Expr, path: Path | None) -> Expr:
    """`expr`, a term with its sums, taken apart along `path`, or where None as is cheapest.

    It stays whole where it is no product of three tensors, where nothing is summed between them, or
    where a step's own type would wrap or round differently, or would be too large.
    """
    (term, *more) = split_terms(expr)
    product = as_product(term.body, splitter.dtypes)
    if more or term.negative or product is None or any(True for _ in reductions(term.body)):
        return expr
    tensors = replace(product, factors=tuple(f for f in product.factors if free_indices(f)))
    if len(tensors.factors) < 3:
        return expr
    numbers = tuple(f for f in product.factors if not free_indices(f))
    chain = _Chain(replace(assignment, value=expr), term, tensors, numbers)
    if path is not None:
        draft = splitter.drafting()
        chain.follow(draft, path, "")
        known = chain.keeps_type(draft)
        return chain.follow(splitter, path, "the contraction order was given") if known else expr
    if not term.reduced:
        return expr
    found = _cheapest(splitter, chain)
    if found is None:
        return expr
    splitter = replace(splitter, full=found.full)
    return chain.follow(splitter, found.path, _why(splitter, chain, found))


@dataclass(frozen=True, slots=True)
class _Chain:
    """A product to be contracted in turn.

    assignment  of the product with its sums
    term        the sums and what is under them
    tensors     the factors that have indices
    numbers     those that have none
    """

    assignment: Assignment
    term: Term
    tensors: Product
    numbers: tuple[Expr, ...]

    @property
    def kept(self) -> tuple[str, ...]:
        """The indices that are not summed."""
        return tuple(dict.fromkeys(self.assignment.target.indices))

    @property
    def indices(self) -> frozenset[str]:
        """The indices of the product and of what it is assigned to."""
        return frozenset(self.kept).union(*(free_indices(f) for f in self.tensors.factors))

    def follow(self, splitter: Splitter, path: Path, why: str) -> Expr:
        """Contract along `path`, but for the last product, which stays in the assignment."""
        rest, whole = list(self.tensors.factors), expression_dtype(self.term.body, splitter.dtypes)
        for pair in path:
            chosen = [rest[k] for k in pair]
            left = [f for k, f in enumerate(rest) if k not in pair]
            if not left:
                break
            needed = {i for f in left for i in free_indices(f)} | set(self.kept)
            product = self.tensors.of(typed_first(chosen, whole, splitter.dtypes))
            keep = tuple(i for i in free_indices(product) if i in needed)
            rest = [*left, splitter.temporary(product, keep, why)]
        value = self.tensors.of(typed_first((*self.numbers, *rest), whole, splitter.dtypes))
        remaining = set(free_indices(value))
        return summed(value, (i for i in self.term.reduced if i in remaining))

    def keeps_type(self, draft: Splitter) -> bool:
        """Whether each step's product is of the whole product's type, so that it is not rounded
        and does not wrap sooner."""
        whole = expression_dtype(self.term.body, draft.dtypes)
        return all(draft.dtypes[part.target.tensor] == whole for part in draft.made)

    def cost_along(self, splitter: Splitter, path: Path, limit: float = inf) -> float:
        """What the kernels of a path cost together, with their temporaries; infinite where the
        temporaries alone cost more than the `limit`, or one is too large or of a type of its own.
        """
        draft = splitter.drafting()
        value = self.follow(draft, path, "")
        if not self.keeps_type(draft):
            return inf
        stored = (draft.operands[part.target.tensor].stored for part in draft.made)
        if any(elements > draft.request.memory for elements in stored):
            return inf
        last = replace(self.assignment, value=value)
        return chain_cost(draft, draft.made, last, limit, kernel_cost)

    def depth(self, path: Path) -> int:
        """The loops of the deepest kernel along a path."""
        groups = [frozenset(free_indices(factor)) for factor in self.tensors.factors]
        deepest = 0
        for pair in path:
            loops = frozenset[str]().union(*(groups[k] for k in pair))
            groups = [g for k, g in enumerate(groups) if k not in pair]
            needed = frozenset(self.kept).union(*groups)
            deepest = max(deepest, len(loops if groups else loops | needed))
            groups.append(loops & needed)
        return deepest


@dataclass(frozen=True, slots=True)
class _Found:
    """The path that is taken.

    full    whether its temporaries of one index are dense
    pairs   the best path of pairs alone, where this one has larger steps
    """

    path: Path
    full: bool
    pairs: Path | None


def _cheapest(splitter: Splitter, chain: _Chain) -> _Found | None:
    """The path that beats one kernel; None where none does.

    One kernel and several are compared by what all their loops, merges and copies cost. Loops that
    are nested less deep are asymptotically better, and those of one kernel are then kept only where
    they are clearly cheaper, as otherwise the steps must be. (Ahrens et al. 2022, section 7: the
    least depth.)
    """
    request, stats = splitter.request, splitter.statistics(chain.assignment.value)
    if request.memory < inf:
        limit = f"intermediates of at most {request.memory:.10g} elements each"
        request.effort.parts.append(f"only orders with {limit} were compared")
    trees = near_trees(stats, chain.tensors, chain.kept, request.effort, request.memory)
    whole = kernel_cost(splitter, chain.assignment, request)
    least, best = whole * GAIN, None
    pairs, *_ = trees
    for full in (False, True):
        for tree in trees:
            if QUICKEST * tree.cost >= least:
                continue
            cost = chain.cost_along(replace(splitter, full=full), tree.path, least)
            if cost < least:
                least = cost
                best = _Found(tree.path, full, pairs.path if tree.most > 2 else None)
    if best is None:
        return None
    shallow = chain.depth(best.path) < len(chain.indices)
    return best if shallow or least * GAIN < whole else None


def _why(splitter: Splitter, chain: _Chain, found: _Found) -> str:
    """What the path and one kernel cost on the operands as large as they are; and the best pairs,
    where the path has larger steps."""
    real = splitter.real(chain.assignment.value)
    steps = chain.cost_along(real, found.path)
    whole = kernel_cost(real, chain.assignment, real.request)
    how, beside = "in pairs", ""
    if found.pairs is not None:
        how = f"in steps of up to {max(map(len, found.path))} factors"
        pairs = chain.cost_along(real, found.pairs)
        beside = f", {pairs:.2g} in pairs" if pairs < inf else "; pairs are too large or would wrap"
    if steps < whole:
        return f"{how} about {steps:.2g} operations instead of {whole:.2g} in one kernel{beside}"
    text = f"{how} about {steps:.2g} operations, in one kernel {whole:.2g}{beside}"
    small = chain.cost_along(splitter, found.path)
    if small < kernel_cost(splitter, chain.assignment, splitter.request):
        return f"{text}; planned for sizes of {SMALL} and more, where they take fewer"
    return f"{text}, but in loops nested less deep, which pays the more the larger the operands"
