"""C of stored modes and of levels: where an entry of a matrix has its place, and how all are listed.

In these texts an entry is in row `i` and column `j`; `s0`, `s1` … are its coordinates over the
stored modes, `p0`, `p1` … its positions in the levels, `n0`, `n1` … the sizes of the modes, and
`lpos0`, `lcrd0` … the arrays of the levels. One entry of a table for each kind: what is not in it
is converted by NumPy.
(Chou, Kjolstad and Amarasinghe 2020, sections 4 to 6: remapping, attribute queries, assembly.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from codegen.records import dataclass
from codegen.types import INT32, INT64, ScalarType
from taco_py.formats.level_kind import LevelKind
from taco_py.formats.remapped import RemappedFormat
from taco_py.formats.stored_modes import (
    Difference,
    Quotient,
    Remainder,
    Run,
    Slot,
    StoredMode,
    Whole,
)

INDEX_TYPES: Mapping[np.dtype[Any], ScalarType] = {
    np.dtype("int32"): INT32,
    np.dtype("int64"): INT64,
}
VALUE_TYPES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t", 16: "taco_sixteen"}
LEAST = 1 << 15
"""Entries from which on a text is compiled, which takes a tenth of a second once."""
HEAD = """#include <stdint.h>
typedef struct { uint64_t halves[2]; } taco_sixteen;
"""


# --- an entry of CSR: its stored coordinates, and its place ---------------------------------------


def coordinate_text(mode: StoredMode, place: int) -> str | None:
    """Write the statement that sets s{place} of entry q of row i, in column j; None if unknown."""
    if isinstance(mode, Slot):
        return _slot_text(mode, place)
    if isinstance(mode, Run):
        known = mode == Run(1, (0,))
        near = "q > begin && j == (int64_t)crd[q - 1] + 1 && same(values + q, values + q - 1)"
        return f"s{place} = q == begin ? 0 : s{place} + !({near});" if known else None
    plain = _of_one_mode(mode)
    return None if plain is None else f"s{place} = {plain};"


def _of_one_mode(mode: StoredMode) -> str | None:
    """Write a mode of a matrix, whole or as a part of its block."""
    if isinstance(mode, Whole):
        return "ij"[mode.mode]
    if isinstance(mode, Quotient | Remainder):
        sign = "/" if isinstance(mode, Quotient) else "%"
        return f"{'ij'[mode.mode]} {sign} {mode.block}"
    return None


def _slot_text(mode: Slot, place: int) -> str | None:
    """Write the number of an entry among those of its row, of a group of columns, or of all."""
    if mode.of_mode == Difference(1, 0) and not mode.within:
        return f"s{place} = number[j - i + rows - 1];"
    groups = [each for each in mode.within if each != Whole(0)]
    texts = [_of_one_mode(each) for each in groups]
    ascends = mode.of_mode == Whole(1) or (
        isinstance(mode.of_mode, Remainder) and Quotient(1, mode.of_mode.block) in groups
    )
    if len(groups) == len(mode.within) or not ascends or len(groups) > 1 or None in texts:
        return None
    if not groups:
        return f"s{place} = q - begin;"
    group = str(texts[0])
    new = f"q == begin || {group} != before{place}"
    return f"s{place} = {new} ? 0 : s{place} + 1; before{place} = {group};"


@dataclass(frozen=True, slots=True)
class LevelText:
    """What is done in a level of a kind; k is its number, and a and b the ones above.

    place  sets p{k}, the position below p{a} of coordinate s{k}
    write  stores the coordinate there
    query  which ends of the coordinates below a position must be known first
    visit  opens a loop or a condition over what is below p{a}, and sets p{k} and s{k}
    """

    visit: str
    place: str | None = None
    write: str = ""
    query: tuple[str, ...] = ()


_SAME = "p{k} = p{a};"
_SEGMENT = "for (int64_t p{k} = lpos{k}[p{a}]; p{k} < lpos{k}[p{a} + 1]; p{k}++) {{ "
LEVELS: Mapping[LevelKind, LevelText] = {
    LevelKind.DENSE: LevelText(
        "for (int64_t s{k} = 0; s{k} < n{k}; s{k}++) {{ const int64_t p{k} = p{a} * n{k} + s{k};",
        "p{k} = p{a} * n{k} + s{k};",
    ),
    LevelKind.COMPRESSED: LevelText(_SEGMENT + "const int64_t s{k} = lcrd{k}[p{k}];"),
    LevelKind.RAGGED: LevelText(
        _SEGMENT + "const int64_t s{k} = p{k} - lpos{k}[p{a}];",
        "p{k} = lpos{k}[p{a}] + s{k};",
        query=("behind",),
    ),
    LevelKind.BANDED: LevelText(
        _SEGMENT + "const int64_t s{k} = p{k} - lpos{k}[p{a}] + lcrd{k}[p{a}];",
        "p{k} = lpos{k}[p{a}] + s{k} - lcrd{k}[p{a}];",
        query=("least", "behind"),
    ),
    LevelKind.BITMAP: LevelText(
        "for (int64_t s{k} = 0; s{k} < n{k}; s{k}++) {{ "
        "const int64_t p{k} = p{a} * n{k} + s{k}; "
        "const INDEX *const word{k} = lcrd{k} + p{a} * ((n{k} + BITS - 1) / BITS) + s{k} / BITS; "
        "if (!(((uint64_t)*word{k} >> s{k} % BITS) & 1)) continue;"
    ),
    LevelKind.PADDED: LevelText(
        "{{ const int64_t p{k} = p{a}, s{k} = lcrd{k}[p{a}]; if (s{k} < 0) continue;",
        _SAME,
        "lcrd{k}[p{k}] = (INDEX)s{k};",
    ),
    LevelKind.OFFSET: LevelText(
        "{{ const int64_t p{k} = p{a}, s{k} = (int64_t)lcrd{k}[p{b}] + s{a}; "
        "if (s{k} < 0 || s{k} >= n{k}) continue;",
        _SAME,
        "lcrd{k}[p{b}] = (INDEX)(s{k} - s{a});",
    ),
    LevelKind.INTERVAL: LevelText(
        "{{ const int64_t p{k} = p{a}; for (int64_t s{k} = lpos{k}[p{k}]; s{k} < lcrd{k}[p{k}]; "
        "s{k}++) {{",
        _SAME,
        "if (lcrd{k}[p{k}] == 0) lpos{k}[p{k}] = (INDEX)s{k}; lcrd{k}[p{k}] = (INDEX)(s{k} + 1);",
    ),
    LevelKind.PAIR: LevelText(
        "for (int64_t s{k} = 0; s{k} < 2; s{k}++) {{ const int64_t p{k} = p{a};"
    ),
    LevelKind.MIRRORED: LevelText(
        "{{ const int64_t p{k} = p{a}, s{k} = s2 == ({k} > 3) ? s0 : s1; "
        "if (s2 && s0 == s1) continue;"
    ),
}
"""Kinds of levels by what is done in them."""


def filled(text: str, level: int) -> str:
    """Put the numbers of a level and of those above into a text."""
    above = f"{level - 1}" if level else "_root"
    return text.format(k=level, a=above, b=f"{level - 2}" if level > 1 else "_root")


def texts_of(format: RemappedFormat) -> list[LevelText] | None:
    """The texts of the levels of a matrix's format, None where one has none."""
    inner = format.inner
    if format.order != 2 or inner.mode_order != tuple(range(inner.order)):
        return None
    found = [LEVELS.get(level.kind) for level in inner.levels]
    known = [each for each in found if each is not None]
    return known if len(known) == len(found) else None


