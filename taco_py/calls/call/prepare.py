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
    Given,
    check_names,
    facts,
    give,
    informer,
    joined_of,
    type_of,
)
from taco_py.arguments.options import CallOptions
from taco_py.arguments.result_table import TENSOR, ResultKind
from taco_py.arguments.results import container
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.planner_request import goal_of, planner_options
from taco_py.calls.call.row_major import lined_up
from taco_py.calls.call.statement_commands import commands_of, with_commands_of_one
from taco_py.calls.statements.elaborate import Elaborated, Read, ResultOptions, elaborate
from taco_py.calls.statements.sequence import Statements, check_passed, in_single_assignment
from taco_py.calls.statements.widened import may_repeat
from taco_py.compiler.driver import CompiledKernel
from taco_py.data.convert.in_type import values_in_type
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
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import make_plan
from taco_py.planner.statements import plan_statements
from taco_py.running.execute.run import Execution
from taco_py.running.execute.within_limit import exceeds
from taco_py.running.replay.find import fit_key


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """Statements and operands as kernels read them.

    given    operands by name, those read in another type under the name that statements read
    sizes    of the indices of the last statement
    shapes   of the operands and of the tensors that statements make
    copied   whether an operand was converted because of what it stores, as other calls need not
    """

    statements: Statements
    elaborated: Elaborated
    given: Mapping[str, Given]
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
        """Return the last assignment, before what wraps and what is not stored is written out."""
        return self.elaborated.written[-1]

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
        """Return the last assignment, before what wraps and what is not stored is written out."""
        return self.checked.assignment

    @property
    def given(self) -> Mapping[str, Given]:
        """Return the operands by the names that statements read."""
        return self.checked.given

    def over(self, given: Mapping[str, Given]) -> Prepared:
        """Return the same plan over other operands; it keeps no array of those it was made for."""
        made = self.checked.elaborated
        facts = {name: replace(each, entries=None) for name, each in made.operands.items()}
        checked = replace(self.checked, given=given, elaborated=replace(made, operands=facts))
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
    options, requested = computation.options, computation.requested
    written, objects = computation.written, computation.objects
    if computation.is_single:
        alone = replace(options, format=requested.formats.get(written[0].target.tensor))
        return prepare(written[0], objects, alone, computation.squeezed)
    statements = in_single_assignment(written, requested.outputs, objects)
    check_passed(written, statements, objects)
    if len(statements.steps) == 1:
        options = replace(options, format=requested.formats.get(requested.outputs[0]))
        (name,), (step,) = requested.outputs, statements.steps
        target = replace(step.assignment.target, tensor=name)
        options = with_commands_of_one(options, replace(step.assignment, target=target))
    checked = check_statements(statements, objects, options, requested.formats)
    return make_prepared(checked, options)


def check(
    assignment: Assignment,
    objects: Mapping[str, Any],
    options: CallOptions,
    squeezed: Squeezed = (),
) -> Checked:
    """Check the operands of one assignment, and find what it makes."""
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
    given = give(objects, options.dtype, options.weak)
    if options.dtype is None:
        given |= read_as(*_halves(given))
    else:
        check_casts(given, options.dtype, options.casting)
        given = read_as(given, dict.fromkeys(given, options.dtype))
    result_options = ResultOptions(
        formats,
        options.dtype,
        options.static,
        _repeated(given),
        wide_sums=options.wide_sums,
        squeezed=squeezed,
    )
    operands = {name: each.operand for name, each in given.items()}
    containers = {name: container(each) for name, each in given.items()}
    elaborated = elaborate(statements, operands, containers, result_options)
    reads = {name: _read(given, read) for name, read in elaborated.reads.items()}
    copied = any(read.converted for read in elaborated.reads.values())
    given, shapes = {**given, **reads}, {n: o.shape for n, o in elaborated.operands.items()}
    last = elaborated.written[-1]
    sizes = _sizes_of(last, shapes, squeezed)
    if len(statements.steps) == 1:
        added = statements.steps[0].added
        fixed = (added, *(name for name, _ in squeezed))
        given = {**lined_up(last, given, sizes, options, fixed)}
    return Checked(statements, elaborated, given, sizes, shapes, squeezed, copied)


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


def _repeated(given: Mapping[str, Given]) -> frozenset[str]:
    """Find the sparse operands of integers that may store a coordinate twice."""
    inform = informer(given)
    return frozenset(
        name
        for name, each in given.items()
        if not each.data.format.is_dense
        and computes_exactly(each.data.dtype)
        and may_repeat(inform(name, each.data))
    )


