"""Splitting: what is better computed first, into a temporary tensor, than inside all loops.

Sums in products may be multiplied out before (`multiply_out`). Four reasons to split a term off,
each in a file of its own:

* a sum inside a product would be computed again in every round of a loop it does not depend on
  (`hoist`);
* a product of three or more operands has a cheaper order of pairwise contractions, as A·(B·x) is
  for A·B·x (`contract`);
* a sum has an integer or bool type that its accumulation in the result's type would not respect
  (`narrow`);
* a sum of many sparse terms has too many cases for one kernel (`in_turn`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from codegen.names import Names
from taco_py.autoschedule.streams import innermost_sums
from taco_py.concrete.terms import map_terms, split_terms, sums_apart
from taco_py.notation.nodes import Assignment, Expr
from taco_py.plan.contract import Path, contract, contract_sums
from taco_py.plan.costs import chain_cost, kernel_cost, merging
from taco_py.plan.hoist import hoist
from taco_py.plan.in_turn import sum_in_turn
from taco_py.plan.multiply_out import cheapest_form
from taco_py.plan.narrow import narrow_sums
from taco_py.plan.nodes import Operand
from taco_py.plan.products import flatten, push_in
from taco_py.plan.request import Request, statistics
from taco_py.plan.splitter import Splitter
from taco_py.plan.sum_first import sum_first
from taco_py.plan.temporaries import store_well


@dataclass(frozen=True, slots=True)
class Split:
    """Assignments to compute in turn, the original target's last, and all their operands.

    notes  for each temporary why it is there
    forms  which sums in products are multiplied out and which are not, and why
    rewritten  whether any are
    """

    assignments: tuple[Assignment, ...]
    operands: Mapping[str, Operand]
    notes: tuple[str, ...]
    forms: tuple[str, ...] = ()
    rewritten: bool = False


def split(
    assignment: Assignment,
    operands: Mapping[str, Operand],
    request: Request,
    names: Names,
    path: Path | None = None,
    pairs: bool = True,
) -> Split:
    """The assignment as a sequence of cheaper ones, or alone when it is best as a whole.

    path   the pairwise contractions of a single product, in einsum's numbering; chosen by cost
           where None
    pairs  False keeps products of any number of operands whole
    """
    if path is not None or not pairs or request.forms is False:
        return _split(assignment, operands, request, names, path, pairs)
    dtypes = {name: np.dtype(operand.type.dtype) for name, operand in operands.items()}
    price = partial(_price, operands, request)
    form, told = cheapest_form(assignment, dtypes, price, request.forms is True)
    parts = _split(sums_apart(form), operands, request, names, None, True)
    return replace(parts, forms=told, rewritten=form is not assignment)


def _price(operands: Mapping[str, Operand], request: Request, form: Assignment) -> float:
    """What an assignment as it is written costs, in the kernels that it is taken apart into."""
    names = Names((*operands, form.target.tensor))
    return cost_of(_split(sums_apart(form), operands, request, names, None, True), request)


def cost_of(parts: Split, request: Request) -> float:
    """What kernels in turn cost, with the temporaries between them."""
    *before, last = parts.assignments
    sizes = statistics(last, parts.operands).sizes
    splitter = Splitter(dict(parts.operands), request, Names(()), sizes, [], [])
    return chain_cost(splitter, before, last, each=kernel_cost) + merging(splitter, last)


def _split(
    assignment: Assignment,
    operands: Mapping[str, Operand],
    request: Request,
    names: Names,
    path: Path | None,
    pairs: bool,
) -> Split:
    sizes = statistics(assignment, operands).sizes
    splitter = Splitter(dict(operands), request, names, sizes, [], [])
    dtypes = splitter.dtypes
    value = map_terms(assignment.value, lambda term: flatten(term, dtypes))
    if path is None and pairs:
        value = map_terms(value, lambda term: contract_sums(splitter, term))
        value = map_terms(value, lambda term: sum_first(splitter, assignment, term))
    if path is None:
        value = map_terms(value, lambda term: _pushed_in(splitter, assignment, term))
    value = map_terms(value, lambda term: hoist(splitter, assignment, term))
    if path is not None or pairs:
        value = map_terms(value, lambda term: contract(splitter, assignment, term, path))
    value = sum_in_turn(splitter, narrow_sums(splitter, value))
    last = replace(assignment, value=value)
    store_well(splitter, last)
    return Split((*splitter.made, last), splitter.operands, tuple(splitter.notes))


def _pushed_in(splitter: Splitter, assignment: Assignment, expr: Expr) -> Expr:
    """The term with sums moved into factors: those that such an array stores innermost, where the
    loops run as one is stored, else all that may be."""
    (term, *more) = split_terms(expr)
    only = None if more else innermost_sums(splitter.draft(assignment, expr), term)
    return push_in(expr, splitter.dtypes, only)
