"""Loop IR to C that a person can follow.

Running out of memory is `return 1` where it happens, for memory is freed where its scope ends
(`emit.memory`); among threads it is a jump to the end of what they share (`emit.threads`). Passing
the limit of a length is `return 2`.
"""

from __future__ import annotations

from cmath import isfinite
from typing import assert_never

from codegen.emit.abi import THREADS, buffer_name, linkage, parameters, prototype
from codegen.emit.expressions import PRECEDENCE, expression, helper, vector_place, widened
from codegen.emit.memory import INDENT, Lines, Scope, indent, memory, table
from codegen.emit.threads import among_threads, leaving, parallel_for, reductions, team
from codegen.infer import UPDATES, c_function, function_of_update, type_of
from codegen.ir import (
    Allocate,
    Apply,
    Array,
    Assign,
    AtomicStore,
    Block,
    Broadcast,
    Call,
    Cast,
    ClearTable,
    Comment,
    Const,
    Declare,
    Expect,
    Expr,
    Fill,
    For,
    Function,
    If,
    Insert,
    Invoke,
    Load,
    LoopKind,
    Module,
    NewTable,
    Part,
    Prefetch,
    Reserve,
    SetLength,
    Sort,
    SortTable,
    Stmt,
    Storage,
    Store,
    Table,
    Team,
    Var,
    VectorLoad,
    VectorStore,
    While,
)
from codegen.libraries.scalar_functions import CFunction, spelling_of
from codegen.names import Names
from codegen.target import Target
from codegen.tree import find, walk
from codegen.types import ScalarType, VectorType, vector

WIDTH = 100
MATHEMATICS = "taco_math.h"


def emit_c(module: Module, target: Target) -> str:
    """The C source of `module`: one exported function for each of its functions."""
    parts = [_header(module), _includes(module), _typedefs(module), *_definitions(module)]
    parts += [_function(function, target) for function in module.functions]
    return "\n\n".join(part for part in parts if part) + "\n"


def _header(module: Module) -> str:
    lines = module.header.replace("*/", "* /").splitlines()
    if len(lines) <= 1:
        return f"/* {lines[0]} */" if lines else ""
    return "\n".join(["/*", *(f" * {line}".rstrip() for line in lines), " */"])


def _includes(module: Module) -> str:
    """The headers that are needed: those of mathematics take longer to read than most kernels."""
    libraries = {
        "complex.h": any(map(_is_complex, walk(module))),
        "math.h": any(map(_is_mathematical, walk(module))),
    }
    needed = [f"#include <{name}>" for name, is_needed in libraries.items() if is_needed]
    return "\n".join(['#include "taco_runtime.h"', *needed, *_own_functions(module)])


def _own_functions(module: Module) -> Lines:
    """The header of scalar functions where one is called, and the parts of it that are needed."""
    called = _called(module)
    parts = sorted({f"#define {each.part}" for each in called if each.part})
    own = any(each.is_own for each in called)
    return [*parts, f'#include "{MATHEMATICS}"'] if own else []


def _called(module: Module) -> list[CFunction]:
    """The functions of C that a module calls, each once, behind those that its definition calls."""
    found: dict[CFunction, None] = {}
    for node in walk(module):
        function = None
        if isinstance(node, Apply):
            function = c_function(node)
        elif isinstance(node, Assign | Store):
            function = function_of_update(node)
        if function is not None:
            found |= dict.fromkeys((*function.uses, function))
    return list(found)


def _definitions(module: Module) -> Lines:
    """The functions that no header defines."""
    return [each.definition for each in _called(module) if each.definition]


def _is_complex(node: object) -> bool:
    match node:
        case Var(type=found) | Const(type=found) | Cast(type=found) | Call(type=found):
            return isinstance(found, ScalarType) and found.kind == "complex"
        case Apply():
            return type_of(node).kind == "complex"
        case Array(element=found):
            return found.kind == "complex"
    return False


def _is_mathematical(node: object) -> bool:
    """Whether `node` is a call of the C library, or a number that has a name there."""
    match node:
        case Call(function=function):
            return not function.startswith("taco_")
        case Apply():
            return not c_function(node).is_own
        case Assign() | Store():
            return function_of_update(node) is not None
        case Const(value=value, type=ScalarType(kind="float" | "complex")):
            return not isfinite(value)
    return False


