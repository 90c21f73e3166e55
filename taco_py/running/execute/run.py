"""Carrying out the steps of a plan on stored tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from codegen.records import dataclass
from codegen.runtime.call import in_buffer
from codegen.runtime.signature import Kind
from taco_py.compiler.cost.machine import NOMINAL, Machine
from taco_py.compiler.driver import CompiledKernel, compile_recipe, compile_recipes
from taco_py.compiler.lower.bindings import Source
from taco_py.compiler.residence import Residence
from taco_py.data.interop.in_order import satisfies
from taco_py.data.interop.numpy_arrays import dense_of
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.check import check
from taco_py.data.storage.pack import canonical
from taco_py.data.storage.room import bytes_of, too_little
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData, is_on_host, on_host
from taco_py.language.diagnostics.errors import (
    IndexOverflowError,
    InternalError,
    OutOfMemoryError,
    StructureError,
    TacoError,
)
from taco_py.language.phase import EVALUATE
from taco_py.planner.ir.nodes import (
    Gather,
    KernelStep,
    Step,
    TakeSide,
    TakeValues,
    Unfuse,
    has_format,
    reads_elements,
)
from taco_py.planner.ir.plan import Plan
from taco_py.running.execute.assemble_result import assembled
from taco_py.running.execute.first_allocation import first_room
from taco_py.running.execute.guard import check_plan, check_sparse, shortage, with_room
from taco_py.running.execute.new_array import new_array
from taco_py.running.execute.peak_memory import Moment, last_reads
from taco_py.running.execute.result_places import KernelArray, place, places_of
from taco_py.running.execute.transform import gathered, transformed, unfused
from taco_py.running.execute.within_limit import Watch, over, watch
from taco_py.running.execute.work import useful_threads

ASSEMBLE_AGAIN = "assemble again when the operands' patterns change"
IN_ORDER = "coordinates sorted and duplicates added up in a copy"


def _as_it_is(_: str, data: TensorData) -> TensorData:
    return data


@dataclass(slots=True)
class Execution:
    """One run of a plan.

    tensors    what exists so far, by name
    out        where the last kernel's dense result goes, None for a new array
    placed     where those of several results go, by target: arrays, or parts of arrays
    inform     the same tensor with what its owner knows of its coordinates; asked where a kernel
               relies on their order
    kernels    those of the plan that are compiled already, by target and phase; more are added
    places     the same by the kernels' arrays that the results show
    wide       targets whose entries int32 cannot count, so that they have int64 indices
    shape      of the one result, whose modes the plan may have fused; None to leave it as it is
    machine    that the plan was made for: how much work is worth several threads
    side       side results of kernels, by the target and the number of the side result
    residence  the arrays that are on a device, None where no kernel runs on one
    watch      what checks it where a user limits memory
    moment     what there may be at the step at hand, where that is more than the limit
    """

    tensors: dict[str, TensorData]
    threads: int
    out: Array | None = None
    placed: Mapping[str, Array] = field(default_factory=dict)
    inform: Callable[[str, TensorData], TensorData] = _as_it_is
    kernels: dict[tuple[str, str], CompiledKernel] = field(default_factory=dict)
    wide: set[str] = field(default_factory=set)
    shape: tuple[int, ...] | None = None
    machine: Machine = NOMINAL
    side: dict[tuple[str, int], TensorData] = field(default_factory=dict)
    residence: Residence | None = None
    watch: Watch | None = None
    moment: Moment | None = None
    places: Mapping[KernelArray, Array] = field(default_factory=dict)

    @property
    def fits(self) -> bool:
        """Tell whether other operands of these sizes fit too, whatever they store."""
        return self.watch is not None and self.watch.fits


def run(plan: Plan, execution: Execution) -> TensorData:
    """Return the result of a plan of one result, as `run_all` does."""
    (result,) = run_all(plan, execution).values()
    return result


def run_all(plan: Plan, execution: Execution) -> dict[str, TensorData]:
    """Return every result of the plan, by name, with the modes that the assignment says.

    Raises OutOfMemoryError before anything is done where its dense tensors cannot fit.
    """
    begin(plan, execution)
    execution.places = _places(plan, execution)
    unread = last_reads(plan)
    for number, step in enumerate(plan.steps, 1):
        if execution.watch is not None:
            execution.moment = execution.watch.at(number - 1, execution.tensors)
        execution.tensors[step.target] = run_step(step, execution)
        for name in unread.get(number, ()):
            execution.tensors.pop(name, None)
    results = {name: execution.tensors[name] for name in plan.program.results}
    shape = execution.shape
    if shape is None:
        return results
    return {n: r if r.shape == shape else _in_shape(r, shape) for n, r in results.items()}


def _places(plan: Plan, execution: Execution) -> dict[KernelArray, Array]:
    """Return the arrays for results that kernels write into."""
    out = execution.out
    if out is None:
        return places_of(plan, execution.placed)
    return places_of(plan, dict.fromkeys(plan.program.results, out))


def _in_shape(result: TensorData, shape: tuple[int, ...]) -> TensorData:
    """Return a dense result, whose modes the plan has fused, in the shape of the assignment."""
    return dense_of(result.values.reshape(shape))


def begin(plan: Plan, execution: Execution) -> None:
    """Compile the kernels of a plan, and check that their results fit in memory.

    Raises OutOfMemoryError where there is not.
    """
    out = execution.out is not None
    check_plan(plan, execution.tensors, out)
    _compile_ahead(plan, execution)
    if KERNELS.memory.on:
        compiled = partial(_kernel, execution=execution, phase=EVALUATE)
        execution.watch = watch(plan, execution.tensors, compiled, execution.threads, out)


def _compile_ahead(plan: Plan, execution: Execution) -> None:
    """Compile the kernels of a plan that has several, for some can be compiled side by side."""
    missing = [step for step in plan.kernels if (step.target, EVALUATE) not in execution.kernels]
    if len(missing) > 1 and not execution.wide:
        target = plan.machine.target.name
        recipes = [step.recipe(target=target) for step in missing]
        for step, kernel in zip(missing, compile_recipes(recipes), strict=True):
            execution.kernels[step.target, EVALUATE] = kernel


def run_step(step: Step, execution: Execution) -> TensorData:
    """Carry out one step of a plan."""
    if isinstance(step, KernelStep):
        return compute(step, execution, execution.places.get(KernelArray(step.target)))
    try:
        return with_room(partial(_without_kernel, step, execution), True)
    except OutOfMemoryError:
        raise
    except MemoryError as error:
        form = f" in the format {step.format}" if has_format(step) else ""
        raise too_little(
            f"a copy of {step.source}{form}",
            bytes_of(error),
            "loops in another order (schedule=), or operands in another format, need no copy",
        ) from error


def _without_kernel(step: Step, execution: Execution) -> TensorData:
    """Carry out a step that is no kernel."""
    assert not isinstance(step, KernelStep)
    if isinstance(step, TakeSide):
        return execution.side.pop((step.source, step.number))
    source = execution.tensors[step.source]
    if reads_elements(step):
        source = on_host(source)
    if isinstance(step, TakeValues) and step.distinct:
        source = execution.inform(step.source, source)
    if isinstance(step, Unfuse):
        return unfused(step, source, execution.tensors)
    if isinstance(step, Gather):
        return gathered(step, source, on_host(execution.tensors[step.pattern]))
    return transformed(step, source)


def compute(
    step: KernelStep,
    execution: Execution,
    out: Array | None,
    phase: str = EVALUATE,
    pattern: TensorData | None = None,
) -> TensorData:
    """Run a kernel; once more with int64 indices where int32 cannot count the result's entries.

    pattern  the structure that the sparse result has, for the phase COMPUTE
    """
    if execution.wide:
        step = widened(step, execution)
    try:
        return _compute(step, execution, out, phase, pattern)
    except OverflowError:
        type = step.problem.result
        if type.format.is_dense or type.index_dtype == "int64":
            raise
        execution.wide.add(step.target)
        return _compute(widened(step, execution), execution, out, phase, pattern)


def widened(step: KernelStep, execution: Execution) -> KernelStep:
    """Return `step` with the index types that its operands have by now, and int64 for a wide
    result."""
    operands = tuple(
        (name, replace(type, index_dtype=index_dtype_of(execution.tensors[step.source(name)])))
        for name, type in step.problem.operands
    )
    result = step.problem.result
    if step.target in execution.wide:
        result = replace(result, index_dtype="int64")
    return replace(step, problem=replace(step.problem, operands=operands, result=result))


def index_dtype_of(data: TensorData) -> str:
    """Return the type of the index arrays; int32 where there are none."""
    stored = [array for level in data.levels for array in (level.pos, level.crd)]
    return next((array.dtype.name for array in stored if array is not None), "int32")


def _compute(
    step: KernelStep,
    execution: Execution,
    out: Array | None,
    phase: str,
    pattern: TensorData | None,
) -> TensorData:
    """Run a kernel.

    Raises OutOfMemoryError that names what it was to make, BoundError, StructureError for a pattern
    that it does not make, and InternalError where it does not take its arguments.
    """
    try:
        return with_room(partial(_computed, step, execution, out, phase, pattern), out is None)
    except (TypeError, ValueError) as error:
        if isinstance(error, TacoError):
            raise
        unmet = isinstance(error, ValueError)
        broken = promise_broken_in(step, execution.tensors) if unmet else None
        if broken is not None:
            raise broken from None
        if unmet and pattern is not None:
            raise StructureError(
                "Expected the pattern that these operands make, found another", hint=ASSEMBLE_AGAIN
            ) from None
        from taco_py.language.diagnostics.report import internal_error

        raise internal_error("run", f"{step.problem} | {step.schedule}", error) from error
    except OutOfMemoryError:
        raise
    except MemoryError as error:
        if execution.watch is not None and execution.moment is not None:
            raise over(execution.moment, execution.watch.limit, True) from error
        operands = {n: execution.tensors[step.source(n)] for n, _ in step.problem.operands}
        raise shortage(step, sizes_of(step, operands), error) from error


def promise_broken_in(step: KernelStep, tensors: Mapping[str, TensorData]) -> TacoError | None:
    """Describe a promise of a kernel's schedule that these operands break; None without one."""
    from taco_py.compiler.schedule.apply import loops_of
    from taco_py.running.execute.broken_promises import broken_promise

    operands = {n: tensors[step.source(n)] for n, _ in step.problem.operands}
    loops = loops_of(step.problem.assignment, step.schedule)
    return broken_promise(step.problem, loops.provenance, sizes_of(step, operands), operands)


