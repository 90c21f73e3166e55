"""The first lines of `explain()`: what runs, how long it takes, what may differ in numbers.

Those of `y[i] = A[i,j] * (sum(k, C[j,k] * z[k]) - b[j])`:

    runs      2 kernels, 0 copies
    expected  4.5e-06 s, in one kernel as the text has it 1.9e-04 s
    price     as shipped
    largest   temporary T, about 2e+02 elements
    limit     2 threads
    numbers   may differ by NaN and infinity beside what is not stored (hoist_sum)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod

from taco_py.compiler.concrete.terms import sums_outside
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.ways.ways import way_of
from taco_py.language.legal.absent import fill_of
from taco_py.language.legal.types import computes_exactly
from taco_py.language.notation.checks import accesses
from taco_py.planner.algebra.normalize import normal_form
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import Request, real_statistics
from taco_py.planner.ir.nodes import (
    Cast,
    Gather,
    KernelStep,
    Locate,
    Operand,
    Reformat,
    TakeValues,
)
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.program import Program, Selection
from taco_py.planner.lookahead import Lookahead
from taco_py.planner.plan_price import PricedFor
from taco_py.planner.price import returning
from taco_py.planner.rules.base import Numbers
from taco_py.planner.rules.catalogue import CATALOGUE
from taco_py.planner.search import Search

MOST_LOOPS = 64
"""Loops of one kernel up to which its time is estimated: that of more nobody would wait for."""
COPIES = Reformat | Cast | Gather | Locate | TakeValues


def summary(plan: Plan, limit: int) -> Iterator[str]:
    """Return lines for everybody, and one more where a result might be expected to be sparse.

    A plan that is read from its text has no price that decided.

    limit  the most threads that a call may use
    """
    kernels = len(plan.kernels)
    copies = sum(isinstance(step, COPIES) for step in plan.steps)
    yield f"runs      {_count(kernels, 'kernel')}, {_count(copies, 'copy', 'copies')}"
    yield f"expected  {_expected(plan)}"
    if plan.selection is not None:
        yield f"price     {plan.machine.price}"
    yield f"largest   {_largest(plan.selection)}"
    yield f"limit     {_limit(plan, limit)}"
    yield f"numbers   {numbers(plan)}"
    if dense := dense_reason(plan):
        yield f"result    dense, for {dense}"


def _limit(plan: Plan, limit: int) -> str:
    """Return the most threads that there are."""
    if plan.machine.is_gpu:
        gpu = plan.machine.target.gpu
        return f"{gpu.most_block_threads} threads and {gpu.block_shared_bytes} shared bytes a block"
    return _count(limit, "thread")


def dense_reason(plan: Plan) -> str:
    """Say why a matrix or tensor of sparse operands is stored densely; "" where it need not be."""
    if plan.selection is None or not plan.result.format.is_dense or plan.result.format.order < 2:
        return ""
    text = plan.selection.text
    if len(text.results) > 1:
        return ""
    value = text.define(text.result).assignment.value
    if all(text.is_full(access.tensor) for access in accesses(value)):
        return ""
    fill = fill_of(value, lambda a: None if text.is_full(a.tensor) else 0, text.dtypes)
    if fill is None:
        return "operands without a fill value say what it is where sparse ones store nothing"
    if fill == 0:
        return ""
    return f"it is {fill} where nothing is stored; of Tensors it has that for its fill value"


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"


def _expected(plan: Plan) -> str:
    """Return the expected seconds of the program and of the text's own loops."""
    selection = plan.selection
    if selection is None:
        return "not estimated: a schedule says which loops there are"
    if plan.machine.is_gpu:
        return _expected_on_gpu(plan)
    ours = f"{_planned_or_joined(plan):.1e} s"
    if len(selection.text.sizes) > MOST_LOOPS:
        return ours
    text = selection.text
    for define in text.defines:
        text = text.with_assignment(sums_outside(normal_form(define.assignment, text.facts)))
    where = "in one kernel" if len(text.steps) == 1 else "in one kernel for each statement"
    if selection.program.steps == text.steps:
        return f"{ours}, {where} as the text has it"
    context = _context(plan)
    steps = context.costs.in_loops(text, context) + returning(text, plan.machine)
    in_loops = steps * plan.machine.step_seconds
    return f"{ours}, {where} as the text has it {in_loops:.1e} s"


def expected_of(plan: Plan, facts: Mapping[str, Operand]) -> float | None:
    """Return the expected seconds of a plan, None where they are not estimated.

    facts  of the operands: where they have other sizes than those that it was made for, plans with
           temporaries are not estimated again
    """
    if plan.selection is None:
        return None
    if any(facts[name].shape != planned.shape for name, planned in plan.program.facts.items()):
        resized = _resized(plan, facts)
        return None if resized is None or plan.machine.is_gpu else _seconds(resized, plan)
    if not plan.machine.is_gpu:
        return _planned_or_joined(plan)
    prices = [*_prices_on_gpu(plan)]
    estimates = [seconds for seconds in prices if seconds is not None]
    return sum(estimates) if prices and len(estimates) == len(prices) else None


