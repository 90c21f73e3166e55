"""Calls with operands in blocks: computed over the modes that these store.

    operands  →  views and stored arrays over stored modes  →  the kernels of a plain statement

What is read as what is found once for operands of the same shapes; a later call makes the views and
takes the short way of the statement over stored modes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.device_tensor import DeviceTensor
from taco_py.arguments.operands import check_orders, check_sizes
from taco_py.arguments.options import CallOptions
from taco_py.arguments.result_table import ARRAY, TENSOR, Question, ResultKind, look_up
from taco_py.calls.remapped.cut_indices import (
    AnyFormat,
    CutAssignment,
    cut_assignment,
    describe_cut,
    with_target,
)
from taco_py.calls.remapped.cut_operands import (
    Maker,
    OperandRecipe,
    adjacent,
    can_fill_up,
    filled_up,
    operand_recipe,
)
from taco_py.calls.remapped.joined_results import (
    joined_array,
    joined_tensor,
    outer_first,
    stored_modes,
)
from taco_py.data.convert.remap import plain_format
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.interop.scipy_remapped import format_of_remapped, is_remapped
from taco_py.data.storage.tensor_data import Array
from taco_py.data.tensors.hand_out import handed_out
from taco_py.data.tensors.keys import call_key
from taco_py.data.tensors.remapped_tensor import RemappedTensor
from taco_py.data.tensors.tensor import Tensor, as_data, as_format
from taco_py.language.diagnostics.errors import TacoError
from taco_py.language.fill import Fill
from taco_py.language.formats import Format, RemappedFormat, dense, remapped
from taco_py.language.formats.stored_modes import StoredMode
from taco_py.language.legal.stored import is_sparse
from taco_py.language.notation.checks import accesses, operand_names
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import MUL
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.tree import walk
from taco_py.running.replay.find import ShortCall, find

MOST_LAYOUTS = 64
"""Layouts that are remembered for a text, one for each mix of shapes."""


def is_in_blocks(obj: Any) -> bool:
    """Tell whether an operand is stored over derived modes: a Tensor, or a bsr array of scipy's."""
    return isinstance(obj, RemappedTensor) or is_remapped(obj)


def form_of(obj: Any) -> AnyFormat:
    """Return the format of an operand, where it is in blocks that of these."""
    if isinstance(obj, RemappedTensor):
        return obj.format
    if is_remapped(obj):
        return format_of_remapped(obj)
    if isinstance(obj, Tensor):
        return obj.format
    shape = getattr(obj, "shape", None)
    if is_scipy_sparse(obj) or shape is None:
        return as_data(obj).format
    return dense(len(shape))


def shape_of(obj: Any) -> tuple[int, ...]:
    """Return the shape of an operand, whose numbers have none."""
    shape = getattr(obj, "shape", None)
    return as_data(obj).shape if shape is None else tuple(shape)


