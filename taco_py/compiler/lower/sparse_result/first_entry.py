"""Loops that do nothing but say that something is there end once they have said so.

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


def shortened(code: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """End loops that only set a variable at the first iteration that sets it."""
    return tuple(_shortened(each) for each in code)


def _shortened(statement: Stmt) -> Stmt:
    match statement:
        case Block(body):
            return replace(statement, body=shortened(body))
        case If(_, then, orelse) if not orelse.body:
            return replace(statement, then=Block(shortened(then.body)))
        case For(kind=LoopKind.SERIAL):
            inside = Block(shortened(statement.body.body))
            flag = _flag_of(inside)
            return (
                replace(statement, body=inside) if flag is None else _until(statement, inside, flag)
            )
    return statement


def without_flags(loop: For) -> tuple[For, tuple[Set, ...]]:
    """Find what each iteration of a loop says: the loop without that, and the assignments.

    for p in 3..n { t += …;  any = true }  →  for p in 3..n { t += … },  any = true
    """
    code = loop.body.body
    plain = (each for each in code if isinstance(each, Set) and each.value == TRUE and not each.op)
    own = {each.var for each in find(loop.body, Declare)} | variables_read(loop.body)
    flags = tuple(each for each in dict.fromkeys(plain) if each.var not in own)
    if not flags:
        return loop, ()
    return replace(loop, body=Block(tuple(each for each in code if each not in flags))), flags


def unsaid(code: tuple[Stmt, ...], flag: Var) -> tuple[Stmt, ...]:
    """Leave out what sets a variable that nothing reads."""

    def without(node: object) -> object:
        match node:
            case Block(body):
                return Block(tuple(each for each in body if not _only_sets(each, flag)))
        return node

    found: Block = rewrite(Block(code), without)
    return found.body


def _only_sets(statement: Stmt, flag: Var) -> bool:
    match statement:
        case Declare(var) | Set(var):
            return var == flag
        case If(_, then, orelse):
            return not then.body and not orelse.body
    return False


def _until(loop: For, inside: Block, flag: Set) -> Stmt:
    """Return a loop that sets a flag, which ends there; no loop where each iteration does the
    same."""
    condition = _condition_of(inside, flag)
    names = {loop.var, *(each.var for each in find(inside, Declare))}
    if condition is not None and names.isdisjoint(variables_read(condition)):
        some = build.lt(loop.start, loop.stop)
        return build.if_(some if condition == TRUE else build.and_(some, condition), Block((flag,)))
    going = build.and_(build.lt(loop.var, loop.stop), build.not_(flag.var))
    body = Block((*inside.body, build.increment(loop.var, loop.step)))
    return Block((Declare(loop.var, loop.start), While(going, body)))


def _flag_of(code: Block) -> Set | None:
    """Return the assignment that sets a variable, where code does nothing but that."""
    own = {each.var for each in find(code, Declare)}
    flags = {each for each in find(code, Set) if each.var not in own}
    flag = flags.pop() if len(flags) == 1 else None
    if flag is None or flag.value != TRUE or flag.op is not None:
        return None
    plain = (Block, If, For, While, Declare, Set)
    return flag if all(isinstance(each, plain) for each in _statements(code)) else None


def _statements(code: Block) -> Iterator[Stmt]:
    """Yield all statements of code, inside of others too."""
    for each in code.body:
        yield each
        match each:
            case Block():
                yield from _statements(each)
            case If(_, then, orelse):
                yield from _statements(then)
                yield from _statements(orelse)
            case For() | While():
                yield from _statements(each.body)


def _condition_of(code: Block, flag: Set) -> Expr | None:
    """Return the condition under which code sets a variable; None where loops have to tell."""
    match [each for each in code.body if not (isinstance(each, Declare) and each.constant)]:
        case [Block() as inner]:
            return _condition_of(inner, flag)
        case [If(condition, then, orelse)] if not orelse.body:
            return condition if _condition_of(then, flag) == TRUE else None
        case [only] if only == flag:
            return TRUE
    return None
