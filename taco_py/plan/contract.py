"""Products of three or more tensors as pairwise contractions, where that is cheaper.

A·B·x is A·(B·x), as `paths` finds; all pairs but the last make temporaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from taco_py.concrete.terms import Term, reductions, split_terms, summed
from taco_py.notation.checks import accesses, free_indices
from taco_py.notation.dtypes import expression_dtype
from taco_py.notation.nodes import Assignment, Expr
from taco_py.plan.paths import cheapest_tree
from taco_py.plan.products import Product, as_product
from taco_py.plan.request import GAIN
from taco_py.plan.splitter import Splitter, copy_cost

Path = Sequence[tuple[int, ...]]


def contract(splitter: Splitter, assignment: Assignment, expr: Expr, path: Path | None) -> Expr:
    """`expr`, a term with its sums, taken apart along `path`, or where None as is cheapest.

    It stays whole where it is no product of three tensors, where nothing is summed between them, or
    where a pair's own type would wrap or round differently.
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
    found = _cheapest(splitter, assignment, expr, tensors, kept) if term.reduced else None
    return expr if found is None else _follow(splitter, term, tensors, numbers, kept, *found)


def _cheapest(
    splitter: Splitter, assignment: Assignment, expr: Expr, tensors: Product, kept: tuple[str, ...]
) -> tuple[Path, str] | None:
    """The path that beats one kernel, with the reason; None where none does."""
    (term,) = split_terms(expr)
    stats = splitter.statistics(expr)
    tree = cheapest_tree(stats, tensors, kept)
    every = frozenset(i for a in accesses(term.body) for i in a.indices)
    whole = stats.iterations(term.body, every | set(kept))
    if tree.cost * GAIN >= whole:
        whole += copy_cost(stats, splitter.draft(assignment, expr), term)
    if tree.cost * GAIN >= whole:
        return None
    why = f"in pairs about {tree.cost:.2g} operations instead of {whole:.2g} in one kernel"
    return tree.path, why


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
