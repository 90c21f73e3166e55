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
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.prepare import Checked, Prepared, prepare_computation, start
from taco_py.compiler.driver import compile_recipes
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.pack import to_dense, unpack
from taco_py.data.storage.tensor_data import TensorData, converted_to, on_host
from taco_py.language.diagnostics.errors import TacoError
from taco_py.language.notation.checks import accesses
from taco_py.language.oracle import evaluate_stored, stored_positions
from taco_py.language.phase import EVALUATE
from taco_py.planner.ir.goal import Request
from taco_py.running.execute.run import Execution, run_all
from taco_py.running.plan_texts.compare_plan import CallStatements
from taco_py.running.plan_texts.fitted_plan import parsed_plan, plan_of_text
from taco_py.running.replay.call_text import by_place
from taco_py.running.replay.make_call import make_call
from taco_py.tuning.measure.sequential_test import SURE
from taco_py.tuning.measure.small_operands import small_sizes, small_tensors, stored_places
from taco_py.tuning.measure.turns import Times, Turns, alone, in_turns

Call = Callable[[], object]
Sizes = tuple[tuple[str, int], ...]
Small = tuple[Prepared, dict[str, TensorData], dict[str, np.ndarray[Any, Any]]]
"""A call prepared, small operands of its kinds, and the results for them by name."""
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

    computation: Computation
    ready: dict[str, Prepared] = field(default_factory=dict)
    calls: dict[str, Call] = field(default_factory=dict)
    checks: dict[Any, Any] = field(default_factory=dict)

    # ------------------------------------------------------------ building

    def build(self, text: str) -> None:
        """Compile a plan. Raises ScheduleError where it cannot be so, and CompilerError."""
        if text in self.ready:
            return
        options = replace(self.computation.options, plan=text)
        prepared = prepare_computation(self.computation.with_options(options))
        steps = prepared.plan.kernels
        kernels = compile_recipes(prepared.plan.recipes)
        for step, kernel in zip(steps, kernels, strict=True):
            prepared.kernels[step.target, EVALUATE] = kernel
        self.ready[text] = prepared

    def first(self, text: str) -> None:
        """Run a plan once that was built. Raises WrongResultError."""
        if text in self.calls:
            return
        prepared, options = self.ready[text], replace(self.computation.options, plan=text)
        execution = start(prepared, options, None)
        results = run_all(prepared.plan, execution).values()
        for name, data in zip(prepared.outputs, results, strict=True):
            self._compare(name, on_host(data), _result_words(name, prepared))
        self.calls[text] = later_call(self.computation, prepared, options, execution.threads)

    def _compare(self, name: str, data: TensorData, words: str) -> None:
        """Keep the first result of each name, which is auto's, and compare others with it."""
        summary = to_dense(data) if data.format.is_dense else _sparse_summary(data)
        if name not in self.checks:
            self.checks[name] = summary
        elif not alike(summary, self.checks[name], data.dtype.name):
            raise WrongResultError(f"{words} differs from that of the plan without timing")

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
        prepared, tensors, references = small
        results = self._run_small(text, tensors, prepared)
        for (name, expected), data in zip(references.items(), results, strict=True):
            if not alike(to_dense(data), expected, data.dtype.name):
                words = f"{_result_words(name, prepared)} on small operands"
                raise WrongResultError(f"{words} differs from the oracle's")
        return ""

    def _run_small(
        self, text: str, tensors: Mapping[str, TensorData], prepared: Prepared
    ) -> tuple[TensorData, ...]:
        """Return the results of a plan on small operands."""
        options, checked, plan = self.computation.options, prepared.checked, prepared.plan
        request = Request(plan.result, options.static, any_order=True).on(options.target)
        facts = {
            n: replace(g.operand, shape=t.shape, nnz=float(t.nnz), entries=None)
            for n, g in prepared.operands.items()
            if (t := tensors.get(n)) is not None
        }
        types = checked.elaborated.types
        if checked.is_single:
            types[checked.target] = plan.result
        results = (*prepared.outputs.values(),)
        call = CallStatements(checked.assignments, facts, types, results)
        small = plan_of_text(text, facts, request, call, is_compared=False)
        shape = None
        if checked.is_single:
            sizes = _sizes(checked, tensors)
            shape = tuple(sizes[i] for i in prepared.assignment.target.indices)
        machine, threads = plan.machine.with_costs(parallel_iterations=0), options.threads
        execution = Execution(dict(tensors), threads or KERNELS.cores, machine=machine, shape=shape)
        return tuple(map(on_host, run_all(small, execution).values()))

    def _small(self, static: Sizes) -> Small | str:
        """Return the call prepared, its operands small, and its results; or why there are none.

        static  sizes that a plan has compiled in, which stay
        """
        if static not in self.checks:
            self.checks[static] = self._make_small(static)
        small: Small | str = self.checks[static]
        return small

    def _make_small(self, static: Sizes) -> Small | str:
        prepared = prepare_computation(self.computation)
        checked = prepared.checked
        tensors = {name: g.data for name, g in prepared.operands.items()}
        facts = {name: g.operand for name, g in prepared.operands.items()}
        sizes = _sizes(checked, tensors)
        compiled = (index for index, size in static if sizes.get(index) == size)
        fixed = {**dict(self.computation.options.static), **dict.fromkeys(compiled, 0)}
        small = small_sizes(checked.source_assignments, sizes, fixed)
        axes = dict(checked.squeezed)
        try:
            tensors = small_tensors(checked.source_assignments, tensors, facts, small, axes)
        except TacoError as error:  # the formats of operands do not store any pattern
            return error.message
        for name, data in tensors.items():
            operand, actual = facts[name], type_of(data)
            if (actual.format, joined_of(data)) != (operand.type.format, operand.contiguous):
                return f"no small operand is stored as {name} is"
        return prepared, tensors, _by_oracle(prepared, tensors)