def _computed(
    step: KernelStep,
    execution: Execution,
    out: Array | None,
    phase: str,
    pattern: TensorData | None,
) -> TensorData:
    """Prepare the operands of a kernel, make or take the result's memory, call."""
    kernel = _kernel(step, execution, phase)
    operands = _prepared(kernel, step, execution)
    _check_keys(kernel, step, operands)
    threads = 1
    if kernel.threaded:
        requested, most = step.schedule.threads, execution.threads
        threads = min(most, requested or most)
        if requested is None:
            threads = useful_threads(step, operands, most, execution.machine)
    target = step.problem.assignment.target.tensor
    type = step.problem.result
    shape = shape_of(step, operands)
    residence = _residence(kernel, execution)
    make: Callable[..., Array] = new_array if residence is None else residence.new_array
    operands = {**operands, **_side_results(step, kernel, execution, operands, make)}
    if type.format.is_dense:
        if out is not None:
            out = place(out, kernel, target, shape, type, kernel.covers)
        if out is None:
            out = make(shape, type.format.mode_order, type.dtype, kernel.covers)
        result = TensorData(type.format, shape, (LevelArrays(),) * len(shape), out)
        kernel.call(*_arguments(kernel, {**operands, target: result}, step, threads, residence))
        return result
    if pattern is not None:
        values = KERNELS.pool.empty(pattern.values.shape, type.dtype)
        result = replace(pattern, values=values)
        kernel.call(*_arguments(kernel, {**operands, target: result}, step, threads, residence))
        return result
    check_sparse(step, operands, sizes_of(step, operands))
    arguments = _arguments(kernel, operands, step, threads, residence)
    if execution.watch is None or execution.moment is None:
        return assembled(kernel, step, shape, kernel.call(*arguments))
    with KERNELS.memory.spend(execution.moment.spare(execution.watch.limit)):
        grown = kernel.call(*arguments)
    return assembled(kernel, step, shape, grown)


