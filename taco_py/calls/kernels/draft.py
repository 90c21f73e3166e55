"""Statements over operands of known formats, before any data is: types, formats and nominal sizes.

One assignment is the case of one of several.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from math import prod
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from codegen.records import dataclass
from taco_py.arguments.device_tensor import DeviceTensor
from taco_py.arguments.operands import check_names, describe
from taco_py.arguments.option_checks import check_static, check_static_index, merged
from taco_py.arguments.options import CallOptions
from taco_py.arguments.result_table import TENSOR, ResultKind
from taco_py.arguments.results import container
from taco_py.arguments.semiring_mask import SemiringMask
from taco_py.calls.call.requested_outputs import RequestedOutputs, requested_outputs
from taco_py.calls.call.semirings.over_semirings import (
    ArithmeticAssignment,
    unfilled,
    written_over,
)
from taco_py.calls.call.semirings.over_statements import draft_over_statements, wanted_so_far
from taco_py.calls.statements.elaborate import Elaborated, ResultOptions, elaborate
from taco_py.calls.statements.read_text import (
    accumulated,
    names_read,
    parsed,
    read_statement,
)
from taco_py.calls.statements.sequence import Statements, check_passed, in_single_assignment
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.storage.borrow import as_dtype
from taco_py.data.storage.tensor_data import ordered
from taco_py.data.tensors.tensor import Tensor, as_format
from taco_py.language.diagnostics.errors import FormatError, OperandError, OperandTypeError
from taco_py.language.formats import Format, dense
from taco_py.language.notation.checks import accesses, all_indices, operand_names, unique
from taco_py.language.notation.dtypes import DType
from taco_py.language.notation.einsum import parse_einsum
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.problem import TensorType
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import Operand

MASK = "mask"
"""The name by which calls of a kernel under a mask pass it."""
NOMINAL_SIZE = 1000
NOMINAL_DENSITY = 0.01
"""Sizes and density that loop orders are chosen for where no data is at hand."""


@dataclass(frozen=True, slots=True, eq=False)
class Nominal:
    """The sizes of indices and entries of operands to assume where nothing says them."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    entries: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """Statements over operands of known formats, as planning wants them.

    operands   facts of the operands, those that are read in another type under another name
    formats    of the operands, by the names that the user gives them
    requested  the outputs of the text
    static     sizes to compile in, by index
    target     the machine that kernels are for, "" as the options say
    assumed    the indices whose sizes are not known, and the sizes that are assumed
    over       the semiring and the mask, None for numbers
    """

    statements: Statements
    elaborated: Elaborated
    operands: Mapping[str, Operand]
    formats: Mapping[str, Format]
    requested: RequestedOutputs
    static: tuple[tuple[str, int], ...] = ()
    target: str = ""
    assumed: tuple[tuple[str, int], ...] = ()
    over: SemiringMask | None = None

    @property
    def is_single(self) -> bool:
        """Tell whether one assignment is all there is."""
        return len(self.statements.steps) == 1

    @property
    def assignment(self) -> Assignment:
        """Return the last assignment."""
        return self.elaborated.assignments[-1]

    @property
    def kind(self) -> ResultKind:
        """Return how the last result is handed out."""
        return self.elaborated.kinds[self.assignment.target.tensor]

    @property
    def dtype(self) -> DType:
        """Return the dtype of the last result; kernels compute in `computed_dtype` of it."""
        return self.elaborated.dtypes[self.assignment.target.tensor]

    @property
    def request(self) -> Request:
        """Return the request for a plan of the last result."""
        type = self.elaborated.operands[self.assignment.target.tensor].type
        return Request(type, self.static).on(self.target or "c")

    @property
    def size_note(self) -> str:
        """Describe for explain() the sizes that planning assumes."""
        if not self.assumed:
            return ""
        indices_of: dict[int, list[str]] = {}
        for index, size in self.assumed:
            indices_of.setdefault(size, []).append(index)
        sizes = " and ".join(f"{', '.join(names)} taken for {n}" for n, names in indices_of.items())
        return f"{sizes}, for no sizes are given"

    def on(self, target: str) -> Draft:
        """Return the arguments for kernels on another target."""
        return replace(self, target=target)


@dataclass(frozen=True, slots=True, eq=False)
class CompileArguments:
    """The arguments of `compile` besides its text.

    formats  by name, of the operands, and of the result where it is not to be chosen; an array
             stands for its own format
    static   sizes to compile in, as the user gave them
    over     the semiring and the mask, which stands for its own format too
    options  of kernels, as they are checked; the outputs of the text among them
    """

    formats: Mapping[str, Any]
    dtypes: Mapping[str, DTypeLike] | DTypeLike | None = None
    index_dtype: str = "int32"
    static: Mapping[str, int] | None = None
    over: SemiringMask | None = None
    options: CallOptions = CallOptions()


def draft(text: str, arguments: CompileArguments) -> Draft:
    """Return the draft of a text of one statement over operands of known formats.

    Raises NotationError, OperandError, FormatError, OperandTypeError, DimensionError.
    """
    return draft_assignment(parsed(text), arguments)


def draft_written(assignments: Sequence[Assignment], arguments: CompileArguments) -> Draft:
    """Return the draft of statements that are read already, whose subscripts are indices alone.

    Operands of samples over a semiring have no fill value: calls take them as `unfilled` does.

    Raises as `draft` does.
    """
    if arguments.over is not None:
        samples = unfilled(arguments.formats, arguments.over.semiring)
        arguments = replace(arguments, formats=samples)
    if len(assignments) == 1 and arguments.options.outputs is None:
        return draft_assignment(assignments[0], arguments)
    formats = arguments.formats
    assigned = unique(assignment.target.tensor for assignment in assignments)
    updates = {name: first for name in assigned if (first := _first(assignments, name)).operator}
    plain = [name for name in assigned if name not in updates]
    requested_formats = {name: formats[name] for name in plain if name in formats}
    requested = requested_outputs(assignments, arguments.options.outputs, requested_formats)
    operands = {name: form for name, form in formats.items() if name not in plain}
    for name, first in updates.items():
        operands.setdefault(name, dense(len(first.target.indices)))
    over: SemiringMask | None = arguments.over
    zero: Any = 0
    if over is not None and not over.is_usual:
        assignments, operands = _statements_over(assignments, operands, requested, arguments, over)
        zero = 0 if over.semiring.is_arithmetic else None  # the fill value that algebra finds
    statements = in_single_assignment(assignments, requested.outputs, operands)
    check_passed(assignments, statements, operands)
    return _Drafting(statements, operands, requested, arguments, zero=zero).draft()


def _statements_over(
    steps: Sequence[Assignment],
    operands: dict[str, Any],
    requested: RequestedOutputs,
    arguments: CompileArguments,
    over: SemiringMask,
) -> tuple[Sequence[Assignment], dict[str, Any]]:
    """Return several statements over a semiring as statements over numbers, and formats.

    The formats are those of the operands.
    """
    plain = in_single_assignment(steps, requested.outputs, operands)
    check_passed(steps, plain, operands)
    targets = {step.target.tensor for step in steps}
    _check_mask_name(over, {*names_read(steps), *targets}, steps[-1])

    def elaborated(statements: Sequence[Assignment]) -> Elaborated:
        names = wanted_so_far(statements, requested.outputs)
        single = in_single_assignment(statements, names, operands)
        every = RequestedOutputs(names, requested.formats, {}, False)
        inner = replace(arguments, static=None)
        dtypes: Any = arguments.dtypes
        if isinstance(dtypes, Mapping):
            read = names_read(single.assignments)
            inner = replace(inner, dtypes={n: dtype for n, dtype in dtypes.items() if n in read})
        return _Drafting(single, operands, every, inner).draft().elaborated

    orders = {a.tensor: len(a.indices) for step in steps for a in (step.target, *accesses(step))}
    if over.mask is not None:
        last = next(e for e in reversed(steps) if e.target.tensor == requested.outputs[0])
        operands = {**operands, MASK: over.mask.array}
        orders[MASK] = len(last.target.indices)
    types = _types(tuple(n for n in operands if n in orders), operands, orders, arguments.dtypes)
    statements = draft_over_statements(steps, types, over, requested.outputs, elaborated, MASK)
    return statements, operands


def _check_mask_name(over: SemiringMask, names: Collection[str], assignment: Assignment) -> None:
    """Raise OperandError where an operand is called as the mask is."""
    if over.mask is not None and MASK in names:
        raise OperandError(
            f"Expected a text without {MASK}, by which a call names its mask, found it there",
            assignment.span,
            hint="call the tensor otherwise",
        )


def _types(
    names: tuple[str, ...], operands: Mapping[str, Any], orders: Mapping[str, int], dtypes: Any
) -> dict[str, TensorType]:
    """Return the types of operands of formats, or of arrays, in which kernels read them."""
    supported = names_to_dtypes(names, dtypes)
    types = {}
    for name in names:
        array = describe(operands[name], name) if is_array(operands[name]) else None
        form = format_of(operands[name], orders[name], name)
        dtype = supported[name] if array is None else array.operand.type.dtype
        types[name] = TensorType(form, dtype).computable
    return types


def draft_assignment(
    assignment: Assignment, arguments: CompileArguments, nominal: Nominal | None = None
) -> Draft:
    """Return the draft of a text that is read already, whose subscripts are indices alone.

    nominal  sizes and entries to assume where the usual ones would mislead
    """
    target, over = assignment.target.tensor, arguments.over
    formats = dict(arguments.formats)
    if assignment.operator is not None:
        formats.setdefault(target, dense(len(assignment.target.indices)))
    zero: Any = 0
    if over is not None:
        arithmetic = _to_arithmetic(assignment, formats, arguments.dtypes, over)
        assignment = arithmetic.assignment
        zero = 0 if arithmetic.zero is None else arithmetic.zero.value
        if over.mask is not None:
            formats[arithmetic.mask] = over.mask.array
    target_formats = {}
    if formats.get(target) is not None:
        target_formats[target] = format_of(formats[target], len(assignment.target.indices), target)
    reads = operand_names(accumulated(assignment, {target: None}))
    operands = {name: form for name, form in formats.items() if name != target or name in reads}
    requested = RequestedOutputs((target,), target_formats, {}, True)
    statements = in_single_assignment((assignment,), (target,), operands)
    check_names(statements.assignments[0], operands)
    drafting = _Drafting(statements, operands, requested, arguments, nominal or Nominal(), zero)
    return drafting.draft()


def _to_arithmetic(
    assignment: Assignment,
    formats: Mapping[str, Any],
    dtypes: Mapping[str, DTypeLike] | DTypeLike | None,
    over: SemiringMask,
) -> ArithmeticAssignment:
    """Return the assignment over numbers that one over a semiring, under a mask, is.

    Raises OperandError where an operand is called as the mask is, and as `written_over`.
    """
    target = assignment.target
    read = accumulated(assignment, {target.tensor: None})
    names = operand_names(read)
    _check_mask_name(over, (*names, target.tensor), assignment)
    check_names(read, [name for name in formats if name != target.tensor or name in names])
    orders = {a.tensor: len(a.indices) for a in (target, *accesses(assignment))}
    if over.mask is not None:
        formats, names = {**formats, MASK: over.mask.array}, (*names, MASK)
        orders[MASK] = len(target.indices)
    types = _types(names, formats, orders, dtypes)
    return written_over(assignment, types, over, MASK)


def draft_einsum(text: str, formats: Sequence[Any], arguments: CompileArguments) -> Draft:
    """Return the draft of einsum's subscripts, whose operands are called op0, op1, … and result
    `out`.

    formats  of operands in their order; others are by name
    """
    forms = merged({f"op{k}": form for k, form in enumerate(formats)}, arguments.formats, "formats")
    count = text.split("->")[0].count(",") + 1
    orders = [_order_of(forms, f"op{k}") for k in range(count)]
    return draft_assignment(parse_einsum(text, orders), replace(arguments, formats=forms))


def named_formats(text: str, formats: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return formats by name, those without one in the order in which `text` first uses its
    operands.

    Raises OperandError.
    """
    names = operand_names(read_statement(text).assignment) if formats else ()
    if len(formats) > len(names):
        raise OperandError(
            f"Expected at most {len(names)} formats, found {len(formats)}",
            hint=f"in the order of their first use the operands are {', '.join(names)}",
        )
    return merged(dict(zip(names, formats, strict=False)), keywords, "formats")


