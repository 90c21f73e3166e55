"""Kernels over the same slabs as one kernel of a GPU, for the rule `fuse_slab`.

m[i] = max(j, S[i,j])    by loops(i,j), make(cuda)
P[i,j] = exp(S[i,j] - m[i])    by loops(i,j), make(cuda)
→  P[i,j] = exp(S[i,j] - max(k, S[i,k]))    by make(cuda_slabs,256,32,4,1,0)
"""

from __future__ import annotations

from math import prod

import numpy as np

from codegen.machine.gpu import Gpu
from codegen.records import dataclass
from taco_py.compiler.dataflow.slab_form import SlabForm
from taco_py.compiler.ways.on_gpu.gpu_slabs import GpuSlabs, slabs_on_gpu
from taco_py.language.notation.checks import accesses
from taco_py.language.problem import Problem
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.program import Program
from taco_py.planner.slabs.slab_group import SlabGroup, slab_group


@dataclass(frozen=True, slots=True)
class GpuGroup:
    """A group of kernels as one kernel of a GPU, and the seconds of the kernels before it."""

    group: SlabGroup
    slabs: GpuSlabs
    seconds_before: float

    def join(self, program: Program) -> Program:
        """Return the program with one kernel instead of the group."""
        return self.group.join(program, self.slabs.make)

    def __str__(self) -> str:
        names, slabs = ", ".join(self.group.targets), self.slabs
        return (
            f"{len(self.group.members)} kernels as one, which computes {names} slab by slab over "
            f"{','.join(slabs.of.slab)}: about {slabs.bytes:.3g} bytes of sectors; {slabs.units}"
        )


def group_on_gpu(program: Program, first: KernelStep, gpu: Gpu) -> GpuGroup | None:
    """Return the largest group that begins with a kernel; None where it has one kernel alone."""

    def form_of(problem: Problem) -> SlabForm:
        return slabs_on_gpu(problem, _sizes(program, problem), gpu).of.form

    group = slab_group(program, first, form_of)
    if group is None:
        return None
    slabs = slabs_on_gpu(group.problem, _sizes(program, group.problem), gpu)
    return GpuGroup(group, slabs, _seconds_apart(program, group, gpu))


def _sizes(program: Program, problem: Problem) -> dict[str, float]:
    """Return the size of each index of a problem over tensors of a program."""
    sizes: dict[str, float] = {}
    values = [(problem.assignment.target, problem.assignment.value)]
    values += [(side.target, side.value) for side in problem.side]
    for target, value in values:
        for access in (target, *accesses(value)):
            shape = program.facts[access.tensor].shape
            sizes.update(zip(access.indices, map(float, shape), strict=True))
    return sizes


def _seconds_apart(program: Program, group: SlabGroup, gpu: Gpu) -> float:
    """Return the seconds of the kernels of a group, each of which reads all of its operands."""
    total = 0.0
    for member in group.members:
        value = member.value
        tensors = {value.target.tensor, *(access.tensor for access in accesses(value.value))}
        total += sum(_bytes(program, tensor) for tensor in tensors)
    return total / gpu.memory_bytes_per_second + len(group.members) * gpu.launch_seconds


def _bytes(program: Program, tensor: str) -> float:
    fact = program.facts[tensor]
    return float(prod(fact.shape) * np.dtype(fact.type.dtype).itemsize)
