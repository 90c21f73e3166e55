"""The host's declarations for cffi are those that its parser makes."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from cffi import FFI
from cffi.recompiler import Recompiler

from codegen.runtime import host_declarations as stored

SOURCE = Path(stored.__file__).parent / "taco_host.c"


def test_declarations_are_those_of_cffi() -> None:
    ffi = FFI()
    ffi.cdef(stored.CDEF)
    recompiler = Recompiler(ffi, "_tacopy_host", target_is_python=True)
    recompiler.collect_type_table()
    recompiler.collect_step_tables()
    text = io.StringIO()
    recompiler.write_source_to_f(text, None)
    arguments = text.getvalue().partition("FFI(")[2].strip().removesuffix(")")
    assert eval(f"dict(name={arguments})") == {
        "name": "_tacopy_host",
        "_version": stored.VERSION,
        "_types": stored.TYPES,
        "_globals": tuple(part for function in stored.FUNCTIONS for part in function),
    }


def test_every_declaration_is_in_the_source() -> None:
    text = SOURCE.read_text()
    for line in filter(None, stored.CDEF.splitlines()):
        assert f"TACO_EXPORT {line.removesuffix(';')}\n" in text


def test_the_declarations_are_read_without_the_parser() -> None:
    before = set(sys.modules)
    assert stored.make_ffi().typeof("int64_t") is not None
    assert "pycparser" not in set(sys.modules) - before
