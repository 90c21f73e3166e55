"""Entries on disk: whole or absent, swept, limited, and working without a folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.entries import Entry, sweep
from codegen.toolchain.errors import KernelCacheWarning, ToolchainError
from codegen.toolchain.store import LAYOUT, Store, default_folder

DAY = 86400.0


def put(
    store: Store, key: str, data: bytes = b"\x7fELF and so on", source: str = "int x;"
) -> Entry:
    with store.workplace() as place:
        library = place / "library.so"
        library.write_bytes(data)
        return store.store(key, library, source, f"facts of {key}")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def files(store: Store) -> set[str]:
    return {path.name for path in store.folder.iterdir()}


def test_what_is_stored_is_loaded(store: Store, tmp_path: Path) -> None:
    assert store.load("a" * 32) is None
    put(store, "a" * 32, b"the library", "int x; /* é */")
    for reader in (store, Store(tmp_path)):
        entry = reader.load("a" * 32)
        assert entry is not None
        assert entry.library.read_bytes() == b"the library"
        assert entry.source == "int x; /* é */"
        assert entry.facts == "facts of " + "a" * 32
    assert (store.folder / ("a" * 32 + ".c")).read_text() == "int x; /* é */"
    assert not any(name.startswith("tmp-") for name in files(store))


@pytest.mark.parametrize("suffix", [".so", ".c", ".json"])
@pytest.mark.parametrize("damage", ["truncated", "changed", "missing", "empty"])
def test_damage_is_noticed(store: Store, suffix: str, damage: str) -> None:
    put(store, "k")
    (path,) = store.folder.glob(f"k*{suffix}")
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        changed = data[:-1] + bytes([data[-1] ^ 1])
        path.write_bytes({"truncated": data[:-3], "changed": changed, "empty": b""}[damage])
    if damage == "missing":
        assert store.load("k") is None
    else:
        with pytest.warns(KernelCacheWarning, match="not loaded, and is made again"):
            assert store.load("k") is None
    put(store, "k")
    assert store.load("k") is not None


def test_a_second_writer_does_not_disturb(store: Store, tmp_path: Path) -> None:
    """Two builds of one kernel may differ in some bytes: whoever is last, an entry is whole."""
    first = put(store, "k", b"one build")
    second = put(Store(tmp_path), "k", b"another build")
    assert first.library != second.library
    entry = store.load("k")
    assert entry is not None
    assert entry.library.read_bytes() == b"another build"
    assert first.library.read_bytes() == b"one build"


def test_forgotten_entries_are_absent(store: Store) -> None:
    put(store, "k")
    store.forget("k")
    assert store.load("k") is None


def test_sweep_removes_what_was_left_a_day_ago(store: Store) -> None:
    put(store, "k")
    for name in ("tmp-abc", "failed-def"):
        (store.folder / name).mkdir()
        (store.folder / name / "kernel.c").write_text("int x;")
    (store.folder / "orphan-1234.so").write_bytes(b"x")
    sweep(store.folder, 10**9)
    assert {"tmp-abc", "failed-def", "orphan-1234.so"} <= files(store)
    sweep(store.folder, 10**9, time_=time.time() + 2 * DAY)
    assert not {"tmp-abc", "failed-def", "orphan-1234.so"} & files(store)
    assert store.load("k") is not None


def test_the_oldest_entries_go_first(store: Store) -> None:
    for age, key in enumerate(("new", "middle", "old")):
        put(store, key, bytes(1000))
        for path in store.folder.glob(f"{key}*"):
            os.utime(path, (10**9 - 100 * age, 10**9 - 100 * age))
    sweep(store.folder, 2900, time_=10**9)
    assert [store.load(key) is not None for key in ("new", "middle", "old")] == [True, True, False]
    sweep(store.folder, 0, time_=10**9, spared="middle")
    assert [store.load(key) is not None for key in ("new", "middle", "old")] == [False, True, False]


def test_the_limit_holds_when_storing(tmp_path: Path) -> None:
    put(Store(tmp_path), "first", bytes(5000))
    store = Store(tmp_path, limit=6000)
    put(store, "second", bytes(5000))
    assert store.load("first") is None
    assert store.load("second") is not None
    assert store.size() <= 6000


def test_clear(store: Store) -> None:
    put(store, "k")
    (store.folder / "failed-x").mkdir()
    store.write_note("n", "text")
    store.clear()
    assert files(store) == set()
    assert store.load("k") is None
    assert store.note("n") is None
    put(store, "k")
    assert store.load("k") is not None


def test_notes(store: Store) -> None:
    assert store.note("n") is None
    store.write_note("n", "text")
    assert store.note("n") == "text"


def test_texts_follow_from_sources_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No compiler is asked for; an edit makes them stale."""
    monkeypatch.setattr("codegen.runtime.kernel_cache.find_compiler", None)
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "a.py").write_text("1")

    def cache() -> KernelCache:
        return KernelCache(store=Store(tmp_path / "cache"), sources=(tmp_path / "sources",))

    cache().write_text("k", "text")
    assert cache().text("k") == "text"
    assert cache().text("other") is None
    (tmp_path / "sources" / "a.py").write_text("12")
    assert cache().text("k") is None


