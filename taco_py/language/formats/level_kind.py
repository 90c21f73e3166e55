"""Kinds of levels as data: their storage, and properties of every level of a kind.

A level stores, below each position of the level above it (its parent p), some coordinates of one
mode, each at a position of its own (Chou et al. 2018, Format Abstraction):

    kind        letter  coordinates below parent p                      position of the k-th
    dense       d       0 … n-1                                         p * n + k
    compressed  s u     crd[pos[p]] … crd[pos[p+1]-1]                   pos[p] + k
    singleton   c q     crd[p]                                          p
    ragged      r       0 … pos[p+1]-pos[p]-1                           pos[p] + k
    banded      b       crd[p] … crd[p]+pos[p+1]-pos[p]-1               pos[p] + k
    bitmap      m       the j whose bit of crd is 1                   p * n + j
    hashed      h       crd[pos[p]] … crd[pos[p+1]-1] that are not -1   pos[p] + k
    padded      p       crd[p], none where it is -1                     p
    offset      o       crd[q] + i where that is in 0 … n-1             p
    interval    i       pos[p] … crd[p]-1                               p for all of them
    pattern     e       crd[pos[p]] … crd[pos[p+1]-1]                   0 for all of them
    pair        w       0 and 1                                         p for both
    mirrored    y       r or c, as the pair above says                  p

Of an offset level, i is the coordinate of the level above it and q the position of the level above
that one. Of a mirrored one, r and c are the coordinates of the two outermost levels; two levels
below a pair have one each: r and c in turn 0, c and r in turn 1. u and q are s and c in which
coordinates below one parent may be equal.
"""

from __future__ import annotations

from typing import Any, ClassVar

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import FormatError


@dataclass(frozen=True, slots=True, eq=False)
class LevelKind:
    """The properties of every level of a kind.

    value       its name
    letter      of levels whose coordinates are unique below each parent
    arrays      its index arrays, of "pos" and "crd"
    full        every coordinate of the mode is present
    branchless  at most one coordinate below each parent
    listed      coordinates are stored in crd, one for each position, in segments that pos delimits
    gaps        some positions store no coordinate
    ordered     coordinates below a parent ascend as their positions do
    shared      all coordinates below a parent have one position, and one value
    fills       zeros between coordinates are stored, so that a range of coordinates has values
    above       the number of levels that must stand above it
    last        whether no level may stand below it
    usual       kernels append to levels of the kind, and schedules split their positions
    repeated    the letter of levels whose coordinates may be equal, "" where they may not
    derived     of formats over derived modes alone, as ELL's, which users name and do not spell
    bits        crd has one bit for each coordinate, in words
    """

    value: str
    letter: str
    arrays: tuple[str, ...]
    full: bool = False
    branchless: bool = False
    listed: bool = False
    gaps: bool = False
    ordered: bool = True
    shared: bool = False
    fills: bool = False
    above: int = 0
    last: bool = False
    repeated: str = ""
    usual: bool = False
    derived: bool = False
    bits: bool = False

    DENSE: ClassVar[LevelKind]
    COMPRESSED: ClassVar[LevelKind]
    SINGLETON: ClassVar[LevelKind]
    RAGGED: ClassVar[LevelKind]
    BANDED: ClassVar[LevelKind]
    BITMAP: ClassVar[LevelKind]
    HASHED: ClassVar[LevelKind]
    PADDED: ClassVar[LevelKind]
    OFFSET: ClassVar[LevelKind]
    INTERVAL: ClassVar[LevelKind]
    PATTERN: ClassVar[LevelKind]
    PAIR: ClassVar[LevelKind]
    MIRRORED: ClassVar[LevelKind]

    @property
    def chained(self) -> bool:
        """Tell whether a level continues the list above: one coordinate for each of its entries."""
        return self.usual and self.branchless

    def __repr__(self) -> str:
        return f"<LevelKind.{self.value.upper()}: {self.value!r}>"

    def __reduce__(self) -> tuple[object, ...]:
        return kind_named, (self.value,)  # each is there once


