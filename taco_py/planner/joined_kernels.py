"""Two kernels as one: the names that the reader of a temporary has for what its maker reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import replace

from codegen.names import Names
from taco_py.compiler.concrete.concretize import Order
from taco_py.compiler.concrete.side_results import stored_in
from taco_py.compiler.iteration.graph import IterationGraph
from taco_py.compiler.schedule.schedule import OPEN, Schedule
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Expr
from taco_py.language.notation.tree import map_accesses
from taco_py.language.problem import Problem
from taco_py.planner.ir.nodes import KernelStep, TakeSide
from taco_py.planner.ir.program import Node, Program, reads
from taco_py.planner.make_kernel import size_sources


def is_plain(kernel: KernelStep) -> bool:
    """Tell whether a kernel is made of loops in some order without further commands."""
    extras = (kernel.looked_up, kernel.in_turn, *kernel.schedule.on_loops.commands)
    return kernel.schedule.make == OPEN.make and not any(extras)


def names_in_reader(maker: KernelStep, reader: KernelStep) -> dict[str, str]:
    """Return the reader's name of each tensor of the maker, a fresh one where it has none."""
    names_of = {(reader.source(name), type): name for name, type in reader.problem.operands}
    names = Names((*dict(reader.problem.operands), reader.problem.assignment.target.tensor))
    return {
        name: names_of.get((maker.source(name), type)) or names.fresh(maker.source(name))
        for name, type in maker.problem.operands
    }


def joined_problem(
    maker: KernelStep,
    reader: KernelStep,
    exchanged: Callable[[Access], Expr],
    tensors: Mapping[str, str],
    indices: Mapping[str, str],
) -> Problem:
    """Return the reader's problem with the maker's value in place of the temporary.

    exchanged         what stands for an access of the reader
    tensors, indices  the reader's names of what the maker reads and of its loops
    """
    problem, inner = reader.problem, maker.problem
    value = map_accesses(problem.assignment.value, exchanged)
    side = []
    for side_result in problem.side:
        side.append(replace(side_result, value=map_accesses(side_result.value, exchanged)))
    types = dict(problem.operands)
    types.update((tensors[name], type) for name, type in inner.operands)
    names = dict.fromkeys(access.tensor for access in accesses(value))
    mine = {(indices[i], size) for i, size in inner.static if i in indices}
    static = {*problem.static, *mine}
    vast = dict.fromkeys((*problem.vast, *(indices[i] for i in inner.vast if i in indices)))
    return replace(
        problem,
        assignment=replace(problem.assignment, value=value),
        operands=tuple((name, types[name]) for name in names),
        static=tuple(sorted(static)),
        vast=tuple(vast),
        side=tuple(side),
    )


def steps_around(program: Program, targets: Set[str]) -> tuple[list[Node], list[Node]]:
    """Return the steps before and after one kernel that makes several targets, in their order.

    None is done before it was, for what it makes takes memory.
    """
    last = max(place for place, step in enumerate(program.steps) if step.target in targets)
    before, after, waits = list[Node](), list[Node](), set(targets)
    for place, step in enumerate(program.steps):
        if step.target in targets:
            continue
        if place > last or waits.intersection(reads(step)):
            waits.add(step.target)
            after.append(step)
        else:
            before.append(step)
    return before, after


def stores_besides(graph: IterationGraph) -> bool:
    """Tell whether loops complete each side result of their problem once, all elements of it."""
    plain = {loop.index for loop in graph.loops if loop.plain}
    stores = stored_in(graph.statement)
    stored = [access for access, loops in stores if loops == {*access.indices} <= plain]
    return {side.target for side in graph.problem.side} == {*stored}


def join_kernels(
    program: Program,
    maker: KernelStep,
    reader: KernelStep,
    problem: Problem,
    orders: tuple[Order, ...],
    tensors: Mapping[str, str],
) -> Program:
    """Return the program with one kernel in place of a temporary's maker and its only reader.

    problem  of the one kernel; what it stores besides for the first time is the temporary
    tensors  the reader's names of what the maker reads
    """
    sources = {name: reader.source(name) for name, _ in reader.problem.operands}
    sources.update((tensors[name], maker.source(name)) for name, _ in maker.problem.operands)
    kernel = replace(
        reader,
        problem=problem,
        schedule=Schedule.of_orders(orders),
        sizes=size_sources(problem),
        sources=tuple((n, sources[n]) for n, _ in problem.operands if sources[n] != n),
    )
    stays = len(problem.side) > len(reader.problem.side)
    side = (TakeSide(maker.target, reader.target, len(reader.problem.side)),) if stays else ()
    steps: list[Node] = []
    for step in program.steps:
        if step is not maker:
            steps += (kernel, *side) if step is reader else (step,)
    if stays:
        return replace(program, steps=tuple(steps))
    facts = {name: fact for name, fact in program.facts.items() if name != maker.target}
    return replace(program, steps=tuple(steps), facts=facts)
