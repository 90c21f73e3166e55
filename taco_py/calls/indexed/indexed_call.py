"""Calls whose texts have subscripts that are more than indices.

    operands  →  the operands that the text over indices alone reads  →  its kernels

Ranges and recipes are found once for operands of the same shapes; a later call makes the views and
takes the short way of the text over indices alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.device_tensor import DeviceTensor
from taco_py.arguments.operands import check_names
from taco_py.arguments.option_checks import integer
from taco_py.arguments.options import CallOptions
from taco_py.calls.indexed.domains import BORDERS, ERROR, BoundaryOptions
from taco_py.calls.indexed.make_operands import (
    DerivedOperands,
    Layout,
    arrays_of_operands,
    layout_of,
    make_operands,
)
from taco_py.calls.indexed.scattered import dtypes_for_meeting
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.tensors.keys import call_key
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import DimensionError, OperandError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.notation.checks import has_subscripts
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.tree import has_reductions
from taco_py.running.replay.find import ShortCall, find

MOST_LAYOUTS = 64
"""Layouts that are remembered for a text, one for each mix of shapes."""


def boundary_options(border: Any, shape: Any, out: Any = None) -> BoundaryOptions:
    """What a call says of borders and sizes. Raises OperandError or DimensionError."""
    if not isinstance(border, str) or border not in BORDERS:
        raise OperandError(
            f"Expected border to be one of {', '.join(BORDERS)}, found {border!r}",
            hint=with_suggestion('border="fill" reads 0 outside of operands', str(border), BORDERS),
        )
    sizes = None
    if shape is not None:
        given = tuple(shape) if isinstance(shape, Sequence) else (shape,)
        counts = [integer(each) for each in given]
        sizes = tuple(count for count in counts if count is not None and count >= 0)
        if len(sizes) != len(given):
            raise DimensionError(
                f"Expected a size for each mode of the result in shape=, found {shape!r}",
                hint="as in shape=(100,)",
            )
    return BoundaryOptions(border, sizes, getattr(out, "shape", None))


def is_indexed(assignment: Assignment, border: Any, shape: Any) -> bool:
    """Tell whether operands have to be made before an assignment is computed."""
    return has_subscripts(assignment) or border != ERROR or shape is not None


@dataclass(frozen=True, slots=True, eq=False)
class IndexedCall:
    """A text with subscripts, its operands' names and options; it remembers layouts by shapes.

    identity  what tells such calls from others, but for the text: see `keys.call_key`
    dtype     in which everything is computed, None for the types of operands
    """

    assignment: Assignment
    boundary: BoundaryOptions
    identity: tuple[object, ...]
    layouts: dict[tuple[object, ...], tuple[Layout, str]]
    dtype: Any = None

    def made(self, objects: Mapping[str, Any], out: Any) -> tuple[Layout, str, DerivedOperands]:
        """Return the layout for such operands, its text, and the operands that it reads."""
        assignment, boundary = self.assignment, self.boundary
        tensors = arrays_of_operands(objects)
        if out is not None:
            boundary = replace(boundary, out=getattr(out, "shape", None))
        dtypes = dtypes_for_meeting(assignment, objects, tensors, self.dtype)
        facts = ((data.shape, data.format.is_dense) for data in tensors.values())
        key = (boundary.out, *facts, *dtypes.values())
        known = self.layouts.get(key)
        if known is None:
            added = {assignment.target.tensor} if assignment.operator is not None else set()
            check_names(assignment, [name for name in objects if name not in added])
            layout = layout_of(assignment, tensors, boundary, dtypes=dtypes)
            known = layout, to_text(layout.plain.assignment)
            if len(self.layouts) < MOST_LAYOUTS:
                self.layouts[key] = known
        return *known, make_operands(assignment, objects, tensors, known[0], boundary)

    def key(self, text: str, made: DerivedOperands) -> tuple[object, ...] | None:
        """Under which the short way over indices alone is remembered."""
        identity = ("indexed", text, *self.identity, *made.objects)
        return call_key(identity, made.objects.values())

    def short_way(self, names: Sequence[str]) -> ShortCall:
        """Return the function of the operands in the order of `names`, and of `out` if there is
        one."""

        def call(*operands: Any) -> Any:
            out = operands[len(names)] if len(operands) > len(names) else None
            _, text, made = self.made(dict(zip(names, operands, strict=False)), out)
            short = find(self.key(text, made))
            if short is None:
                return None
            given = made.objects.values()
            return short(*given) if out is None else short(*given, out)

        return call


def settled(
    assignment: Assignment, layout: Layout, made: DerivedOperands, options: CallOptions
) -> CallOptions:
    """Return the options for what is scattered.

    Of dense operands alone it is dense. What `=` assigns has the type of the value: each element
    has one, so that the sum over what is selected needs no type of its own.
    """
    names = {one.name for one in layout.plain.selections}
    others = [obj for name, obj in made.objects.items() if name not in names]
    if not names:
        return options
    if options.format is None and not any(map(_is_sparse, others)):
        options = replace(options, format="d" * len(layout.plain.assignment.target.indices))
    sums = has_reductions(assignment.value)
    return options if sums or assignment.operator else replace(options, wide_sums=False)


def _is_sparse(obj: Any) -> bool:
    tensor = isinstance(obj, Tensor | DeviceTensor)
    return is_scipy_sparse(obj) or (tensor and not obj.format.is_dense)