def _typedefs(module: Module) -> str:
    found = {v.type for v in find(module, Var) if isinstance(v.type, VectorType)}
    found.update(_vector(e) for e in find(module, VectorLoad))
    found.update(_vector(e) for e in find(module, Broadcast))
    # A vector is read and written at the address of any element, and is such elements.
    return "\n".join(
        f"typedef {v.element.c} {v.c} __attribute__((vector_size({v.itemsize}), "
        f"aligned({v.element.itemsize}), may_alias));"
        for v in sorted(found, key=lambda v: v.name)
    )


def _vector(expr: VectorLoad | Broadcast) -> VectorType:
    element = expr.array.element if isinstance(expr, VectorLoad) else type_of(expr.value)
    return vector(element, expr.lanes)


# ---------------------------------------------------------------- functions


def _function(function: Function, target: Target) -> str:
    names = Names(n.name for n in walk(function) if isinstance(n, Var | Array | Table))
    reserved = frozenset(
        r.array for r in find(function, Reserve) if r.array.storage is Storage.LOCAL
    )
    scope = Scope(target, names, reserved)
    lines = _buffers(function) + _body(function.body, scope)
    if function.threaded and not _uses_threads(function, target):
        lines = [f"(void){THREADS.name};", *lines]
    return "\n".join([*_prototype(function), "{", *indent([*lines, "return 0;"]), "}"])


def _prototype(function: Function) -> Lines:
    whole = prototype(function)
    if len(whole) <= WIDTH:
        return [whole]
    *first, last = parameters(function)
    return [
        f"{linkage(function)} {function.name}(",
        *indent(f"{p}," for p in first),
        f"{INDENT}{last})",
    ]


def _buffers(function: Function) -> Lines:
    return [
        f"{a.element.c} *restrict {a.name} = {buffer_name(a)}->data;"
        for a in function.arrays
        if a.storage is Storage.GROWING and _uses_elements(function, a)
    ]


def _uses_elements(function: Function, array: Array) -> bool:
    """Whether statements are about elements of an array that does not come in parts."""
    if any(part.array == array for part in find(function.body, Part)):
        return False
    return any(
        getattr(node, "array", None) == array
        for node in walk(function.body)
        if not isinstance(node, SetLength)
    )


def _uses_threads(function: Function, target: Target) -> bool:
    has_parallel = any(
        isinstance(node, Team) or (isinstance(node, For) and node.kind is LoopKind.PARALLEL)
        for node in walk(function)
    )
    return (target.openmp and has_parallel) or THREADS in set(find(function.body, Var))


# ---------------------------------------------------------------- statements


def _body(block: Block, scope: Scope) -> Lines:
    return [line for statement in block.body for line in _statement(statement, scope)]


def _statement(stmt: Stmt, scope: Scope) -> Lines:
    match stmt:
        case Block():
            return ["{", *indent(_body(stmt, scope)), "}"]
        case Comment(text=text):
            return _comment(text)
        case If():
            return _if(stmt, scope)
        case While(condition=condition, body=body):
            head = f"while ({expression(condition)}) {{"
            return [head, *indent(_body(body, scope)), "}"]
        case For() | Team():
            return _loop(stmt, scope)
        case Declare() | Assign() | Store() | VectorStore() | Prefetch():
            return [_assignment(stmt)]
        case AtomicStore():
            return _atomic(stmt, scope)
        case Allocate() | Reserve() | SetLength() | Fill() | Sort() | Invoke() | Expect():
            return memory(stmt, scope)
        case NewTable() | Insert() | SortTable() | ClearTable():
            return table(stmt, scope)
        case _:
            assert_never(stmt)


def _comment(text: str) -> Lines:
    return [f"// {line}".rstrip().rstrip("\\") for line in text.splitlines()]


def _if(stmt: If, scope: Scope) -> Lines:
    lines = [f"if ({expression(stmt.condition)}) {{", *indent(_body(stmt.then, scope))]
    match stmt.orelse.body:
        case ():
            return [*lines, "}"]
        case (If() as chained,):
            first, *rest = _if(chained, scope)
            return [*lines, f"}} else {first}", *rest]
    return [*lines, "} else {", *indent(_body(stmt.orelse, scope)), "}"]


