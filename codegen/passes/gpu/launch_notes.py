"""What launches of a device's kernels are like, in lines for people.

evaluate_1: (n_i + 7) / 8 blocks of 256 threads, no shared memory
evaluate_2: a thread for each of n_i, 256 a block, 256 bytes of shared memory
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen import build
from codegen.ir import (
    Allocate,
    Combine,
    Const,
    Expr,
    For,
    Function,
    Kernel,
    Launch,
    LoopKind,
    Module,
    Storage,
)
from codegen.pretty import pretty
from codegen.tree import find


def launch_notes(module: Module, warps: int) -> tuple[str, ...]:
    """Return a line for each launch, in their order.

    warps  that a block has at most: each has a place for what they combine
    """
    kernels = {kernel.name: kernel for kernel in module.kernels}
    return tuple(line for function in module.functions for line in _lines(function, kernels, warps))


def _lines(function: Function, kernels: dict[str, Kernel], warps: int) -> Iterator[str]:
    for launch in find(function.body, Launch):
        kernel = kernels[launch.kernel]
        if kernel.block == 1 and launch.threads == build.const(1):
            yield f"{kernel.name}: one thread"
            continue
        shared = shared_bytes(kernel, warps)
        memory = f"{shared} bytes of shared memory" if shared else "no shared memory"
        blocks = [loop for loop in find(kernel.body, For) if loop.kind is LoopKind.BLOCKS]
        if blocks:
            grid = f"{pretty(_length(blocks[0]))} blocks of {kernel.block} threads"
        else:
            grid = f"a thread for each of {pretty(launch.threads)}, {kernel.block} a block"
        yield f"{kernel.name}: {grid}, {memory}"


def shared_bytes(kernel: Kernel, warps: int) -> int:
    """Return the shared memory of a block: arrays, and a value of each warp for each way to combine
    them."""
    over = (LoopKind.WARPS, LoopKind.THREADS)
    combined_types = {(c.op, c.var.type) for c in find(kernel.body, Combine) if c.kind in over}
    combined = sum(warps * type.itemsize for _, type in combined_types)
    arrays = (s for s in find(kernel.body, Allocate) if s.array.storage is Storage.SHARED)
    return combined + sum(_bytes(stmt) for stmt in arrays)


def _bytes(stmt: Allocate) -> int:
    size = stmt.size
    assert isinstance(size, Const)  # shared memory is of a size known when compiled
    return int(size.value.real) * stmt.array.element.itemsize


def _length(loop: For) -> Expr:
    return build.sub(loop.stop, loop.start)
