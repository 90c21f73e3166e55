"""Host functions of the loop IR to Python that runs them: memory, conditions and launches.

    def evaluate(host, y_vals, A2_pos, A2_crd, A_vals, x_vals, n_i):
        host.launch("evaluate_1", n_i, 256, (y_vals, A2_pos, A2_crd, A_vals, x_vals, n_i))

Arrays are those of a device (`devices.host_side.Host`): an element is read by copying it.
"""

from __future__ import annotations

from codegen.emit.host_program import HostWords, sought
from codegen.emit.memory import Lines, indent
from codegen.infer import type_of
from codegen.ir import (
    Allocate,
    Array,
    Binary,
    Block,
    Cast,
    Const,
    Declare,
    Expr,
    For,
    Function,
    If,
    Kernel,
    Launch,
    Load,
    Module,
    Reserve,
    Search,
    Select,
    SetLength,
    Unary,
    Var,
)
from codegen.machine.target import UnsupportedError
from codegen.types import ScalarType

_OPERATORS = {"&&": "and", "||": "or", "/": "//"}


def emit_host(module: Module) -> str:
    """Return the Python source of a module's functions. Raises UnsupportedError."""
    return _Python(module).functions()


class _Python(HostWords):
    """Python's words."""

    def function(self, function: Function) -> Lines:
        names = [*(a.name for a in function.arrays), *(v.name for v in function.scalars)]
        head = f"def {function.name}(host, {', '.join(names)}):"
        return [head, *indent(self._body(function.body))]

    def _body(self, block: Block) -> Lines:
        return self.block(block) or ["pass"]

    def comment(self, text: str) -> Lines:
        return [f"# {line}".rstrip() for line in text.splitlines()]

    def declare(self, stmt: Declare) -> str:
        return f"{stmt.var.name} = {self.expression(stmt.value)}"

    def allocate(self, stmt: Allocate) -> str:
        array, size = stmt.array, self.expression(stmt.size)
        return f'{array.name} = host.allocate({size}, "{array.element.name}", {stmt.zero})'

    def reserve(self, stmt: Reserve) -> str:
        return f"host.reserve({stmt.array.name}, {self.expression(stmt.size)})"

    def set_length(self, stmt: SetLength) -> str:
        return f"host.set_length({stmt.array.name}, {self.expression(stmt.size)}, {stmt.limit})"

    def launch(self, stmt: Launch, kernel: Kernel) -> Lines:
        operands = [*(a.name for a in kernel.arrays), *map(_argument, kernel.scalars)]
        arguments = f"({', '.join(operands)}{',' if len(operands) == 1 else ''})"
        threads = self.expression(stmt.threads)
        return [f'host.launch("{stmt.kernel}", {threads}, {stmt.block}, {arguments})']

    def expect(self, condition: Expr) -> str:
        return f"host.expect({self.expression(condition)})"

    def invoke(self, name: str, arguments: list[str]) -> str:
        return f"{name}(host, {', '.join(arguments)})"

    def branch(self, stmt: If) -> Lines:
        lines = [f"if {self.expression(stmt.condition)}:", *indent(self._body(stmt.then))]
        return lines + (["else:", *indent(self._body(stmt.orelse))] if stmt.orelse.body else [])

    def loop(self, stmt: For) -> Lines:
        steps = f"{self.expression(stmt.start)}, {self.expression(stmt.stop)}, {stmt.step}"
        return [f"for {stmt.var.name} in range({steps}):", *indent(self._body(stmt.body))]

    def expression(self, expr: Expr) -> str:
        match expr:
            case Var(name=name):
                return name
            case Const(value=value):
                return repr(value)
            case Cast(operand=operand):
                return self.expression(operand)
            case Load(array=Array(name=name), index=index):
                return f"host.element({name}, {self.expression(index)})"
            case Search(array=Array(name=name), start=start, stop=stop):
                places = f"{self.expression(start)}, {self.expression(stop)}"
                return f"host.search({name}, {places}, {self.expression(sought(expr))})"
            case Select(condition=condition, then=then, orelse=orelse):
                parts = (self.expression(part) for part in (then, condition, orelse))
                return "({} if {} else {})".format(*parts)
            case Unary(op=op, operand=operand):
                return f"({'not ' if op == '!' else op}{self.expression(operand)})"
            case Binary(op=op, left=left, right=right) if _is_whole(type_of(left)):
                operands = self.expression(left), self.expression(right)
                if op in ("min", "max"):
                    return f"{op}({', '.join(operands)})"
                return f"({operands[0]} {_OPERATORS.get(op, op)} {operands[1]})"
        raise UnsupportedError(f"the host of a device cannot compute {type(expr).__name__} yet")


def _argument(var: Var) -> str:
    return f'host.number({var.name}, "{var.type.name}")'


def _is_whole(type: ScalarType) -> bool:
    return type.is_integer or type.kind == "bool"
