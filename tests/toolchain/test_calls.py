"""Calling kernels: every kind and type of argument, and what is refused."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
import pytest

from codegen.runtime.kernel_cache import KernelCache, KernelSource, LoadedKernel
from codegen.runtime.signature import Kind, Parameter, Signature, signature_from_json
from codegen.types import COMPLEX128, FLOAT32, FLOAT64, INT32, INT64, SCALARS, UINT64
from tests.toolchain import samples


def copies() -> KernelSource:
    """For every element type T: `copy_T(x, y, n)` copies an array, `fill_T(value, y)` a scalar."""
    text, signatures = ['#include "taco_runtime.h"\n#include <complex.h>\n'], []
    for name, t in SCALARS.items():
        text.append(
            f"int32_t copy_{name}(const {t.c} *x, {t.c} *y, int64_t n)"
            "{ for (int64_t i = 0; i < n; i++) y[i] = x[i]; return 0; }\n"
            f"int32_t fill_{name}({t.c} *y, {t.c} value) {{ y[0] = value; return 0; }}\n"
        )
        x, y = Parameter("x", Kind.INPUT, t), Parameter("y", Kind.OUTPUT, t)
        n, value = Parameter("n", Kind.SCALAR, INT64), Parameter("value", Kind.SCALAR, t)
        signatures += [Signature(f"copy_{name}", (x, y, n)), Signature(f"fill_{name}", (y, value))]
    return KernelSource("".join(text), tuple(signatures))


@pytest.fixture(scope="module")
def copying(cache: KernelCache) -> LoadedKernel:
    return cache.get_or_build("copies", copies).kernel


@pytest.fixture
def scale(cache: KernelCache) -> LoadedKernel:
    return cache.get_or_build("scale", samples.scale).kernel


@pytest.mark.parametrize("name", SCALARS)
def test_every_element_type(copying: LoadedKernel, name: str) -> None:
    x = np.arange(-3, 4).astype(name)
    y = np.zeros_like(x)
    assert copying.functions[f"copy_{name}"](x, y, 7) is None
    np.testing.assert_array_equal(x, y)


VALUES = {"bool": True, "int": -5, "uint": 200, "float": -0.375, "complex": 1.5 - 2j}


@pytest.mark.parametrize("name", SCALARS)
def test_every_scalar_type(copying: LoadedKernel, name: str) -> None:
    value = VALUES[SCALARS[name].kind]
    for given in (value, np.dtype(name).type(value)):
        y = np.zeros(1, name)
        copying.functions[f"fill_{name}"](y, given)
        assert y[0] == value


def test_extreme_integers(copying: LoadedKernel) -> None:
    for name, value in (("int64", -(2**63)), ("int64", -1), ("uint64", 2**64 - 1)):
        y = np.zeros(1, name)
        copying.functions[f"fill_{name}"](y, value)
        assert int(y[0]) == value


def test_long_and_long_long_are_both_64_bits(copying: LoadedKernel) -> None:
    """NumPy has two types of 8 bytes where C's long has 8; a user's array may be of either."""
    for code in ("l", "q"):
        if np.dtype(code).itemsize == 8:
            y = np.zeros(3, code)
            copying.functions["copy_int64"](np.arange(3).astype(code), y, 3)
            assert y.tolist() == [0, 1, 2]


@pytest.mark.parametrize("other", [n for n in SCALARS if n != "float64"])
def test_other_element_types_are_refused(scale: LoadedKernel, other: str) -> None:
    y = np.zeros(2)
    with pytest.raises(TypeError, match="Expected 8-byte elements of kind 'fd' for x, found"):
        scale.functions["scale"](np.zeros(2, other), y, 2)


def test_swapped_bytes_are_refused(scale: LoadedKernel) -> None:
    with pytest.raises(TypeError, match="for x, found 8 bytes of kind '>d'"):
        scale.functions["scale"](np.ones(2).astype(">f8"), np.zeros(2), 2)


def test_what_is_no_array_is_refused(scale: LoadedKernel) -> None:
    for wrong in ([1.0, 2.0], None, "text", 3.0):
        with pytest.raises(TypeError):
            scale.functions["scale"](wrong, np.zeros(2), 2)
    with pytest.raises(TypeError):
        scale.functions["scale"](np.zeros(2), np.zeros(2), "2")
    with pytest.raises(TypeError, match="Expected 3 arguments for scale, found 2"):
        scale.functions["scale"](np.zeros(2), np.zeros(2))


def test_read_only_arrays(scale: LoadedKernel) -> None:
    x, y = np.ones(2), np.zeros(2)
    x.flags.writeable = False
    scale.functions["scale"](x, y, 2)
    assert y.tolist() == [2, 2]
    y.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        scale.functions["scale"](x, y, 2)


def test_strided_arrays_start_at_their_first_element(scale: LoadedKernel) -> None:
    base = np.arange(24.0).reshape(4, 6)
    y = np.zeros(1)
    for x in (base[2:, 3:], base[::-1, ::-1], base.T[1:], np.broadcast_to(base[1, 1], (5, 5))):
        scale.functions["scale"](x, y, 1)
        assert y[0] == 2 * x.flat[0]


def test_arguments_are_let_go(scale: LoadedKernel) -> None:
    x, y = np.ones(5), np.zeros(5)
    before = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(3):
        scale.functions["scale"](x, y, 5)
        with pytest.raises(TypeError):
            scale.functions["scale"](x, y, None)
    assert (sys.getrefcount(x), sys.getrefcount(y)) == before
    x.resize(6)  # refused while anybody holds a view of it


def threads_kernel() -> KernelSource:
    """Which `threads` arrives, and how many threads there are."""
    source = """#include "taco_runtime.h"