def _read(given: Mapping[str, Given], read: Read) -> Given:
    """Return an operand in the type that it is read in."""
    source, wanted = given[read.source], read.dtype
    if not read.converted:
        return read_as({read.source: source}, {read.source: wanted})[read.source]
    with room(f"{read.source} as {wanted}", source.data.values.size * wanted.itemsize):
        data = converted_to(wanted, source.data)
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
        *(options, facts(checked.given, exact)),
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
    operands = {name: each.operand for name, each in checked.given.items()}
    is_tensor = elaborated.kinds[results[-1]].kind == TENSOR
    any_order = is_tensor and options.format is None
    request = replace(goal_of(options, types[results[-1]]), sized=True, any_order=any_order)
    if options.plan:
        from taco_py.running.plan_texts.fitted_plan import plan_of_text

        (alone,) = elaborated.assignments
        return plan_of_text(options.plan, operands, request, alone, checked.squeezed)
    asked, assignments = planner_options(options), elaborated.assignments
    if checked.is_single:
        return make_plan(assignments[0], operands, request, asked, checked.squeezed)
    planned = {each.target.tensor: each for each in assignments}
    commands = commands_of(options, checked.statements, planned)
    return plan_statements(assignments, operands, types, request, results, asked, commands)


def check_casts(given: Mapping[str, Given], wanted: np.dtype[Any], casting: str) -> None:
    """Raise OperandTypeError where `casting` forbids to convert an operand to the dtype asked."""
    for name, g in given.items():
        if not np.can_cast(g.data.dtype, wanted, casting):  # type: ignore[arg-type]
            raise OperandTypeError(
                f"Expected operands that can be cast to {wanted} by the rule {casting!r}, "
                f"found {name} of dtype {g.data.dtype}",
                hint='allow it with casting="unsafe", or choose another dtype',
            )


def _halves(given: Mapping[str, Given]) -> tuple[dict[str, Given], dict[str, DType]]:
    """Return the operands of 16-bit types, and these, for `read_as`."""
    found = {name: g for name, g in given.items() if is_half(g.data.dtype)}
    return found, {name: g.data.dtype for name, g in found.items()}


def read_as(given: Mapping[str, Given], types: Mapping[str, np.dtype[Any]]) -> dict[str, Given]:
    """Return the operands in the dtypes to compute in: by a copy where kernels cannot convert each
    value as they read it."""
    found = {}
    for name, g in given.items():
        wanted, data = types[name], g.data
        if not converts_in_place(data.dtype, wanted):
            with room(f"{name} as {wanted}", data.values.size * wanted.itemsize):
                data = values_in_type(data, wanted)
        type, levels = type_of(data), joined_of(data)  # a copy need not have the same strides
        computed = computed_dtype(wanted)
        if data.dtype != computed:
            type = type.read_as(computed.name)
        found[name] = replace(
            g, data=data, operand=replace(g.operand, type=type, contiguous=levels)
        )
    return found


def converts_in_place(found: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Tell whether a conversion in C gives what NumPy's gives.

    Real numbers are made complex by NumPy, for a C compiler leaves the zeros out of their products,
    which are not zero beside an infinity; so are conversions that lose a kind of number, which warn
    or have no result in C, and those to 16 bits, which round.
    """
    if is_half(wanted):
        return found == wanted
    complexity = (found.kind == "c") == (wanted.kind == "c")
    return complexity and np.can_cast(found, wanted, "same_kind")


def start(prepared: Prepared, options: CallOptions, out: Array | None) -> Execution:
    """Return an execution over the prepared operands."""
    tensors = {name: each.data for name, each in prepared.given.items()}
    threads = options.threads or KERNELS.cores
    known, machine = (informer(prepared.given), prepared.kernels), prepared.plan.machine
    shape = prepared.shape if prepared.checked.is_single else None
    return Execution(tensors, threads, out, *known, shape=shape, machine=machine)


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

    def again(options: CallOptions) -> Prepared:
        return prepare_computation(computation.with_options(options))

    fitting = _fitting(prepared, computation.options, again)
    return fitting, fitting is prepared


def note_fit(
    key: tuple[object, ...] | None, execution: Execution, objects: Mapping[str, Any]
) -> None:
    """Remember of calls with this key that operands of these sizes fit into the limit of memory."""
    if key is not None and execution.fits:
        KERNELS.memo.put(fit_key(key, (*objects.values(),)), True)


def _fitting(
    prepared: Prepared, options: CallOptions, again: Callable[[CallOptions], Prepared]
) -> Prepared:
    """Try the plan with one decision of its log the other way, and with all of them.

    again  prepares the call with other options
    """
    limit = KERNELS.memory.limit
    if limit is None or options.schedule is not None or _exceeds(prepared, options, limit) is None:
        return prepared
    for other in _others(prepared, options):
        try:
            found = again(other)
        except TacoError:  # a rule that is left out may be needed
            continue
        if _exceeds(found, options, limit) is None:
            return found
    return prepared


def _exceeds(prepared: Prepared, options: CallOptions, limit: int) -> Prepared | None:
    """Return the plan where it surely takes more, None else."""
    tensors = {name: given.data for name, given in prepared.given.items()}
    threads = options.threads or KERNELS.cores
    return prepared if exceeds(prepared.plan, tensors, threads, limit) else None


def _others(prepared: Prepared, options: CallOptions) -> Iterator[CallOptions]:
    """Yield options that lead to other plans."""
    taken = [key for key, entry in prepared.plan.log.decisions.items() if entry.accepted]
    for key in taken[:MOST_PLANS]:
        yield replace(options, reversed=options.reversed | {key})
    if len(taken) > 1:
        yield replace(options, reversed=options.reversed | {*taken})
