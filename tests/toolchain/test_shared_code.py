"""Functions that many kernels have, kernels of one form, and compilers: how many at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.runtime import kernel_cache
from codegen.runtime.kernel_cache import SIDE_BY_SIDE, KernelCache, KernelSource
from codegen.runtime.shared_code import SharedCode
from codegen.toolchain.entries import Entry
from codegen.toolchain.errors import CompileError
from codegen.toolchain.store import Store
from tests.toolchain import samples

HEAD = '#include "taco_runtime.h"\n'
TWICE = """static TACO_INTERNAL int32_t twice(
    double *restrict y,
    int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] *= 2;
    return 0;
}
"""
EXPORTED = TWICE.replace("static TACO_INTERNAL ", "")
DECLARED = EXPORTED.partition("\n{")[0] + ";"
SHARED = SharedCode(f"{HEAD}\n{EXPORTED}", ((TWICE, DECLARED),))


def scale_twice(factor: int, shared: SharedCode = SHARED) -> KernelSource:
    """y[i] = 2 * factor * x[i], with a shared function."""
    kernel = samples.scale(factor)
    source = kernel.source.replace(HEAD, f"{HEAD}\n{TWICE}")
    head, _, tail = source.rpartition("    return 0;")
    return replace(kernel, source=f"{head}    return twice(y, n);{tail}", shared=shared)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that are given to compilers."""
    sources: list[str] = []
    build: Callable[..., Entry] = kernel_cache.build_entry

    def counted(store: Any, key: Any, compiler: Any, unit: Any, flags: Any, *rest: Any) -> Entry:
        sources.append(unit.files[-1][1])
        return build(store, key, compiler, unit, flags, *rest)

    monkeypatch.setattr(kernel_cache, "build_entry", counted)
    return sources


def test_shared_functions_are_compiled_once(tmp_path: Path, built: list[str]) -> None:
    cache = KernelCache(store=Store(tmp_path))
    for factor in (2, 3, 5):
        made = scale_twice(factor)
        kernel = cache.get_or_build(str(factor), lambda made=made: made).kernel
        y = np.zeros(4)
        kernel.functions["scale"](np.arange(4.0), y, 4)
        assert (y == 2 * factor * np.arange(4.0)).all()
        assert kernel.source == made.source
        assert TWICE in kernel.source
    assert len(built) == 4
    assert sum("y[i] *= 2" in source for source in built) == 1
    KernelCache(store=Store(tmp_path)).get_or_build("7", lambda: scale_twice(7))
    assert len(built) == 5, "the object is found on disk"


def test_an_object_that_is_gone_is_made_again(tmp_path: Path, built: list[str]) -> None:
    cache = KernelCache(store=Store(tmp_path))
    cache.get_or_build("2", lambda: scale_twice(2))
    for path in tmp_path.rglob("*.o"):
        path.unlink()
    cache.get_or_build("3", lambda: scale_twice(3))
    assert sum("y[i] *= 2" in source for source in built) == 2


def test_a_shared_function_that_no_compiler_accepts(tmp_path: Path) -> None:
    cache = KernelCache(store=Store(tmp_path))
    shared = replace(SHARED, source=SHARED.source.replace("return 0", "return nonsense"))
    with pytest.raises(CompileError, match="nonsense") as caught:
        cache.get_or_build("2", lambda: scale_twice(2, shared))
    assert "factor" not in caught.value.output
    assert TWICE.partition("\n")[0] not in Path(caught.value.source).read_text()
    assert cache.get_or_build("2", lambda: scale_twice(2)).hit == "built"
    assert not list(tmp_path.rglob("tmp-*"))


def test_kernels_of_one_form_wait_for_each_other(tmp_path: Path, built: list[str]) -> None:
    cache = KernelCache(store=Store(tmp_path))
    names = frozenset(("x", "n", "i"))

    def make(name: str) -> KernelSource:
        kernel = samples.scale()
        return replace(kernel, source=kernel.source.replace("y", name), names=names | {name})

    with ThreadPoolExecutor(4) as pool:
        hits = pool.map(lambda n: cache.get_or_build(n, lambda: make(n)).hit, "abcd")
    assert [*hits] == ["built"] * 4
    assert len(built) == 1


def test_few_compilers_work_at_a_time_on_sources_made_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = KernelCache(store=Store(tmp_path))
    running = {"sources": 0, "compilers": 0}
    most = dict(running)
    lock = threading.Lock()

    def during(what: str, act: Callable[[], Any]) -> Any:
        with lock:
            running[what] += 1
            most[what] = max(most[what], running[what])
        time.sleep(0.01)
        try:
            return act()
        finally:
            with lock:
                running[what] -= 1

    build = kernel_cache.build_entry
    monkeypatch.setattr(
        kernel_cache, "build_entry", lambda *all: during("compilers", lambda: build(*all))
    )
    with ThreadPoolExecutor(6) as pool:
        waiting = [
            pool.submit(
                cache.get_or_build, str(n), lambda n=n: during("sources", lambda: samples.scale(n))
            )
            for n in range(6)
        ]
    assert {each.result().hit for each in waiting} == {"built"}
    assert most["sources"] == 1
    assert 1 <= most["compilers"] <= SIDE_BY_SIDE


def test_a_compiler_that_fails_leaves_room_for_others(tmp_path: Path) -> None:
    cache = KernelCache(store=Store(tmp_path))
    for _ in range(SIDE_BY_SIDE + 1):
        with pytest.raises(CompileError):
            cache.get_or_build("broken", samples.broken)
    assert cache.get_or_build("2", lambda: scale_twice(2)).hit == "built"
