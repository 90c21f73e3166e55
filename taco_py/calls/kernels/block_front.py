"""Kernels of texts over operands in blocks, which run over the modes that these store.

    y[i] = A[i,j] * x[j]    A in BSR(3,3)  →  a kernel of y[i0,i1] = A[i0,j0,i1,j1] * x[j0,j1]

Sizes are not known: where blocks do not fill a call's operands and that would be seen, the kernel
over plain formats is compiled too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.operands import check_names, check_orders, check_sizes
from taco_py.arguments.result_table import TENSOR
from taco_py.calls.call.statement_commands import with_named_commands
from taco_py.calls.kernels.compile_plain import compile_plain
from taco_py.calls.kernels.draft import (
    CompileArguments,
    Nominal,
    draft_assignment,
    format_of,
    is_array,
    names_to_dtypes,
)
from taco_py.calls.kernels.front import Recipe
from taco_py.calls.kernels.kernel import Kernel, compile_draft
from taco_py.calls.remapped.cut_indices import (
    AnyFormat,
    CutAssignment,
    cut_assignment,
    describe_cut,
    with_target,
)
from taco_py.calls.remapped.cut_operands import format_in_two
from taco_py.calls.remapped.remapped_call import (
    Layout,
    RemappedCall,
    container,
    copied_into,
    fills_of,
    form_of,
    is_in_blocks,
    plain_kind,
    result_form,
    shape_of,
)
from taco_py.calls.statements.read_text import CheckedStatement, accumulated, names_read
from taco_py.data.convert.remap import plain_format
from taco_py.data.tensors.remapped_tensor import blocks_of, in_format
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.data.tensors.traced_operands import taken_over, taker_of
from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.formats import RemappedFormat, dense, remapped
from taco_py.language.notation.checks import accesses, has_subscripts
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.printer import to_text
from taco_py.running.replay.make_call import Ways

LARGE = 100_000
ROW_ENTRIES = 10
"""Sizes and entries of a row that operands are taken to have where they are not given: these
formats are for tensors beyond near caches."""


def names_blocks(formats: Mapping[str, Any]) -> bool:
    """Tell whether a format is remapped, or stands for an operand that is in blocks."""
    return any(remapped(form) is not None or is_in_blocks(form) for form in formats.values())


@dataclass(frozen=True, slots=True, eq=False)
class BlockFront:
    """Reads operands in blocks over the modes that these store, or converts them to plain formats.

    forms     the format of each operand
    blocked   the call over stored modes, None where there is none
    reasons   why operands are converted
    compiled  the kernels over stored modes ("blocks") and over plain formats ("plain")
    """

    read: tuple[CheckedStatement, ...]
    arguments: CompileArguments
    forms: Mapping[str, AnyFormat]
    blocked: RemappedCall | None
    reasons: Mapping[str, str]
    compiled: dict[str, Kernel] = field(default_factory=dict)

    @property
    def kernels(self) -> Iterable[Kernel]:
        """Return the kernels that were compiled."""
        return self.compiled.values()

    @property
    def recipe(self) -> Recipe:
        """Return the function that compiles the kernel again, and its arguments."""
        return compile_blocks, (self.read, self.arguments)

    @property
    def stored(self) -> dict[str, tuple[str, str]]:
        """Return the format and the dtype of each operand, as text."""
        types = self._types()
        return {name: (str(form), types[name]) for name, form in self.forms.items()}

    @property
    def notes(self) -> list[str]:
        """Return lines of explain() about the operands that are read over stored modes."""
        notes = []
        if self.blocked is not None:
            cut = self.blocked.cut
            if any(cut.target):
                target = to_text(cut.assignment.target)
                notes.append(f"{to_text(cut.source.target)} is {target}, in blocks")
            notes += [
                f"{describe_cut(part, cut.assignment)}: {part.form}"
                for part in cut.parts
                if any(part.cuts)
            ]
        notes += [
            f"{name} is converted from {self.forms[name]}, for {reason}"
            for name, reason in self.reasons.items()
        ]
        return notes

    def call(self, objects: dict[str, Any], out: Any, options: Mapping[str, Any]) -> Any:
        """Compute the results of a call."""
        assignments = [statement.assignment for statement in self.read]
        last = assignments[-1].target.tensor
        if (taker := taker_of(objects.values())) is not None:
            said = {"out": out, "threads": options["threads"]}
            return taken_over(taker, "tp.kernel", (assignments, objects, last), said)
        layout = self._layout(objects)
        if self.blocked is None or layout is None:
            return self._plainly(objects, out, options)
        call = replace(self.blocked, result=self._result(self.blocked, objects))
        kernel, stored = self.compiled["blocks"], layout.stored_operands(objects)
        if out is not None and call.takes(out, layout):
            kernel(**stored, out=call.inner_out(out, layout), **options)
            return out
        result = call.finished(kernel(**stored, **options), layout.shape)
        if out is None:
            return result
        return out if copied_into(out, result) else self._plainly(objects, out, options)

    def plain(self, objects: Mapping[str, Any]) -> tuple[Kernel, dict[str, Any]]:
        """Return the kernel for these operands, and the operands that it takes."""
        layout = self._layout(objects)
        if layout is not None:
            return self.compiled["blocks"], layout.stored_operands(objects)
        return self._plain_kernel(), self._in_plain(objects)

    def _layout(self, objects: Mapping[str, Any]) -> Layout | None:
        """Return how operands are read over stored modes, None where they are converted."""
        if self.blocked is None:
            for name, obj in objects.items():
                self._check(name, obj)
            return None
        (read,) = self.read
        check_names(accumulated(read.assignment, objects), objects, ("out", "threads"))
        for name, obj in objects.items():
            self._check(name, obj)
        shapes = {name: shape_of(obj) for name, obj in objects.items()}
        check_orders(read.assignment, shapes)
        check_sizes(read.assignment, shapes)
        return self.blocked.layout(objects)

    def _result(self, call: RemappedCall, objects: Mapping[str, Any]) -> Any:
        """Return how the result is handed out: as these operands are."""
        containers = {name: container(obj, self.forms[name]) for name, obj in objects.items()}
        kind = plain_kind(call.cut.source, containers, self.forms, call.result.requested)
        return replace(call.result, kind=kind)

    def _check(self, name: str, obj: Any) -> None:
        """Raise FormatError for an operand that is in another format than the kernel is for."""
        expected = self.forms.get(name)
        if not isinstance(expected, RemappedFormat):
            return
        form = form_of(obj)
        if form != expected:
            raise FormatError(
                f"Expected {name} in the format {expected} that the kernel was compiled for, found "
                f"{form}",
                hint=f'convert it: tp.tensor({name}, format="{expected}")',
            )

    def _plainly(self, objects: Mapping[str, Any], out: Any, options: Mapping[str, Any]) -> Any:
        """Return the result by the kernel over plain formats."""
        result = self._plain_kernel()(**self._in_plain(objects), out=out, **options)
        blocks = remapped(self.arguments.formats.get(self.read[-1].assignment.target.tensor))
        if out is not None or blocks is None or isinstance(result, tuple):
            return result
        return in_format(result if isinstance(result, Tensor) else Tensor(as_data(result)), blocks)

    def _types(self) -> dict[str, str]:
        """Return the dtype of each operand."""
        return _types(self.arguments, tuple(self.forms), [step.assignment for step in self.read])

    def _dtypes(self) -> dict[str, Any]:
        """Return the dtype of each operand and of each accumulator of `+=`."""
        requested, dtypes = self.arguments.dtypes, self._types()
        if isinstance(requested, Mapping):
            return {**requested, **dtypes}
        targets = {step.assignment.target.tensor for step in self.read if step.assignment.operator}
        return {**dict.fromkeys(targets - dtypes.keys(), requested), **dtypes}

    def _in_plain(self, objects: Mapping[str, Any]) -> dict[str, Any]:
        """Return the operands, those in blocks in plain formats."""
        return {
            name: _in_plain(obj, self.forms[name]) if name in self.forms else obj
            for name, obj in objects.items()
        }

    def _plain_kernel(self) -> Kernel:
        """Return the kernel over plain formats, compiled when it is first needed."""
        if "plain" not in self.compiled:
            formats = {}
            for name, requested in self.arguments.formats.items():
                form = self.forms.get(name)
                blocks = remapped(requested if form is None else form)
                formats[name] = requested if blocks is None else _plain_sample(requested, blocks)
            inner = replace(self.arguments, formats=formats, dtypes=self._dtypes())
            self.compiled["plain"] = compile_plain(self.read, inner)
        return self.compiled["plain"]


def _in_plain(obj: Any, form: AnyFormat) -> Any:
    if not isinstance(form, RemappedFormat):
        return obj
    blocks = blocks_of(obj)
    return obj if blocks is None else blocks.plain()


def _plain_sample(requested: Any, form: RemappedFormat) -> Any:
    """Return the plain form of an operand in blocks, or its plain format where none was given."""
    blocks = blocks_of(requested)
    return plain_format(form.order) if blocks is None else blocks.plain()


def compile_blocks(read: Sequence[CheckedStatement], arguments: CompileArguments) -> Kernel:
    """Compile the kernel over stored modes, or that over plain formats where there is none."""
    assignments = [statement.assignment for statement in read]
    names = names_read([accumulated(assignments[0], {}), *assignments[1:]])
    orders = {a.tensor: len(a.modes) for statement in assignments for a in accesses(statement)}
    forms = {name: _form(arguments.formats, name, orders[name]) for name in names}
    options, assignment = arguments.options, assignments[-1]
    is_plain = len(read) == 1 and options.outputs is None and not options.is_bounded
    if not is_plain or arguments.over is not None or has_subscripts(assignment):
        blocked = None
        blocks = [name for name, form in forms.items() if isinstance(form, RemappedFormat)]
        reasons = dict.fromkeys(blocks, "this text reads plain formats alone")
    else:
        check_names(assignment, [n for n in arguments.formats if n != assignment.target.tensor])
        blocked, reasons = _call(read[0], arguments, forms)
    front = BlockFront(tuple(read), arguments, forms, blocked, reasons)
    if blocked is None:
        return replace(front._plain_kernel(), front=front, ways=Ways(), writing=Ways())
    front.compiled["blocks"] = kernel = _kernel(blocked, arguments, names)
    return replace(kernel, front=front, ways=Ways(), writing=Ways())


def _form(formats: Mapping[str, Any], name: str, order: int) -> AnyFormat:
    requested = formats.get(name)
    form = form_of(requested) if is_in_blocks(requested) else remapped(requested)
    if form is None:
        return format_of(requested, order, name)
    if form.order != order:
        raise FormatError(
            f"Expected a format of {order} modes for {name}, found {form} of {form.order}",
            hint="BSR is of matrices; Blocked has a size for each mode",
        )
    return form


def _call(
    read: CheckedStatement, arguments: CompileArguments, forms: Mapping[str, AnyFormat]
) -> tuple[RemappedCall | None, dict[str, str]]:
    """Return the call over stored modes, None with the reasons where there is none."""
    assignment = read.assignment
    options = with_named_commands(arguments.options, assignment)
    blocks = [name for name, form in forms.items() if isinstance(form, RemappedFormat)]
    reason = ""
    if options.schedule is not None and options.schedule.shapes:
        reason = "the schedule names the loops of the text"
    elif options.static:
        reason = "static= names the indices of the text"
    elif assignment.operator is not None:
        reason = "the result is added to"
    elif not options.is_native:
        reason = "blocks are read on CPUs alone"
    if reason:
        return None, dict.fromkeys(blocks, reason)
    types = {name: np.dtype(dtype) for name, dtype in _types(arguments, tuple(forms)).items()}
    cut, reasons = cut_assignment(assignment, forms, types, fills_of(arguments.formats))
    if cut is None:
        return None, reasons
    containers = dict.fromkeys(forms, TENSOR)
    result = result_form(cut, containers, forms, arguments.formats.get(assignment.target.tensor))
    cut = with_target(cut, result.modes)
    return RemappedCall(cut, result, forms, (), {}), reasons


def _kernel(call: RemappedCall, arguments: CompileArguments, names: tuple[str, ...]) -> Kernel:
    """Return the kernel over stored modes."""
    types = _types(arguments, names)
    formats: dict[str, Any] = {}
    dtypes = {}
    for part in call.cut.parts:
        dtypes[part.name] = types[part.access.tensor]
        sample = arguments.formats.get(part.access.tensor)
        if isinstance(part.form, RemappedFormat):
            blocks = blocks_of(sample)
            formats[part.name] = part.form.inner if blocks is None else blocks.stored
        elif is_array(sample) and not any(part.cuts):
            formats[part.name] = _in_plain(sample, part.form)
        elif part.form.is_dense and any(part.cuts):
            formats[part.name] = dense(len(part.cuts) + sum(1 for cut in part.cuts if cut))
        else:
            formats[part.name] = format_in_two(part.form, part.cuts)
    if call.result.form is not None:
        formats[call.cut.assignment.target.tensor] = call.result.form
    static = call.cut.static
    inner = replace(arguments, formats=formats, dtypes=dtypes, static=dict(static))
    drafted = draft_assignment(call.cut.assignment, inner, _nominal(call.cut))
    return compile_draft(drafted, replace(arguments.options, static=static))


def _nominal(cut: CutAssignment) -> Nominal:
    """Return the nominal sizes and entries over stored modes, where no operand says them."""
    sizes = {outer: -(-LARGE // cut.cuts[index]) for index, (outer, _) in cut.halves.items()}
    entries = {}
    indices_of = {access.tensor: access.indices for access in accesses(cut.assignment)}
    for part in cut.parts:
        if isinstance(part.form, RemappedFormat):
            entries[part.name] = LARGE * ROW_ENTRIES
            shape = (LARGE,) * part.form.order
            for index, mode in zip(indices_of[part.name], part.form.modes, strict=True):
                size = mode.size(shape)
                sizes.setdefault(index, ROW_ENTRIES if size is None else size)
    return Nominal(sizes, entries)


def _types(
    arguments: CompileArguments, names: tuple[str, ...], statements: Sequence[Assignment] = ()
) -> dict[str, str]:
    """Return the dtype of each operand: of one that is given itself, its own."""
    dtypes: Any = arguments.dtypes
    if isinstance(dtypes, Mapping):
        dtypes = {name: dtype for name, dtype in dtypes.items() if name in names}
    types = names_to_dtypes(names, dtypes, statements)
    for name in names:
        sample = arguments.formats.get(name)
        if is_in_blocks(sample) or is_array(sample):
            types[name] = np.dtype(getattr(sample, "dtype", type(sample))).name
    return types