# ---------------------------------------------------------------- assignments


def _assignment(stmt: Declare | Assign | Store | VectorStore | Prefetch) -> str:
    match stmt:
        case Declare(var=var, value=value, constant=constant):
            return f"{'const ' if constant else ''}{var.type.c} {var.name} = {widened(value)};"
        case Assign(var=var, value=value, op=op):
            return _update(var.name, var, var.type, op, value)
        case Store(array=array, index=index, value=value, op=op):
            place = Load(array, index)
            return _update(expression(place), place, array.element, op, value)
        case VectorStore(array=array, index=index, value=value):
            lanes = type_of(value).bits // array.element.bits
            lvalue = vector_place(array, index, lanes)
            if stmt.streaming:
                return f"TACO_STREAM({lvalue}, {expression(value)});"
            return f"{lvalue} = {expression(value)};"
        case Prefetch(array=array, index=index):
            return f"__builtin_prefetch({array.name} + {expression(index, PRECEDENCE['+'])});"
        case _:
            assert_never(stmt)


def _update(place: str, old: Expr, scalar: ScalarType, op: str | None, value: Expr) -> str:
    """`place = value`, or `place op= value` in the shortest words that C has for it."""
    if op is None:
        return f"{place} = {widened(value)};"
    if op not in UPDATES:
        function = spelling_of(op, scalar)
        assert isinstance(function, CFunction)
        return f"{place} = {function.name}({expression(old)}, {widened(value)});"
    if scalar.kind == "bool":
        return f"{place} {_BOOL_UPDATES[op]} {expression(value)};"
    if op in ("min", "max"):
        return f"{place} = {helper(op, scalar)}({expression(old)}, {expression(value)});"
    if op in ("+", "-") and isinstance(value, Const) and value.value == 1 and scalar.is_integer:
        return f"{place}{op}{op};"
    return f"{place} {op}= {widened(value)};"


_BOOL_UPDATES = {
    "+": "|=", "max": "|=", "||": "|=", "|": "|=",
    "*": "&=", "min": "&=", "&&": "&=", "&": "&=",
    "^": "^=",
}  # fmt: skip


def _atomic(stmt: AtomicStore, scope: Scope) -> Lines:
    """An update in one operation: of min and max one that is tried again where another thread has
    come between."""
    place, element = Load(stmt.array, stmt.index), stmt.array.element
    update = _update(expression(place), place, element, stmt.op, stmt.value)
    if not scope.target.openmp:
        return [update]
    if stmt.op not in ("min", "max") or element.kind == "bool":
        return ["#pragma omp atomic", update]
    own = helper(stmt.op, element)
    return [f"TACO_ATOMIC({element.c}, {own}, {expression(place)}, {expression(stmt.value)});"]


# ---------------------------------------------------------------- loops


def _for(loop: For, body: Lines) -> Lines:
    var = loop.var.name
    step = f"{var}++" if loop.step == 1 else f"{var} += {loop.step}"
    test = f"{var} < {widened(loop.stop, PRECEDENCE['+'])}"
    start = f"{loop.var.type.c} {var} = {widened(loop.start)}"
    return [f"for ({start}; {test}; {step}) {{", *indent(body), "}"]


def _pragma(loop: For) -> Lines:
    if loop.kind is LoopKind.VECTOR:
        return [f"#pragma omp simd{reductions(loop)}"]
    return [f"#pragma GCC unroll {loop.unroll}"] if loop.unroll else []


def _loop(loop: For | Team, scope: Scope) -> Lines:
    if isinstance(loop, Team):
        return _team(loop, scope)
    if loop.kind is LoopKind.PARALLEL and scope.target.openmp:
        inner = among_threads(scope, loop.body)
        body = leaving(_body(loop.body, inner), inner)
        return parallel_for(loop, _for(loop, body), scope, inner)
    return [*_pragma(loop), *_for(loop, _body(loop.body, scope))]


def _team(stmt: Team, scope: Scope) -> Lines:
    inner = among_threads(scope, stmt.setup, stmt.body, parts=bool(stmt.parts))
    return team(stmt, _body(stmt.setup, inner), _body(stmt.body, inner), scope, inner)
