"""A nest in the order of a schedule, as loop IR.

    S(i) -> [i/32, i], i in 0..N      ->      for i_tile in 0..(N + 31) / 32:
                                                for i in 32 * i_tile..min(N, 32 * i_tile + 32):
                                                  S(i)

ISL finds the loops, their bounds and the conditions (Grosser, Verdoolaege, Cohen 2015); all are
computed in 64 bits. A schedule is assumed to be legal: `legality` checks it, and whether a loop may
be tagged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from codegen.build import (
    add,
    and_,
    block,
    const,
    div,
    eq,
    if_,
    le,
    lt,
    maximum,
    minimum,
    mod,
    mul,
    or_,
    select,
    sub,
)
from codegen.ir import Binary, Block, Expr, For, LoopKind, Stmt, Var
from codegen.names import Names
from codegen.records import dataclass
from codegen.variables import declared_vars
from polyhedral.band_schedule import Schedule, Tag
from polyhedral.errors import NestError, PolyhedralError
from polyhedral.isl.limits import BUDGET, limited
from polyhedral.isl.scan import expression_kind, node_kind, operator_name, scan
from polyhedral.model import Nest, Statement
from polyhedral.nests.waves import along_diagonals, by_tiles

if TYPE_CHECKING:
    import islpy

Body = Callable[[Mapping[str, Expr]], Stmt]
"""A statement of the nest as loop IR, from the values of its loops."""

_KINDS = {
    Tag.SERIAL: LoopKind.SERIAL,
    Tag.PARALLEL: LoopKind.PARALLEL,
    Tag.WAVE: LoopKind.SERIAL,
    Tag.VECTOR: LoopKind.VECTOR,
}


def to_loops(
    nest: Nest,
    schedule: Schedule,
    bodies: Mapping[str, Body],
    parameters: Mapping[str, Expr] | None = None,
    budget: int = BUDGET,
    reserved: Iterable[str] = (),
) -> Block:
    """Return loops that run `bodies`, by statement name, in the order of `schedule`.

    `parameters` are by default int64 variables of the same names. Loops have the names of their
    rows, with a number where that name is one of `reserved`, or that of an outer loop. Raises
    BudgetExceededError, and NestError where a statement has no body or no place in `schedule`.
    """
    places = dict(schedule.rows)
    for name in (statement.name for statement in nest.statements):
        if name not in bodies or name not in places:
            what = "body" if name in places else "row of the schedule"
            raise NestError(f"Expected a {what} for each statement, found none for {name}.")
    arguments = {name: Var(name) for name in nest.parameters} | dict(parameters or {})
    values = {f"p{place}": arguments[name] for place, name in enumerate(nest.parameters)}
    sizes = (value.name for value in arguments.values() if isinstance(value, Var))
    scope = _Scope(nest, bodies, values, frozenset((*reserved, *sizes)))
    with limited(budget) as context:
        return block(_statement(scan(context, nest, by_tiles(schedule)), scope))


@dataclass(frozen=True, slots=True)
class _Scope:
    """The state at a node of ISL's tree: values by ISL's names, names in use, the mark above."""

    nest: Nest
    bodies: Mapping[str, Body]
    values: Mapping[str, Expr]
    used: frozenset[str]
    mark: str = "c:serial:0"

    def fresh(self) -> str:
        return Names(self.used).fresh(self.mark.split(":")[0])

    def names(self, body: Block) -> Callable[[str], Var]:
        """Return a function that makes variables with names unused here and inside `body`."""
        names = Names({*self.used, *(var.name for var in declared_vars(body))})
        return lambda name: Var(names.fresh(name))

    def inside(self, iterator: str, value: Expr) -> _Scope:
        names = {value.name} if isinstance(value, Var) else set()
        values = {**self.values, iterator: value}
        return replace(self, values=values, used=self.used | names)


# ---------------------------------------------------------------- statements


def _statement(node: islpy.AstNode, scope: _Scope) -> Stmt:
    match node_kind(node):
        case "for_":
            return _loop(node, scope)
        case "if_":
            orelse = _statement(node.if_get_else_node(), scope) if node.if_has_else_node() else None
            condition = _expression(node.if_get_cond(), scope)
            return if_(condition, _statement(node.if_get_then_node(), scope), orelse)
        case "block":
            children = node.block_get_children()
            parts = [children.get_at(place) for place in range(children.n_ast_node())]
            return block(*(_statement(part, scope) for part in parts))
        case "mark":
            marked = replace(scope, mark=node.mark_get_id().get_name())
            return _statement(node.mark_get_node(), marked)
        case "user":
            return _instance(node.user_get_expr(), scope)
        case other:
            raise PolyhedralError(f"Expected a statement of ISL's tree, found {other}.")


def _loop(node: islpy.AstNode, scope: _Scope) -> Stmt:
    iterator = node.for_get_iterator().get_id().get_name()
    start = _expression(node.for_get_init(), scope)
    if node.for_is_degenerate():
        return _statement(node.for_get_body(), scope.inside(iterator, start))
    var = Var(scope.fresh())
    inner = scope.inside(iterator, var)
    body = block(_statement(node.for_get_body(), inner))
    stop = _stop(node.for_get_cond(), inner)
    step = int(node.for_get_inc().get_val().to_python())
    _, tag, unroll = scope.mark.split(":")
    loop = For(var, start, stop, body, step, _KINDS[Tag(tag)], unroll=int(unroll))
    return along_diagonals(loop, inner.names(body)) if Tag(tag) is Tag.WAVE else loop


def _stop(condition: islpy.AstExpr, scope: _Scope) -> Expr:
    """Return the end of `iterator < end` or `iterator <= end - 1`."""
    end = _expression(condition.get_op_arg(1), scope)
    return end if operator_name(condition) == "lt" else _next(end)


def _next(end: Expr) -> Expr:
    """Return `end + 1`; `min(N - 1, x + 31) + 1 -> min(N, x + 32)`."""
    match end:
        case Binary(op="min", left=left, right=right):
            return minimum(_next(left), _next(right))
    return add(end, 1)


def _instance(call: islpy.AstExpr, scope: _Scope) -> Stmt:
    """Return the code of `S0(c0, c1)`: the statement's body with these values of its loops."""
    name = call.get_op_arg(0).get_id().get_name()
    statement: Statement = scope.nest.statements[int(name[1:])]
    values = [
        _expression(call.get_op_arg(place + 1), scope) for place in range(len(statement.loops))
    ]
    return scope.bodies[statement.name](dict(zip(statement.variables, values, strict=True)))


