"""The axes of the planner: what it may be told to decide otherwise.

libraries    called · none
look up      where it pays · never
forms        the cheaper · sums as they are written · multiplied out
contraction  chosen · one kernel · each other tree
size of k    a run-time argument · compiled in, where it is small
loops of T   chosen · the next best orders, for each tensor that a kernel makes
decision …   each comparison of prices the other way round, the closest first
rule …       each rule that was used, and that kernels can do without, left out
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.contraction_path import is_product
from taco_py.compiler.concrete.terms import map_terms, reductions, split_terms
from taco_py.compiler.order.orders import ranked_orders
from taco_py.language.legal.stored import sparse_indices
from taco_py.language.notation.checks import all_indices, free_indices, unique
from taco_py.language.notation.nodes import Assignment
from taco_py.language.statement_indices import with_own_indices
from taco_py.planner.algebra.contraction_trees import simple_trees
from taco_py.planner.algebra.normalize import normal_form
from taco_py.planner.algebra.products import as_product, flatten
from taco_py.planner.ir.goal import Request, draft_of, statistics
from taco_py.planner.ir.log import Entry
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.plan import Plan
from taco_py.planner.rules.catalogue import CATALOGUE
from taco_py.tuning.space.axis import AS_PLANNED, PLAN, Axis, Option

ORDERS = 6
"""Loop orders of a kernel."""
DECISIONS, RULES = 8, 8
SMALLEST, SMALL, COMPILED = 4, 256, 3
"""Sizes that may be compiled in, and for how many indices that is tried."""
NO_LIBRARIES = Option(
    "none", "no libraries", (("libraries", False),), words="without a library's routine"
)
NO_LOOK_UP = Option(
    "never", "no look-up", (("look_up", False),), words="in loops that walk all operands together"
)
AS_WRITTEN = Option(
    "as written", "forms as written", (("forms", False),), words="sums as they are written"
)
MULTIPLIED_OUT = Option(
    "multiplied out", "forms multiplied out", (("forms", True),), words="sums multiplied out"
)
ONE_KERNEL = Option("one kernel", "one kernel", (("contract", False),), words="in one kernel")


@dataclass(frozen=True, slots=True, eq=False)
class PlannedCall:
    """The plan of a call that is chosen without timing.

    facts       of the operands, and of the tensors that statements make
    statements  in order
    names       by which a text of several statements calls what they make
    """

    plan: Plan
    facts: Mapping[str, Operand]
    statements: tuple[Assignment, ...]
    names: Mapping[str, str]

    @property
    def indices(self) -> set[str]:
        """Return the indices that have one size in all statements."""
        shapes = {name: operand.shape for name, operand in self.facts.items()}
        pairs = zip(self.statements, with_own_indices(self.statements, shapes), strict=True)
        indices = [({*all_indices(old)}, {*all_indices(new)}) for old, new in pairs]
        return set().union(*(old for old, _ in indices)) - set().union(*(o - n for o, n in indices))


def planner_axes(call: PlannedCall, request: Request, options: CallOptions) -> tuple[Axis, ...]:
    """Return the axes around the plan of a call."""
    axes: list[tuple[str, tuple[Option, ...]]] = []
    if options.libraries:
        axes.append(("libraries", (NO_LIBRARIES,)))
    axes.append(("look up", (NO_LOOK_UP,)))
    if options.contract:
        axes.append(("forms", (AS_WRITTEN, MULTIPLIED_OUT)))
        axes += _contraction_axes(call, request, options)
    axes += _sizes(call, options)
    axes += [(f"decision {_decision_words(d)}", (o,)) for d, o in _decisions(call.plan)]
    axes += [(f"rule {name}", (option,)) for name, option in _rules(call.plan)]
    axes += _orders(call, request)
    return tuple(Axis(PLAN + name, (AS_PLANNED, *choices)) for name, choices in axes if choices)


def _contraction_axes(
    call: PlannedCall, request: Request, options: CallOptions
) -> Iterator[tuple[str, tuple[Option, ...]]]:
    """Yield the contractions of the one statement, or of each of several by its name.

    There are none where the call has paths.
    """
    if not call.names:
        (only,) = call.statements
        trees = () if options.path is not None else _contractions(only, call.facts, request)
        yield "contraction", (ONE_KERNEL, *trees)
        return
    if options.paths:  # the user said them
        return
    yield "contraction", (ONE_KERNEL,)
    targets = {name: target for target, name in call.names.items()}
    for statement in call.statements:
        name = call.names.get(statement.target.tensor, "")
        if targets.get(name) == statement.target.tensor and is_product(statement.value):
            trees = _contractions(statement, call.facts, request)
            yield f"contraction of {name}", tuple(_of_statement(tree, name) for tree in trees)


def _of_statement(tree: Option, name: str) -> Option:
    """Return the contraction of a single statement as that of one among several."""
    ((_, path),) = tree.changes
    return replace(tree, changes=(("paths", ((name, path),)),), words=f"{name} {tree.words}")


def _contractions(
    statement: Assignment, operands: Mapping[str, Operand], request: Request
) -> Iterator[Option]:
    """Yield contractions of a product in turn, in other orders than the plan's."""
    assignment = normal_form(statement, operands)
    dtypes = {name: np.dtype(operand.type.dtype) for name, operand in operands.items()}
    value = map_terms(assignment.value, lambda term: flatten(term, dtypes))
    (term, *more) = split_terms(value)
    product = as_product(term.body, dtypes)
    if more or product is None or any(reductions(term.body)):
        return
    tensors = replace(product, factors=tuple(f for f in product.factors if free_indices(f)))
    if len(tensors.factors) > 2:
        stats = statistics(assignment, operands, request.machine)
        for tree in simple_trees(stats, tensors, assignment.target.indices):
            steps = ", ".join(f"({','.join(map(str, step))})" for step in tree.path)
            name = f"in {'pairs' if tree.most == 2 else 'steps'} {steps}"
            yield Option(name, "other contraction", (("path", tree.path),), words=name)


