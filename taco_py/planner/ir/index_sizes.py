"""Sizes of indices as factors: what a sum adds up that has not its index, it adds up so often.

v[a] = sum(i, X[i,a] + m[a])
→ size_i is the size of i;  v[a] = sum(i, X[i,a]) + size_i * m[a]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import reduce

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.language.formats import dense
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.dtypes import DType
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr
from taco_py.language.notation.operators import MUL
from taco_py.language.problem import TensorType
from taco_py.planner.ir.nodes import Operand, TakeSize

UNCOUNTED_ELEMENTS = 2.0**48
"""More elements than are counted one by one."""


@dataclass(slots=True)
class Sizes:
    """Operands without modes that hold sizes, made when one is first asked for.

    places    for each index an operand and a mode of it that has its size
    operands  all that exist, to which those are added
    dtypes    and their types
    sized     whether other operands have sizes of as many bits
    steps     the step for each size, by operand, mode and type
    """

    places: Mapping[str, tuple[str, int]]
    operands: dict[str, Operand]
    dtypes: dict[str, DType]
    names: Names
    sized: bool = False
    steps: dict[tuple[str, int, str], TakeSize] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        assignment: Assignment,
        operands: Mapping[str, Operand],
        names: Names,
        sized: bool = False,
    ) -> Sizes:
        """Return the sizes for the indices of `assignment`."""
        dtypes = {name: np.dtype(operand.type.dtype) for name, operand in operands.items()}
        places: dict[str, tuple[str, int]] = {}
        for access in accesses(assignment.value):
            for mode, index in enumerate(access.indices):
                places.setdefault(index, (access.tensor, mode))
        return cls(places, dict(operands), dtypes, names, sized)

    def factor(self, index: str, dtype: DType) -> Access:
        """Return the size of `index` as a number of this type, wrapped or rounded."""
        place = (*self.places[index], dtype.name)
        if place not in self.steps:
            name = self.names.fresh(f"size_{index}")
            self.steps[place] = TakeSize(name, *place)
            self.operands[name] = Operand(TensorType(dense(0), dtype.name), (), 1.0)
            self.dtypes[name] = dtype
        return Access(self.steps[place].target, ())

    def size(self, index: str) -> int:
        """Return the size of `index`, 0 where unknown."""
        tensor, mode = self.places[index]
        return self.operands[tensor].shape[mode]

    def product(self, indices: Iterable[str], dtype: DType) -> Expr:
        """Return the number of elements along these indices, one at least, in this type."""
        factors: Iterator[Expr] = (self.factor(index, dtype) for index in indices)
        return reduce(lambda number, size: Call(MUL, (number, size)), factors)

    def are_exact(self, indices: Iterable[str], dtype: DType) -> bool:
        """Tell whether a floating type represents every count of elements along these indices."""
        limit = 2 / float(np.finfo(dtype).eps)
        if not self.sized:
            return limit > UNCOUNTED_ELEMENTS
        most = 1
        for tensor, mode in (self.places[index] for index in indices):
            most <<= self.operands[tensor].shape[mode].bit_length()
        return most <= limit
