"""The workspace that a part of a value is computed into: how it is stored, and in which type."""

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
    """What is to be computed first: an expression, over which variables of loops, and its name."""

    expression: Expr
    variables: tuple[str, ...]
    name: str


@dataclass(frozen=True, slots=True)
class Nest:
    """The loops right around the assignment that the part stands in, sorted by who needs them.

    outer     they stay around the `where`
    producer  those that fill the workspace, outermost first; `summed` of them sum in it
    consumer  those around what is left
    """

    outer: tuple[str, ...]
    producer: tuple[str, ...]
    consumer: tuple[str, ...]
    summed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class About:
    """A part of a value in a statement, and what is known of them."""

    problem: Problem
    provenance: Provenance
    whole: Statement
    part: Part

    @property
    def indices(self) -> tuple[str, ...]:
        """Return the workspace's indices: those that its variables derive from, as the loops around
        the part meet them."""
        found = {root for v in self.part.variables for root in self.provenance.roots(v)}
        around = (f.index for f in foralls(self.whole) if any(map(self._occurs, assignments(f))))
        return tuple(index for index in dict.fromkeys(around) if index in found)

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


def workspace_of(about: About, nest: Nest, place: Assign, occurrence: Occurrence) -> Workspace:
    """Return the workspace that a part is computed into. Raises ScheduleError where there is
    none."""
    kind, full = _kind(about, nest, place, occurrence)
    kept = len(nest.consumer) > len(about.part.variables) or kind is WorkspaceKind.MARKED
    if kind is WorkspaceKind.DENSE:
        _check_pattern(about, place, occurrence)
    dtype = _dtype(about, nest, place, kind)
    zero = not full or bool(nest.summed)
    ordered = not about.problem.result.format.is_dense and kind is not WorkspaceKind.MARKED
    return Workspace(
        about.part.name, about.indices, kind, dtype, ordered, zero, kept, about.part.variables
    )


def _kind(
    about: About, nest: Nest, place: Assign, occurrence: Occurrence
) -> tuple[WorkspaceKind, bool]:
    """Return how it is stored, and whether its producer comes to every coordinate."""
    if not about.indices:
        return WorkspaceKind.SCALAR, False
    fill = Assign(about.access, about.part.expression, ADD)
    producer = forall(nest.producer, fill)
    regions = Regions(all_iterators(about.problem, producer), frozenset())
    where = (regions.statement(producer, index) for index in about.indices)
    full = all(isinstance(region, Everything) for region in where)
    if full or _read_in_tiles(about, nest):
        return WorkspaceKind.DENSE, full
    if _meets_others(about, occurrence):
        looked_up = _is_looked_up(about, nest, place, occurrence)
        return WorkspaceKind.MARKED if looked_up else WorkspaceKind.DENSE, False
    return (WorkspaceKind.ROW if len(about.indices) == 1 else WorkspaceKind.HASH), False


def _is_looked_up(about: About, nest: Nest, place: Assign, occurrence: Occurrence) -> bool:
    """Tell whether entries of one index are looked for where other operands are walked: what is not
    there adds nothing, whatever the others are, and no coordinate is stored for it."""
    target = place.target
    stored = target == about.problem.assignment.target and not about.problem.result.format.is_dense
    return (
        len(about.indices) == 1
        and not nest.summed
        and restricts(occurrence.value, about.access)
        and not (stored and about.indices[0] in target.indices)
    )


def _read_in_tiles(about: About, nest: Nest) -> bool:
    """Tell whether the loops that read it are over tiles: a list of coordinates has none."""
    tiles = filter(about.provenance.is_derived, nest.consumer)
    return any(set(about.provenance.roots(v)) & set(about.indices) for v in tiles)


def _check_pattern(about: About, place: Assign, occurrence: Occurrence) -> None:
    """Raise ScheduleError where a sparse result would store what it did not store before."""
    target, form = about.problem.assignment.target, about.problem.result.format
    before = Regions(all_iterators(about.problem, about.whole), frozenset())
    after = Regions({**before.levels, about.access: {}}, frozenset())
    for level, mode in zip(form.levels, form.mode_order, strict=True):
        index = target.indices[mode]
        if level.full or index not in about.indices:
            continue
        few = is_full(before.expression(place.value, index))
        many = is_full(after.expression(occurrence.value, index))
        if many and not few:
            raise about.refusal(
                f"{target.tensor} would store every {index}, for what is left walks another "
                f"operand along {index} and the workspace has to be dense",
                "precompute the whole sum, or ask for a dense result",
            )


def _meets_others(about: About, occurrence: Occurrence) -> bool:
    """Tell whether what is left walks another sparse level along an index of the workspace, or goes
    on where it has nothing: a list's coordinates, or a table's, are met alone."""
    own = {w.name: w for w in workspaces_of(about.whole)}
    for access in accesses(occurrence.value):
        if access == about.access:
            continue
        if access.tensor in own:
            levels = workspace_levels(own[access.tensor])
        else:
            levels = sparse_levels(about.problem, access)
        if set(levels) & set(about.indices):
            return True
    levels = {index: region.Iterator(about.access, k) for k, index in enumerate(about.indices)}
    regions = Regions({about.access: levels}, frozenset())
    found = {index: regions.expression(occurrence.value, index) for index in levels}
    return found != {index: Coordinates(level) for index, level in levels.items()}


def _dtype(about: About, nest: Nest, place: Assign, kind: WorkspaceKind) -> str:
    """What the part is computed in. Raises ScheduleError where that is another type than that of
    what it is a part of, in which the numbers may be others.

    They are not where entries of an operand are looked up: merged with others, those with equal
    coordinates would be added up first in its own type too.
    """
    known = {name: np.dtype(kind.dtype) for name, kind in about.problem.operands}
    known |= {w.name: np.dtype(w.dtype) for w in workspaces_of(about.whole)}
    roots = (root for v in nest.summed for root in about.provenance.roots(v))
    whole = summed(about.part.expression, dict.fromkeys(roots))
    found = expression_dtype(whole, known)
    value = expression_dtype(place.value, known)
    exact = isinstance(about.part.expression, Access) and not nest.summed
    if found == value or (exact and kind is WorkspaceKind.MARKED):
        return found.name
    wraps = sum_wraps_alone(found, value)
    if wraps or not (exact or np.finfo(found).eps == np.finfo(value).eps):
        elsewhere = "wrap" if wraps else "be rounded"
        raise about.refusal(
            f"it is computed in {found}, and what it is a part of in {value}, so that it would "
            f"{elsewhere} elsewhere",
            "convert the operands to one type",
        )
    return found.name
