"""What the passes made of a module's loops, as text for people.

i by 4: rows of A_vals through one loop
  vector loop: j
  reuse: 4 sums that do not wait for each other; x_vals is loaded once for all
"""

from __future__ import annotations

import re
from collections.abc import Collection

from codegen.ir import For, Module
from codegen.tree import find

NONE = "no "


def notes(module: Module, loops_of_text: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the lines: what was done, with reasons below; else why nothing was.

    loops_of_text  what loops are called in the text of the module; others are not told

    Loops that have their reasons in common stand together. Read off the loops as they are after the
    passes, so that what a later one removed is not told; a loop of one round has left its note to
    one inside it.
    """
    loops = list(find(module, For))
    found = dict.fromkeys(loop.note for loop in loops if loop.note)
    done = [note for note in found if not note.startswith(NONE)]
    told: dict[str, list[str]] = {}
    for note in done or found:
        head, _, reasons = note.partition("\n")
        told.setdefault(reasons, []).append(head)
    lines = [line for reasons, heads in told.items() for line in (*heads, *reasons.splitlines())]
    if not lines:
        lines = ["none: no row stays the same while a sum runs over it"]
    if not any("vector loop" in line for line in lines):
        named = [_named(loop, loops_of_text) for loop in loops if loop.is_vector]
        told_once = dict.fromkeys(name for name in named if name is not None)
        if told_once or not named:
            lines += [f"  vector loop: {', '.join(told_once) or 'none'}"]
    return tuple(lines)


def _named(loop: For, known: Collection[str] | None) -> str | None:
    """What a loop is called in the text, where it has one of those names or a copy's: k_1 for k."""
    name = loop.var.name
    if known is None or name in known:
        return name
    stem = re.sub(r"_\d+$", "", name)
    return stem if stem in known else None
