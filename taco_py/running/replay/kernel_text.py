"""The lines of a short way that call one kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from codegen.records import dataclass
from codegen.runtime.memory.free_memory import TRUSTED
from codegen.runtime.signature import Kind, Parameter
from taco_py.compiler.driver import CompiledKernel
from taco_py.compiler.lower.bindings import Source
from taco_py.data.storage.borrow import BFLOAT16
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.checks import accesses
from taco_py.planner.ir.nodes import KernelStep
from taco_py.running.execute.assemble_result import assembly, known_order
from taco_py.running.execute.guard import Factor, Meeting, entry_bytes, least_terms
from taco_py.running.execute.result_places import KernelArray
from taco_py.running.execute.work import bounds_of_kernel
from taco_py.running.replay.calls_together import KernelCall
from taco_py.running.replay.helpers import Helper
from taco_py.running.replay.operand_text import Reading, read_data
from taco_py.running.replay.state import CallState, Place, says_order, sizes_disagree, tuple_text
from taco_py.running.replay.taken_again import NewArray

PLAIN = 0x0101  # C-contiguous and aligned, in the flags of a NumPy array as one number
ALIGNED = 0x0100
INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class KernelText:
    """The text of one kernel's call, whose result is called t and its `number`."""

    state: CallState
    step: KernelStep
    kernel: CompiledKernel
    number: int
    last: bool

    def lines(self) -> Iterator[str]:
        """Look at the operands, make the result, call."""
        problem = self.step.problem
        uses = accesses(problem.assignment)
        sizes = {index: self.size(index) for index, _, _ in self.step.sizes}
        wrong = list(sizes_disagree(((a, self.reading(a.tensor).sizes) for a in uses), sizes))
        wrong += [f"{sizes[index]} != {size}" for index, size in problem.static if index in sizes]
        for indices in self.kernel.keys:
            wrong.append(f"{' * '.join(sizes[i] for i in indices)} > {INT64_MAX}")
        yield from self.state.give_up(wrong)
        yield from self.put_in_order()
        yield from self.side_results()
        if problem.result.format.is_dense:
            yield from self.dense()
        else:
            yield from self.sparse()

    @property
    def name(self) -> str:
        return f"t{self.number}"

    @property
    def sizes(self) -> tuple[str, ...]:
        """Return the text of the sizes of the result's modes."""
        return tuple(self.size(i) for i in self.step.problem.assignment.target.indices)

    def reading(self, operand: str) -> Reading:
        """Return the text that reads one of the kernel's operands."""
        return self.state.readings[self.step.source(operand)]

    def size(self, index: str) -> str:
        """Return the variable with the size of `index`."""
        places = {i: (operand, mode) for i, operand, mode in self.step.sizes}
        operand, mode = places[index]
        return self.reading(operand).sizes[mode]

    def put_in_order(self) -> Iterator[str]:
        """Return the text that sorts copies of unordered operands for the kernel."""
        for operand, ordered, unique in self.kernel.requirements:
            reading = self.reading(operand)
            if not says_order(reading, ordered, unique):
                yield f"{reading.data} = in_order({reading.data}, {ordered}, {unique})"
                yield f"{reading.values} = {reading.data}.values"

    def side_results(self) -> Iterator[str]:
        """Yield the texts that allocate the kernel's side results."""
        for number, side in enumerate(self.step.problem.side):
            name = f"{self.name}_side{number}"
            self.state.more[f"new_{name}"] = Helper(
                "taco_py.running.execute.new_array:new_array",
                {
                    "order": side.type.format.mode_order,
                    "dtype": side.type.dtype,
                    "covered": side.covered,
                },
            )
            sizes = tuple(map(self.size, side.target.indices))
            shape = tuple_text(sizes)
            new = f"new_{name}({shape})"
            if (placed := self.placed(number)) is not None:
                yield from self.in_place(*placed, name, shape, side.covered, new)
            else:
                yield f"{name} = {new}"
            self.state.side[self.step.target, number] = (name, sizes)

    def placed(self, number: int | None) -> tuple[str, Place] | None:
        """Return the result that an array of the kernel is, and where it may be written.

        number  of a side result, None for the kernel's own
        """
        array = KernelArray(self.step.target, number)
        places = self.state.task.placed.items()
        return next(((result, p) for result, p in places if p.array == array), None)

    def result_array(self, tensor: str) -> str:
        """Return the array of the kernel's result or of a side result; "" for an operand."""
        names = [self.step.problem.assignment.target.tensor]
        names += [side.target.tensor for side in self.step.problem.side]
        arrays = [self.name, *(f"{self.name}_side{n}" for n in range(len(names) - 1))]
        return dict(zip(names, arrays, strict=True)).get(tensor, "")

    def arguments(self) -> str:
        return ", ".join(self.argument(p, source) for p, source in self.kernel.parameters)

    def dense(self) -> Iterator[str]:
        """Yield a result in an array, `out` itself if that may be."""
        t, n, type = self.name, self.number, self.step.problem.result
        order = type.format.mode_order
        shape = tuple_text(self.sizes)
        if order == tuple(range(len(order))):
            new = f"make{n}({shape}, dtype{n})"
        else:
            self.state.more[f"new{n}"] = Helper(
                "taco_py.running.execute.new_array:new_array",
                {"order": order, "dtype": type.dtype, "covered": self.kernel.covers},
            )
            new = f"new{n}({shape})"
        if self.last and self.state.task.direct:
            usual = (f"out.flags.num & {PLAIN} == {PLAIN}", *self.state.out_apart())
            yield f"if {' and '.join(usual)}:"
            fused = f".reshape({shape})" if self.state.fused_shape() else ""
            yield f"    {t} = out{fused}"
            if not self.kernel.covers:
                yield f"    {t}.fill(0)"
            yield "else:"
            yield f"    {t} = {new}"
        elif (placed := self.placed(None)) is not None:
            yield from self.in_place(*placed, t, shape, self.kernel.covers, new)
        else:
            line = f"{t} = {new}"
            self.note_array(line)
            yield line
            yield from self.guarded()
        yield self.call()
        data = f"from_numpy({t})"
        if self.state.task.kind_of(self.step.target) not in ("", "ndarray"):
            self.state.more[f"stored{n}"] = Helper(
                "taco_py.data.storage.tensor_data:dense_data", {"format": type.format}
            )
            data = f"stored{n}({t})"
        reading = Reading((), (), t, self.sizes, arrays=t, data=data)
        self.state.readings[self.step.target] = reading

    def in_place(
        self, result: str, place: Place, array: str, shape: str, covered: bool, new: str
    ) -> Iterator[str]:
        """Yield the lines that take an array of the call, or a part of one, for a kernel's."""
        place_variable = f"{array}_place"
        self.state.more["with_fewer_modes"] = Helper(
            "taco_py.running.execute.shown_array:with_fewer_modes"
        )
        neighbours = (
            (f"{place_variable}.strides[-1] == {place_variable}.itemsize",) if shape != "()" else ()
        )
        flags = ALIGNED if place.strided else PLAIN
        usual = (
            f"{place_variable} is not None",
            f"{place_variable}.flags.num & {flags} == {flags}",
            *neighbours,
            *self.state.out_apart(place.out),
        )
        yield f"{place_variable} = with_fewer_modes({place.out}, {shape})"
        yield f"if {' and '.join(usual)}:"
        yield f"    {array} = {place_variable}"
        if not covered:
            yield f"    {array}.fill(0)"
        yield "else:"
        yield f"    {array} = {new}"
        self.state.place_variables[result] = array, place_variable

    def call(self) -> str:
        """Return the line that calls the kernel, which is noted where others may run beside it."""
        line = f"kernel{self.number}({self.arguments()})"
        kinds = [parameter.kind for parameter, _ in self.kernel.parameters]
        if self.kernel.is_native and not self.kernel.routine and Kind.GROWING not in kinds:
            alone = ", ".join(
                "1" if p.counts_threads else self.argument(p, source)
                for p, source in self.kernel.parameters
            )
            self.state.calls[self.number] = KernelCall(
                self.number, line, alone, self.work(), Kind.THREADS in kinds
            )
        return line

    def note_array(self, line: str) -> None:
        """Note the line that makes the result's array, where it may be one that is free again; what
        users get and kernels do not write whole is cleared by the system as it is met."""
        type, target = self.step.problem.result, self.step.target
        if self.kernel.covers or not self.state.task.kind_of(target):
            key = (self.sizes, type.dtype, type.format.mode_order)
            self.state.new[target] = NewArray(self.name, line, key, not self.kernel.covers)

    def sparse(self) -> Iterator[str]:
        """Yield a result in arrays that the kernel grows."""
        t, n = self.name, self.number
        self.state.more[f"assemble{n}"] = Helper(
            "taco_py.data.storage.grown:of_grown", assembly(self.kernel, self.step)
        )
        yield from self.room_for_product()
        grown = f"kernel{n}({self.arguments()})"
        if any(self.says_in_order(name) not in ("", "True") for name in self.kernel.checked):
            yield "try:"
            yield f"    grown{n} = {grown}"
            yield "except ValueError:"
            yield "    return None"
            grown = f"grown{n}"
        assembled = f"assemble{n}({tuple_text(self.sizes)}, {grown})"
        type = self.state.task.type_of(self.step.target)
        ordered, unique = known_order(self.kernel, self.step)
        reading = replace(
            read_data(t, type, assembled),
            ordered="True" if ordered else "",
            canonical="True" if ordered and unique else "",
        )
        self.state.readings[self.step.target] = reading
        yield from reading.lines

    def guarded(self) -> Iterator[str]:
        """See whether there is room for the last result, which NumPy makes without touching it."""
        if self.state.task.kind_of(self.step.target) and not self.kernel.covers:
            yield f"if {self.name}.nbytes > {TRUSTED}:"
            yield f"    require({self.name}.nbytes)"

    def room_for_product(self) -> Iterator[str]:
        """Return the check that a product without a common index fits in memory.

        Other results are not much larger than what is there, or of a size that nobody knows.
        """
        problem = self.step.problem
        for term in least_terms(problem):
            if len(term) > 1 or isinstance(term[0], Meeting):
                single = [self.size(part.index) for part in term if isinstance(part, Meeting)]
                least = " * ".join(map(self.least, term)) + f" * {entry_bytes(problem.result)}"
                yield f"if {''.join(f'{size} == 1 and ' for size in single)}{least} > {TRUSTED}:"
                yield f"    require({least})"

    def least(self, part: Factor | Meeting) -> str:
        """Return the number of entries that `guard.Factor` says, or `guard.Meeting` for a size of
        1."""
        if isinstance(part, Meeting):
            return f"{self.least(part.one)} * {self.least(part.other)}"
        sizes = " * ".join(map(self.size, part.sizes))
        if not part.operand:
            return sizes
        count = self.reading(part.operand).count
        return f"-(-{count} // max(1, {sizes}))" if sizes else count

    def argument(self, parameter: Parameter, source: Source | None) -> str:
        """Return the expression for one parameter of the kernel."""
        if parameter.counts_threads:
            if self.step.schedule.threads is not None:
                return f"min(threads, {self.step.schedule.threads})"
            least = self.state.task.plan.machine.units.parallel_iterations
            return f"threads if {self.work()} >= {least} else 1"
        if parameter.grows:
            return self.room(source)
        if source is None:
            raise InternalError(f"Nothing is known of the kernel parameter {parameter.name}")
        if source.what == "size":
            return self.size(source.index)
        if source.what == "stride":
            return self.stride(source)
        if source.what == "check":
            return "0" if self.says_in_order(source.tensor) in ("", "True") else "1"
        if result := self.result_array(source.tensor):
            return result
        reading = self.reading(source.tensor)
        if source.what == "values":
            half = self.step.problem.type_of(source.tensor).element == BFLOAT16
            return f"{reading.values}.view(uint16)" if half else reading.values
        return {"pos": reading.pos, "crd": reading.crd}[source.what](source.level)

    def says_in_order(self, operand: str) -> str:
        """Return the expression for whether an operand's coordinates are as the kernel needs them.

        "" where they have been put so.
        """
        requirements = {name: rest for name, *rest in self.kernel.requirements}
        ordered, unique = requirements[operand]
        return says_order(self.reading(operand), ordered, unique)

    def stride(self, source: Source) -> str:
        """Return a stride of a dense operand or of the result, in elements."""
        problem = self.step.problem
        mode = problem.type_of(source.tensor).format.mode_order[source.level]
        values = self.result_array(source.tensor) or self.reading(source.tensor).values
        return f"{values}.strides[{mode}] // {values}.itemsize"

    def work(self) -> str:
        """Return the number of iterations that `execute.work.bounds_of_kernel` says."""
        terms = (
            (*((self.reading(b.tensor).count,) if b.tensor else ()), *map(self.size, b.indices))
            for b in bounds_of_kernel(self.step)
        )
        return " + ".join(" * ".join(factors) or "1" for factors in terms)

    def room(self, source: Source | None) -> str:
        """Return the text of the check in `execute.first_allocation.first_room`."""
        if source is not None and source.what == "pos":
            return "0"
        problem = self.step.problem
        sparse = [name for name, type in problem.operands if not type.format.is_dense]
        return " + ".join(self.reading(name).count for name in sparse) or "0"
