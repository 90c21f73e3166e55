"""Host functions of the loop IR to CUDA C++ that launches their kernels.

    static void evaluate(double *y_vals, const int32_t *A2_pos, …, int64_t n_i)
    {
        taco::launch(::evaluate_1, "evaluate_1", n_i, 256, y_vals, A2_pos, …, n_i);
    }

Arrays are those of a device (`runtime/taco_cuda.h`): an element is read by copying it. Arrays that
grow are `taco::Growing`.
"""

from __future__ import annotations

from typing import Any

from codegen.emit.cuda_complex import in_pairs
from codegen.emit.cuda_updates import c_type
from codegen.emit.expressions import expression, widened
from codegen.emit.host_program import HostWords, sought
from codegen.emit.memory import INDENT, Lines, indent
from codegen.infer import type_of
from codegen.ir import (
    Allocate,
    Array,
    Binary,
    Block,
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
    SetLength,
    Storage,
    Var,
)
from codegen.machine.target import UnsupportedError
from codegen.tree import find, map_children
from codegen.types import INT64, ScalarType

WIDTH = 100
MEMORY = "taco_memory"
"""What the memory of a block is called, which is freed where the block ends."""


def emit_host_cuda(module: Module) -> str:
    """Return the CUDA C++ source of a module's host functions. Raises UnsupportedError."""
    functions = tuple(in_pairs(part) for part in module.functions)
    kernels = tuple(in_pairs(part) for part in module.kernels)
    return _Cuda(Module(functions, module.header, kernels)).functions()


def element_text(element: ScalarType) -> str:
    """Return the C++ type of elements of arrays, as kernels have it; those of 16 bits as bits."""
    return "uint16_t" if element.kind == "half" else c_type(element)


class _Cuda(HostWords):
    """The words of CUDA C++."""

    def function(self, function: Function) -> Lines:
        parameters = [*map(_parameter, function.arrays)]
        parameters += [f"{scalar.type.c} {scalar.name}" for scalar in function.scalars]
        head = _wrapped(f"static void {function.name}(", parameters, ")")
        return [*head, "{", *indent(self._body(function.body)), "}"]

    def _body(self, block: Block) -> Lines:
        """Return a block of its own, with its own memory where it allocates any."""
        memory = [f"taco::Memory {MEMORY};"] if any(find(block, Allocate)) else []
        return memory + self.block(block)

    def comment(self, text: str) -> Lines:
        return [f"// {line}".rstrip() for line in text.splitlines()]

    def declare(self, stmt: Declare) -> str:
        return f"const {stmt.var.type.c} {stmt.var.name} = {self.expression(stmt.value)};"

    def allocate(self, stmt: Allocate) -> str:
        type, name = element_text(stmt.array.element), stmt.array.name
        size, zero = self.expression(stmt.size), "true" if stmt.zero else "false"
        return f'{type} *{name} = {MEMORY}.allocate<{type}>({size}, {zero}, "{name}");'

    def reserve(self, stmt: Reserve) -> str:
        return f"{stmt.array.name}.reserve({self.expression(stmt.size)});"

    def set_length(self, stmt: SetLength) -> str:
        limit = "" if stmt.limit is None else f", {stmt.limit}"
        return f"{stmt.array.name}.set_length({self.expression(stmt.size)}{limit});"

    def launch(self, stmt: Launch, kernel: Kernel) -> Lines:
        arguments = [*(a.name for a in kernel.arrays), *(v.name for v in kernel.scalars)]
        threads = self.expression(stmt.threads)
        words = [f"::{kernel.name}", f'"{kernel.name}"', threads, str(stmt.block), *arguments]
        return _wrapped("taco::launch(", words, ");")

    def expect(self, condition: Expr) -> str:
        return f"taco::expect({self.expression(condition)});"

    def invoke(self, name: str, arguments: list[str]) -> str:
        return f"{name}({', '.join(arguments)});"

    def branch(self, stmt: If) -> Lines:
        lines = [f"if ({self.expression(stmt.condition)}) {{", *indent(self.block(stmt.then))]
        if stmt.orelse.body:
            lines += ["} else {", *indent(self.block(stmt.orelse))]
        return [*lines, "}"]

    def loop(self, stmt: For) -> Lines:
        """Return a loop whose end is computed once, since reading an element takes a copy."""
        type, name, stop = stmt.var.type.c, stmt.var.name, self.expression(stmt.stop)
        end = f"taco_{name}_end"
        begin = f"{type} {name} = {self.expression(stmt.start)}, {end} = {stop}"
        step = f"{name}++" if stmt.step == 1 else f"{name} += {stmt.step}"
        head = f"for ({begin}; {name} < {end}; {step}) {{"
        return [head, *indent(self._body(stmt.body)), "}"]

    def expression(self, expr: Expr) -> str:
        return expression(_called(expr))


def _called(node: Any) -> Any:
    """Return an expression in the spelling of C++ where it differs from C."""
    node = map_children(node, _called)
    match node:
        case Load(array=array, index=index):
            return Var(f"taco::element({array.name}, {widened(index)})", array.element)
        case Search(array=array, start=start, stop=stop):
            places = f"{expression(start)}, {expression(stop)}"
            return Var(f"taco::search({array.name}, {places}, {expression(sought(node))})", INT64)
        case Binary(op="min" | "max", left=left, right=right):
            type = type_of(left)
            if not type.is_integer:
                raise UnsupportedError(f"the host of a device has no {node.op} of {type} yet")
            operands = f"{expression(left)}, {expression(right)}"
            return Var(f"std::{node.op}<{type.c}>({operands})", type)
    return node


def _parameter(array: Array) -> str:
    if array.storage is Storage.GROWING:
        return f"taco::Growing<{element_text(array.element)}> &{array.name}"
    const = "const " if array.storage is Storage.INPUT else ""
    return f"{const}{element_text(array.element)} *{array.name}"


def _wrapped(head: str, words: list[str], tail: str) -> Lines:
    """Return a call or a head on one line, or on lines as full as possible."""
    line = f"{head}{', '.join(words)}{tail}"
    if len(line) <= WIDTH - 2 * len(INDENT):
        return [line]
    lines = [""]
    for number, word in enumerate(words):
        text = word + (tail if number == len(words) - 1 else ",")
        if lines[-1] and len(lines[-1]) + len(text) > WIDTH - 3 * len(INDENT):
            lines.append("")
        lines[-1] += f" {text}" if lines[-1] else text
    return [head, *indent(lines)]
