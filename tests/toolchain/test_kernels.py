"""The kernel cache: hits, keys, many processes, killed builders, failing folders and compilers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from codegen.runtime import kernel_cache as kernels
from codegen.runtime.kernel_cache import CachedKernel, KernelCache, KernelSource
from codegen.toolchain.compiler import find_compiler
from codegen.toolchain.compiler_notes import as_noted
from codegen.toolchain.entries import sweep
from codegen.toolchain.errors import CompileError, NoCompilerError
from codegen.toolchain.store import LAYOUT, Store
from tests.toolchain import samples
from tests.toolchain.test_compiler import real_compiler, script

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
ROOT = Path(__file__).parent.parent.parent


def test_where_no_thread_can_be_started_it_goes_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    cache = KernelCache(store=Store(tmp_path))
    assert cache.prepare() is None
    assert works(cache.get_or_build("alone", lambda: samples.scale()))


def never() -> KernelSource:
    raise AssertionError("nothing was to be built")


def works(found: CachedKernel, factor: int = 2) -> bool:
    y = np.zeros(4)
    found.kernel.functions["scale"](np.arange(4.0), y, 4)
    return bool((y == factor * np.arange(4.0)).all())


@pytest.fixture
def folder(tmp_path: Path, cache: KernelCache) -> Path:
    """A cache folder with nothing in it but the host, whose building others test."""
    cache.get_or_build("scale", samples.scale)
    host = next(path for path in cache._store.folder.glob("*.c") if "taco_host" in path.read_text())
    (tmp_path / "cache" / LAYOUT).mkdir(parents=True)
    for path in cache._store.folder.glob(f"{host.stem}*"):
        shutil.copy(path, tmp_path / "cache" / LAYOUT)
    return tmp_path / "cache"


def new(folder: Path) -> KernelCache:
    return KernelCache(store=Store(folder))


def children(count: int, work: Callable[[int], bool]) -> list[int]:
    """Exit codes of `count` forked processes: 0 where `work(number)` was true."""
    pids = []
    for number in range(count):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = 0 if work(number) else 2
            finally:
                os._exit(code)
        pids.append(pid)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


# ---------------------------------------------------------------- hits


def test_built_then_memory_then_disk(folder: Path) -> None:
    cache = new(folder)
    built = cache.get_or_build("scale", samples.scale)
    again = cache.get_or_build("scale", never)
    other = new(folder).get_or_build("scale", never)
    assert [f.hit for f in (built, again, other)] == ["built", "memory", "disk"]
    assert again.kernel is built.kernel
    for found in (built, again, other):
        assert works(found)
        assert found.kernel.source == samples.scale().source
        assert found.kernel.signatures == samples.scale().signatures
        assert found.kernel.metadata == "factor 2"
        assert found.seconds >= 0
    assert str(folder) in cache.status


def test_clear(folder: Path) -> None:
    cache = new(folder)
    kept = cache.get_or_build("scale", samples.scale)
    cache.clear()
    assert works(kept)
    rebuilt = cache.get_or_build("scale", lambda: samples.scale(3))
    assert rebuilt.hit == "built"
    assert works(rebuilt, 3)


def test_loading_imports_no_parser(folder: Path) -> None:
    """Both processes are on the machine here, whichever one this process pretends."""
    text = (
        "import sys; from pathlib import Path\n"
        "from codegen.runtime.kernel_cache import KernelCache\n"
        "from codegen.toolchain.store import Store\n"
        "make = None\n"
        "if sys.argv[2] == 'build': from tests.toolchain.samples import scale as make\n"
        "found = KernelCache(store=Store(Path(sys.argv[1]))).get_or_build('scale', make)\n"
        "print(found.hit, [m for m in ('pycparser', 'cffi', 'platformdirs') if m in sys.modules])"
    )
    for verb, printed in (("build", "built"), ("load", "disk []")):
        done = subprocess.run(
            [sys.executable, "-c", text, str(folder), verb],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=True,
        )
        assert done.stdout.startswith(printed)


def test_keys(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever changes the code, the compiler or the CPU changes the key; nothing else does."""
    compiler = find_compiler()
    source = tmp_path / "sources" / "a.py"
    source.parent.mkdir()
    source.write_text("")

    def key(name: str = "k", **options: object) -> str:
        return KernelCache(store=Store(folder), **options).full_key(name)  # type: ignore[arg-type]

    with_sources = {"sources": (source.parent,)}
    seen = [
        key(),
        key("other"),
        key(compiler=replace(compiler, identity="another")),
        key(compiler=replace(compiler, flags=(*compiler.flags, "-g"))),
        key(compiler=replace(compiler, openmp="-fopenmp-simd")),
        key(flags=("-DX",)),
        key(**with_sources),
    ]
    assert key() == key(compiler=compiler) == seen[0]
    source.write_text("edited")
    seen.append(key(**with_sources))
    for name in ("cpu_identity", "python_abi", "core_count"):
        with monkeypatch.context() as patch:
            patch.setattr(kernels, name, lambda: "another")
            seen.append(key())
    assert len(set(seen)) == len(seen)


