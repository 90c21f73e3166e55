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
    """Return the notes on applied passes with their reasons; else why none applied.

    loops_of_text  what loops are called in the text of the module; others are not told

    Loops that have their reasons in common stand together. Read off the loops as they are after the
    passes, so that what a later one removed is not told; a loop of one round has left its note to
    one inside it.
    """
    loops = list(find(module, For))
    notes_ = dict.fromkeys(loop.note for loop in loops if loop.note)
    applied = [note for note in notes_ if not note.startswith(NONE)]
    heads_of: dict[str, list[str]] = {}
    for note in applied or notes_:
        head, _, reasons = note.partition("\n")
        heads_of.setdefault(reasons, []).append(head)
    lines = [
        line for reasons, heads in heads_of.items() for line in (*heads, *reasons.splitlines())
    ]
    if not lines:
        lines = ["none: no row stays the same while a sum runs over it"]
    if not any("vector loop" in line for line in lines):
        loop_names = [_text_name(loop, loops_of_text) for loop in loops if loop.is_vector]
        vector_names = dict.fromkeys(name for name in loop_names if name is not None)
        if vector_names or not loop_names:
            lines += [f"  vector loop: {', '.join(vector_names) or 'none'}"]
    return tuple(lines)


def _text_name(loop: For, names_: Collection[str] | None) -> str | None:
    """Return a loop's name in the text, also of a copy: k for k_1; None without one."""
    name = loop.var.name
    if names_ is None or name in names_:
        return name
    stem = re.sub(r"_\d+$", "", name)
    return stem if stem in names_ else None
