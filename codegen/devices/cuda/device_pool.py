"""Memory of a device that buffers give back, kept for the next ones by sizes.

Sizes are rounded up to eighths between powers of two, 512 bytes at least, so that a block serves
all buffers of its class. A block may be taken before what uses it on the device has ended: its
uses go over to the new buffer, whose first operation on another stream waits for them. So a block
whose uses are on the stream that asks is preferred: nothing waits at all.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable

from codegen.devices.cuda.cuda_streams import CudaStream, Use
from codegen.records import dataclass

SMALLEST = 512


def size_class(size: int) -> int:
    """Return the bytes of a block for `size` bytes: 1000 → 1024, 1025 → 1152."""
    if size <= SMALLEST:
        return SMALLEST
    step = 1 << max((size - 1).bit_length() - 4, 9)
    return -(-size // step) * step


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Memory of the device, and what was begun on it last.

    shared  whether others had its address: what they began is not among `uses`
    """

    address: int
    size: int
    uses: tuple[Use, ...] = ()
    shared: bool = False


class DevicePool:
    """Blocks that are kept, the latest last; at most `limit` bytes of them.

    allocate  gives the address of so many new bytes, None where there is no room
    release   gives blocks back to the device, after it has waited for their uses
    settle    waits for all of the device
    """

    def __init__(
        self,
        allocate: Callable[[int], int | None],
        release: Callable[[list[Block]], None],
        settle: Callable[[], None],
        limit: int = 0,
    ) -> None:
        self._allocate = allocate
        self._release = release
        self._settle = settle
        self.limit = limit
        self._kept: dict[int, list[Block]] = {}  # in the order in which classes were used last
        self._returned: deque[Block] = deque()
        self.held = 0
        """Bytes that are kept."""
        self.taken = 0
        """Bytes of blocks that buffers have."""

    def take(self, size: int, stream: CudaStream) -> Block | None:
        """Return a block for `size` bytes, kept or new; None where there is no room."""
        self.sort()
        rounded = size_class(size)
        block = self._reuse(rounded, stream) or self._anew(rounded)
        if block is None and self.clear():
            block = self._anew(rounded)
        if block is None and gc.collect():  # buffers that only refer to each other
            self.clear()
            block = self._anew(rounded)
        if block is not None:
            self.taken += block.size
        return block

    def give_back(self, block: Block) -> None:
        """Keep `block`. May be called from anywhere, also while garbage is collected."""
        self._returned.append(block)

    def sort(self) -> None:
        """Sort returned blocks into their classes, and release the oldest beyond the limit."""
        while self._returned:
            block = self._returned.popleft()
            self.taken -= block.size
            self.held += block.size
            blocks = self._kept.pop(block.size, [])
            self._kept[block.size] = [*blocks, block]
        if self.held > self.limit:
            self._drop(self.limit)

    def clear(self) -> bool:
        """Give all that is kept back to the device; whether there was anything."""
        self.sort()
        return self._drop(0)

    def _reuse(self, size: int, stream: CudaStream) -> Block | None:
        blocks = self._kept.get(size)
        if not blocks:
            return None
        place = next((i for i in range(len(blocks) - 1, -1, -1) if _is_ready(blocks[i], stream)), 0)
        block = blocks.pop(place)
        if not blocks:
            del self._kept[size]
        self.held -= size
        if block.shared:
            self._settle()
            return Block(block.address, size)
        return block

    def _anew(self, size: int) -> Block | None:
        address = self._allocate(size)
        return None if address is None else Block(address, size)

    def _drop(self, most: int) -> bool:
        dropped = []
        while self.held > most and self._kept:
            size = next(iter(self._kept))
            blocks = self._kept[size]
            dropped.append(blocks.pop(0))
            self.held -= size
            if not blocks:
                del self._kept[size]
        if dropped:
            self._release(dropped)
        return bool(dropped)


def _is_ready(block: Block, stream: CudaStream) -> bool:
    return not block.shared and all(use.stream is stream for use in block.uses)
