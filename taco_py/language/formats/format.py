"""Storage formats as data: level kinds, mode order and properties.

A tensor of order n is stored as a tree of n levels; level k stores the coordinates of mode
`mode_order[k]` (Chou et al. 2018, Format Abstraction). A *dense* level stores no coordinates:
position = parent position × size + coordinate. A *compressed* level stores, per parent position p,
the coordinates crd[pos[p]:pos[p+1]]. A *singleton* level stores one coordinate crd[p] for each
parent position p.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from operator import index as as_integer
from typing import TypeVar

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.formats.level_kind import ADDED_KINDS, KINDS, LevelKind
from taco_py.language.formats.sized_names import SIZES, read_sizes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Level:
    """One level: its kind, and whether coordinates below one parent are ordered and unique."""

    kind: LevelKind
    ordered: bool = True
    unique: bool = True

    @property
    def full(self) -> bool:
        return self.kind.full

    @property
    def branchless(self) -> bool:
        return self.kind.branchless

    @property
    def is_list(self) -> bool:
        """Tell whether kernels append to the level and search it: a list below each position."""
        return self.kind.usual and self.kind.listed

    @property
    def chained(self) -> bool:
        return self.kind.chained

    @property
    def arrays(self) -> tuple[str, ...]:
        return self.kind.arrays

    @property
    def letter(self) -> str:
        """Return the level's letter, which does not tell whether it is ordered."""
        return self.kind.letter if self.unique else self.kind.repeated


LETTERS: dict[str, Level] = {
    **{kind.letter: Level(kind) for kind in KINDS.values()},
    **{kind.repeated: Level(kind, unique=False) for kind in KINDS.values() if kind.repeated},
}
FORMAT_LETTERS = {"CSR": "ds", "CSC": "ds:1,0", "DCSR": "ss", "DCSC": "ss:1,0", "PATTERN": "de"}
"""Letters of the named formats."""
OF_ANY_ORDER = ("coo", "csf", "dense", "hash", "dok")
"""Names of formats for tensors of any order."""
CONVERTED = ("lil",)
"""Formats of scipy that operands may have, and that are converted before use."""


def _all_are(items: object, kind: type) -> bool:
    """Tell whether `items` is a tuple of instances of `kind`."""
    return isinstance(items, tuple) and all(isinstance(item, kind) for item in items)


