"""The kernel cache on disk: shared objects with their sources and facts, found by key.

An entry is three files in one folder: `<key>.c` to be read, `<key>-<digest>.so` to be loaded, or
`….o` to be linked to others, and `<key>.json`, the manifest, which has the digests of the other
two. Each is written under another name and moved into place, the manifest last, so a reader sees a
whole entry or none. Nobody locks anything: processes that build the same kernel at once each write
a whole entry, the last one stays, and a process killed half way leaves only a folder `tmp-…` that
is swept away a day later.

A folder that cannot be created or written, or is full, is replaced by a private temporary one,
which is removed when the process ends; `status` says so.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from codegen.records import dataclass
from codegen.toolchain.errors import ToolchainError

LAYOUT = "kernels-1"
"""Name of the subfolder; changes with the layout of entries."""

DEFAULT_LIMIT = 512 * 1024**2
_DAY = 86400.0
_BINARY = (".so", ".o")


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored kernel: where its shared object is, its C text, and the caller's facts about it."""

    library: Path
    source: str
    facts: str


def default_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """$TACO_PY_CACHE_DIR, else where the platform keeps caches of a user's programs."""
    asked = environ.get("TACO_PY_CACHE_DIR")
    if asked:
        return Path(asked).expanduser()
    if sys.platform.startswith("linux"):  # what platformdirs says, without its 7 ms
        base = environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache"
        return Path(base).expanduser() / "tacopy"
    import platformdirs

    return Path(platformdirs.user_cache_dir("tacopy"))


class Store:
    """Entries below `folder`, of at most `limit` bytes in all, the oldest being dropped first."""

    def __init__(self, folder: Path | None = None, limit: int = DEFAULT_LIMIT) -> None:
        self._asked = folder
        self._limit = limit
        self._stores = 0
        self._private: Path | None = None
        self._reason = ""

    @cached_property
    def _chosen(self) -> Path:
        """Where entries belong, decided when it is first needed."""
        try:
            return (self._asked if self._asked is not None else default_folder()) / LAYOUT
        except RuntimeError as error:  # a user without a home folder
            self.retreat(None, str(error))
            return self.folder

    @property
    def folder(self) -> Path:
        """Where entries are written now."""
        return self._private if self._private is not None else self._chosen

    @property
    def status(self) -> str:
        """One line on where kernels are kept, and why not elsewhere."""
        if self._private is None:
            return f"kernel cache in {self._chosen}"
        return f"kernel cache in a private temporary folder, because {self._reason}"

    def load(self, key: str) -> Entry | None:
        """The entry of `key`, or None when there is none or it is damaged."""
        for folder in dict.fromkeys((self.folder, self._chosen)):
            try:
                return _read(folder, key)
            except FileNotFoundError:
                continue
            except (OSError, ValueError, KeyError, TypeError):
                with contextlib.suppress(OSError):
                    (folder / f"{key}.json").unlink()
        return None

    def store(self, key: str, library: Path, source: str, facts: str) -> Entry:
        """Make the shared object at `library`, which is moved, the entry of `key`."""
        folder = self.folder
        try:
            entry = _write(folder, key, library, source, facts)
        except OSError as error:
            if not library.exists():
                raise
            self.retreat(folder, str(error))
            entry = _write(self.folder, key, library, source, facts)
        if self._stores % 64 == 0:
            sweep(self.folder, self._limit, spared=key)
        self._stores += 1
        return entry

    def forget(self, key: str) -> None:
        """Drop the entry of `key`, which could not be loaded."""
        for folder in (self.folder, self._chosen):
            with contextlib.suppress(OSError):
                (folder / f"{key}.json").unlink()

    @contextlib.contextmanager
    def workplace(self) -> Iterator[Path]:
        """A new empty folder on the file system of the entries; removed afterwards."""
        folder = self.folder
        try:
            place = _new_folder(folder)
        except OSError as error:
            self.retreat(folder, str(error))
            place = _new_folder(self.folder)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def keep(self, place: Path, name: str) -> Path:
        """Move the workplace `place`, in which a build failed, to where it stays for a day."""
        kept = self.folder / f"failed-{name}"
        with contextlib.suppress(OSError):
            shutil.rmtree(kept, ignore_errors=True)
            place.replace(kept)
            return kept
        return place

    def retreat(self, failed: Path | None, reason: str) -> None:
        """From now on write to a private temporary folder, not to `failed`, which may be None.

        Nothing is left to do where another thread found that out first. Raises ToolchainError where
        there is no private folder, or it is the one that failed.
        """
        if self._private is not None:
            if failed != self._private:
                return
            raise _no_folder(self._reason, reason)
        try:
            private = Path(tempfile.mkdtemp(prefix="tacopy-"))
        except OSError as error:
            self._reason = reason
            raise _no_folder(reason, str(error)) from error
        self._private, self._reason = private, reason
        atexit.register(_remove_own, private, os.getpid())

    def note(self, name: str) -> str | None:
        """The small text kept under `name`, or None."""
        try:
            return (self.folder / f"{name}.note").read_text()
        except (OSError, UnicodeDecodeError):
            return None

    def write_note(self, name: str, text: str) -> None:
        """Keep a small text under `name`; when that fails it must only be found out again."""
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            _replace_text(self.folder / f"{name}.note", text)

    def clear(self) -> None:
        """Remove every entry. Kernels that are loaded stay usable."""
        for folder in {self._chosen, self.folder}:
            for entry in _scan(folder):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    with contextlib.suppress(OSError):
                        Path(entry.path).unlink()

    def size(self) -> int:
        """Bytes that the entries take."""
        return sum(size for _, size, _ in _files(self.folder))


