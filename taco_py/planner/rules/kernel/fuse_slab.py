"""Compute several values of the same slabs in one kernel, which keeps near what it reads again.

    s[i] = sum(j, X[i,j] * X[i,j])    by loops(i,j)
    Y[i,j] = X[i,j] / s[i]    by loops(i,j)
    → Y[i,j] = X[i,j] / sum(j_1, X[i,j_1] * X[i,j_1])    by loops(i,j,j_1), make(slabs,64)

A slab is a row here: X is read from main memory once, and from the nearest caches again; s is in a
register. A sum that others read is stored besides, and values of a row that take long and are read
twice are kept in the nearest caches. The kernel's dataflow graph (`compiler.dataflow`) is rewritten
as long as the bytes that move at some memory become fewer. On a GPU, the threads of a block keep
what they read again in registers: make(cuda_slabs,…). (After the abstract of Xing et al. 2025,
IntelliGen.)
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from codegen.machine.gpu import Gpu
from taco_py.compiler.dataflow.build_dataflow import is_quick
from taco_py.compiler.dataflow.slab_form import NoSlabError, slab_form
from taco_py.compiler.ways.ways import in_slabs, way_of
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.tree import all_calls, has_reductions
from taco_py.planner.context import Context
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.program import Program, reads
from taco_py.planner.joined_kernels import is_plain
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
    kernels,
)
from taco_py.planner.slabs.slab_choice import SlabChoice, choose_slabs, price_of
from taco_py.planner.slabs.slab_group import SlabGroup, slab_group
from taco_py.planner.slabs.slabs_on_gpu import group_on_gpu


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Join the kernels that begin with one and read its slabs; or write one past the caches."""
    first = next((kernel for kernel in program.kernels if kernel.target == site.target), None)
    machine = context.goal.machine
    if first is None:
        return None
    if machine.is_gpu:
        return _on_gpu(program, first, machine.target.gpu)
    group = slab_group(program, first)
    if group is None:
        return _alone(program, first, context)
    choice = choose_slabs(group.problem, group.form, sizes_of(program, group), machine)
    refusal = choice.refusal(machine)
    if refusal:
        return Refusal(refusal)

    def rewrite() -> Rewrite:
        way = in_slabs((choice.block,))
        return Rewrite(group.join(program, way), _explain(group, choice))

    before, after = (price_of(amounts, machine) for amounts in (choice.before, choice.after))
    return Candidate(before, after, rewrite)


def _on_gpu(program: Program, first: KernelStep, gpu: Gpu) -> Outcome:
    """Join the kernels of a GPU that begin with one and read its slabs."""
    group = group_on_gpu(program, first, gpu)
    if group is None:
        return None
    return Candidate(
        group.seconds_before, group.slabs.seconds, lambda: Rewrite(group.join(program), str(group))
    )


def _alone(program: Program, kernel: KernelStep, context: Context) -> Outcome:
    """Compute a large array of elements in slabs, where plain loops would not write it past the
    caches."""
    problem, machine = kernel.problem, context.goal.machine
    value = problem.assignment.value
    if not is_plain(kernel) or way_of(kernel.schedule.make).reuses or has_reductions(value):
        return None
    if problem.static or problem.vast or problem.side:
        return None
    makers = {step.target for step in program.kernels}
    if kernel.target not in program.results or makers & {*reads(kernel)}:
        return None  # for `fuse_temporary` and `inline_temporary`
    size = prod(program.facts[kernel.target].shape) * np.dtype(problem.result.dtype).itemsize
    if size <= machine.loops.far_cache_bytes:
        return None  # no array is written past a cache in which its reader finds it
    if len(problem.assignment.target.indices) > 1 and all(
        is_quick(call.operator) for call in all_calls(value)
    ):
        return None  # for `codegen.passes.past_caches`
    try:
        form = slab_form(problem)
    except NoSlabError:
        return None
    if not form.slab:
        return None
    shapes = {
        index: float(program.facts[kernel.source(name)].shape[mode])
        for index, name, mode in kernel.sizes
    }
    sizes = {mode: shapes[names[0]] for mode, names in form.names.items()}
    choice = choose_slabs(problem, form, sizes, machine)

    def rewrite() -> Rewrite:
        slabs = replace(kernel, schedule=kernel.schedule.with_way(in_slabs((choice.block,))))
        lines = "; ".join(choice.lines())
        return Rewrite(program.with_kernel(slabs), f"large: written past the caches: {lines}")

    before, after = (price_of(amounts, machine) for amounts in (choice.before, choice.after))
    return Candidate(before, after, rewrite)


def sizes_of(program: Program, group: SlabGroup) -> dict[str, float]:
    """Return the size of each mode of a group."""
    sizes: dict[str, float] = {}
    for output in group.form.outputs:
        for access in (output.target, *accesses(output.value)):
            shape = program.facts[access.tensor].shape
            sizes.update(zip(access.indices, map(float, shape), strict=True))
    return sizes


def _explain(group: SlabGroup, choice: SlabChoice) -> str:
    """Describe the kernel, for explain()."""
    names = ", ".join(group.targets)
    indices = ",".join(
        index.name if index.block == 1 else f"{index.name} by {choice.block}"
        for index in group.form.slab
    )
    return (
        f"{len(group.members)} kernels as one, which computes {names} slab by slab over {indices}: "
        + "; ".join(choice.lines())
    )


RULE = Rule(
    "fuse_slab",
    Phase.KERNEL,
    apply,
    kernels,
    Numbers.ROUNDS,
    Gain.DENSE,
    traits=Trait.FUSES,
)
