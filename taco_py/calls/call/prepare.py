"""The user's operands checked and planned for: what is the same in all calls with such operands."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.arguments.operands import (
    Given,
    check_names,
    check_orders,
    check_sizes,
    facts,
    give,
    informer,
    joined_of,
    type_of,
)
from taco_py.arguments.option_checks import check_static_size, merged
from taco_py.arguments.options import CallOptions
from taco_py.arguments.result_table import ResultKind
from taco_py.calls.call.planner_request import goal_of, planner_options
from taco_py.calls.call.row_major import lined_up
from taco_py.calls.call.wanted_result import wanted_result
from taco_py.calls.call.widened import widened
from taco_py.compiler.driver import CompiledKernel
from taco_py.data.convert.in_type import values_in_type
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.room import room
from taco_py.data.storage.tensor_data import Array
from taco_py.language.diagnostics.cautions import issue_warnings as give_cautions
from taco_py.language.diagnostics.errors import NotationError, OperandTypeError, TacoError
from taco_py.language.notation.checks import check_assignment, operand_names, refuse_subscripts
from taco_py.language.notation.dtypes import DType
from taco_py.language.notation.einsum import Squeezed
from taco_py.language.notation.functions.function_table import nonzero
from taco_py.language.notation.half_types import computed_dtype, is_half
from taco_py.language.notation.nodes import Access, Assignment, Call
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.rewrites.fills import with_fills
from taco_py.language.notation.rewrites.index_numbers import named_like_numbers
from taco_py.language.notation.rewrites.reduce import insert_reductions
from taco_py.language.notation.rewrites.wide_sums import wide_sums, with_wide_answers
from taco_py.language.notation.statements import check_sequence, parse_statements
from taco_py.language.notation.traps import traps
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import make_plan
from taco_py.planner.statements import fills_of
from taco_py.running.execute.run import Execution
from taco_py.running.execute.within_limit import exceeds
from taco_py.running.replay.find import fit_key


def parsed(text: str) -> Assignment:
    """Return the assignment of a text, checked, with its sums explicit; its cautions are given.

    Raises NotationError or OperandError, also where subscripts are more than indices.
    """
    found = understood(text)
    refuse_subscripts(found.assignment)
    give_cautions(found.cautions)
    return found.assignment


def parsed_statements(text: str) -> tuple[Assignment, ...]:
    """Return the assignments of a text, as `parsed` has one."""
    found = statements_of(text, EVERY_NAME)
    for each in found:
        refuse_subscripts(each.assignment)
        give_cautions(each.cautions)
    return tuple(each.assignment for each in found)


@dataclass(frozen=True, slots=True, eq=False)
class Understood:
    """The assignment of a text, checked, with its sums explicit, and what to warn of."""

    assignment: Assignment
    cautions: tuple[UserWarning, ...]


class _EveryName:
    def __contains__(self, name: object) -> bool:
        return True


EVERY_NAME = _EveryName()
"""For texts over operands that are not known, where no index is a number."""


def understood(text: str) -> Understood:
    """Read a text of one statement, in which no index is a number.

    Raises NotationError or OperandError.
    """
    found, *others = statements_of(text, EVERY_NAME)
    if others:
        raise NotationError(
            "Expected one assignment, found another one after it",
            others[0].assignment.span,
            "tp.evaluate, tp.explain, tp.compile and tp.evaluate_dense take several",
        )
    return found


def statements_of(text: str, given: Container[str] = ()) -> tuple[Understood, ...]:
    """Read a text of one statement or several. Raises NotationError or OperandError.

    given  the names of operands, which are meant also where an index is called so
    """
    if not isinstance(text, str):
        return (Understood(parse_assignment(text), ()),)
    found = _statements_of(text)
    numbers = named_like_numbers(each.assignment for each in found)
    operands = frozenset(name for name in numbers if name in given)
    return _statements_of(text, operands) if operands else found


def forget_texts() -> None:
    """Read texts anew, which may name functions that have changed."""
    _statements_of.cache_clear()


@lru_cache(maxsize=1024)
def _statements_of(text: str, operands: frozenset[str] = frozenset()) -> tuple[Understood, ...]:
    written = parse_statements(text, operands)
    if len(written) > 1:
        check_sequence(written)
    for each in written:
        check_assignment(each)
    return tuple(Understood(insert_reductions(each), traps(each)) for each in written)


def by_name(
    text: str,
    given: Any,
    others: Sequence[Any],
    named: Mapping[str, Any],
    what: str = "operands",
) -> dict[str, Any]:
    """What was passed in a mapping and by keyword.

    given, others  what was passed by position

    Raises OperandTypeError for anything else by position, OperandError for a name in both.
    """
    if not others and (given is None or isinstance(given, Mapping)):
        return merged(given, named, what)
    names = names_read(each.assignment for each in statements_of(text))
    found = ", ".join(type(each).__name__ for each in (given, *others))
    raise OperandTypeError(
        f"Expected the {what} by name or as a mapping, found {found} by position",
        hint=f"write {', '.join(f'{name}=…' for name in names)}: these are the names in the text",
    )


def names_read(statements: Iterable[Assignment]) -> tuple[str, ...]:
    """Return the operands of statements in order: what they read and none before has assigned."""
    assigned: set[str] = set()
    found: dict[str, None] = {}
    for each in statements:
        found.update(dict.fromkeys(n for n in operand_names(each) if n not in assigned))
        assigned.add(each.target.tensor)
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """Checked operands and a plan.

    dtype    of the result; the plan's is `computed_dtype` of it
    kernels  those of the plan that are compiled, shared by all calls with this plan
    copied   whether an operand was converted because of what it stores, as other calls need not
    """

    assignment: Assignment
    given: Mapping[str, Given]
    plan: Plan
    kind: ResultKind
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    kernels: dict[tuple[str, str], CompiledKernel]
    copied: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """What is planned for: operands as kernels read them, and the size of each index.

    copied  as `Prepared` has it
    """

    assignment: Assignment
    given: Mapping[str, Given]
    sizes: Mapping[str, int]
    copied: bool


def prepare(
    assignment: Assignment,
    objects: Mapping[str, Any],
    options: CallOptions,
    squeezed: Squeezed = (),
) -> Prepared:
    """Return all checks, then the plan."""
    checked = check(assignment, objects, options, squeezed)
    assignment, given, sizes = checked.assignment, checked.given, checked.sizes
    exact = options.counts or bool(options.plan)  # which may have sizes compiled in
    key = ("plan", assignment, squeezed, options, facts(given, exact))
    planned = KERNELS.memo.get(key)
    if planned is None:
        planned = _planned(assignment, given, options, squeezed, sizes)
        KERNELS.memo.put(key, planned)
    shape = tuple(sizes[i] for i in assignment.target.indices)
    plan, kind, dtype, kernels = planned.plan, planned.kind, planned.dtype, planned.kernels
    return Prepared(assignment, given, plan, kind, shape, dtype, kernels, checked.copied)


def check(
    assignment: Assignment,
    objects: Mapping[str, Any],
    options: CallOptions,
    squeezed: Squeezed = (),
) -> Checked:
    """Return all checks."""
    added = target_of(assignment, objects)
    assignment = accumulated(assignment, objects)
    check_names(assignment, objects)
    as_they_are = give(objects, options.dtype, options.weak)
    if options.dtype is not None:
        check_casts(as_they_are, options.dtype, options.casting)
        as_they_are = read_as(as_they_are, dict.fromkeys(as_they_are, options.dtype))
        read = dict.fromkeys(as_they_are, options.dtype)
        assignment = with_wide_answers(assignment, read, dtype=options.dtype)
    else:
        as_they_are = {**as_they_are, **read_as(*_halves(as_they_are))}
    if options.dtype is None and options.wide_sums:
        assignment, as_they_are = with_wide_sums(assignment, as_they_are, added)
    assignment = with_fills(assignment, fills_of({n: g.operand for n, g in as_they_are.items()}))
    shapes = {name: g.data.shape for name, g in as_they_are.items()}
    for name, axes in squeezed:
        shapes[name] = tuple(n for axis, n in enumerate(shapes[name]) if axis not in axes)
    check_orders(assignment, shapes)
    sizes = check_sizes(assignment, shapes)
    for index, size in options.static:
        check_static_size(index, size, sizes)
    given = widened(assignment, as_they_are)
    copied = given is not as_they_are
    kept = (added, *(name for name, _ in squeezed))
    given = lined_up(assignment, given, sizes, options, kept)
    return Checked(assignment, given, sizes, copied)


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """What is the same for all operands with the same facts."""

    plan: Plan
    kind: ResultKind
    dtype: np.dtype[Any]
    kernels: dict[tuple[str, str], CompiledKernel]


def _planned(
    assignment: Assignment,
    given: Mapping[str, Given],
    options: CallOptions,
    squeezed: Squeezed,
    sizes: Mapping[str, int],
) -> Planned:
    wanted = wanted_result(assignment, given, sizes, options)
    operands = {name: g.operand for name, g in given.items()}
    request = replace(goal_of(options, wanted.type), sized=True, any_order=wanted.any_order)
    if options.plan:
        from taco_py.running.plan_texts.fitted_plan import plan_of_text

        plan = plan_of_text(options.plan, operands, request, wanted.assignment, squeezed)
    else:
        asked = planner_options(options)
        plan = make_plan(wanted.assignment, operands, request, asked, squeezed)
    return Planned(plan, replace(wanted.kind, format=plan.result.format), wanted.dtype, {})


def accumulated(assignment: Assignment, objects: Mapping[str, Any]) -> Assignment:
    """Return `y += value` as `y' = y + value` when there is a `y` to begin from, else as `y =
    value`."""
    if assignment.operator is None:
        return assignment
    target = assignment.target
    if target.tensor not in objects:
        return replace(assignment, operator=None)
    taken = (*objects, *operand_names(assignment), target.tensor)
    name = Names(taken).fresh(f"{target.tensor}_new")
    begin = nonzero(target) if assignment.operator.reduces_truths else target
    value = Call(assignment.operator, (begin, assignment.value))
    return Assignment(Access(name, target.indices, target.span), value, None, assignment.span)


def target_of(assignment: Assignment, objects: Mapping[str, Any]) -> str:
    """Return the operand that a value is added to by `+=`, or "" where there is none."""
    name = assignment.target.tensor
    return name if assignment.operator is not None and name in objects else ""


def with_wide_sums(
    assignment: Assignment, given: dict[str, Given], added: str
) -> tuple[Assignment, dict[str, Given]]:
    """Read operands in the types that sums of small integers are computed in.

    added  the operand that a value is added to, or ""
    """
    dtypes = {name: computed_dtype(g.data.dtype) for name, g in given.items()}
    wide = wide_sums(assignment, dtypes, dtypes.get(added))
    if not wide.read:
        return wide.assignment, given
    whole = {**given, **{name: given[other] for name, other in wide.same.items()}}
    return wide.assignment, {**whole, **read_as({n: whole[n] for n in wide.read}, wide.read)}


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
        found[name] = replace(g, data=data, operand=replace(g.operand, type=type, joined=levels))
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
    given = prepared.given
    tensors = {name: g.data for name, g in given.items()}
    threads = options.threads or KERNELS.cores
    known = informer(given), prepared.kernels
    machine = prepared.plan.machine
    return Execution(tensors, threads, out, *known, shape=prepared.shape, machine=machine)


# ---------------------------------------------------------------- within a limit of memory

MOST_PLANS = 12
"""Plans that are tried."""


def prepare_within(
    assignment: Assignment,
    objects: Mapping[str, Any],
    options: CallOptions,
    squeezed: Squeezed = (),
) -> tuple[Prepared, bool]:
    """Prepare a call whose plan fits into the limit of memory, where there is one that does.

    (A B) x, A B a dense temporary   →   A (B x)   or one kernel

    Returns what is prepared, and whether its plan is the one that there is without a limit.
    """
    prepared = prepare(assignment, objects, options, squeezed)
    if not KERNELS.memory.on:
        return prepared, True
    found = _fitting(prepared, options, partial(prepare, assignment, objects, squeezed=squeezed))
    return found, found is prepared


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
    taken = [key for key, entry in prepared.plan.log.decisions.items() if entry.taken]
    for key in taken[:MOST_PLANS]:
        yield replace(options, reversed=options.reversed | {key})
    if len(taken) > 1:
        yield replace(options, reversed=options.reversed | {*taken})