def sweep(folder: Path, limit: int, now: float | None = None, spared: str = "") -> None:
    """Drop what killed processes left a day ago, and the oldest entries beyond `limit` bytes.

    The entry of the key `spared` stays.
    """
    now = time.time() if now is None else now
    for entry in _scan(folder):
        if entry.name.startswith(("tmp-", "failed-")) and _age(entry, now) > _DAY:
            shutil.rmtree(entry.path, ignore_errors=True)
    files = _files(folder)
    manifests = {path.stem for path, _, _ in files if path.suffix in (".json", ".note")}
    groups: dict[str, list[tuple[Path, int, float]]] = {}
    for file in files:
        path = file[0]
        key = path.stem.rpartition("-")[0] if path.suffix in _BINARY else path.stem
        groups.setdefault(key, []).append(file)
    total = sum(size for _, size, _ in files)
    for key, group in sorted(groups.items(), key=lambda item: max(f[2] for f in item[1])):
        orphaned = key not in manifests and now - max(f[2] for f in group) > _DAY
        if key != spared and (orphaned or total > limit):
            total -= sum(size for _, size, _ in group)
            # The manifest goes first, so that no reader finds an entry without its files.
            for path, _, _ in sorted(group, key=lambda f: f[0].suffix != ".json"):
                with contextlib.suppress(OSError):
                    path.unlink()


def _scan(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _age(entry: os.DirEntry[str], now: float) -> float:
    try:
        return now - entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


def _files(folder: Path) -> list[tuple[Path, int, float]]:
    """The files of all entries with their sizes and times."""
    found = []
    for entry in _scan(folder):
        if entry.name.endswith((*_BINARY, ".c", ".json", ".note")):
            with contextlib.suppress(OSError):
                facts = entry.stat()
                found.append((Path(entry.path), facts.st_size, facts.st_mtime))
    return found


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _read(folder: Path, key: str) -> Entry:
    manifest = json.loads((folder / f"{key}.json").read_bytes())
    library = folder / str(manifest["library"])
    source = (folder / f"{key}.c").read_bytes()
    if _digest(library.read_bytes()) != manifest["library_digest"]:
        raise ValueError(f"{library} is damaged")
    if _digest(source) != manifest["source_digest"]:
        raise ValueError(f"{key}.c is damaged")
    return Entry(library, source.decode(), str(manifest["facts"]))


def _write(folder: Path, key: str, library: Path, source: str, facts: str) -> Entry:
    folder.mkdir(parents=True, exist_ok=True)
    data = library.read_bytes()
    place = folder / f"{key}-{_digest(data)[:12]}{library.suffix}"
    manifest = {
        "library": place.name,
        "library_digest": _digest(data),
        "source_digest": _digest(source.encode()),
        "facts": facts,
    }
    _replace_text(folder / f"{key}.c", source)
    if library.parent.parent == folder:
        library.replace(place)
    else:  # perhaps another file system
        _replace_bytes(place, data)
    _replace_text(folder / f"{key}.json", json.dumps(manifest))
    return Entry(place, source, facts)


def _replace_text(path: Path, text: str) -> None:
    _replace_bytes(path, text.encode())


def _replace_bytes(path: Path, data: bytes) -> None:
    """Put `data` at `path` in one step."""
    handle, name = tempfile.mkstemp(prefix="tmp-", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _new_folder(parent: Path) -> Path:
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix="tmp-", dir=parent))


def _no_folder(*reasons: str) -> ToolchainError:
    return ToolchainError(
        f"Expected a writable folder for compiled kernels, found none: {'; '.join(reasons)}",
        hint="set TACO_PY_CACHE_DIR to a folder with some free space",
    )


def _remove_own(folder: Path, owner: int) -> None:
    """At exit: remove `folder` in the process that made it, not in one forked from it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
