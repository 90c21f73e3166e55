"""What hosts of devices do: memory, conditions, loops, launches. One walk over the loop IR, and the
words of each language that hosts are written in (`host_python`, `host_cuda`).

    w = host.allocate(n, "int64", False)     int64_t *w = taco_memory.allocate<int64_t>(n, …);
    host.launch("f_1", n, 256, (w, …))       taco::launch(::f_1, "f_1", n, 256, w, …);
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from codegen.build import add, const
from codegen.emit.memory import Lines
from codegen.ir import (
    Allocate,
    Block,
    Comment,
    Declare,
    Expect,
    Expr,
    For,
    Function,
    If,
    Invoke,
    Kernel,
    Launch,
    Module,
    Place,
    Reserve,
    Search,
    SetLength,
    Stmt,
)
from codegen.machine.target import UnsupportedError


class HostWords(ABC):
    """How a language writes what hosts do, with `kernels` by the names that launches have."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self.kernels: dict[str, Kernel] = {kernel.name: kernel for kernel in module.kernels}

    def functions(self) -> str:
        """Return the text of a module's functions. Raises UnsupportedError."""
        texts = ("\n".join(self.function(function)) for function in self._module.functions)
        return "\n\n".join(texts) + "\n"

    def block(self, block: Block) -> Lines:
        """Return the statements of a block. Raises UnsupportedError."""
        return [line for stmt in block.body for line in self._statement(stmt)]

    def _statement(self, stmt: Stmt) -> Lines:
        match stmt:
            case Comment(text=text):
                return self.comment(text)
            case Launch():
                return self.launch(stmt, self.kernels[stmt.kernel])
            case If():
                return self.branch(stmt)
            case For():
                return self.loop(stmt)
            case Block():
                return self.block(stmt)
        return [self._simple(stmt)]

    def _simple(self, stmt: Stmt) -> str:
        match stmt:
            case Declare():
                return self.declare(stmt)
            case Allocate():
                return self.allocate(stmt)
            case Reserve():
                return self.reserve(stmt)
            case SetLength():
                return self.set_length(stmt)
            case Expect(condition=condition):
                return self.expect(condition)
            case Invoke(function=name, places=places, scalars=scalars):
                arguments = [*map(_full_array, places), *map(self.expression, scalars)]
                return self.invoke(name, arguments)
        raise UnsupportedError(f"the host of a device has no {type(stmt).__name__} yet")

    # ------------------------------------------------------------ words

    @abstractmethod
    def function(self, function: Function) -> Lines:
        """Return a function, from its head to its end."""

    @abstractmethod
    def comment(self, text: str) -> Lines:
        """Return a comment of one line or many."""

    @abstractmethod
    def declare(self, stmt: Declare) -> str:
        """Return a number with a name."""

    @abstractmethod
    def allocate(self, stmt: Allocate) -> str:
        """Return a new array, freed where its block ends."""

    @abstractmethod
    def reserve(self, stmt: Reserve) -> str:
        """Reserve room for elements of a growing array."""

    @abstractmethod
    def set_length(self, stmt: SetLength) -> str:
        """Return the assignment of a growing array's length, which is checked against its limit."""

    @abstractmethod
    def launch(self, stmt: Launch, kernel: Kernel) -> Lines:
        """Return a kernel begun, by so many threads."""

    @abstractmethod
    def expect(self, condition: Expr) -> str:
        """Return a failure unless a condition holds."""

    @abstractmethod
    def invoke(self, name: str, arguments: list[str]) -> str:
        """Return a call of another function of the module."""

    @abstractmethod
    def branch(self, stmt: If) -> Lines:
        """Return a condition with its branches."""

    @abstractmethod
    def loop(self, stmt: For) -> Lines:
        """Return a loop of the host."""

    @abstractmethod
    def expression(self, expr: Expr) -> str:
        """Return a whole number or truth. Raises UnsupportedError for others."""


def sought(search: Search) -> Expr:
    """Return the value that a search compares elements with."""
    return add(search.value, const(1)) if search.after else search.value


def _full_array(place: Place) -> str:
    """Return a whole array, of which a function takes no part."""
    if place.start != const(0):
        raise UnsupportedError("functions of the host of a device have no parts of arrays yet")
    return place.array.name
