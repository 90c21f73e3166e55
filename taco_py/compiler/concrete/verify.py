"""The legality of concrete index notation, checked before every lowering.

Loops       no index is bound twice on one path, no index of a workspace is bound around it, and
            no parallel loop is inside another
Targets     an assignment goes to the result or, in the producer of a `where`, to its workspace
Values      they read operands, and workspaces in the consumers of their `where` alone; they have no
            reductions, and every index is bound
Operators   `=` meets every element once: the loops around it are those over the target's indices,
            and of a sequence it is the first part, to a dense result; the operator of an
            accumulation is associative and commutative, for loops may come in any order
Storage     the result's loops come first and in storage order, down to its last sparse level, and
            the parts of a sequence do not share a sparse level
Workspaces  a scalar has no index, a row one; names are used once, and by no tensor; scalar ones
            hold the side results of the problem, each inside the loops over its indices alone
"""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn, assert_never

from codegen.records import dataclass
from taco_py.compiler.concrete.concretize import can_scatter, result_indices, result_order
from taco_py.compiler.concrete.nodes import (
    INSIDE_BLOCKS,
    Assign,
    Forall,
    Sequence,
    Statement,
    Where,
    Workspace,
    WorkspaceKind,
)
from taco_py.compiler.concrete.printer import to_text
from taco_py.compiler.concrete.tree import workspaces_of
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Expr
from taco_py.language.notation.tree import all_reductions
from taco_py.language.problem import Problem
from taco_py.language.provenance.provenance import UNDERIVED, Provenance


