"""`compile` for operands in blocks: kernels over the modes that these store.

    y[i] = A[i,j] * x[j]    A in BSR(3,3)  →  a kernel of y[i0,i1] = A[i0,j0,i1,j1] * x[j0,j1]

Sizes are not known: where blocks do not fill a call's operands and that would be seen, the kernel
over plain formats is compiled too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.operands import check_names, check_orders, check_sizes
from taco_py.arguments.result_table import TENSOR
from taco_py.calls.call.conform import by_place_and_name
from taco_py.calls.call.draft import (
    CompileArguments,
    Nominal,
    draft_assignment,
    format_of,
    is_array,
    names_to_dtypes,
)
from taco_py.calls.call.kernel import Kernel, compile_draft
from taco_py.calls.remapped.cut_indices import (
    AnyFormat,
    CutAssignment,
    cut_assignment,
    told_cut,
    with_target,
)
from taco_py.calls.remapped.cut_operands import format_in_two
from taco_py.calls.remapped.remapped_call import (
    RemappedCall,
    container,
    copied_into,
    form_of,
    is_in_blocks,
    plain_kind,
    result_form,
    shape_of,
)
from taco_py.calls.statements.read_text import Understood, accumulated
from taco_py.data.convert.remap import plain_format
from taco_py.data.storage.tensor_data import Array
from taco_py.data.tensors.remapped_tensor import blocks_of, in_format
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.data.tensors.traced_operands import taken_over, taker_of
from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.formats import Format, RemappedFormat, dense, remapped
from taco_py.language.notation.checks import accesses, operand_names
from taco_py.language.notation.printer import to_text

LARGE = 100_000
ROW_ENTRIES = 10
"""Sizes and entries of a row that operands are taken to have where they are not given: these
formats are for tensors beyond near caches."""


def names_blocks(formats: Mapping[str, Any]) -> bool:
    """Tell whether a format is remapped, or stands for an operand that is in blocks."""
    return any(remapped(each) is not None or is_in_blocks(each) for each in formats.values())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KernelInBlocks:
    """Compute an assignment that is compiled, for operands by name or in the order of their first
    use, some of which are in blocks.

    >>> k = tp.compile("y[i] = A[i,j] * x[j]", A=tp.BSR((2, 2)), x="d")
    >>> k(A=sp.bsr_array(np.eye(4), blocksize=(2, 2)), x=np.arange(4.0))
    array([0., 1., 2., 3.])
    """

    read: Understood
    arguments: CompileArguments
    forms: Mapping[str, AnyFormat]
    call: RemappedCall | None
    reasons: Mapping[str, str]
    kernels: dict[str, Kernel] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Return the generated C of all kernels that were compiled."""
        return "\n".join(kernel.source for kernel in self.kernels.values())

    def explain(self) -> str:
        """Explain what is read as what, and the kernel over that, as `tp.explain` does."""
        first = next(iter(self.kernels.values()))
        notes = []
        if self.call is not None:
            cut = self.call.cut
            if any(cut.target):
                shown = to_text(cut.assignment.target)
                notes.append(f"{to_text(cut.written.target)} is {shown}, in blocks")
            notes += [
                f"{told_cut(part, cut.assignment)}: {part.form}"
                for part in cut.parts
                if any(part.cuts)
            ]
        notes += [
            f"{name} is converted from {self.forms[name]}, for {why}"
            for name, why in self.reasons.items()
        ]
        lines = (f"{'' if at else 'reads':10}{note}" for at, note in enumerate(notes))
        return "\n".join((*lines, first.explain()))

    def __repr__(self) -> str:
        """Return the text, and each operand's format, in one line."""
        operands = ", ".join(f"{n}: {str(form) or 'scalar'}" for n, form in self.forms.items())
        return f"<Kernel {to_text(self.read.assignment)} with {operands}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """What to compile again: kernels are found by their recipes, functions are not stored."""
        return compile_blocks, (self.read, self.arguments)

    def __call__(
        self, *operands: Any, out: Array | None = None, threads: int | None = None, **named: Any
    ) -> Any:
        """Compute the result for these operands.

        out      where a dense result is written
        threads  at most so many

        Raises as `evaluate` does, and FormatError for another format.
        """
        objects = by_place_and_name(tuple(self.forms), operands, named) if operands else named
        assignment = self.read.assignment
        if (taker := taker_of(objects.values())) is not None:
            given, told = [assignment], {"out": out, "threads": threads}
            return taken_over(taker, "tp.kernel", (given, objects, assignment.target.tensor), told)
        check_names(accumulated(assignment, objects), objects, ("out", "threads"))
        for name, obj in objects.items():
            self._check(name, obj)
        shapes = {name: shape_of(obj) for name, obj in objects.items()}
        check_orders(assignment, shapes)
        check_sizes(assignment, shapes)
        layout = None if self.call is None else self.call.layout(objects)
        if self.call is None or layout is None:
            return self._plainly(objects, out, threads)
        call = replace(self.call, result=self._result(self.call, objects))
        made = layout.made(objects)
        if out is not None and call.takes(out, layout):
            self.kernels["blocks"](**made, out=call.inner_out(out, layout), threads=threads)
            return out
        found = call.finished(self.kernels["blocks"](**made, threads=threads), layout.shape)
        if out is None:
            return found
        return out if copied_into(out, found) else self._plainly(objects, out, threads)

    def _result(self, call: RemappedCall, objects: Mapping[str, Any]) -> Any:
        """Return how the result is handed out: as these operands are."""
        containers = {name: container(obj, self.forms[name]) for name, obj in objects.items()}
        kind = plain_kind(call.cut.written, containers, self.forms, call.result.asked)
        return replace(call.result, kind=kind)

    def _check(self, name: str, obj: Any) -> None:
        """Raise FormatError for an operand that is in another format than the kernel is for."""
        wanted = self.forms.get(name)
        if not isinstance(wanted, RemappedFormat):
            return
        found = form_of(obj)
        if found != wanted:
            raise FormatError(
                f"Expected {name} in the format {wanted} that the kernel was compiled for, found "
                f"{found}",
                hint=f'convert it: tp.tensor({name}, format="{wanted}")',
            )

    def _plainly(self, objects: Mapping[str, Any], out: Array | None, threads: int | None) -> Any:
        """Return the result by the kernel over plain formats."""
        if "plain" not in self.kernels:
            self.kernels["plain"] = _plain_kernel(self.read, self.arguments, self.forms)
        given = {n: _in_plain(obj, self.forms[n]) if n in self.forms else obj
                 for n, obj in objects.items()}  # fmt: skip
        found = self.kernels["plain"](**given, out=out, threads=threads)
        wanted = remapped(self.arguments.formats.get(self.read.assignment.target.tensor))
        if out is not None or wanted is None:
            return found
        return in_format(found if isinstance(found, Tensor) else Tensor(as_data(found)), wanted)


def _in_plain(obj: Any, form: AnyFormat) -> Any:
    if not isinstance(form, RemappedFormat):
        return obj
    blocks = blocks_of(obj)
    return obj if blocks is None else blocks.plain()


def compile_blocks(read: Understood, arguments: CompileArguments) -> KernelInBlocks:
    """Compile the kernel over stored modes, or that over plain formats where there is none."""
    assignment = read.assignment
    names = operand_names(accumulated(assignment, {}))
    orders = {a.tensor: len(a.indices) for a in accesses(assignment)}
    forms = {name: _form(arguments.formats, name, orders[name]) for name in names}
    check_names(assignment, [n for n in arguments.formats if n != assignment.target.tensor])
    call, reasons = _call(read, arguments, forms)
    kernel = KernelInBlocks(read, arguments, forms, call, reasons)
    if call is None:
        kernel.kernels["plain"] = _plain_kernel(read, arguments, forms)
    else:
        kernel.kernels["blocks"] = _kernel(call, arguments, names)
    return kernel


def _form(formats: Mapping[str, Any], name: str, order: int) -> AnyFormat:
    given = formats.get(name)
    form = form_of(given) if is_in_blocks(given) else remapped(given)
    if form is None:
        return format_of(given, order, name)
    if form.order != order:
        raise FormatError(
            f"Expected a format of {order} modes for {name}, found {form} of {form.order}",
            hint="BSR is of matrices; Blocked has a size for each mode",
        )
    return form


def _call(
    read: Understood, arguments: CompileArguments, forms: Mapping[str, AnyFormat]
) -> tuple[RemappedCall | None, dict[str, str]]:
    """Return the call over stored modes, None with the reasons where there is none."""
    assignment, options = read.assignment, arguments.options
    blocks = [name for name, form in forms.items() if isinstance(form, RemappedFormat)]
    why = ""
    if options.schedule is not None and options.schedule.shapes:
        why = "the schedule names the loops of the text"
    elif options.static:
        why = "static= names the indices of the text"
    elif assignment.operator is not None:
        why = "the result is added to"
    elif not options.is_native:
        why = "blocks are read on CPUs alone"
    if why:
        return None, dict.fromkeys(blocks, why)
    types = {name: np.dtype(each) for name, each in _types(arguments, tuple(forms)).items()}
    cut, reasons = cut_assignment(assignment, forms, types)
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
        if isinstance(part.form, RemappedFormat):
            given = blocks_of(arguments.formats.get(part.access.tensor))
            formats[part.name] = part.form.inner if given is None else given.stored
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
    """What sizes and entries over stored modes are taken for where no operand says them."""
    sizes = {outer: -(-LARGE // cut.cuts[index]) for index, (outer, _) in cut.halves.items()}
    entries = {}
    met = {each.tensor: each.indices for each in accesses(cut.assignment)}
    for part in cut.parts:
        if isinstance(part.form, RemappedFormat):
            entries[part.name] = LARGE * ROW_ENTRIES
            shape = (LARGE,) * part.form.order
            for index, mode in zip(met[part.name], part.form.modes, strict=True):
                size = mode.size(shape)
                sizes.setdefault(index, ROW_ENTRIES if size is None else size)
    return Nominal(sizes, entries)


def _plain_kernel(
    read: Understood, arguments: CompileArguments, forms: Mapping[str, AnyFormat]
) -> Kernel:
    """Return the kernel over plain formats."""
    formats: dict[str, Any] = {
        n: form if isinstance(form, Format) else plain_format(form.order)
        for n, form in forms.items()
    }
    target = read.assignment.target.tensor
    asked = arguments.formats.get(target)
    if asked is not None:
        wanted = remapped(asked)
        formats[target] = asked if wanted is None else plain_format(wanted.order)
    inner = replace(arguments, formats=formats, dtypes=_types(arguments, tuple(forms)))
    drafted = draft_assignment(read.assignment, inner)
    return compile_draft(drafted, arguments.options)


def _types(arguments: CompileArguments, names: tuple[str, ...]) -> dict[str, str]:
    """Return the dtype of each operand: of one that is given itself, its own."""
    found = names_to_dtypes(names, arguments.dtypes)
    for name in names:
        given = arguments.formats.get(name)
        if is_in_blocks(given) or is_array(given):
            found[name] = np.dtype(getattr(given, "dtype", type(given))).name
    return found
