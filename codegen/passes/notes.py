"""What the passes made of a module's loops, as text for people.

i by 4: rows of A_vals through one loop
  vector loop: j
  reuse: 4 sums that do not wait for each other; x_vals is loaded once for all
"""

from __future__ import annotations

from codegen.ir import For, LoopKind, Module
from codegen.tree import find

NONE = "no "


def notes(module: Module) -> tuple[str, ...]:
    """The lines: what was done, with reasons below; else why nothing was.

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
        vectors = dict.fromkeys(loop.var.name for loop in loops if loop.kind is LoopKind.VECTOR)
        lines += [f"  vector loop: {', '.join(vectors) or 'none'}"]
    return tuple(lines)
