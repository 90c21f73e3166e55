"""Host functions of the loop IR to Python that runs them: memory, conditions and launches.

    def evaluate(host, y_vals, A2_pos, A2_crd, A_vals, x_vals, n_i):
        host.launch("evaluate_1", n_i, 256, (y_vals, A2_pos, A2_crd, A_vals, x_vals, n_i))

Arrays are those of a device (`devices.host_side.Host`): an element is read by copying it.
"""

from __future__ import annotations

from codegen.emit.memory import Lines, indent
from codegen.infer import type_of
from codegen.ir import (
    Allocate,
    Array,
    Binary,
    Block,
    Cast,
    Comment,
    Const,
    Declare,
    Expect,
    Expr,
    For,
    Function,
    If,
    Kernel,
    Launch,
    Load,
    Module,
    Reserve,
    Select,
    SetLength,
    Stmt,
    Unary,
    Var,
)
from codegen.target import UnsupportedError
from codegen.types import ScalarType

_OPERATORS = {"&&": "and", "||": "or", "/": "//"}


def emit_host(module: Module) -> str:
    """The Python source of a module's functions. Raises UnsupportedError."""
    kernels = {kernel.name: kernel for kernel in module.kernels}
    return "\n\n".join(_function(function, kernels) for function in module.functions) + "\n"


def _function(function: Function, kernels: dict[str, Kernel]) -> str:
    names = [*(a.name for a in function.arrays), *(v.name for v in function.scalars)]
    head = f"def {function.name}(host, {', '.join(names)}):"
    return "\n".join([head, *indent(_body(function.body, kernels))])


def _body(block: Block, kernels: dict[str, Kernel]) -> Lines:
    lines = [line for stmt in block.body for line in _statement(stmt, kernels)]
    return lines or ["pass"]


def _statement(stmt: Stmt, kernels: dict[str, Kernel]) -> Lines:
    match stmt:
        case Comment(text=text):
            return [f"# {line}".rstrip() for line in text.splitlines()]
        case Declare(var=var, value=value):
            return [f"{var.name} = {_expression(value)}"]
        case Allocate() | Reserve() | SetLength():
            return [_memory(stmt)]
        case Launch(kernel=name, threads=threads, block=block):
            kernel = kernels[name]
            given = [*(a.name for a in kernel.arrays), *map(_argument, kernel.scalars)]
            arguments = f"({', '.join(given)}{',' if len(given) == 1 else ''})"
            return [f'host.launch("{name}", {_expression(threads)}, {block}, {arguments})']
        case Expect(condition=condition):
            return [f"host.expect({_expression(condition)})"]
        case If(condition=condition, then=then, orelse=orelse):
            lines = [f"if {_expression(condition)}:", *indent(_body(then, kernels))]
            return lines + (["else:", *indent(_body(orelse, kernels))] if orelse.body else [])
        case For(var=var, start=start, stop=stop, step=step, body=body):
            steps = ", ".join(map(str, (_expression(start), _expression(stop), step)))
            return [f"for {var.name} in range({steps}):", *indent(_body(body, kernels))]
        case Block():
            return _body(stmt, kernels) if stmt.body else []
    raise UnsupportedError(f"the host of a device has no {type(stmt).__name__} yet")


def _memory(stmt: Allocate | Reserve | SetLength) -> str:
    name, size = stmt.array.name, _expression(stmt.size)
    match stmt:
        case Allocate(array=array, zero=zero):
            return f'{name} = host.allocate({size}, "{array.element.name}", {zero})'
        case Reserve():
            return f"host.reserve({name}, {size})"
        case SetLength(limit=limit):
            return f"host.set_length({name}, {size}, {limit})"


def _argument(var: Var) -> str:
    return f'host.number({var.name}, "{var.type.name}")'


def _expression(expr: Expr) -> str:
    """A whole number or truth, in Python."""
    match expr:
        case Var(name=name):
            return name
        case Const(value=value):
            return repr(value)
        case Cast(operand=operand):
            return _expression(operand)
        case Load(array=Array(name=name), index=index):
            return f"host.element({name}, {_expression(index)})"
        case Select(condition=condition, then=then, orelse=orelse):
            parts = (_expression(each) for each in (then, condition, orelse))
            return "({} if {} else {})".format(*parts)
        case Unary(op=op, operand=operand):
            return f"({'not ' if op == '!' else op}{_expression(operand)})"
        case Binary(op=op, left=left, right=right) if _is_whole(type_of(left)):
            operands = _expression(left), _expression(right)
            if op in ("min", "max"):
                return f"{op}({', '.join(operands)})"
            return f"({operands[0]} {_OPERATORS.get(op, op)} {operands[1]})"
    raise UnsupportedError(f"the host of a device cannot compute {type(expr).__name__} yet")


def _is_whole(type: ScalarType) -> bool:
    return type.is_integer or type.kind == "bool"
