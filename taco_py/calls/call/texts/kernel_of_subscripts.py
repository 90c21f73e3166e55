"""`compile` of texts with subscripts: kernels over operands that each call makes of the user's.

    y[i] = x[i+k] * w[k]    →    a kernel of y[i] = x_at_i_k[k,i] * w[k]; calls make the view

Which operands are made depends on sizes, which are not known: the kernel that is compiled is that
of small samples, and others are compiled where a call's operands ask for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.device_tensor import place_of
from taco_py.arguments.operands import check_names, describe, taken
from taco_py.calls.call.conform import by_place_and_name
from taco_py.calls.call.devices.on_device import to_device
from taco_py.calls.call.devices.placed import placed
from taco_py.calls.call.draft import (
    CompileArguments,
    Draft,
    draft_assignment,
    format_of,
    is_array,
    names_to_dtypes,
)
from taco_py.calls.call.kernel import Kernel, compile_draft
from taco_py.calls.indexed.domains import BoundaryOptions, bounds
from taco_py.calls.indexed.indexed_call import IndexedCall, boundary_options
from taco_py.calls.indexed.indexed_statements import OVER_SEMIRINGS, refuse_scatter
from taco_py.calls.indexed.make_operands import Layout, Made, told_operands
from taco_py.calls.statements.read_text import Understood, accumulated
from taco_py.data.storage.borrow import as_dtype
from taco_py.data.storage.pack import pack_coo
from taco_py.data.storage.tensor_data import Array
from taco_py.data.tensors.tensor import Tensor
from taco_py.data.tensors.traced_operands import taken_over, taker_of
from taco_py.language.diagnostics.errors import DimensionError, FormatError, OperandTypeError
from taco_py.language.formats import Format
from taco_py.language.notation.checks import accesses, operand_names
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.notation.printer import to_text
from taco_py.language.notebook.folded_report import Report

SAMPLE_SIZE = 4
"""Of each index of samples, where arrays among the operands do not say."""
_MASK = "mask"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KernelOfSubscripts:
    """Compute a text with subscripts, for operands by name or in the order of their first use.

    >>> k = tp.compile("y[i] = x[i+k] * w[k]", x="d", w="d")
    >>> k(x=np.array([1.0, 2.0, 3.0, 4.0]), w=np.array([1.0, -1.0]))
    array([-1., -1., -1.])
    """

    read: Understood
    boundary: BoundaryOptions
    arguments: CompileArguments
    formats: Mapping[str, Format]
    dtypes: Mapping[str, np.dtype[Any]]
    indexed: IndexedCall
    kernels: dict[tuple[object, ...], Kernel] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def source(self) -> str:
        """Return the generated C of all kernels that were compiled."""
        return "\n".join(kernel.source for kernel in self.kernels.values())

    def explain(self) -> str:
        """Explain which operands a call makes, and the kernel over them, as `tp.explain` does."""
        first = next(iter(self.kernels.values()))
        lines = (f"{'' if at else 'reads':10}{note}" for at, note in enumerate(self.notes))
        return Report("\n".join((*lines, first.explain())))

    def _repr_html_(self) -> str:
        """Show it in a notebook: what it computes, and its C where it is unfolded."""
        from taco_py.language.notebook.kernel_page import kernel_page

        stored = {name: (str(f), str(self.dtypes[name])) for name, f in self.formats.items()}
        text = to_text(self.read.assignment)
        return kernel_page(text, stored, {}, self.source, self.explain())

    def __repr__(self) -> str:
        """Return the text, and each operand's format and dtype, in one line."""
        operands = (
            f"{name}: {str(form) or 'scalar'}/{self.dtypes[name]}"
            for name, form in self.formats.items()
        )
        return f"<Kernel {to_text(self.read.assignment)} with {', '.join(operands)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """What to compile again: kernels are found by their recipes, functions are not stored."""
        return compile_subscripts, (self.read, self.boundary, self.arguments)

    def __call__(
        self,
        *operands: Any,
        out: Array | None = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        **named: Any,
    ) -> Any:
        """Compute the result for these operands.

        out      where a dense result is written; `y += …` begins from it, unless `y` is passed
        threads  at most so many
        memory_limit  bytes that it may take at once, as in `evaluate`

        Raises as `evaluate` does, and FormatError for another format.
        """
        objects = by_place_and_name(tuple(self.formats), operands, named) if operands else named
        if (taker := taker_of(objects.values())) is not None:
            return self._noted(taker, objects, {"out": out, "threads": threads})
        objects, _ = placed(objects, self.arguments.options.target)
        place = place_of(objects.values())
        target = self.read.assignment.target.tensor
        begins = self.read.assignment.operator is not None and target not in objects
        if begins and out is not None:
            objects = {target: out, **objects}
        uses = accumulated(self.read.assignment, objects)
        mask = {name: obj for name, obj in objects.items() if name == _MASK and self._masked}
        objects = {name: obj for name, obj in objects.items() if name not in mask}
        check_names(uses, objects, ("out", "threads", "memory_limit"))
        typed = {name: self._typed(name, obj) for name, obj in objects.items()}
        layout, text, made = self.indexed.made(typed, out)
        kernel = self._kernel(layout, text, made)
        asked: dict[str, Any] = {"threads": threads, "memory_limit": memory_limit}
        found = kernel(**made.objects, **mask, out=out, **asked)
        return to_device(found, place) if place and out is None else found

    def _noted(self, taker: Any, objects: dict[str, Any], told: dict[str, Any]) -> Any:
        """Leave the text to a trace that an operand is of."""
        over, read = self.arguments.over, self.read.assignment
        told["semiring"] = None if over is None or over.is_usual else over
        told["border"] = None if self.boundary == boundary_options("error", None) else self.boundary
        return taken_over(taker, "tp.kernel", ([read], objects, read.target.tensor), told)

    @property
    def _masked(self) -> bool:
        return self.arguments.over is not None and self.arguments.over.mask is not None

    def _typed(self, name: str, obj: Any) -> Any:
        """Return an operand, checked for the format and the dtype that the kernel was compiled
        for."""
        wanted, form = self.dtypes[name], self.formats[name]
        data = taken(obj, f"operand {name}")
        if str(data.format) != str(form) and not (data.format.is_dense and form.is_dense):
            raise FormatError(
                f"Expected {name} in the format {form} that the kernel was compiled for, found "
                f"{data.format}",
                hint=f'convert it: tp.tensor({name}, format="{form}")',
            )
        if isinstance(obj, bool | int | float | complex) and not isinstance(obj, np.generic):
            return wanted.type(obj)
        if data.dtype != wanted:
            raise OperandTypeError(
                f"Expected {name} of dtype {wanted} that the kernel was compiled for, found "
                f"{data.dtype}",
                hint=f"{name}.astype({wanted.name!r}), or compile with "
                f"dtypes={{{name!r}: {data.dtype.name!r}}}",
            )
        return obj

    def _kernel(self, layout: Layout, text: str, made: Made) -> Kernel:
        """Return the kernel over these operands, compiled where no call before had such."""
        facts = {name: describe(obj, name).operand.type for name, obj in made.objects.items()}
        key = (text, *((n, str(t.format), t.dtype, t.unit_stride) for n, t in facts.items()))
        if key not in self.kernels:
            self.kernels[key] = compile_draft(self._draft(layout, made), self.arguments.options)
            self.notes[:] = self.notes or told_operands(layout, made)
        return self.kernels[key]

    def _draft(self, layout: Layout, made: Made) -> Draft:
        """What is known of the operands of a layout: their formats, types and strides."""
        arguments, assignment = self.arguments, layout.plain.assignment
        found = {n: describe(obj, n).operand.type for n, obj in made.objects.items()}
        formats: dict[str, Any] = {name: type.format for name, type in found.items()}
        dtypes = {name: type.dtype for name, type in found.items()}
        target = assignment.target.tensor
        selected = {one.name for one in layout.plain.selections}
        if target in arguments.formats:
            formats[target] = arguments.formats[target]
        elif selected and all(t.format.is_dense for n, t in found.items() if n not in selected):
            formats[target] = "d" * len(assignment.target.indices)
        drafted = draft_assignment(assignment, replace(arguments, formats=formats, dtypes=dtypes))
        operands = dict(drafted.operands)
        for name, type in found.items():
            if not type.unit_stride:
                own = operands[name]
                operands[name] = replace(own, type=replace(own.type, unit_stride=False))
        return replace(drafted, operands=operands)


def compile_subscripts(
    read: Understood, boundary: BoundaryOptions, arguments: CompileArguments
) -> KernelOfSubscripts:
    """Compile the kernel of samples of the operands.

    Raises what `evaluate` raises of them: DimensionError for a position beyond the border, say.
    """
    kernel, (layout, text, made) = _sampled(read, boundary, arguments)
    kernel._kernel(layout, text, made)
    return kernel


def compile_at(read: Understood, arguments: CompileArguments) -> KernelOfSubscripts:
    """Compile the kernel of a text with subscripts, borders or a shape, as `compile_subscripts`."""
    options = arguments.options
    return compile_subscripts(read, boundary_options(options.border, options.shape), arguments)


def draft_subscripts(
    read: Understood, boundary: BoundaryOptions, arguments: CompileArguments
) -> Draft:
    """Draft the assignment over indices alone that samples of the operands ask for."""
    kernel, (layout, _, made) = _sampled(read, boundary, arguments)
    return kernel._draft(layout, made)


def _sampled(
    read: Understood, boundary: BoundaryOptions, arguments: CompileArguments
) -> tuple[KernelOfSubscripts, tuple[Layout, str, Made]]:
    """What can be called, nothing compiled, and what samples of the operands ask for."""
    assignment = read.assignment
    if arguments.over is not None and not arguments.over.is_usual:
        refuse_scatter(assignment.target, OVER_SEMIRINGS)
    uses = accumulated(assignment, {assignment.target.tensor: None})
    names = tuple(name for name in operand_names(uses))
    given = dict(arguments.formats)
    added = assignment.operator is not None
    target = assignment.target
    if added:
        given.setdefault(target.tensor, "d" * len(target.modes))
    check_names(uses, [name for name in given if name != target.tensor or added])
    orders = {a.tensor: len(a.modes) for a in (target, *accesses(assignment))}
    formats = {name: format_of(given[name], orders[name], name) for name in names}
    dtypes = _dtypes(assignment, names, given, arguments.dtypes)
    indexed = IndexedCall(assignment, boundary, (), {}, arguments.options.dtype)
    kernel = KernelOfSubscripts(read, boundary, arguments, formats, dtypes, indexed)
    shapes = _sample_shapes(uses, given, boundary, target)
    samples = {
        name: given[name]
        if is_array(given[name])
        else _sample(shapes[name], formats[name], dtypes[name])
        for name in names
    }
    try:
        return kernel, indexed.made(samples, None)
    except DimensionError as error:
        raise DimensionError(
            f"{error.message}, in operands of sizes that were taken to compile for",
            error.span,
            f"{error.hint}; an array in the place of a format says its sizes",
        ) from error


def _dtypes(
    assignment: Assignment, names: tuple[str, ...], given: Mapping[str, Any], dtypes: Any
) -> dict[str, np.dtype[Any]]:
    """Return the dtype of each operand: of positions int64, of others float64, where nothing says
    it."""
    positions = {
        inner.tensor
        for access in (assignment.target, *accesses(assignment))
        for mode in access.subscripts
        for inner, _ in mode.gathered
    }
    asked = dtypes if isinstance(dtypes, Mapping) else dict.fromkeys(set(names) - positions, dtypes)
    usual = {**dict.fromkeys(positions, np.int64), **asked}
    named = names_to_dtypes(names, usual)
    arrays = {name: taken(given[name], name).dtype for name in names if is_array(given[name])}
    return {**{n: as_dtype(each, n) for n, each in named.items()}, **arrays}


def _sample_shapes(
    assignment: Assignment, given: Mapping[str, Any], boundary: BoundaryOptions, target: Access
) -> dict[str, tuple[int, ...]]:
    """Return shapes of operands in which all accesses stay inside, where that is possible."""
    shapes = {n: taken(obj, n).shape for n, obj in given.items() if is_array(obj)}
    met = [target, *accesses(assignment)]
    met += [inner for a in met for mode in a.subscripts for inner, _ in mode.gathered]
    sizes = _sizes(target, met, shapes, boundary)
    found: dict[str, list[int]] = {}
    for access in met:
        if access.is_number:
            continue
        modes = access.modes
        reach = [bounds(mode, sizes)[1] + 1 for mode in modes]
        known = found.setdefault(access.tensor, [1] * len(modes))
        if len(known) == len(reach):
            found[access.tensor] = [max(pair) for pair in zip(known, reach, strict=True)]
    shapes_of_result = {} if boundary.shape is None else {target.tensor: boundary.shape}
    return {**{name: tuple(shape) for name, shape in found.items()}, **shapes_of_result, **shapes}


def _sizes(
    target: Access,
    met: list[Access],
    shapes: Mapping[str, tuple[int, ...]],
    boundary: BoundaryOptions,
) -> dict[str, int]:
    """Return the size of each index in samples: as arrays and shape= say."""
    sizes: dict[str, int] = {}
    for access in met:
        shape = shapes.get(access.tensor, ())
        for mode, size in zip(access.modes, shape, strict=False):
            if mode.index is not None:
                sizes[mode.index] = int(size)
    for mode, size in zip(target.modes, boundary.shape or (), strict=False):
        if mode.index is not None:
            sizes[mode.index] = size
    indices = (index for access in met for mode in access.modes for index in mode.names)
    return {**dict.fromkeys(indices, SAMPLE_SIZE), **sizes}


def _sample(shape: tuple[int, ...], form: Format, dtype: np.dtype[Any]) -> Any:
    """Return an operand that stores as little as may be."""
    if form.is_dense:
        return np.zeros(shape, dtype)
    nothing = [np.zeros(0, np.int64) for _ in shape]
    return Tensor(pack_coo(nothing, np.zeros(0, dtype), shape, form))
