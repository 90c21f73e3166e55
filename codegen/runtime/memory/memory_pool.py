"""The memory of results that kernels make: NumPy arrays over it, and recycling.

Writing an array of 32 MB, then of 256 MB, in GB/s (one core, gcc 12, minimum of 7, transparent huge
pages on request, as NumPy requests them for its own):

    realloc doubling from 64 elements      1.7    1.8
    np.empty of the right size             7.1    6.1
    growing array, fresh                   6.5    6.2
    growing array, recycled               11.2   11.9

So a result whose size is unknown costs no more than one whose size was counted first, and less when
a block of an earlier result is at hand. Below 4 MB malloc recycles and all of them run at 11 to 14,
but it may return the memory of several arrays to the system when all are gone, as after each call
with temporaries: (X W) * (X V) with X of 1500 x 300 and two matrices of 300 x 200, three arrays of
2.4 MB, takes 6.5 ms where that happens, and else 3.6. From 1 MB on they are recycled too, for 4 us.

What is kept for that is given back when nothing has used it for a second, before an allocation
fails, and when `clear` is called; it is little (`MOST_KEPT`).
"""

from __future__ import annotations

import threading
import time
from bisect import insort
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from codegen.runtime.host import Host
from codegen.runtime.idle import Watch
from codegen.runtime.memory.free_memory import TRUSTED, ShortageError, require
from codegen.runtime.memory.memory_limit import MemoryLimit

_LARGE = 4 * 1024**2  # TACO_LARGE of taco_runtime.h: blocks below it come from malloc
_SMALL = 1024**2  # NumPy's memory below it is left to malloc
_COPIED = 4096  # bytes of a small result, which is copied into an array of NumPy's
_FEW = 32 * 1024**2  # of NumPy's memory that is kept: a search looks at each piece

MOST_KEPT = 256 * 1024**2
"""Bytes that are kept at most where nobody says it, and at most an eighth of what is free."""
IDLE = 1.0
"""Seconds after which what nothing has used is given back."""


Spare = tuple[int, int, float]
"""A kept block: its address, its bytes, and when it was last used."""
NOTHING: Spare = (0, 0, 0.0)


class Block:
    """Owns a block of memory; NumPy arrays over it keep it alive through `__array_interface__`."""

    __slots__ = ("__array_interface__", "_address", "_mapped", "_pool")

    def __init__(
        self, pool: Pool, address: int, mapped: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self._pool = pool
        self._address = address
        self._mapped = mapped
        self.__array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "typestr": dtype.str,
            "version": 3,
        }

    def __del__(self) -> None:
        self._pool.put(self._address, self._mapped)


class Loan:
    """NumPy's memory under an array that keeps it alive as a Block does."""

    __slots__ = ("__array_interface__", "_memory", "_pool")

    def __init__(self, pool: Pool, memory: NDArray[Any], like: NDArray[Any]) -> None:
        self._pool = pool
        self._memory = memory
        address = memory.__array_interface__["data"]
        self.__array_interface__ = {**like.__array_interface__, "data": address}

    def __del__(self) -> None:
        self._pool.keep(self._memory)