POS_AND_CRD = ("pos", "crd")
LevelKind.DENSE = LevelKind("dense", "d", (), full=True, usual=True)
LevelKind.COMPRESSED = LevelKind(
    "compressed", "s", POS_AND_CRD, listed=True, repeated="u", usual=True
)
LevelKind.SINGLETON = LevelKind(
    "singleton", "c", ("crd",), branchless=True, above=1, repeated="q", usual=True
)
LevelKind.RAGGED = LevelKind("ragged", "r", ("pos",), fills=True)
LevelKind.BANDED = LevelKind("banded", "b", POS_AND_CRD, fills=True)
LevelKind.BITMAP = LevelKind("bitmap", "m", ("crd",), gaps=True, bits=True)
LevelKind.HASHED = LevelKind("hashed", "h", POS_AND_CRD, gaps=True, ordered=False)
LevelKind.PADDED = LevelKind(
    "padded", "p", ("crd",), branchless=True, gaps=True, above=1, derived=True
)
LevelKind.OFFSET = LevelKind(
    "offset", "o", ("crd",), branchless=True, gaps=True, above=2, derived=True
)
LevelKind.INTERVAL = LevelKind("interval", "i", POS_AND_CRD, shared=True, above=1, derived=True)
LevelKind.PATTERN = LevelKind("pattern", "e", POS_AND_CRD, shared=True, last=True)
LevelKind.PAIR = LevelKind("pair", "w", (), shared=True, above=2, derived=True)
LevelKind.MIRRORED = LevelKind(
    "mirrored", "y", (), branchless=True, gaps=True, above=3, derived=True
)

KINDS: dict[str, LevelKind] = {
    kind.value: kind for kind in vars(LevelKind).values() if isinstance(kind, LevelKind)
}
"""The kinds by name, in the order of the table above."""


class AddedKinds:
    """Kinds of levels that users add, with their packing and their kernel functions."""

    __slots__ = ("_functions", "_kinds", "_packings")

    def __init__(self) -> None:
        self._kinds: dict[str, LevelKind] = {}
        self._packings: dict[LevelKind, Any] = {}
        self._functions: dict[LevelKind, Any] = {}

    def add(self, kind: LevelKind, packing: Any, functions: Any) -> None:
        """Add a kind.

        packing    a `LevelPacking`
        functions  of a `LevelStorage` and an `Above`, an `Iterated`

        Raises FormatError where the name or the letter is in use.
        """
        letters = {other.letter for other in self.all()} | {other.repeated for other in self.all()}
        if kind.value in {other.value for other in self.all()}:
            raise FormatError(
                f"Expected a new kind of level, found {kind.value!r}, which there is",
                hint="kinds stay as they are while a process runs: choose another name",
            )
        if len(kind.letter) != 1 or not kind.letter.islower() or kind.letter in letters:
            raise FormatError(
                f"Expected a letter that no kind has, found {kind.letter!r}",
                hint=f"these are taken: {' '.join(sorted(letters - {''}))}",
            )
        self._kinds[kind.letter] = kind
        self._packings[kind] = packing
        self._functions[kind] = functions

    def all(self) -> tuple[LevelKind, ...]:
        """Return all kinds, also added ones."""
        return (*KINDS.values(), *self._kinds.values())

    def by_letter(self, letter: str) -> LevelKind | None:
        """Return the added kind with a letter, None without one."""
        return self._kinds.get(letter)

    def packing(self, kind: LevelKind) -> Any:
        """Return the packing of levels of an added kind."""
        return self._packings[kind]

    def functions(self, kind: LevelKind) -> Any:
        """Return the kernel functions of levels of an added kind."""
        return self._functions[kind]


ADDED_KINDS = AddedKinds()
"""The kinds that were added in this process."""


def kind_named(name: str) -> LevelKind:
    """Return the kind of a name, also of an added one."""
    named_kind = next((kind for kind in ADDED_KINDS.all() if kind.value == name), None)
    if named_kind is None:
        raise FormatError(
            f"Expected a kind of levels that there is, found {name!r}",
            hint="add it first, as the process did that wrote the tensor: tp.add_level_kind",
        )
    return named_kind
