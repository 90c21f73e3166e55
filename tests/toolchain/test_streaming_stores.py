"""Vectors of each width are written past the caches, whatever wider ones the processor has."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from codegen.toolchain.compile_unit import RUNTIME_FOLDER
from codegen.toolchain.compiler import find_compiler

SOURCE = """
#define _GNU_SOURCE
#include <stdint.h>
#include "taco_runtime.h"
typedef float lanes __attribute__((vector_size({bytes})));
void stream(lanes *place, const lanes *value) {{ TACO_STREAM(*place, *value); }}
"""
WIDTHS = {"-mno-avx": (16,), "-mavx": (16, 32), "-mavx512f": (16, 32, 64)}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="flags are those of x86-64")
@pytest.mark.parametrize("flag", WIDTHS)
@pytest.mark.parametrize("bytes", [16, 32, 64])
def test_vectors_that_registers_hold_pass_the_caches(tmp_path: Path, flag: str, bytes: int) -> None:
    compiler = find_compiler()
    if compiler.kind != "gcc":
        pytest.skip("gcc has the stores")
    (tmp_path / "a.c").write_text(SOURCE.format(bytes=bytes))
    command = [*compiler.command, "-O2", "-w", flag, f"-I{RUNTIME_FOLDER}", "-S", "a.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "a.s").read_text().count("movnt") == (bytes in WIDTHS[flag])