int32_t team(int32_t *facts, int32_t threads)
{
    int32_t count = 0;
#pragma omp parallel num_threads(threads) if (threads > 1) reduction(+ : count)
    count++;
    facts[0] = threads;
    facts[1] = count;
    return 0;
}
"""
    parameters = (
        Parameter("facts", Kind.OUTPUT, INT32),
        Parameter("threads", Kind.THREADS, INT32),
    )
    return KernelSource(source, (Signature("team", parameters),))


@pytest.fixture
def team(cache: KernelCache) -> LoadedKernel:
    return cache.get_or_build("team", threads_kernel).kernel


def test_threads(team: LoadedKernel, cache: KernelCache) -> None:
    for asked, got in ((1, 1), (2, 2), (0, 1), (-3, 1)):
        facts = np.zeros(2, np.int32)
        team.functions["team"](facts, asked)
        assert facts.tolist() == [got, got if cache.compiler.has_openmp else 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_uses_one_thread(team: LoadedKernel) -> None:
    """OpenMP's threads do not exist there; a parallel region would wait for them for ever."""
    facts = np.zeros(2, np.int32)
    team.functions["team"](facts, 2)
    child = os.fork()
    if child == 0:
        team.functions["team"](facts, 2)
        os._exit(0 if facts.tolist() == [1, 1] else 1)
    waiter = threading.Timer(20, os.kill, (child, 9))
    waiter.start()
    _, status = os.waitpid(child, 0)
    waiter.cancel()
    assert os.waitstatus_to_exitcode(status) == 0


def test_threads_call_the_same_kernel(scale: LoadedKernel) -> None:
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.full(1000, float(seed))
        y = np.zeros(1000)
        for _ in range(50):
            y[:] = 0
            scale.functions["scale"](x, y, 1000)
            if not (y == 2 * seed).all():
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


def test_the_lock_is_released(cache: KernelCache) -> None:
    """A kernel that waits for another Python thread to write to its array ends."""
    source = """#include "taco_runtime.h"

int32_t wait(double *flag)
{
    for (int64_t i = 0; i < INT64_C(20000000000) && *(volatile double *)flag == 0.0; i++)
        ;
    return 0;
}
"""
    signature = Signature("wait", (Parameter("flag", Kind.OUTPUT, FLOAT64),))
    wait = cache.get_or_build("wait", lambda: KernelSource(source, (signature,))).kernel.functions
    flag = np.zeros(1)
    timer = threading.Timer(0.05, lambda: flag.fill(1.0))
    timer.start()
    wait["wait"](flag)
    assert flag[0] == 1.0


def test_signatures_survive_json() -> None:
    signature = Signature(
        "f",
        (
            Parameter("a", Kind.INPUT, FLOAT32),
            Parameter("b", Kind.OUTPUT, COMPLEX128),
            Parameter("c", Kind.GROWING, INT32),
            Parameter("d", Kind.SCALAR, UINT64),
            Parameter("threads", Kind.THREADS, INT32),
        ),
    )
    assert signature_from_json(signature.to_json()) == signature
