"""The short way from the user's objects to a kernel, for calls like one that was made before.

A plan that is one kernel, whose operands are taken as they are, becomes a Python function that does
what is left to do for operands of the same types: look at lengths, sizes and strides, make the
result, call. For y[i] = A[i,j] * x[j] with a CSR matrix and a vector it is

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
            out = make((a0_0, ), dtype)
            kernel(out, a0_pos, a0_crd, a0_vals, a1, a0_0, threads if a0_nnz >= 30000 else 1)
            return out
        except (TypeError, ValueError, AttributeError, KeyError, OverflowError):
            return None

It returns None where something does not hold; the long way then does it, or raises the error.
Element types are left to the kernel itself, which refuses others with a TypeError. It raises an
OverflowError where a result passes its index type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from codegen.runtime.signature import Kind, Parameter
from taco_py.api.operands import Given
from taco_py.api.results import ResultKind, hand_out
from taco_py.api.short import ShortCall, define, keep
from taco_py.api.tensor import Tensor
from taco_py.diagnostics.errors import InternalError
from taco_py.driver import CompiledKernel
from taco_py.interop.scipy_arrays import is_ascending, is_canonical
from taco_py.lower.bindings import Source
from taco_py.notation.checks import accesses
from taco_py.plan.nodes import Compute
from taco_py.plan.run import assembled
from taco_py.plan.work import PARALLEL, bounds
from taco_py.problem import Problem, TensorType
from taco_py.storage.tensor_data import Array, TensorData

PLAIN = 0x0101  # C-contiguous and aligned, in the flags of a NumPy array as one number
NUMBERS = (float, int, complex, bool)
MOST_WAYS = 8


def make_call(
    objects: Mapping[str, Any],
    given: Mapping[str, Given],
    step: Compute,
    kernel: CompiledKernel,
    kind: ResultKind,
    limit: int,
    prelude: Prelude,
) -> ShortCall | None:
    """A function of the operands; None where they are not taken as they are.

    limit    threads to use at most
    prelude  how its arguments become a0, a1 … in the order of `objects`
    """
    problem = step.problem
    if (kind.kind == "ndarray") != problem.result.format.is_dense or step.sources or kernel.keys:
        return None
    if not all(type(obj) in READINGS for obj in objects.values()):
        return None
    if not all(_as_it_is(obj, given[name].data) for name, obj in objects.items()):
        return None

    def finish(shape: tuple[int, ...], grown: tuple[Array, ...]) -> Any:
        return hand_out(assembled(kernel, step, shape, grown), kind)

    more: dict[str, Any] = {
        "finish": finish,
        "is_ascending": is_ascending,
        "is_canonical": is_canonical,
    }
    for place, (name, obj) in enumerate(objects.items()):
        more[f"a{place}_format"] = problem.type_of(name).format
        more[f"a{place}_type"] = type(obj)
    text = call_text(objects, step, kernel, prelude)
    return define(text, kernel.call, kernel.covers, _dtypes(objects, problem), limit, more)


def keep_call(
    key: tuple[object, ...],
    call: ShortCall,
    objects: Mapping[str, Any],
    kernel: CompiledKernel,
    limit: int | None,
) -> None:
    """Store a short way for later processes, where its text needs nothing of the compiler: of dense
    results, not of Tensors, and where no coordinates are to be looked at."""
    problem = kernel.recipe.problem
    tensors = any(isinstance(obj, Tensor) for obj in objects.values())
    if problem.result.format.is_dense and not tensors and not kernel.requirements:
        dtypes = _dtypes(objects, problem)
        keep(key, call.__doc__ or "", kernel.recipe.key, kernel.covers, dtypes, limit)


def _dtypes(objects: Mapping[str, Any], problem: Problem) -> list[str]:
    return [problem.result.dtype, *(problem.type_of(name).dtype for name in objects)]


class Ways:
    """The short ways of one kernel, at most one for operands of the same types.

    `calls` only grows, so that a thread may walk it while another one adds to it.
    """

    __slots__ = ("_types", "calls")

    def __init__(self) -> None:
        self.calls: list[ShortCall] = []
        self._types: set[frozenset[tuple[str, type]]] = set()

    def add(self, objects: Mapping[str, Any], make: Callable[[], ShortCall | None]) -> None:
        """Make a way for such operands, unless there was one."""
        types = frozenset((name, type(obj)) for name, obj in objects.items())
        if types in self._types or len(self._types) >= MOST_WAYS:
            return
        self._types.add(types)
        call = make()
        if call is not None:
            self.calls.append(call)


def _as_it_is(obj: Any, data: TensorData) -> bool:
    """Whether the kernel is given the user's own arrays."""
    if isinstance(obj, np.ndarray):
        return data.values is obj
    if isinstance(obj, Tensor):
        return data.values is obj.data.values
    if isinstance(obj, NUMBERS):
        return True
    if obj.format == "coo":
        pairs = zip(data.levels, obj.coords, strict=True)
        return data.values is obj.data and all(level.crd is crd for level, crd in pairs)
    own = data.levels[-1].pos is obj.indptr and data.levels[-1].crd is obj.indices
    return own and data.values is obj.data


