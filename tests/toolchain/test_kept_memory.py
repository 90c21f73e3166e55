"""When memory of results that are gone is given back: by time, by a limit, before it lacks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from codegen.runtime.kernel_cache import KernelCache
from codegen.runtime.memory import memory_pool
from codegen.runtime.memory.free_memory import SHARE, TRUSTED, ShortageError, require
from codegen.runtime.memory.memory_pool import MOST_KEPT, Pool
from tests.toolchain import samples

MB = 2**20
LINUX = sys.platform.startswith("linux")
ROOT = Path(__file__).parent.parent.parent
needs_mappings = pytest.mark.skipif(not LINUX, reason="large blocks are mapped on Linux only")
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="cannot fork")


@pytest.fixture
def nothing_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a test takes."""
    monkeypatch.setattr(memory_pool, "IDLE", 3600.0)


@pytest.fixture
def pool(cache: KernelCache) -> Pool:
    return Pool(cache._get_host()[0])


def make_and_drop(pool: Pool, *sizes: int) -> None:
    """Arrays of so many MB that exist at once, and then no more: nothing else refers to them."""
    arrays = [pool.empty((size * MB,), np.uint8) for size in sizes]
    for array in arrays:
        array[:: 4096 * 64] = 1
    del arrays, array


def soon(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@needs_mappings
def test_little_is_kept(nothing_is_old: None, pool: Pool) -> None:
    make_and_drop(pool, *[60] * 8)
    assert 180 * MB <= pool.spare_bytes <= MOST_KEPT
    make_and_drop(pool, 300)
    assert pool.spare_bytes <= MOST_KEPT
    pool.limit(100 * MB)
    assert 0 < pool.spare_bytes <= 100 * MB
    pool.limit(0)
    make_and_drop(pool, 2, 20, 60)
    assert pool.spare_bytes == 0
    pool.limit(400 * MB)
    make_and_drop(pool, 300)
    assert 300 * MB <= pool.spare_bytes <= 302 * MB


@needs_mappings
def test_an_eighth_of_what_is_free_is_kept(
    nothing_is_old: None, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Pool, "free", lambda _: 400 * MB)
    make_and_drop(pool, *[20] * 5)
    assert 0 < pool.spare_bytes <= 50 * MB


@pytest.mark.parametrize("size", [2, pytest.param(40, marks=needs_mappings)])
def test_what_nothing_uses_is_given_back(pool: Pool, size: int) -> None:
    make_and_drop(pool, size)
    assert soon(lambda: pool.spare_bytes == 0)
    assert soon(lambda: not pool._watch._runs), "the thread ends"
    make_and_drop(pool, size)
    assert soon(lambda: pool.spare_bytes == 0), "another one is started"


@pytest.mark.parametrize("size", [2, pytest.param(40, marks=needs_mappings)])
def test_what_is_old_is_given_back(
    nothing_is_old: None, pool: Pool, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    make_and_drop(pool, size)
    wait = pool.expire()
    assert wait is not None and 3000 < wait <= 3600
    assert pool.spare_bytes >= size * MB
    monkeypatch.setattr(memory_pool, "IDLE", 0.0)
    assert pool.expire() is None
    assert pool.spare_bytes == 0


@needs_mappings
def test_what_is_used_stays_and_what_is_looked_at_does_not(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that a call takes and does not need is as old as before."""
    make_and_drop(pool, 100)
    end = time.monotonic() + 5.0
    while (
        not 0 < pool.spare_bytes < 100 * MB and time.monotonic() < end
    ):  # on a busy machine both are old
        make_and_drop(pool, 8)
        time.sleep(0.05)
    assert 0 < pool.spare_bytes < 100 * MB


@needs_mappings
def test_a_kernel_that_needs_no_spare_block_leaves_it_as_old(cache: KernelCache) -> None:
    kernel = cache.get_or_build("runtime", samples.runtime).kernel
    cache.pool.clear()
    make_and_drop(cache.pool, 100)
    end = time.monotonic() + 3.0
    while cache.pool.spare_bytes and time.monotonic() < end:
        kernel.functions["iota"](np.zeros(1, np.int64), 0, 10)
        time.sleep(0.05)
    assert cache.pool.spare_bytes == 0


def test_clearing(nothing_is_old: None, pool: Pool) -> None:
    assert not pool.clear()
    make_and_drop(pool, 2, 20)
    assert pool.clear()
    assert pool.spare_bytes == 0 and not pool.clear()


# ---------------------------------------------------------------- where memory lacks


@pytest.mark.parametrize("make", ["empty", "zeros"])
@pytest.mark.parametrize("size", [2, 20, 60])
def test_what_is_kept_is_given_back_before_an_allocation_fails(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, make: str, size: int
) -> None:
    """The system, here NumPy, refuses for as long as anything is kept."""
    make_and_drop(pool, 3, 30)
    plain = {name: getattr(np, name) for name in ("empty", "zeros")}

    def refusing(name: str) -> Callable[..., np.ndarray]:
        def allocate(shape: tuple[int, ...], dtype: object) -> np.ndarray:
            if pool.spare_bytes:
                raise MemoryError
            return plain[name](shape, dtype)

        return allocate

    for name in plain:
        monkeypatch.setattr(memory_pool.np, name, refusing(name))
    found = getattr(pool, make)((size * MB,), np.uint8)
    assert found.nbytes == size * MB
    assert pool.spare_bytes == 0


def test_a_kernel_runs_again_without_what_is_kept(cache: KernelCache) -> None:
    """`pair` fails for want of memory: once where nothing is kept, twice where something is."""
    kernel = cache.get_or_build("runtime", samples.runtime).kernel
    make_and_drop(cache.pool, 30)
    with pytest.raises(MemoryError):
        kernel.functions["pair"](0, 0, 3 * MB, 1)
    assert cache.pool.spare_bytes == 0
    first, second = kernel.functions["pair"](0, 0, 3 * MB, 0)
    assert first[-1] == 0.5 * (3 * MB - 1) and second[-1] == 1 - 3 * MB


def test_the_guard() -> None:
    def free() -> int:
        return 1000 if given else 500

    given: list[int] = []

    def give_back() -> bool:
        given.append(1)
        return len(given) == 1

    require(int(500 * SHARE), free, give_back)
    assert not given
    require(int(1000 * SHARE), free, give_back)
    assert given == [1]
    with pytest.raises(ShortageError) as caught:
        require(801, free, give_back)
    assert (caught.value.wanted, caught.value.free) == (801, 1000)
    require(100, free, give_back, most=100)
    with pytest.raises(ShortageError) as caught:
        require(101, free, give_back, most=100)
    assert (caught.value.wanted, caught.value.free) == (101, 100)


@pytest.mark.parametrize("make", ["empty", "zeros"])
def test_what_is_large_is_looked_at(pool: Pool, monkeypatch: pytest.MonkeyPatch, make: str) -> None:
    looks: list[int] = []

    def free(_: Pool) -> int:
        looks.append(1)
        return 100 * MB

    monkeypatch.setattr(Pool, "free", free)
    small = getattr(pool, make)((TRUSTED,), np.uint8)
    assert not looks and small.nbytes == TRUSTED
    assert getattr(pool, make)((80 * MB,), np.uint8).nbytes == 80 * MB
    assert looks
    with pytest.raises(ShortageError):
        getattr(pool, make)((80 * MB + 1,), np.uint8)


# ---------------------------------------------------------------- what is free

FILES = {"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:   4000000 kB\nSwapFree: 7 kB\n"}
V1 = "sys/fs/cgroup/memory"
FREE = [
    ({}, 4_096_000_000),
    ({"sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.current": "5\n"}, 4_096_000_000),
    ({"sys/fs/cgroup/memory.max": "3000\n", "sys/fs/cgroup/memory.current": "1000\n"}, 2000),
    ({"sys/fs/cgroup/memory.max": "3000\n", "sys/fs/cgroup/memory.current": "4000\n"}, 0),
    ({"sys/fs/cgroup/memory.max": "3000\n"}, 3000),
    (
        {
            "sys/fs/cgroup/memory.max": "3000\n",
            "sys/fs/cgroup/memory.current": "2900\n",
            "sys/fs/cgroup/memory.stat": "anon 400\ninactive_file 1500\nactive_file 500\n",
        },
        2100,
    ),
    (
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/memory.max": "max\n",
            "sys/fs/cgroup/a/memory.max": "7000\n",
            "sys/fs/cgroup/a/memory.current": "1000\n",
        },
        6000,
    ),
    ({f"{V1}/memory.limit_in_bytes": "9223372036854771712\n"}, 4_096_000_000),
    ({f"{V1}/memory.limit_in_bytes": "5000\n", f"{V1}/memory.usage_in_bytes": "600\n"}, 4400),
    (
        {
            "proc/self/cgroup": "9:cpu:/x\n4:memory:/docker/1a\n0::/\n",
            f"{V1}/memory.limit_in_bytes": "5000\n",
            f"{V1}/memory.usage_in_bytes": "4600\n",
            f"{V1}/memory.stat": "cache 7\ninactive_file 9\ntotal_inactive_file 300\n",
        },
        700,
    ),
    (
        {
            "proc/self/cgroup": "4:memory:/a/b\n",
            f"{V1}/a/b/memory.limit_in_bytes": "9000\n",
            f"{V1}/a/b/memory.usage_in_bytes": "1000\n",
            f"{V1}/a/memory.limit_in_bytes": "5000\n",
            f"{V1}/a/memory.usage_in_bytes": "1000\n",
        },
        4000,
    ),
    ({"proc/self/cgroup": "0::/../../up\n", "sys/fs/cgroup/memory.max": "800\n"}, 800),
]


@needs_mappings
@pytest.mark.parametrize(("texts", "free"), FREE)
def test_what_is_free(cache: KernelCache, tmp_path: Path, texts: dict[str, str], free: int) -> None:
    for name, text in {**FILES, **texts}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    host = cache._get_host()[0]
    assert host.lib.taco_free_memory(str(tmp_path).encode()) == free


@needs_mappings
def test_without_files_as_much_as_one_likes(cache: KernelCache, tmp_path: Path) -> None:
    assert cache._get_host()[0].lib.taco_free_memory(str(tmp_path).encode()) == 2**63 - 1


# ---------------------------------------------------------------- processes


def process(code: str, seconds: float = 60.0) -> str:
    """What a new process prints."""
    begin = (
        "import gc, os, sys, time, numpy as np\n"
        "from taco_py.data.kernels import KERNELS\n"
        "pool, MB = KERNELS.pool, 2**20\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", begin + code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


def test_a_process_does_not_wait_for_it() -> None:
    """What lives until the end is given back, and no thread keeps the process."""
    code = """
a, b = pool.empty((50 * MB,), "u1"), pool.empty((50 * MB,), "u1")
del a
print(pool.spare_bytes > 0 or sys.platform != "linux")
begin = time.monotonic()
import atexit
atexit._run_exitfuncs()
print(time.monotonic() - begin < 0.5, pool.spare_bytes)
del b
print(pool.spare_bytes)
"""
    assert process(code).split() == ["True", "True", "0", "0"]


@needs_fork
def test_a_process_that_was_forked_keeps_for_itself() -> None:
    code = """
import threading, warnings
warnings.simplefilter("ignore")
a = pool.empty((50 * MB,), "u1"); a[:] = 1; del a
lock = pool._lock
with lock:  # another thread may hold it
    pid = os.fork()
    if pid == 0:
        pass
if pid == 0:
    ok = pool.spare_bytes == 0
    a = pool.empty((50 * MB,), "u1"); a[:] = 1; del a
    ok = ok and (pool.spare_bytes > 0 or sys.platform != "linux")
    time.sleep(1.5)
    os._exit(0 if ok and pool.spare_bytes == 0 else 1)
print(os.waitpid(pid, 0)[1])
"""
    assert process(code).split() == ["0"]


def test_threads_that_keep_at_once(pool: Pool) -> None:
    def work() -> None:
        for k in range(20):
            make_and_drop(pool, 1 + k % 7)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert soon(lambda: pool.spare_bytes == 0)
