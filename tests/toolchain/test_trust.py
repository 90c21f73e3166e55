"""What is loaded from disk was written by the user or by root, and is what was written."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from codegen.toolchain import trust
from codegen.toolchain.errors import KernelCacheWarning
from codegen.toolchain.side_by_side import map_side_by_side
from codegen.toolchain.store import LAYOUT, Store
from codegen.toolchain.trust import UntrustedError, check_folder, make_folder, read_own
from tests.toolchain.test_store import put

ROOT = Path(__file__).parent.parent.parent
OTHER = 54321  # a user who is not us
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")


def open_to(mode: int) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.chmod(mode)

    return change


def give_away(path: Path) -> None:
    os.chown(path, OTHER, -1)


def link_out(path: Path) -> None:
    """A link to the same content, outside of the folder."""
    outside = path.parent.parent / f"outside-{path.name}"
    path.replace(outside)
    path.symlink_to(outside)


FOLDER_FAULTS = [
    pytest.param(open_to(0o777), "may be written by others", id="777"),
    pytest.param(open_to(0o770), "may be written by others", id="770"),
    pytest.param(open_to(0o702), "may be written by others", id="702"),
    pytest.param(open_to(0o1777), "may be written by others", id="sticky"),
    pytest.param(give_away, f"belongs to the user {OTHER}", id="other", marks=needs_root),
]
FILE_FAULTS = [
    pytest.param(open_to(0o666), "may be written by others", id="666"),
    pytest.param(open_to(0o620), "may be written by others", id="620"),
    pytest.param(give_away, f"belongs to the user {OTHER}", id="other", marks=needs_root),
    pytest.param(link_out, "is a symbolic link", id="link"),
]


def filled(folder: Path) -> Store:
    """A store with an entry and a note."""
    store = Store(folder)
    put(store, "k")
    store.write_note("n", "text")
    return store


@pytest.mark.parametrize("again", [False, True], ids=["another process", "the same"])
@pytest.mark.parametrize("which", ["layout", "asked"])
@pytest.mark.parametrize(("spoil", "fault"), FOLDER_FAULTS)
def test_a_folder_of_others_is_left(
    tmp_path: Path, spoil: Callable[[Path], None], fault: str, which: str, again: bool
) -> None:
    folder = tmp_path / "cache"
    store = filled(folder)
    spoilt = folder / LAYOUT if which == "layout" else folder
    spoil(spoilt)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    store = store if again else Store(folder)
    with pytest.warns(KernelCacheWarning, match=fault) as told:
        assert store.load("k") is None
    assert str(spoilt) in str(told[0].message)
    assert "TACO_PY_CACHE_DIR" in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the user is told once
        assert store.note("n") is None
        put(store, "k", b"made again")
        store.write_note("n", "again")
        entry = store.load("k")
        assert entry is not None and entry.library.read_bytes() == b"made again"
        assert store.note("n") == "again"
        store.forget("k")
        store.clear()
    assert stat.S_IMODE(store.folder.stat().st_mode) == 0o700
    assert fault in store.status
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert before == after, "nothing of it is touched"


@pytest.mark.parametrize("aside", [False, True], ids=["at once", "in a thread"])
def test_warnings_point_at_the_users_line(tmp_path: Path, aside: bool) -> None:
    """Also where kernels are made in other threads, while the user's waits for them."""
    filled(tmp_path)
    (tmp_path / LAYOUT).chmod(0o777)
    store = Store(tmp_path)
    with pytest.warns(KernelCacheWarning, match="may be written by others") as told:
        if aside:
            map_side_by_side(store.note, ["n", "m"], 2)
        else:
            store.note("n")
    assert told[0].filename == __file__
    line = Path(__file__).read_text().splitlines()[told[0].lineno - 1]
    assert "store.note" in line


@pytest.mark.parametrize(("user", "name"), [(0, "root"), (7, "7 or root")])
def test_owners_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, name: str
) -> None:
    strange = os.stat_result((stat.S_IFREG | 0o600, 1, 1, 1, 99, 99, 0, 0, 0, 0))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    for check in (
        lambda: trust._check("/a", strange, {0, user}, False),
        lambda: trust._check_file("/a", strange),
    ):
        with pytest.raises(UntrustedError) as caught:
            check()
        assert caught.value.fault == f"belongs to the user 99, not to {name}"