# ---------------------------------------------------------------- operands taken apart


@dataclass(frozen=True, slots=True)
class Reading:
    """How the text takes the operand `a` apart.

    lines        assignments to variables, among them the sizes a_0, a_1 …
    wrong        conditions on which the long way is taken
    pos, crd     expressions for a level's arrays
    count        … for the number of entries
    ordered, canonical   … that say, where a kernel relies on it, that coordinates are in order, and
                 distinct too
    """

    lines: tuple[str, ...]
    wrong: tuple[str, ...]
    values: str
    pos: Callable[[int], str] = str
    crd: Callable[[int], str] = str
    count: str = "1"
    ordered: str = "False"
    canonical: str = "False"


def read_array(a: str, type: TensorType) -> Reading:
    """A dense array."""
    return Reading(_sizes(a, f"{a}.shape", type), (_not_dense(a, type),), a)


def read_compressed(a: str, type: TensorType) -> Reading:
    """CSR or CSC."""
    parents = type.format.mode_order[0]
    pos, crd, values, nnz = f"{a}_pos", f"{a}_crd", f"{a}_vals", f"{a}_nnz"
    return Reading(
        (
            f"{pos}, {crd}, {values} = {a}.indptr, {a}.indices, {a}.data",
            f"{nnz} = len({values})",
            *_sizes(a, f"{a}.shape", type),
        ),
        (
            _not_plain(pos, crd, values),
            f"len({pos}) != {a}_{parents} + 1",
            f"len({crd}) != {nnz}",
            f"{pos}.item(-1) != {nnz}",
        ),
        values,
        lambda level: pos,
        lambda level: crd,
        nnz,
        f"is_ascending({pos}, {crd})",
        f"is_canonical({pos}, {crd})",
    )


def read_coo(a: str, type: TensorType) -> Reading:
    """A coordinate list, whose pos array scipy does not have."""
    crds = tuple(f"{a}_crd{mode}" for mode in range(type.format.order))
    values, nnz = f"{a}_vals", f"{a}_nnz"
    return Reading(
        (
            f"{', '.join(crds)}, = {a}.coords",
            f"{values} = {a}.data",
            f"{nnz} = len({values})",
            *_sizes(a, f"{a}.shape", type),
        ),
        (_not_plain(*crds, values), *(f"len({crd}) != {nnz}" for crd in crds)),
        values,
        lambda level: f"array((0, {nnz}), {crds[0]}.dtype)",
        lambda level: crds[level],
        nnz,
    )


def read_tensor(a: str, type: TensorType) -> Reading:
    """A Tensor, whose arrays were found to fit together when it was made."""
    data, values = f"{a}_data", f"{a}_vals"
    dense = (_not_dense(values, type),) if type.format.is_dense else ()
    return Reading(
        (
            f"{data} = {a}.data",
            f"{values} = {data}.values",
            *_sizes(a, f"{data}.shape", type),
        ),
        (f"({data}.format is not {a}_format and {data}.format != {a}_format)", *dense),
        values,
        lambda level: f"{data}.levels[{level}].pos",
        lambda level: f"{data}.levels[{level}].crd",
        f"{values}.size",
        f"{data}.sorted",
        f"({data}.sorted and {data}.unique)",
    )


def read_number(a: str, type: TensorType) -> Reading:
    """A Python number, which takes the dtype of what it meets."""
    return Reading((f"{a}_vals = asarray({a}, {a}_dtype)",), (), f"{a}_vals")


READINGS: Mapping[type, Callable[[str, TensorType], Reading]] = {
    np.ndarray: read_array,
    sp.csr_array: read_compressed,
    sp.csr_matrix: read_compressed,
    sp.csc_array: read_compressed,
    sp.csc_matrix: read_compressed,
    sp.coo_array: read_coo,
    sp.coo_matrix: read_coo,
    Tensor: read_tensor,
    **dict.fromkeys(NUMBERS, read_number),
}


def _sizes(a: str, shape: str, type: TensorType) -> tuple[str, ...]:
    order = type.format.order
    return (f"{', '.join(f'{a}_{mode}' for mode in range(order))}, = {shape}",) if order else ()


def _not_plain(*arrays: str) -> str:
    return f"{' & '.join(f'{a}.flags.num' for a in arrays)} & {PLAIN} != {PLAIN}"


def _not_dense(a: str, type: TensorType) -> str:
    """That a kernel for this type cannot read a dense array."""
    modes = type.format.mode_order
    other = f"not strided({a}, {modes[-1] if modes else 0}, {type.unit_stride})"
    if modes == tuple(range(len(modes))):
        return f"({_not_plain(a)} and {other})"
    return other


# ---------------------------------------------------------------- the text