class Pool:
    """Released blocks of 4 MB and more, and a few of NumPy's from 1 MB on, for the next results.

    Recycled pages need not be cleared by the operating system again. `limit` bytes are kept at
    most, `MOST_KEPT` or less by default; the oldest go first. The latest, which may be in a cache,
    are the first to be taken. `memory` says how much users allow.
    """

    def __init__(
        self, host: Host, limit: int | None = None, memory: MemoryLimit | None = None
    ) -> None:
        self.memory = MemoryLimit() if memory is None else memory
        self._give_back = host.lib.taco_give_back
        self._host = host
        self._blocks: list[Spare] = []  # those that were used last come last
        self._arrays: list[tuple[NDArray[Any], float]] = []
        self.renew()
        self.limit(limit)

    @property
    def spare_bytes(self) -> int:
        """Return bytes kept for reuse."""
        return self._in_blocks + self._in_arrays

    @property
    def _in_blocks(self) -> int:
        return sum(mapped for _, mapped, _ in self._blocks)

    @property
    def _in_arrays(self) -> int:
        return sum(array.nbytes for array, _ in self._arrays)

    def limit(self, size: int | None) -> None:
        """Keep at most `size` bytes from now on; None for the default."""
        self._asked = size
        self._most = MOST_KEPT if size is None else size
        self._looked = float("-inf")
        with self._lock:
            self._drop(self._most)

    def free(self) -> int:
        """Return bytes that this process may still use, as `require` has it."""
        return int(self._host.lib.taco_free_memory(b""))

    def require(self, size: int, most: int | None = None) -> None:
        """Raise ShortageError unless `size` bytes may be taken, also from the pool."""
        if self.memory.on and (limit := self.memory.limit) is not None and size > limit:
            raise ShortageError(size, limit, True)
        if size > TRUSTED or most is not None:
            require(size, self.free, self.clear, most)

    def take(self, bytes_wanted: int) -> Spare:
        """Return a kept block: the smallest that suffices, else the largest, or NOTHING."""
        if not self._blocks:
            return NOTHING
        with self._lock:
            if not self._blocks:
                return NOTHING
            enough = [b for b in reversed(self._blocks) if b[1] >= bytes_wanted]
            best = min(enough, key=_size) if enough else max(self._blocks, key=_size)
            self._blocks.remove(best)
            return best

    def put(self, address: int, mapped: int, since: float | None = None) -> None:
        """Keep the block, or return it to the system when it is small or the pool is full.

        since  when it was last used; now where it is left out
        """
        if 0 < mapped <= self._most and not self._watch.closed:
            time_ = time.monotonic()
            block = (address, mapped, time_ if since is None else since)
            with self._lock:
                if self._watch.start():
                    insort(self._blocks, block, key=_since)
                    self._drop(self._allowed(time_))
                    return
        self._give_back(address, mapped)

    def keep(self, memory: NDArray[Any]) -> None:
        """Keep NumPy's memory, and give up the oldest where that is too much."""
        if self._watch.closed:
            return
        time_ = time.monotonic()
        with self._lock:
            if self._watch.start():
                self._arrays.append((memory, time_))
                self._drop(self._allowed(time_))

    def clear(self) -> bool:
        """Return everything to the system; whether there was anything."""
        with self._lock:
            some = bool(self._arrays or self._blocks)
            self._drop(0)
            return some

    def expire(self) -> float | None:
        """Return idle blocks to the system; return the seconds until the next, None for never."""
        if self._watch.closed:
            return None
        old = []
        with self._lock:
            last = time.monotonic() - IDLE
            while self._arrays and self._arrays[0][1] <= last:
                del self._arrays[0]
            while self._blocks and self._blocks[0][2] <= last:
                old.append(self._blocks.pop(0))
            times = [since for _, since in self._arrays[:1]]
            times += [since for _, _, since in self._blocks[:1]]
            wait = min(times) - last if times else None
            if wait is None:
                self._watch.stop()
        for address, mapped, _ in old:
            self._give_back(address, mapped)
        return wait

    def close(self) -> None:
        """Keep nothing from now on."""
        with self._lock:
            self._watch.close()
            self._drop(0)

    def renew(self) -> None:
        """Begin anew, as in a process that was forked: what was kept is the other's too."""
        # Reentrant: collecting garbage while it is held may release a block in the same thread.
        self._lock = threading.RLock()
        self._watch = Watch(self)
        self._drop(0)

    def _allowed(self, time_: float) -> int:
        """Count how many bytes may be kept; once a second, what is free is asked for it."""
        if self._asked is None and time_ - self._looked > IDLE:
            self._looked = time_
            self._most = min(MOST_KEPT, self.free() // 8)
        return self._most

    def _drop(self, most: int) -> None:
        """Give the oldest back until `most` bytes are kept."""
        while self._arrays and self._in_arrays > min(_FEW, most):
            del self._arrays[0]
        while self._blocks and self.spare_bytes > most:
            address, mapped, _ = self._blocks.pop(0)
            self._give_back(address, mapped)

    def adopt(self, address: int, length: int, mapped: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the `length` elements at `address` as an array that owns them; the rest is given
        back.

        A few are copied into an array of NumPy's, which takes less time than to make one around
        them.
        """
        if address == 0:
            return np.empty(0, dtype)
        used = length * dtype.itemsize
        if mapped == 0 and used <= _COPIED:
            array = np.empty(length, dtype)
            self._host.ffi.memmove(array.data, self._host.ffi.cast("char *", address), used)
            self._give_back(address, 0)
            return array
        if mapped == 0 or mapped - used >= 2 * 1024**2:
            box = self._host.ffi.new("int64_t *", mapped)
            address = self._host.lib.taco_shorten(address, box, used)
            mapped = box[0]
        return np.asarray(Block(self, address, mapped, (length,), dtype))

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array as `numpy.empty` does, recycled where possible."""
        if self.memory.on:
            self.require(prod(shape) * np.dtype(dtype).itemsize)
        try:
            plain = np.empty(shape, dtype)  # which touches nothing
        except MemoryError:
            plain = self._plain(np.empty, shape, dtype)
        if plain.nbytes < _SMALL:
            return plain
        recycled = self._reuse(plain)
        return self._anew(plain, np.empty) if recycled is None else recycled

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """Return an array as `numpy.zeros` does, recycled up to 32 MB.

        Larger ones, of which little may be written, are the system's.
        """
        size = prod(shape) * np.dtype(dtype).itemsize
        if not _SMALL <= size <= _FEW or self.memory.on:
            self.require(size)
        if not _SMALL <= size <= _FEW:
            return self._plain(np.zeros, shape, dtype)
        like = self._plain(np.empty, shape, dtype)  # which touches nothing
        recycled = self._reuse(like)
        return self._anew(like, np.zeros) if recycled is None else _cleared(recycled)

    def _plain(
        self, make: Callable[..., NDArray[Any]], shape: tuple[int, ...], dtype: DTypeLike
    ) -> NDArray[Any]:
        """Return NumPy's array; where there is no room, again without what is kept."""
        try:
            return make(shape, dtype)
        except MemoryError:
            if not self.clear():
                raise
            return make(shape, dtype)

    def _reuse(self, like: NDArray[Any]) -> NDArray[Any] | None:
        """Return an array like that in memory that is kept, where some fits."""
        if like.nbytes < _LARGE:
            memory_ = self._find_array(like.nbytes)
            return None if memory_ is None else np.asarray(Loan(self, memory_, like))
        address, mapped = self._find_block(like.nbytes)
        if address == 0:
            return None
        return np.asarray(Block(self, address, mapped, like.shape, like.dtype))

    def _anew(self, like: NDArray[Any], make: Callable[..., NDArray[Any]]) -> NDArray[Any]:
        """Return an array like that in new memory: NumPy's, which `make` takes, or a mapping, which
        is zero."""
        if like.nbytes < _LARGE:
            return np.asarray(Loan(self, self._plain(make, like.shape, like.dtype), like))
        self.require(like.nbytes)
        address, mapped = self._fresh(like.nbytes)
        if address == 0:
            return self._plain(make, like.shape, like.dtype)
        return np.asarray(Block(self, address, mapped, like.shape, like.dtype))

    def _find_array(self, size: int) -> NDArray[Any] | None:
        """Return NumPy's memory of at least `size` bytes and not much more, where some is kept."""
        with self._lock:
            for place in range(len(self._arrays) - 1, -1, -1):
                if size <= self._arrays[place][0].nbytes <= size + size // 4:
                    return self._arrays.pop(place)[0]
        return None

    def _find_block(self, size: int) -> tuple[int, int]:
        """Return a kept mapping of at least `size` bytes and not much more, or (0, 0)."""
        address, mapped, since = self.take(size)
        if size <= mapped <= size + size // 4 + 2 * 1024**2:
            return (address, mapped)
        if address:
            self.put(address, mapped, since)
        return (0, 0)

    def _fresh(self, size: int) -> tuple[int, int]:
        """Return a new mapping of at least `size` bytes, all of it zero, or (0, 0)."""
        box = self._host.ffi.new("int64_t *")
        fresh = self._host.lib.taco_new_mapping(size, box)
        if fresh == self._host.ffi.NULL and self.clear():
            fresh = self._host.lib.taco_new_mapping(size, box)
        if fresh == self._host.ffi.NULL:
            return (0, 0)
        return (int(self._host.ffi.cast("intptr_t", fresh)), box[0])


def _cleared(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array, which has no gaps, with zeros: byte by byte, which is faster than by
    elements."""
    array.reshape(-1).view(np.uint8).fill(0)
    return array


def _size(block: Spare) -> int:
    return block[1]


def _since(block: Spare) -> float:
    return block[2]