def fills_of(objects: Mapping[str, Any]) -> dict[str, Fill]:
    """Return the fill values of the operands that have one other than 0."""
    return {n: obj.fill for n, obj in objects.items() if isinstance(obj, Tensor) and obj.fill}


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What is the same for all operands of the same shapes.

    makers    by the names of operands over stored modes, the user's operand and its recipe
    order     of these, the places of the user's operands and how each is made
    shape     of the result
    inner     the shape of a dense result over stored modes
    is_view   whether a dense result is a view of that
    identity  what tells calls over stored modes from others, but for their operands
    """

    makers: Mapping[str, tuple[str, OperandRecipe]]
    order: tuple[tuple[int, Maker], ...]
    shape: tuple[int, ...]
    inner: tuple[int, ...]
    is_view: bool
    identity: tuple[object, ...]

    def stored_operands(self, objects: Mapping[str, Any]) -> dict[str, Any]:
        """Return the operands over stored modes."""
        return {name: recipe.make(objects[key]) for name, (key, recipe) in self.makers.items()}


@dataclass(frozen=True, slots=True, eq=False)
class ResultForm:
    """How the result is to be stored and handed out.

    requested  the format that the call asks for, None where it does not
    kind       how the result is handed out where operands are read in plain formats
    form       what the assignment over stored modes is asked for
    modes      of its result
    """

    requested: AnyFormat | None
    kind: ResultKind
    form: Format | None
    modes: tuple[StoredMode, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RemappedCall:
    """A text over operands in blocks, and options; it remembers layouts by shapes.

    identity  what tells such calls from others, but for the text: see `keys.call_key`
    """

    cut: CutAssignment
    result: ResultForm
    forms: Mapping[str, AnyFormat]
    identity: tuple[object, ...]
    layouts: dict[tuple[tuple[int, ...], ...], Layout]

    @property
    def blocks(self) -> tuple[RemappedFormat, ...]:
        """Return the formats of the operands that are read in blocks."""
        return tuple(f for f in (p.form for p in self.cut.parts) if isinstance(f, RemappedFormat))

    def layout(self, objects: Mapping[str, Any]) -> Layout | None:
        """Return the layout of operands over stored modes; None where they are converted."""
        key = tuple(map(shape_of, objects.values()))
        layout = self.layouts.get(key)
        if layout is None:
            shapes = dict(zip(objects, key, strict=True))
            layout = self._build_layout(objects, shapes)
            if layout is not None and len(self.layouts) < MOST_LAYOUTS:
                self.layouts[key] = layout
        return layout

    def _build_layout(
        self, objects: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
    ) -> Layout | None:
        cut = self.cut
        sizes = sizes_of(cut.source, shapes)
        if sizes is None or unfilled(cut, sizes, shapes):
            return None
        makers = {}
        for part in cut.parts:
            name = part.access.tensor
            makers[part.name] = name, operand_recipe(part, objects[name], shapes[name])
        places = {name: place for place, name in enumerate(objects)}
        order = tuple((places[name], recipe.make) for name, recipe in makers.values())
        shape = tuple(sizes[index] for index in cut.source.target.indices)
        is_view = filled_up(shape, cut.target) == shape and self.result.requested is None
        is_view = is_view and self.result.modes == stored_modes(cut.target)
        blocks = (*cut.cuts.items(), filled_up(shape, cut.target) == shape)
        identity = (to_text(cut.assignment), *self.identity, blocks, str(self.result.form), *makers)
        inner = adjacent(shape, cut.target)
        return Layout(makers, order, shape, inner, is_view, ("blocks", *identity))

    def key(self, layout: Layout, operands: Iterable[Any]) -> tuple[object, ...] | None:
        """Return the key under which the fast path over stored modes is remembered."""
        return call_key(layout.identity, operands)

    def short_way(self, names: Sequence[str]) -> ShortCall:
        """Return the function of the operands in the order of `names`, and of `out` if there is
        one."""

        count, layouts = len(names), self.layouts

        def call(*operands: Any) -> Any:
            layout = layouts.get(tuple([getattr(o, "shape", ()) for o in operands[:count]]))
            if layout is None:
                return None
            stored = [make(operands[place]) for place, make in layout.order]
            short = find(call_key(layout.identity, stored))
            if short is None:
                return None
            out = operands[count] if len(operands) > count else None
            if out is not None and self.takes(out, layout):
                return None if short(*stored, out.reshape(layout.inner)) is None else out
            if out is not None and self.fills(layout):
                return None  # it is of another shape
            result = short(*stored)
            if out is not None:
                final = None if result is None else self.finished(result, layout.shape)
                return out if copied_into(out, final) else None
            if layout.is_view and type(result) is np.ndarray:
                return result.reshape(layout.shape)
            return None if result is None else self.finished(result, layout.shape)

        return call

    def takes(self, out: Any, layout: Layout) -> bool:
        """Tell whether the kernels write into `out` themselves, or there is none."""
        if out is None:
            return True
        fits = isinstance(out, np.ndarray) and out.shape == layout.shape
        return fits and self.fills(layout)

    def fills(self, layout: Layout) -> bool:
        """Tell whether blocks fill the result."""
        return filled_up(layout.shape, self.cut.target) == layout.shape

    def inner_out(self, out: Any, layout: Layout) -> Any:
        """Return `out` over stored modes: a view."""
        return out.reshape(layout.inner)

    def finished(self, output: Any, shape: tuple[int, ...]) -> Any:
        """Return the result as the user expects it."""
        cuts, result = self.cut.target, self.result
        if isinstance(output, np.ndarray | np.generic):
            array = self._join(np.asarray(output), shape) if any(cuts) else output
            if result.requested is None or result.kind.kind == ARRAY:
                return array
            return _in_kind(Tensor.from_numpy(array), result)
        if isinstance(output, Tensor):
            tensor = joined_tensor(output.data, shape, cuts, result.modes, self.blocks)
            return _in_kind(tensor, result)
        return output

    def _join(self, array: Array, shape: tuple[int, ...]) -> Array:
        return joined_array(array, shape, self.cut.target, self.result.modes)

    def operand_lines(self, layout: Layout) -> list[str]:
        """Return a line for each operand over stored modes."""
        by_name = {part.name: part for part in self.cut.parts}
        return [
            f"{describe_cut(by_name[name], self.cut.assignment)}: {recipe.note}"
            for name, (_, recipe) in layout.makers.items()
            if recipe.note
        ]

    def options(self, options: CallOptions) -> CallOptions:
        """Return the options of the statement over stored modes."""
        return replace(options, static=self.cut.static, format=self.result.form)


def copied_into(out: Any, array: Any) -> bool:
    """Copy a result into the user's array; False where that is another one, which others refuse."""
    fits = isinstance(out, np.ndarray) and isinstance(array, np.ndarray)
    if not fits or (out.shape, out.dtype) != (array.shape, array.dtype) or not out.flags.writeable:
        return False
    np.copyto(out, array)
    return True


