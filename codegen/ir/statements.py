"""Statements of the loop IR."""

from __future__ import annotations

from enum import Enum

from codegen.ir.expressions import Array, Expr, Table, Var
from codegen.records import dataclass


class Role(Enum):
    CONTROL = "control"
    VALUES = "values"


@dataclass(frozen=True, slots=True)
class Block:
    """Statements in order, in one scope of names."""

    body: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Comment:
    text: str


@dataclass(frozen=True, slots=True)
class Declare:
    """Introduce `var` with a first value. `constant` promises that nothing assigns it."""

    var: Var
    value: Expr
    constant: bool = False
    role: Role = Role.CONTROL


@dataclass(frozen=True, slots=True)
class Assign:
    """`var = value`, or `var op= value` for `op` in `+ - * / min max || &&`."""

    var: Var
    value: Expr
    op: str | None = None
    role: Role = Role.CONTROL


@dataclass(frozen=True, slots=True)
class Store:
    """`array[index] = value`, or `array[index] op= value`."""

    array: Array
    index: Expr
    value: Expr
    op: str | None = None
    role: Role = Role.CONTROL


@dataclass(frozen=True, slots=True)
class AtomicStore:
    """`array[index] op= value` as one operation, which other threads may do to the same element.

    It `meets` those of neighbouring iterations of the loop around it, which mostly do.
    """

    array: Array
    index: Expr
    value: Expr
    op: str
    role: Role = Role.CONTROL
    meets: bool = False


@dataclass(frozen=True, slots=True)
class AtomicFetch:
    """Declare `var` as what `array[index]` was before, and change it, as one operation.

    It becomes `value` where it was `expected`; without that, `value` is added to it.
    """

    var: Var
    array: Array
    index: Expr
    value: Expr
    expected: Expr | None = None
    role: Role = Role.CONTROL


@dataclass(frozen=True, slots=True)
class AddRuns:
    """`array[index] op= value` by all lanes of a warp together, which come here with values of
    their own: neighbours with the same `index` once. Nothing where that is below 0."""

    array: Array
    index: Expr
    value: Expr
    op: str
    role: Role = Role.VALUES


@dataclass(frozen=True, slots=True)
class VectorStore:
    """Write the lanes of `value` to `array`, from `index` on.

    Where it is `streaming`, past the caches if the machine can: nothing reads them soon.
    """

    array: Array
    index: Expr
    value: Expr
    role: Role = Role.CONTROL
    streaming: bool = False


@dataclass(frozen=True, slots=True)
class If:
    condition: Expr
    then: Block
    orelse: Block = Block()


@dataclass(frozen=True, slots=True)
class While:
    condition: Expr
    body: Block


class LoopKind(Enum):
    SERIAL = "serial"
    PARALLEL = "parallel"  # iterations are independent and may be shared among threads
    VECTOR = "vector"  # iterations are independent but for the listed reductions
    GRID = "grid"  # iteration n is that of thread n of a kernel's grid, and so on in steps of it
    BLOCKS = "blocks"  # the same of its blocks
    WARPS = "warps"  # of the warps of a block
    THREADS = "threads"  # of the threads of a block
    GROUPS = "groups"  # of groups of neighbouring lanes of a warp
    LANES = "lanes"  # of the lanes of a warp, or of such a group


@dataclass(frozen=True, slots=True)
class Reduction:
    """A scalar that every iteration of a loop updates with the same associative `op`."""

    op: str
    var: Var


@dataclass(frozen=True, slots=True)
class For:
    """`for (var = start; var < stop; var += step)`.

    Of a SERIAL loop, `unroll` iterations stand one after another in the machine's code; 0 leaves
    that open. `note` is what a pass made of the loop, for people: lines of text. Of the parts of a
    block, `units` take the iterations; 0 leaves that open. Of BLOCKS, a multiprocessor has so many
    at a time at least.
    `width` is how many lanes a group has, where they are fewer than those of a warp.
    """

    var: Var
    start: Expr
    stop: Expr
    body: Block
    step: int = 1
    kind: LoopKind = LoopKind.SERIAL
    reductions: tuple[Reduction, ...] = ()
    unroll: int = 0
    note: str = ""
    units: int = 0
    width: int = 0

    @property
    def is_serial(self) -> bool:
        """Tell whether iterations run one after another."""
        return self.kind is LoopKind.SERIAL

    @property
    def is_vector(self) -> bool:
        """Tell whether iterations run in the lanes of vectors."""
        return self.kind is LoopKind.VECTOR

    @property
    def is_parallel(self) -> bool:
        """Tell whether threads of the host share the iterations."""
        return self.kind is LoopKind.PARALLEL


