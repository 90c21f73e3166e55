"""The plans of one call, each run as its texts say: compiled, checked, timed in turns.

build    the kernels of a plan are compiled, and it runs once
check    its result on small operands is that of the oracle, and on the call's that of auto's plan
race     it takes turns with another plan of the same call
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.operands import joined_of, type_of
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.prepare import Prepared, prepare, start
from taco_py.compiler.driver import compile_recipes
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.pack import to_dense, unpack
from taco_py.data.storage.tensor_data import TensorData, converted_to, on_host
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.einsum import Squeezed
from taco_py.language.notation.nodes import Assignment
from taco_py.language.oracle import evaluate_stored
from taco_py.language.phase import EVALUATE
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.plan import Plan
from taco_py.running.execute.run import Execution, run
from taco_py.running.plan_texts.fitted_plan import parsed_plan, plan_of_text
from taco_py.running.replay.call_text import by_place
from taco_py.running.replay.make_call import make_call
from taco_py.tuning.measure.sequential_test import SURE
from taco_py.tuning.measure.small_operands import small_sizes, small_tensors, stored_places
from taco_py.tuning.measure.turns import Times, Turns, alone, in_turns

Call = Callable[[], object]
Sizes = tuple[tuple[str, int], ...]
Small = tuple[Prepared, dict[str, TensorData], np.ndarray[Any, Any]]
"""A call prepared, small operands of its kinds, and the result for them."""
TOLERANCE = {"float16": 2e-2, "bfloat16": 5e-2, "float32": 2e-4, "complex64": 2e-4}
"""Of the largest element, where a type has another one than float64."""
USUAL_TOLERANCE = 1e-9
ROUNDS, LAST_ROUNDS = 12, 100
"""Pairs of times of a candidate, and of the last comparison, at most."""
CLEAR = 0.02
"""The share by which the best has to be faster in a pair of the last comparison."""


class WrongResultError(Exception):
    """A plan's result is not that of the oracle, or of the plan that is chosen without timing."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanBench:
    """A call whose plans are run.

    ready    the plans that were compiled, by their texts
    calls    those that ran
    checks   what the oracle gives for small operands, found once
    """

    assignment: Assignment
    objects: Mapping[str, Any]
    settings: CallOptions
    squeezed: Squeezed = ()
    ready: dict[str, Prepared] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    checks: dict[Any, Any] = field(default_factory=dict)

    # ------------------------------------------------------------ building

    def build(self, text: str) -> None:
        """Compile a plan. Raises ScheduleError where it cannot be so, and CompilerError."""
        if text in self.ready:
            return
        settings = replace(self.settings, plan=text)
        prepared = prepare(self.assignment, self.objects, settings, self.squeezed)
        steps = prepared.plan.kernels
        kernels = compile_recipes(prepared.plan.recipes)
        for step, kernel in zip(steps, kernels, strict=True):
            prepared.kernels[step.target, EVALUATE] = kernel
        self.ready[text] = prepared

    def first(self, text: str) -> None:
        """Run a plan once that was built. Raises WrongResultError."""
        if text in self.calls:
            return
        prepared, settings = self.ready[text], replace(self.settings, plan=text)
        execution = start(prepared, settings, None)
        self._compare("result", on_host(run(prepared.plan, execution)))
        self.calls[text] = self._call(prepared, settings, execution.threads)

    def _call(self, prepared: Prepared, settings: CallOptions, threads: int) -> Call:
        """Return a function that does the work of later calls like this one."""
        from taco_py.calls.call.fast_paths import task_of

        def long() -> object:
            return run(prepared.plan, start(prepared, settings, None))

        task = (
            None
            if self.squeezed or prepared.checked.copied
            else task_of(prepared, self.objects, None)
        )
        if task is None:
            return long
        short = partial(make_call(task, by_place, threads)[0], *self.objects.values())
        return long if short() is None else short

    def _compare(self, what: str, found: TensorData) -> None:
        """Keep the first result of each kind, which is auto's, and compare others with it."""
        array = to_dense(found) if found.format.is_dense else None
        summary = array if array is not None else _sparse_summary(found)
        if what not in self.checks:
            self.checks[what] = summary
        elif not alike(summary, self.checks[what], found.dtype.name):
            raise WrongResultError(f"the {what} differs from that of the plan without timing")

    # ------------------------------------------------------------ timing

    def time(self, text: str, limit: float) -> Times:
        """Return the times of a plan that was built."""
        return alone(self.calls[text], limit=limit)

    def race(self, text: str, rival: str, limit: float, last: bool) -> Turns:
        """Return the times of two plans in turns that were built.

        last  whether nobody looks again: it takes more pairs, and a margin
        """
        mine, other = self.calls[text], self.calls[rival]
        if last:
            return in_turns(mine, other, LAST_ROUNDS, limit, CLEAR, SURE)
        return in_turns(mine, other, ROUNDS, limit)

    # ------------------------------------------------------------ checking

    def check(self, text: str) -> str:
        """Compare a plan's result on small operands with the oracle's; why that could not be.

        Raises WrongResultError.
        """
        small = self._small(parsed_plan(text).static)
        if isinstance(small, str):
            return small
        prepared, tensors, wanted = small
        request = Request(prepared.plan.result, self.settings.static, any_order=True)
        machine = prepared.plan.machine.with_costs(parallel_iterations=0)
        facts = {n: g.operand for n, g in prepared.given.items()}
        own = {
            n: replace(facts[n], shape=t.shape, nnz=float(t.nnz), entries=None)
            for n, t in tensors.items()
        }
        plan = plan_of_text(text, own, request.on(self.settings.target))
        found = self._run_small(plan, tensors, prepared, machine)
        if not alike(to_dense(found), wanted, found.dtype.name):
            raise WrongResultError("the result on small operands differs from the oracle's")
        return ""

    def _run_small(
        self, plan: Plan, tensors: Mapping[str, TensorData], prepared: Prepared, machine: Any
    ) -> TensorData:
        threads = self.settings.threads or KERNELS.cores
        sizes = _sizes(prepared.assignment, tensors, dict(self.squeezed))
        shape = tuple(sizes[i] for i in prepared.assignment.target.indices)
        execution = Execution(dict(tensors), threads, machine=machine, shape=shape)
        return on_host(run(plan, execution))

    def _small(self, static: Sizes) -> Small | str:
        """Return the call prepared, its operands small, and its result; or why there are none.

        static  sizes that a plan has compiled in, which stay
        """
        if static not in self.checks:
            self.checks[static] = self._made_small(static)
        found: Small | str = self.checks[static]
        return found

    def _made_small(self, static: Sizes) -> Small | str:
        prepared = prepare(self.assignment, self.objects, self.settings, self.squeezed)
        axes = dict(self.squeezed)
        whole = {name: g.data for name, g in prepared.given.items()}
        facts = {name: g.operand for name, g in prepared.given.items()}
        sizes = _sizes(prepared.assignment, whole, axes)
        compiled = (index for index, size in static if sizes.get(index) == size)
        kept = {**dict(self.settings.static), **dict.fromkeys(compiled, 0)}
        small = small_sizes(prepared.assignment, sizes, kept)
        tensors = small_tensors(prepared.assignment, whole, facts, small, axes)
        for name, data in tensors.items():
            wanted, own = facts[name], type_of(data)
            if (own.format, joined_of(data)) != (wanted.type.format, wanted.contiguous):
                return f"no small operand is stored as {name} is"
        return prepared, tensors, _by_oracle(prepared, tensors, facts, axes)


