"""Statements with subscripts → statements with indices alone, and the operands that they read.

    y[i] = x[i+1] - x[i]; z[j] = y[j] * A[p[j],j]
    →  y[i] = x_at_i_1[i] - x_at_i[i]; z[j] = y[j] * A_at_p_j_j[j]

Tensors that statements make are read at indices alone: no operand can be derived from them. Ranges
and recipes are computed once for operands of the same shapes; later calls make the views alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from codegen.names import Names
from codegen.records import dataclass
from taco_py.arguments.operands import check_names, read_operand
from taco_py.arguments.option_checks import integer
from taco_py.calls.indexed.derived import Derived
from taco_py.calls.indexed.domains import BORDERS, ERROR, BoundaryOptions
from taco_py.calls.indexed.make_operands import (
    DerivedOperands,
    Layout,
    arrays_of_operands,
    describe_operands,
    layout_of,
    make_operands,
)
from taco_py.calls.indexed.scattered import dtypes_for_meeting
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.errors import DimensionError, NotationError, OperandError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.notation.checks import accesses, has_subscripts
from taco_py.language.notation.dtypes import DType
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.notation.printer import to_text

MOST_LAYOUTS = 64
"""Layouts that are remembered for a text, one for each mix of shapes."""
AMONG_SEVERAL = "of a statement among several"
OVER_SEMIRINGS = "under semiring= or mask="
_ALONE = "compute it by a text of its own, the result of which is an operand of the next text"


def boundary_options(border: Any, shape: Any, several: bool = False) -> BoundaryOptions:
    """Return the border and the sizes that a call states.

    several  whether the call has several statements, of which each has its shape

    Raises OperandError or DimensionError.
    """
    if several and shape is not None:
        raise DimensionError(
            "Expected no shape= for several statements, found one",
            hint="compute the statement that needs it by a text of its own",
        )
    if not isinstance(border, str) or border not in BORDERS:
        raise OperandError(
            f"Expected border to be one of {', '.join(BORDERS)}, found {border!r}",
            hint=with_suggestion('border="fill" reads 0 outside of operands', str(border), BORDERS),
        )
    if shape is None:
        return BoundaryOptions(border, None)
    dimensions = tuple(shape) if isinstance(shape, Sequence) else (shape,)
    counts = [integer(size) for size in dimensions]
    sizes = tuple(count for count in counts if count is not None and count >= 0)
    if len(sizes) != len(dimensions):
        raise DimensionError(
            f"Expected a size for each mode of the result in shape=, found {shape!r}",
            hint="as in shape=(100,)",
        )
    return BoundaryOptions(border, sizes)


def is_indexed(assignment: Assignment, border: Any, shape: Any) -> bool:
    """Tell whether operands have to be made before an assignment is computed."""
    return has_subscripts(assignment) or border != ERROR or shape is not None


@dataclass(frozen=True, slots=True, eq=False)
class PlainStatements:
    """Statements with indices alone, and the operands that they read.

    text     of the statements: it tells them from those for operands of other sizes
    layouts  of the statements in order
    """

    text: str
    layouts: tuple[Layout, ...]
    objects: Mapping[str, Any]
    derivations: Sequence[DerivedOperands]

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        """Return the statements."""
        return tuple(layout.plain.assignment for layout in self.layouts)

    @property
    def lines(self) -> list[str]:
        """Return the lines of explain() about the operands that were made."""
        pairs = zip(self.layouts, self.derivations, strict=True)
        return [line for layout, derived in pairs for line in describe_operands(layout, derived)]

    @property
    def scatters(self) -> bool:
        """Tell whether the left-hand side has more than indices for subscripts."""
        return any(layout.plain.selections for layout in self.layouts)

    @property
    def scatters_dense(self) -> bool:
        """Tell whether it does, and all operands besides the positions are dense."""
        names = {one.name for layout in self.layouts for one in layout.plain.selections}
        values = ((n, o) for n, o in self.objects.items() if n not in names)
        return self.scatters and all(
            read_operand(obj, name).format.is_dense for name, obj in values
        )


@dataclass(frozen=True, slots=True, eq=False)
class IndexedStatements:
    """Statements with subscripts and their options; layouts are remembered by shapes.

    assignments  the statements; several scatter nowhere
    dtype        in which everything is computed, None for the types of operands
    """

    assignments: tuple[Assignment, ...]
    boundary: BoundaryOptions
    layouts: dict[tuple[object, ...], tuple[str, tuple[Layout, ...]]]
    dtype: Any = None

    def plain(self, objects: Mapping[str, Any], out: Any = None) -> PlainStatements:
        """Return the statements with indices alone for such operands, which are made.

        objects  all that the statements read, and nothing else

        Raises NotationError where a left-hand side of several, or a tensor that a statement makes,
        has more than indices for subscripts; OperandError where a statement makes positions; all
        that `make_operands` raises.
        """
        boundary, tensors = self.boundary, arrays_of_operands(objects)
        if out is not None:
            boundary = replace(boundary, out=getattr(out, "shape", None))
        dtypes = dtypes_for_meeting(self.assignments[0], objects, tensors, self.dtype)
        facts = ((data.shape, data.format.is_dense) for data in tensors.values())
        key = (boundary.out, *facts, *dtypes.values())
        entry = self.layouts.get(key)
        if entry is None:
            entry = self._layouts(objects, tensors, boundary, dtypes)
            if len(self.layouts) < MOST_LAYOUTS:
                self.layouts[key] = entry
        text, layouts = entry
        merged, derivations = dict[str, Any](), list[DerivedOperands]()
        for assignment, layout in zip(self.assignments, layouts, strict=True):
            derivation = make_operands(assignment, objects, tensors, layout, boundary)
            merged.update(derivation.objects)
            derivations.append(derivation)
        return PlainStatements(text, layouts, merged, derivations)

    def _layouts(
        self,
        objects: Mapping[str, Any],
        tensors: Mapping[str, TensorData],
        boundary: BoundaryOptions,
        dtypes: Mapping[str, DType],
    ) -> tuple[str, tuple[Layout, ...]]:
        """Return the text and the layouts of the statements with indices alone."""
        assignments = self.assignments
        if len(assignments) == 1:
            accumulators = (
                {assignments[0].target.tensor} if assignments[0].operator is not None else set()
            )
            check_names(assignments[0], [name for name in objects if name not in accumulators])
        refuse_computed_positions(assignments)
        tensors_named = {
            a.tensor for statement in assignments for a in (statement.target, *accesses(statement))
        }
        names, shapes = Names({*objects, *tensors_named}), dict[str, tuple[int, ...]]()
        layouts = []
        for assignment in assignments:
            if len(assignments) > 1:
                refuse_scatter(assignment.target, AMONG_SEVERAL)
            layout = layout_of(assignment, tensors, boundary, shapes, names, dtypes)
            for derived in layout.plain.derived:
                _check_is_operand(derived, shapes)
            layouts.append(layout)
            shapes[assignment.target.tensor] = layout.domain.shape
        text = "; ".join(to_text(layout.plain.assignment) for layout in layouts)
        return text, tuple(layouts)


def refuse_scatter(target: Access, where: str) -> None:
    """Raise NotationError where a left-hand side has more than indices for subscripts."""
    if target.subscripts:
        raise NotationError(
            f"Expected indices alone on the left-hand side {where}, found {to_text(target)}",
            target.span,
            _ALONE,
        )


def refuse_computed_positions(assignments: Sequence[Assignment]) -> None:
    """Raise OperandError where a subscript reads a tensor that an earlier statement assigns.

    a[i] = argmax(j, A[i,j]); y[i] = x[a[i]]    reads x at a, which is no operand
    """
    assigned = set[str]()
    for assignment in assignments:
        modes = (mode for access in accesses(assignment) for mode in access.subscripts)
        for inner in (access for mode in modes for access, _ in mode.gathered):
            if inner.tensor in assigned:
                raise OperandError(
                    f"Expected an operand for positions, found {to_text(inner)}, which an earlier "
                    "statement assigns",
                    inner.span,
                    f"compute {inner.tensor} in a call of its own, and pass the result as an "
                    "operand",
                )
        assigned.add(assignment.target.tensor)


def _check_is_operand(derived: Derived, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise NotationError where an operand would be derived from a tensor that a statement makes.

    shapes  of the tensors that earlier statements make
    """
    access = derived.source_access
    if access.tensor in shapes:
        raise NotationError(
            f"Expected all of {access.tensor}, which the text assigns, at indices alone, found "
            f"{to_text(access)}",
            access.span,
            _ALONE,
        )