def _in_kind(tensor: Tensor, result: ResultForm) -> Any:
    """Return a sparse result as an object of the expected kind, in the format that is asked for."""
    if result.requested is not None:
        tensor = tensor.to_format(result.requested)
        kind = result.kind.kind
        plain = kind not in (TENSOR, ARRAY) and not isinstance(tensor, RemappedTensor)
        return handed_out(tensor.data, kind) if plain else tensor
    kind = result.kind.kind
    if kind == TENSOR:
        return tensor
    if kind == ARRAY:
        return tensor.to_numpy()
    if isinstance(tensor, RemappedTensor):
        family = "matrix" if kind.endswith("matrix") else "array"
        converted = tensor.to_scipy()
        return converted if family == "array" else tensor.to_scipy(f"{converted.format}_matrix")
    return tensor.to_scipy(kind)


def sizes_of(
    assignment: Assignment, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, int] | None:
    """Return the size of each index; None where operands do not fit, which the usual way says."""
    target = assignment.target
    try:
        check_orders(assignment, shapes)
        sizes = check_sizes(assignment, shapes)
    except TacoError:
        return None
    accumulator = shapes.get(target.tensor) if assignment.operator is not None else None
    if accumulator is not None and accumulator != tuple(sizes.get(i, -1) for i in target.indices):
        return None
    return sizes if all(index in sizes for index in target.indices) else None


def unfilled(
    cut: CutAssignment, sizes: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]
) -> str:
    """Return the reason why the padding of last blocks would be visible, "" where it is not."""
    short = {index for index, size in cut.cuts.items() if sizes[index] % size}
    for index in sorted(short):
        prefix = f"{index} of size {sizes[index]} is not in full blocks of {cut.cuts[index]}, and "
        if cut.source.operator is not None:
            return f"{prefix}the result is added to"
        if not _adds_zeros(cut.source.value, index):
            return f"{prefix}sums would add more than zeros there"
    for part in cut.parts:
        form, shape = part.form, shapes[part.access.tensor]
        sparse = isinstance(form, Format) and is_sparse(form)
        if sparse and isinstance(form, Format) and not can_fill_up(form, part.cuts, shape):
            return f"{part.access.tensor} has no room for more coordinates"
    return ""


def _adds_zeros(expr: Expr, index: str) -> bool:
    """Tell whether sums over an index add zeros beyond its size.

    A factor beside a sum, which may be infinite, is multiplied inside of it.
    """
    match expr:
        case Reduce():
            valid = expr.index != index or (expr.operator.additive and _vanishes(expr.body, index))
            return valid and _adds_zeros(expr.body, index)
        case Call() if expr.operator.additive:
            return all(_adds_zeros(arg, index) for arg in expr.args)
        case Call():
            summed = [arg for arg in expr.args if _sums_over(arg, index)]
            factors = [arg for arg in expr.args if not _sums_over(arg, index)]
            alone = expr.operator == MUL and len(summed) == 1 and all(map(_is_finite, factors))
            return not summed or (alone and _adds_zeros(summed[0], index))
        case _:
            return True


def _sums_over(expr: Expr, index: str) -> bool:
    return any(isinstance(node, Reduce) and node.index == index for node, _ in walk(expr))


def _vanishes(expr: Expr, index: str) -> bool:
    """Tell whether an expression is exactly 0 where all that have an index are 0 there."""
    match expr:
        case Access():
            return index in expr.indices
        case Reduce():
            return expr.operator.additive and _vanishes(expr.body, index)
        case Call() if expr.operator == MUL:
            factors = [arg for arg in expr.args if not _is_finite(arg)]
            return bool(factors) and all(_vanishes(arg, index) for arg in factors)
        case Call():
            return expr.operator.additive and all(_vanishes(arg, index) for arg in expr.args)
        case _:
            return False


def _is_finite(expr: Expr) -> bool:
    return isinstance(expr, Literal) and bool(np.isfinite(expr.value))


