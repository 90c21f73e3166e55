"""Which array of which kernel each result of a plan is.

p_1 is a side result of the kernel of q_1, and p is p_1 with its modes apart
→  that kernel may write its side result into the array for p
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.driver import CompiledKernel
from taco_py.data.storage.tensor_data import Array
from taco_py.language.formats import dense
from taco_py.language.problem import TensorType
from taco_py.planner.ir.nodes import KernelStep, Step, TakeSide, Unfuse
from taco_py.planner.ir.plan import Plan
from taco_py.running.execute.shown_array import with_fewer_modes


@dataclass(frozen=True, slots=True)
class KernelArray:
    """An array that a kernel writes.

    target  of the kernel
    number  of the side result that it is, None for the kernel's own result
    """

    target: str
    number: int | None = None


def kernel_arrays(plan: Plan, results: Iterable[str]) -> Iterator[tuple[str, KernelArray]]:
    """Yield results that show a dense array of a kernel in its order, each array once."""
    steps = {step.target: step for step in plan.steps}
    kernels = {kernel.target: kernel for kernel in plan.kernels}
    arrays: set[KernelArray] = set()
    for result in results:
        array = _kernel_array(steps, result)
        if array is None or array in arrays:
            continue
        _, type = tensor_of(kernels[array.target], array)
        if type.format == dense(type.format.order):
            arrays.add(array)
            yield result, array


def _kernel_array(steps: Mapping[str, Step], result: str) -> KernelArray | None:
    """Return the array of a kernel that a result shows; None where it is of another step."""
    match steps.get(result):
        case Unfuse(source=source):
            return _kernel_array(steps, source)
        case TakeSide(source=source, number=number):
            return KernelArray(source, number)
        case KernelStep(target=target):
            return KernelArray(target)
    return None


def tensor_of(kernel: KernelStep, array: KernelArray) -> tuple[str, TensorType]:
    """Return the name of an array in the problem of its kernel, and its type."""
    problem = kernel.problem
    if array.number is None:
        return problem.assignment.target.tensor, problem.result
    side = problem.side[array.number]
    return side.target.tensor, side.type


def places_of(plan: Plan, arrays: Mapping[str, Array]) -> dict[KernelArray, Array]:
    """Return the array that each kernel writes into, from those for results."""
    return {array: arrays[name] for name, array in kernel_arrays(plan, arrays)}


def takes_strides(kernel: CompiledKernel, tensor: str, order: int) -> bool:
    """Tell whether the elements of a kernel's result may lie apart, but for the last mode's."""
    if kernel.routine:  # it reads the strides of the arrays that it is given
        return True
    sources = (source for _, source in kernel.parameters)
    strides = [s for s in sources if s is not None and s.what == "stride" and s.tensor == tensor]
    return len(strides) >= order - 1


def place(
    array: Array,
    kernel: CompiledKernel,
    tensor: str,
    shape: tuple[int, ...],
    type: TensorType,
    covered: bool,
) -> Array | None:
    """Return an array for a result with the kernel's modes; None where it cannot write there.

    covered  whether the kernel writes all elements; else they are cleared
    """
    if array.dtype != np.dtype(type.dtype) or type.format != dense(len(shape)):
        return None
    view = with_fewer_modes(array, shape)
    if view is None or not (view.flags.c_contiguous or takes_strides(kernel, tensor, view.ndim)):
        return None
    if view.ndim and view.shape[-1] != 1 and view.strides[-1] != view.itemsize:
        return None
    if not covered:
        view[...] = 0
    return view