def _first(assignments: Sequence[Assignment], name: str) -> Assignment:
    """Return the first statement that assigns a name."""
    return next(assignment for assignment in assignments if assignment.target.tensor == name)


def _order_of(formats: Mapping[str, Any], name: str) -> int:
    """Return the number of modes of one of einsum's operands. Raises OperandError or
    FormatError."""
    if name not in formats:
        raise OperandError(
            f"Expected a format for each operand, found none for {name}",
            hint='pass formats in the order of the operands: schedule("ij,j->i", CSR, dense(1))',
        )
    form = formats[name]
    if isinstance(form, str):
        form = Format.parse(form)
    if is_array(form):
        return len(describe(form, name).data.shape)
    if not isinstance(form, Format):
        raise FormatError(
            f"Expected a Format, its letters or an array for {name}, found {form!r}",
            hint='formats are CSR, CSF(3), "ds:1,0" …',
        )
    return form.order


@dataclass(frozen=True, slots=True, eq=False)
class _Drafting:
    """Statements, and the formats or arrays of what they read.

    zero  what sparse results do not store: see `ResultOptions`
    """

    statements: Statements
    operands: Mapping[str, Any]
    requested: RequestedOutputs
    arguments: CompileArguments
    nominal: Nominal = Nominal()
    zero: Any = 0

    def draft(self) -> Draft:
        """Return the draft of the statements, elaborated over the facts of their operands."""
        sources, over = self.operands, self.arguments.over
        assignments = self.statements.assignments
        names = tuple(name for name in names_read(assignments) if name in sources)
        sizes = check_static(self.arguments.static)
        for name, _ in sizes:
            check_static_index(name, unique(i for step in assignments for i in all_indices(step)))
        index = check_index_dtype(self.arguments.index_dtype)
        arrays = {name: describe(sources[name], name) for name in names if is_array(sources[name])}
        types = names_to_dtypes(names, self.arguments.dtypes)
        first = _first_accesses(assignments, names)
        shapes, assumed = self._shapes(first, {n: a.data.shape for n, a in arrays.items()}, sizes)
        facts: dict[str, Operand] = {}
        for name in names:
            if name in arrays:
                operand = arrays[name].operand
                facts[name] = replace(operand, type=operand.type.computable)
            else:
                form = format_of(sources[name], len(first[name].indices), name)
                type = TensorType(form, types[name], index).computable
                facts[name] = _nominal(type, shapes[name], self.nominal.entries.get(name))
        is_known = bool(arrays) and len(arrays) == len(names)
        containers = {n: container(arrays[n]) if is_known else TENSOR for n in names}
        options = ResultOptions(
            self.requested.formats,
            static=sizes,
            index=index,
            wide_sums=over is None or not over.semiring.computes_truths,
            zero=self.zero,
        )
        elaborated = elaborate(self.statements, facts, containers, options)
        read = (*names, *(name for name in elaborated.reads if name not in names))
        operands = {name: elaborated.operands[name] for name in read}
        formats = {name: facts[name].type.format for name in names}
        return Draft(
            self.statements,
            elaborated,
            operands,
            formats,
            self.requested,
            sizes,
            assumed=assumed,
            over=over,
        )

    def _shapes(
        self,
        first: Mapping[str, Access],
        arrays: Mapping[str, tuple[int, ...]],
        static: Iterable[tuple[str, int]],
    ) -> tuple[dict[str, tuple[int, ...]], tuple[tuple[str, int], ...]]:
        """Return the shape of each operand, by sizes that arrays and `static` say, as far as
        indices lead; and the indices for which sizes are assumed."""
        sizes = _sizes_of_modes(self.statements.assignments, arrays, dict(static))
        assumed: dict[str, int] = {}
        shapes = {}
        for name, access in first.items():
            shape = []
            for mode, index in enumerate(access.indices):
                size = sizes.get((name, mode))
                if size is None:
                    size = assumed[index] = self.nominal.sizes.get(index, NOMINAL_SIZE)
                shape.append(size)
            shapes[name] = arrays.get(name, tuple(shape))
        return shapes, tuple(assumed.items())


