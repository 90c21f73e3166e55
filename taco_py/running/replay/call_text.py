"""The text of a short way: a Python function that does what is left to do for a plan.

For y[i] = A[i,j] * x[j] with a CSR matrix and a vector it is

    def call(a0, a1):
        try:
            a0_pos, a0_crd, a0_vals = a0.indptr, a0.indices, a0.data
            a0_nnz = len(a0_vals)
            a0_0, a0_1, = a0.shape
            a1_0, = a1.shape
            if (
                a0_pos.flags.num & a0_crd.flags.num & a0_vals.flags.num & 257 != 257
                or len(a0_pos) != a0_0 + 1
                or len(a0_crd) != a0_nnz
                or a0_pos.item(-1) != a0_nnz
                or (a1.flags.num & 257 != 257 and not strided(a1, 0, True))
                or a1_0 != a0_1
            ):
                return None
            t0 = make0((a0_0, ), dtype0)
            kernel0(t0, a0_pos, a0_crd, a0_vals, a1, a0_0, threads if a0_nnz >= 30000 else 1)
            return t0
        except (TypeError, ValueError, AttributeError, KeyError, OverflowError, MemoryError):
            return None

Step after step of a longer plan is written the same way: t0, t1 … are what the steps make.

It returns None where something does not hold; the long way then does it, or raises the error.
Element types are left to the kernels themselves, which refuse others with a TypeError. They raise
an OverflowError where a result passes its index type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from codegen.records import dataclass
from taco_py.arguments.operands import BoundOperand
from taco_py.compiler.driver import CompiledKernel
from taco_py.data.storage.borrow import BFLOAT16
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.notation.checks import need_elements
from taco_py.language.notation.half_types import is_half
from taco_py.language.problem import TensorType
from taco_py.planner.ir.nodes import (
    Cast,
    Fuse,
    Gather,
    KernelStep,
    Step,
    TakeSide,
    TakeSize,
    Unfuse,
)
from taco_py.running.execute.independent_kernels import free_after, independent_groups
from taco_py.running.execute.transform import transform_of
from taco_py.running.replay.calls_together import with_groups
from taco_py.running.replay.helpers import Helper
from taco_py.running.replay.kernel_text import KernelText
from taco_py.running.replay.operand_text import (
    READINGS,
    Reading,
    as_it_is,
    read_array,
    read_data,
    read_lined_up,
    read_tensor,
)
from taco_py.running.replay.state import CallState, ResultSpec, Task, says_order, tuple_text
from taco_py.running.replay.taken_again import Arrays, equal_sizes, with_arrays_taken_again

HANDED_OUT = "taco_py.data.tensors.hand_out:handed_out"
WRITEABLE = 0x0400  # in the flags of a NumPy array as one number
HELPERS: Mapping[str, Helper] = {
    place.partition(":")[2]: Helper(place)
    for place in (
        "taco_py.data.interop.in_order:in_order",
        "taco_py.data.interop.numpy_arrays:from_numpy",
        "taco_py.data.interop.scipy_arrays:from_scipy",
        "taco_py.data.interop.scipy_arrays:is_ascending",
        "taco_py.data.interop.scipy_arrays:is_canonical",
        "taco_py.data.storage.by_level.index_checks:are_sound",
        "taco_py.data.storage.by_level.index_checks:in_range",
        "taco_py.data.storage.by_level.index_checks:is_known",
        "taco_py.data.storage.tensor_data:arrays_of",
        "taco_py.data.storage.tensor_data:row_major",
        "taco_py.data.tensors.tensor:operand_data",
    )
}


Prelude = Callable[[Sequence[tuple[int, str]], Sequence[str]], tuple[str, ...]]
"""From the operands' places and names, and the names of arrays for results, to the first lines of
`call`, which define a0, a1 …"""


def by_place(operands: Sequence[tuple[int, str]], outs: Sequence[str]) -> tuple[str, ...]:
    """Return operands of known types as arguments."""
    names = [*(f"a{place}" for place, _ in operands), *outs]
    return (f"def call({', '.join(names)}):", "    try:")


def by_name(operands: Sequence[tuple[int, str]], outs: Sequence[str]) -> tuple[str, ...]:
    """Return operands in a dict, of any types; the threads to use at most may be given."""
    conditions = " or ".join(f"type(a{place}) is not a{place}_type" for place, _ in operands)
    return (
        f"def call(operands, {''.join(f'{out}, ' for out in outs)}threads=threads):",
        "    try:",
        *(f"        a{place} = operands[{name!r}]" for place, name in operands),
        f"        if len(operands) != {len(operands)} or {conditions or False}:",
        "            return None",
    )


def call_text(task: Task, prelude: Prelude) -> tuple[str, dict[str, Any]]:
    """Return the text of `call`, and the objects that it calls."""
    writer = _Writer(task)
    body = [f"        {line}" for line in writer.body()]
    arrays = task.accumulators
    operands = [(p, name) for p, name in enumerate(task.objects) if name not in arrays]
    last = [
        "    except (TypeError, ValueError, AttributeError, KeyError, OverflowError, MemoryError):",
        "        return None",
        "",
    ]
    if (
        arrays and task.alone
    ):  # `out` may hold a part of the result by then, and must not be added to again
        last[:0] = ["    except MemoryError as error:", "        raise no_room(error) from error"]
    text = "\n".join((*prelude(operands, tuple(task.outs)), *body, *last))
    used = {name: helper for name, helper in HELPERS.items() if f"{name}(" in text}
    return text, {**used, **writer.more}


@dataclass(slots=True)
class _Writer(CallState):
    """Writes the text while it walks the plan."""

    def body(self) -> Iterator[str]:
        """Yield the lines of `call`."""
        task = self.task
        for place, name in enumerate(task.objects):
            if name in task.accumulators:
                yield f"a{place} = {task.accumulators[name]}"
            self.readings[name] = self.with_fill(self.operand(f"a{place}", name), name)
            yield from self.readings[name].lines
        users = tuple(self.readings.values())
        wrong = [condition for reading in users for condition in reading.wrong]
        wrong += self.disagreeing()
        for statement in task.statements:
            sizes = self.sizes(statement)
            wrong += [f"not {sizes[node.index]}" for node in need_elements(statement)]
        yield from self.give_up([*wrong, *self.unfit_outs(), *self.disordered()])
        kernels = iter(task.kernels)
        steps = [[*self.step(number, step, kernels)] for number, step in enumerate(task.plan.steps)]
        if not task.accumulators:  # kernels that add to arrays run in the text's order
            groups = independent_groups(task.plan)
            steps = with_groups(steps, groups, self.calls, task.plan.machine)
        yield from with_arrays_taken_again(*self.arrays(steps))
        yield from self.results()

    def step(self, number: int, step: Step, kernels: Iterator[CompiledKernel]) -> Iterator[str]:
        """Yield the lines of one step of the plan."""
        if isinstance(step, KernelStep):
            last = number == len(self.task.plan.steps) - 1
            yield from KernelText(self, step, next(kernels), number, last).lines()
        elif isinstance(step, Fuse):
            yield from self.fusion(f"t{number}", step)
        elif isinstance(step, Unfuse):
            yield self.unfusion(f"t{number}", step)
        elif isinstance(step, TakeSide):
            self.readings[step.target] = self.view(*self.side[step.source, step.number])
        elif isinstance(step, TakeSize):
            yield self.size(f"t{number}", step)
        else:
            yield from self.transformation(f"t{number}", step, number)

    def arrays(self, steps: Sequence[Sequence[str]]) -> Arrays:
        """Return the steps' lines with when their arrays are free, and which later ones may take
        them."""
        same = equal_sizes(self.checked)
        new = {
            name: replace(array, key=(tuple(same.get(s, s) for s in array.key[0]), *array.key[1:]))
            for name, array in self.new.items()
        }
        variables = {
            step.target: [v for v in (read.values, read.data) if re.fullmatch(r"t\d+\w*", v)]
            for step in self.task.plan.steps
            if (read := self.readings.get(step.target)) is not None
        }
        return steps, free_after(self.task.plan), new, variables

    def operand(self, a: str, name: str) -> Reading:
        """Return the text that unpacks an operand, with a type check if no kernel has one."""
        type_ = self.task.type_of(name)
        reading = self.parts(a, name)
        if type_ is None or type_.element != BFLOAT16:
            return reading
        return replace(reading, wrong=(f"{reading.values}.dtype != {a}_dtype", *reading.wrong))

    def parts(self, a: str, name: str) -> Reading:
        """Return how an operand is taken apart: as its type allows, or the way that does for
        all."""
        task = self.task
        obj, bound, type_ = task.objects[name], task.operands[name], task.type_of(name)
        assert type_ is not None
        read = READINGS.get(type(obj))
        dtype = getattr(obj, "dtype", bound.data.dtype).newbyteorder("=")
        text = f"{stored(obj)}({a})"
        if dtype != bound.data.dtype:
            self.more["converted_to"] = Helper("taco_py.data.storage.tensor_data:converted_to")
            text = f"converted_to({a}_dtype, {text})"
        if bound.lined_up:
            if text == f"from_numpy({a})" and not task.is_transformed(name):
                return read_lined_up(a, type_)
            return read_data(a, type_, f"row_major({text})")
        if dtype != bound.data.dtype:
            return read_data(a, type_, text)
        coordinates = getattr(obj, "format", "") == "coo" and task.needs_order(name)
        if isinstance(obj, Tensor) and task.needs_distinct(name):
            return read_data(a, type_, f"{a}.examined()")
        if read is None or coordinates or task.is_transformed(name) or not _usual(obj, bound):
            return read_data(a, type_, text)
        if isinstance(obj, Tensor):
            self.more[f"{a}_format"] = type_.format
            return read_tensor(a, type_, task.needs_order(name))
        return read(a, type_)

    def with_fill(self, reading: Reading, name: str) -> Reading:
        """Read a Tensor that leaves elements out only where these have the value as in this one."""
        data = self.task.operands[name].data
        if not isinstance(self.task.objects[name], Tensor) or data.format.is_dense:
            return reading
        other = f"{reading.data}.fill != {data.fill!r}"
        return replace(reading, wrong=(*reading.wrong, other))

    def disordered(self) -> Iterator[str]:
        """Raise the error for coordinates of the user's operands in an order that kernels cannot
        read.
        """
        for step, kernel in zip(self.task.plan.kernels, self.task.kernels, strict=True):
            for operand, ordered, unique in kernel.requirements:
                reading = self.readings.get(step.source(operand))
                says = says_order(reading, ordered, unique) if reading else "True"
                if says not in ("", "True") and operand not in kernel.checked:
                    yield f"not {says}"

    def unfit_outs(self) -> Iterator[str]:
        """Yield the tests that an array cannot take the result that is written to it."""
        for result in self.task.results:
            if result.out is not None:
                out, _ = result.out
                yield f"type({out}) is not ndarray"
                yield f"{out}.dtype != {out}_dtype"
                yield f"not {out}.flags.num & {WRITEABLE}"
                yield f"{out}.shape != {tuple_text(self.shapes[result.tensor])}"
        for one, other in combinations(self.task.outs, 2):
            yield f"shares({one}, {other})"

    def transformation(self, t: str, step: Any, number: int) -> Iterator[str]:
        """Yield a step without a kernel."""
        source = self.readings[step.source].data
        if isinstance(step, Gather):
            source = f"{source}, {self.readings[step.pattern].data}"
        name, arguments = transform_of(step)
        self.more[f"step{number}"] = Helper(f"taco_py.data.interop.transforms:{name}", arguments)
        type = self.type_of(step)
        reading = read_data(t, type, f"step{number}({source})")
        self.readings[step.target] = reading
        yield from reading.lines
        yield from self.give_up(reading.wrong)

    def type_of(self, step: Any) -> TensorType | None:
        """Return the type of a transformation's result, where something reads it."""
        if isinstance(step, Cast):
            return TensorType(step.format, step.dtype)
        return self.task.type_of(step.target)

    def fusion(self, t: str, step: Fuse) -> Iterator[str]:
        """Yield a view of a dense operand with fewer modes."""
        source = self.readings[step.source]
        modes = [mode for group in step.groups for mode in group]
        turned = "" if modes == sorted(modes) else f".transpose({tuple_text(map(str, modes))})"
        shape = [" * ".join(source.sizes[mode] for mode in group) for group in step.groups]
        type = self.task.type_of(step.target)
        sizes = tuple(f"{t}_{mode}" for mode in range(len(shape)))
        yield f"{tuple_text(sizes)} = {t}_shape = {tuple_text(shape)}"
        yield f"{t} = {source.values}{turned}.reshape({t}_shape)"
        wrong = () if type is None else read_array(t, type).wrong  # no kernel reads it, or one does
        self.readings[step.target] = self.view(t, sizes)
        yield from self.give_up(wrong)

    def unfusion(self, t: str, step: Unfuse) -> str:
        """Return a view of a kernel's result with more modes."""
        sizes = tuple(self.readings[name].sizes[mode] for name, mode in step.sizes)
        self.readings[step.target] = self.view(t, sizes)
        return f"{t} = {self.readings[step.source].values}.reshape({tuple_text(sizes)})"

    def size(self, t: str, step: TakeSize) -> str:
        """Return a number without modes."""
        source = self.readings[step.source]
        size = source.sizes[step.mode] if source.sizes else f"{source.data}.shape[{step.mode}]"
        self.more[f"{t}_number"] = Helper(
            "taco_py.data.storage.tensor_data:number_of", {"dtype": step.dtype}
        )
        self.readings[step.target] = self.view(t, ())
        return f"{t} = {t}_number(size={size})"

    def view(self, t: str, sizes: tuple[str, ...]) -> Reading:
        """Return how an array is read that has been looked at."""
        return Reading((), (), t, sizes, arrays=t, data=f"from_numpy({t})")

    def results(self) -> Iterator[str]:
        """Hand out the results, several as a tuple."""
        values = []
        for number, output in enumerate(self.task.results):
            place = "" if self.task.alone else str(number)
            value = yield from self.result(output, place)
            values.append(value)
        yield f"return {values[0] if self.task.alone else tuple_text(values)}"

    def result(self, output: ResultSpec, place: str) -> Generator[str, None, str]:
        """Yield the lines that finish a result, and return the expression that hands it out.

        place  its number among several, ""
        """
        reading, half, kind = self.readings[output.target], output.half, output.kind.kind
        if half:
            home = "taco_py.data.convert.in_type"
            self.more[f"in_half{place}"] = Helper(f"{home}:in_type", {"dtype": half})
            self.more[f"data_in_half{place}"] = Helper(f"{home}:values_in_type", {"dtype": half})
        if kind != "ndarray":
            self.more[f"finish{place}"] = Helper(HANDED_OUT, {"kind": kind})
            data = f"data_in_half{place}({reading.data})" if half else reading.data
            return f"finish{place}({data})"
        fused = self.fused_shape()
        if output.out is not None:
            out, dtype = output.out
            copies = f'copyto({out}, {reading.values}{fused}, casting="unsafe")'
            if half and is_half(dtype):
                copies = f'copyto({out}, in_half{place}({reading.values}){fused}, casting="unsafe")'
            if output.target in self.place_variables and self.task.placed[output.target].out == out:
                array, place_variable = self.place_variables[output.target]
                yield f"if {array} is not {place_variable}:"
                yield f"    {copies}"
            elif self.task.alone:
                yield (
                    f"if not meets({reading.values}, {out}):"
                    if fused
                    else f"if {reading.values} is not {out}:"
                )
                yield f"    {copies}"
            else:
                yield copies
            return out
        shaped = fused if self.shapes[output.tensor] else "[()]"
        turned = f".transpose({tuple_text(map(str, output.axes))})" if output.axes else ""
        values = f"in_half{place}({reading.values})" if half else reading.values
        return f"{values}{shaped}{turned}"


def stored(obj: Any) -> str:
    """Return a function that makes TensorData of objects like this one."""
    if isinstance(obj, np.ndarray):
        return "from_numpy"
    return "from_scipy" if sp.issparse(obj) else "operand_data"


def _usual(obj: Any, bound: BoundOperand) -> bool:
    """Tell whether arrays like this one can be read in place."""
    if isinstance(obj, np.ndarray):
        return bool(obj.dtype.isnative)
    return as_it_is(obj, bound.data)
