"""Concrete index notation: index notation with loops, their order and temporaries written out.

    forall i ( where( forall j C[i,j] = w[j],  forall k forall j w[j] += A[i,k] * B[k,j] ) )

(Kjolstad et al. 2019, Tensor Algebra Compilation with Workspaces, section 4.) Values of
assignments are index notation without reductions: a reduction is a loop around an assignment with
an operator.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from codegen.records import dataclass
from taco_py.language.notation.nodes import Access, Expr
from taco_py.language.notation.operators import ADD, Number, Operator


class WorkspaceKind(Enum):
    """How a temporary is stored.

    SCALAR  one variable
    DENSE   an array, or where the workspace is over tiles one of a tile's size
    ROW     a dense vector with a list of the coordinates that were written
    MARKED  the same, looked up in loops over other entries: absent elements are told from zeros
    HASH    a hash table from linearised coordinates to values, for two or more modes
    """

    SCALAR = "scalar"
    DENSE = "dense"
    ROW = "row"
    MARKED = "marked row"
    HASH = "hash"


ROWS = (WorkspaceKind.ROW, WorkspaceKind.MARKED)
"""Kinds of workspaces that list the coordinates of one index."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A temporary tensor over `indices`, initially all `initial`; `dtype` is a scalar type's name.

    operator   by which its producer adds to it; its identity is the initial value
    ordered    whether its consumer needs the coordinates ascending
    zero       whether a dense one must be zero before its producer, which does not fill all of it
    reread     whether its consumer may read an element more than once
    variables  the variables of the loops that fill it, where some derive from its indices
    stored     the element of a side result in which a scalar one is stored once it is filled
    """

    name: str
    indices: tuple[str, ...]
    kind: WorkspaceKind
    dtype: str
    ordered: bool = True
    zero: bool = True
    reread: bool = False
    variables: tuple[str, ...] = ()
    operator: Operator = ADD
    stored: Access | None = None

    @property
    def is_number(self) -> bool:
        """Tell whether it is one variable."""
        return self.kind is WorkspaceKind.SCALAR

    @property
    def is_array(self) -> bool:
        """Tell whether it is a dense array, of which any element may be read."""
        return self.kind is WorkspaceKind.DENSE

    @property
    def is_marked(self) -> bool:
        """Tell whether it is a row that tells elements that were not written from zeros."""
        return self.kind is WorkspaceKind.MARKED

    @property
    def is_table(self) -> bool:
        """Tell whether it is a hash table."""
        return self.kind is WorkspaceKind.HASH

    @property
    def lists_coordinates(self) -> bool:
        """Tell whether it knows the coordinates that were written: a row or a table."""
        return not self.is_number and not self.is_array

    @property
    def access(self) -> Access:
        return Access(self.name, self.indices)

    @property
    def initial(self) -> Number:
        """Return the initial value of each element."""
        identity = self.operator.identity_of(np.dtype(self.dtype))
        return 0 if identity is None else identity


@dataclass(frozen=True, slots=True)
class Assign:
    """`target = value`, or `target op= value`."""

    target: Access
    value: Expr
    operator: Operator | None = None


class Race(Enum):
    """The strategy where iterations of a parallel loop write the same elements.

    NONE       they may not
    IGNORE     nothing: the user knows that they do not
    ATOMICS    each update is one atomic operation
    TEMPORARY  each thread adds to a private copy, and the copies are added up
    ORDERED    the same, with copies for ranges that do not depend on the number of threads: the
               result is the same to the last bit for any number
    """

    NONE = "NoRaces"
    IGNORE = "IgnoreRaces"
    ATOMICS = "Atomics"
    TEMPORARY = "Temporary"
    ORDERED = "Ordered"


ORDERED_COPIES = 8
"""The most copies of a tensor that an ORDERED loop adds to, for any number of threads."""


class Unit(Enum):
    """The processing unit that executes an iteration of a parallel loop.

    CORE    a thread: of the CPU, or of the whole grid of a GPU
    BLOCK   a block of a GPU
    WARP    a warp of such a block
    THREAD  a thread of such a block, or inside a loop of warps a lane of such a warp
    """

    CORE = "CPUThread"
    BLOCK = "GPUBlock"
    WARP = "GPUWarp"
    THREAD = "GPUThread"


INSIDE_BLOCKS = (Unit.WARP, Unit.THREAD)
"""Units that are parts of a block, and so share its memory and wait for each other."""


class Merge(Enum):
    """How a loop finds the coordinates that several levels have in common.

    TWO_FINGER  the level behind advances by one position
    GALLOP      the level behind leaps to the other's coordinate, by exponential search
    """

    TWO_FINGER = "TwoFinger"
    GALLOP = "Gallop"


class Assembly(Enum):
    """How a result that stores coordinates is assembled.

    APPEND  entries are appended in order; parts that threads assemble are joined
    INSERT  entries are counted first, then each is written in its final position
    COPY    coordinates are copied from an operand, so that values have positions before the loops
    """

    APPEND = "Append"
    INSERT = "Insert"
    COPY = "Copy"


PRIVATE_COPIES = (Race.TEMPORARY, Race.ORDERED)
"""Strategies by which each thread adds to a private copy."""


@dataclass(frozen=True, slots=True)
class Mode:
    """The execution mode of a loop.

    parallel  the strategy for common elements where iterations are shared among threads, else None
    unit      the unit that executes a shared iteration
    unroll    the number of unrolled iterations, 0 to leave it to the compiler
    vector    whether iterations are the lanes of a vector
    merge     how several levels are co-iterated
    """

    parallel: Race | None = None
    unroll: int = 0
    vector: bool = False
    merge: Merge = Merge.TWO_FINGER
    unit: Unit = Unit.CORE


SERIAL = Mode()


@dataclass(frozen=True, slots=True)
class Forall:
    """`body` for every value of `index`, ascending unless its iterations are shared."""

    index: str
    body: Statement
    mode: Mode = SERIAL

    @property
    def parallel(self) -> bool:
        return self.mode.parallel is not None


@dataclass(frozen=True, slots=True)
class Where:
    """`consumer` with `workspace` filled by `producer` just before."""

    workspace: Workspace
    consumer: Statement
    producer: Statement


@dataclass(frozen=True, slots=True)
class Sequence:
    """Statements one after another; an empty one does nothing."""

    statements: tuple[Statement, ...]


Statement = Assign | Forall | Where | Sequence


def forall(indices: tuple[str, ...], body: Statement) -> Statement:
    """Return `body` inside one loop for each index, the first outermost."""
    for index in reversed(indices):
        body = Forall(index, body)
    return body
