"""Machines that tests pretend: what is seen of them, that kernels run there, and their turns."""

from __future__ import annotations

import platform

import numpy as np
import pytest

import taco_py as tp
from codegen.runtime import blas
from codegen.toolchain import processor
from taco_py.compiler.driver import native_target
from taco_py.data.kernels import KERNELS
from tests.machines import (
    IN_TURN,
    MACHINES,
    SERVER,
    machine_in_turn,
    machine_named,
    missing_feature,
    on_machine,
)
from tests.pretended_machines import main

X86 = platform.machine() in ("x86_64", "AMD64")
SEEN = [
    ("sse2+one_core+small_caches", (16, 16, 1, (1 << 15, 1 << 18, 1 << 21))),
    ("avx2+eight_cores+large_caches", (32, 16, 8, (48 << 10, 2 << 20, 260 << 20))),
    (SERVER, (64, 32, 2, (1 << 15, 1 << 20, 32 << 20))),
]


@pytest.mark.skipif(not X86, reason="features of other processors have other names")
@pytest.mark.parametrize(("name", "facts"), SEEN)
def test_what_is_asked_of_the_processor_is_the_machines(
    name: str, facts: tuple[object, ...]
) -> None:
    def seen() -> tuple[object, ...]:
        cpu = native_target().processor
        assert cpu.cores == processor.core_count()
        return cpu.vector_bytes, cpu.registers, cpu.cores, cpu.cache_bytes

    here, key, identity = seen(), KERNELS.full_key("k"), processor.cpu_identity()
    with on_machine(name):
        assert seen() == facts
        assert KERNELS.full_key("k") != key
        assert processor.cpu_identity() != identity
    assert (seen(), KERNELS.full_key("k"), processor.cpu_identity()) == (here, key, identity)
    with pytest.raises(KeyError), on_machine(name):
        raise KeyError
    assert (seen(), KERNELS.full_key("k"), processor.cpu_identity()) == (here, key, identity)


@pytest.mark.parametrize(
    ("name", "width"),
    [("avx512", 64), ("old_blas", 32), ("oldest_blas", 16), ("unknown_blas", None)],
)
def test_the_library_may_know_the_processor_or_not(name: str, width: int | None) -> None:
    with on_machine(name):
        assert blas.vector_bytes() == width
        assert blas.available("float64", None)
    with on_machine("no_blas"):
        assert blas.vector_bytes() is None and not blas.available("float64", None)


@pytest.mark.skipif(not X86, reason="features of other processors have other names")
@pytest.mark.parametrize("name", ["sse2", "avx", "avx2", SERVER])
def test_kernels_of_any_machine_run_here(name: str) -> None:
    """Also those with wider vectors than there are."""
    a, b = np.random.default_rng(0).random((2, 70, 70))
    with on_machine(name):
        found = tp.evaluate("C[i,j] = A[i,k] * B[k,j]", A=a, B=b, libraries=False)
        assert machine_named(name).flags is None or KERNELS._flags[-1].startswith("-mno-")
    np.testing.assert_allclose(found, a @ b)


def test_names_with_a_plus_are_of_both() -> None:
    both = machine_named("sse2+no_blas+one_core")
    assert (both.needs, both.cores, both.blas) == ("sse2", 1, "")
    assert machine_named("real") == MACHINES["real"]


def test_all_machines_have_their_turn() -> None:
    turns = {machine_in_turn(str(n)) for n in range(200)}
    assert turns == {name for name in IN_TURN if missing_feature(name) is None}
    parts = {part for name in IN_TURN for part in name.split("+")}
    assert parts >= MACHINES.keys() - {"usual_caches"}


def test_a_feature_that_is_not_here_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(MACHINES, "next", type(MACHINES["real"])(needs="avx1024"))
    assert missing_feature("next") == "avx1024"
    assert main(["next"]) == 0
    assert "left out: no avx1024 here" in capsys.readouterr().out
    assert main(["nobody"]) == 2