def test_threads_build_once(folder: Path) -> None:
    cache, made, found = new(folder), [], []

    def make() -> KernelSource:
        made.append(1)
        return samples.scale()

    threads = [
        threading.Thread(target=lambda: found.append(cache.get_or_build("scale", make)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert sorted(f.hit for f in found) == ["built"] + ["memory"] * 5


# ---------------------------------------------------------------- processes


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_build_the_same_kernel(folder: Path) -> None:
    shutil.rmtree(folder)  # the host too

    def work(number: int) -> bool:
        return works(new(folder).get_or_build("scale", samples.scale))

    assert children(8, work) == [0] * 8
    assert works(new(folder).get_or_build("scale", never))
    assert not list((folder / LAYOUT).glob("tmp-*"))


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_killed_builder_leaves_nothing_that_hurts(folder: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    slow = script(tmp_path, "gcc-12", f"echo half > library.so; touch {ready}; sleep 60")
    pid = os.fork()
    if pid == 0:
        os.setsid()
        stuck = KernelCache(find_compiler({"CC": str(slow)}), Store(folder))
        stuck.get_or_build("scale", samples.scale)
        os._exit(1)
    limit = time.monotonic() + 20
    while not ready.exists() and time.monotonic() < limit:
        time.sleep(0.01)
    os.killpg(pid, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert list((folder / LAYOUT).glob("tmp-*/library.so"))
    assert works(new(folder).get_or_build("scale", samples.scale))
    assert works(new(folder).get_or_build("scale", never))
    sweep(folder / LAYOUT, 10**9, time_=time.time() + 2 * 86400)
    assert not list((folder / LAYOUT).glob("tmp-*"))
    assert works(new(folder).get_or_build("scale", never))


@needs_fork
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_another_thread_builds(folder: Path) -> None:
    """The locks of threads that a child does not have must not stop it."""
    cache, making, go_on = new(folder), threading.Event(), threading.Event()

    def make() -> KernelSource:
        making.set()
        go_on.wait(20)
        return samples.scale()

    thread = threading.Thread(target=lambda: cache.get_or_build("scale", make))
    thread.start()
    assert making.wait(20)
    with cache._lock, cache._host_lock:
        watchdog = (signal.SIGALRM, 20)

        def work(number: int) -> bool:
            signal.signal(watchdog[0], signal.SIG_DFL)
            signal.alarm(watchdog[1])
            return works(cache.get_or_build("scale", samples.scale))

        codes = children(1, work)
    go_on.set()
    thread.join()
    assert codes == [0]


# ---------------------------------------------------------------- damage


@pytest.mark.filterwarnings("ignore::codegen.toolchain.errors.KernelCacheWarning")
@pytest.mark.parametrize("damage", [b"", b"not a program"])
def test_damaged_entries_are_rebuilt(folder: Path, damage: bytes) -> None:
    first = new(folder).get_or_build("scale", samples.scale)
    copy = first.kernel.library.with_suffix(".copy")
    shutil.copy(first.kernel.library, copy)
    copy.write_bytes(damage)
    copy.replace(first.kernel.library)  # this process has the old file mapped
    again = new(folder).get_or_build("scale", samples.scale)
    assert again.hit == "built"
    assert works(again)


def test_entries_that_cannot_be_loaded_are_rebuilt(folder: Path) -> None:
    """Right by their digests, but no programs: from another system that shares the folder, say."""
    cache = new(folder)
    store = Store(folder)
    with store.workplace() as place:
        (place / "library.so").write_bytes(b"of another system")
        facts = '{"metadata": "", "signatures": []}'
        store.store(cache.full_key("scale"), place / "library.so", "", facts)
    found = cache.get_or_build("scale", samples.scale)
    assert found.hit == "built"
    assert works(found)


@pytest.mark.filterwarnings("ignore::codegen.toolchain.errors.KernelCacheWarning")
def test_a_damaged_host_is_rebuilt(folder: Path) -> None:
    for library in (folder / LAYOUT).glob("*.so"):
        library.write_bytes(b"nothing")
    assert works(new(folder).get_or_build("scale", samples.scale))


# ---------------------------------------------------------------- folders


def test_without_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = new(tmp_path / "file" / "cache")
    assert works(cache.get_or_build("scale", samples.scale))
    assert "private temporary folder" in cache.status


def test_a_full_folder(folder: Path, tmp_path: Path) -> None:
    full = 'echo "fatal error: error writing to k.s: No space left on device" >&2; exit 1'
    text = f'case "$PWD" in {folder}*) {full};; esac\nexec {real_compiler()} "$@"'
    compiler = find_compiler({"CC": str(script(tmp_path, "gcc-12", text))})
    cache = KernelCache(compiler, Store(folder))
    assert works(cache.get_or_build("scale", samples.scale))
    assert "No space left on device" in cache.status


def test_a_folder_from_which_no_program_may_be_loaded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = new(folder)
    host = cache._get_host()[0]
    load = type(host).load

    def refuse(self: object, library: Path) -> int:
        if folder in library.parents:
            raise OSError("failed to map segment from shared object")
        return load(host, library)

    monkeypatch.setattr(type(host), "load", refuse)
    assert works(cache.get_or_build("scale", samples.scale))
    assert "failed to map segment" in cache.status


# ---------------------------------------------------------------- compilers


def test_a_failing_compiler_tells_all(folder: Path) -> None:
    cache = new(folder)
    with pytest.raises(CompileError) as caught:
        cache.get_or_build("broken", samples.broken)
    error = caught.value
    assert "kernel.c" in error.output
    assert "nonsense" in error.output
    assert cache.compiler.command[0] in error.command
    assert Path(error.source).read_text() == samples.broken().source
    assert error.source in str(error)
    again = subprocess.run(error.command, shell=True, capture_output=True, text=True, check=False)
    assert again.returncode != 0
    assert "nonsense" in again.stderr
    assert works(cache.get_or_build("scale", samples.scale))
    with pytest.raises(CompileError):
        cache.get_or_build("broken", samples.broken)


def test_no_compiler(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(NoCompilerError, match="no-such-compiler"):
        new(folder).get_or_build("scale", samples.scale)


def test_refused_flags_are_found_out_once(folder: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    text = f'echo run >> {log}; for a; do [ "$a" = -fwrapv ] && exit 1; done\n'
    compiler = find_compiler(
        {"CC": str(script(tmp_path, "gcc-12", text + f'exec {real_compiler()} "$@"'))}
    )
    assert "-fwrapv" in compiler.flags
    cache = KernelCache(compiler, Store(folder))
    assert works(cache.get_or_build("scale", samples.scale))
    assert "-fwrapv" not in cache.compiler.flags
    log.write_text("")
    remembered = as_noted(Store(folder), compiler)
    assert remembered == cache.compiler
    later = KernelCache(remembered, Store(folder))
    assert later.get_or_build("scale", never).hit == "disk"
    assert later.get_or_build("new", samples.scale).hit == "built"
    assert log.read_text() == "run\n"


def test_subnormal_numbers_stay(folder: Path) -> None:
    """Linking with -ffast-math would flush them to zero, in NumPy too."""
    tiny = np.array([np.finfo(float).tiny / 4])
    y = np.zeros(1)
    new(folder).get_or_build("scale", samples.scale).kernel.functions["scale"](tiny, y, 1)
    assert y[0] == 2 * tiny[0] > 0
    assert (tiny * 1.0)[0] > 0


def test_what_is_found_by_timing_is_found_once_and_by_one_thread_at_a_time(folder: Path) -> None:
    cache = new(folder)
    running: list[str] = []
    most: list[int] = []

    def measure(key: str) -> str:
        running.append(key)
        time.sleep(0.02)
        most.append(len(running))
        running.remove(key)
        return key

    keys = ["a", "b"] * 4
    with ThreadPoolExecutor(len(keys)) as pool:
        found = list(pool.map(lambda key: cache.recall(key, lambda: measure(key)), keys))
    assert found == keys
    assert most == [1, 1]
