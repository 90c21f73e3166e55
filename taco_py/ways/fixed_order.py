"""Whether a kernel of a GPU adds floating-point numbers in the same order each time.

    atomicAdd(&y[i], …)    by many threads: in any order, the last bits differ from run to run
    atomicAdd(&s, t)       once, by the only block, with what its threads have combined: the same

`forbid="atomic_sums"` asks for the same bits each run. What is asked here is the kernel as it is
after all passes: whatever shares its loops, no such update is missed.
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen.ir import AddRuns, AtomicFetch, AtomicStore, Const, For, Kernel, LoopKind
from codegen.ir import Module as LoopModule
from codegen.target import UnsupportedError
from codegen.tree import children, find
from taco_py.concrete.nodes import Race
from taco_py.diagnostics.errors import ScheduleError
from taco_py.schedule.commands import Parallelize
from taco_py.ways.gpu_loops import Lower, lower, module_of
from taco_py.ways.recipe import Recipe

NAME = "atomic_sums"
"""What is forbidden, beside the names of rules."""
_UPDATES = (AtomicStore, AtomicFetch, AddRuns)
_INEXACT = ("float", "complex", "half")
_GRID = (LoopKind.GRID, LoopKind.BLOCKS)


def open_sums(module: LoopModule) -> tuple[str, ...]:
    """The arrays of floating-point numbers that threads update in any order, each once."""
    found = (name for kernel in module.kernels for name in _of_kernel(kernel))
    return tuple(dict.fromkeys(found))


def check_order(recipe: Recipe, lower: Lower | None = lower) -> None:
    """Raise ScheduleError where a kernel adds in any order; None for `lower` is one of the CPU."""
    try:
        found = _asked(recipe) if lower is None else open_sums(module_of(recipe, lower))
    except UnsupportedError:  # which is said where it is compiled
        return
    if found:
        raise ScheduleError(
            f'Expected sums in a fixed order, as forbid="{NAME}" has it, found atomic operations '
            f"on {', '.join(found)} in {recipe.problem}",
            hint="share loops over indices of the result, and sums among the threads of one warp "
            "or block, or leave the schedule open",
        )


def _asked(recipe: Recipe) -> tuple[str, ...]:
    """The result, where commands let threads of the CPU add to it by atomic operations."""
    shared = (c for c in recipe.schedule.commands if isinstance(c, Parallelize))
    target = recipe.problem.assignment.target.tensor
    inexact = recipe.problem.result.dtype.startswith(("float", "bfloat", "complex"))
    return (target,) if inexact and any(c.race is Race.ATOMICS for c in shared) else ()


def _of_kernel(kernel: Kernel) -> Iterator[str]:
    alone = all(_is_once(loop) for loop in find(kernel.body, For) if loop.kind in _GRID)
    return (
        update.array.name
        for update, repeated in _updates(kernel.body, not alone)
        if update.array.element.kind in _INEXACT and repeated
    )


def _updates(
    node: object, repeated: bool
) -> Iterator[tuple[AtomicStore | AtomicFetch | AddRuns, bool]]:
    """The updates in a node, and whether more than one thread, or iteration, does each."""
    if isinstance(node, _UPDATES):
        yield node, repeated
    below = repeated or (isinstance(node, For) and not _is_once(node))
    for child in children(node):
        yield from _updates(child, below)


def _is_once(loop: For) -> bool:
    return loop.start == Const(0) and loop.stop == Const(1)
