"""Whether a value is stored where a sparse result, or a row of one, would list its coordinate.

    y[i] = t * s[i]   where   t += A[i,k] * u[k]            y, A and u are sparse

    t_any = false
    for k in A ∩ u …  { t += …;  t_any = true }
    if (t_any) { y[p] = t * s[p];  append i }

What is stored is a function of the operands' patterns alone: a product is where all of its factors
are, a sum where one of its terms is, a reduction where one of its elements is. A value is there
where its region at no index is everything, with marks in the place of sums that may have no term.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Iterator as Iterable
from dataclasses import replace
from typing import assert_never

from codegen import build
from codegen.ir import FALSE, TRUE, Var
from codegen.ir import Expr as LoopExpr
from codegen.records import dataclass
from codegen.types import BOOL
from taco_py.compiler.concrete.nodes import Assign, Forall, Statement, Where
from taco_py.compiler.concrete.nodes import Sequence as Both
from taco_py.compiler.concrete.tree import assignments, foralls, walk
from taco_py.compiler.iteration.lattice import build_lattice, is_full
from taco_py.compiler.iteration.region import Coordinates, Iterator, Region, Regions
from taco_py.compiler.lower.absent_sums import has_met_term, has_terms
from taco_py.compiler.lower.environment import Environment, Scope
from taco_py.compiler.lower.expressions import lower_value
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.legal.absent import arg_fill, call_fill, differing, operator_of, same
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import KEPT, Number, Operator


def lists(env: Environment, tensor: str) -> bool:
    """Tell whether to add to a workspace enters a coordinate, or says that something is stored."""
    arrays = env.workspaces.get(tensor)
    return arrays is not None and (
        arrays.list is not None
        or arrays.table is not None
        or arrays.present is not None
        or arrays.stored is not None
    )


def presence(
    env: Environment,
    scope: Scope,
    value: Expr,
    nothing: Number,
    marked: bool = False,
    fill: Number | None = None,
) -> LoopExpr:
    """Return whether a value is another than `nothing` by what is stored; true where it always is.

    a[i] * t + b[i] * u  →  t_any || u_any      of entries of a and b
    kept(a[i], m[i])     →  m[i]

    marked  entries that are looked for in rows are there
    fill    what elements are that a result does not store; None where that is not asked
    """

    def workspace(access: Access) -> LoopExpr:
        arrays = env.workspaces.get(access.tensor)
        if arrays is None:
            return TRUE
        if arrays.workspace.is_marked and arrays.marks is not None:
            mark = build.load(arrays.marks, env.indices[access.indices[0]])
            return TRUE if marked else mark
        if arrays.term is not None and has_met_term(scope, arrays.term, value):
            return TRUE
        return TRUE if arrays.present is None else arrays.present

    def condition(expr: Expr) -> LoopExpr:
        return lower_value(env, scope, expr, BOOL)

    regions = scope.regions(env)
    own = {each: _mark(each) for each in accesses(value) if workspace(each) != TRUE}
    regions = replace(regions, made={**regions.made, **own})
    asking = _Asking(regions, workspace, condition, fill)
    return asking.other_than(value, nothing)


def _mark(access: Access) -> Region:
    return Coordinates(Iterator(access, -1))


@dataclass(frozen=True, slots=True, eq=False)
class _Asking:
    """Whether expressions have values of their own, at coordinates that loops have reached.

    regions    fill values of what may be absent
    workspace  whether a workspace has an element here
    condition  a condition on values
    unlisted   what elements are that are not stored; None where any number may be
    """

    regions: Regions
    workspace: Callable[[Access], LoopExpr]
    condition: Callable[[Expr], LoopExpr]
    unlisted: Number | None = None

    def other_than(self, expr: Expr, nothing: Number) -> LoopExpr:
        """Return whether an expression is stored where `nothing` is not."""
        fill = self.fill(expr)
        return self.stored(expr) if fill is None or same(fill, nothing) else TRUE

    def fill(self, expr: Expr) -> Number | None:
        """Return what an expression is where nothing is stored of it; where a condition is false
        nothing is."""
        match expr:
            case Call(operator) if operator.condition is not None:
                return 0
            case Call(_, args):
                operator = operator_of(expr)
                return call_fill(operator, self._fills(operator, args))
        return self.regions.fill(expr)

    def _fills(self, operator: Operator, args: Sequence[Expr]) -> list[Number | None]:
        return [arg_fill(operator, arg, self.fill(arg)) for arg in args]

    def stored(self, expr: Expr) -> LoopExpr:
        """Return whether an expression has another value than its fill by what is stored."""
        match expr:
            case Access():
                return FALSE if expr in self.regions.absent else self.workspace(expr)
            case Literal():
                return FALSE
            case Call(operator, args) if operator.everywhere:
                return TRUE
            case Call(_, args):
                operator = operator_of(expr)
                fills = self._fills(operator, args)
                if call_fill(operator, fills) is None and None not in fills:
                    return TRUE
                groups = differing(operator, fills)
                found = [self._any([args[k] for k in group], operator) for group in groups]
                if operator.condition is not None:
                    return self._under(expr, found)
                return _all(found)
            case Reduce():
                raise InternalError("A reduction was left in concrete index notation")
            case _:
                assert_never(expr)

    def _under(self, expr: Call, found: list[LoopExpr]) -> LoopExpr:
        """Return whether a value under a condition is stored.

        Where the condition of `kept` is false it is 0, which has to be stored if elements that are
        not are another number; the other number of `selected` is what is absent.
        """
        assert expr.operator.condition is not None
        listed = self.unlisted is not None and expr.operator == KEPT and self.unlisted != 0
        if FALSE in found and not listed:
            return FALSE
        condition = self.condition(expr.args[expr.operator.condition])
        if listed:
            return build.or_(build.not_(condition), _all(found))
        return _all([*found, condition])

    def _any(self, args: Sequence[Expr], operator: Operator) -> LoopExpr:
        parts = [self._argument(arg, operator) for arg in args]
        asked = [each for each in dict.fromkeys(parts) if each != FALSE]
        return TRUE if TRUE in asked else build.or_(*asked)

    def _argument(self, arg: Expr, operator: Operator) -> LoopExpr:
        fill = self.fill(arg)
        counts = fill is not None and arg_fill(operator, arg, fill) is None
        return TRUE if counts else self.stored(arg)


def _all(parts: Sequence[LoopExpr]) -> LoopExpr:
    asked = [each for each in dict.fromkeys(parts) if each != TRUE]
    return FALSE if FALSE in asked else build.and_(*asked)


def is_certain(env: Environment, scope: Scope, statement: Statement, target: Access) -> bool:
    """Tell whether a statement stores an element of a target whatever sparse operands store."""
    return _is_certain(env, scope, statement, target, frozenset())


def _is_certain(
    env: Environment, scope: Scope, statement: Statement, target: Access, unsure: frozenset[Access]
) -> bool:
    """unsure  the sums of the statement that may have no term"""
    match statement:
        case Assign(into, value):
            nothing = env.initial.get(into.tensor, 0)
            return into == target and _is_always(env, scope, value, nothing, unsure)
        case Forall(index, body):
            made = {each: _mark(each) for each in unsure}
            regions = replace(scope.regions(env), made=made)
            below = scope.within(index, frozenset())
            all_met = is_full(regions.statement(body, index))
            return all_met and _is_certain(env, below, body, target, unsure)
        case Where(workspace, consumer, _):
            if workspace.lists_coordinates:
                return False
            if not has_terms(env, statement, scope):
                unsure |= {workspace.access}
            return _is_certain(env, scope, consumer, target, unsure)
        case Both(statements):
            return any(_is_certain(env, scope, each, target, unsure) for each in statements)
        case _:
            assert_never(statement)


def _is_always(
    env: Environment, scope: Scope, value: Expr, nothing: Number, unsure: frozenset[Access]
) -> bool:
    """Tell whether a value is stored whatever sums have no term and whatever conditions are."""
    maybe = Var("maybe", BOOL)

    def workspace(access: Access) -> LoopExpr:
        arrays = env.workspaces.get(access.tensor)
        if access in unsure or arrays is None:
            return maybe if access in unsure else TRUE
        if arrays.term is not None and has_met_term(scope, arrays.term, value):
            return TRUE
        marked = arrays.workspace.is_marked
        return maybe if marked or arrays.present is not None else TRUE

    regions = scope.regions(env)
    own = {each: _mark(each) for each in accesses(value) if workspace(each) != TRUE}
    asking = _Asking(replace(regions, made={**regions.made, **own}), workspace, lambda _: maybe)
    return asking.other_than(value, nothing) == TRUE


def value_assigned(statement: Statement, target: Access) -> Assign | None:
    """Find the one assignment to a target that a statement ends with, no loop around it.

    y[i] = t * u where t = … where u = …  →  y[i] = t * u
    """
    while isinstance(statement, Where):
        statement = statement.consumer
    one = isinstance(statement, Assign) and statement.target == target
    return statement if one and isinstance(statement, Assign) and not statement.operator else None


def is_told_by_loops(env: Environment, scope: Scope, producer: Statement) -> bool:
    """Tell whether loops that add up say best themselves whether they add anything.

    Those that walk one operand each are asked apart, for they add up in lanes: whether a row has an
    entry is known by where it begins and ends. Those that look for entries in rows do not.
    """
    regions = scope.regions(env)
    loops = tuple(foralls(producer))
    if any(loop.parallel for loop in loops):
        return False
    read = [access for each in assignments(producer) for access in accesses(each.value)]
    arrays = (env.workspaces.get(access.tensor) for access in read)
    if any(each is not None and each.marks is not None for each in arrays):
        return True
    lattices = (build_lattice(regions.statement(each.body, each.index)) for each in loops)
    merges = any(len(lattice.iterators) > 1 for lattice in lattices)
    return merges or any(isinstance(each, Where) for each in walk(producer))


def read_by(statement: Statement, access: Access) -> Iterable[Assign]:
    """Find the assignments of a statement that read a workspace."""
    return (each for each in assignments(statement) if access in accesses(each.value))