Sizes = dict[tuple[str, int], int]
"""The sizes of modes, by tensor and number."""


def _sizes_of_modes(
    statements: Sequence[Assignment],
    arrays: Mapping[str, tuple[int, ...]],
    static: Mapping[str, int],
) -> Sizes:
    """Return the sizes that arrays and `static` say, as far as indices lead."""
    sizes: Sizes = {
        (name, mode): size for name, shape in arrays.items() for mode, size in enumerate(shape)
    }
    count = -1
    while count < len(sizes):
        count = len(sizes)
        for assignment in statements:
            of_indices = dict(static)
            modes = [
                (index, (access.tensor, mode))
                for access in (assignment.target, *accesses(assignment))
                for mode, index in enumerate(access.indices)
            ]
            for index, mode in modes:
                if mode in sizes:
                    of_indices.setdefault(index, sizes[mode])
            for index, mode in modes:
                if index in of_indices:
                    sizes.setdefault(mode, of_indices[index])
    return sizes


def _first_accesses(statements: Iterable[Assignment], names: Sequence[str]) -> dict[str, Access]:
    """Return the first access of each of these tensors."""
    first: dict[str, Access] = {}
    for assignment in statements:
        for access in accesses(assignment):
            if access.tensor in names:
                first.setdefault(access.tensor, access)
    return first