@dataclass(frozen=True, slots=True)
class Allocate:
    """Give a LOCAL array `size` elements, all zero when `zero`; freed where its Block ends.

    It starts at a multiple of `align` bytes, a power of 2 (0: as malloc does); not with `zero`.
    """

    array: Array
    size: Expr
    zero: bool = False
    align: int = 0


@dataclass(frozen=True, slots=True)
class Reserve:
    """Make room in a GROWING or LOCAL array for `size` elements in all, keeping its contents."""

    array: Array
    size: Expr
    role: Role = Role.CONTROL


@dataclass(frozen=True, slots=True)
class SetLength:
    """Tell the owner of a GROWING array how many elements it now holds.

    Beyond `limit`, if given, the function fails instead: other arrays count them in a type that
    ends there. Positions themselves are 64 bits wide, so that looking at the end is enough.
    """

    array: Array
    size: Expr
    role: Role = Role.CONTROL
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Fill:
    """Set `count` elements from `start` on to `value`."""

    array: Array
    start: Expr
    count: Expr
    value: Expr
    role: Role = Role.CONTROL


@dataclass(frozen=True, slots=True)
class Sort:
    """Sort `count` integers of `array` from `start` on, ascending.

    marks  truths, which tell for each integer whether it is there; none is there twice
    units  those of a GPU that sort together: the threads of a block, or the lanes of a warp
    """

    array: Array
    start: Expr
    count: Expr
    role: Role = Role.CONTROL
    marks: Array | None = None
    units: LoopKind | None = None


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Ask for `array[index]` to be brought near; `index` may lie outside the array.

    level  the cache that it is brought to, 1 the nearest
    """

    array: Array
    index: Expr
    level: int = 1


@dataclass(frozen=True, slots=True)
class NewTable:
    """Create `table`, empty; freed where its Block ends."""

    table: Table


@dataclass(frozen=True, slots=True)
class Insert:
    """Declare `entry` as the entry number of `key` in `table`; an absent key gets the next one."""

    table: Table
    key: Expr
    entry: Var


@dataclass(frozen=True, slots=True)
class SortTable:
    """Rank the entries by key, for Ranked."""

    table: Table


@dataclass(frozen=True, slots=True)
class ClearTable:
    """Remove all entries, keeping the memory."""

    table: Table


@dataclass(frozen=True, slots=True)
class Expect:
    """The function ends here unless `condition` holds; not in what is done in vectors."""

    condition: Expr


@dataclass(frozen=True, slots=True)
class Place:
    """Where in `array` the array of a called function starts."""

    array: Array
    start: Expr


@dataclass(frozen=True, slots=True)
class Invoke:
    """Call an internal function of the module; where it fails, this function fails.

    `threads` is how many a threaded function may use.
    """

    function: str
    places: tuple[Place, ...]
    scalars: tuple[Expr, ...] = ()
    threads: Expr | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """Run a kernel of the module on the device, by as many threads as have something to do.

    threads  how many there are at most, in all blocks; some may have several iterations
    block    of them in each block
    """

    kernel: str
    threads: Expr
    block: int


@dataclass(frozen=True, slots=True)
class Combine:
    """Let `var`, which each of the units of a loop's kind has, be those of all combined by `op`.

    Of LANES those of a warp, or of a group of `width` of them, of WARPS those of a block (lanes of
    a warp agree), of THREADS both. All threads of the warp, group or block come here together.
    """

    var: Var
    op: str
    kind: LoopKind
    role: Role = Role.VALUES
    width: int = 0


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait for all lanes of the warp (LANES), or all threads of the block (THREADS), and see what
    they have written."""

    kind: LoopKind


@dataclass(frozen=True, slots=True)
class Part:
    """A GROWING array to which every piece of a team's work appends a part; parts are put together.

    counts  where given, the elements are lengths of this array so far, beginning with 0: the zero
            that later parts begin with is left out, and their elements grow by the lengths of the
            parts of `counts` before them
    limit   the function fails where the array is longer in the end
    """

    array: Array
    counts: Array | None = None
    limit: int | None = None
    role: Role = Role.CONTROL


@dataclass(frozen=True, slots=True)
class Team:
    """Threads that take pieces of work, numbers 0, 1 … `count - 1` of them, one after another.

    setup  allocations that each thread does first; `body` uses them as the thread's own
    body   what is done for one piece; the arrays of `parts` are its own parts there
    """

    piece: Var
    count: Expr
    setup: Block
    body: Block
    parts: tuple[Part, ...] = ()


Stmt = (
    Block | Comment | Declare | Assign | Store | If | While | For
    | Allocate | Reserve | SetLength | Fill | Sort | Prefetch
    | NewTable | Insert | SortTable | ClearTable | VectorStore
    | Invoke | AtomicStore | AtomicFetch | AddRuns | Team | Expect | Launch | Combine | Barrier
)  # fmt: skip
