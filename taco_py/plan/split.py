"""Splitting: what is better computed first, into a temporary tensor, than inside all loops.

Four reasons to split a term off, each in a file of its own:

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

from codegen.names import Names
from taco_py.autoschedule.streams import innermost_sums
from taco_py.concrete.terms import map_terms, split_terms
from taco_py.notation.nodes import Assignment, Expr
from taco_py.plan.contract import Path, contract, contract_sums
from taco_py.plan.hoist import hoist
from taco_py.plan.in_turn import sum_in_turn
from taco_py.plan.narrow import narrow_sums
from taco_py.plan.nodes import Operand
from taco_py.plan.products import flatten, push_in
from taco_py.plan.request import Request, statistics
from taco_py.plan.splitter import Splitter
from taco_py.plan.sum_first import sum_first
from taco_py.plan.temporaries import store_well


@dataclass(frozen=True, slots=True)
class Split:
    """Assignments to compute in turn, the original target's last, and all their operands."""

    assignments: tuple[Assignment, ...]
    operands: Mapping[str, Operand]
    notes: tuple[str, ...]


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