@dataclass(frozen=True, slots=True)
class Format:
    """A storage format: levels from the root down, and the mode of each.

    >>> str(Format.parse("ds:1,0"))
    'ds:1,0'
    >>> Format.parse("csc") == Format.parse("ds:1,0")
    True

    levels      the kind of each level, and whether its coordinates are ordered and unique
    mode_order  the mode that each level stores

    Raises FormatError where these are no format.
    """

    levels: tuple[Level, ...]
    mode_order: tuple[int, ...]
    is_dense: bool = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not _all_are(self.levels, Level) or not _all_are(self.mode_order, int):
            raise FormatError(
                "Expected a tuple of levels and one of mode numbers, found "
                f"{self.levels!r} and {self.mode_order!r}",
                hint='Format.parse reads letters, as in Format.parse("ds:1,0")',
            )
        if sorted(self.mode_order) != list(range(len(self.levels))):
            raise FormatError(
                f"Expected a mode order that is a permutation of 0…{len(self.levels) - 1}, "
                f"found {self.mode_order}",
                hint='write one number for each level, as in "ds:1,0"',
            )
        for place, level in enumerate(self.levels):
            _check_above(level.kind, self.levels[:place])
        is_dense = all(level.kind is LevelKind.DENSE for level in self.levels)
        object.__setattr__(self, "is_dense", is_dense)  # both are read often
        object.__setattr__(self, "_hash", hash((self.levels, self.mode_order)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return Format, (self.levels, self.mode_order)  # another process hashes otherwise

    @property
    def order(self) -> int:
        """Return the number of modes."""
        return len(self.levels)

    @property
    def depth(self) -> int:
        """Return the number of levels down to the last sparse one; those below form dense blocks.

        >>> Format.parse("dsd").depth
        2
        """
        return max((k for k, level in enumerate(self.levels, 1) if not level.full), default=0)

    def stored(self, modes: Sequence[T]) -> tuple[T, ...]:
        """Permute one value for each mode to storage order, the outermost level's value first.

        >>> Format.parse("ds:1,0").stored("ij")
        ('j', 'i')
        """
        return tuple(modes[mode] for mode in self.mode_order)

    @property
    def is_unique(self) -> bool:
        """Tell whether coordinates are unique below each position of every level."""
        return all(level.unique for level in self.levels)

    @property
    def is_coo(self) -> bool:
        """Tell whether the root is compressed and all other levels are singletons."""
        return (
            self.order > 0
            and self.levels[0].kind is LevelKind.COMPRESSED
            and all(level.kind is LevelKind.SINGLETON for level in self.levels[1:])
            and (self.order > 1 or not self.levels[0].unique)
        )

    @classmethod
    def parse(cls, text: str) -> Format:
        """Parse a format from letters, or from a name as in "csr".

        >>> Format.parse("ds").stored("ij"), Format.parse("ds:1,0").stored("ij")
        (('i', 'j'), ('j', 'i'))

        text  one letter a level (d dense, s compressed, u compressed with duplicates, c singleton,
              q singleton with duplicates, r ragged, b banded, m bitmap, h hashed), then the mode
              order if it is not 0, 1, 2 …

        Raises FormatError that names the place.
        """
        if not isinstance(text, str):
            raise FormatError(
                f"Expected level letters as a string, found {text!r}", hint='as in "ds:1,0"'
            )
        letters, _, order = FORMAT_LETTERS.get(text.upper(), text).partition(":")
        if read_sizes(text) is not None:
            raise FormatError(
                f"Expected letters of levels, found {text!r}, a format of derived modes",
                hint=f"tp.tensor(A, format={text!r}) stores matrices in it",
            )
        levels = [_level_of(letter) for letter in letters]
        for place, letter in enumerate(letters):
            if levels[place] is None:
                raise FormatError(
                    f"Expected level letters out of {', '.join(_level_letters())}, found "
                    f"{letter!r} at place {place} of {text!r}",
                    hint=_other_format(letters),
                )
        try:
            modes = tuple(int(m) for m in order.split(",")) if order else tuple(range(len(letters)))
        except ValueError:
            raise FormatError(
                f"Expected mode numbers with commas between them, found {order!r} after the colon "
                f"of {text!r}",
                hint='as in "ds:1,0"',
            ) from None
        if len(modes) != len(letters):
            raise FormatError(
                f"Expected as many modes as levels in {text!r}, found {len(modes)} and "
                f"{len(letters)}",
                hint='as in "ds:1,0"',
            )
        return cls(tuple(level for level in levels if level is not None), modes)

    def __str__(self) -> str:
        letters = "".join(level.letter for level in self.levels)
        if self.mode_order == tuple(range(self.order)):
            return letters
        return f"{letters}:{','.join(map(str, self.mode_order))}"


def _check_above(kind: LevelKind, above: tuple[Level, ...]) -> None:
    """Raise FormatError where a level of a kind may not stand below the levels `above`."""
    if any(level.kind.last for level in above):
        raise FormatError(
            f"Expected no level below one that has one value for all, found a {kind.value} level",
            hint='the pattern is the last level, as in "de"',
        )
    if len(above) < kind.above:
        place = "it at the root" if not above else f"it below {len(above)} alone"
        raise FormatError(
            f"Expected {'a level' if kind.above == 1 else f'{kind.above} levels'} above a "
            f"{kind.value} level, found {place}",
            hint='COO is "uc" for matrices: a compressed level, then singletons',
        )
    if kind is LevelKind.SINGLETON and above[-1].full:
        raise FormatError(
            "Expected a singleton level below a compressed or singleton level, found it below a "
            "dense level",
            hint='COO is "uc" for matrices: a compressed level, then singletons',
        )


def _level_of(letter: str) -> Level | None:
    """Return the level of a letter, None for other letters."""
    kind = ADDED_KINDS.by_letter(letter)
    return LETTERS.get(letter) if kind is None else Level(kind)


def _level_letters() -> list[str]:
    """Return the letters that users write: all except those of derived formats."""
    kinds = [kind for kind in ADDED_KINDS.all() if not kind.derived]
    return [letter for kind in kinds for letter in (kind.letter, kind.repeated) if letter]


MOST_LEVELS = 64
"""The largest number of levels: that of the modes of NumPy's arrays."""


def _other_format(word: str) -> str:
    """Suggest the format that a misspelt word may mean, and list all formats."""
    if word.lower() in CONVERTED:
        return (
            f"operands of scipy's {word} are converted to CSR, and nothing is stored in it; the "
            f"names are {', '.join((*FORMAT_LETTERS, *OF_ANY_ORDER))}"
        )
    hint = (
        "d dense, s compressed, u compressed with duplicates, c singleton, q singleton with "
        "duplicates, r ragged, b banded, m bitmap, h hashed, e pattern; "
        f"or {', '.join((*FORMAT_LETTERS, *OF_ANY_ORDER))}"
    )
    names = [name.lower() for name in (*FORMAT_LETTERS, *OF_ANY_ORDER)]
    return with_suggestion(hint, word.lower(), names)


def dense(order: int) -> Format:
    """Return the format of a dense array in row-major order.

    >>> str(dense(3)), dense(2).is_dense
    ('ddd', True)
    >>> dense(0).order
    0

    order  the number of modes, from 0 to 64

    Raises FormatError for another number.
    """
    order = _checked_order(order, 0)
    return Format((LETTERS["d"],) * order, tuple(range(order)))


def COO(order: int) -> Format:  # noqa: N802 - the field's name
    """Return the format of coordinate lists in any order, whose duplicates are summed.

    >>> str(COO(2))
    'uq'
    >>> COO(3).is_coo
    True

    order  the number of modes, from 1 to 64

    Raises FormatError for another number.
    """
    order = _checked_order(order, 1)
    letters = "u" + "q" * (order - 1)
    return Format.parse(letters)


def CSF(order: int) -> Format:  # noqa: N802
    """Return the format of compressed sparse fibres: every level compressed.

    >>> str(CSF(3))
    'sss'
    >>> CSF(2) == DCSR
    True

    order  the number of modes, from 0 to 64

    Raises FormatError for another number.
    """
    return Format.parse("s" * _checked_order(order, 0))


def HASH(order: int) -> Format:  # noqa: N802
    """Return the format of hash tables below a dense root: one for each row of a matrix.

    >>> str(HASH(2)), str(HASH(1))
    ('dh', 'h')
    >>> HASH(3) == Format.parse("dhh")
    True

    order  the number of modes, from 1 to 64

    Raises FormatError for another number.
    """
    order = _checked_order(order, 1)
    return Format.parse("h" if order == 1 else "d" + "h" * (order - 1))


def DOK(order: int) -> Format:  # noqa: N802
    """Return the format of hash tables of hash tables: every level hashed.

    >>> str(DOK(2))
    'hh'
    >>> DOK(1) == HASH(1)
    True

    order  the number of modes, from 1 to 64

    Raises FormatError for another number.
    """
    return Format.parse("h" * _checked_order(order, 1))


def _checked_order(order: int, least: int) -> int:
    """Return the number of levels as an int. Raises FormatError."""
    try:
        count = -1 if isinstance(order, bool) else as_integer(order)
    except TypeError:
        count = -1
    if not least <= count <= MOST_LEVELS:
        raise FormatError(
            f"Expected a number of modes from {least} to {MOST_LEVELS}, found {order!r}",
            hint="as in CSF(3)",
        )
    return count


CSR = Format.parse("CSR")
CSC = Format.parse("CSC")
DCSR = Format.parse("DCSR")
DCSC = Format.parse("DCSC")


def format_named(text: str, order: int) -> Format:
    """Parse a format of `order` modes from letters, or from a name as in "coo".

    >>> named("coo", 3) == COO(3), named("csr", 2) == Format.parse("ds")
    (True, True)
    """
    makers = {"coo": COO, "csf": CSF, "dense": dense, "hash": HASH, "dok": DOK}
    make = makers.get(text.lower())
    if make is not None:
        return make(order)
    letters = FORMAT_LETTERS.get(text.upper(), text).partition(":")[0]
    if len(letters) != order and all(map(_level_of, letters)):
        names = [name.lower() for name in (*FORMAT_LETTERS, *OF_ANY_ORDER)]
        sized = SIZES.get(text.lower())
        hint = with_suggestion("write one level letter a mode", text.lower(), names)
        raise FormatError(
            f"Expected a format of {order} levels for a tensor of order {order}, found {text!r} of "
            f"{len(letters)}",
            hint=hint
            if sized is None
            else f'with sizes it is another one, as in "{sized.example}"',
        )
    return Format.parse(text)