# ---------------------------------------------------------------- from the arguments of a call


def remapped_call(
    assignment: Assignment,
    objects: Mapping[str, Any],
    options: CallOptions,
    identity: tuple[object, ...] = (),
) -> tuple[RemappedCall | None, dict[str, str]]:
    """Return the call over stored modes; None where operands are read in plain formats.

    Returns with it the reasons for which each of these is.
    """
    reason = _refusal(assignment, objects, options)
    blocks = [name for name, obj in objects.items() if is_in_blocks(obj)]
    if reason:
        return None, dict.fromkeys(blocks, reason)
    forms = {name: form_of(obj) for name, obj in objects.items()}
    dtypes = {name: np.dtype(objects[name].dtype) for name in blocks}
    cut, plain = cut_assignment(assignment, forms, dtypes, fills_of(objects))
    if cut is None:
        return None, plain
    containers = {name: container(obj, forms[name]) for name, obj in objects.items()}
    result = result_form(cut, containers, forms, options.format)
    if cut.numbers and result.kind.kind != ARRAY:
        reason = "the result is sparse, and entries that are numbered are not in its order"
        return None, dict.fromkeys(blocks, reason)
    cut = with_target(cut, result.modes)
    call = RemappedCall(cut, result, forms, identity, {})
    shapes = {name: shape_of(obj) for name, obj in objects.items()}
    sizes = sizes_of(assignment, shapes)
    unfit = "operands do not fit" if sizes is None else unfilled(cut, sizes, shapes)
    return (None, dict.fromkeys(blocks, unfit)) if unfit else (call, plain)


def _refusal(assignment: Assignment, objects: Mapping[str, Any], options: CallOptions) -> str:
    """Say why a call cannot be computed over stored modes, whatever its operands store."""
    used = {*operand_names(assignment), assignment.target.tensor}
    if not {*operand_names(assignment)} <= {*objects} or not {*objects} <= used:
        return "operands do not fit"
    if any(isinstance(obj, DeviceTensor) for obj in objects.values()) or not options.is_native:
        return "blocks are read on CPUs alone"
    if options.schedule is not None and options.schedule.shapes:
        return "the schedule names the loops of the text"
    if options.static:
        return "static= names the indices of the text"
    if any(access.subscripts for access in accesses(assignment)):
        return "subscripts are more than indices"
    orders = {name: len(shape_of(obj)) for name, obj in objects.items()}
    if any(len(a.indices) != orders[a.tensor] for a in accesses(assignment)):
        return "operands do not fit"
    return ""


def result_form(
    cut: CutAssignment,
    containers: Mapping[str, str],
    forms: Mapping[str, AnyFormat],
    format: Any,
) -> ResultForm:
    """Return how the result is to be stored: as asked, as blocks where inference says so, or plain.

    containers  what the operands are, in the words of the table of results
    format      that the result is asked for in
    """
    requested = remapped(format)
    order = len(cut.source.target.indices)
    plain: AnyFormat | None = requested or as_format(format, order)
    kind = plain_kind(cut.source, containers, forms, plain)
    modes = stored_modes(cut.target)
    if not any(cut.target) and not (kind.kind == ARRAY and cut.numbers):
        form = plain if isinstance(plain, Format) else None
        return ResultForm(requested, kind, form, modes)
    if kind.kind == ARRAY:
        is_dense = plain is not None or TENSOR not in containers.values() or cut.numbers
        return ResultForm(plain, kind, dense(len(modes)) if is_dense else None, modes)
    if requested is not None and requested.cuts == cut.target and requested.is_blocked:
        return ResultForm(requested, kind, requested.inner, requested.modes)
    return ResultForm(plain, kind, None, outer_first(cut.target) if all(cut.target) else modes)


def plain_kind(
    assignment: Assignment,
    containers: Mapping[str, str],
    forms: Mapping[str, AnyFormat],
    requested: AnyFormat | None,
) -> ResultKind:
    """Return how the result is handed out where all operands are in plain formats."""
    if isinstance(requested, RemappedFormat):
        return ResultKind(plain_format(requested.order), TENSOR)
    plain = {n: f if isinstance(f, Format) else plain_format(f.order) for n, f in forms.items()}
    return look_up(Question(assignment, plain, containers, requested))


def container(obj: Any, form: AnyFormat) -> str:
    """Return the container of an operand, in the words of the table of results."""
    if isinstance(obj, Tensor):
        return TENSOR
    if form.is_dense:
        return ARRAY
    matrix = type(obj).__name__.endswith("matrix")
    return "sparse_matrix" if matrix else "sparse_array"
