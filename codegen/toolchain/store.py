"""The kernel cache on disk: shared objects with their sources and facts, found by key.

An entry is three files in one folder: `<key>.c` to be read, `<key>-<digest>.so` to be loaded, or
`….o` to be linked to others, and `<key>.json`, the manifest, which has the SHA-256 digests of the
other two. A note is one file with its own digest in the first line (`entries`). Each is written
under another name and moved into place, the manifest last, so a reader sees a whole entry or none.
Nobody locks anything: processes that build the same kernel at once each write a whole entry, the
last one stays, and a process killed half way leaves only a folder `tmp-…` that is swept away a day
later.

A folder that cannot be created or written, or is full, is replaced by a private temporary one,
which is removed when the process ends; `status` says so. So is a folder into which others may
write (`trust`): nothing in it is loaded, and a warning says why. A file that others may have
written, or that has another digest, is not loaded either; its kernel is compiled again.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from codegen.toolchain.entries import (
    DamageError,
    Entry,
    new_folder,
    read_entry,
    read_note,
    scan,
    stored_files,
    sweep,
    write_entry,
    write_note,
)
from codegen.toolchain.errors import KernelCacheWarning, ToolchainError
from codegen.toolchain.trust import UntrustedError, check_folder, make_folder
from codegen.user_line import warn_user

LAYOUT = "kernels-2"
"""Name of the subfolder; changes with the layout of entries."""

DEFAULT_LIMIT = 512 * 1024**2
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")


def default_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return $TACO_PY_CACHE_DIR, else the platform's cache folder of the user."""
    configured = environ.get("TACO_PY_CACHE_DIR")
    if configured:
        return Path(configured).expanduser().absolute()
    if sys.platform.startswith("linux"):  # what platformdirs says, without its 7 ms
        base = Path(environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache").expanduser()
        return (base if base.is_absolute() else Path("~/.cache").expanduser()) / "tacopy"
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
        self._distrusted = False
        self._told: dict[str, object] = {}

    @cached_property
    def _preferred(self) -> Path:
        """Return the folder of entries, decided at first use."""
        try:
            return (self._asked if self._asked is not None else default_folder()) / LAYOUT
        except RuntimeError as error:  # a user without a home folder
            self.retreat(None, str(error))
            return self.folder

    @property
    def folder(self) -> Path:
        """Return the folder to which entries are written now."""
        return self._private if self._private is not None else self._preferred

    @property
    def home(self) -> Path:
        """Return the folder that entries are in a subfolder of; a private temporary folder
        itself."""
        return self._private if self._private is not None else self._preferred.parent

    @property
    def status(self) -> str:
        """Return one line on where kernels are kept, and why not elsewhere."""
        if self._private is None:
            return f"kernel cache in {self._preferred}"
        return f"kernel cache in a private temporary folder, because {self._reason}"

    def load(self, key: str) -> Entry | None:
        """Return the entry of `key`; None when there is none, or it is damaged or not to be
        trusted."""
        for folder in self._readable():
            try:
                return read_entry(folder, key)
            except FileNotFoundError:
                continue
            except (OSError, ValueError, KeyError, TypeError) as error:
                with contextlib.suppress(OSError):
                    (folder / f"{key}.json").unlink()
                self._tell_of_file(folder / f"{key}.json", error)
        return None

    def store(self, key: str, library: Path, source: str, facts: str) -> Entry:
        """Make the shared object at `library` the entry of `key`: see `write_entry`."""
        folder = self.folder
        try:
            self._make(folder)
            entry = write_entry(folder, key, library, source, facts)
        except OSError as error:
            if not library.exists():
                raise
            self._leave(folder, error)
            entry = write_entry(self.folder, key, library, source, facts)
        if self._stores % 64 == 0:
            sweep(self.folder, self._limit, spared=key)
        self._stores += 1
        return entry

    def forget(self, key: str) -> None:
        """Drop the entry of `key`, which could not be loaded."""
        for folder in self._places():
            with contextlib.suppress(OSError):
                (folder / f"{key}.json").unlink()

    @contextlib.contextmanager
    def workplace(self) -> Iterator[Path]:
        """Yield a new empty folder on the file system of the entries; removed afterwards."""
        folder = self.folder
        try:
            self._make(folder)
            place = new_folder(folder)
        except OSError as error:
            self._leave(folder, error)
            place = new_folder(self.folder)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def keep(self, place: Path, name: str) -> Path:
        """Move the workplace `place`, in which a build failed, to where it stays for a day."""
        target = self.folder / f"failed-{name}"
        with contextlib.suppress(OSError):
            shutil.rmtree(target, ignore_errors=True)
            place.replace(target)
            return target
        return place

    def retreat(self, failed: Path | None, reason: str) -> None:
        """Write to a private temporary folder from now on.

        Nothing is left to do where another thread found that out first. Raises ToolchainError where
        there is no private folder, or it is the one that failed.
        """
        if self._private is not None:
            if failed != self._private:
                return
            raise _no_folder(self._reason, reason)
        try:
            private = _private_folder()
        except OSError as error:
            self._reason = reason
            raise _no_folder(reason, str(error)) from error
        self._private, self._reason = private, reason
        atexit.register(_remove_own, private, os.getpid())

    def note(self, name: str) -> str | None:
        """Return the small text kept under `name`; None when there is none, or it is not to be
        trusted."""
        for folder in self._readable():
            try:
                return read_note(folder, name)
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                path = folder / f"{name}.note"
                with contextlib.suppress(OSError):
                    path.unlink()
                self._tell_of_file(path, error)
        return None

    def write_note(self, name: str, text: str) -> None:
        """Keep a small text under `name`; when that fails it must only be found out again."""
        folder = self.folder
        try:
            self._make(folder)
            write_note(folder, name, text)
        except UntrustedError as error:
            self._leave(folder, error)
        except OSError:
            pass

    def clear(self) -> None:
        """Remove every entry. Kernels that are loaded stay usable."""
        for folder in self._readable():
            for entry in scan(folder):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    with contextlib.suppress(OSError):
                        Path(entry.path).unlink()

    def size(self) -> int:
        """Return bytes that the entries take."""
        return sum(size for _, size, _ in stored_files(self.folder))

    # ---------------------------------------------------------------- trust

    def _places(self) -> tuple[Path, ...]:
        """Return the folders of entries, the writable one first."""
        folders = (self.folder,) if self._distrusted else (self.folder, self._preferred)
        return tuple(dict.fromkeys(folders))

    def _readable(self) -> list[Path]:
        """Return the existing folders into which nobody else can write."""
        readable = []
        for folder in self._places():
            try:
                if check_folder(folder, alone=folder == self._private):
                    readable.append(folder)
            except UntrustedError as error:
                self._leave(folder, error)
            except OSError:
                continue
        return readable

    def _make(self, folder: Path) -> None:
        """Make a folder for entries. Raises UntrustedError or OSError."""
        if folder == self._private:
            check_folder(folder, alone=True)
        else:
            make_folder(folder)

    def _leave(self, folder: Path, error: OSError) -> None:
        """Leave `folder` for a private one, with a warning where it is untrusted."""
        if isinstance(error, UntrustedError) and folder != self._private:
            self._distrusted = True
        self.retreat(folder, str(error))
        if isinstance(error, UntrustedError):
            self._tell(
                error.path,
                f"Kernels kept in {folder} are not loaded: {error}, so that others could run code "
                "in this process. They are compiled again in a private folder, which is removed at "
                f"the end. To keep kernels, {error.remedy}.",
            )

    def _tell_of_file(self, path: Path, error: Exception) -> None:
        """Warn that a file is not loaded, and is created again."""
        is_explained = isinstance(error, OSError | DamageError)
        reason = str(error) if is_explained else f"{path} is damaged"
        remedy = f"If this comes again, remove {path.parent}"
        if isinstance(error, UntrustedError):
            remedy = f"The remedy: {error.remedy}"
        self._tell(
            str(path.parent),
            f"A kept kernel is not loaded, and is made again: {reason}. {remedy}.",
        )

    def _tell(self, path: str, message: str) -> None:
        """Warn about `path`, one time only."""
        mine = object()
        if self._told.setdefault(path, mine) is mine:
            warn_user(KernelCacheWarning(message))


def _private_folder() -> Path:
    """Return a new folder where temporary files belong, or where others cannot put one in its
    place."""
    reasons = []
    for parent in (None, *map(Path, _TEMPORARY)):
        try:
            folder = new_folder(parent, "tacopy-")
        except OSError as error:
            reasons.append(str(error))
            continue
        try:
            check_folder(folder, alone=True)
        except OSError as error:
            reasons.append(str(error))
            folder.rmdir()
            continue
        return folder
    raise OSError("; ".join(dict.fromkeys(reasons)))


def _no_folder(*reasons: str) -> ToolchainError:
    return ToolchainError(
        f"Expected a writable folder for compiled kernels, found none: {'; '.join(reasons)}",
        hint="set TACO_PY_CACHE_DIR to a folder with some free space",
    )


def _remove_own(folder: Path, owner: int) -> None:
    """Remove `folder` at exit, in the process that created it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
