"""The hashable identity of a compilation: assignment, formats and types.

Sizes are no part of it: they are run-time arguments of the kernel, except for static ones.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.fill import Fill, as_number, converted
from taco_py.language.formats import Format
from taco_py.language.notation.half_types import computed_dtype, is_half
from taco_py.language.notation.nodes import Access, Assignment, Expr, Reduce
from taco_py.language.notation.printer import to_text

FILL_WORD = "fill="
"""The prefix of a fill value in the text of a type."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """The storage of one tensor.

    dtype        NumPy's name of the values' type
    index_dtype  "int32" or "int64": the type of pos and crd arrays
    unit_stride  for an all-dense tensor: elements of the last stored mode are adjacent. Its other
                 strides are run-time arguments.
    stored       the values' type in memory where it differs: kernels convert each value to `dtype`
                 when they read it. "" where it is the same.
    fill         the value of the elements that are not stored, as text (`fill`) in `dtype`:
                 "" for 0. Always "" for a dense format, which stores all elements.
    """

    format: Format
    dtype: str
    index_dtype: str = "int32"
    unit_stride: bool = True
    stored: str = ""
    fill: Fill = ""

    def __post_init__(self) -> None:
        if self.fill and self.format.is_dense:
            object.__setattr__(self, "fill", "")

    @property
    def fill_value(self) -> Any:
        """Return the value of the elements that are not stored, a NumPy number of `dtype`."""
        return as_number(self.fill, np.dtype(self.dtype))

    def read_as(self, dtype: str) -> TensorType:
        """Return the type of the same arrays where kernels convert each value to `dtype` on
        reading.

        Raises NumberOverflowError where `dtype` is an integer type and the fill value is infinite
        or NaN.
        """
        fill = converted(self.fill, np.dtype(self.dtype), np.dtype(dtype))
        return replace(self, dtype=dtype, stored=self.element, fill=fill)

    @property
    def element(self) -> str:
        """Return NumPy's name of the type of the values in memory."""
        return self.stored or self.dtype

    def __repr__(self) -> str:
        """Return all fields, without a fill value of 0, so that keys of kernels stay short."""
        fill = f", fill={self.fill!r}" if self.fill else ""
        return (
            f"TensorType(format={self.format!r}, dtype={self.dtype!r}, "
            f"index_dtype={self.index_dtype!r}, unit_stride={self.unit_stride!r}, "
            f"stored={self.stored!r}{fill})"
        )

    @property
    def computable(self) -> TensorType:
        """Return the same tensor as kernels read it: values of 16 bits as float32.

        dense/float16  →  dense/float32 from float16
        """
        dtype = np.dtype(self.dtype)
        if not is_half(dtype):
            return self
        return replace(self, dtype=computed_dtype(dtype).name, stored=self.dtype)

    @property
    def promoted(self) -> np.dtype[Any]:
        """Return the dtype by which values promote: float16 where they are float32 only for
        computation."""
        stored, read = np.dtype(self.element), np.dtype(self.dtype)
        return stored if computed_dtype(stored) == read else read

    def __str__(self) -> str:
        dtype = f"{self.dtype} from {self.stored}" if self.stored else self.dtype
        if self.format.is_dense:
            return f"{self.format}/{dtype}" + ("" if self.unit_stride else "/strided")
        return f"{self.format}/{dtype}/{self.index_dtype}{fill_word(self.fill)}"


def fill_word(fill: Fill) -> str:
    """Return the text of a fill value after the rest of a type: "" for 0, "/fill=-inf"."""
    return fill and f"/{FILL_WORD}{fill}"


@dataclass(frozen=True, slots=True)
class SideResult:
    """A side result of a kernel: z[i] = sum(j, e[i,j]), a sum inside the assignment.

    target  the dense tensor that it is stored in
    value   for loops, the sum as it occurs in the assignment, over indices of its target; for a
            product with an epilogue (`compiler.epilogue`), another value of the product's elements
    """

    target: Access
    type: TensorType
    value: Expr

    @property
    def assignment(self) -> Assignment:
        """Return the side result as an assignment."""
        return Assignment(self.target, self.value)

    @property
    def covered(self) -> bool:
        """Tell whether the kernel overwrites each element, whatever the array holds at first."""
        return not isinstance(self.value, Reduce)


@dataclass(frozen=True, slots=True)
class Problem:
    """`assignment` (reductions explicit, no index twice in one access) over typed tensors.

    operands  name and type of each tensor on the right, in order of first use
    result    the type of the tensor on the left. Where a level of its format is not `ordered`,
              the kernel may leave that level's coordinates in any order.
    static    sizes known at compile time
    vast      indices with so many more coordinates than operands have entries that no array may be
              as long: workspaces over them are hash tables
    side      results that are stored besides
    """

    assignment: Assignment
    operands: tuple[tuple[str, TensorType], ...]
    result: TensorType
    static: tuple[tuple[str, int], ...] = ()
    vast: tuple[str, ...] = ()
    side: tuple[SideResult, ...] = ()

    def __repr__(self) -> str:
        """Return all fields, without empty side results, so that keys of kernels stay short."""
        side = f", side={self.side!r}" if self.side else ""
        return (
            f"Problem(assignment={self.assignment!r}, operands={self.operands!r}, "
            f"result={self.result!r}, static={self.static!r}, vast={self.vast!r}{side})"
        )

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        """Return the assignment, then the assignments of the side results."""
        return (self.assignment, *(side.assignment for side in self.side))

    def type_of(self, tensor: str) -> TensorType:
        """Return the type of the operand or result named `tensor`."""
        if tensor == self.assignment.target.tensor:
            return self.result
        sides = ((side.target.tensor, side.type) for side in self.side)
        for name, type in (*self.operands, *sides):
            if name == tensor:
                return type
        raise InternalError(f"The problem has no tensor {tensor!r}: {self}")

    def stored(self, access: Access) -> tuple[str, ...]:
        """Return the indices of a tensor's modes in storage order, outermost level first."""
        return self.type_of(access.tensor).format.stored(access.indices)

    def __str__(self) -> str:
        types = ", ".join(f"{name}: {t}" for name, t in self.operands)
        ordered = "".join("o" if level.ordered else "x" for level in self.result.format.levels)
        static = "".join(f", {index}={size}" for index, size in self.static)
        static += "".join(f", {index} vast" for index in self.vast)
        target = self.assignment.target.tensor
        side = "".join(f", {to_text(side_result.assignment)} besides" for side_result in self.side)
        text = to_text(self.assignment)
        return f"{text} with {types}, {target}: {self.result}/{ordered}{static}{side}"
