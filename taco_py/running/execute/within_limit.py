"""What users allow a call to take: checked before it begins, and again before each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from codegen.records import dataclass
from taco_py.compiler.driver import CompiledKernel
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import TensorData, arrays_of
from taco_py.language.diagnostics.errors import OutOfMemoryError
from taco_py.language.diagnostics.memory_errors import over_limit
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.plan import Plan
from taco_py.running.execute.peak_memory import READY, Amount, Moment, moment_of, moments, owners_of


@dataclass(frozen=True, slots=True)
class Watch:
    """A plan under a limit: what it takes is checked again as sizes of temporaries become known.

    fits  whether it takes no more than that whatever its operands store
    """

    plan: Plan
    limit: int
    kernels: Mapping[tuple[str, str], CompiledKernel]
    threads: int
    out: bool
    operands: frozenset[str]
    fits: bool = False

    def at(self, number: int, tensors: Mapping[str, TensorData]) -> Moment | None:
        """Return the largest bytes at a step; None where they fit in any case.

        number   of the step
        tensors  what there is by then

        Raises OutOfMemoryError where the step takes more than is allowed.
        """
        step = self.plan.steps[number]
        if self.fits or isinstance(step, READY):
            return None
        owners = owners_of(self.plan)
        alive = {owners.get(name, name): data for name, data in tensors.items()}
        live = tuple(
            Amount(name, size, size)
            for name, data in alive.items()
            if name not in self.operands and (size := bytes_held(data))
        )
        moment = moment_of(step, tensors, live, self.kernels, self.threads, self.plan.machine)
        if moment is None:
            return None
        if self.out and number == len(self.plan.steps) - 1:
            moment = replace(moment, result=replace(moment.result, least=0, most=0))
        refuse(moment, self.limit)
        return moment if moment.most > self.limit else None


def bytes_held(data: TensorData) -> int:
    """Return bytes of a tensor's arrays."""
    return sum(array.nbytes for array in arrays_of(data))


def watch(
    plan: Plan,
    tensors: Mapping[str, TensorData],
    compiled: Callable[[KernelStep], CompiledKernel],
    threads: int,
    out: bool,
) -> Watch | None:
    """Begin a plan on operands; None where nothing is limited, or on a device.

    compiled  the kernel of a step

    Raises OutOfMemoryError where it surely takes more than is allowed.
    """
    limit = KERNELS.memory.limit
    if limit is None or plan.machine.is_gpu:
        return None
    for moment in moments(plan, tensors, {}, threads, out):  # before anything is compiled
        refuse(moment, limit)
    kernels = {(step.target, "evaluate"): compiled(step) for step in plan.kernels}
    all_moments = tuple(moments(plan, tensors, kernels, threads, out))
    for moment in all_moments:
        refuse(moment, limit)
    every = len(all_moments) == len(plan.steps)
    fits = every and all(moment.most <= limit for moment in all_moments)
    return Watch(plan, limit, kernels, threads, out, frozenset(tensors), fits)


def exceeds(plan: Plan, tensors: Mapping[str, TensorData], threads: int, limit: int) -> bool:
    """Tell whether a plan surely exceeds `limit` bytes, before its kernels are compiled."""
    return any(moment.least > limit for moment in moments(plan, tensors, {}, threads, False))


def refuse(moment: Moment, limit: int) -> None:
    """Raise OutOfMemoryError where there would be more at once than `limit` bytes."""
    if moment.least > limit:
        raise over(moment, limit)


def over(moment: Moment, limit: int, most: bool = False) -> OutOfMemoryError:
    """Make the error of a moment at which there is too much.

    most  whether that was found as arrays grew
    """
    remedies = ["fewer rows at a time", "a smaller dtype"]
    step = moment.step
    if isinstance(step, KernelStep):
        form = step.problem.result.format
        if form.is_dense and form.order:
            remedies.insert(0, "a sparse result by format=")
        if moment.inside:
            remedies.insert(0, "threads=1" if "threads" in moment.inside[0].what else "schedule=")
    else:
        remedies.insert(0, "operands in the format that is asked for")
    words = f"{', '.join(remedies[:-1])} or {remedies[-1]} need less"
    return over_limit(moment.parts(most), limit, words)
