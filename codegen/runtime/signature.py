"""The parameters of a compiled function, as the code that calls it must know them.

A signature is plain data, stored beside the compiled kernel and read back without the loop IR.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from codegen.records import dataclass
from codegen.types import INT32, ScalarType, scalar

if TYPE_CHECKING:
    from codegen import ir


class Kind(Enum):
    """How an argument is passed."""

    INPUT = "input"  # an array the function reads
    OUTPUT = "output"  # an array of fixed extent the function writes
    GROWING = "growing"  # a `taco_buffer *`: the function makes the array
    SCALAR = "scalar"
    THREADS = "threads"  # how many threads it may use


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    kind: Kind
    element: ScalarType

    @property
    def is_array(self) -> bool:
        """Tell whether the argument is an existing array."""
        return self.is_input or self.is_output

    @property
    def is_input(self) -> bool:
        """Tell whether the argument is an array that the function reads."""
        return self.kind is Kind.INPUT

    @property
    def is_output(self) -> bool:
        """Tell whether the argument is an array of fixed extent that the function writes."""
        return self.kind is Kind.OUTPUT

    @property
    def grows(self) -> bool:
        """Tell whether the function makes the array."""
        return self.kind is Kind.GROWING

    @property
    def counts_threads(self) -> bool:
        """Tell whether the argument is how many threads the function may use."""
        return self.kind is Kind.THREADS


@dataclass(frozen=True, slots=True)
class Signature:
    """A function that returns 0, 1 when memory ran out, or 2 when a limit was passed."""

    name: str
    parameters: tuple[Parameter, ...]

    def to_json(self) -> dict[str, object]:
        """Return lists and strings that `signature_from_json` turns back into this value."""
        rows = [[p.name, p.kind.value, p.element.name] for p in self.parameters]
        return {"name": self.name, "parameters": rows}


def signature_of(function: ir.Function) -> Signature:
    """Return the signature of a loop IR function: arrays, then scalars, then `threads`."""
    arrays = tuple(Parameter(a.name, Kind(a.storage.value), a.element) for a in function.arrays)
    scalars = tuple(Parameter(v.name, Kind.SCALAR, v.type) for v in function.scalars)
    threads = (Parameter("threads", Kind.THREADS, INT32),) if function.threaded else ()
    return Signature(function.name, arrays + scalars + threads)


def signature_from_json(data: dict[str, object]) -> Signature:
    """Return the inverse of `Signature.to_json`. KeyError, TypeError or ValueError on other
    data."""
    rows = data["parameters"]
    if not isinstance(rows, list):
        raise TypeError("Expected a list of parameters")
    parameters = tuple(Parameter(name, Kind(kind), scalar(e)) for name, kind, e in rows)
    return Signature(str(data["name"]), parameters)
