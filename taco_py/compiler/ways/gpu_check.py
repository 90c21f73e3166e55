"""Checks of loop IR before compiling: whether a GPU and its host can execute it, and whether sums
of floating-point numbers have a fixed order.

    atomicAdd(&y[i], …)    by many threads: in any order, the last bits differ from run to run
    atomicAdd(&s, t)       once, by the only block, with what its threads have combined: the same
    taco_atomic_max(&m, t) by many threads: the same, for max(x, x) = x

`forbid="atomic_sums"` requires the same bits in each run. The check looks at the kernel after all
passes: whatever shares its loops, no such update is missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from codegen.ir import AddRuns, AtomicFetch, AtomicStore, Const, For, Kernel, LoopKind
from codegen.machine.target import Target, UnsupportedError
from codegen.tree import children, find
from codegen.types import SCALARS, ScalarType
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.tree import all_reductions
from taco_py.language.problem import Problem

if TYPE_CHECKING:
    from codegen.ir import Module

ATOMIC_SUMS = "atomic_sums"
"""The word for `forbid=`, beside the names of rules."""
_UPDATES = (AtomicStore, AtomicFetch, AddRuns)


def check_kernels(problem: Problem, module: Module, target: Target) -> None:
    """Raise ScheduleError where kernels of a GPU, or their host, cannot execute a module.

    module  the loop IR of a problem, before all passes
    """
    from codegen.languages import LANGUAGES
    from codegen.passes.order import run_passes

    try:
        module = run_passes(module, target)
        language = LANGUAGES[target.language]
        language.emit(module, target)
        language.emit_host(module)  # which has no words for some expressions
    except UnsupportedError as error:
        raise ScheduleError(
            f"Expected what kernels of a GPU compute, found {problem}: {error}",
            hint='give commands that belong together as one step, s.apply("…"), or leave target= '
            "out to compute it on the CPU",
        ) from error


def check_order(problem: Problem, module: Module, target: Target) -> None:
    """Raise ScheduleError where kernels add in any order; `module` is as in `check_kernels`."""
    from codegen.passes.order import run_passes

    try:
        kernels = run_passes(module, target).kernels
    except UnsupportedError:  # which is said where it is compiled
        return
    same = _in_any_order(problem)
    sums = dict.fromkeys(name for kernel in kernels for name in _open_sums(kernel, same))
    if sums:
        raise open_order(problem, tuple(sums))


def open_order(problem: Problem, arrays: tuple[str, ...]) -> ScheduleError:
    """Return the error about arrays whose elements atomic operations add to."""
    return ScheduleError(
        f'Expected sums in a fixed order, as forbid="{ATOMIC_SUMS}" has it, found atomic '
        f"operations on {', '.join(arrays)} in {problem}",
        hint="share loops over indices of the result, and sums among the threads of one warp "
        "or block, or leave the schedule open",
    )


def _in_any_order(problem: Problem) -> frozenset[str]:
    """Return the idempotent operators by which a problem reduces.

    Their results are the same in any order: the least of some numbers is one of them, whichever
    comes first.
    """
    assignment = problem.assignment
    reduced = {node.operator for node in all_reductions(assignment.value)}
    return frozenset(
        op.c_operator for op in (*reduced, assignment.operator) if op and op.idempotent
    )


def _open_sums(kernel: Kernel, same: frozenset[str]) -> Iterator[str]:
    """Yield the arrays of floating-point numbers whose values depend on the order of threads.

    same  the operators whose results do not depend on it
    """
    alone = all(_is_once(loop) for loop in find(kernel.body, For) if _is_of_grid(loop))
    return (
        update.array.name
        for update, repeated in _updates(kernel.body, not alone)
        if not _is_exact(update.array.element) and repeated and _operator(update) not in same
    )


def _operator(update: AtomicStore | AtomicFetch | AddRuns) -> str:
    return "+" if isinstance(update, AtomicFetch) else update.op


def _updates(
    node: object, repeated: bool
) -> Iterator[tuple[AtomicStore | AtomicFetch | AddRuns, bool]]:
    """Yield the updates in a node, and whether several threads or iterations execute each."""
    if isinstance(node, _UPDATES):
        yield node, repeated
    below = repeated or (isinstance(node, For) and not _is_once(node))
    for child in children(node):
        yield from _updates(child, below)


def _is_of_grid(loop: For) -> bool:
    return loop.kind is LoopKind.GRID or loop.kind is LoopKind.BLOCKS


def _is_exact(element: ScalarType) -> bool:
    """Tell whether sums and products of such numbers are the same in any order."""
    return element.is_integer or element is SCALARS["bool"]


def _is_once(loop: For) -> bool:
    return loop.start == Const(0) and loop.stop == Const(1)