def _planned_or_joined(plan: Plan) -> float:
    """Return the expected seconds of a plan: where kernels were joined, of these as they are."""
    assert plan.selection is not None
    program = plan.selection.program
    is_joined = len(plan.kernels) < len(program.steps)
    if is_joined or any(kernel.problem.side for kernel in plan.kernels):
        return PricedFor({}, plan.machine, 1).plan(plan)
    return _seconds(program, plan)


def _resized(plan: Plan, facts: Mapping[str, Operand]) -> Program | None:
    """Return the chosen program over operands with these facts; None where it makes temporaries."""
    assert plan.selection is not None
    program = plan.selection.program
    if len(program.steps) != 1 or [*program.kernels]:
        return None
    sizes = dict(program.sizes)
    for access in accesses(program.last.value):
        sizes.update(zip(access.indices, map(float, facts[access.tensor].shape), strict=True))
    operands = {name: facts[name] for name in program.facts if name in facts}
    return replace(program.with_facts(operands), sizes=sizes)


def _prices_on_gpu(plan: Plan) -> Iterator[float | None]:
    """Yield the expected seconds of each kernel, None where there are no figures."""
    for kernel in plan.kernels:
        names = (name for name, _ in kernel.problem.operands)
        facts = {name: plan.program.facts[kernel.source(name)] for name in names}
        stats = real_statistics(kernel.problem.assignment, facts, plan.machine)
        priced = way_of(kernel.schedule.make).priced
        yield priced and priced(kernel.problem, kernel.schedule, stats)


def _expected_on_gpu(plan: Plan) -> str:
    """Return the expected seconds of kernels, of which there are figures for dense results
    alone."""
    prices = [*_prices_on_gpu(plan)]
    estimates = [seconds for seconds in prices if seconds is not None]
    if not estimates:
        return "not estimated: there are no figures for such kernels of a GPU"
    some, rest = "kernels", ""
    if len(estimates) < len(prices):
        some, rest = f"{len(estimates)} of {len(prices)} kernels", "; no figures for the others"
    return f"{sum(estimates):.1e} s in {some} of a GPU, without copies to it and back{rest}"


def _seconds(program: Program, plan: Plan) -> float:
    """Return the expected seconds of a program, each kernel made in its way: tiles or loops."""
    context = _context(plan)
    steps = context.costs.program(program, context) + returning(program, plan.machine)
    return _planned(program, plan.machine) + steps * plan.machine.step_seconds


def _context(plan: Plan) -> Context:
    goal = Request(plan.result, effort=Effort(), machine=plan.machine)
    return Context(goal, Lookahead(), Search(), statistics_of=real_statistics)


def _planned(program: Program, machine: Machine) -> float:
    return sum(_planned_seconds(kernel, program, machine) for kernel in program.kernels)


def _planned_seconds(kernel: KernelStep, program: Program, machine: Machine) -> float:
    """Return the expected seconds of a kernel that was planned when its step was made: all of it
    dense."""
    shapes = {name: program.facts[kernel.source(name)].shape for name, _ in kernel.problem.operands}
    products = prod(float(shapes[name][mode]) for _, name, mode in kernel.sizes)
    steps = machine.quickest_steps if way_of(kernel.schedule.make).reuses else 1.0
    return machine.calls.plan_step_seconds + products * steps * machine.step_seconds


def _largest(selection: Selection | None) -> str:
    """Return the largest temporary tensor."""
    if selection is None:
        return "no temporary"
    temporaries = (step.target for step in selection.program.temporaries)
    targets = [target for target in temporaries if target not in selection.fused]
    targets += [kernel.target for kernel in selection.program.kernels]
    stored = {target: selection.program.facts[target].stored for target in targets}
    if not stored:
        return "no temporary"
    name = max(stored, key=lambda target: stored[target])
    return f"temporary {name}, about {stored[name]:.2g} elements"


def numbers(plan: Plan) -> str:
    """Describe the changes in numbers that the rules of the plan may cause, by rule."""
    facts = (plan.program.facts.get(name) for name in plan.program.results)
    types = [plan.result, *(operand.type for operand in facts if operand is not None)]
    if all(computes_exactly(type.dtype) for type in types):
        return "are those of the text"
    rules = [r for r in dict.fromkeys(rule for rule, _ in CATALOGUE) if any(plan.log.of(r.name))]
    changes = {change: [r.name for r in rules if change in r.numbers] for change in Numbers}
    parts = [f"{change.words} ({', '.join(names)})" for change, names in changes.items() if names]
    return f"may differ by {'; '.join(parts)}" if parts else "are those of the text"
