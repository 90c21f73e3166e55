"""The parameters of a compiled function, as the code that calls it must know them.

A signature is plain data: it is stored beside the compiled kernel and read back without the loop IR.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from codegen import ir
from codegen.types import INT32, SCALARS, ScalarType


class Kind(Enum):
    """How an argument is passed."""

    INPUT = "input"  # an array the function reads
    OUTPUT = "output"  # an array of fixed extent the function writes
    GROWING = "growing"  # a `taco_buffer *`: the function makes the array
    SCALAR = "scalar"
    THREADS = "threads"  # how many threads it may use


_KINDS = {
    ir.Storage.INPUT: Kind.INPUT,
    ir.Storage.OUTPUT: Kind.OUTPUT,
    ir.Storage.GROWING: Kind.GROWING,
}


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    kind: Kind
    element: ScalarType

    @property
    def is_array(self) -> bool:
        """Whether the argument is an existing array."""
        return self.kind in (Kind.INPUT, Kind.OUTPUT)

    def declaration(self) -> str:
        """The parameter in C: `const double *x`, `taco_buffer *C_crd`, `int64_t n`."""
        match self.kind:
            case Kind.INPUT:
                return f"const {self.element.c} *{self.name}"
            case Kind.OUTPUT:
                return f"{self.element.c} *{self.name}"
            case Kind.GROWING:
                return f"taco_buffer *{self.name}"
            case Kind.SCALAR | Kind.THREADS:
                return f"{self.element.c} {self.name}"


@dataclass(frozen=True, slots=True)
class Signature:
    """A function that returns 0, or a non-zero status when memory ran out."""

    name: str
    parameters: tuple[Parameter, ...]

    def prototype(self) -> str:
        """The C declaration: `int32_t dot(const double *x, const double *y, double *s, int64_t n);`."""
        inside = ", ".join(p.declaration() for p in self.parameters)
        return f"int32_t {self.name}({inside or 'void'});"

    def to_json(self) -> dict[str, object]:
        """Lists and strings that `signature_from_json` turns back into this value."""
        rows = [[p.name, p.kind.value, p.element.name] for p in self.parameters]
        return {"name": self.name, "parameters": rows}


def signature_of(function: ir.Function) -> Signature:
    """The signature of a loop IR function: arrays, then scalars, then `threads`."""
    arrays = tuple(Parameter(a.name, _KINDS[a.storage], a.element) for a in function.arrays)
    scalars = tuple(Parameter(v.name, Kind.SCALAR, v.type) for v in function.scalars)
    threads = (Parameter("threads", Kind.THREADS, INT32),) if function.threaded else ()
    return Signature(function.name, arrays + scalars + threads)


def signature_from_json(data: dict[str, object]) -> Signature:
    """The inverse of `Signature.to_json`. Raises KeyError, TypeError or ValueError on other data."""
    rows = data["parameters"]
    if not isinstance(rows, list):
        raise TypeError("Expected a list of parameters")
    parameters = tuple(Parameter(name, Kind(kind), SCALARS[e]) for name, kind, e in rows)
    return Signature(str(data["name"]), parameters)