def later_call(
    computation: Computation, prepared: Prepared, options: CallOptions, threads: int
) -> Call:
    """Return a function that does the work of later calls like one that was prepared, and ran."""
    from taco_py.calls.call.fast_paths import task_of

    def long() -> object:
        return run_all(prepared.plan, start(prepared, options, None))

    objects, alone = computation.objects, computation.requested.alone
    task = (
        None
        if computation.squeezed or prepared.checked.copied
        else task_of(prepared, objects, alone=alone)
    )
    if task is None:
        return long
    short = partial(make_call(task, by_place, threads)[0], *objects.values())
    return long if short() is None else short


def _result_words(name: str, prepared: Prepared) -> str:
    """Return the words for a result, by its name where there are several."""
    return f"the result {name}" if len(prepared.outputs) > 1 else "the result"


def _sizes(checked: Checked, tensors: Mapping[str, TensorData]) -> dict[str, int]:
    """Return the size of each index of statements over these operands."""
    axes, sizes = dict(checked.squeezed), dict[str, int]()
    for access in (access for define in checked.source_assignments for access in accesses(define)):
        if access.tensor in tensors:
            out, shape = axes.get(access.tensor, ()), tensors[access.tensor].shape
            left = (n for mode, n in enumerate(shape) if mode not in out)
            sizes.update(zip(access.indices, left, strict=True))
    return sizes


def _by_oracle(
    prepared: Prepared, tensors: Mapping[str, TensorData]
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the oracle's results on small operands, in the types that kernels read them in."""
    checked = prepared.checked
    axes, types = dict(checked.squeezed), checked.elaborated.types
    arrays, places = {}, {}
    for name, data in tensors.items():
        read = converted_to(np.dtype(prepared.operands[name].operand.type.dtype), data)
        arrays[name] = np.squeeze(to_dense(read), axes.get(name, ()))
        if not data.format.is_dense:
            places[name] = np.squeeze(stored_places(data, unpack(data)[0]), axes.get(name, ()))
    for assignment in checked.source_assignments:
        name = assignment.target.tensor
        array, has = evaluate_stored(assignment, arrays, places)
        arrays[name] = array if checked.is_single else array.astype(types[name].dtype)
        places[name] = stored_positions(has, types[name].format)
    return {name: arrays[target] for name, target in prepared.outputs.items()}


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
    difference = np.abs(one[finite] - other[finite]).max(initial=0.0)
    return bool(same and difference <= tolerance * max(largest, 1e-30))
