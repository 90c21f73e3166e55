"""The workspace for a precomputed part of a value: its kind, and its type."""

from __future__ import annotations

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.concrete.factors import Occurrence, occurrences
from taco_py.compiler.concrete.nodes import Assign, Statement, Workspace, WorkspaceKind, forall
from taco_py.compiler.concrete.terms import summed
from taco_py.compiler.concrete.tree import assignments, foralls, workspaces_of
from taco_py.compiler.iteration import region
from taco_py.compiler.iteration.graph import all_iterators, sparse_levels, workspace_levels
from taco_py.compiler.iteration.lattice import is_full
from taco_py.compiler.iteration.region import Coordinates, Everything, Regions
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.legal.absent import restricts
from taco_py.language.legal.types import sum_wraps_alone
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Expr
from taco_py.language.notation.operators import ADD
from taco_py.language.notation.printer import to_text
from taco_py.language.problem import Problem
from taco_py.language.provenance.provenance import Provenance


@dataclass(frozen=True, slots=True)
class Part:
    """The precomputation of an expression: the variables of its workspace, and the name of that."""

    expression: Expr
    variables: tuple[str, ...]
    name: str


@dataclass(frozen=True, slots=True)
class Nest:
    """The loops just around the assignment with the part, by their use.

    outer     the loops that stay around the `where`
    producer  the loops that fill the workspace, outermost first; `summed` of them sum in it
    consumer  the loops around the rest
    """

    outer: tuple[str, ...]
    producer: tuple[str, ...]
    consumer: tuple[str, ...]
    summed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartContext:
    """A part of a value, and the statement that it is in."""

    problem: Problem
    provenance: Provenance
    statement: Statement
    part: Part

    @property
    def indices(self) -> tuple[str, ...]:
        """Return the workspace's indices, in the order of the loops around the part.

        They are the indices that the variables of the workspace derive from.
        """
        roots = {root for v in self.part.variables for root in self.provenance.roots(v)}
        loop_indices = (
            f.index for f in foralls(self.statement) if any(map(self._occurs, assignments(f)))
        )
        return tuple(index for index in dict.fromkeys(loop_indices) if index in roots)

    def _occurs(self, assign: Assign) -> bool:
        anywhere = Access(self.part.name, ())
        return any(True for _ in occurrences(assign.value, self.part.expression, anywhere))

    @property
    def access(self) -> Access:
        return Access(self.part.name, self.indices)

    def refusal(self, reason: str, hint: str) -> ScheduleError:
        return ScheduleError(
            f"{to_text(self.part.expression)} cannot be precomputed: {reason}", hint=hint
        )


def workspace_of(
    context: PartContext, nest: Nest, place: Assign, occurrence: Occurrence
) -> Workspace:
    """Return the workspace for a precomputed part. Raises ScheduleError where there is none."""
    kind, full = _kind(context, nest, place, occurrence)
    reread = len(nest.consumer) > len(context.part.variables) or kind is WorkspaceKind.MARKED
    if kind is WorkspaceKind.DENSE:
        _check_pattern(context, place, occurrence)
    dtype = _dtype(context, nest, place, kind)
    zero = not full or bool(nest.summed)
    ordered = not context.problem.result.format.is_dense and kind is not WorkspaceKind.MARKED
    return Workspace(
        context.part.name,
        context.indices,
        kind,
        dtype,
        ordered,
        zero,
        reread,
        context.part.variables,
    )


def _kind(
    context: PartContext, nest: Nest, place: Assign, occurrence: Occurrence
) -> tuple[WorkspaceKind, bool]:
    """Return the kind of the workspace, and whether its producer visits every coordinate."""
    if not context.indices:
        return WorkspaceKind.SCALAR, False
    fill = Assign(context.access, context.part.expression, ADD)
    producer = forall(nest.producer, fill)
    regions = Regions(all_iterators(context.problem, producer), frozenset())
    where = (regions.statement(producer, index) for index in context.indices)
    full = all(isinstance(region, Everything) for region in where)
    if full or _read_in_tiles(context, nest):
        return WorkspaceKind.DENSE, full
    if _meets_others(context, occurrence):
        looked_up = _is_looked_up(context, nest, place, occurrence)
        return WorkspaceKind.MARKED if looked_up else WorkspaceKind.DENSE, False
    return (WorkspaceKind.ROW if len(context.indices) == 1 else WorkspaceKind.HASH), False


