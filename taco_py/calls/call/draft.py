"""What is known of an assignment before any data is: the formats and types of its operands, and
nominal sizes to choose loop orders for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from math import prod
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from codegen.records import dataclass
from taco_py.arguments.device_tensor import DeviceTensor
from taco_py.arguments.operands import Given, check_names, check_orders, check_sizes, describe
from taco_py.arguments.option_checks import check_static, check_static_index, merged
from taco_py.arguments.options import CallOptions
from taco_py.arguments.result_table import TENSOR, Question, ResultKind, look_up
from taco_py.arguments.results import result_kind
from taco_py.arguments.semiring_mask import SemiringMask
from taco_py.calls.call.over_semirings import Written, written_over
from taco_py.calls.statements.read_text import accumulated, parsed, understood
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.storage.borrow import as_dtype
from taco_py.data.storage.tensor_data import ordered
from taco_py.data.tensors.tensor import Tensor, as_format
from taco_py.language.diagnostics.errors import FormatError, OperandError, OperandTypeError
from taco_py.language.fill import fill_of as fill_text
from taco_py.language.formats import Format, dense
from taco_py.language.legal.stored import is_sparse
from taco_py.language.legal.wraps import with_wraps
from taco_py.language.notation.checks import accesses, operand_names, unique
from taco_py.language.notation.dtypes import result_dtype
from taco_py.language.notation.einsum import parse_einsum
from taco_py.language.notation.half_types import computed_dtype
from taco_py.language.notation.nodes import Assignment, Literal
from taco_py.language.notation.rewrites.fills import stored_alone, with_fills
from taco_py.language.notation.rewrites.wide_sums import wide_sums
from taco_py.language.problem import TensorType
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.statements import fills_of

MASK = "mask"
"""What calls of a kernel under a mask name it by."""
NOMINAL_SIZE = 1000
NOMINAL_DENSITY = 0.01
"""What the loop order is chosen for when no data is at hand."""


@dataclass(frozen=True, slots=True, eq=False)
class Nominal:
    """What sizes of indices and entries of operands are taken for where nothing says them."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    entries: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """An assignment over operands of known formats, as planning wants it.

    dtype    of the result; what is planned has `computed_dtype` of it
    begin    the operand that a result is added to, as `y` in y += value; "" where there is none
    assumed  the indices whose sizes are not known, and what these are taken for
    same     the operand that another name of it, read in another type, stands for
    over     the semiring and the mask, None for numbers
    """

    assignment: Assignment
    formats: Mapping[str, Format]
    operands: Mapping[str, Operand]
    kind: ResultKind
    dtype: np.dtype[Any]
    request: Request
    begin: str = ""
    assumed: tuple[tuple[str, int], ...] = ()
    same: Mapping[str, str] = field(default_factory=dict)
    over: SemiringMask | None = None

    @property
    def size_note(self) -> str:
        """What planning takes sizes for that nobody says, for explain()."""
        if not self.assumed:
            return ""
        taken: dict[int, list[str]] = {}
        for index, size in self.assumed:
            taken.setdefault(size, []).append(index)
        told = " and ".join(f"{', '.join(names)} taken for {n}" for n, names in taken.items())
        return f"{told}, for no sizes are given"

    def on(self, target: str) -> Draft:
        """Return the same for kernels on what `target` names."""
        return replace(self, request=self.request.on(target))

    @property
    def types(self) -> dict[str, TensorType]:
        """Return the type of each operand."""
        return {name: operand.type for name, operand in self.operands.items()}


@dataclass(frozen=True, slots=True, eq=False)
class CompileArguments:
    """The arguments of `compile` besides its text.

    formats  by name, of the operands, and of the result where it is not to be chosen; an array
             stands for its own format
    static   sizes to compile in, as the user gave them
    over     the semiring and the mask, which stands for its own format too
    options  of kernels, as they are checked
    """

    formats: Mapping[str, Any]
    dtypes: Mapping[str, DTypeLike] | DTypeLike | None = None
    index_dtype: str = "int32"
    static: Mapping[str, int] | None = None
    over: SemiringMask | None = None
    options: CallOptions = CallOptions()


def draft(text: str, arguments: CompileArguments) -> Draft:
    """Return `text` over operands of known formats.

    Raises NotationError, OperandError, FormatError, OperandTypeError, DimensionError.
    """
    return draft_assignment(parsed(text), arguments)


def draft_assignment(
    written: Assignment, arguments: CompileArguments, nominal: Nominal | None = None
) -> Draft:
    """Return the same of a text that is read already, whose subscripts are indices alone.

    nominal  what sizes and entries are taken for where the usual ones would mislead
    """
    target, over = written.target.tensor, arguments.over
    given = dict(arguments.formats)
    if written.operator is not None:
        given.setdefault(target, dense(len(written.target.indices)))
    zero = None
    if over is not None:
        found = _over_numbers(written, given, arguments.dtypes, over)
        written, zero = found.assignment, found.zero
        if over.mask is not None:
            given[found.mask] = over.mask.array
    assignment = accumulated(written, {target: None})  # y += value has y among its operands
    drafted = _drafted(
        assignment, target, replace(arguments, formats=given), zero, nominal or Nominal()
    )
    begin = "" if written.operator is None else target
    if over is None or not over.semiring.computes_truths:
        drafted = _with_wide_sums(drafted, begin)
    return replace(drafted, begin=begin, over=over)


def _over_numbers(
    written: Assignment,
    given: Mapping[str, Any],
    dtypes: Mapping[str, DTypeLike] | DTypeLike | None,
    over: SemiringMask,
) -> Written:
    """Return the assignment over numbers that one over a semiring, under a mask, is.

    Raises OperandError where an operand is called as the mask is, and as `written_over`.
    """
    target = written.target
    whole = accumulated(written, {target.tensor: None})
    names = operand_names(whole)
    if over.mask is not None and MASK in (*names, target.tensor):
        raise OperandError(
            f"Expected a text without {MASK}, by which a call names its mask, found it there",
            written.span,
            hint="call the tensor otherwise",
        )
    check_names(whole, [name for name in given if name != target.tensor or name in names])
    orders = {a.tensor: len(a.indices) for a in (target, *accesses(written))}
    if over.mask is not None:
        given, names = {**given, MASK: over.mask.array}, (*names, MASK)
        orders[MASK] = len(target.indices)
    named = names_to_dtypes(names, dtypes)
    types = {}
    for name in names:
        own = describe(given[name], name) if is_array(given[name]) else None
        form = format_of(given[name], orders[name], name)
        dtype = named[name] if own is None else own.operand.type.dtype
        types[name] = TensorType(form, dtype).computable
    return written_over(written, types, over, MASK)


def _with_wide_sums(drafted: Draft, added: str) -> Draft:
    """Read operands in the types that sums of small integers are computed in.

    added  the operand that a value is added to, or ""
    """
    dtypes = {name: np.dtype(o.type.dtype) for name, o in drafted.operands.items()}
    wide = wide_sums(drafted.assignment, dtypes, dtypes.get(added))
    if not wide.read and wide.assignment is drafted.assignment:
        return drafted
    operands = dict(drafted.operands)
    operands.update((name, operands[other]) for name, other in wide.same.items())
    for name, dtype in wide.read.items():
        operands[name] = replace(operands[name], type=operands[name].type.read_as(dtype.name))
    dtype = result_dtype(wide.assignment, {n: o.type.promoted for n, o in operands.items()})
    result = replace(drafted.request.type, dtype=computed_dtype(dtype).name)
    return replace(
        drafted,
        assignment=wide.assignment,
        operands=operands,
        dtype=dtype,
        request=replace(drafted.request, type=result),
        same=wide.same,
    )


def draft_einsum(text: str, formats: Sequence[Any], arguments: CompileArguments) -> Draft:
    """Return the same for einsum's subscripts, whose operands are called op0, op1, … and result
    `out`.

    formats  of operands in their order; others are by name
    """
    given = merged({f"op{k}": form for k, form in enumerate(formats)}, arguments.formats, "formats")
    count = text.split("->")[0].count(",") + 1
    orders = [_order_of(given, f"op{k}") for k in range(count)]
    assignment = parse_einsum(text, orders)
    target = assignment.target.tensor
    return _drafted(assignment, target, replace(arguments, formats=given), None, Nominal())


def named_formats(text: str, formats: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Return formats by name, those without one in the order in which `text` first uses its
    operands.

    Raises OperandError.
    """
    names = operand_names(understood(text).assignment) if formats else ()
    if len(formats) > len(names):
        raise OperandError(
            f"Expected at most {len(names)} formats, found {len(formats)}",
            hint=f"in the order of their first use the operands are {', '.join(names)}",
        )
    return merged(dict(zip(names, formats, strict=False)), named, "formats")


