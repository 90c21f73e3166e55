"""Fission and fusion of loops: one loop around several statements, or one around each.

    forall i (S; T)                  ⇄  forall i S; forall i T
    forall i y[i] = a[i] + b[i]      →  forall i y[i] += a[i]; forall i y[i] += b[i]
    forall i where(S, T fills w)     ⇄  where(forall i S, forall i T fills w over i as well)

The terms of a sum that is assigned to a dense result, which is zero before, are such statements;
leading terms over the same coordinates stay together. The result is rounded as before.

Statements of a sequence add to the same tensor, so their loops may run one after another or
together. The workspace of a `where` for one i becomes a workspace for all of them, with one more
index. (Kjolstad et al. 2019, Tensor Algebra Compilation with Workspaces, section 4.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Iterator as Iterate
from dataclasses import replace
from itertools import takewhile
from typing import assert_never

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.concrete.concretize import can_scatter, result_indices
from taco_py.compiler.concrete.nodes import (
    Assign,
    Forall,
    Sequence,
    Statement,
    Where,
    Workspace,
    WorkspaceKind,
)
from taco_py.compiler.concrete.terms import Term, terms_in_turn
from taco_py.compiler.concrete.tree import assignments, read_in, workspaces_of
from taco_py.compiler.iteration.graph import all_iterators
from taco_py.compiler.iteration.region import Coordinates, Everything, Iterator, Regions
from taco_py.compiler.schedule.refused import refused
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Call, Expr
from taco_py.language.notation.operators import ADD, SUB
from taco_py.language.notation.tree import map_accesses
from taco_py.language.problem import Problem
from taco_py.language.provenance.provenance import Provenance

Outer = tuple[str, ...]
Rule = Callable[[Statement, Outer], Statement | None]


def fission(
    problem: Problem, provenance: Provenance, statement: Statement, variable: str
) -> Statement:
    """Return the statement with one loop over `variable` around each statement inside it. Raises
    ScheduleError."""
    maker = _Distribution(problem, provenance, statement, variable)
    split = maker.first(statement, (), maker.split_loop)
    if split is None:
        raise maker.refusal(
            "fission",
            f"no loop over {variable} is right around several statements",
            "it takes apart a loop right around terms that are added up, or around a workspace",
        )
    return split


def loop_fuse(
    problem: Problem, provenance: Provenance, statement: Statement, variable: str
) -> Statement:
    """Return the statement with one loop over `variable` around statements with one each. Raises
    ScheduleError."""
    maker = _Distribution(problem, provenance, statement, variable)
    fused = maker.first(statement, (), maker.fuse)
    if fused is None:
        raise maker.refusal(
            "loopfuse",
            f"no two loops over {variable} follow each other",
            f"reorder so that {variable} is outermost in several terms, or precompute over it",
        )
    return fused


@dataclass(frozen=True, slots=True)
class _Distribution:
    """The facts that every step needs."""

    problem: Problem
    provenance: Provenance
    full: Statement
    variable: str

    def refusal(self, command: str, reason: str, hint: str) -> ScheduleError:
        return refused(f"{command}({self.variable})", reason, hint)

    def is_selected(self, statement: Statement, outer: Outer) -> bool:
        return (
            isinstance(statement, Forall)
            and self.provenance.leaf(statement.index, outer) == self.variable
        )

    def first(self, statement: Statement, outer: Outer, rule: Rule) -> Statement | None:
        """Return the statement with the outermost first part that `rule` changes, changed."""
        result = rule(statement, outer)
        if result is not None:
            return result
        match statement:
            case Assign():
                return None
            case Forall(index, body):
                inner = self.first(body, (*outer, self.provenance.leaf(index, outer)), rule)
                return None if inner is None else replace(statement, body=inner)
            case Where(workspace, consumer, producer):
                inner = self.first(consumer, outer, rule)
                if inner is not None:
                    return Where(workspace, inner, producer)
                inner = self.first(producer, outer, rule)
                return None if inner is None else Where(workspace, consumer, inner)
            case Sequence(statements):
                for number, part in enumerate(statements):
                    inner = self.first(part, outer, rule)
                    if inner is not None:
                        return Sequence((*statements[:number], inner, *statements[number + 1 :]))
                return None
            case _:
                assert_never(statement)

    # ------------------------------------------------------------ apart

    def split_loop(self, statement: Statement, outer: Outer) -> Statement | None:
        """Return `forall i` around several statements → one around each."""
        if not isinstance(statement, Forall) or not self.is_selected(statement, outer):
            return None
        index = statement.index
        match statement.body:
            case Sequence(statements):
                self.check_adding(statement, outer)
                return Sequence(tuple(Forall(index, part) for part in statements))
            case Assign(target, _, None) if target == self.problem.assignment.target:
                values = addends(self.problem, self.full, statement.body, index)
                if len(values) == 1:
                    return None
                self.check_adding(statement, outer)
                additions = (Assign(target, value, ADD) for value in values)
                return Sequence(tuple(Forall(index, part) for part in additions))
            case Where(workspace, consumer, producer):
                if self.provenance.is_derived(index):
                    return None
                wider = self.wider(workspace, index, statement.body)
                access = wider.access
                return Where(
                    wider,
                    Forall(index, _reading(consumer, workspace, access)),
                    Forall(index, _reading(producer, workspace, access)),
                )
        return None

    def check_adding(self, loop: Forall, outer: Outer) -> None:
        """Raise ScheduleError where the statements append to a result, which only one loop can
        do."""
        target = self.problem.assignment.target
        if not any(a.target.tensor == target.tensor for a in assignments(loop.body)):
            return
        bound = tuple(i for i in outer if i in target.indices)
        if not can_scatter(self.problem, len(result_indices(self.problem, bound))):
            raise self.refusal(
                "fission",
                f"{target.tensor} is appended to, which its terms cannot do one after another",
                "ask for a dense result",
            )

    def wider(self, workspace: Workspace, index: str, body: Where) -> Workspace:
        """Return the workspace with `index` as its first index."""
        regions = Regions(all_iterators(self.problem, self.full), frozenset())
        full = isinstance(regions.statement(body.producer, index), Everything)
        indices = (index, *workspace.indices)
        variables = (self.variable, *(workspace.variables or workspace.indices))
        wide = replace(workspace, indices=indices, variables=variables, zero=True, reread=False)
        if not workspace.lists_coordinates:
            if full or self.meets_others(body, wide) or workspace.indices:
                return replace(wide, kind=WorkspaceKind.DENSE)
            return replace(wide, kind=WorkspaceKind.ROW, ordered=True)
        if workspace.is_marked or self.meets_others(body, wide):
            raise self.refusal(
                "fission",
                f"the workspace {workspace.name} would be sparse over {', '.join(indices)} and is "
                f"read together with other coordinates of {index}",
                "leave the loop whole",
            )
        return replace(wide, kind=WorkspaceKind.HASH, ordered=True)

    def meets_others(self, body: Where, wide: Workspace) -> bool:
        """Tell whether the consumer also visits coordinates of `index` that the workspace lacks."""
        index = wide.indices[0]
        inside = {w.name for w in workspaces_of(body)}
        if any(index in a.indices for a in read_in(body.consumer) if a.tensor not in inside):
            return True
        level = Iterator(wide.access, 0)
        consumer = _reading(body.consumer, body.workspace, wide.access)
        regions = Regions({wide.access: {index: level}}, frozenset())
        return regions.statement(consumer, index) != Coordinates(level)

    # ------------------------------------------------------------ together

    def fuse(self, statement: Statement, outer: Outer) -> Statement | None:
        """Return adjacent loops → one around both statements."""
        match statement:
            case Sequence(statements):
                return self.fuse_terms(statements, outer)
            case Where(workspace, Forall() as consumer, Forall() as producer):
                if not (self.is_selected(consumer, outer) and self.is_selected(producer, outer)):
                    return None
                self.check_alike((consumer, producer))
                return self.fuse_where(workspace, consumer, producer)
        return None

    def fuse_terms(self, statements: tuple[Statement, ...], outer: Outer) -> Statement | None:
        candidates = [s for s in statements if self.is_selected(s, outer)]
        loops = [s for s in candidates if isinstance(s, Forall)]
        if len(loops) < 2:
            return None
        index = self.check_alike(loops)
        self.check_unique(index, loops)
        place = statements.index(loops[0])
        fused = Forall(index, Sequence(tuple(_flat(loop.body for loop in loops))))
        rest = [s for s in statements if s not in loops]
        parts = (*rest[:place], fused, *rest[place:])
        return parts[0] if len(parts) == 1 else Sequence(parts)

    def check_alike(self, loops: Iterable[Forall]) -> str:
        """Return the index of all loops. Raises ScheduleError where a fused variable goes
        through its indices in different orders."""
        first, *rest = dict.fromkeys(loop.index for loop in loops)
        if rest:
            raise self.refusal(
                "loopfuse",
                f"the loops over {self.variable} are over {first} in one place and over "
                f"{rest[0]} in another, and so come to the elements in different orders",
                "reorder the indices alike before they are fused",
            )
        return first

    def check_unique(self, index: str, loops: list[Forall]) -> None:
        """Raise ScheduleError where a term visits a coordinate more than once."""
        for access in {a for loop in loops for a in read_in(loop) if index in a.indices}:
            if access.tensor not in dict(self.problem.operands):
                continue
            form = self.problem.type_of(access.tensor).format
            level = form.mode_order.index(access.indices.index(index))
            if not all(above.unique for above in form.levels[: level + 1]):
                raise self.refusal(
                    "loopfuse",
                    f"{access.tensor} may have a coordinate of {index} more than once",
                    "convert the operand to a format without duplicates",
                )

    def fuse_where(self, workspace: Workspace, consumer: Forall, producer: Forall) -> Statement:
        index = consumer.index
        if index not in workspace.indices:
            raise self.refusal(
                "loopfuse",
                f"the workspace {workspace.name} is complete only after all {index}",
                f"precompute over {index} too, so that there is an element for each",
            )
        indices = tuple(i for i in workspace.indices if i != index)
        variables = tuple(v for v in workspace.variables if v != self.variable)
        narrow = replace(
            workspace, indices=indices, variables=variables, kind=_narrower(workspace, indices)
        )
        body = Where(
            narrow,
            _reading(consumer.body, workspace, narrow.access),
            _reading(producer.body, workspace, narrow.access),
        )
        return Forall(index, body)


def addends(problem: Problem, full: Statement, assign: Assign, index: str) -> tuple[Expr, ...]:
    """Return the values that separate loops over `index` for the terms of `assign` add up in turn.

    It is the value alone where that is no sum, or a sum of another type than the result.
    """
    dtypes = {name: np.dtype(type.dtype) for name, type in problem.operands}
    dtypes |= {w.name: np.dtype(w.dtype) for w in workspaces_of(full)}
    dtype = np.dtype(problem.result.dtype)
    terms = terms_in_turn(assign.value, lambda sum_: expression_dtype(sum_, dtypes) == dtype)
    regions = Regions(all_iterators(problem, full), frozenset())
    first, *rest = terms
    first_region = regions.expression(first.body, index)

    def is_leading(term: Term) -> bool:
        return regions.expression(term.body, index) == first_region

    value = first.signed(dtype.name)
    leading = tuple(takewhile(is_leading, rest))
    for term in leading:
        value = Call(SUB if term.negative else ADD, (value, term.body))
    return (value, *(term.signed(dtype.name) for term in rest[len(leading) :]))


def _narrower(workspace: Workspace, indices: tuple[str, ...]) -> WorkspaceKind:
    if not indices:
        return WorkspaceKind.SCALAR
    if workspace.is_table and len(indices) == 1:
        return WorkspaceKind.ROW
    return workspace.kind


def _flat(statements: Iterable[Statement]) -> Iterate[Statement]:
    for part in statements:
        if isinstance(part, Sequence):
            yield from part.statements
        else:
            yield part


def _reading(statement: Statement, old: Workspace, new: Access) -> Statement:
    """Return the statement with the workspace `old` at the indices of `new`."""

    def access(read: Access) -> Access:
        return new if read.tensor == old.name else read

    match statement:
        case Assign(target, value):
            return replace(statement, target=access(target), value=map_accesses(value, access))
        case Forall(_, body):
            return replace(statement, body=_reading(body, old, new))
        case Where(workspace, consumer, producer):
            return Where(workspace, _reading(consumer, old, new), _reading(producer, old, new))
        case Sequence(statements):
            return Sequence(tuple(_reading(part, old, new) for part in statements))
        case _:
            assert_never(statement)