def _is_looked_up(context: PartContext, nest: Nest, place: Assign, occurrence: Occurrence) -> bool:
    """Tell whether entries of one index are looked up in loops over other operands.

    Absent entries then add nothing, whatever the others are, and no coordinate is stored for them.
    """
    target = place.target
    stored = (
        target == context.problem.assignment.target and not context.problem.result.format.is_dense
    )
    return (
        len(context.indices) == 1
        and not nest.summed
        and restricts(occurrence.value, context.access)
        and not (stored and context.indices[0] in target.indices)
    )


def _read_in_tiles(context: PartContext, nest: Nest) -> bool:
    """Tell whether the loops that read the workspace are over tiles: a list has none."""
    tiles = filter(context.provenance.is_derived, nest.consumer)
    return any(set(context.provenance.roots(v)) & set(context.indices) for v in tiles)


def _check_pattern(context: PartContext, place: Assign, occurrence: Occurrence) -> None:
    """Raise ScheduleError where a sparse result would store additional elements."""
    target, form = context.problem.assignment.target, context.problem.result.format
    before = Regions(all_iterators(context.problem, context.statement), frozenset())
    after = Regions({**before.levels, context.access: {}}, frozenset())
    for level, mode in zip(form.levels, form.mode_order, strict=True):
        index = target.indices[mode]
        if level.full or index not in context.indices:
            continue
        before_full = is_full(before.expression(place.value, index))
        after_full = is_full(after.expression(occurrence.value, index))
        if after_full and not before_full:
            raise context.refusal(
                f"{target.tensor} would store every {index}, for what is left walks another "
                f"operand along {index} and the workspace has to be dense",
                "precompute the whole sum, or ask for a dense result",
            )


def _meets_others(context: PartContext, occurrence: Occurrence) -> bool:
    """Tell whether the rest merges another sparse level along an index of the workspace.

    Or whether it continues where the workspace stores nothing: a list or a table cannot be merged.
    """
    workspaces = {w.name: w for w in workspaces_of(context.statement)}
    for access in accesses(occurrence.value):
        if access == context.access:
            continue
        if access.tensor in workspaces:
            levels = workspace_levels(workspaces[access.tensor])
        else:
            levels = sparse_levels(context.problem, access)
        if set(levels) & set(context.indices):
            return True
    levels = {index: region.Iterator(context.access, k) for k, index in enumerate(context.indices)}
    regions = Regions({context.access: levels}, frozenset())
    actual = {index: regions.expression(occurrence.value, index) for index in levels}
    return actual != {index: Coordinates(level) for index, level in levels.items()}


def _dtype(context: PartContext, nest: Nest, place: Assign, kind: WorkspaceKind) -> str:
    """Return the type of the precomputation. Raises ScheduleError where values would differ.

    They may differ where the type is not that of the full value. They do not where entries of an
    operand are looked up: merged, entries with equal coordinates would first be added up in the
    operand's type, too.
    """
    dtypes = {name: np.dtype(kind.dtype) for name, kind in context.problem.operands}
    dtypes |= {w.name: np.dtype(w.dtype) for w in workspaces_of(context.statement)}
    roots = (root for v in nest.summed for root in context.provenance.roots(v))
    sum_ = summed(context.part.expression, dict.fromkeys(roots))
    dtype = expression_dtype(sum_, dtypes)
    value = expression_dtype(place.value, dtypes)
    exact = isinstance(context.part.expression, Access) and not nest.summed
    if dtype == value or (exact and kind is WorkspaceKind.MARKED):
        return dtype.name
    wraps = sum_wraps_alone(dtype, value)
    if wraps or not (exact or np.finfo(dtype).eps == np.finfo(value).eps):
        elsewhere = "wrap" if wraps else "be rounded"
        raise context.refusal(
            f"it is computed in {dtype}, and what it is a part of in {value}, so that it would "
            f"{elsewhere} elsewhere",
            "convert the operands to one type",
        )
    return dtype.name
