"""Loops that only set a flag where something is stored, ended as soon as the flag is set.

for p in 3..n { j = crd[p];  any = true }        →  if (3 < n) any = true
for p in 3..n { if (pos[p] < m) any = true }     →  p = 3
                                                    while (p < n && !any) { if …;  p++ }
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen import build
from codegen.ir import TRUE, Block, Declare, Expr, For, If, LoopKind, Stmt, Var, While
from codegen.ir import Assign as Set
from codegen.tree import find, rewrite
from codegen.variables import variables_read


def shorten(code: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """End loops that only set a variable at the first iteration that does."""
    return tuple(_shorten(statement) for statement in code)


def _shorten(statement: Stmt) -> Stmt:
    match statement:
        case Block(body):
            return replace(statement, body=shorten(body))
        case If(_, then, orelse) if not orelse.body:
            return replace(statement, then=Block(shorten(then.body)))
        case For(kind=LoopKind.SERIAL):
            inside = Block(shorten(statement.body.body))
            flag = _flag_of(inside)
            return (
                replace(statement, body=inside) if flag is None else _until(statement, inside, flag)
            )
    return statement


def without_flags(loop: For) -> tuple[For, tuple[Set, ...]]:
    """Split a loop into the loop without the flags that each iteration sets, and these assignments.

    for p in 3..n { t += …;  any = true }  →  for p in 3..n { t += … },  any = true
    """
    code = loop.body.body
    plain = (node for node in code if isinstance(node, Set) and node.value == TRUE and not node.op)
    variables = {node.var for node in find(loop.body, Declare)} | variables_read(loop.body)
    flags = tuple(node for node in dict.fromkeys(plain) if node.var not in variables)
    if not flags:
        return loop, ()
    return replace(loop, body=Block(tuple(node for node in code if node not in flags))), flags


def without_flag(code: tuple[Stmt, ...], flag: Var) -> tuple[Stmt, ...]:
    """Leave out assignments to a variable that nothing reads."""

    def without(node: object) -> object:
        match node:
            case Block(body):
                return Block(tuple(part for part in body if not _only_sets(part, flag)))
        return node

    rest: Block = rewrite(Block(code), without)
    return rest.body


def _only_sets(statement: Stmt, flag: Var) -> bool:
    match statement:
        case Declare(var) | Set(var):
            return var == flag
        case If(_, then, orelse):
            return not then.body and not orelse.body
    return False


def _until(loop: For, inside: Block, flag: Set) -> Stmt:
    """Return a loop that ends once its flag is set; no loop where each iteration is alike."""
    condition = _condition_of(inside, flag)
    names = {loop.var, *(declare.var for declare in find(inside, Declare))}
    if condition is not None and names.isdisjoint(variables_read(condition)):
        some = build.lt(loop.start, loop.stop)
        return build.if_(some if condition == TRUE else build.and_(some, condition), Block((flag,)))
    going = build.and_(build.lt(loop.var, loop.stop), build.not_(flag.var))
    body = Block((*inside.body, build.increment(loop.var, loop.step)))
    return Block((Declare(loop.var, loop.start), While(going, body)))


def _flag_of(code: Block) -> Set | None:
    """Return the assignment that sets a flag, where the code does nothing else."""
    variables = {node.var for node in find(code, Declare)}
    flags = {node for node in find(code, Set) if node.var not in variables}
    flag = flags.pop() if len(flags) == 1 else None
    if flag is None or flag.value != TRUE or flag.op is not None:
        return None
    plain = (Block, If, For, While, Declare, Set)
    return flag if all(isinstance(node, plain) for node in _statements(code)) else None


def _statements(code: Block) -> Iterator[Stmt]:
    """Yield all statements of code, nested ones too."""
    for statement in code.body:
        yield statement
        match statement:
            case Block():
                yield from _statements(statement)
            case If(_, then, orelse):
                yield from _statements(then)
                yield from _statements(orelse)
            case For() | While():
                yield from _statements(statement.body)


def _condition_of(code: Block, flag: Set) -> Expr | None:
    """Return the condition under which code sets a flag; None where only loops can tell."""
    match [
        statement
        for statement in code.body
        if not (isinstance(statement, Declare) and statement.constant)
    ]:
        case [Block() as inner]:
            return _condition_of(inner, flag)
        case [If(condition, then, orelse)] if not orelse.body:
            return condition if _condition_of(then, flag) == TRUE else None
        case [only] if only == flag:
            return TRUE
    return None
