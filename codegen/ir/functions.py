"""Functions of the loop IR, and modules of them."""

from __future__ import annotations

from codegen.ir.expressions import Array, Var
from codegen.ir.statements import Block
from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Function:
    """A C function that returns 0, 1 when memory ran out, 2 when a limit was passed, or 3 when what
    it expects does not hold.

    `arrays` come first in the parameter list, then `scalars`, then `int32_t threads` if `threaded`.
    An `internal` one is called by later functions of its module only (Invoke), and its parameters
    stay as they are. A `shared` one is internal, calls no other, and is in many modules as the same
    object: what is made of it is made once (`codegen.shared_work`).
    """

    name: str
    arrays: tuple[Array, ...]
    scalars: tuple[Var, ...]
    body: Block
    threaded: bool = False
    internal: bool = False
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function that each thread of a device's grid runs (Launch): arrays, then scalars.

    block     the most threads of a block
    group  blocks of a multiprocessor that there have to be registers for
    """

    name: str
    arrays: tuple[Array, ...]
    scalars: tuple[Var, ...]
    body: Block
    block: int
    group: int = 1


@dataclass(frozen=True, slots=True)
class Module:
    """Functions of the host, and the kernels that they launch on its device."""

    functions: tuple[Function, ...]
    header: str = ""  # a comment for the reader of the source, one line or many
    kernels: tuple[Kernel, ...] = ()

    @property
    def exported(self) -> tuple[Function, ...]:
        """Return the functions that callers see."""
        return tuple(function for function in self.functions if not function.internal)
