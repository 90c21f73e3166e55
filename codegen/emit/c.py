"""Loop IR to C that a person can follow.

Running out of memory is `return 1` where it happens, for memory is freed where its scope ends
(`emit.memory`); among threads it is a jump to the end of what they share (`emit.threads`). Passing
the limit of a length is `return 2`.
"""

from __future__ import annotations

from cmath import isfinite
from typing import Any

from codegen.emit.abi import (
    EXPORTED,
    INTERNAL,
    THREADS,
    buffer_name,
    linkage,
    parameters,
    prototype,
)
from codegen.emit.expressions import expression, helper
from codegen.emit.memory import INDENT, Dialect, Lines, Scope, indent
from codegen.emit.statements import body_lines, for_lines, update_lines
from codegen.emit.threads import among_threads, leaving, parallel_for, reductions, team
from codegen.infer import c_function, called_functions, function_of_update, type_of
from codegen.ir import (
    Apply,
    Array,
    Assign,
    AtomicStore,
    Broadcast,
    Call,
    Cast,
    Const,
    For,
    Function,
    Load,
    Module,
    Part,
    Reserve,
    SetLength,
    Storage,
    Store,
    Table,
    Team,
    Var,
    VectorLoad,
)
from codegen.libraries.scalar_functions import CFunction
from codegen.machine.target import Target, UnsupportedError
from codegen.names import Names, checked_names
from codegen.records import dataclass
from codegen.shared_work import SharedWork
from codegen.tree import find, rewrite, walk
from codegen.types import BOOL, ScalarType, VectorType, vector

WIDTH = 100
MATHEMATICS = "taco_math.h"


def emit_c(module: Module, target: Target) -> str:
    """Return the C source of `module`: one exported function for each of its functions."""
    needs = _needs_of_all(module)
    parts = [header_comment(module), _includes(needs), _typedefs(needs), *_definitions(needs)]
    parts += [_text_of(function, target) for function in module.functions]
    return "\n\n".join(part for part in parts if part) + "\n"