def _order_of(given: Mapping[str, Any], name: str) -> int:
    """Return the number of modes of one of einsum's operands. Raises OperandError or
    FormatError."""
    if name not in given:
        raise OperandError(
            f"Expected a format for each operand, found none for {name}",
            hint='pass formats in the order of the operands: schedule("ij,j->i", CSR, dense(1))',
        )
    form = given[name]
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


def _drafted(
    assignment: Assignment,
    target: str,
    arguments: CompileArguments,
    zero: Literal | None,
    nominal: Nominal,
) -> Draft:
    """Return the draft of an assignment over numbers, whose sums are explicit.

    zero  what a sparse result does not store, None for 0
    """
    given = arguments.formats
    names = operand_names(assignment)
    check_names(assignment, [name for name in given if name != target or name in names])
    sizes = check_static(arguments.static)
    for name, _ in sizes:
        check_static_index(name, unique(i for a in accesses(assignment) for i in a.indices))
    index = check_index_dtype(arguments.index_dtype)
    arrays = {name: describe(given[name], name) for name in names if is_array(given[name])}
    known = {
        name: replace(array.operand, type=array.operand.type.computable)
        for name, array in arrays.items()
    }
    types = names_to_dtypes(names, arguments.dtypes)
    operands = _operands(assignment, given, known, types, index, dict(sizes), nominal)
    chosen = {name: operands[name].type.format for name in names}
    assignment = with_fills(assignment, fills_of(operands))
    promoted = {n: o.type.promoted for n, o in operands.items()}
    dtype = result_dtype(assignment, promoted)
    assignment = with_wraps(
        assignment, lambda a: 0 if is_sparse(chosen[a.tensor]) else None, promoted
    )
    stored = assignment if zero is None else stored_alone(assignment)
    kind = _kind(stored, given.get(target), chosen, arrays)
    fill = ""
    if zero is not None and is_sparse(kind.format):
        assignment, fill = stored, fill_text(zero.value, dtype)
    request = Request(TensorType(kind.format, computed_dtype(dtype).name, index, fill=fill), sizes)
    known_sizes = {**dict(sizes), **_sizes_of(assignment, {n: o.shape for n, o in known.items()})}
    met = unique(i for a in accesses(assignment) for i in a.indices)
    assumed = tuple((i, nominal.sizes.get(i, NOMINAL_SIZE)) for i in met if i not in known_sizes)
    return Draft(assignment, chosen, operands, kind, dtype, request, assumed=assumed)


