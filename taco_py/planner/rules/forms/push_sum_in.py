"""Push a sum into the one factor that has its index.

    sum(j, sum(k, A[i,j] * B[i,k]))  →  sum(j, A[i,j]) * sum(k, B[i,k])

Where the loops run as a dense array is stored, these are the sums that it stores innermost. Else
they are all that may move. Sums into a factor with all indices, whose loops are as many either
way, and into sparse factors, whose entries they may not make fewer, stay where moving them clearly
costs more:

    sum(j, k, T[i,j,k] * z[k])      stays where T is stored in this order: its sum over j would be a
                                    matrix, made out of order
    sum(j, s, E[i,s,j] * X[j,k])    stays where each i and j have one s, the place of j in row i
"""

from __future__ import annotations

from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.order.streams import innermost_sums
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.nodes import Access, Expr
from taco_py.planner.algebra.products import as_product, push_in
from taco_py.planner.context import Context
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import (
    Candidate,
    Gain,
    Numbers,
    Phase,
    Rewrite,
    Rule,
    Site,
    Trait,
    Trials,
    terms,
)
from taco_py.planner.rules.term_price import term_price


def apply(program: Program, site: Site, context: Context) -> Trials:
    """Move the sums of a term into the factors that alone have their indices."""
    expr = site.term(program)
    dtypes = program.dtypes
    (term, *more) = split_terms(expr)
    only = None if more else innermost_sums(program.problem(program.last, expr), term)
    pushed = push_in(expr, dtypes, only)
    if pushed is expr:
        return
    if only is not None:
        yield Rewrite(site.put(program, pushed))
        return
    indices = set(free_indices(term.body))
    product = as_product(term.body, dtypes)
    factors = product.factors if product is not None else ()
    shared_indices = [
        i for f in factors if set(free_indices(f)) != indices for i in free_indices(f)
    ]
    partial = push_in(expr, dtypes, set(shared_indices))
    gain = Gain.SIMPLER
    if partial == pushed and _merges(program, term.body, term.reduced):
        partial, gain = expr, Gain.DETOUR
    if any(_has_free_places(program, access) for access in accesses(term.body)):
        gain = Gain.DETOUR  # the sum would have a zero in each, and adds up no two entries
    if partial == pushed:
        yield Rewrite(site.put(program, pushed))
        return
    stays, goes = (term_price(program, context, form) for form in (partial, pushed))
    before = program
    program = yield Candidate(stays, goes, lambda: Rewrite(site.put(before, pushed)), gain)
    if program is before and partial is not expr:
        yield Rewrite(site.put(program, partial))


def _has_free_places(program: Program, access: Access) -> bool:
    """Tell whether an operand's list has places that store nothing."""
    return any(level.kind.gaps for level in program.facts[access.tensor].type.format.levels)


def _merges(program: Program, body: Expr, summed: tuple[str, ...]) -> bool:
    """Tell whether a sum over a sparse operand's outer index merges entries in any order."""
    users = {
        index: [access for access in accesses(body) if index in access.indices] for index in summed
    }
    for index, users_of in users.items():
        if len(users_of) != 1 or is_full(form := program.facts[users_of[0].tensor].type.format):
            continue
        stored = form.stored(users_of[0].indices)
        below = stored[stored.index(index) + 1 :]
        if any(len(users.get(inner, ())) > 1 for inner in below):
            return True
    return False


RULE = Rule(
    "push_sum_in",
    Phase.FORMS,
    apply,
    terms,
    Numbers.ROUNDS | Numbers.SPECIALS,
    traits=Trait.FACTORS,
)
