"""The steps of a computation: each makes the tensor `target` from tensors that exist by then.

Those that are no kernels tell what they do in a line of explain(), `line`.
"""

from __future__ import annotations

from dataclasses import field
from math import prod
from typing import TypeGuard

from codegen.records import dataclass
from taco_py.compiler.cost.spread import Entries
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.recipe import Recipe
from taco_py.language.formats import Format
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses
from taco_py.language.phase import EVALUATE
from taco_py.language.problem import Problem, TensorType


@dataclass(frozen=True, slots=True)
class Operand:
    """What planning knows of a tensor: its type, its shape, how many entries it stores, and which
    where it exists.

    contiguous  of a dense array, for each level but the last, whether a step along it is as long as
                the next level; none where that is not known
    """

    type: TensorType
    shape: tuple[int, ...]
    nnz: float
    entries: Entries | None = field(default=None, compare=False, repr=False)
    contiguous: tuple[bool, ...] = ()

    @property
    def stored(self) -> float:
        """Return the number of stored elements."""
        return float(prod(self.shape)) if is_full(self.type.format) else self.nnz


@dataclass(frozen=True, slots=True)
class Reformat:
    """`target` is `source` stored in `format`; `reason` says what asked for it.

    index_dtype  of its index arrays, where `source` does not have wider ones
    """

    target: str
    source: str
    format: Format
    reason: str
    index_dtype: str

    @property
    def line(self) -> str:
        return f"convert   {self.target} from {self.source}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Gather:
    """`target` is those blocks of the dense `source` that a kernel added to: where `pattern` stores
    an entry, be it zero.

    modes        of `pattern`: the one that each level of `format` stores, down to the last list
    index_dtype  of its index arrays, at least
    """

    target: str
    source: str
    pattern: str
    modes: tuple[int, ...]
    format: Format
    index_dtype: str

    @property
    def line(self) -> str:
        return (
            f"gather    {self.target} from {self.source}: the result is wanted as {self.format}: "
            f"blocks of the array where {self.pattern} has entries, in order, O(size); no copy "
            "where all of it is stored"
        )


@dataclass(frozen=True, slots=True)
class TakeDiagonal:
    """`target` is `source` where the modes with equal labels have equal coordinates."""

    target: str
    source: str
    labels: tuple[str, ...]

    @property
    def line(self) -> str:
        return f"diagonal  {self.target} from {self.source}[{','.join(self.labels)}]"


@dataclass(frozen=True, slots=True)
class Squeeze:
    """`target` is `source` without the modes `axes`, which have size 1."""

    target: str
    source: str
    axes: tuple[int, ...]

    @property
    def line(self) -> str:
        return f"squeeze   {self.target} from {self.source}, modes {self.axes} of size 1"


@dataclass(frozen=True, slots=True)
class Locate:
    """`target` is `source` with one mode more, of size 1, and all modes but that one dense: each
    element's entries are found at its coordinates. `reason` says what that is good for.

    indices  of the modes of the source
    """

    target: str
    source: str
    indices: tuple[str, ...]
    reason: str

    @property
    def line(self) -> str:
        by = ",".join(self.indices)
        return f"locate    {self.target} from {self.source}, by {by}: {self.reason}"


@dataclass(frozen=True, slots=True)
class TakeValues:
    """`target` is the values alone of a sparse `source`, in a row.

    indices   of the modes of the source
    distinct  whether entries with equal coordinates are added up before
    """

    target: str
    source: str
    indices: tuple[str, ...]
    distinct: bool

    @property
    def line(self) -> str:
        indices = ",".join(self.indices)
        return f"values    {self.target} from {self.source}, for no loop asks for {indices}"


@dataclass(frozen=True, slots=True)
class TakeSize:
    """`target` is the size of a mode of `source`, as a number of the type `dtype`."""

    target: str
    source: str
    mode: int
    dtype: str

    @property
    def line(self) -> str:
        return f"size      {self.target} from {self.source}, of its mode {self.mode}"