def _sizes(
    assignment: Assignment, tensors: Mapping[str, TensorData], axes: Mapping[str, tuple[int, ...]]
) -> dict[str, int]:
    """Return the size of each index."""
    found: dict[str, int] = {}
    for access in accesses(assignment):
        if access.tensor in tensors:
            left_out = axes.get(access.tensor, ())
            kept = (
                n for mode, n in enumerate(tensors[access.tensor].shape) if mode not in left_out
            )
            found.update(zip(access.indices, kept, strict=True))
    return found


def _by_oracle(
    prepared: Prepared,
    tensors: Mapping[str, TensorData],
    facts: Mapping[str, Any],
    axes: Mapping[str, tuple[int, ...]],
) -> np.ndarray[Any, Any]:
    """Return the oracle's result on small operands, in the types that kernels read them in."""
    arrays, places = {}, {}
    for name, data in tensors.items():
        read = converted_to(np.dtype(facts[name].type.dtype), data)
        arrays[name] = np.squeeze(to_dense(read), axes.get(name, ()))
        if not data.format.is_dense:
            places[name] = np.squeeze(stored_places(data, unpack(data)[0]), axes.get(name, ()))
    return evaluate_stored(prepared.assignment, arrays, places)[0]


def _sparse_summary(data: TensorData) -> np.ndarray[Any, Any]:
    """Return sums that equal sparse tensors have in common, whatever zeros they store."""
    columns, values = unpack(data)
    order = len(data.shape)
    weights = [np.cos(1.0 + np.asarray(c, float) * (1 + k)) for k, c in enumerate(columns)]
    product = np.asarray(values).astype(np.result_type(values.dtype, np.float64))
    parts = [product.sum(), np.abs(product).sum()]
    for weight in weights[:order]:
        parts.append((product * weight).sum())
    return np.asarray(parts)


def alike(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any], dtype: str) -> bool:
    """Tell whether two results are the same, up to the rounding of a type."""
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "biu":
        return bool(np.array_equal(one, other))
    tolerance = TOLERANCE.get(dtype, USUAL_TOLERANCE)
    finite = np.isfinite(other)
    if not np.array_equal(finite, np.isfinite(one)):
        return False
    largest = np.abs(other[finite]).max(initial=0.0)
    same = np.array_equal(one[~finite], other[~finite], equal_nan=True)
    apart = np.abs(one[finite] - other[finite]).max(initial=0.0)
    return bool(same and apart <= tolerance * max(largest, 1e-30))