Prelude = Callable[[tuple[str, ...]], tuple[str, ...]]
"""From the operands' names to the first lines of `call`, which define a0, a1 …"""


def by_place(names: tuple[str, ...]) -> tuple[str, ...]:
    """Operands of known types as arguments."""
    return (f"def call({', '.join(f'a{place}' for place in range(len(names)))}):", "    try:")


def by_name(names: tuple[str, ...]) -> tuple[str, ...]:
    """Operands in a dict, of any types."""
    places = range(len(names))
    others = " or ".join(f"type(a{place}) is not a{place}_type" for place in places)
    return (
        "def call(operands):",
        "    try:",
        *(f"        a{place} = operands[{name!r}]" for place, name in enumerate(names)),
        f"        if len(operands) != {len(names)} or {others or False}:",
        "            return None",
    )


def call_text(
    objects: Mapping[str, Any], step: Compute, kernel: CompiledKernel, prelude: Prelude
) -> str:
    """The text of `call`."""
    variables = {name: f"a{place}" for place, name in enumerate(objects)}
    readings = {
        name: READINGS[type(obj)](variables[name], step.problem.type_of(name))
        for name, obj in objects.items()
    }
    lines = _Text(step, kernel, variables, readings).lines()
    body = [f"        {line}" for line in lines]
    last = [
        "    except (TypeError, ValueError, AttributeError, KeyError, OverflowError):",
        "        return None",
        "",
    ]
    return "\n".join((*prelude(tuple(objects)), *body, *last))


@dataclass(frozen=True, slots=True)
class _Text:
    """The parts of `call`; `variables` and `readings` are of the operands by name."""

    step: Compute
    kernel: CompiledKernel
    variables: Mapping[str, str]
    readings: Mapping[str, Reading]

    def lines(self) -> Iterator[str]:
        """The body."""
        for reading in self.readings.values():
            yield from reading.lines
        wrong = [condition for reading in self.readings.values() for condition in reading.wrong]
        wrong += [*self.sizes_disagree(), *self.disordered()]
        if wrong:
            yield "if ("
            yield "    " + "\n            or ".join(wrong)
            yield "):"
            yield "    return None"
        yield from self.run()

    def size(self, index: str) -> str:
        """The variable with the size of `index`."""
        places = {i: (tensor, mode) for i, tensor, mode in self.step.sizes}
        tensor, mode = places[index]
        return f"{self.variables[tensor]}_{mode}"

    def sizes_disagree(self) -> Iterator[str]:
        problem = self.step.problem
        pairs = dict.fromkeys(
            (f"{self.variables[access.tensor]}_{mode}", self.size(index))
            for access in accesses(problem.assignment)
            for mode, index in enumerate(access.indices)
        )
        yield from (f"{one} != {other}" for one, other in pairs if one != other)
        yield from (f"{self.size(index)} != {size}" for index, size in problem.static)

    def disordered(self) -> Iterator[str]:
        """That coordinates are not in the order which the kernel relies on."""
        for name, ordered, unique in self.kernel.requirements:
            if ordered or unique:
                reading = self.readings[name]
                yield f"not {reading.canonical if unique else reading.ordered}"

    @property
    def shape(self) -> str:
        indices = self.step.problem.assignment.target.indices
        return f"({''.join(f'{self.size(index)}, ' for index in indices)})"

    def run(self) -> Iterator[str]:
        """Make the result and call the kernel."""
        arguments = ", ".join(self.argument(p, source) for p, source in self.kernel.parameters)
        if self.step.problem.result.format.is_dense:
            yield f"out = make({self.shape}, dtype)"
            yield f"kernel({arguments})"
            yield "return out" if self.step.problem.assignment.target.indices else "return out[()]"
        else:
            yield f"return finish({self.shape}, kernel({arguments}))"

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
            return "out"
        reading = self.readings[source.tensor]
        if source.what == "values":
            return reading.values
        return {"pos": reading.pos, "crd": reading.crd}[source.what](source.level)

    def stride(self, source: Source) -> str:
        """A stride of a dense operand or of the result, in elements."""
        problem = self.step.problem
        mode = problem.type_of(source.tensor).format.mode_order[source.level]
        if source.tensor == problem.assignment.target.tensor:
            values = "out"
        else:
            values = self.readings[source.tensor].values
        return f"{values}.strides[{mode}] // {values}.itemsize"

    def work(self) -> str:
        """The number of iterations that `plan.work.bounds` says."""
        terms = (
            (*((self.readings[b.tensor].count,) if b.tensor else ()), *map(self.size, b.indices))
            for b in bounds(self.step.problem)
        )
        return " + ".join(" * ".join(factors) or "1" for factors in terms)

    def room(self, source: Source | None) -> str:
        """What `plan.room.first_room` says."""
        if source is not None and source.what == "pos":
            return "0"
        sparse = (
            reading.count
            for name, reading in self.readings.items()
            if not self.step.problem.type_of(name).format.is_dense
        )
        return " + ".join(sparse) or "0"
