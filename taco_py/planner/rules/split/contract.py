"""Contract products of three or more tensors in turn, where that costs less than one kernel.

    y[i] = sum(j, k, A[i,j] * B[j,k] * x[k])
    → T[j] = sum(k, B[j,k] * x[k]);  y[i] = sum(j, A[i,j] * T[j])

All steps but the last make temporaries. Most steps are pairs; a product that a sparse factor
samples is a step of more, as S·U·V is in (S·U·V)·X. Orders come from `algebra.contraction_trees`.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from codegen.records import dataclass
from taco_py.compiler.concrete.terms import Term, reductions, split_terms
from taco_py.language.notation.checks import free_indices
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Assignment, Call, Expr
from taco_py.language.notation.operators import FILLED
from taco_py.planner.algebra.contraction_trees import near_trees
from taco_py.planner.algebra.products import Product, as_product, typed_first
from taco_py.planner.algebra.rings import sum_of_products
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import LEAST_SIZE
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import (
    Candidate,
    Gain,
    Numbers,
    Outcome,
    Phase,
    Refusal,
    Rewrite,
    Rule,
    Site,
    Trait,
    terms,
)
from taco_py.planner.temporaries import with_temporary

Path = tuple[tuple[int, ...], ...]


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Contract the product of a term along the cheapest path, or along the user's.

    It stays whole where it is no product of three tensors, where nothing is summed between them, or
    where a step's own type would wrap or round differently, or its temporary would be too large.
    """
    chain = _chain(program, site)
    if chain is None:
        return None
    if context.goal.path is not None:
        return _follow_path(program, site, context, chain, context.goal.path)
    if not chain.term.reduced:
        return None
    best = _cheapest(program, context, chain)
    if best is None:
        return Refusal("no path costs less than one kernel")
    full = replace(context, full=best.full)

    def rewrite() -> Rewrite:
        reason = _explain(program, full, chain, best)
        contracted, value = chain.follow(program, full, best.path, reason)
        return Rewrite(site.put(contracted, value), reason)

    shallow = chain.depth(best.path) < len(chain.indices)
    gain = Gain.SIMPLER if shallow else Gain.DETOUR
    return Candidate(best.one_kernel, best.cost, rewrite, gain)


def _chain(program: Program, site: Site) -> _Chain | None:
    """Return the product at a site; None where it has fewer than three tensors."""
    expr = site.term(program)
    product_term = sum_of_products(expr, program.dtypes) or _of_numbers(program, expr)
    if product_term is None:
        return None
    term, product = product_term
    if any(True for _ in reductions(term.body)):
        return None
    tensors = replace(product, factors=tuple(f for f in product.factors if free_indices(f)))
    if len(tensors.factors) < 3:
        return None
    numbers = tuple(f for f in product.factors if not free_indices(f))
    chain = _Chain(replace(program.last, value=expr), term, tensors, numbers)
    value = chain.fill_absent(product.over(term.body, term.reduced))
    return replace(chain, assignment=replace(chain.assignment, value=value))


def _of_numbers(program: Program, expr: Expr) -> tuple[Term, Product] | None:
    """Return the only term of an expression and its product; None for other expressions."""
    (term, *more) = split_terms(expr)
    product = as_product(term.body, program.dtypes)
    if more or term.negative or not term.operator.additive or product is None:
        return None
    return term, product


