"""Whether a value is stored where a sparse result, or a row of one, would list its coordinate.

    y[i] = t * s[i]   where   t += A[i,k] * u[k]            y, A and u are sparse

    t_any = false
    for k in A ∩ u …  { t += …;  t_any = true }
    if (t_any) { y[p] = t * s[p];  append i }

The pattern of a value is a function of the operands' patterns alone: a product is stored where all
of its factors are, a sum where one of its terms is, a reduction where one of its elements is. The
value may be absent where its region at no index is everything, with marks for sums without terms.
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
from taco_py.compiler.concrete.nodes import Sequence as Statements
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
from taco_py.language.notation.operators import KEEP, Number, Operator


def lists(env: Environment, tensor: str) -> bool:
    """Tell whether an addition to a workspace inserts a coordinate, or sets a flag."""
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
    """Return the condition under which a value is stored, and differs from `nothing`.

    a[i] * t + b[i] * u  →  t_any || u_any      of entries of a and b
    kept(a[i], m[i])     →  m[i]

    marked  whether entries that are looked up in rows are known to be stored
    fill    the value of elements that a result does not store; None where that does not matter
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
    marks = {operand: _mark(operand) for operand in accesses(value) if workspace(operand) != TRUE}
    regions = replace(regions, scalars={**regions.scalars, **marks})
    conditions = _Conditions(regions, workspace, condition, fill)
    return conditions.other_than(value, nothing)


def _mark(access: Access) -> Region:
    return Coordinates(Iterator(access, -1))


@dataclass(frozen=True, slots=True, eq=False)
class _Conditions:
    """Conditions under which expressions are stored, at the coordinates of the current loops.

    regions    fill values of accesses that may be absent
    workspace  whether a workspace has an element here
    condition  a condition on values
    unlisted   the value of elements that are not stored; None where it may be any number
    """

    regions: Regions
    workspace: Callable[[Access], LoopExpr]
    condition: Callable[[Expr], LoopExpr]
    unlisted: Number | None = None

    def other_than(self, expr: Expr, nothing: Number) -> LoopExpr:
        """Return the condition under which an expression is stored, and `nothing` is not."""
        fill = self.fill(expr)
        return self.stored(expr) if fill is None or same(fill, nothing) else TRUE

    def fill(self, expr: Expr) -> Number | None:
        """Return the value of an expression where it is not stored; 0 where a condition is
        false."""
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
        """Return the condition under which an expression may differ from its fill value."""
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
                conditions = [self._any([args[k] for k in group], operator) for group in groups]
                if operator.condition is not None:
                    return self._under(expr, conditions)
                return _all(conditions)
            case Reduce():
                raise InternalError("A reduction was left in concrete index notation")
            case _:
                assert_never(expr)

    def _under(self, expr: Call, conditions: list[LoopExpr]) -> LoopExpr:
        """Return the condition under which a conditional value is stored.

        Where the condition of `kept` is false it is 0, which has to be stored if absent elements
        are another number; the other number of `selected` is the value of absent elements.
        """
        assert expr.operator.condition is not None
        stores_zero = self.unlisted is not None and expr.operator == KEEP and self.unlisted != 0
        if FALSE in conditions and not stores_zero:
            return FALSE
        condition = self.condition(expr.args[expr.operator.condition])
        if stores_zero:
            return build.or_(build.not_(condition), _all(conditions))
        return _all([*conditions, condition])

    def _any(self, args: Sequence[Expr], operator: Operator) -> LoopExpr:
        parts = [self._argument(arg, operator) for arg in args]
        conditions = [part for part in dict.fromkeys(parts) if part != FALSE]
        return TRUE if TRUE in conditions else build.or_(*conditions)

    def _argument(self, arg: Expr, operator: Operator) -> LoopExpr:
        fill = self.fill(arg)
        counts = fill is not None and arg_fill(operator, arg, fill) is None
        return TRUE if counts else self.stored(arg)


def _all(parts: Sequence[LoopExpr]) -> LoopExpr:
    conditions = [part for part in dict.fromkeys(parts) if part != TRUE]
    return FALSE if FALSE in conditions else build.and_(*conditions)


def is_certain(env: Environment, scope: Scope, statement: Statement, target: Access) -> bool:
    """Tell whether a statement stores an element of a target whatever sparse operands store."""
    return _is_certain(env, scope, statement, target, frozenset())


def _is_certain(
    env: Environment, scope: Scope, statement: Statement, target: Access, unsure: frozenset[Access]
) -> bool:
    """Tell whether a statement stores an element of a target, even if some sums have no term."""
    match statement:
        case Assign(into, value):
            nothing = env.initial.get(into.tensor, 0)
            return into == target and _is_always(env, scope, value, nothing, unsure)
        case Forall(index, body):
            scalars = {part: _mark(part) for part in unsure}
            regions = replace(scope.regions(env), scalars=scalars)
            below = scope.inside_loop(index, frozenset())
            all_met = is_full(regions.statement(body, index))
            return all_met and _is_certain(env, below, body, target, unsure)
        case Where(workspace, consumer, _):
            if workspace.lists_coordinates:
                return False
            if not has_terms(env, statement, scope):
                unsure |= {workspace.access}
            return _is_certain(env, scope, consumer, target, unsure)
        case Statements(statements):
            return any(_is_certain(env, scope, part, target, unsure) for part in statements)
        case _:
            assert_never(statement)


def _is_always(
    env: Environment, scope: Scope, value: Expr, nothing: Number, unsure: frozenset[Access]
) -> bool:
    """Tell whether a value is stored even if sums have no term and conditions are false."""
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
    marks = {operand: _mark(operand) for operand in accesses(value) if workspace(operand) != TRUE}
    conditions = _Conditions(
        replace(regions, scalars={**regions.scalars, **marks}), workspace, lambda _: maybe
    )
    return conditions.other_than(value, nothing) == TRUE


def value_assigned(statement: Statement, target: Access) -> Assign | None:
    """Find the one assignment to a target that a statement ends with, outside of loops.

    y[i] = t * u where t = … where u = …  →  y[i] = t * u
    """
    while isinstance(statement, Where):
        statement = statement.consumer
    one = isinstance(statement, Assign) and statement.target == target
    return statement if one and isinstance(statement, Assign) and not statement.operator else None


def loops_set_flag(env: Environment, scope: Scope, producer: Statement) -> bool:
    """Tell whether the loops that add up should also set the flag that they add something.

    Loops over a single operand should not, for they add up in lanes: whether a row has an entry
    follows from its bounds. Loops that look for entries in rows should.
    """
    regions = scope.regions(env)
    loops = tuple(foralls(producer))
    if any(loop.parallel for loop in loops):
        return False
    read = [access for assign in assignments(producer) for access in accesses(assign.value)]
    arrays = (env.workspaces.get(access.tensor) for access in read)
    if any(array is not None and array.marks is not None for array in arrays):
        return True
    lattices = (build_lattice(regions.statement(loop.body, loop.index)) for loop in loops)
    merges = any(len(lattice.iterators) > 1 for lattice in lattices)
    return merges or any(isinstance(part, Where) for part in walk(producer))


def read_by(statement: Statement, access: Access) -> Iterable[Assign]:
    """Find the assignments of a statement that read a workspace."""
    return (assign for assign in assignments(statement) if access in accesses(assign.value))
