"""The user's operands checked and planned for: what is the same in all calls with such operands.

statements, operands, options → elaborated statements → operands as they are read → a plan
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.operands import (
    BoundOperand,
    bind_operands,
    check_names,
    facts,
    informer,
    joined_of,
    type_of,
)
from taco_py.arguments.options import CallOptions
from taco_py.arguments.result_table import TENSOR, ResultKind
from taco_py.arguments.results import container
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.planner_request import goal_of, planner_options
from taco_py.calls.call.row_major import row_major_copies
from taco_py.calls.call.statement_commands import commands_of, with_commands_of_one
from taco_py.calls.statements.duplicates import may_repeat
from taco_py.calls.statements.elaborate import Elaborated, Read, ResultOptions, elaborate
from taco_py.calls.statements.sequence import Statements, check_passed, in_single_assignment
from taco_py.compiler.driver import CompiledKernel
from taco_py.data.convert.in_type import values_in_type
from taco_py.data.kept_calibration import calibration_identity
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import Array, converted_to
from taco_py.language.diagnostics.errors import OperandTypeError, TacoError
from taco_py.language.legal.types import computes_exactly
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.dtypes import DType
from taco_py.language.notation.einsum import Squeezed
from taco_py.language.notation.half_types import computed_dtype, is_half
from taco_py.language.notation.nodes import Assignment
from taco_py.language.statement_indices import with_own_indices
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import make_plan
from taco_py.planner.statements import plan_statements
from taco_py.running.execute.run import Execution
from taco_py.running.execute.within_limit import exceeds
from taco_py.running.replay.find import fit_key


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """Statements and operands as kernels read them.

    operands    operands by name, those read in another type under the name that statements read
    sizes    of the indices of the last statement
    shapes   of the operands and of the tensors that statements make
    copied   whether an operand was converted because of what it stores, as other calls need not
    """

    statements: Statements
    elaborated: Elaborated
    operands: Mapping[str, BoundOperand]
    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    squeezed: Squeezed = ()
    copied: bool = False

    @property
    def is_single(self) -> bool:
        """Tell whether one assignment is computed, whose result may have its modes fused."""
        return len(self.statements.steps) == 1

    @property
    def assignment(self) -> Assignment:
        """Return the last assignment, before its wraps and fill values are made explicit."""
        return self.elaborated.source_assignments[-1]

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        """Return the assignments that are planned, with indices of one size each."""
        return with_own_indices(self.elaborated.assignments, self.shapes)

    @property
    def source_assignments(self) -> tuple[Assignment, ...]:
        """Return the assignments before wraps and fill values are written out, with indices of one
        size each."""
        return with_own_indices(self.elaborated.source_assignments, self.shapes)

    @property
    def target(self) -> str:
        """Return the tensor that the last assignment makes."""
        return self.elaborated.assignments[-1].target.tensor

    @property
    def reads_as_passed(self) -> bool:
        """Tell whether every operand is read as it was passed, in one type."""
        reads = self.elaborated.reads
        return all(name == read.source and not read.converted for name, read in reads.items())


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Checked operands and a plan.

    kinds    how the tensors that statements make are handed out
    kernels  those of the plan that are compiled, shared by all calls with this plan
    """

    checked: Checked
    plan: Plan
    kinds: Mapping[str, ResultKind]
    kernels: dict[tuple[str, str], CompiledKernel]

    @property
    def assignment(self) -> Assignment:
        """Return the last assignment, before its wraps and fill values are made explicit."""
        return self.checked.assignment

    @property
    def operands(self) -> Mapping[str, BoundOperand]:
        """Return the operands by the names that statements read."""
        return self.checked.operands

    def over(self, operands: Mapping[str, BoundOperand]) -> Prepared:
        """Return the same plan over other operands; it keeps no array of those it was made for."""
        elaborated = self.checked.elaborated
        facts = {name: replace(o, entries=None) for name, o in elaborated.operands.items()}
        elaborated = replace(elaborated, operands=facts)
        checked = replace(self.checked, operands=operands, elaborated=elaborated)
        return replace(self, checked=checked)

    @property
    def kind(self) -> ResultKind:
        """Return how the last result is handed out."""
        return self.kinds[self.checked.target]

    @property
    def dtype(self) -> DType:
        """Return the dtype of the last result; the plan's is `computed_dtype` of it."""
        return self.checked.elaborated.dtypes[self.checked.target]

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the last result."""
        return self.checked.shapes[self.checked.target]

    @property
    def outputs(self) -> Mapping[str, str]:
        """Return the tensor that each wanted name of the text stands for."""
        return self.checked.statements.outputs

    def dtype_of(self, target: str) -> DType:
        """Return the dtype of a result; kernels compute in `computed_dtype` of it."""
        return self.checked.elaborated.dtypes[target]


def prepare(
    assignment: Assignment,
    objects: Mapping[str, Any],
    options: CallOptions,
    squeezed: Squeezed = (),
) -> Prepared:
    """Check the operands of one assignment, and plan it."""
    return make_prepared(check(assignment, objects, options, squeezed), options)


def prepare_computation(computation: Computation) -> Prepared:
    """Check the operands of a computation, and plan its statements together."""
    return make_prepared(*check_computation(computation))


def check_computation(computation: Computation) -> tuple[Checked, CallOptions]:
    """Check the operands of a computation; return them with the options that it is planned by."""
    options, requested = computation.options, computation.requested
    assignments, objects = computation.assignments, computation.objects
    if computation.is_single:
        alone = replace(options, format=requested.formats.get(assignments[0].target.tensor))
        return check(assignments[0], objects, alone, computation.squeezed), alone
    statements = in_single_assignment(assignments, requested.outputs, objects)
    check_passed(assignments, statements, objects)
    if len(statements.steps) == 1:
        options = replace(options, format=requested.formats.get(requested.outputs[0]))
        (name,), (step,) = requested.outputs, statements.steps
        target = replace(step.assignment.target, tensor=name)
        options = with_commands_of_one(options, replace(step.assignment, target=target))
    return check_statements(statements, objects, options, requested.formats), options


def check(
    assignment: Assignment,
    objects: Mapping[str, Any],
    options: CallOptions,
    squeezed: Squeezed = (),
) -> Checked:
    """Check the operands of one assignment, and infer its result."""
    name = assignment.target.tensor
    statements = in_single_assignment((assignment,), (name,), objects)
    check_names(statements.assignments[0], objects)
    return check_statements(statements, objects, options, {name: options.format}, squeezed)


def check_statements(
    statements: Statements,
    objects: Mapping[str, Any],
    options: CallOptions,
    formats: Mapping[str, Any],
    squeezed: Squeezed = (),
) -> Checked:
    """Check operands against statements, and read them in the types that kernels need.

    formats   of the tensors that statements make, by the names of the text
    squeezed  modes of size 1 that accesses leave out

    Raises OperandError, OperandTypeError, DimensionError, FormatError.
    """
    bound = bind_operands(objects, options.dtype, options.weak)
    if options.dtype is None:
        bound |= read_as(*_halves(bound))
    else:
        check_casts(bound, options.dtype, options.casting)
        bound = read_as(bound, dict.fromkeys(bound, options.dtype))
    result_options = ResultOptions(
        formats,
        options.dtype,
        options.static,
        _repeated(bound),
        wide_sums=options.wide_sums,
        squeezed=squeezed,
    )
    operands = {name: operand.operand for name, operand in bound.items()}
    containers = {name: container(operand) for name, operand in bound.items()}
    elaborated = elaborate(statements, operands, containers, result_options)
    reads = {name: _read(bound, read) for name, read in elaborated.reads.items()}
    copied = any(read.converted for read in elaborated.reads.values())
    bound, shapes = {**bound, **reads}, {n: o.shape for n, o in elaborated.operands.items()}
    last = elaborated.source_assignments[-1]
    sizes = _sizes_of(last, shapes, squeezed)
    if len(statements.steps) == 1:
        accumulator = statements.steps[0].accumulator
        fixed = (accumulator, *(name for name, _ in squeezed))
        bound = {**row_major_copies(last, bound, sizes, options, fixed)}
    return Checked(statements, elaborated, bound, sizes, shapes, squeezed, copied)


def _sizes_of(
    assignment: Assignment, shapes: Mapping[str, tuple[int, ...]], squeezed: Squeezed
) -> dict[str, int]:
    """Return the size of each index of an assignment that was checked."""
    axes, sizes = dict(squeezed), dict[str, int]()
    for access in accesses(assignment):
        shape, out = shapes[access.tensor], axes.get(access.tensor, ())
        left = (size for axis, size in enumerate(shape) if axis not in out)
        sizes.update(zip(access.indices, left, strict=True))
    return sizes


def _repeated(operands: Mapping[str, BoundOperand]) -> frozenset[str]:
    """Find the sparse operands of integers that may store a coordinate twice."""
    inform = informer(operands)
    return frozenset(
        name
        for name, operand in operands.items()
        if not operand.data.format.is_dense
        and computes_exactly(operand.data.dtype)
        and may_repeat(inform(name, operand.data))
    )


def _read(operands: Mapping[str, BoundOperand], read: Read) -> BoundOperand:
    """Return an operand in the type that it is read in."""
    source, dtype = operands[read.source], read.dtype
    if not read.converted:
        return read_as({read.source: source}, {read.source: dtype})[read.source]
    with room(f"{read.source} as {dtype}", source.data.values.size * dtype.itemsize):
        data = converted_to(dtype, source.data)
    operand = replace(source.operand, type=type_of(data), contiguous=joined_of(data))
    return replace(source, data=data, operand=operand)


@dataclass(frozen=True, slots=True, eq=False)
class _Planned:
    """A plan, with kernels and kinds of results, for all operands with the same facts."""

    plan: Plan
    kinds: Mapping[str, ResultKind]
    kernels: dict[tuple[str, str], CompiledKernel]


def make_prepared(checked: Checked, options: CallOptions) -> Prepared:
    """Plan statements whose operands are checked, once for operands with the same facts."""
    elaborated, results = checked.elaborated, (*checked.statements.outputs.values(),)
    exact = options.counts or bool(options.plan)  # which may have sizes compiled in
    key = (
        *("plan", elaborated.assignments, results, *elaborated.kinds.items(), checked.squeezed),
        *(options, facts(checked.operands, exact), calibration_identity()),
    )
    planned: _Planned | None = KERNELS.memo.get(key)
    if planned is None:
        plan = _plan(checked, options, results)
        kinds = dict(elaborated.kinds)
        if checked.is_single:  # whose modes may be stored in another order
            kinds[checked.target] = replace(kinds[checked.target], format=plan.result.format)
        planned = _Planned(plan, kinds, {})
        KERNELS.memo.put(key, planned)
    return Prepared(checked, planned.plan, planned.kinds, planned.kernels)


def _plan(checked: Checked, options: CallOptions, results: tuple[str, ...]) -> Plan:
    """Plan statements over operands, or read the plan that the options have as text."""
    elaborated, types = checked.elaborated, checked.elaborated.types
    operands = {name: operand.operand for name, operand in checked.operands.items()}
    is_tensor = elaborated.kinds[results[-1]].kind == TENSOR
    any_order = is_tensor and options.format is None
    request = replace(goal_of(options, types[results[-1]]), sized=True, any_order=any_order)
    if options.plan:
        from taco_py.running.plan_texts.compare_plan import CallStatements
        from taco_py.running.plan_texts.fitted_plan import plan_of_text

        call = CallStatements(checked.assignments, operands, types, results, checked.squeezed)
        return plan_of_text(options.plan, operands, request, call)
    settings, assignments = planner_options(options), elaborated.assignments
    if checked.is_single:
        return make_plan(assignments[0], operands, request, settings, checked.squeezed)
    planned = {assignment.target.tensor: assignment for assignment in assignments}
    commands = commands_of(options, checked.statements, planned)
    return plan_statements(assignments, operands, types, request, results, settings, commands)


def check_casts(operands: Mapping[str, BoundOperand], dtype: np.dtype[Any], casting: str) -> None:
    """Raise OperandTypeError where `casting` forbids to convert an operand to the dtype asked."""
    for name, g in operands.items():
        if not np.can_cast(g.data.dtype, dtype, casting):  # type: ignore[arg-type]
            raise OperandTypeError(
                f"Expected operands that can be cast to {dtype} by the rule {casting!r}, "
                f"found {name} of dtype {g.data.dtype}",
                hint='allow it with casting="unsafe", or choose another dtype',
            )


def _halves(
    operands: Mapping[str, BoundOperand],
) -> tuple[dict[str, BoundOperand], dict[str, DType]]:
    """Return the operands of 16-bit types, and these, for `read_as`."""
    halves = {name: g for name, g in operands.items() if is_half(g.data.dtype)}
    return halves, {name: g.data.dtype for name, g in halves.items()}


def read_as(
    operands: Mapping[str, BoundOperand], types: Mapping[str, np.dtype[Any]]
) -> dict[str, BoundOperand]:
    """Return the operands in the dtypes to compute in: by a copy where kernels cannot convert each
    value as they read it."""
    converted = {}
    for name, g in operands.items():
        dtype, data = types[name], g.data
        if not converts_in_place(data.dtype, dtype):
            with room(f"{name} as {dtype}", data.values.size * dtype.itemsize):
                data = values_in_type(data, dtype)
        type, levels = type_of(data), joined_of(data)  # a copy need not have the same strides
        computed = computed_dtype(dtype)
        if data.dtype != computed:
            type = type.read_as(computed.name)
        operand = replace(g.operand, type=type, contiguous=levels)
        converted[name] = replace(g, data=data, operand=operand)
    return converted


def converts_in_place(source: np.dtype[Any], target: np.dtype[Any]) -> bool:
    """Tell whether C converts from one type to another with the same values as NumPy.

    Real numbers are made complex by NumPy, for a C compiler leaves the zeros out of their products,
    which are not zero beside an infinity; so are conversions that lose a kind of number, which warn
    or have no result in C, and those to 16 bits, which round.
    """
    if is_half(target):
        return source == target
    complexity = (source.kind == "c") == (target.kind == "c")
    return complexity and np.can_cast(source, target, "same_kind")


def start(
    prepared: Prepared,
    options: CallOptions,
    out: Array | None,
    placed: Mapping[str, Array] | None = None,
) -> Execution:
    """Return an execution over the prepared operands.

    placed  the arrays that kernels write several results into, by target
    """
    tensors = {name: operand.data for name, operand in prepared.operands.items()}
    threads = options.threads or KERNELS.cores
    context, machine = (informer(prepared.operands), prepared.kernels), prepared.plan.machine
    shape = prepared.shape if prepared.checked.is_single else None
    return Execution(tensors, threads, out, placed or {}, *context, shape=shape, machine=machine)


# ---------------------------------------------------------------- within a limit of memory

MOST_PLANS = 12
"""Plans that are tried."""


def prepare_within(computation: Computation) -> tuple[Prepared, bool]:
    """Prepare a call whose plan fits into the limit of memory, where there is one that does.

    (A B) x, A B a dense temporary   →   A (B x)   or one kernel

    Returns what is prepared, and whether its plan is the one that there is without a limit.
    """
    prepared = prepare_computation(computation)
    if not KERNELS.memory.on:
        return prepared, True

    def prepare_with(options: CallOptions) -> Prepared:
        return prepare_computation(computation.with_options(options))

    fitting = _fitting(prepared, computation.options, prepare_with)
    return fitting, fitting is prepared


def note_fit(
    key: tuple[object, ...] | None, execution: Execution, objects: Mapping[str, Any]
) -> None:
    """Remember that operands of these sizes fit into the memory limit, for calls with this key."""
    if key is not None and execution.fits:
        KERNELS.memo.put(fit_key(key, (*objects.values(),)), True)


def _fitting(
    prepared: Prepared, options: CallOptions, prepare_with: Callable[[CallOptions], Prepared]
) -> Prepared:
    """Try the plan with one decision of its log the other way, and with all of them.

    prepare_with  prepares the call with other options
    """
    limit = KERNELS.memory.limit
    if limit is None or options.schedule is not None or _exceeds(prepared, options, limit) is None:
        return prepared
    for other in _alternative_options(prepared, options):
        try:
            alternative = prepare_with(other)
        except TacoError:  # a rule that is left out may be needed
            continue
        if _exceeds(alternative, options, limit) is None:
            return alternative
    return prepared


def _exceeds(prepared: Prepared, options: CallOptions, limit: int) -> Prepared | None:
    """Return the plan where it surely takes more, None else."""
    tensors = {name: operand.data for name, operand in prepared.operands.items()}
    threads = options.threads or KERNELS.cores
    return prepared if exceeds(prepared.plan, tensors, threads, limit) else None


def _alternative_options(prepared: Prepared, options: CallOptions) -> Iterator[CallOptions]:
    """Yield options that lead to other plans."""
    accepted = [key for key, entry in prepared.plan.log.decisions.items() if entry.accepted]
    for key in accepted[:MOST_PLANS]:
        yield replace(options, reversed=options.reversed | {key})
    if len(accepted) > 1:
        yield replace(options, reversed=options.reversed | {*accepted})
