"""A cache folder on a disk that fills up at any write, or with letters that `LC_ALL=C` has not."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.store import Store
from tests.toolchain import samples

ROOT = Path(__file__).parent.parent.parent
CALLS = """
import numpy as np, taco_py as tp
from taco_py.data.kernels import KERNELS
y = tp.evaluate("y[i] = A[i,j] * x[j]", A=np.eye(3), x=np.ones(3))
z = tp.evaluate("z[i] = 2 * y[i] + x[i] ** 2", x=y, y=y)
print(y.tolist(), z.tolist(), "private" in KERNELS.status)
"""


class FullDisk:
    """Writes below a folder fail from the one of a number on; those before are done."""

    def __init__(self, folder: Path, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.left, self.paths = folder, left, dict[int, str]()
        self.failed = False
        self.open, self.fdopen, self.mkdir = os.open, os.fdopen, os.mkdir
        for name in ("open", "fdopen", "mkdir"):
            monkeypatch.setattr(os, name, getattr(self, f"_{name}"))

    def _open(self, path: Any, flags: int, *args: Any, **options: Any) -> int:
        handle = self.open(path, flags, *args, **options)
        self.paths[handle] = os.fspath(path)
        return handle

    def _fdopen(self, handle: int, mode: str = "r", *args: Any, **options: Any) -> Any:
        file = self.fdopen(handle, mode, *args, **options)
        return _Full(self, file) if "w" in mode and self._is_full(self.paths[handle]) else file

    def _mkdir(self, path: Any, *args: Any, **options: Any) -> None:
        if self._is_full(path):
            raise OSError(errno.ENOSPC, "No space left on device", os.fspath(path))
        self.mkdir(path, *args, **options)

    def _is_full(self, path: Any) -> bool:
        """Count a write below the folder; tell whether it fails."""
        if self.folder not in Path(os.fspath(path)).parents:
            return False
        self.left -= 1
        self.failed |= self.left < 0
        return self.left < 0


class _Full:
    """A file to which nothing can be written; it stays there, and is empty."""

    def __init__(self, disk: FullDisk, file: Any) -> None:
        self.disk, self.file = disk, file

    def __enter__(self) -> _Full:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("write", range(12))
def test_a_disk_that_is_full_at_any_write(
    write: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cache"
    disk = FullDisk(folder, write, monkeypatch)
    store = Store(folder)
    cache = KernelCache(store=store)
    for key in ("scale", "another"):
        y = np.zeros(4)
        cache.get_or_build(key, samples.scale).kernel.functions["scale"](np.arange(4.0), y, 4)
        assert (y == 2 * np.arange(4.0)).all()
        store.write_note(key, "a note")
        assert store.note(key) in ("a note", None)
    assert disk.failed, "the number of writes that are tried is too large"
    for key in ("scale", "another"):  # what was written by halves is not believed
        found = KernelCache(store=Store(folder)).get_or_build(key, samples.scale)
        assert "scale" in found.kernel.functions


@pytest.mark.parametrize("name", ["cäche", "缓存", "two words", "quote'\"$x"])
def test_a_folder_with_letters_that_the_locale_has_not(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir(mode=0o700)
    surroundings = {
        **os.environ, "TACO_PY_CACHE_DIR": str(tmp_path / name), "TMPDIR": str(tmp_path / name),
        "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
    }  # fmt: skip
    for _ in range(2):  # the second process finds what the first has compiled
        done = subprocess.run(
            [sys.executable, "-W", "error::UserWarning", "-c", CALLS],
            cwd=ROOT, env=surroundings, capture_output=True, check=False,
        )  # fmt: skip
        assert done.stdout.split(b"\n")[0] == b"[1.0, 1.0, 1.0] [3.0, 3.0, 3.0] False", done.stderr
    assert any((tmp_path / name).rglob("*.so"))
