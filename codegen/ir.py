"""The loop IR: loops, scalars and flat arrays, and nothing a tensor would recognise.

Every node is an immutable value whose fields are nodes, tuples and atoms, so passes are functions
from a tree to a tree. Integer expressions are 64 bits wide throughout; the element type of an
array says only how an element is stored.

A statement that only the values of a result need has the role `VALUES`: without such statements a
kernel makes the structure alone (`passes.phases`). Everything else is `CONTROL`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from codegen.types import BOOL, INT64, ScalarType

# ---------------------------------------------------------------- arrays


class Storage(Enum):
    """Where an array lives and who may resize it."""

    INPUT = "input"  # a read-only pointer parameter
    OUTPUT = "output"  # a pointer parameter of fixed extent that the kernel writes
    GROWING = "growing"  # a `taco_buffer *` parameter: the kernel appends and may enlarge it
    LOCAL = "local"  # heap memory of the kernel's own, from Allocate to the end of its Block


@dataclass(frozen=True, slots=True)
class Array:
    """A flat array named `name` of `element`s."""

    name: str
    element: ScalarType
    storage: Storage

    def __str__(self) -> str:
        return self.name


class Role(Enum):
    CONTROL = "control"
    VALUES = "values"


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Var:
    """A scalar variable: a parameter, a loop counter or a declared local."""

    name: str
    type: ScalarType = INT64


@dataclass(frozen=True, slots=True)
class Const:
    value: bool | int | float | complex
    type: ScalarType = INT64


@dataclass(frozen=True, slots=True)
class Unary:
    """`op` is one of `-` `!`."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary:
    """`op` is one of `+ - * / % < <= > >= == != && ||`, or `min`, `max`.

    `/` and `%` on integers truncate as C's do. Operands have one common type (Cast where they
    differ), but for signed integers, which may differ in width: the result has the wider one's
    type. On bool, `+` and `max` mean or, `*` and `min` mean and. `min` and `max` of floats pass a
    NaN on, as NumPy's do.
    """

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Load:
    array: Array
    index: Expr


@dataclass(frozen=True, slots=True)
class Search:
    """The first place in `array[start:stop]` whose element is at least `value`, `stop` if none is.

    With `after`, at least `value + 1`. The elements, of an INPUT array, ascend. With `near`, the
    place is looked for in growing steps from `start` on, which is fast where it is not far.
    """

    array: Array
    start: Expr
    stop: Expr
    value: Expr
    after: bool = False
    near: bool = False


@dataclass(frozen=True, slots=True)
class Cast:
    type: ScalarType
    operand: Expr


@dataclass(frozen=True, slots=True)
class Call:
    """A pure function of the C library or of the kernel runtime header."""

    function: str
    args: tuple[Expr, ...]
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Select:
    condition: Expr
    then: Expr
    orelse: Expr


@dataclass(frozen=True, slots=True)
class Table:
    """A hash table from int64 keys to entry numbers 0, 1, 2 … in the order of insertion."""

    name: str


@dataclass(frozen=True, slots=True)
class Count:
    """How many entries `table` has."""

    table: Table


@dataclass(frozen=True, slots=True)
class Key:
    """The key of entry number `entry`."""

    table: Table
    entry: Expr


@dataclass(frozen=True, slots=True)
class Ranked:
    """The entry number with the `rank`-th smallest key; valid from SortTable to the next Insert."""

    table: Table
    rank: Expr


@dataclass(frozen=True, slots=True)
class VectorLoad:
    """`lanes` neighbouring elements of `array`, from `index` on; no alignment is asked for."""

    array: Array
    index: Expr
    lanes: int


@dataclass(frozen=True, slots=True)
class Broadcast:
    """`value` in each of `lanes` lanes."""

    value: Expr
    lanes: int


@dataclass(frozen=True, slots=True)
class Lead:
    """How many elements of `array` lie before the first one at a multiple of `bytes`."""

    array: Array
    bytes: int


@dataclass(frozen=True, slots=True)
class Shuffle:
    """A vector of lanes of two others: number n of `lanes` is lane n of `left`, or where `left` has
    no more, of `right` from there on."""

    left: Expr
    right: Expr
    lanes: tuple[int, ...]


Expr = (
    Var | Const | Unary | Binary | Load | Search | Cast | Call | Select | Count | Key | Ranked
    | VectorLoad | Broadcast | Shuffle | Lead
)  # fmt: skip

# ---------------------------------------------------------------- statements


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
    """`array[index] op= value` as one operation, which other threads may do to the same element."""

    array: Array
    index: Expr
    value: Expr
    op: str
    role: Role = Role.CONTROL


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


@dataclass(frozen=True, slots=True)
class Reduction:
    """A scalar that every iteration of a loop updates with the same associative `op`."""

    op: str
    var: Var


@dataclass(frozen=True, slots=True)
class For:
    """`for (var = start; var < stop; var += step)`.

    Of a SERIAL loop, `unroll` iterations stand one after another in the machine's code; 0 leaves
    that open. `note` is what a pass made of the loop, for people: lines of text.
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
    """Sort `count` integers of `array` from `start` on, ascending."""

    array: Array
    start: Expr
    count: Expr
    role: Role = Role.CONTROL


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Ask for `array[index]` to be brought near; `index` may lie outside the array."""

    array: Array
    index: Expr


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
    | Invoke | AtomicStore | Team | Expect
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Function:
    """A C function that returns 0, 1 when memory ran out, 2 when a limit was passed, or 3 when what
    it expects does not hold.

    `arrays` come first in the parameter list, then `scalars`, then `int32_t threads` if `threaded`.
    An `internal` one is called by later functions of its module only (Invoke), and its parameters
    stay as they are.
    """

    name: str
    arrays: tuple[Array, ...]
    scalars: tuple[Var, ...]
    body: Block
    threaded: bool = False
    internal: bool = False


@dataclass(frozen=True, slots=True)
class Module:
    functions: tuple[Function, ...]
    header: str = ""  # a comment for the reader of the source, one line or many

    @property
    def exported(self) -> tuple[Function, ...]:
        """The functions that callers see."""
        return tuple(function for function in self.functions if not function.internal)


TRUE = Const(True, BOOL)
FALSE = Const(False, BOOL)
