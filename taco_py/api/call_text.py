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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from codegen.runtime.signature import Kind, Parameter
from taco_py.api.operands import Given
from taco_py.api.readings import READINGS, Reading, arrays_of, as_it_is, read_array, read_data
from taco_py.api.results import ResultKind, hand_out
from taco_py.api.tensor import Tensor, as_data
from taco_py.cost.machine import PARALLEL
from taco_py.diagnostics.errors import InternalError
from taco_py.driver import CompiledKernel
from taco_py.interop.numpy_arrays import from_numpy
from taco_py.interop.scipy_arrays import is_ascending, is_canonical
from taco_py.lower.bindings import Source
from taco_py.notation.checks import accesses
from taco_py.notation.nodes import Access, Assignment
from taco_py.plan.nodes import Cast, Compute, Fuse, Plan, Squeeze
from taco_py.plan.run import assembly, in_order, known_order, new_array, transformed
from taco_py.plan.work import bounds
from taco_py.problem import TensorType
from taco_py.storage.pack import dense_data
from taco_py.storage.tensor_data import TensorData

PLAIN = 0x0101  # C-contiguous and aligned, in the flags of a NumPy array as one number
WRITEABLE = 0x0400
INT64_MAX = 2**63 - 1
HELPERS: Mapping[str, Any] = {
    "arrays_of": arrays_of,
    "as_data": as_data,
    "from_numpy": from_numpy,
    "in_order": in_order,
    "is_ascending": is_ascending,
    "is_canonical": is_canonical,
}


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What a call does.

    objects  the user's operands, by name
    kernels  one for each kernel of the plan
    out      the dtype of the array that the result is written to, None if it is returned
    begin    the operand that is `out` itself, as `y` is in y += value, or ""
    """

    assignment: Assignment
    objects: Mapping[str, Any]
    given: Mapping[str, Given]
    plan: Plan
    kernels: tuple[CompiledKernel, ...]
    kind: ResultKind
    out: np.dtype[Any] | None = None
    begin: str = ""

    def type_of(self, name: str) -> TensorType | None:
        """The type that a kernel takes the tensor `name` as, None if none does."""
        for step in self.plan.kernels:
            for operand, type in step.problem.operands:
                if step.source(operand) == name:
                    return type
        return self.given[name].operand.type if name in self.given else None

    def is_transformed(self, name: str) -> bool:
        """Whether a step that is no kernel reads the tensor `name`."""
        steps = (step for step in self.plan.steps if not isinstance(step, Compute | Fuse))
        return any(step.source == name for step in steps)

    def needs_order(self, name: str) -> bool:
        """Whether a kernel relies on the order of its coordinates."""
        return any(
            step.source(operand) == name and (ordered or unique)
            for step, kernel in zip(self.plan.kernels, self.kernels, strict=True)
            for operand, ordered, unique in kernel.requirements
        )

    @property
    def direct(self) -> bool:
        """Whether the last kernel may write into `out`."""
        last = self.plan.steps[-1]
        return isinstance(last, Compute) and last.problem.result.dtype == self.out


Prelude = Callable[[Sequence[tuple[int, str]], bool], tuple[str, ...]]
"""From the operands' places and names, and whether there is an `out`, to the first lines of `call`,
which define a0, a1 …"""


def by_place(operands: Sequence[tuple[int, str]], out: bool) -> tuple[str, ...]:
    """Operands of known types as arguments."""
    names = [*(f"a{place}" for place, _ in operands), *(["out"] if out else [])]
    return (f"def call({', '.join(names)}):", "    try:")


def by_name(operands: Sequence[tuple[int, str]], out: bool) -> tuple[str, ...]:
    """Operands in a dict, of any types; the threads to use at most may be given."""
    others = " or ".join(f"type(a{place}) is not a{place}_type" for place, _ in operands)
    return (
        f"def call(operands, {'out, ' if out else ''}threads=threads):",
        "    try:",
        *(f"        a{place} = operands[{name!r}]" for place, name in operands),
        f"        if len(operands) != {len(operands)} or {others or False}:",
        "            return None",
    )


def call_text(task: Task, prelude: Prelude) -> tuple[str, dict[str, Any]]:
    """The text of `call`, and what it calls besides what `short.define` gives to all of them."""
    writer = _Writer(task)
    body = [f"        {line}" for line in writer.body()]
    operands = [(p, name) for p, name in enumerate(task.objects) if name != task.begin]
    last = [
        "    except (TypeError, ValueError, AttributeError, KeyError, OverflowError, MemoryError):",
        "        return None",
        "",
    ]
    text = "\n".join((*prelude(operands, task.out is not None), *body, *last))
    used = {name: helper for name, helper in HELPERS.items() if f"{name}(" in text}
    return text, {**used, **writer.more}


@dataclass(slots=True)
class _Writer:
    """Writes the text while it walks the plan.

    readings  of each tensor that exists so far, by name
    more      what the text calls, by the name it has there
    checked   conditions that have been written
    """

    task: Task
    readings: dict[str, Reading] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)

    def body(self) -> Iterator[str]:
        """The lines of `call`."""
        task = self.task
        for place, name in enumerate(task.objects):
            if name == task.begin:
                yield f"a{place} = out"
            self.readings[name] = self.operand(f"a{place}", name)
            yield from self.readings[name].lines
        users = tuple(self.readings.values())
        sizes = self.sizes()
        wrong = [condition for reading in users for condition in reading.wrong]
        wrong += sizes_disagree(self.accesses(), sizes)
        target = tuple(sizes[i] for i in task.assignment.target.indices)
        yield from self.give_up([*wrong, *self.unfit_out(target), *self.disordered()])
        kernels = iter(task.kernels)
        for number, step in enumerate(task.plan.steps):
            if isinstance(step, Compute):
                last = number == len(task.plan.steps) - 1
                yield from _Kernel(self, step, next(kernels), number, last).lines()
            elif isinstance(step, Fuse):
                yield from self.fusion(f"t{number}", step)
            else:
                yield from self.transformation(f"t{number}", step, number)
        yield from self.results(self.readings[task.plan.steps[-1].target])

    def operand(self, a: str, name: str) -> Reading:
        """How an operand is taken apart: as its type allows, or the way that does for all."""
        task = self.task
        obj, given, type_ = task.objects[name], task.given[name], task.type_of(name)
        assert type_ is not None
        read = READINGS.get(type(obj))
        own = getattr(obj, "dtype", given.data.dtype).newbyteorder("=")
        if own != given.data.dtype:
            self.more["converted_to"] = converted_to
            return read_data(a, type_, f"converted_to({a}_dtype, as_data({a}))")
        coordinates = getattr(obj, "format", "") == "coo" and task.needs_order(name)
        if read is None or coordinates or task.is_transformed(name) or not _usual(obj, given):
            return read_data(a, type_, f"as_data({a})")
        if isinstance(obj, Tensor):
            self.more[f"{a}_format"] = type_.format
        return read(a, type_)

    def accesses(self) -> Iterator[tuple[Access, tuple[str, ...]]]:
        """The accesses of the user's operands with the sizes of their modes, but for modes of size
        1 that are taken off."""
        off = {s.source: s.axes for s in self.task.plan.steps if isinstance(s, Squeeze)}
        for access in accesses(self.task.assignment):
            sizes = self.readings[access.tensor].sizes
            axes = off.get(access.tensor, ())
            yield access, tuple(size for axis, size in enumerate(sizes) if axis not in axes)

    def sizes(self) -> dict[str, str]:
        """The variable that has the size of each index."""
        found: dict[str, str] = {}
        for access, sizes in self.accesses():
            for index, size in zip(access.indices, sizes, strict=True):
                found.setdefault(index, size)
        return found

    def disordered(self) -> Iterator[str]:
        """That coordinates of the user's operands are not in the order which a kernel relies on."""
        for step, kernel in zip(self.task.plan.kernels, self.task.kernels, strict=True):
            for operand, ordered, unique in kernel.requirements:
                reading = self.readings.get(step.source(operand))
                says = says_order(reading, ordered, unique) if reading else "True"
                if says not in ("", "True"):
                    yield f"not {says}"

    def unfit_out(self, shape: tuple[str, ...]) -> Iterator[str]:
        """That `out` cannot take a result of this shape."""
        if self.task.out is not None:
            yield "type(out) is not ndarray"
            yield "out.dtype != out_dtype"
            yield f"not out.flags.num & {WRITEABLE}"
            yield f"out.shape != {listed(shape)}"

    def give_up(self, wrong: Sequence[str]) -> Iterator[str]:
        """Return None where one of the conditions holds that are not known to be false."""
        found = [condition for condition in dict.fromkeys(wrong) if condition not in self.checked]
        self.checked.update(found)
        if found:
            yield "if ("
            yield "    " + "\n            or ".join(found)
            yield "):"
            yield "    return None"

    def transformation(self, t: str, step: Any, number: int) -> Iterator[str]:
        """A step without a kernel."""
        self.more[f"step{number}"] = partial(transformed, step)
        source = self.readings[step.source].data
        type = self.type_of(step)
        reading = read_data(t, type, f"step{number}({source})")
        self.readings[step.target] = reading
        yield from reading.lines
        yield from self.give_up(reading.wrong)

    def type_of(self, step: Any) -> TensorType | None:
        """The type of what a step makes that is no kernel, where something reads it."""
        if isinstance(step, Cast):
            return TensorType(step.format, step.dtype)
        return self.task.type_of(step.target)

    def fusion(self, t: str, step: Fuse) -> Iterator[str]:
        """A view of a dense operand with fewer modes."""
        source = self.readings[step.source]
        modes = [mode for group in step.groups for mode in group]
        turned = "" if modes == sorted(modes) else f".transpose({listed(map(str, modes))})"
        shape = [" * ".join(source.sizes[mode] for mode in group) for group in step.groups]
        type = self.task.type_of(step.target)
        assert type is not None  # kernels alone read it
        sizes = tuple(f"{t}_{mode}" for mode in range(len(shape)))
        yield f"{listed(sizes)} = {t}_shape = {listed(shape)}"
        yield f"{t} = {source.values}{turned}.reshape({t}_shape)"
        reading = replace(read_array(t, type), lines=())
        self.readings[step.target] = reading
        yield from self.give_up(reading.wrong)

    def results(self, reading: Reading) -> Iterator[str]:
        """Hand out the last step's result."""
        if self.task.kind.kind != "ndarray":
            self.more["finish"] = partial(hand_out, kind=self.task.kind)
            yield f"return finish({reading.data})"
        elif self.task.out is not None:
            fused = self.fused_shape()
            yield (
                f"if not meets({reading.values}, out):"
                if fused
                else f"if {reading.values} is not out:"
            )
            yield f'    copyto(out, {reading.values}{fused}, casting="unsafe")'
            yield "return out"
        else:
            whole = self.fused_shape() if self.task.assignment.target.indices else "[()]"
            yield f"return {reading.values}{whole}"

    def fused_shape(self) -> str:
        """What gives the result the modes that the assignment says, where the plan fused some."""
        wanted = self.task.assignment.target.indices
        last = self.task.plan.kernels[-1].problem.assignment.target.indices
        sizes = self.sizes()
        return f".reshape({listed(sizes[i] for i in wanted)})" if len(last) < len(wanted) else ""

    def out_apart(self) -> Iterator[str]:
        """That `out` surely shares no memory with arrays of the user's operands."""
        for name in self.task.objects:
            for array in filter(None, self.readings[name].arrays.split(", ")):
                several = array.startswith("*")
                yield f"apart(out, {array})" if several else f"not meets(out, {array})"


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The text of one kernel's call, whose result is called t and its `number`."""

    writer: _Writer
    step: Compute
    kernel: CompiledKernel
    number: int
    last: bool

    def lines(self) -> Iterator[str]:
        """Look at the operands, make the result, call."""
        problem = self.step.problem
        found = accesses(problem.assignment)
        sizes = {index: self.size(index) for index, _, _ in self.step.sizes}
        wrong = list(sizes_disagree(((a, self.reading(a.tensor).sizes) for a in found), sizes))
        wrong += [f"{sizes[index]} != {size}" for index, size in problem.static if index in sizes]
        for indices in self.kernel.keys:
            wrong.append(f"{' * '.join(sizes[i] for i in indices)} > {INT64_MAX}")
        yield from self.writer.give_up(wrong)
        yield from self.put_in_order()
        if problem.result.format.is_dense:
            yield from self.dense()
        else:
            yield from self.sparse()

    @property
    def name(self) -> str:
        return f"t{self.number}"

    @property
    def sizes(self) -> tuple[str, ...]:
        """Of the result's modes."""
        return tuple(self.size(i) for i in self.step.problem.assignment.target.indices)

    def reading(self, operand: str) -> Reading:
        """Of one of the kernel's operands."""
        return self.writer.readings[self.step.source(operand)]

    def size(self, index: str) -> str:
        """The variable with the size of `index`."""
        places = {i: (operand, mode) for i, operand, mode in self.step.sizes}
        operand, mode = places[index]
        return self.reading(operand).sizes[mode]

    def put_in_order(self) -> Iterator[str]:
        """Copy what is not in the order that the kernel relies on and may be copied."""
        for operand, ordered, unique in self.kernel.requirements:
            reading = self.reading(operand)
            if not says_order(reading, ordered, unique):
                yield f"{reading.data} = in_order({reading.data}, {ordered}, {unique})"
                yield f"{reading.values} = {reading.data}.values"

    def arguments(self) -> str:
        return ", ".join(self.argument(p, source) for p, source in self.kernel.parameters)

    def dense(self) -> Iterator[str]:
        """A result in an array, `out` itself if that may be."""
        t, n, type = self.name, self.number, self.step.problem.result
        order = type.format.mode_order
        shape = listed(self.sizes)
        if order == tuple(range(len(order))):
            new = f"make{n}({shape}, dtype{n})"
        else:
            self.writer.more[f"new{n}"] = partial(new_array, type=type, covered=self.kernel.covers)
            new = f"new{n}({shape})"
        if self.last and self.writer.task.direct:
            usual = (f"out.flags.num & {PLAIN} == {PLAIN}", *self.writer.out_apart())
            yield f"if {' and '.join(usual)}:"
            fused = f".reshape({shape})" if self.writer.fused_shape() else ""
            yield f"    {t} = out{fused}"
            if not self.kernel.covers:
                yield f"    {t}.fill(0)"
            yield "else:"
            yield f"    {t} = {new}"
        else:
            yield f"{t} = {new}"
        yield f"kernel{n}({self.arguments()})"
        data = f"from_numpy({t})"
        if self.writer.task.kind.kind != "ndarray" and self.last:
            self.writer.more[f"stored{n}"] = partial(dense_data, format=type.format)
            data = f"stored{n}({t})"
        reading = Reading((), (), t, self.sizes, arrays=t, data=data)
        self.writer.readings[self.step.target] = reading

    def sparse(self) -> Iterator[str]:
        """A result in arrays that the kernel grows."""
        t, n = self.name, self.number
        self.writer.more[f"assemble{n}"] = assembly(self.kernel, self.step)
        made = f"assemble{n}({listed(self.sizes)}, kernel{n}({self.arguments()}))"
        type = None if self.last else self.writer.task.type_of(self.step.target)
        ordered, unique = known_order(self.kernel, self.step)
        reading = replace(
            read_data(t, type, made),
            ordered="True" if ordered else "",
            canonical="True" if ordered and unique else "",
        )
        self.writer.readings[self.step.target] = reading
        yield from reading.lines

    def argument(self, parameter: Parameter, source: Source | None) -> str:
        """The expression for one parameter of the kernel."""
        if parameter.kind is Kind.THREADS:
            return f"threads if {self.work()} >= {PARALLEL} else 1"
        if parameter.kind is Kind.GROWING:
            return self.room(source)
        if source is None:
            raise InternalError(f"Nothing is known of the kernel parameter {parameter.name}")
        if source.what == "size":
            return self.size(source.index)
        if source.what == "stride":
            return self.stride(source)
        if source.tensor == self.step.problem.assignment.target.tensor:
            return self.name
        reading = self.reading(source.tensor)
        if source.what == "values":
            return reading.values
        return {"pos": reading.pos, "crd": reading.crd}[source.what](source.level)

    def stride(self, source: Source) -> str:
        """A stride of a dense operand or of the result, in elements."""
        problem = self.step.problem
        mode = problem.type_of(source.tensor).format.mode_order[source.level]
        if source.tensor == problem.assignment.target.tensor:
            values = self.name
        else:
            values = self.reading(source.tensor).values
        return f"{values}.strides[{mode}] // {values}.itemsize"

    def work(self) -> str:
        """The number of iterations that `plan.work.bounds` says."""
        terms = (
            (*((self.reading(b.tensor).count,) if b.tensor else ()), *map(self.size, b.indices))
            for b in bounds(self.step.problem)
        )
        return " + ".join(" * ".join(factors) or "1" for factors in terms)

    def room(self, source: Source | None) -> str:
        """What `plan.room.first_room` says."""
        if source is not None and source.what == "pos":
            return "0"
        problem = self.step.problem
        sparse = [name for name, type in problem.operands if not type.format.is_dense]
        return " + ".join(self.reading(name).count for name in sparse) or "0"


def says_order(reading: Reading, ordered: bool, unique: bool) -> str:
    """The expression for whether coordinates are as asked, "" where they have to be put so."""
    if unique:
        return reading.canonical
    return reading.ordered if ordered else "True"


def sizes_disagree(
    found: Iterator[tuple[Access, tuple[str, ...]]], sizes: Mapping[str, str]
) -> Iterator[str]:
    """That two uses of an index differ in its size."""
    for access, own in found:
        for index, size in zip(access.indices, own, strict=True):
            if size != sizes[index]:
                yield f"{size} != {sizes[index]}"


def listed(parts: Iterable[str]) -> str:
    """A tuple.

    >>> listed(["a0_0"])
    '(a0_0, )'
    """
    return f"({''.join(f'{part}, ' for part in parts)})"


def converted_to(dtype: np.dtype[Any], data: TensorData) -> TensorData:
    """The tensor with its values in another dtype."""
    return replace(data, values=data.values.astype(dtype, copy=False))


def _usual(obj: Any, given: Given) -> bool:
    """Whether arrays like this one can be read in place."""
    if isinstance(obj, np.ndarray):
        return bool(obj.dtype.isnative)
    return as_it_is(obj, given.data)
