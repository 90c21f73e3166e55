"""Expressions of the loop IR, and the arrays they read."""

from __future__ import annotations

from enum import Enum

from codegen.records import dataclass
from codegen.types import BOOL, INT64, ScalarType


class Storage(Enum):
    """Where an array lives and who may resize it."""

    INPUT = "input"  # a read-only pointer parameter
    OUTPUT = "output"  # a pointer parameter of fixed extent that the kernel writes
    GROWING = "growing"  # a `taco_buffer *` parameter: the kernel appends and may enlarge it
    LOCAL = "local"  # heap memory of the kernel's own, from Allocate to the end of its Block
    SHARED = "shared"  # memory that the threads of a block of a GPU have in common


@dataclass(frozen=True, slots=True)
class Array:
    """A flat array named `name` of `element`s."""

    name: str
    element: ScalarType
    storage: Storage

    def __str__(self) -> str:
        return self.name


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
    """`op` is one of `+ - * / % & | ^ < <= > >= == != && ||`, or `min`, `max`.

    `/` and `%` on integers truncate as C's do. `& | ^` are those of bits, or of bools, of which
    both are computed. Operands have one common type (Cast where they
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
class Apply:
    """A scalar function of `codegen.libraries.scalar_functions`, by its name there.

    The arguments have one common type, but for signed integers, which may differ in width.
    """

    function: str
    args: tuple[Expr, ...]


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
    Var | Const | Unary | Binary | Load | Search | Cast | Call | Apply | Select | Count | Key
    | Ranked | VectorLoad | Broadcast | Shuffle | Lead
)  # fmt: skip

TRUE = Const(True, BOOL)
FALSE = Const(False, BOOL)