def _follow_path(
    program: Program, site: Site, context: Context, chain: _Chain, path: Path
) -> Outcome:
    """Contract along the user's path."""
    draft, _ = chain.follow(program.only_of(chain.assignment), context, path, "")
    if not chain.keeps_type(draft):
        return Refusal("a step's own type would wrap or round differently")
    program, value = chain.follow(program, context, path, "the contraction order was given")
    return Rewrite(site.put(program, value))


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
    def output(self) -> tuple[str, ...]:
        """Return the free indices of the product."""
        return tuple(dict.fromkeys(self.assignment.target.indices))

    @property
    def indices(self) -> frozenset[str]:
        """Return the indices of the product and of its target."""
        return frozenset(self.output).union(*(free_indices(f) for f in self.tensors.factors))

    def fill_absent(self, sum_: Expr) -> Expr:
        """Return a sum in place of the full one, absent in the same places."""
        match self.assignment.value:
            case Call(operator, (_, zero)) if operator == FILLED:
                return Call(FILLED, (sum_, zero))
        return sum_

    def follow(
        self, program: Program, context: Context, path: Path, reason: str
    ) -> tuple[Program, Expr]:
        """Contract along `path`; the last product stays in the returned value."""
        rest, dtype = list(self.tensors.factors), expression_dtype(self.term.body, program.dtypes)
        for pair in path:
            operands = [rest[k] for k in pair]
            left = [f for k, f in enumerate(rest) if k not in pair]
            if not left:
                break
            used = {i for f in left for i in free_indices(f)} | set(self.output)
            product = self.tensors.of(typed_first(operands, dtype, program.dtypes))
            keep = tuple(i for i in free_indices(product) if i in used)
            inside = (i for i in free_indices(product) if i not in used)
            partial = self.tensors.first(product, inside)
            program, access = with_temporary(program, context, partial, keep, reason)
            rest = [*left, access]
        value = self.tensors.of(typed_first((*self.numbers, *rest), dtype, program.dtypes))
        remaining = set(free_indices(value))
        outer = (i for i in self.term.reduced if i in remaining)
        return program, self.fill_absent(self.tensors.over(value, outer))

    def keeps_type(self, draft: Program) -> bool:
        """Tell whether each step's product has the type of the full product."""
        dtypes = draft.dtypes
        dtype = expression_dtype(self.term.body, dtypes)
        return all(dtypes[step.target] == dtype for step in draft.temporaries)

    def cost_along(
        self, program: Program, context: Context, path: Path, limit: float = inf
    ) -> float:
        """Return the cost of a path's kernels and temporaries; infinite above `limit`."""
        draft = program.only_of(self.assignment)
        draft, value = self.follow(draft, context, path, "")
        if not self.keeps_type(draft):
            return inf
        stored = (draft.facts[step.target].stored for step in draft.temporaries)
        if any(elements > context.goal.memory for elements in stored):
            return inf
        last = replace(self.assignment, value=value)
        return context.costs.program(draft.with_assignment(last), context, limit)

    def depth(self, path: Path) -> int:
        """Return the depth of the deepest kernel along a path."""
        groups = [frozenset(free_indices(factor)) for factor in self.tensors.factors]
        deepest = 0
        for pair in path:
            loops = frozenset[str]().union(*(groups[k] for k in pair))
            groups = [g for k, g in enumerate(groups) if k not in pair]
            used = frozenset(self.output).union(*groups)
            deepest = max(deepest, len(loops if groups else loops | used))
            groups.append(loops & used)
        return deepest


@dataclass(frozen=True, slots=True)
class _Best:
    """The path that costs least.

    full    whether its temporaries of one index are dense
    pairs   the best path of pairs alone, where this one has larger steps
    """

    path: Path
    full: bool
    pairs: Path | None
    cost: float
    one_kernel: float


def _cheapest(program: Program, context: Context, chain: _Chain) -> _Best | None:
    """Return the cheapest path; None where all are clearly dearer than one kernel.

    One kernel and several are compared by what all their loops, merges and copies cost. Loops that
    are nested less deep are asymptotically better, and those of one kernel are then kept only where
    they are clearly cheaper, as otherwise the steps must be. (Ahrens et al. 2022, section 7: the
    least depth.)
    """
    goal, stats = context.goal, context.statistics(program, chain.assignment.value)
    if goal.memory < inf:
        limit = f"intermediates of at most {goal.memory:.10g} elements each"
        goal.effort.parts.append(f"only orders with {limit} were compared")
    trees = near_trees(stats, chain.tensors, chain.output, goal.effort, goal.memory)
    one_kernel = context.costs.kernel(program, chain.assignment, context)
    gain, quickest = goal.machine.copies.detour_gain, goal.machine.quickest_steps
    least, best = one_kernel * gain, None
    pairs, *_ = trees
    for full in (False, True):
        for tree in trees:
            if quickest * tree.cost >= least:
                continue
            cost = chain.cost_along(program, replace(context, full=full), tree.path, least)
            if cost < least:
                least = cost
                other = pairs.path if tree.most > 2 else None
                best = _Best(tree.path, full, other, cost, one_kernel)
    return best


def _explain(program: Program, context: Context, chain: _Chain, best: _Best) -> str:
    """Describe the costs of the path and of one kernel on the actual operands."""
    larger, real = context.real(program, chain.assignment.value)
    steps = chain.cost_along(larger, real, best.path)
    one_kernel = context.costs.kernel(larger, chain.assignment, real)
    kind, pairs_text = "in pairs", ""
    if best.pairs is not None:
        kind = f"in steps of up to {max(map(len, best.path))} factors"
        pairs = chain.cost_along(larger, real, best.pairs)
        pairs_text = (
            f", {pairs:.2g} in pairs" if pairs < inf else "; pairs are too large or would wrap"
        )
    if steps < one_kernel:
        cost = f"{steps:.2g} operations instead of {one_kernel:.2g} in one kernel"
        return f"{kind} about {cost}{pairs_text}"
    text = f"{kind} about {steps:.2g} operations, in one kernel {one_kernel:.2g}{pairs_text}"
    small = chain.cost_along(program, context, best.path)
    if small < context.costs.kernel(program, chain.assignment, context):
        return f"{text}; planned for sizes of {LEAST_SIZE} and more, where they take fewer"
    return f"{text}, but in loops nested less deep, which pays the more the larger the operands"


RULE = Rule(
    "contract",
    Phase.SPLIT,
    apply,
    terms,
    Numbers.ROUNDS | Numbers.SPECIALS,
    gain=Gain.DETOUR,
    traits=Trait.KERNELS,
)