def verify(problem: Problem, statement: Statement, provenance: Provenance = UNDERIVED) -> None:
    """Raise InternalError unless `statement` is a legal way to compute `problem`."""
    target = problem.assignment.target
    names = {name for name, _ in problem.operands} | {target.tensor}
    verifier = _Verifier(problem, statement, names, provenance)
    verifier.check(statement, _Place((), target, 0, True, frozenset(), False))
    stored = [
        workspace.stored for workspace in workspaces_of(statement) if workspace.stored is not None
    ]
    expected = [side.target for side in problem.side]
    verifier.require(
        sorted(map(str, stored)) == sorted(map(str, expected)), "side results are lost"
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """The context of a statement.

    bound     the indices of the outer loops, outermost first
    target    the target of assignments here
    outside   the number of loops around the `where` of the target
    first     whether `=` is still possible: nothing before it in a sequence
    readable  the workspaces that are filled
    parallel  whether one of these loops is parallel
    """

    bound: tuple[str, ...]
    target: Access
    outside: int
    first: bool
    readable: frozenset[Access]
    parallel: bool


@dataclass(frozen=True, slots=True)
class _Verifier:
    """One walk over a statement; `names` are those used so far."""

    problem: Problem
    statement: Statement
    names: set[str]
    provenance: Provenance

    def fail(self, message: str) -> NoReturn:
        raise InternalError(f"Illegal concrete notation: {message}\n{to_text(self.statement)}")

    def require(self, condition: bool, message: str) -> None:
        if not condition:
            self.fail(message)

    def check(self, statement: Statement, place: _Place) -> None:
        match statement:
            case Assign():
                self.assign(statement, place)
            case Forall(index, body, mode):
                self.require(index not in place.bound, f"a loop over {index} inside another")
                nested = mode.parallel is not None and place.parallel
                nested = nested and mode.unit not in INSIDE_BLOCKS
                self.require(not nested, f"the parallel loop over {index} inside another")
                parallel = mode.parallel is not None or place.parallel
                self.check(body, replace(place, bound=(*place.bound, index), parallel=parallel))
            case Where(workspace, consumer, producer):
                self.workspace(workspace, place)
                fill = replace(place, target=workspace.access, outside=len(place.bound), first=True)
                self.check(producer, fill)
                filled = place.readable | {workspace.access}
                self.check(consumer, replace(place, readable=filled))
            case Sequence(statements):
                self.sequence(place)
                dense = self.problem.result.format.is_dense
                first = place.first and dense and place.target == self.problem.assignment.target
                for number, part in enumerate(statements):
                    self.check(part, replace(place, first=first and number == 0))
            case _:
                assert_never(statement)

    def workspace(self, workspace: Workspace, place: _Place) -> None:
        name, indices = workspace.name, workspace.indices
        self.require(name not in self.names, f"two tensors are called {name}")
        self.names.add(name)
        outer = [i for i in indices if i in place.bound]
        self.require(not outer, f"the workspace {name} inside a loop over its own {outer}")
        self.require(len(set(indices)) == len(indices), f"the workspace {name} has an index twice")
        if workspace.stored is not None:
            self.require(not indices, f"{name} is stored element by element, and has indices")
            needs = {*workspace.stored.indices}
            loops = {root for v in place.bound for root in self.provenance.roots(v)}
            self.require(needs == loops, f"{name} is stored inside other loops than {needs}")
        fits = {
            WorkspaceKind.SCALAR: len(indices) == 0,
            WorkspaceKind.DENSE: len(indices) >= 1,
            WorkspaceKind.ROW: len(indices) == 1,
            WorkspaceKind.MARKED: len(indices) == 1,
            WorkspaceKind.HASH: len(indices) >= 1,
        }[workspace.kind]
        self.require(fits, f"{name} over {len(indices)} indices is a {workspace.kind.value}")

    def sequence(self, place: _Place) -> None:
        shared = place.target == self.problem.assignment.target
        scatters = can_scatter(self.problem, len(result_indices(self.problem, place.bound)))
        self.require(not shared or scatters, "a sequence that appends to one sparse level")

    # ------------------------------------------------------------ assignments

    def assign(self, assign: Assign, place: _Place) -> None:
        target, bound = assign.target, place.bound
        self.require(
            target == place.target, f"{_name(target)} is assigned, not {_name(place.target)}"
        )
        unbound = [i for i in target.indices if i not in bound]
        self.require(not unbound, f"{_name(target)} is assigned outside loops over {unbound}")
        self.operator(assign, place)
        self.value(assign.value, place)
        if target == self.problem.assignment.target:
            self.storage_order(bound)

    def operator(self, assign: Assign, place: _Place) -> None:
        operator, name = assign.operator, _name(assign.target)
        if operator is not None:
            fits = operator.associative and operator.commutative
            self.require(fits, f"{name} accumulates by {operator}, whose order matters")
            return
        self.require(place.first, f"{name} is assigned by a later part of a sequence")
        inside = {root for v in place.bound[place.outside :] for root in self.provenance.roots(v)}
        summed = inside - set(assign.target.indices)
        if summed:
            self.fail(f"{name} is overwritten in a loop over {sorted(summed)}")

    def value(self, value: Expr, place: _Place) -> None:
        sums = [*all_reductions(value)]
        self.require(not sums, "a value with a reduction in it")
        operands = dict(self.problem.operands)
        for access in accesses(value):
            readable = access in place.readable or (
                access.tensor in operands
                and len(access.indices) == operands[access.tensor].format.order
            )
            self.require(readable, f"{_name(access)} is read where it is no operand and not filled")
            unbound = [i for i in access.indices if i not in place.bound]
            self.require(not unbound, f"{_name(access)} is read outside loops over {unbound}")
            twice = len(set(access.indices)) < len(access.indices)
            self.require(not twice, f"{_name(access)} has an index twice")

    def storage_order(self, bound: tuple[str, ...]) -> None:
        levels = self.problem.result.format.levels
        sparse = [depth for depth, level in enumerate(levels) if not level.full]
        depth = max(sparse, default=-1) + 1
        expected = result_order(self.problem)[:depth]
        loops = tuple(v for v in bound if not self.provenance.is_derived(v))
        if loops[:depth] != expected:
            self.fail(f"the result is appended to in the order {bound[:depth]}, not {expected}")


def _name(access: Access) -> str:
    return f"{access.tensor}[{','.join(access.indices)}]"