def _kind(
    assignment: Assignment,
    asked: Any,
    formats: Mapping[str, Format],
    arrays: Mapping[str, Given],
) -> ResultKind:
    """Return how the result is stored: as asked for, else as `evaluate` stores it or as formats
    say."""
    if asked is None and arrays and len(arrays) == len(formats):
        return result_kind(assignment, arrays, None)
    order = len(assignment.target.indices)
    wanted = None if asked is None else format_of(asked, order, assignment.target.tensor)
    containers = dict.fromkeys(formats, TENSOR)
    return look_up(Question(assignment, formats, containers, wanted))


def format_of(given: Any, order: int, name: str) -> Format:
    """Return the format that was given, or an array's own. Raises FormatError."""
    own = ordered(describe(given, name).data.format) if is_array(given) else given
    found = as_format(own, order)
    if found is None:
        raise FormatError(f"Expected a format for {name}, found None")
    return found


def names_to_dtypes(
    names: tuple[str, ...], dtypes: Mapping[str, DTypeLike] | DTypeLike | None
) -> dict[str, str]:
    """Return a supported dtype's name for each operand."""
    given = dtypes if isinstance(dtypes, Mapping) else dict.fromkeys(names, dtypes)
    for name in given:
        if name not in names:
            raise OperandError(f"Expected dtypes of {', '.join(names)}, found one of {name}")
    found: dict[str, str] = {}
    for name in names:
        wanted: Any = given.get(name)
        dtype = np.float64 if wanted is None else wanted
        found[name] = as_dtype(dtype, f"dtypes[{name!r}]").name
    return found


def check_index_dtype(index_dtype: Any) -> str:
    """ "int32" or "int64". Raises OperandTypeError for anything else."""
    name: str = as_dtype(index_dtype, "index_dtype").name
    if name not in ("int32", "int64"):
        raise OperandTypeError(
            f"Expected index_dtype to be int32 or int64, found {name}",
            hint="int64 holds every size",
        )
    return name


def _operands(
    assignment: Assignment,
    given: Mapping[str, Any],
    arrays: Mapping[str, Operand],
    dtypes: Mapping[str, str],
    index: str,
    static: Mapping[str, int],
    nominal: Nominal,
) -> dict[str, Operand]:
    """What is known of each operand: all of an array, of others nominal sizes and densities."""
    met = {a.tensor: a for a in accesses(assignment)}
    sizes = {
        **nominal.sizes,
        **static,
        **_sizes_of(assignment, {name: o.shape for name, o in arrays.items()}),
    }
    found = {}
    for name, access in met.items():
        if name in arrays:
            found[name] = arrays[name]
            continue
        form = format_of(given[name], len(access.indices), name)
        shape = tuple(sizes.get(i, NOMINAL_SIZE) for i in access.indices)
        kind = TensorType(form, dtypes[name], index).computable
        volume = float(prod(shape))
        usual = volume if form.is_dense else max(1.0, volume * NOMINAL_DENSITY)
        found[name] = Operand(kind, shape, nominal.entries.get(name, usual))
    shapes = {name: operand.shape for name, operand in found.items()}
    check_orders(assignment, shapes)
    check_sizes(assignment, shapes)
    return {name: found[name] for name in dtypes}


def is_array(given: Any) -> bool:
    """Tell whether an operand itself, an array or a number, was given in place of its format."""
    kinds = Tensor | DeviceTensor | np.ndarray | np.generic | Number
    return isinstance(given, kinds) or is_scipy_sparse(given)


def _sizes_of(assignment: Assignment, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Return the sizes that arrays among the operands say."""
    sizes: dict[str, int] = {}
    for access in accesses(assignment):
        shape = shapes.get(access.tensor)
        if shape is not None:
            sizes.update(zip(access.indices, shape, strict=False))
    return sizes
