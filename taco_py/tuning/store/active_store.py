"""The store that `schedule="tuned"` looks into: the one that was named, else the one that calls of
this process were last tuned into, else one beside kernels."""

from __future__ import annotations

from pathlib import Path

from codegen.user_line import warn_user
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.cautions import TuningStoreWarning
from taco_py.language.diagnostics.errors import TuningStoreError
from taco_py.tuning.store.store_file import StoreFile

NAME = "tuning store"
"""What it is told to kernels' cache under."""
LAST = "store of the last tuning"
USUAL_FILE = "tuning.sqlite"
TIMEOUT = 2.0
"""Seconds that a call waits for a store that others have locked."""


def usual_path() -> Path:
    """Return the path of the store that nobody named."""
    return KERNELS.home / USUAL_FILE


def active_file() -> StoreFile | None:
    """Return the store of this process, None where there is none that can be opened.

    One that was named and cannot be opened is warned of; one that nobody named need not be there.
    """
    store = KERNELS.told.get(NAME)
    if isinstance(store, StoreFile):
        return store
    last = KERNELS.told.get(LAST)
    path = last if isinstance(last, Path) and last.exists() else usual_path()
    if not path.exists():
        return None
    try:
        return opened(path)
    except TuningStoreError as error:
        warn_user(TuningStoreWarning(f"The store of tuned plans is left out: {error}"))
        return None


def opened(path: Path) -> StoreFile:
    """Return the store in a file, opened once for this process. Raises TuningStoreError."""
    key = "open tuning store", str(path)
    store: StoreFile | None = KERNELS.memo.get(key)
    if store is None or not store.is_open:
        store = StoreFile(path, TIMEOUT, True)
        KERNELS.memo.put(key, store)
    return store


def use_file(file: StoreFile | None) -> StoreFile | None:
    """Look into another store from now on, None for the usual one; which was looked into before."""
    before = KERNELS.told.get(NAME)
    KERNELS.tell(NAME, file)
    return before if isinstance(before, StoreFile) else None


def tuned_into(path: Path | None) -> None:
    """Look into the store in a file where none is named; None for the usual one."""
    KERNELS.tell(LAST, path)
