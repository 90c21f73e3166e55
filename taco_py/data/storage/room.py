"""Memory: the requirements of a tensor, the free memory, and the error where that is too little.

A system that overcommits memory (Linux) does not refuse an array that is too large: it ends the
process that fills it. So requests for more than the free memory are refused beforehand.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path

import numpy as np

from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import OutOfMemoryError
from taco_py.language.diagnostics.memory_errors import ADDRESSABLE, Part, out_of_memory, over_limit
from taco_py.language.formats import Format

LARGE = 1 << 26
"""The number of bytes from which free memory is checked, which takes as long as filling 0.3 MB."""


@contextmanager
def room(what: str, required: int = 0, hint: str | None = None) -> Iterator[None]:
    """Raise OutOfMemoryError where the block takes more memory than is free.

    what    the object that the block creates
    required  the least number of bytes that it takes
    """
    if KERNELS.memory.on and required > (KERNELS.memory.limit or required):
        raise over_limit([Part(what, required)], KERNELS.memory.limit or 0, hint)
    if required > LARGE:
        free = ADDRESSABLE if (available := free_bytes()) is None else available
        if required > min(free, ADDRESSABLE):
            raise too_little(what, required, hint)
    try:
        yield
    except OutOfMemoryError:
        raise
    except MemoryError as error:
        if KERNELS.memory.on and (limit := KERNELS.memory.limit) is not None:
            raise over_limit([Part(what, max(required, bytes_of(error)))], limit, hint) from error
        raise too_little(what, max(required, bytes_of(error)), hint) from error


def too_little(what: str, required: int, hint: str | None = None) -> OutOfMemoryError:
    """Return the error for an object that finds too little memory; `required` is 0 where
    unknown."""
    return out_of_memory(what, required or None, free_bytes(), hint)


def bytes_of(error: MemoryError) -> int:
    """Return the bytes that an allocation error mentions; 0 where it mentions none."""
    if (required := getattr(error, "wanted", None)) is not None:
        return int(required)
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:
        return 0
    count: int = prod(map(int, shape))
    size: int = np.dtype(dtype).itemsize
    return count * size


def stored_bytes(shape: tuple[int, ...], entries: int, format: Format, itemsize: int) -> int:
    """Return the least bytes of a tensor with this many entries, which may share a coordinate.

    >>> stored_bytes((10**12, 3), 1, Format.parse("ds"), 8) > 8 * 10**12
    True
    """
    count, total, some = 1, 0, min(entries, 1)
    index_size = 4 if max((entries, *shape)) < 2**31 else 8
    for level, size in zip(format.levels, format.stored(shape), strict=True):
        if level.full:
            count *= size
        else:
            total += (count + 1) * index_size
            count = some
    return total + count * itemsize


def stored_most(
    shape: tuple[int, ...], entries: int, format: Format, itemsize: int, index: int
) -> int:
    """Return the most bytes of this many entries in a format, each below a distinct parent.

    >>> stored_most((10, 10), 0, Format.parse("ds"), 8, 4)
    44
    """
    count, total = 1, 0
    for level, size in zip(format.levels, format.stored(shape), strict=True):
        if level.full:
            count *= size
            continue
        if "pos" in level.arrays:
            total += (count + 1) * index
        count = min(entries, count * size)
        total += count * index
    return total + count * itemsize


def free_bytes() -> int | None:
    """Return the bytes that this process may still allocate; None where the system does not
    tell."""
    limits = [
        limit for limit in (_available(), _of_container(), _of_process()) if limit is not None
    ]
    return min(limits, default=None)


def _available() -> int | None:
    """Return the free memory of the machine, including swap."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = {name: int(rest.split()[0]) for name, _, rest in (x.partition(":") for x in lines)}
        return 1024 * (sizes["MemAvailable"] + sizes.get("SwapFree", 0))
    except (OSError, ValueError, KeyError, IndexError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _of_container() -> int | None:
    """Return the free memory of the control group, including evictable file pages."""
    group = Path("/sys/fs/cgroup")
    try:
        most = int((group / "memory.max").read_text())  # "max" where there is none
        used = int((group / "memory.current").read_text())
        lines = (group / "memory.stat").read_text().splitlines()
        dropped = sum(int(x.split()[1]) for x in lines if x.startswith("inactive_file "))
    except (OSError, ValueError, IndexError):
        return None
    return max(most - used + dropped, 0)


def _of_process() -> int | None:
    """Return the free part of the process's address-space limit."""
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return max(most - pages * os.sysconf("SC_PAGE_SIZE"), 0)
    except (ImportError, OSError, ValueError):
        return None
