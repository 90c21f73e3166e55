"""Products of three or more tensors as pairwise contractions, where that is cheaper.

A·B·x is A·(B·x), as `paths` finds; all pairs but the last make temporaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import inf

from taco_py.concrete.terms import Term, reductions, split_terms, summed
from taco_py.cost.machine import GAIN
from taco_py.notation.checks import free_indices
from taco_py.notation.dtypes import expression_dtype
from taco_py.notation.nodes import Assignment, Expr
from taco_py.plan.costs import best_cost, chain_cost
from taco_py.plan.paths import cheapest_tree
from taco_py.plan.products import Product, as_product
from taco_py.plan.request import SMALL
from taco_py.plan.splitter import Splitter

Path = tuple[tuple[int, ...], ...]


def contract(splitter: Splitter, assignment: Assignment, expr: Expr, path: Path | None) -> Expr:
    """`expr`, a term with its sums, taken apart along `path`, or where None as is cheapest.

    It stays whole where it is no product of three tensors, where nothing is summed between them, or
    where a pair's own type would wrap or round differently, or would be too large.
    """
    (term, *more) = split_terms(expr)
    product = as_product(term.body)
    if more or term.negative or product is None or any(True for _ in reductions(term.body)):
        return expr
    tensors = replace(product, factors=tuple(f for f in product.factors if free_indices(f)))
    dtypes = {expression_dtype(f, splitter.dtypes) for f in product.factors}
    if len(tensors.factors) < 3 or len(dtypes) > 1:
        return expr
    numbers = tuple(f for f in product.factors if not free_indices(f))
    kept = tuple(dict.fromkeys(assignment.target.indices))
    if path is not None:
        why = "the contraction order was given"
        return _follow(splitter, term, tensors, numbers, kept, path, why)
    if not term.reduced:
        return expr
    found = _cheapest(splitter, assignment, expr, tensors, numbers, kept)
    return expr if found is None else _follow(splitter, term, tensors, numbers, kept, *found)


def _cheapest(
    splitter: Splitter,
    assignment: Assignment,
    expr: Expr,
    tensors: Product,
    numbers: tuple[Expr, ...],
    kept: tuple[str, ...],
) -> tuple[Path, str] | None:
    """The path that beats one kernel, with the reason; None where none does.

    One kernel and several are compared by what all their loops, merges and copies cost. Loops that
    are nested less deep are asymptotically better, and those of one kernel are then kept only where
    they are clearly cheaper, as otherwise the pairs must be. (Ahrens et al. 2022, section 7: the
    least depth.)
    """
    (term,) = split_terms(expr)
    count = len(tensors.factors)
    effort = splitter.request.effort
    memory = splitter.request.memory
    stats = splitter.statistics(expr)
    paths: list[Path] = [cheapest_tree(stats, tensors, kept, effort, memory).path]
    if count == 3:
        paths += ((pair, (0, 1)) for pair in combinations(range(count), 2))
    whole = best_cost(splitter, replace(assignment, value=expr), splitter.request)
    costs: dict[Path, float] = {}
    for path in dict.fromkeys(paths):
        limit = min(costs.values(), default=whole * GAIN)
        costs[path] = _cost_along(splitter, assignment, term, tensors, numbers, kept, path, limit)
    path = min(costs, key=lambda path: costs[path])
    shallow = _depth(tensors, kept, path) < len(_indices(tensors, kept))
    if costs[path] >= (whole * GAIN if shallow else whole / GAIN):
        return None
    return path, _why(splitter, assignment, expr, tensors, numbers, kept, path)


def _why(
    splitter: Splitter,
    assignment: Assignment,
    expr: Expr,
    tensors: Product,
    numbers: tuple[Expr, ...],
    kept: tuple[str, ...],
    path: Path,
) -> str:
    """What the path and one kernel cost on the operands as large as they are."""
    (term,) = split_terms(expr)
    real = splitter.real(expr)
    pairs = _cost_along(real, assignment, term, tensors, numbers, kept, path)
    whole = best_cost(real, replace(assignment, value=expr), real.request)
    text = f"in pairs about {pairs:.2g} operations instead of {whole:.2g} in one kernel"
    return text if pairs < whole else f"{text}, and fewer from sizes of {SMALL} on"


def _indices(tensors: Product, kept: Sequence[str]) -> frozenset[str]:
    """The indices of a product and of what it is assigned to."""
    return frozenset(kept).union(*(free_indices(factor) for factor in tensors.factors))


def _depth(tensors: Product, kept: tuple[str, ...], path: Path) -> int:
    """The loops of the deepest kernel along a path."""
    groups = [frozenset(free_indices(factor)) for factor in tensors.factors]
    deepest = 0
    for pair in path:
        loops = frozenset[str]().union(*(groups[k] for k in pair))
        groups = [g for k, g in enumerate(groups) if k not in pair]
        needed = frozenset(kept).union(*groups)
        deepest = max(deepest, len(loops if groups else loops | needed))
        groups.append(loops & needed)
    return deepest


def _cost_along(
    splitter: Splitter,
    assignment: Assignment,
    term: Term,
    tensors: Product,
    numbers: tuple[Expr, ...],
    kept: tuple[str, ...],
    path: Path,
    limit: float = inf,
) -> float:
    """What the kernels of a path cost together, with their temporaries; infinite where the
    temporaries alone cost more than the `limit`, or one is too large."""
    draft = splitter.drafting()
    last = _follow(draft, term, tensors, numbers, kept, path, "")
    stored = (draft.operands[part.target.tensor].nnz for part in draft.made)
    if any(entries > draft.request.memory for entries in stored):
        return inf
    return chain_cost(draft, draft.made, replace(assignment, value=last), limit)


def _follow(
    splitter: Splitter,
    term: Term,
    tensors: Product,
    numbers: tuple[Expr, ...],
    kept: tuple[str, ...],
    path: Path,
    why: str,
) -> Expr:
    """Contract along `path`, but for the last product, which stays in the assignment."""
    rest = list(tensors.factors)
    for pair in path:
        chosen = [rest[k] for k in pair]
        left = [f for k, f in enumerate(rest) if k not in pair]
        if not left:
            break
        needed = {i for f in left for i in free_indices(f)} | set(kept)
        product = tensors.of(chosen)
        keep = tuple(i for i in free_indices(product) if i in needed)
        rest = [*left, splitter.temporary(product, keep, why)]
    value = tensors.of((*numbers, *rest))
    remaining = set(free_indices(value))
    return summed(value, (i for i in term.reduced if i in remaining))