@pytest.mark.parametrize("first", ["note", "workplace", "write_note", "store"])
def test_whatever_is_asked_first(tmp_path: Path, first: str) -> None:
    filled(tmp_path)
    (tmp_path / LAYOUT).chmod(0o777)
    store = Store(tmp_path)
    with pytest.warns(KernelCacheWarning, match="may be written by others"):
        if first == "note":
            assert store.note("n") is None
        elif first == "write_note":
            store.write_note("m", "text")
        elif first == "workplace":
            with store.workplace() as place:
                assert tmp_path not in place.parents
        else:
            library = tmp_path / "library.so"
            library.write_bytes(b"x")
            store.store("l", library, "", "")
    assert {path.name for path in (tmp_path / LAYOUT).iterdir()} <= {
        "n.note", "k.c", "k.json", *(path.name for path in (tmp_path / LAYOUT).glob("k-*.so")),
    }  # fmt: skip


@pytest.mark.parametrize("suffix", [".so", ".c", ".json", ".note"])
@pytest.mark.parametrize(("spoil", "fault"), FILE_FAULTS)
def test_a_file_of_others_is_not_loaded(
    tmp_path: Path, spoil: Callable[[Path], None], fault: str, suffix: str
) -> None:
    filled(tmp_path)
    (path,) = (tmp_path / LAYOUT).glob(f"*{suffix}")
    spoil(path)
    store = Store(tmp_path)

    def found() -> object:
        return store.note("n") if suffix == ".note" else store.load("k")

    with pytest.warns(KernelCacheWarning, match=fault) as told:
        assert found() is None
    assert str(path) in str(told[0].message)
    put(store, "k")
    store.write_note("n", "text")
    assert found() is not None
    assert {stat.S_IMODE(each.lstat().st_mode) for each in store.folder.iterdir()} == {0o600}


def test_a_note_says_only_what_was_written_under_its_name(tmp_path: Path) -> None:
    store = filled(tmp_path)
    path = store.folder / "n.note"
    for text in (b"", b"text", path.read_bytes() + b"s", path.read_bytes()[:-1], b"\xff\n\xff"):
        store.write_note("n", "text")
        path.write_bytes(text)
        with pytest.warns(KernelCacheWarning, match="is damaged"):
            assert Store(tmp_path).note("n") is None
    store.write_note("n", "text")
    path.replace(store.folder / "m.note")
    with pytest.warns(KernelCacheWarning, match="is damaged"):
        assert Store(tmp_path).note("m") is None


def test_an_entry_is_that_of_its_key(tmp_path: Path) -> None:
    store = filled(tmp_path)
    (store.folder / "other.json").write_bytes((store.folder / "k.json").read_bytes())
    (store.folder / "other.c").write_bytes((store.folder / "k.c").read_bytes())
    for name in ("other.json", "other.c"):
        (store.folder / name).chmod(0o600)
    with pytest.warns(KernelCacheWarning, match="is damaged"):
        assert store.load("other") is None
    manifest = store.folder / "k.json"
    (tmp_path / "evil.so").write_bytes(b"\x7fELF and so on")
    name = next(store.folder.glob("k-*.so")).name
    manifest.write_text(manifest.read_text().replace(name, "../evil.so"))
    with pytest.warns(KernelCacheWarning, match="is damaged"):
        assert Store(tmp_path).load("k") is None


