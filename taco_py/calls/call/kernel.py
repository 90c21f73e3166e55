"""`compile`: a kernel to call again and again on new data of the same formats."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.device_tensor import place_of
from taco_py.arguments.operands import (
    Given,
    check_names,
    check_orders,
    check_sizes,
    give,
    informer,
    taken,
)
from taco_py.arguments.option_checks import check_static_size, check_threads, merged
from taco_py.arguments.options import CallOptions
from taco_py.arguments.result_table import TENSOR, ResultKind
from taco_py.arguments.results import hand_out, kind_for
from taco_py.arguments.semiring_mask import SemiringMask
from taco_py.calls.call.compute import rounded, task_of, told_rounding, writable, written
from taco_py.calls.call.conform import by_place_and_name, conforming, typed_number
from taco_py.calls.call.devices.placed import placed
from taco_py.calls.call.draft import Draft
from taco_py.calls.call.libraries import without_libraries
from taco_py.calls.call.over_semirings import unfilled
from taco_py.calls.call.planner_request import goal_of, planner_options
from taco_py.calls.call.prepare import Checked, Prepared
from taco_py.calls.statements.elaborate import Elaborated, without_halves_of_scipy
from taco_py.calls.statements.sequence import Statement, Statements
from taco_py.compiler.driver import CompiledKernel, compile_recipes
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.data.tensors.byte_counts import check_memory_limit
from taco_py.data.tensors.tensor import as_data, with_fill
from taco_py.data.tensors.traced_operands import taken_over, taker_of
from taco_py.language.diagnostics.errors import (
    OperandError,
    OperandTypeError,
)
from taco_py.language.formats import Format
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses, rename
from taco_py.language.notation.nodes import Assignment, Call
from taco_py.language.notation.printer import to_text
from taco_py.language.notebook.folded_report import Report
from taco_py.language.problem import TensorType
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import make_plan
from taco_py.report.explanation.kernel_roofline import kernel_roofline
from taco_py.report.explanation.plan_report import explain
from taco_py.report.explanation.plan_schedule import graphs_of, schedule_of
from taco_py.running.execute.assemble_compute import assemble, recompute
from taco_py.running.execute.run import Execution, run
from taco_py.running.replay.call_text import by_name
from taco_py.running.replay.make_call import Ways, make_call, reads_in_place

if TYPE_CHECKING:
    from taco_py.report.show.graphs import Drawing


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Kernel:
    """Compute an assignment that is compiled, for operands by name or in the order of their first
    use.

    >>> A, x = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), np.array([1.0, 2.0, 3.0])
    >>> k = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1))
    >>> k(A=A, x=x)
    array([7., 6.])
    >>> k(A, x, out=np.empty(2))
    array([7., 6.])
    """

    assignment: Assignment
    plan: Plan
    formats: Mapping[str, Format]
    types: Mapping[str, TensorType]
    kind: ResultKind
    dtype: np.dtype[Any]
    options: CallOptions
    compiled: tuple[CompiledKernel, ...]
    kernels: dict[tuple[str, str], CompiledKernel]
    begin: str = ""
    same: Mapping[str, str] = field(default_factory=dict)
    over: SemiringMask | None = None
    ways: Ways = field(default_factory=Ways)
    writing: Ways = field(default_factory=Ways)

    @property
    def source(self) -> str:
        """Return the generated C, of all kernels where there are several."""
        return "\n".join(kernel.source for kernel in self.compiled)

    @property
    def schedule(self) -> Schedule:
        """Return what ran, as commands: compiled with them, the loops are the same again.

        What the user asked for and, of a single kernel, the order of loops that was chosen and the
        loop that threads share.
        """
        return schedule_of(self.plan, self.options.schedule)

    def show(self) -> Drawing:
        """Draw what the loops derive from and what they run over.

        `print` the drawing, or `.save("k.svg")`.
        """
        from taco_py.report.show.graphs import draw

        return draw(graphs_of(self.plan))

    def export(
        self,
        folder: str | Path,
        operands: Mapping[str, Any] | None = None,
        /,
        *,
        name: str = "kernel",
        **named: Any,
    ) -> tuple[Path, ...]:
        """Write the kernel as C or CUDA files that compile by themselves, and return their paths.

            cc -O3 *.c -lm && ./a.out
            nvcc -O3 *.cu && ./a.out

        `name`.c has the function `name` (of several kernels, `name`_1.c and so on), `name`.h its
        prototype with a line about each parameter, taco_runtime.h what it needs, and main.c calls
        it on these operands, or on small ones made up, and prints the arrays of the result. Of
        kernels of a GPU, `name`.cu has the kernels, the host program that launches them, and the
        function, which takes arrays of the host; then there are main.cu and taco_cuda.h.

        folder    where the files go; exporting again overwrites what was exported there, and no
                  other file
        operands, named  what main.c calls it on, as a mapping or by name
        name      of the function and of the files

        Raises FormatError where the plan converts operands or the result, OperandError for a bad
        name, operands too large to be written into a program, or a file that would be lost,
        BoundError where none are given and no small ones can be made up that a bound of the
        schedule holds of.
        """
        from taco_py.running.export.example import example
        from taco_py.running.export.export import check_promises, export

        if not isinstance(folder, str | Path) or not str(folder):
            raise OperandError(
                f"Expected the name of a folder, found {folder!r}",
                hint='as in kernel.export("spmv")',
            )
        objects = merged(operands, named)
        if not objects:
            static, bounds = dict(self.options.static), self.schedule.bounds
            assignment = rename(self.assignment, tensors=self.same)
            types = {name: self.types[name] for name in self.formats}
            objects = example(assignment, types, static, bounds)
        given, _ = self._given(objects)
        tensors = {operand: g.data for operand, g in given.items()}
        plan = without_libraries(self.plan)
        kernels = compile_recipes(plan.recipes)
        if not (operands or named):
            check_promises(plan, tensors)
        return export(plan, kernels, tensors, Path(folder), name)

    def __reduce__(self) -> tuple[Any, ...]:
        """What to compile again: kernels are found by their recipes, functions are not stored."""
        told = (self.assignment, self.plan, self.formats, self.types, self.kind, self.dtype)
        return compile_plan, (*told, self.options, self.begin, dict(self.same), self.over)

    def __repr__(self) -> str:
        """Return the assignment, and each operand's format and dtype, in one line."""
        operands = (
            f"{name}: {str(form) or 'scalar'}/{self.types[name].element}"
            for name, form in self.formats.items()
        )
        target = self.assignment.target.tensor
        result = f"{target}: {str(self.kind.format) or 'scalar'}/{self.dtype}"
        return f"<Kernel {to_text(self.assignment)} with {', '.join((*operands, result))}>"

    def _repr_html_(self) -> str:
        """Show it in a notebook: what it computes, its loops, and its C where it is unfolded."""
        from taco_py.language.notebook.kernel_page import kernel_page

        stored = {name: (str(f), self.types[name].element) for name, f in self.formats.items()}
        stored[self.assignment.target.tensor] = (str(self.kind.format), str(self.dtype))
        facts = {"schedule": self.schedule, "target": self.options.target}
        told = (self.source, self.explain(), self.show().svg)
        return kernel_page(to_text(self.assignment), stored, facts, *told)

    def explain(self) -> str:
        """Explain the kernel: notation, iteration graph, loops, formats, workspaces, threads,
        compile time.

        `show()` draws the graphs, `schedule` has the loops as commands.
        """
        limit = self.options.threads or KERNELS.cores
        return Report(told_rounding(self.dtype) + explain(self.plan, self.compiled, limit=limit))

    def roofline(
        self,
        path: str | Path | None = None,
        operands: Mapping[str, Any] | None = None,
        /,
        **named: Any,
    ) -> Drawing:
        """Draw what the processor can do at most, and where the kernel stands below that.

        path      an SVG file to write; the drawing is returned, which `print` shows as text
        operands, named  a call with these is timed, for a few tenths of a second; without them the
                  kernel stands where it would with those that it was planned for

        The processor is measured once, for half a second, and the figures are kept beside kernels.

        Raises CompilerError where it cannot be measured, OutputError where no file can be written.
        """
        objects = merged(operands, named)
        given = self._given(objects)[0] if objects else None
        call = (lambda: self(**objects)) if objects else None
        threads = self.options.threads
        return kernel_roofline(path, self.plan, self.compiled, threads, given, call)

    def __call__(
        self,
        *operands: Any,
        out: Array | None = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        **named: Any,
    ) -> Any:
        """Compute the result for these operands: scipy's array where it is sparse and operands are
        scipy's.

        out      where a dense result is written; `y += …` begins from it, unless `y` is passed, and
                 without either from 0, `y *= …` from 1, `y min= …` from infinity
        threads  at most so many
        memory_limit  bytes that it may take at once, as in `evaluate`

        Raises as `evaluate` does, and FormatError for another format.
        """
        objects = self._named(operands, named) if operands else named
        if memory_limit is None and self.options.memory_limit is None:
            return self._found(objects, out, threads)
        with self._limit(memory_limit):
            return self._found(objects, out, threads)

    def _limit(self, limit: int | str | None = None) -> AbstractContextManager[None]:
        """Within which a call takes no more memory than it may."""
        found = check_memory_limit(limit) or self.options.memory_limit
        return nullcontext() if found is None else KERNELS.memory.within(found)

    def _found(self, objects: dict[str, Any], out: Array | None, threads: int | None) -> Any:
        """Return the result for operands by name."""
        if out is None and self.begin and self.begin not in objects:
            objects = self._from_nothing(objects)
        if out is None and threads is None:
            ways = self.ways
            for call in ways.within(objects) if KERNELS.memory.on else ways.calls:
                result = call(objects)
                if result is not None:
                    return result
        else:
            limit = check_threads(threads) or self.options.threads or KERNELS.cores
            ways = self.ways if out is None else self.writing
            for call in ways.within(objects) if KERNELS.memory.on else ways.calls:
                result = call(objects, limit) if out is None else call(objects, out, limit)
                if result is not None:
                    return result
        if (taker := taker_of(objects.values())) is not None:
            return self._noted(taker, objects, out, threads)
        return self._computed(objects, out, threads)

    def _computed(self, objects: dict[str, Any], out: Array | None, threads: int | None) -> Any:
        """Return the result for operands by name of which no call was made before."""
        objects, _ = placed(objects, self.options.target)
        place = place_of(objects.values())
        begin, objects = ("", objects) if out is None else self._begun(objects, out)
        given, sizes = self._given(objects)
        shape = self._shape(sizes)
        kind = self._kind(given)
        prepared = self._prepared(given, sizes, kind)
        target = writable(out, prepared, self.options)
        execution = self._execution(given, check_threads(threads), target, shape)
        data = rounded(run(self.plan, execution), self.dtype, out)
        if execution.fits:
            (self.ways if out is None else self.writing).note_fit(
                {name: obj for name, obj in objects.items() if name != begin}
            )
        if not execution.wide and self.options.is_native:
            self._remember(prepared, objects, out, begin)
        if out is not None:
            return written(out, data)
        return hand_out(self._scipys(data, kind), kind, place)

    def _prepared(
        self, given: Mapping[str, Given], sizes: Mapping[str, int], kind: ResultKind
    ) -> Prepared:
        """Return checked operands with the plan."""
        target = self.assignment.target.tensor
        facts = {name: each.operand for name, each in given.items()}
        facts[target] = Operand(self.plan.result, self._shape(sizes), 0.0)
        written = (self.assignment,)
        statements = Statements((Statement(self.assignment),), {target: target}, {}, ())
        made = Elaborated(written, written, {}, facts, {target: kind}, {target: self.dtype})
        shapes = {name: each.shape for name, each in facts.items()}
        checked = Checked(statements, made, given, sizes, shapes)
        return Prepared(checked, self.plan, made.kinds, self.kernels)

    def _noted(
        self, taker: Any, objects: dict[str, Any], out: Array | None, threads: int | None
    ) -> Any:
        """Leave the assignment to a trace that an operand is of."""
        over = None if self.over is None or self.over.is_usual else self.over
        told = {"out": out, "threads": threads, "semiring": over}
        read = rename(self.assignment, tensors=self.same)
        return taken_over(taker, "tp.kernel", ([read], objects, read.target.tensor), told)

    def _from_nothing(self, objects: dict[str, Any]) -> dict[str, Any]:
        """Return the operands with what `y += …` begins from where there is no `y`: what the
        operator does not change a number by. The same operands where that is sparse, or a size is
        not known."""
        value, form = self.assignment.value, self.formats[self.begin]
        shapes = {name: taken(obj, f"operand {name}").shape for name, obj in objects.items()}
        sizes: dict[str, int] = {}
        for access in accesses(self.assignment):
            sizes.update(zip(access.indices, shapes.get(access.tensor, ()), strict=False))
        indices = self.assignment.target.indices
        known = is_full(form) and all(index in sizes for index in indices)
        if not (known and isinstance(value, Call)):
            return objects
        dtype = np.dtype(self.types[self.begin].element)
        shape, nothing = tuple(sizes[index] for index in indices), value.operator.identity_of(dtype)
        return {self.begin: np.full(shape, nothing, dtype), **objects}

    def _begun(self, objects: dict[str, Any], out: Array) -> tuple[str, dict[str, Any]]:
        """Return the operand that `out` itself is, or "", and the operands with it."""
        if self.over is not None:
            self.over.refuse_out(bool(self.begin), self.assignment)
        if not self.begin or self.begin in objects:
            return "", objects
        return self.begin, {self.begin: out, **objects}

    def _scipys(self, data: TensorData, kind: ResultKind) -> TensorData:
        """Return a result for scipy, whose arrays have no fill value: what they do not store means
        it."""
        scipys = kind.kind not in (TENSOR, "ndarray")
        return with_fill(data, 0) if data.fill and scipys else data

    def _shape(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the result's."""
        return tuple(sizes[index] for index in self.assignment.target.indices)

    def _kind(self, given: Mapping[str, Given]) -> ResultKind:
        """What the result is handed out as: a sparse one as the sparse operands are."""
        if self.kind.kind == "ndarray":
            return self.kind
        kind = kind_for(self.kind.format, self.assignment, given)
        return without_halves_of_scipy(kind, self.dtype)

    def _remember(
        self, prepared: Prepared, objects: Mapping[str, Any], out: Array | None, begin: str
    ) -> None:
        """The short way for such operands, where they are read in place.

        begin  the operand that is `out` itself, or ""
        """
        given = prepared.given
        if not all(reads_in_place(obj, given[name]) for name, obj in objects.items()):
            return
        task = task_of(prepared, objects, out, begin)
        if task is not None:
            limit = self.options.threads or KERNELS.cores
            ways = self.ways if out is None else self.writing
            named = {name: obj for name, obj in objects.items() if name != begin}
            ways.add(named, task.out, lambda: make_call(task, by_name, limit)[0])

    def assemble(self, *operands: Any, threads: int | None = None, **named: Any) -> Any:
        """Make the result's structure with values of zero, for `compute`.

        operands, named  as in a call
        threads  at most so many
        """
        given, sizes = self._given(self._named(operands, named))
        execution = self._execution(given, check_threads(threads), None, self._shape(sizes))
        with self._limit():
            data = rounded(assemble(self.plan, execution), self.dtype)
        return hand_out(self._scipys(data, kind := self._kind(given)), kind)

    def compute(
        self, pattern: Any, /, *operands: Any, threads: int | None = None, **named: Any
    ) -> Any:
        """Compute the values for a structure that `assemble`, or a call, made of the same patterns.

        Nothing is assembled: coordinates are compared with those of `pattern`, and rows that are
        gathered in a workspace are read in its order, whatever that is. The result shares its index
        arrays with `pattern`, which is not modified.

        pattern  what `assemble` or a call returned
        operands, named  as in a call
        threads  at most so many

        Raises StructureError where these operands make another structure, OperandTypeError where
        `pattern` is no tensor.
        """
        given, sizes = self._given(self._named(operands, named))
        execution = self._execution(given, check_threads(threads), None, self._shape(sizes))
        with self._limit():
            data = rounded(recompute(self.plan, execution, _as_pattern(pattern)), self.dtype)
        return hand_out(self._scipys(data, kind := self._kind(given)), kind)

    def _execution(
        self,
        given: Mapping[str, Given],
        threads: int | None,
        out: Array | None,
        shape: tuple[int, ...],
    ) -> Execution:
        tensors = {name: g.data for name, g in given.items()}
        limit = threads or self.options.threads or KERNELS.cores
        known, machine = informer(given), self.plan.machine
        return Execution(tensors, limit, out, known, self.kernels, shape=shape, machine=machine)

    def _named(self, operands: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        return by_place_and_name(tuple(self.formats), operands, named)

    def _given(self, objects: Mapping[str, Any]) -> tuple[dict[str, Given], dict[str, int]]:
        check_names(rename(self.assignment, tensors=self.same), objects, ("out", "threads"))
        objects = objects if self.over is None else unfilled(objects, self.over.semiring)
        found = give({n: typed_number(n, obj, self.types[n]) for n, obj in objects.items()})
        found.update((name, found[other]) for name, other in self.same.items())
        given = {
            name: conforming(name, g, self.types[name], self.formats[self.same.get(name, name)])
            for name, g in found.items()
        }
        shapes = {name: g.data.shape for name, g in given.items()}
        check_orders(self.assignment, shapes)
        sizes = check_sizes(self.assignment, shapes)
        for index, size in self.options.static:
            check_static_size(index, size, sizes)
        return given, sizes


def _as_pattern(pattern: Any) -> TensorData:
    try:
        return as_data(pattern)
    except OperandTypeError:
        raise OperandTypeError(
            f"Expected a pattern as assemble() makes it, found {type(pattern).__name__}",
            hint="the pattern comes first: kernel.compute(pattern, A=A, …)",
        ) from None


def compile_draft(drafted: Draft, options: CallOptions) -> Kernel:
    """Return the kernel of an assignment over operands of known formats."""
    request = replace(goal_of(options, drafted.request.type), static=drafted.request.static)
    asked = planner_options(options, compiled=True)
    plan = make_plan(drafted.assignment, drafted.operands, request, asked)
    plan = replace(plan, sizes=drafted.size_note)
    return compile_plan(
        drafted.assignment,
        plan,
        drafted.formats,
        drafted.types,
        drafted.kind,
        drafted.dtype,
        options,
        drafted.begin,
        dict(drafted.same),
        drafted.over,
    )


def compile_plan(
    assignment: Assignment,
    plan: Plan,
    formats: Mapping[str, Format],
    types: Mapping[str, TensorType],
    kind: ResultKind,
    dtype: np.dtype[Any],
    options: CallOptions,
    begin: str,
    same: Mapping[str, str],
    over: SemiringMask | None = None,
) -> Kernel:
    """Return a plan as what can be called: all its kernels compiled, or found where they are
    already."""
    steps = plan.kernels
    compiled = compile_recipes(plan.recipes)
    kernels = {(s.target, "evaluate"): k for s, k in zip(steps, compiled, strict=True)}
    told = (assignment, plan, formats, types, kind, dtype, options)
    return Kernel(*told, compiled, kernels, begin, same, over)