# ---------------------------------------------------------------- expressions


def _expression(expr: islpy.AstExpr, scope: _Scope) -> Expr:
    match expression_kind(expr):
        case "id":
            return scope.values[expr.get_id().get_name()]
        case "int":
            return const(int(expr.get_val().to_python()))
    operands = [_expression(expr.get_op_arg(at), scope) for at in range(expr.get_op_n_arg())]
    operator = operator_name(expr)
    if operator not in _OPERATORS:
        raise PolyhedralError(f"Expected an operator of ISL's expressions, found {operator}.")
    return _OPERATORS[operator](*operands)


def _floor_quotient(left: Expr, right: Expr) -> Expr:
    """Return `left / right` rounded down, for `right > 0`; `/` of the loop IR rounds towards 0."""
    return select(lt(left, 0), div(sub(left, sub(right, 1)), right), div(left, right))


_OPERATORS: Mapping[str, Callable[..., Expr]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "minus": lambda operand: mul(operand, -1),
    "min": minimum,
    "max": maximum,
    "div": div,  # exact, by ISL
    "pdiv_q": div,  # the operands are not negative
    "pdiv_r": mod,
    "zdiv_r": mod,  # only compared with 0
    "fdiv_q": _floor_quotient,
    "and_": and_,
    "and_then": and_,
    "or_": or_,
    "or_else": or_,
    "cond": select,
    "select": select,
    "eq": eq,
    "le": le,
    "lt": lt,
    "ge": lambda left, right: le(right, left),
    "gt": lambda left, right: lt(right, left),
}
