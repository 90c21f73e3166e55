"""The files of the kernel cache: how an entry and a note are written, read and swept away."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

from codegen.records import dataclass
from codegen.toolchain.trust import close_to_others, read_own

_DAY = 86400.0
_BINARY = (".so", ".o", ".fatbin")


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored kernel: where its shared object is, its C text, and the caller's facts about it."""

    library: Path
    source: str
    facts: str


def sweep(folder: Path, limit: int, time_: float | None = None, spared: str = "") -> None:
    """Delete leftovers of killed processes and the oldest entries beyond `limit` bytes.

    The entry of the key `spared` stays.
    """
    time_ = time.time() if time_ is None else time_
    for entry in scan(folder):
        if entry.name.startswith(("tmp-", "failed-")) and _age(entry, time_) > _DAY:
            shutil.rmtree(entry.path, ignore_errors=True)
    files = stored_files(folder)
    manifests = {path.stem for path, _, _ in files if path.suffix in (".json", ".note")}
    groups: dict[str, list[tuple[Path, int, float]]] = {}
    for file in files:
        path = file[0]
        key = path.stem.rpartition("-")[0] if path.suffix in _BINARY else path.stem
        groups.setdefault(key, []).append(file)
    total = sum(size for _, size, _ in files)
    for key, group in sorted(groups.items(), key=lambda item: max(f[2] for f in item[1])):
        orphaned = key not in manifests and time_ - max(f[2] for f in group) > _DAY
        if key != spared and (orphaned or total > limit):
            total -= sum(size for _, size, _ in group)
            # The manifest goes first, so that no reader finds an entry without its files.
            for path, _, _ in sorted(group, key=lambda f: f[0].suffix != ".json"):
                with contextlib.suppress(OSError):
                    path.unlink()


def scan(folder: Path) -> list[os.DirEntry[str]]:
    """Return the entries of the folder, none where it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _age(entry: os.DirEntry[str], time_: float) -> float:
    try:
        return time_ - entry.stat(follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


def stored_files(folder: Path) -> list[tuple[Path, int, float]]:
    """Return the files of all entries with their sizes and times."""
    files = []
    for entry in scan(folder):
        if entry.name.endswith((*_BINARY, ".c", ".json", ".note")):
            with contextlib.suppress(OSError):
                facts = entry.stat()
                files.append((Path(entry.path), facts.st_size, facts.st_mtime))
    return files


class DamageError(ValueError):
    """A file has another content than was written."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is damaged: its SHA-256 digest is not the one kept with it")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read_entry(folder: Path, key: str) -> Entry:
    """Return the entry of `key`. Raises UntrustedError, DamageError, OSError, and others for a
    manifest that is none."""
    manifest = json.loads(read_own(folder / f"{key}.json"))
    name = str(manifest["library"])
    library = folder / name
    if library.name != name or manifest["key"] != key:
        raise DamageError(str(folder / f"{key}.json"))
    source = read_own(folder / f"{key}.c")
    if _digest(read_own(library)) != manifest["library_digest"]:
        raise DamageError(str(library))
    if _digest(source) != manifest["source_digest"]:
        raise DamageError(str(folder / f"{key}.c"))
    return Entry(library, source.decode(), str(manifest["facts"]))


def write_entry(folder: Path, key: str, library: Path, source: str, facts: str) -> Entry:
    """Make the shared object at `library` an entry: a copy, but moved out of a folder in `folder`.

    Raises OSError.
    """
    data = library.read_bytes()
    place = folder / f"{key}-{_digest(data)[:12]}{library.suffix}"
    manifest = {
        "key": key,
        "library": place.name,
        "library_digest": _digest(data),
        "source_digest": _digest(source.encode()),
        "facts": facts,
    }
    replace_file(folder / f"{key}.c", source.encode())
    if library.parent.parent == folder:
        library.chmod(0o600)
        library.replace(place)
    else:  # perhaps another file system
        replace_file(place, data)
    replace_file(folder / f"{key}.json", json.dumps(manifest).encode())
    return Entry(place, source, facts)


def read_note(folder: Path, name: str) -> str:
    """Return the note `name`. Raises UntrustedError, DamageError and OSError."""
    path = folder / f"{name}.note"
    stored, _, data = read_own(path).partition(b"\n")
    if stored.decode(errors="replace") != _digest(name.encode() + b"\n" + data):
        raise DamageError(str(path))
    return data.decode()


def write_note(folder: Path, name: str, text: str) -> None:
    """Keep `text` under `name`, with a digest of both. Raises OSError."""
    data = text.encode()
    checksum = _digest(name.encode() + b"\n" + data).encode()
    replace_file(folder / f"{name}.note", checksum + b"\n" + data)


def replace_file(path: Path, data: bytes) -> None:
    """Put `data` at `path` in one step."""
    handle, name = tempfile.mkstemp(prefix="tmp-", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            close_to_others(handle)
            file.write(data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def new_folder(parent: Path | None, prefix: str = "tmp-") -> Path:
    """Return a new empty folder for the user alone."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    folder.chmod(0o700)  # a umask may have taken the user's own rights
    return folder