@dataclass(frozen=True, slots=True)
class TakeSide:
    """`target` is what the kernel of `source` stores besides: its side result of that number."""

    target: str
    source: str
    number: int

    @property
    def line(self) -> str:
        return f"besides   {self.target}, which the loops of {self.source} make"


@dataclass(frozen=True, slots=True)
class Fuse:
    """`target` is a dense `source` with the modes of each group as one, the last one fastest; it
    is stored in the order of the groups."""

    target: str
    source: str
    groups: tuple[tuple[int, ...], ...]

    @property
    def line(self) -> str:
        modes = ", ".join(str(group) for group in self.groups if len(group) > 1)
        reason = "all arrays store them one behind the other"
        return f"fuse      {self.target} from {self.source}, modes {modes} as one each: {reason}"


@dataclass(frozen=True, slots=True)
class Unfuse:
    """`target` is a dense `source` without gaps whose modes are taken apart again.

    sizes  for each mode of the target, a tensor and a mode of it that has its size
    """

    target: str
    source: str
    sizes: tuple[tuple[str, int], ...]

    @property
    def line(self) -> str:
        names = f"{self.target} from {self.source}"
        return f"unfuse    {names}, a view with the modes that it is read by"


@dataclass(frozen=True, slots=True)
class Cast:
    """`target` is a dense `source` with its values converted to `dtype`, stored without gaps as
    `format` orders its modes; `reason` says why."""

    target: str
    source: str
    format: Format
    dtype: str
    reason: str

    @property
    def line(self) -> str:
        turned = self.format.mode_order != tuple(range(self.format.order))
        values = f"values to {self.dtype}" + (f", stored as {self.format}" if turned else "")
        return f"convert   {self.target} from {self.source}, {values}: {self.reason}"


@dataclass(frozen=True, slots=True)
class KernelStep:
    """A kernel of a program: a problem and its schedule. Its result is called `target`.

    What users hold and call is `call.kernel.Kernel`, a whole plan with what it was compiled to.

    schedule a loop order for each term, the way that the kernel is made, how loops are carried out,
             and what is computed in rows of its own
    sizes    for each index, an operand and a mode of it that has the index's size
    sources  the tensor that each of the kernel's operands is, where it goes by another name
    reason      what led to the way, where that is not known of it in general
    looked_up  the rows of operands that are looked up and not merged with others, and why
    in_turn    the loop that terms of a sum have each for themselves, and why
    """

    target: str
    problem: Problem
    schedule: Schedule
    sizes: tuple[tuple[str, str, int], ...]
    sources: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    looked_up: str = ""
    in_turn: str = ""

    @property
    def may_merge(self) -> bool:
        """Tell whether two accesses leave coordinates out, so that a loop may walk both."""
        dense = {name for name, type in self.problem.operands if is_full(type.format)}
        return sum(a.tensor not in dense for a in accesses(self.problem.assignment)) > 1

    def recipe(self, phase: str = EVALUATE, target: str = "c") -> Recipe:
        """Return the recipe that decides the code of this kernel."""
        return Recipe(self.problem, self.schedule, phase, target)

    def source(self, operand: str) -> str:
        """Return the tensor that the kernel's `operand` is."""
        return dict(self.sources).get(operand, operand)


Transformation = (
    Reformat
    | Gather
    | TakeDiagonal
    | Squeeze
    | Locate
    | TakeValues
    | TakeSize
    | TakeSide
    | Fuse
    | Unfuse
    | Cast
)
Step = Transformation | KernelStep


def has_format(step: object) -> TypeGuard[Reformat | Gather | Cast]:
    """Tell whether a step stores its tensor in a format of its own."""
    return isinstance(step, Reformat | Gather | Cast)


def reads_elements(step: object) -> bool:
    """Tell whether a step reads elements of tensors, and not only their shapes."""
    return not isinstance(step, Fuse | Unfuse | TakeSize)