def _residence(kernel: CompiledKernel, execution: Execution) -> Residence | None:
    """Return the memory of the device that a kernel runs on, None for the host's."""
    if kernel.is_native:
        return None
    if execution.residence is None:
        for name, data in execution.tensors.items():
            _check_structure(name, data)
        execution.residence = Residence(kernel.target)
    return execution.residence


def _check_structure(name: str, data: TensorData) -> None:
    """Raise StructureError for an operand of the host whose arrays contradict each other: a kernel
    that reads elsewhere ends a GPU for the whole process."""
    if data.format.is_dense or not is_on_host(data):
        return
    try:
        check(data)
    except TacoError as error:
        raise type(error)(f"operand {name}: {error.message}", error.span, error.hint) from None


def _side_results(
    step: KernelStep,
    kernel: CompiledKernel,
    execution: Execution,
    operands: Mapping[str, TensorData],
    make: Callable[..., Array],
) -> dict[str, TensorData]:
    """Make or take the arrays of a kernel's side results, zero where the kernel adds to them."""
    sizes = sizes_of(step, operands)
    results: dict[str, TensorData] = {}
    for number, side in enumerate(step.problem.side):
        form, shape = side.type.format, tuple(sizes[index] for index in side.target.indices)
        name, array = side.target.tensor, execution.places.get(KernelArray(step.target, number))
        if array is not None:
            array = place(array, kernel, name, shape, side.type, side.covered)
        if array is None:
            array = make(shape, form.mode_order, side.type.dtype, side.covered)
        data = TensorData(form, shape, (LevelArrays(),) * len(shape), array)
        results[name] = execution.side[step.target, number] = data
    return results


