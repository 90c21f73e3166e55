"""The dataflow graph of a kernel: which instructions run in which loops, on data in which memory.

    P[i,j] = exp(X[i,j]) / sum(k, exp(X[i,k]))

    X[i,j]: float32 dram operand
    P[i,j]: float32 dram result
    parallel i
      over j
        a: float32 = load X[i,j]
        b: float32 = exp a
        c: float32 = reduce + b
      over j
        d: float32 = load X[i,j]
        e: float32 = exp d
        f: float32 = / e c
        store P[i,j] = f

A `ParallelMap` runs its passes for every slab: the elements at one value of each of its indices. A
pass is a nest of loops inside a slab. Loops that mean the same mode have the same name in all
passes. (After the abstract of Xing et al. 2025, IntelliGen: computation, data movement and
parallelism as one instruction-level dataflow graph.)
"""

from __future__ import annotations

from enum import Enum

from codegen.records import dataclass
from taco_py.language.notation.nodes import Literal
from taco_py.language.notation.operators import Operator


class Memory(Enum):
    """Where a buffer lives.

    DRAM  main memory: one array for all slabs
    NEAR  the nearest caches of a core, or the shared memory of a block: one array for each slab
    """

    DRAM = "dram"
    NEAR = "near"


class Role(Enum):
    """Whether a kernel is given a buffer, returns it, or makes it for itself."""

    OPERAND = "operand"
    RESULT = "result"
    TEMPORARY = "temporary"


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array. One in near memory has no indices of the slab.

    dtype   of the values, NumPy's name
    """

    name: str
    indices: tuple[str, ...]
    dtype: str
    memory: Memory
    role: Role


@dataclass(frozen=True, slots=True)
class Load:
    """`value` is an element of a buffer."""

    value: str
    dtype: str
    buffer: str
    indices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pick:
    """`value` is the element of an operand at an index that a value says.

    index      of the operand that the value says
    place      the value that says it
    otherwise  the number where the operand has no such element
    """

    value: str
    dtype: str
    buffer: str
    indices: tuple[str, ...]
    index: str
    place: str
    otherwise: Literal


@dataclass(frozen=True, slots=True)
class Compute:
    """`value` is an operator of other values and of numbers."""

    value: str
    dtype: str
    operator: Operator
    args: tuple[str | Literal, ...]


@dataclass(frozen=True, slots=True)
class Reduce:
    """`value` is `arg` in all iterations of the pass combined; later passes may read it."""

    value: str
    dtype: str
    operator: Operator
    arg: str | Literal


@dataclass(frozen=True, slots=True)
class Store:
    """An element of a buffer becomes `arg`, or is combined with it by an operator.

    streaming  whether large arrays are written past the caches
    """

    buffer: str
    indices: tuple[str, ...]
    arg: str | Literal
    operator: Operator | None = None
    streaming: bool = False


@dataclass(frozen=True, slots=True)
class Prefetch:
    """The same element of the next slab is brought near: the pass leaves main memory idle."""

    buffer: str
    indices: tuple[str, ...]


Instruction = Load | Pick | Compute | Reduce | Store | Prefetch


@dataclass(frozen=True, slots=True)
class Pass:
    """Loops, the first outermost, around instructions; without loops, once for each slab."""

    over: tuple[str, ...]
    body: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class SlabIndex:
    """An index of slabs: a slab has one value of it, or `block` neighbouring ones.

    Of blocks, passes have a loop over the index inside of the block.
    """

    name: str
    block: int = 1


@dataclass(frozen=True, slots=True)
class ParallelMap:
    """Passes, one after another, for every slab; slabs are independent of each other."""

    slab: tuple[SlabIndex, ...]
    passes: tuple[Pass, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the indices of which a slab has one value."""
        return tuple(index.name for index in self.slab if index.block == 1)


@dataclass(frozen=True, slots=True)
class Dataflow:
    """The dataflow graph of a kernel: buffers by name, and maps that run one after another."""

    buffers: tuple[Buffer, ...]
    maps: tuple[ParallelMap, ...]

    def buffer(self, name: str) -> Buffer:
        """Return the buffer of a name."""
        return next(buffer for buffer in self.buffers if buffer.name == name)


def values_read(instruction: Instruction) -> tuple[str, ...]:
    """Return the names of the values that an instruction reads."""
    match instruction:
        case Load() | Prefetch():
            return ()
        case Pick(place=place):
            return (place,)
        case Compute(_, _, _, args):
            return tuple(arg for arg in args if isinstance(arg, str))
        case Reduce(_, _, _, arg) | Store(_, _, arg):
            return (arg,) if isinstance(arg, str) else ()


def value_made(instruction: Instruction) -> str | None:
    """Return the name of the value that an instruction makes; None where it makes none."""
    return None if isinstance(instruction, Store | Prefetch) else instruction.value