def logical_texts(format: RemappedFormat) -> tuple[str, str] | None:
    """Write row and column of an entry by its stored coordinates; None where that is not known."""
    found = [_logical(format, mode) for mode in range(2)]
    row, column = found
    return None if row is None or column is None else (row, column)


def _logical(format: RemappedFormat, mode: int) -> str | None:
    if Whole(mode) in format.modes:
        return f"s{format.modes.index(Whole(mode))}"
    for place, each in enumerate(format.modes):
        if isinstance(each, Quotient) and each.mode == mode:
            rest = Remainder(mode, each.block)
            if rest in format.modes:
                return f"s{place} * {each.block} + s{format.modes.index(rest)}"
    return None


def zero_text(dtype: np.dtype[Any]) -> str:
    """Write the C function that tells whether a value of the type is 0, of either sign."""
    bits = 8 * dtype.itemsize
    half = bits // 2 if dtype.kind == "c" else bits
    signed = dtype.kind in "fcV"  # V: numbers of 16 bits that NumPy has not
    mask = (1 << half - 1) - 1 if signed else (1 << half) - 1
    head = "static inline int is_zero(const VALUE *v) "
    if bits == 128:
        return head + f"{{ return ((v->halves[0] | v->halves[1]) & UINT64_C({mask})) == 0; }}"
    whole = mask | mask << half if half < bits else mask
    return head + f"{{ return (*v & UINT64_C({whole})) == 0; }}"


def same_text(itemsize: int) -> str:
    """Write the C function that tells whether two values of a size have the same bits."""
    halves = "a->halves[0] == b->halves[0] && a->halves[1] == b->halves[1]"
    test = halves if itemsize == 16 else "*a == *b"
    return f"static inline int same(const VALUE *a, const VALUE *b) {{ return {test}; }}"


def with_types(text: str, index: np.dtype[Any], dtype: np.dtype[Any]) -> str:
    """Put types of C before a text: INDEX of coordinates, VALUE of values, and what tells them."""
    names = (
        f"typedef {INDEX_TYPES[index].c} INDEX;",
        f"typedef {VALUE_TYPES[dtype.itemsize]} VALUE;",
        f"#define BITS {8 * index.itemsize}",
        zero_text(dtype),
        same_text(dtype.itemsize),
    )
    return HEAD + "\n".join(names) + "\n" + text
