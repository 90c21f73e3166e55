"""Kernels that differ in names alone are compiled once, and others are not taken for each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.runtime import kernel_cache
from codegen.runtime.kernel_cache import KernelCache, KernelSource
from codegen.runtime.kernel_form import form_of
from codegen.toolchain.store import Store
from tests.toolchain import samples

NAMES = frozenset(("x", "y", "n", "i"))


@pytest.mark.parametrize(
    ("one", "names", "other", "other_names", "equal"),
    [
        ("/* a */ y[i] = x[i];", {"x", "y", "i"}, "/* b */ q[j] = p[j];", {"p", "q", "j"}, True),
        ("y[i] = x[i];", {"x", "y", "i"}, "y[i] = y[i];", {"y", "i"}, False),
        ("a = f(b);", {"a", "b"}, "a = g(b);", {"a", "b"}, False),
        ("size = b->size;", {"size"}, "room = b->room;", {"room"}, False),
        ("size = b.size;", {"size"}, "room = b.room;", {"room"}, False),
        ("a = 1.0f + f;", {"a", "f"}, "a = 1.0f + g;", {"a", "g"}, True),
        ('print("a", a);', {"a"}, 'print("b", b);', {"b"}, False),
        ("a = NAN;", {"a"}, "a = INFINITY;", {"a"}, False),
    ],
)
def test_forms(one: str, names: set[str], other: str, other_names: set[str], equal: bool) -> None:
    assert (form_of(one, names) == form_of(other, other_names)) is equal


def test_kernels_of_one_form_are_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[str] = []
    build: Callable[..., Any] = kernel_cache.build_entry

    def counted(store: Store, key: str, *rest: Any) -> Any:
        compiled.append(key)
        return build(store, key, *rest)

    def scaled(factor: int, name: str) -> KernelSource:
        kernel = samples.scale(factor)
        source = kernel.source.replace("y", name)
        return replace(kernel, source=source, names=(NAMES - {"y"}) | {name})

    monkeypatch.setattr(kernel_cache, "build_entry", counted)
    cache = KernelCache(store=Store(tmp_path))
    for factor, name in ((2, "y"), (2, "result"), (3, "result")):
        source = scaled(factor, name)
        kernel = cache.get_or_build(f"{factor} {name}", lambda made=source: made).kernel
        y = np.zeros(4)
        kernel.functions["scale"](np.arange(4.0), y, 4)
        assert (y == factor * np.arange(4.0)).all()
        assert kernel.source == source.source
    assert len(compiled) == 2
    again = KernelCache(store=Store(tmp_path)).get_or_build("2 result", lambda: scaled(2, "result"))
    assert again.hit == "disk"