def _sizes(call: PlannedCall, options: CallOptions) -> Iterator[tuple[str, tuple[Option, ...]]]:
    """Yield small sizes to compile in, of indices that no sparse operand has."""
    if call.plan.selection is None:
        return
    text = call.plan.selection.text
    statements = [define.assignment for define in text.defines]
    excluded = {index for index, _ in options.static}
    excluded.update(*(sparse_indices(statement, text.is_sparse) for statement in statements))
    indices = unique(i for statement in statements for i in all_indices(statement))
    excluded |= {*indices} - call.indices
    free = [i for i in indices if i in text.sizes and i not in excluded]
    small = [i for i in free if SMALLEST <= text.sizes[i] <= SMALL]
    for index in small[:COMPILED]:
        size = int(text.sizes[index])
        changes = (("static", ((index, size),)),)
        yield f"size of {index}", (Option(f"{size} compiled in", "size compiled in", changes),)


def _decisions(plan: Plan) -> Iterator[tuple[tuple[str, str, int], Option]]:
    """Yield the other outcome of each comparison of prices, the closest first."""
    ranked = sorted(plan.log.decisions.items(), key=lambda item: _ratio(item[1]))
    for decision, entry in ranked[:DECISIONS]:
        rule, target, number = decision
        kind = f"{'without' if entry.accepted else 'with'} {rule}"
        name = f"{kind} for {target}"
        words = name + f", decision {number + 1}" * (number > 0)
        changes = (("reversed", frozenset((decision,))),)
        yield decision, Option(name, kind, changes, words=words)


def _decision_words(decision: tuple[str, str, int]) -> str:
    rule, target, number = decision
    return f"{rule} {target} {number}"


def _ratio(entry: Entry) -> float:
    """Count how many times dearer the outcome is that was not taken."""
    before, after = entry.before or inf, entry.after or inf
    return after / before if not entry.accepted else before / after if after else inf


def _rules(plan: Plan) -> Iterator[tuple[str, Option]]:
    """Yield the rules that were used without a comparison, and may be left out."""
    decided = {rule for rule, _, _ in plan.log.decisions}
    free = {rule.name for rule, _ in CATALOGUE if rule.optional}
    used = dict.fromkeys(e.rule for e in plan.log.entries if e.accepted and e.rule not in decided)
    for name in [name for name in used if name in free][:RULES]:
        yield name, Option("left out", f"no {name}", (("forbid", frozenset((name,))),))


def _orders(call: PlannedCall, request: Request) -> Iterator[tuple[str, tuple[Option, ...]]]:
    """Yield loop orders for each assignment of the program, one term at a time."""
    if call.plan.selection is None:
        return
    program = call.plan.selection.program
    same = {n: o for n, o in call.facts.items() if program.facts.get(n) == o}  # with coordinates
    facts = program.with_facts(same).facts
    for define in program.defines:
        typed_request = replace(request, type=facts[define.target].type)
        options = tuple(_orders_of(define.assignment, facts, typed_request))
        yield f"loops of {define.target}", options


def _orders_of(
    assignment: Assignment, facts: Mapping[str, Operand], request: Request
) -> Iterator[Option]:
    target = assignment.target.tensor
    stats = statistics(assignment, facts, request.machine)
    draft = draft_of(assignment, facts, request)
    terms = split_terms(assignment.value)
    if len(terms) > 2:
        return
    for place, term in enumerate(terms):
        for rank, loops in enumerate(ranked_orders(draft, term, stats, ORDERS)):
            name = f"loops {','.join(loops.order)}" + f" of term {place + 1}" * (len(terms) > 1)
            changes = (("orders", frozenset(((target, place, loops.order),))),)
            yield Option(name, f"loop order {rank}", changes, words=f"{name} of {target}")