def _nominal(type: TensorType, shape: tuple[int, ...], entries: float | None) -> Operand:
    """Return the facts to assume of an operand of which a format is known."""
    volume = prod(float(n) for n in shape)
    usual = volume if type.format.is_dense else max(1.0, volume * NOMINAL_DENSITY)
    return Operand(type, shape, usual if entries is None else entries)


def format_of(source: Any, order: int, name: str) -> Format:
    """Return the format of a name in a call, or an array's own. Raises FormatError."""
    form = ordered(describe(source, name).data.format) if is_array(source) else source
    format = as_format(form, order)
    if format is None:
        raise FormatError(f"Expected a format for {name}, found None")
    return format


def names_to_dtypes(
    names: tuple[str, ...],
    dtypes: Mapping[str, DTypeLike] | DTypeLike | None,
    statements: Sequence[Assignment] = (),
) -> dict[str, str]:
    """Return a supported dtype's name for each operand: of positions in `statements` int64, of
    others float64, where nothing says it."""
    positions = {
        inner.tensor
        for statement in statements
        for access in (statement.target, *accesses(statement))
        for mode in access.subscripts
        for inner, _ in mode.gathered
    }
    by_name = dtypes if isinstance(dtypes, Mapping) else dict.fromkeys({*names} - positions, dtypes)
    for name in by_name:
        if name not in names:
            raise OperandError(f"Expected dtypes of {', '.join(names)}, found one of {name}")
    supported: dict[str, str] = {}
    for name in names:
        requested: Any = by_name.get(name)
        usual = np.int64 if name in positions else np.float64
        dtype = usual if requested is None else requested
        supported[name] = as_dtype(dtype, f"dtypes[{name!r}]").name
    return supported


def check_index_dtype(index_dtype: Any) -> str:
    """Return "int32" or "int64". Raises OperandTypeError for anything else."""
    name: str = as_dtype(index_dtype, "index_dtype").name
    if name not in ("int32", "int64"):
        raise OperandTypeError(
            f"Expected index_dtype to be int32 or int64, found {name}",
            hint="int64 holds every size",
        )
    return name


def is_array(obj: Any) -> bool:
    """Tell whether an operand itself, an array or a number, was given in place of its format."""
    kinds = Tensor | DeviceTensor | np.ndarray | np.generic | Number
    return isinstance(obj, kinds) or is_scipy_sparse(obj)