def _kernel(step: KernelStep, execution: Execution, phase: str) -> CompiledKernel:
    """Return the step's kernel, compiled when it is first needed."""
    recipe = step.recipe(phase, execution.machine.target.name)
    if execution.wide:
        return compile_recipe(recipe)
    kernel = execution.kernels.get((step.target, phase))
    if kernel is None:
        kernel = compile_recipe(recipe)
        execution.kernels[step.target, phase] = kernel
    return kernel


def _check_keys(
    kernel: CompiledKernel, step: KernelStep, operands: Mapping[str, TensorData]
) -> None:
    """Raise IndexOverflowError where coordinates linearised in a hash workspace pass int64."""
    sizes = sizes_of(step, operands)
    for indices in kernel.keys:
        if prod(sizes[i] for i in indices) > np.iinfo(np.int64).max:
            raise IndexOverflowError(
                f"Expected sizes of {', '.join(indices)} with a product below 2**63, found "
                f"{[sizes[i] for i in indices]}: a sparse result over all of them is made at once",
                hint="reorder the loops so that one of them comes before all sums, or split the "
                "expression",
            )


def _prepared(
    kernel: CompiledKernel, step: KernelStep, execution: Execution
) -> Mapping[str, TensorData]:
    """Return the operands, sorted and summed where the kernel relies on it and they are not."""
    operands = {name: execution.tensors[step.source(name)] for name, _ in step.problem.operands}
    for name, ordered, unique in kernel.requirements:
        data = execution.inform(step.source(name), operands[name])
        if not satisfies(data, ordered, unique):
            operands[name] = canonical(on_host(data))
    return operands


def copies_in_order(
    kernel: CompiledKernel, step: KernelStep, execution: Execution
) -> tuple[str, ...]:
    """Return the tensors that `_prepared` would copy, with the purpose of each copy."""
    copies = []
    for name, ordered, unique in kernel.requirements:
        source = step.source(name)
        if source in execution.tensors:
            data = execution.inform(source, execution.tensors[source])
            if not satisfies(data, ordered, unique):
                copies.append(f"{source}: {IN_ORDER}, for the kernel walks them in order")
    return tuple(copies)


def _arguments(
    kernel: CompiledKernel,
    tensors: Mapping[str, TensorData],
    step: KernelStep,
    threads: int,
    residence: Residence | None,
) -> list[Any]:
    sizes = sizes_of(step, tensors)
    problem = step.problem
    arguments: list[Any] = []
    for parameter, source in kernel.parameters:
        if parameter.kind is Kind.THREADS:
            arguments.append(threads)
        elif parameter.kind is Kind.GROWING:
            arguments.append(first_room(source, tensors))
        elif source is None:
            raise InternalError(f"Nothing is known of the kernel parameter {parameter.name}")
        elif source.what == "size":
            arguments.append(sizes[source.index])
        elif source.what == "check":
            arguments.append(0)  # `_prepared` has looked
        else:
            data = tensors[source.tensor]
            if source.what == "stride":
                mode = problem.type_of(source.tensor).format.mode_order[source.level]
                arguments.append(data.values.strides[mode] // data.values.itemsize)
            else:
                array = FETCH[source.what](data, source)
                arguments.append(
                    array if residence is None else residence.array(array, parameter.name)
                )
    return arguments


def sizes_of(step: KernelStep, tensors: Mapping[str, TensorData]) -> dict[str, int]:
    """Return the size of each index."""
    return {index: tensors[name].shape[mode] for index, name, mode in step.sizes}


def shape_of(step: KernelStep, tensors: Mapping[str, TensorData]) -> tuple[int, ...]:
    """Return the shape of the kernel's result."""
    sizes = sizes_of(step, tensors)
    return tuple(sizes[i] for i in step.problem.assignment.target.indices)


FETCH: Mapping[str, Callable[[TensorData, Source], Any]] = {
    "pos": lambda data, source: data.levels[source.level].pos,
    "crd": lambda data, source: data.levels[source.level].crd,
    "values": lambda data, source: in_buffer(data.values),
}