def emit_shared(module: Module, target: Target) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return C that defines the shared functions of `module`, for a file of its own.

    Beside it is each definition as `emit_c` has it, and what declares it in its place. Both are
    empty where there are none.
    """
    functions = tuple(function for function in module.functions if function.shared)
    if not functions:
        return "", ()
    needs = _needs_of_all(Module(functions))
    texts = [_text_of(function, target) for function in functions]
    parts = [_includes(needs), _typedefs(needs), *_definitions(needs), *map(_exported, texts)]
    declarations = tuple((text, _exported(text).partition("\n{")[0] + ";") for text in texts)
    return "\n\n".join(part for part in parts if part) + "\n", declarations


def _exported(text: str) -> str:
    """Return an internal function of C as one that other files may call."""
    return text.replace(INTERNAL, EXPORTED, 1)


def header_comment(module: Module) -> str:
    lines = module.header.replace("*/", "* /").splitlines()
    if len(lines) <= 1:
        return f"/* {lines[0]} */" if lines else ""
    return "\n".join(["/*", *(f" * {line}".rstrip() for line in lines), " */"])


@dataclass(frozen=True, slots=True)
class _Needs:
    """What functions need before them.

    headers  of the C library
    called   functions of C, in order of their dependences
    vectors  types that are defined by a typedef
    """

    headers: frozenset[str]
    called: tuple[CFunction, ...]
    vectors: frozenset[VectorType]


def _find_needs(function: Function, _: None) -> _Needs:
    headers = set()
    vectors: set[VectorType] = set()
    for node in walk(function):
        if _is_complex(node):
            headers.add("complex.h")
        if _is_mathematical(node):
            headers.add("math.h")
        if isinstance(node, Var) and isinstance(node.type, VectorType):
            vectors.add(node.type)
        elif isinstance(node, VectorLoad | Broadcast):
            vectors.add(_vector(node))
    return _Needs(frozenset(headers), tuple(called_functions(function)), frozenset(vectors))


_needs_of = SharedWork(_find_needs)


def _needs_of_all(module: Module) -> _Needs:
    """Return the headers, functions of C and vector types of all functions of a module."""
    headers: set[str] = set()
    called: dict[CFunction, None] = {}
    vectors: set[VectorType] = set()
    for function in module.functions:
        needs = _needs_of(function)
        headers |= needs.headers
        called |= dict.fromkeys(needs.called)
        vectors |= needs.vectors
    return _Needs(frozenset(headers), tuple(called), frozenset(vectors))


def _includes(needs: _Needs) -> str:
    """Return the needed headers: those of mathematics take longer to read than most kernels."""
    headers = [f"#include <{name}>" for name in ("complex.h", "math.h") if name in needs.headers]
    return "\n".join(['#include "taco_runtime.h"', *headers, *_include_mathematics(needs)])


def _include_mathematics(needs: _Needs) -> Lines:
    """Return the header of scalar functions where one is called, and the parts of it that are
    needed."""
    parts = sorted({f"#define {function.part}" for function in needs.called if function.part})
    is_used = any(function.is_own for function in needs.called)
    return [*parts, f'#include "{MATHEMATICS}"'] if is_used else []


def _definitions(needs: _Needs) -> Lines:
    """Return the functions that no header defines."""
    return [function.definition for function in needs.called if function.definition]


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
    """Tell whether `node` is a call of the C library, or a number that has a name there."""
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


def _typedefs(needs: _Needs) -> str:
    # A vector is read and written at the address of any element, and is such elements.
    return "\n".join(
        f"typedef {v.element.c} {v.c} __attribute__((vector_size({v.itemsize}), "
        f"aligned({v.element.itemsize}), may_alias));"
        for v in sorted(needs.vectors, key=lambda v: v.name)
    )


def _vector(expr: VectorLoad | Broadcast) -> VectorType:
    element = expr.array.element if isinstance(expr, VectorLoad) else type_of(expr.value)
    return vector(element, expr.lanes)


# ---------------------------------------------------------------- functions


def _function(function: Function, target: Target) -> str:
    all_names = (n.name for n in walk(function) if isinstance(n, Var | Array | Table))
    names = Names(checked_names(all_names))
    checked_names((function.name,))
    reserved = frozenset(
        r.array for r in find(function, Reserve) if r.array.storage is Storage.LOCAL
    )
    scope = Scope(target, names, reserved, dialect=DIALECT)
    lines = _buffers(function) + body_lines(function.body, scope)
    if function.threaded and not _uses_threads(function, target):
        lines = [f"(void){THREADS.name};", *lines]
    return "\n".join([*_prototype(function), "{", *indent([*lines, "return 0;"]), "}"])


_text_of = SharedWork(_function)


def _prototype(function: Function) -> Lines:
    line = prototype(function)
    if len(line) <= WIDTH:
        return [line]
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
    """Tell whether statements access elements of an array that does not come in parts."""
    if any(part.array == array for part in find(function.body, Part)):
        return False
    return any(
        getattr(node, "array", None) == array
        for node in walk(function.body)
        if not isinstance(node, SetLength)
    )


def _uses_threads(function: Function, target: Target) -> bool:
    has_parallel = any(
        isinstance(node, Team) or (isinstance(node, For) and node.is_parallel)
        for node in walk(function)
    )
    return (target.openmp and has_parallel) or THREADS in set(find(function.body, Var))


# ---------------------------------------------------------------- loops


def _pragma(loop: For) -> Lines:
    if loop.is_vector:
        return [f"#pragma omp simd{reductions(loop)}"]
    return [f"#pragma GCC unroll {loop.unroll}"] if loop.unroll else []


def _loop(loop: For | Team, scope: Scope) -> Lines:
    if isinstance(loop, Team):
        return _team(loop, scope)
    if loop.is_parallel and scope.target.openmp:
        inner = among_threads(scope, loop.body)
        body = leaving(body_lines(loop.body, inner), inner)
        return parallel_for(loop, for_lines(loop, body), scope, inner)
    inside = rewrite(loop.body, _truth) if loop.is_vector else loop.body
    return [*_pragma(loop), *for_lines(loop, body_lines(inside, scope))]


def _truth(node: Any) -> Any:
    """Return a truth read as a byte: gcc 12 makes no vectors of what depends on a `bool` in
    memory."""
    if isinstance(node, Load) and node.array.element == BOOL:
        return Call("taco_truth", (node,), BOOL)
    return node


def _team(stmt: Team, scope: Scope) -> Lines:
    inner = among_threads(scope, stmt.setup, stmt.body, parts=bool(stmt.parts))
    return team(stmt, body_lines(stmt.setup, inner), body_lines(stmt.body, inner), scope, inner)


def _atomic(stmt: AtomicStore, scope: Scope) -> Lines:
    """Return an update in one operation: of min and max one that is tried again where another
    thread has come between."""
    place, element = Load(stmt.array, stmt.index), stmt.array.element
    update = update_lines(expression(place), place, element, stmt.op, stmt.value)
    if not scope.target.openmp:
        return [update]
    if stmt.op not in ("min", "max") or element.kind == "bool":
        return ["#pragma omp atomic", update]
    function = helper(stmt.op, element)
    return [f"TACO_ATOMIC({element.c}, {function}, {expression(place)}, {expression(stmt.value)});"]


def _shared(stmt: Any, scope: Scope) -> Lines:
    if isinstance(stmt, AtomicStore):
        return _atomic(stmt, scope)
    raise UnsupportedError(f"threads of C have no {type(stmt).__name__}")


DIALECT = Dialect(_loop, _shared)
"""OpenMP's words for what threads share."""
