"""Two kernels as one: the names that the reader of a temporary has for what its maker reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from codegen.names import Names
from taco_py.concrete.concretize import Order
from taco_py.notation.checks import accesses
from taco_py.notation.nodes import Expr
from taco_py.plan.ir.nodes import KernelStep
from taco_py.plan.ir.program import Program
from taco_py.plan.make_kernel import size_sources
from taco_py.problem import Problem
from taco_py.schedule.schedule import OPEN, Schedule


def is_plain(kernel: KernelStep) -> bool:
    """Tell whether a kernel is made of loops in some order, and nothing is said of how they run."""
    told = (kernel.looked_up, kernel.added, *kernel.schedule.on_loops.commands)
    return kernel.schedule.make == OPEN.make and not any(told)


def names_in_reader(maker: KernelStep, reader: KernelStep) -> dict[str, str]:
    """Find the reader's name of each tensor that the maker reads, a new one where it does not read
    it or reads it in another type."""
    known = {(reader.source(name), type): name for name, type in reader.problem.operands}
    names = Names((*dict(reader.problem.operands), reader.problem.assignment.target.tensor))
    return {
        name: known.get((maker.source(name), type)) or names.fresh(maker.source(name))
        for name, type in maker.problem.operands
    }


def joined_problem(
    maker: KernelStep,
    reader: KernelStep,
    value: Expr,
    tensors: Mapping[str, str],
    indices: Mapping[str, str],
) -> Problem:
    """Make the reader's problem with a value in which the maker's stands for the temporary.

    tensors, indices  the reader's names of what the maker reads and of its loops
    """
    problem, made = reader.problem, maker.problem
    types = dict(problem.operands)
    types.update((tensors[name], type) for name, type in made.operands)
    names = dict.fromkeys(access.tensor for access in accesses(value))
    static = {*problem.static, *((indices[i], size) for i, size in made.static)}
    vast = dict.fromkeys((*problem.vast, *(indices[i] for i in made.vast)))
    return replace(
        problem,
        assignment=replace(problem.assignment, value=value),
        operands=tuple((name, types[name]) for name in names),
        static=tuple(sorted(static)),
        vast=tuple(vast),
    )


def joined(
    program: Program,
    maker: KernelStep,
    reader: KernelStep,
    problem: Problem,
    orders: tuple[Order, ...],
    tensors: Mapping[str, str],
) -> Program:
    """Put one kernel in the place of the maker of a temporary and its only reader.

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
    steps = (kernel if step is reader else step for step in program.steps if step is not maker)
    facts = {name: each for name, each in program.facts.items() if name != maker.target}
    return replace(program, steps=tuple(steps), facts=facts)