# ---------------------------------------------------------------- folders on the way


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
def test_parents_that_others_can_write(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "open" / "mine" / "cache"
    make_folder(folder)
    assert check_folder(folder)
    (tmp_path / "open").chmod(mode)
    with pytest.raises(UntrustedError, match=str(tmp_path / "open")):
        check_folder(folder)
    (tmp_path / "open").chmod(0o1777)
    assert check_folder(folder), "as below /tmp"


@needs_root
def test_parents_of_others(tmp_path: Path) -> None:
    folder = tmp_path / "theirs" / "mine" / "cache"
    make_folder(folder)
    os.chown(tmp_path / "theirs", OTHER, -1)
    with pytest.raises(UntrustedError, match=f"belongs to the user {OTHER}"):
        check_folder(folder)


@pytest.mark.parametrize("relative", [False, True])
def test_links_on_the_way_are_followed_and_checked(tmp_path: Path, relative: bool) -> None:
    make_folder(tmp_path / "shared" / "real" / "cache")
    (tmp_path / "home").mkdir(0o700)
    aim = Path("../shared/./real/../real") if relative else tmp_path / "shared" / "real"
    (tmp_path / "home" / "link").symlink_to(aim)
    folder = tmp_path / "home" / "link" / "cache"
    assert check_folder(folder)
    (tmp_path / "shared").chmod(0o1777)
    assert check_folder(folder)
    (tmp_path / "shared").chmod(0o777)
    with pytest.raises(UntrustedError, match="shared may be written"):
        check_folder(folder)
    (tmp_path / "shared").chmod(0o700)
    (tmp_path / "shared" / "real").chmod(0o1777)
    with pytest.raises(UntrustedError, match="real may be written"):
        check_folder(folder)
    assert check_folder(folder, alone=True)


@needs_root
def test_links_of_others(tmp_path: Path) -> None:
    make_folder(tmp_path / "real" / "cache")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.chown(tmp_path / "link", OTHER, -1, follow_symlinks=False)
    with pytest.raises(UntrustedError, match=f"link belongs to the user {OTHER}"):
        check_folder(tmp_path / "link" / "cache")


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(OSError, match="symbolic links"):
        check_folder(tmp_path / "a" / "cache")
    put(Store(tmp_path / "a"), "k")


def test_folders_that_are_not_there(tmp_path: Path) -> None:
    assert not check_folder(tmp_path / "none" / "at" / "all")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert not check_folder(tmp_path / "dangling" / "cache")
    put(Store(tmp_path / "dangling"), "k")


def test_no_folder_is_made_where_others_could_put_another(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    store = Store(tmp_path / "open" / "cache")
    with pytest.warns(KernelCacheWarning, match="open may be written by others"):
        put(store, "k")
    assert not list((tmp_path / "open").iterdir())
    assert store.load("k") is not None


def test_temporary_folders_that_others_could_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The private folder is then made where they cannot."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "open"))
    store = Store(tmp_path / "open" / "cache")
    with pytest.warns(KernelCacheWarning):
        put(store, "k")
    assert tmp_path not in store.folder.parents
    assert not list((tmp_path / "open").iterdir())


@pytest.mark.parametrize("what", ["folder", "pipe"])
def test_what_is_no_file(tmp_path: Path, what: str) -> None:
    place = tmp_path / "k.json"
    if what == "folder":
        place.mkdir()
    else:
        os.mkfifo(place)
    with pytest.raises(UntrustedError, match="no plain file"):
        read_own(place)


# ---------------------------------------------------------------- what is made


@pytest.mark.parametrize("umask", [0, 0o002, 0o077, 0o777])
def test_the_user_alone_can_read_what_is_made(tmp_path: Path, umask: int) -> None:
    code = """
import sys, os
os.umask(int(sys.argv[1]))
import numpy as np, scipy.sparse as sp, taco_py as tp
tp.einsum("ij,j->i", sp.eye_array(5, format="csr"), np.ones(5))
tp.einsum("ij,jk->ik", sp.eye_array(5, format="csr"), sp.eye_array(5, format="csr"))
"""
    folder = tmp_path / "not" / "there" / "yet"
    environ = {**os.environ, "TACO_PY_CACHE_DIR": str(folder)}
    command = [sys.executable, "-W", "error", "-c", code, str(umask)]
    for _ in range(2):
        subprocess.run(command, cwd=ROOT, env=environ, check=True)
    made = list((tmp_path / "not").rglob("*"))
    assert len(made) > 8
    for path in (tmp_path / "not", *made):
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.lstat().st_mode) == expected, path


EVIL = '#include <stdio.h>\n__attribute__((constructor)) static void f(void) {puts("EVIL");}'
CALL = """
import warnings, numpy as np, scipy.sparse as sp
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import taco_py as tp
    for _ in range(3):
        x = tp.einsum("ij,j->i", sp.eye_array(5, format="csr") * 2.0, np.ones(5))
        y = tp.evaluate("y[i] = 3 * x[i]", x=np.ones(5))
assert x.tolist() == [2.0] * 5 and y.tolist() == [3.0] * 5
for each in told:
    print("TOLD", each.message)
"""


def calls(folder: Path) -> str:
    """What a process prints whose kernels are in `folder`."""
    done = subprocess.run(
        [sys.executable, "-c", CALL],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        env={**os.environ, "TACO_PY_CACHE_DIR": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the kernels of the calls, which a second process has loaded."""
    folder = tmp_path_factory.mktemp("kept")
    assert calls(folder) == ""
    assert calls(folder) == ""
    return folder


@pytest.mark.parametrize("way", ["library", "note", "folder"])
def test_planted_code_does_not_run(kept: Path, tmp_path: Path, way: str) -> None:
    shutil.copytree(kept, tmp_path, dirs_exist_ok=True)
    if way == "library":
        (tmp_path / "evil.c").write_text(EVIL)
        evil = tmp_path / "evil.so"
        command = ["cc", "-shared", "-fPIC", tmp_path / "evil.c", "-o", evil]
        subprocess.run(command, check=True)
        for path in tmp_path.rglob(f"{LAYOUT}/*.so"):
            path.write_bytes(evil.read_bytes())
    else:
        for path in tmp_path.rglob("*.note"):
            path.write_text(path.read_text().replace("def call(", "print('EVIL')\\ndef call("))
            assert "EVIL" in path.read_text() or "def call" not in path.read_text()
    if way == "folder":
        (tmp_path / LAYOUT).chmod(0o777)
    said = calls(tmp_path)
    assert "EVIL" not in said
    assert said.count("TOLD") == 1
    again = calls(tmp_path)
    assert again.count("TOLD") == (way == "folder")
