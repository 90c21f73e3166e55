"""Kernels of texts with subscripts, over operands that each call makes of the user's.

    y[i] = x[i+k] * w[k]    →    a kernel of y[i] = x_at_i_k[k,i] * w[k]; calls make the view

Which operands are made depends on sizes, which are not known: the kernel that is compiled is that
of small samples, and others are compiled where a call's operands ask for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.device_tensor import place_of
from taco_py.arguments.operands import check_given, describe, read_operand
from taco_py.calls.call.devices.on_device import to_device
from taco_py.calls.call.devices.placed import placed
from taco_py.calls.call.requested_outputs import requested_outputs
from taco_py.calls.indexed.domains import BoundaryOptions, bounds
from taco_py.calls.indexed.indexed_statements import (
    OVER_SEMIRINGS,
    IndexedStatements,
    PlainStatements,
    boundary_options,
    refuse_scatter,
)
from taco_py.calls.kernels.conform import require_fill
from taco_py.calls.kernels.draft import (
    MASK,
    CompileArguments,
    Draft,
    draft_written,
    format_of,
    is_array,
    names_to_dtypes,
)
from taco_py.calls.kernels.front import Recipe
from taco_py.calls.kernels.kernel import Kernel, compile_draft
from taco_py.calls.statements.read_text import CheckedStatement, accumulated, names_read
from taco_py.calls.statements.sequence import partition_live
from taco_py.data.storage.borrow import as_dtype
from taco_py.data.storage.pack import pack_coo
from taco_py.data.tensors.tensor import Tensor
from taco_py.data.tensors.traced_operands import taken_over, taker_of
from taco_py.language.diagnostics.errors import DimensionError, FormatError, OperandTypeError
from taco_py.language.fill import Fill
from taco_py.language.formats import Format
from taco_py.language.notation.checks import accesses, operand_names
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.problem import TensorType
from taco_py.running.replay.make_call import Ways

SAMPLE_SIZE = 4
"""Of each index of samples, where arrays among the operands do not say."""


@dataclass(frozen=True, slots=True, eq=False)
class SubscriptFront:
    """Makes the operands that subscripts ask for.

    formats, dtypes, fills  of the operands, as the text was compiled for
    indexed          the statements, with the layouts of calls before
    compiled         kernels by statements and the types of their operands
    """

    read: tuple[CheckedStatement, ...]
    arguments: CompileArguments
    formats: Mapping[str, Format]
    dtypes: Mapping[str, np.dtype[Any]]
    fills: Mapping[str, Fill]
    indexed: IndexedStatements
    compiled: dict[tuple[object, ...], Kernel] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def kernels(self) -> Iterable[Kernel]:
        """Return the kernels over operands that are made."""
        return self.compiled.values()

    @property
    def recipe(self) -> Recipe:
        """Return the function that compiles the kernel again, and its arguments."""
        return compile_subscripts, (self.read, self.arguments)

    @property
    def stored(self) -> dict[str, tuple[str, str]]:
        """Return the format and the dtype of each operand, as text."""
        return {name: (str(f), str(self.dtypes[name])) for name, f in self.formats.items()}

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        """Return the statements as they are written."""
        return tuple(statement.assignment for statement in self.read)

    def call(self, objects: dict[str, Any], out: Any, options: Mapping[str, Any]) -> Any:
        """Compute the results of a call."""
        last = self.assignments[-1].target.tensor
        if (taker := taker_of(objects.values())) is not None:
            return self._noted(taker, objects, {"out": out, "threads": options["threads"]})
        objects, _ = placed(objects, self.arguments.options.target)
        place = place_of(objects.values())
        outs = out if isinstance(out, Mapping) else {} if out is None else {last: out}
        accumulators = {n: o for n, o in outs.items() if n in self.formats and n not in objects}
        objects = {**accumulators, **objects}
        kernel, derived = self._over(objects, out)
        result = kernel(**derived, out=out, **options)
        return to_device(result, place) if place and out is None else result

    def plain(self, objects: Mapping[str, Any]) -> tuple[Kernel, dict[str, Any]]:
        """Return the kernel for these operands, and the operands that it takes."""
        return self._over(objects, None)

    def _over(self, objects: Mapping[str, Any], out: Any) -> tuple[Kernel, dict[str, Any]]:
        """Return the kernel for these operands and `out`, and the operands that it takes."""
        masked = self.arguments.over is not None and self.arguments.over.mask is not None
        mask = {name: obj for name, obj in objects.items() if name == MASK and masked}
        objects = {name: obj for name, obj in objects.items() if name not in mask}
        uses = [accumulated(assignment, objects) for assignment in self.assignments]
        read = [a for assignment in uses for a in accesses(assignment) if a.tensor in self.formats]
        names = [name for name in self.formats if name in objects or self._is_needed(name, uses)]
        check_given(read, names, objects, ("out", "threads", "memory_limit"))
        plain = self.derive({name: self._typed(name, obj) for name, obj in objects.items()}, out)
        return self._kernel(plain), {**plain.objects, **mask}

    def _is_needed(self, name: str, uses: Sequence[Assignment]) -> bool:
        """Tell whether statements read an operand, or add to it by `+=`."""
        return any(name in operand_names(assignment) for assignment in uses)

    def derive(self, objects: Mapping[str, Any], out: Any = None) -> PlainStatements:
        """Return the statements over indices alone for such operands, which are made."""
        return self.indexed.plain(objects, out if len(self.read) == 1 else None)

    def _noted(self, taker: Any, objects: dict[str, Any], said: dict[str, Any]) -> Any:
        """Leave the text to a trace that an operand is of."""
        over, options = self.arguments.over, self.arguments.options
        boundary = self.indexed.boundary
        said["semiring"] = None if over is None or over.is_usual else over
        said["border"] = None if boundary == boundary_options("error", None) else boundary
        outputs, last = options.outputs, self.assignments[-1].target.tensor
        results = last if outputs is None else outputs
        results = results if isinstance(results, str) else list(results)
        return taken_over(taker, "tp.kernel", (list(self.assignments), objects, results), said)

    def _typed(self, name: str, obj: Any) -> Any:
        """Return an operand, checked for the format and the dtype that the kernel was compiled
        for."""
        dtype, form = self.dtypes[name], self.formats[name]
        data = read_operand(obj, f"operand {name}")
        if str(data.format) != str(form) and not (data.format.is_dense and form.is_dense):
            raise FormatError(
                f"Expected {name} in the format {form} that the kernel was compiled for, found "
                f"{data.format}",
                hint=f'convert it: tp.tensor({name}, format="{form}")',
            )
        if not form.is_dense and self._reads_fills and data.fill != self.fills.get(name, ""):
            require_fill(name, describe(obj, name).operand.type, self._type(name))
        if isinstance(obj, bool | int | float | complex) and not isinstance(obj, np.generic):
            return dtype.type(obj)
        if data.dtype != dtype:
            raise OperandTypeError(
                f"Expected {name} of dtype {dtype} that the kernel was compiled for, found "
                f"{data.dtype}",
                hint=f"{name}.astype({dtype.name!r}), or compile with "
                f"dtypes={{{name!r}: {data.dtype.name!r}}}",
            )
        return obj

    @property
    def _reads_fills(self) -> bool:
        """Tell whether fill values are numbers, and not the zero of a semiring."""
        over = self.arguments.over
        return over is None or over.semiring.is_arithmetic

    def _type(self, name: str) -> TensorType:
        """Return the type of an operand that the text was compiled for."""
        return TensorType(self.formats[name], self.dtypes[name].name, fill=self.fills.get(name, ""))

    def _kernel(self, statements: PlainStatements) -> Kernel:
        """Return the kernel over these operands, compiled where no call before had such."""
        facts = {name: describe(obj, name).operand.type for name, obj in statements.objects.items()}
        types = ((n, str(t.format), t.dtype, t.unit_stride) for n, t in facts.items())
        key = (statements.text, *types)
        if key not in self.compiled:
            self.compiled[key] = compile_draft(self.draft(statements), self.arguments.options)
            self.notes[:] = self.notes or statements.lines
        return self.compiled[key]

    def draft(self, statements: PlainStatements) -> Draft:
        """Return the draft of statements over these operands: their formats, types and strides."""
        arguments = self.arguments
        types = {n: describe(obj, n).operand.type for n, obj in statements.objects.items()}
        formats: dict[str, Any] = {
            name: statements.objects[name] if type.fill and self._reads_fills else type.format
            for name, type in types.items()
        }
        dtypes = {name: type.dtype for name, type in types.items()}
        for target in (assignment.target for assignment in statements.assignments):
            if target.tensor in arguments.formats:
                formats[target.tensor] = arguments.formats[target.tensor]
            elif statements.scatters_dense:
                formats[target.tensor] = "d" * len(target.indices)
        inner = replace(arguments, formats=formats, dtypes=dtypes)
        drafted = draft_written(statements.assignments, inner)
        operands = dict(drafted.operands)
        for name, type in types.items():
            if not type.unit_stride:
                facts = operands[name]
                operands[name] = replace(facts, type=replace(facts.type, unit_stride=False))
        return replace(drafted, operands=operands)


def compile_subscripts(read: Sequence[CheckedStatement], arguments: CompileArguments) -> Kernel:
    """Compile the kernel of samples of the operands.

    Raises what `evaluate` raises of them: DimensionError for a position beyond the border, say.
    """
    front, statements = _sampled(read, arguments)
    return replace(front._kernel(statements), front=front, ways=Ways(), writing=Ways())


def draft_subscripts(read: CheckedStatement, arguments: CompileArguments) -> Draft:
    """Return the draft of the assignment over indices alone for samples of the operands."""
    front, statements = _sampled((read,), arguments)
    return front.draft(statements)


def _sampled(
    read: Sequence[CheckedStatement], arguments: CompileArguments
) -> tuple[SubscriptFront, PlainStatements]:
    """Return the front of a text, and the statements that samples of the operands ask for."""
    options, over = arguments.options, arguments.over
    assignments = [statement.assignment for statement in read]
    is_single = len(read) == 1
    if over is not None and not over.is_usual:
        refuse_scatter(assignments[-1].target, OVER_SEMIRINGS)
    boundary = boundary_options(options.border, options.shape, not is_single)
    if not is_single:
        requested = requested_outputs(assignments, options.outputs)
        assignments, _ = partition_live(assignments, requested.outputs)
        read = [statement for statement in read if statement.assignment in assignments]
    sources, uses = dict(arguments.formats), list[Assignment]()
    for assignment in assignments:
        name = assignment.target.tensor
        if assignment.operator is not None and name not in {use.target.tensor for use in uses}:
            sources.setdefault(name, "d" * len(assignment.target.modes))
            uses.append(accumulated(assignment, {name: None}))
        else:
            uses.append(assignment)
    plain = {assignment.target.tensor for assignment in uses if assignment in assignments}
    names = tuple(name for name in names_read(uses) if is_single or name not in plain)
    read_there = [a for assignment in uses for a in accesses(assignment) if a.tensor in names]
    check_given(read_there, names, [name for name in sources if name in names or name not in plain])
    orders = {
        a.tensor: len(a.modes) for step in assignments for a in (step.target, *accesses(step))
    }
    formats = {name: format_of(sources[name], orders[name], name) for name in names}
    dtypes = _dtypes(assignments, names, sources, arguments.dtypes)
    indexed = IndexedStatements(tuple(assignments), boundary, {}, options.dtype)
    front = SubscriptFront(tuple(read), arguments, formats, dtypes, _fills(names, sources), indexed)
    shapes = _sample_shapes(uses, sources, boundary, assignments[-1].target)
    samples = {
        name: sources[name]
        if is_array(sources[name])
        else _sample(shapes[name], formats[name], dtypes[name])
        for name in names
    }
    try:
        return front, front.derive(samples)
    except DimensionError as error:
        raise DimensionError(
            f"{error.message}, in operands of sizes that were taken to compile for",
            error.span,
            f"{error.hint}; an array in the place of a format says its sizes",
        ) from error


def _dtypes(
    steps: Sequence[Assignment], names: tuple[str, ...], sources: Mapping[str, Any], dtypes: Any
) -> dict[str, np.dtype[Any]]:
    """Return the dtype of each operand: of positions int64, of others float64, where nothing says
    it."""
    by_name = names_to_dtypes(names, dtypes, steps)
    arrays = {
        name: read_operand(sources[name], name).dtype for name in names if is_array(sources[name])
    }
    return {**{n: as_dtype(dtype, n) for n, dtype in by_name.items()}, **arrays}


def _fills(names: Sequence[str], sources: Mapping[str, Any]) -> dict[str, Fill]:
    """Return the fill value of each sample; a format has none."""
    samples = (name for name in names if is_array(sources[name]))
    return {name: describe(sources[name], name).operand.type.fill for name in samples}


def _sample_shapes(
    uses: Sequence[Assignment], forms: Mapping[str, Any], boundary: BoundaryOptions, target: Access
) -> dict[str, tuple[int, ...]]:
    """Return shapes of operands in which all accesses stay inside, where that is possible."""
    shapes = {n: read_operand(obj, n).shape for n, obj in forms.items() if is_array(obj)}
    reads = [target, *(access for assignment in uses for access in accesses(assignment))]
    reads += [inner for a in reads for mode in a.subscripts for inner, _ in mode.gathered]
    sizes = _sizes(target, reads, shapes, boundary)
    extents: dict[str, list[int]] = {}
    for access in reads:
        if access.is_number:
            continue
        modes = access.modes
        reach = [bounds(mode, sizes)[1] + 1 for mode in modes]
        extent = extents.setdefault(access.tensor, [1] * len(modes))
        if len(extent) == len(reach):
            extents[access.tensor] = [max(pair) for pair in zip(extent, reach, strict=True)]
    shapes_of_result = {} if boundary.shape is None else {target.tensor: boundary.shape}
    return {**{name: tuple(shape) for name, shape in extents.items()}, **shapes_of_result, **shapes}


def _sizes(
    target: Access,
    reads: list[Access],
    shapes: Mapping[str, tuple[int, ...]],
    boundary: BoundaryOptions,
) -> dict[str, int]:
    """Return the size of each index in samples: as arrays and shape= say."""
    sizes: dict[str, int] = {}
    for access in reads:
        shape = shapes.get(access.tensor, ())
        for mode, size in zip(access.modes, shape, strict=False):
            if mode.index is not None:
                sizes[mode.index] = int(size)
    for mode, size in zip(target.modes, boundary.shape or (), strict=False):
        if mode.index is not None:
            sizes[mode.index] = size
    indices = (index for access in reads for mode in access.modes for index in mode.names)
    return {**dict.fromkeys(indices, SAMPLE_SIZE), **sizes}


def _sample(shape: tuple[int, ...], form: Format, dtype: np.dtype[Any]) -> Any:
    """Return an operand that stores as little as may be."""
    if form.is_dense:
        return np.zeros(shape, dtype)
    nothing = [np.zeros(0, np.int64) for _ in shape]
    return Tensor(pack_coo(nothing, np.zeros(0, dtype), shape, form))
