"""The objects that kernels are linked to: which functions they have, which kernels need them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from codegen.runtime.kernel_cache import KernelCache
from codegen.runtime.runtime_library import ARRAYS, PARTS, SORTING, definitions, parts_of
from codegen.toolchain.compile_unit import RUNTIME_FOLDER
from codegen.toolchain.store import Store
from tests.toolchain import samples

HEADER = (RUNTIME_FOLDER / "taco_runtime.h").read_text()
SORTS = {f"taco_sort_int{bits}" for bits in (32, 64)}


def far_functions() -> set[str]:
    """The functions that the header declares for kernels that are linked to objects."""
    found = set(re.findall(r"^ *TACO_FAR TACO_\w+ [\w ]*?\*?(\w+|name##\w+)\(", HEADER, re.M))
    return {name for name in found if "#" not in name} | SORTS


def test_each_function_is_in_one_part() -> None:
    functions = far_functions()
    assert {"taco_grow", "taco_alloc", "taco_table_sort", "taco_give"} < functions
    for name in functions:
        assert len(parts_of(f"    {name}(")) == 1, name


def test_macros_that_call_them_need_the_part() -> None:
    macros = re.findall(r"#define (taco_local\w*) __attribute__\(\(cleanup\((\w+)\)\)\)", HEADER)
    assert len(macros) == 4
    for macro, function in macros:
        assert parts_of(f"{macro} x;") == parts_of(f"{function}(")


def test_a_plain_kernel_needs_none() -> None:
    assert parts_of(samples.scale().source) == ()
    assert parts_of(samples.runtime().source) == PARTS


def test_what_is_defined_where() -> None:
    assert definitions(None) == "#define TACO_ARRAYS 0\n#define TACO_SORTING 0\n"
    assert definitions(SORTING) == "#define TACO_ARRAYS 0\n#define TACO_SORTING 1\n"


def objects(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.o"))


def test_objects_are_compiled_once_and_found_on_disk(tmp_path: Path) -> None:
    cache = KernelCache(store=Store(tmp_path))
    cache.get_or_build("scale", samples.scale)
    assert objects(tmp_path) == []
    cache.get_or_build("runtime", samples.runtime)
    compiled = objects(tmp_path)
    assert len(compiled) == len(PARTS)
    again = KernelCache(store=Store(tmp_path))
    again.get_or_build("other", samples.runtime)
    assert objects(tmp_path) == compiled


def test_an_object_that_is_gone_is_compiled_again(tmp_path: Path) -> None:
    cache = KernelCache(store=Store(tmp_path))
    cache.get_or_build("runtime", samples.runtime)
    for path in objects(tmp_path):
        path.unlink()
    found = cache.get_or_build("other", samples.runtime)
    a = np.array([3, 1, 2], dtype=np.int32)
    found.kernel.functions["sort32"](a, 3)
    assert a.tolist() == [1, 2, 3]


def test_it_is_compiled_beside_what_the_caller_does(tmp_path: Path) -> None:
    cache = KernelCache(store=Store(tmp_path))
    thread = cache.prepare()
    assert thread is not None
    thread.join()
    (compiled,) = objects(tmp_path)
    assert compiled.name.startswith(cache.full_key(ARRAYS.macro))


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.macro)
def test_the_header_tells_what_is_defined(part: object) -> None:
    assert f"#if {part.macro}\n" in HEADER  # type: ignore[attr-defined]
