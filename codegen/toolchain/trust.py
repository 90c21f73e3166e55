"""Who may have written what is loaded: a library, or text that becomes code, runs as the user.

    /home/ann/.cache/tacopy/kernels-2/k-12ab.so
    │    │   │      │       │         └ file: ann's or root's, written by nobody else, no link
    └────┴───┴──────┴───────┴ folders: ann's or root's, written by nobody else

A folder in which others may write serves above the two last ones if it has the sticky bit, as /tmp:
then nobody can move or replace what is ann's in it. A symbolic link in the path is followed, and
must be ann's or root's itself. Whoever owns `/` decides about everything, and counts as root.

The check of the folders makes the check of a file last: nobody else can put another file in its
place between the two. So a library that was read and hashed is opened by its name (`/proc/self/fd`
would not do: the loader takes two libraries of one name for the same one).

Where there are no users, as on Windows, nothing is checked.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

_GROUP_OR_WORLD = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40  # what Linux follows
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_OPEN |= getattr(os, "O_NONBLOCK", 0)  # a pipe in the place of a file keeps nobody waiting
_NEW = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_CHECKED = hasattr(os, "geteuid")


class UntrustedError(PermissionError):
    """Others may have written `path`; `fault` says why, `remedy` what its owner can do."""

    def __init__(self, path: str, fault: str, remedy: str) -> None:
        self.path = path
        self.fault = fault
        self.remedy = remedy
        super().__init__(f"{path} {fault}")


def check_folder(folder: Path, alone: bool = False) -> bool:
    """Check that nobody else can write into `folder`; False where there is none yet.

    alone  whether others may add files of their own beside it, as in /tmp
    Raises UntrustedError, and OSError where a folder cannot be looked at or is none.
    """
    if not _CHECKED:
        return folder.exists()
    path_ = folder.absolute()
    closed = {str(path_)} if alone else {str(path_), str(path_.parent)}
    owners = {0, os.geteuid()}
    above = owners | {os.lstat("/").st_uid}
    for path, status, place in _steps(str(path_)):
        if status is None:
            return False
        _check(path, status, owners if place in closed else above, place not in closed)
    return True


def _steps(target: str) -> Iterator[tuple[str, os.stat_result | None, str]]:
    """Walk to `target`: each folder and link, its status, and the part of `target` that it is.

    The part is "" for folders that a link leads through. The status is None, and the last one,
    where there is nothing.
    """
    resolved, place, links = "/", "", 0
    yield resolved, os.lstat(resolved), resolved
    waiting = [(part, True) for part in reversed(target.split("/")) if part]
    while waiting:
        part, is_of_path = waiting.pop()
        place = f"{place}/{part}" if is_of_path else place
        path = (
            resolved.rpartition("/")[0] or "/" if part == ".." else f"{resolved.rstrip('/')}/{part}"
        )
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            yield path, None, place
            return
        yield path, status, "" if waiting and not waiting[-1][1] else place
        if not stat.S_ISLNK(status.st_mode):
            resolved = path
            continue
        links += 1
        if links > _MOST_LINKS:
            raise OSError(f"{target} has more than {_MOST_LINKS} symbolic links")
        aim = str(Path(path).readlink())
        resolved = "/" if aim.startswith("/") else resolved
        waiting += [(part, False) for part in reversed(aim.split("/")) if part not in ("", ".")]


def _check(path: str, status: os.stat_result, owners: set[int], sticky: bool) -> None:
    """Raise UntrustedError unless `owners` alone control the file at `path`.

    sticky  whether a folder is good in which others may add files of their own
    """
    mode = status.st_mode
    if status.st_uid not in owners:
        raise UntrustedError(
            path,
            f"belongs to the user {status.st_uid}, not to {_trusted()}",
            "set TACO_PY_CACHE_DIR to a folder of your own",
        )
    if stat.S_ISLNK(mode):  # which has no permissions
        return
    if not stat.S_ISDIR(mode):
        raise NotADirectoryError(f"Not a directory: {path}")
    if mode & _GROUP_OR_WORLD and not (sticky and mode & stat.S_ISVTX):
        raise UntrustedError(
            path,
            f"may be written by others (mode {stat.S_IMODE(mode):o})",
            f"chmod go-w {path}, or set TACO_PY_CACHE_DIR to a folder that only you can write",
        )


def read_own(path: Path) -> bytes:
    """Read a file that nobody else can write. Raises UntrustedError or OSError."""
    try:
        handle = os.open(path, _OPEN)
    except OSError as error:
        if path.is_symlink():
            raise UntrustedError(str(path), "is a symbolic link", f"remove {path}") from error
        raise
    try:
        status = os.fstat(handle)
        _check_file(str(path), status)
        parts = []
        while part := os.read(handle, status.st_size + 1):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(handle)


def _trusted() -> str:
    """Name whose files are loaded: the user's and root's, who may be the same."""
    return f"{os.geteuid()} or root" if os.geteuid() else "root"


def _check_file(path: str, status: os.stat_result) -> None:
    """Raise UntrustedError unless it is a file that only the user or root may have written."""
    fault = ""
    if not stat.S_ISREG(status.st_mode):
        fault = "is no plain file"
    elif _CHECKED and status.st_uid not in (0, os.geteuid()):
        fault = f"belongs to the user {status.st_uid}, not to {_trusted()}"
    elif _CHECKED and status.st_mode & _GROUP_OR_WORLD:
        fault = f"may be written by others (mode {stat.S_IMODE(status.st_mode):o})"
    if fault:
        raise UntrustedError(path, fault, f"remove {path}")


def make_folder(folder: Path) -> None:
    """Create `folder` and its missing parents for the user alone, whatever the umask.

    Raises UntrustedError where others can write into it or put another in its place, and OSError.
    """
    if check_folder(folder):
        return
    missing = []
    place = folder.absolute()
    while not place.exists():
        missing.append(place)
        place = place.parent
    for parent in reversed(missing):
        try:
            parent.mkdir(0o700)
            parent.chmod(0o700)  # a umask may have taken the user's own rights
        except FileExistsError:
            continue  # another process was faster; the check below is about its folder
    check_folder(folder)


def write_own(path: Path, data: bytes) -> None:
    """Write a new file that the user alone can read, whatever the umask. Raises OSError."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _NEW, 0o600)
    with os.fdopen(handle, "wb") as file:
        close_to_others(handle)
        file.write(data)


def close_to_others(handle: int) -> None:
    """Let the user alone read and write an open file."""
    if hasattr(os, "fchmod"):
        os.fchmod(handle, 0o600)
