"""The flags that a compiler was found to accept, kept in a store for later processes."""

from __future__ import annotations

import json
from dataclasses import replace

from codegen.toolchain.compiler import Compiler, may_have_left
from codegen.toolchain.processor import digest
from codegen.toolchain.store import Store


def write_compiler_note(store: Store, compiler: Compiler, probed: Compiler) -> None:
    """Store the accepted flags of a compiler."""
    store.write_note(_name(compiler), json.dumps([probed.flags, probed.openmp]))


def as_noted(store: Store, compiler: Compiler) -> Compiler:
    """Return a compiler with the flags that an earlier process found out, if any did."""
    note = store.note(_name(compiler))
    if note is None:
        return compiler
    try:
        flags, openmp = json.loads(note)
        accepted = tuple(str(flag) for flag in flags)
    except (ValueError, TypeError):
        return compiler
    if not may_have_left(compiler, accepted, openmp):
        return compiler
    return replace(compiler, flags=accepted, openmp=str(openmp), probed=True)


def _name(compiler: Compiler) -> str:
    return f"compiler-{digest(compiler.identity, *compiler.flags, compiler.openmp)}"
