"""The short way from the user's objects to kernels, for calls like one that was made before.

A call is prepared once: its plan becomes a Python function (`call_text`) that does what is left to
do for operands of the same types, formats and dtypes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from taco_py.arguments.operands import BoundOperand
from taco_py.compiler.driver import CompiledKernel
from taco_py.data.kernels import KERNELS
from taco_py.data.tensors.byte_counts import sizes_of_objects
from taco_py.running.replay.call_text import Prelude, call_text
from taco_py.running.replay.find import Parts, ShortCall, define, keep
from taco_py.running.replay.helpers import Helper, resolved, to_plain
from taco_py.running.replay.operand_text import NUMBERS, READINGS, as_it_is
from taco_py.running.replay.state import Task

MOST_WAYS = 8
MOST_SIZES = 256


def make_call(task: Task, prelude: Prelude, limit: int) -> tuple[ShortCall, Parts | None]:
    """Return a function of the operands, and its recipe where that can be stored.

    limit    threads to use at most
    prelude  how its arguments become a0, a1 … in the order of the task's objects
    """
    text, more = call_text(task, prelude)
    for place, obj in enumerate(task.objects.values()):
        if f"a{place}_type" in text:
            more[f"a{place}_type"] = type(obj)
    kernels = task.kernels
    parts = Parts(
        text,
        tuple(kernel.key for kernel in kernels),
        _results(task),
        _dtypes(task),
        to_plain(more) or {},
    )
    call = define(parts, [kernel.call for kernel in kernels], limit, resolved(more))
    return call, None if to_plain(more) is None else parts


def _results(task: Task) -> tuple[tuple[int, str, str], ...]:
    """Return for each kernel its step, the allocation of its dense result, and the dtype."""
    steps = task.plan.steps
    numbers = [number for number, step in enumerate(steps) if step in task.plan.kernels]
    results = {result.target for result in task.results}
    cleared = {n: "zero" if steps[n].target in results else "cleared" for n in numbers}
    return tuple(
        (
            number,
            "written" if kernel.covers else cleared[number],
            kernel.recipe.problem.result.dtype,
        )
        for number, kernel in zip(numbers, task.kernels, strict=True)
    )


def _dtypes(task: Task) -> dict[str, str]:
    dtypes = {}
    for place, name in enumerate(task.objects):
        type = task.type_of(name)
        dtypes[f"a{place}_dtype"] = (
            task.operands[name].data.dtype.name if type is None else type.element
        )
    dtypes.update((f"{name}_dtype", dtype.str) for name, dtype in task.outs.items())
    return dtypes


SHOW = "def call(a0):\n    return shown(a0)\n"
"""The text of a short way without kernels."""


def remember_shown(key: tuple[object, ...], helper: Helper) -> None:
    """Keep the function that shows the one operand of calls as their result, on disk too."""
    KERNELS.memo.put(key, helper.function())
    keep_call(key, Parts(SHOW, (), (), {}, to_plain({"shown": helper}) or {}), None)


def keep_call(key: tuple[object, ...], parts: Parts | None, limit: int | None) -> None:
    """Store a short way for later processes, where that can be."""
    if parts is not None:
        keep(key, parts, limit)


class Ways:
    """The short ways of one kernel, at most one for operands of the same types.

    `calls` only grows, so that a thread may walk it while another one adds to it; to forget all is
    to begin another one.
    """

    __slots__ = ("__weakref__", "_fits", "_tries", "_types", "calls")

    def __init__(self) -> None:
        self.clear()
        KERNELS.derived.add(self)

    def clear(self) -> None:
        """Forget all of them."""
        self.calls: list[ShortCall] = []
        self._types: set[tuple[object, ...]] = set()
        self._tries = 0
        self._fits: set[tuple[object, ...]] = set()

    def known_to_fit(self, objects: Mapping[str, Any]) -> list[ShortCall]:
        """Return the ways that may be taken where a user limits memory: none for operands of sizes
        of which it is not known that they fit."""
        mine = KERNELS.memory.limit is not None  # else it is of another thread
        return [] if mine and self._key(objects) not in self._fits else self.calls

    def note_fit(self, objects: Mapping[str, Any]) -> None:
        """Remember that operands of these sizes fit, whatever they store."""
        if len(self._fits) >= MOST_SIZES:
            self._fits = set()
        self._fits.add(self._key(objects))

    def _key(self, objects: Mapping[str, Any]) -> tuple[object, ...]:
        return (KERNELS.memory.limit, *objects, *sizes_of_objects((*objects.values(),)))

    def add(
        self,
        objects: Mapping[str, Any],
        out: Hashable,
        make: Callable[[], ShortCall | None],
    ) -> None:
        """Make a way for such operands, unless there was one.

        out  what there is to know of the arrays for results
        """
        types = (out, frozenset((name, type(obj)) for name, obj in objects.items()))
        if types in self._types or self._tries >= 2 * MOST_WAYS or len(self.calls) >= MOST_WAYS:
            return
        self._tries += 1
        call = make()
        if call is not None and types not in self._types:
            self._types.add(types)
            self.calls.append(call)


def reads_in_place(obj: Any, bound: BoundOperand) -> bool:
    """Tell whether a kernel reads the user's own arrays, which are of one of the usual types."""
    weak = isinstance(obj, NUMBERS)
    return type(obj) in READINGS and not weak and as_it_is(obj, bound.data)


def compiled_kernels(
    task_kernels: Mapping[tuple[str, str], CompiledKernel], targets: list[str]
) -> tuple[CompiledKernel, ...] | None:
    """Return the kernels of the steps with these targets, None where one is not there."""
    kernels = [task_kernels.get((target, "evaluate")) for target in targets]
    return tuple(k for k in kernels if k is not None) if None not in kernels else None