# ---------------------------------------------------------------- folders that do not work


def blocked(tmp_path: Path) -> Path:
    """A folder that cannot be created, even by root: a file stands in its place."""
    (tmp_path / "file").write_text("")
    return tmp_path / "file" / "cache"


def test_without_a_folder_it_works_from_a_private_one(tmp_path: Path) -> None:
    store = Store(blocked(tmp_path))
    assert store.load("k") is None
    put(store, "k")
    assert store.load("k") is not None
    assert "private temporary folder, because" in store.status
    assert "Not a directory" in store.status
    assert oct(store.folder.stat().st_mode)[-3:] == "700"
    store.write_note("n", "text")
    assert store.note("n") == "text"


def test_a_folder_that_refuses_files(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full or read-only: root may write anywhere, so the refusal is simulated."""
    put(store, "before")
    replace = Path.replace

    def refuse(self: Path, target: Path) -> Path:
        if tmp_path / LAYOUT in Path(target).parents:
            raise OSError(28, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refuse)
    put(store, "k")
    assert store.folder != tmp_path / LAYOUT
    assert "No space left on device" in store.status
    assert store.load("k") is not None
    assert store.load("before") is not None, "what is there can still be read"


def test_two_threads_that_find_a_folder_refused_leave_it_once(tmp_path: Path) -> None:
    store = Store(blocked(tmp_path))
    refused = store.folder
    store.retreat(refused, "the first thread's reason")
    private = store.folder
    store.retreat(refused, "the second thread's")
    assert store.folder == private
    assert "the first thread's reason" in store.status
    with pytest.raises(ToolchainError, match="Expected a writable folder"):
        store.retreat(private, "full as well")


def test_nowhere_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(ToolchainError, match="Expected a writable folder") as caught:
        put(Store(blocked(tmp_path)), "k")
    assert "TACO_PY_CACHE_DIR" in str(caught.value.hint)


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("TACO_PY_CACHE_DIR", raising=False)
    monkeypatch.setattr(Path, "expanduser", homeless)
    store = Store()
    put(store, "k")
    assert store.load("k") is not None
    assert "home" in store.status


def test_the_private_folder_is_removed_at_exit(tmp_path: Path) -> None:
    text = (
        "import sys; from pathlib import Path; from codegen.toolchain.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "with store.workplace(): print(store.folder)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text, str(blocked(tmp_path))],
        capture_output=True,
        text=True,
        check=True,
    )
    folder = Path(done.stdout.strip())
    assert folder.name.startswith("tacopy-")
    assert not folder.exists()


# ---------------------------------------------------------------- where


def test_the_default_folder_is_platformdirs(monkeypatch: pytest.MonkeyPatch) -> None:
    platformdirs = pytest.importorskip("platformdirs")
    for value in (None, "", "/somewhere/else"):
        if value is None:
            monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        else:
            monkeypatch.setenv("XDG_CACHE_HOME", value)
        environ = {k: v for k, v in os.environ.items() if k != "TACO_PY_CACHE_DIR"}
        assert default_folder(environ) == Path(platformdirs.user_cache_dir("tacopy"))


def test_the_folder_can_be_chosen() -> None:
    assert default_folder({"TACO_PY_CACHE_DIR": "/some/folder"}) == Path("/some/folder")
    assert default_folder({"TACO_PY_CACHE_DIR": "~/x"}) == Path.home() / "x"
