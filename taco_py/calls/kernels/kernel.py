"""`compile`: a kernel to call again and again on new data of the same formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.device_tensor import place_of
from taco_py.arguments.operands import (
    BoundOperand,
    bind_operands,
    check_given,
    check_orders,
    check_sizes,
    read_operand,
)
from taco_py.arguments.option_checks import check_static_size, check_threads, merged
from taco_py.arguments.options import CallOptions
from taco_py.arguments.result_table import ARRAY, TENSOR, ResultKind
from taco_py.arguments.results import container
from taco_py.arguments.semiring_mask import SemiringMask
from taco_py.calls.call.devices.placed import placed
from taco_py.calls.call.explain_call import rounding_lines, with_results
from taco_py.calls.call.fast_paths import task_of
from taco_py.calls.call.libraries import without_libraries
from taco_py.calls.call.outputs import hand_out_results, rounded, run_outputs, writable_out
from taco_py.calls.call.planner_request import goal_of, planner_options
from taco_py.calls.call.prepare import Checked, Prepared, start
from taco_py.calls.call.requested_outputs import RequestedOutputs, by_output
from taco_py.calls.call.semirings.over_semirings import unfilled
from taco_py.calls.call.statement_commands import commands_of, with_commands_of_one
from taco_py.calls.kernels.conform import by_place_and_name, conforming, typed_number
from taco_py.calls.kernels.draft import MASK, Draft
from taco_py.calls.kernels.front import Front
from taco_py.calls.statements.elaborate import Elaborated, kinds_of, without_halves_of_scipy
from taco_py.calls.statements.sequence import Statements
from taco_py.compiler.driver import CompiledKernel, compile_recipes
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import Array, TensorData, on_host
from taco_py.data.tensors.byte_counts import check_memory_limit
from taco_py.data.tensors.tensor import as_data, with_fill
from taco_py.data.tensors.traced_operands import taken_over, taker_of
from taco_py.language.diagnostics.errors import OperandError, OperandTypeError
from taco_py.language.formats import Format
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.dtypes import DType
from taco_py.language.notation.nodes import Assignment, Call
from taco_py.language.notation.printer import to_text
from taco_py.language.notebook.folded_report import Report
from taco_py.language.problem import TensorType
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import make_plan
from taco_py.planner.statements import plan_statements
from taco_py.report.explanation.kernel_roofline import kernel_roofline
from taco_py.report.explanation.plan_report import explain
from taco_py.report.explanation.plan_schedule import graphs_of, schedule_of
from taco_py.running.execute.assemble_compute import assemble, recompute
from taco_py.running.execute.run import Execution
from taco_py.running.replay.call_text import by_name
from taco_py.running.replay.make_call import Ways, make_call, reads_in_place

if TYPE_CHECKING:
    from taco_py.report.show.graphs import Drawing

OPTIONS = ("out", "threads")
"""The keywords of calls, which cannot be the names of operands there."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Kernel:
    """Compute statements that are compiled, for operands by name or in the order of their first
    use.

    >>> A, x = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), np.array([1.0, 2.0, 3.0])
    >>> k = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1))
    >>> k(A=A, x=x)
    array([7., 6.])
    >>> k(A, x, out=np.empty(2))
    array([7., 6.])
    >>> text = "m[i] = A[i,j] * x[j]; s = m[i] * m[i]"
    >>> tp.compile(text, A=tp.CSR, x=tp.dense(1), outputs=("m", "s"))(A, x)
    (array([7., 6.]), np.float64(85.0))
    """

    statements: Statements
    elaborated: Elaborated
    plan: Plan
    formats: Mapping[str, Format]
    types: Mapping[str, TensorType]
    requested: RequestedOutputs
    options: CallOptions
    compiled: tuple[CompiledKernel, ...]
    kernels: dict[tuple[str, str], CompiledKernel]
    over: SemiringMask | None = None
    accumulates: frozenset[str] = frozenset()
    front: Front | None = None
    ways: Ways = field(default_factory=Ways)
    writing: Ways = field(default_factory=Ways)

    @property
    def assignment(self) -> Assignment:
        """Return the last assignment, over numbers."""
        return self.elaborated.assignments[-1]

    @property
    def kind(self) -> ResultKind:
        """Return how the last result is stored, and handed out for Tensors."""
        return self.elaborated.kinds[self.assignment.target.tensor]

    @property
    def dtype(self) -> DType:
        """Return the dtype of the last result."""
        return self.elaborated.dtypes[self.assignment.target.tensor]

    @property
    def source(self) -> str:
        """Return the generated C, of all kernels where there are several."""
        if self.front is not None:
            return "\n".join(kernel.source for kernel in self.front.kernels)
        return "\n".join(kernel.source for kernel in self.compiled)

    @property
    def schedule(self) -> Schedule:
        """Return the commands of the schedule; compiled with them, the loops are the same again.

        What the user asked for and, of a single kernel, the order of loops that was chosen and the
        loop that threads share.
        """
        return schedule_of(self.plan, self.options.schedule)

    def show(self) -> Drawing:
        """Draw the provenance of the loops and the levels that they run over.

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
        it on these operands, or on small ones made up, and prints the arrays of the results. Of
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
        if self.front is not None and objects:
            kernel, objects = self.front.plain(objects)
            paths: tuple[Path, ...] = kernel.export(folder, objects, name=name)
            return paths
        if not objects:
            static, bounds = dict(self.options.static), self.schedule.bounds
            types = {name: self.types[name] for name in self.formats}
            objects = example(self.statements.assignments, types, static, bounds)
        tensors = {operand: g.data for operand, g in self._prepared(objects).operands.items()}
        plan = without_libraries(self.plan)
        kernels = compile_recipes(plan.recipes)
        if not (operands or named):
            check_promises(plan, tensors)
        return export(plan, kernels, tensors, Path(folder), name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the recipe of the kernel, by which it is compiled again; functions are not
        stored."""
        if self.front is not None:
            return self.front.recipe
        fields = (self.statements, self.elaborated, self.plan, self.formats, self.types)
        return compile_plan, (*fields, self.requested, self.options, self.over)

    def __repr__(self) -> str:
        """Return the statements, and each operand's and result's format and dtype, in one line."""
        stored = {**self._stored_operands, **self._stored_results}
        parts = (f"{name}: {form or 'scalar'}/{dtype}" for name, (form, dtype) in stored.items())
        return f"<Kernel {self._text} with {', '.join(parts)}>"

    @property
    def _text(self) -> str:
        """Return the statements as text: those that are planned, or those that operands are made
        for."""
        if self.front is not None:
            return "; ".join(to_text(statement.assignment) for statement in self.front.read)
        if len(self.statements.steps) == 1:
            return to_text(self.assignment)
        return "; ".join(to_text(assignment) for assignment in self.statements.assignments)

    @property
    def _stored_operands(self) -> Mapping[str, tuple[str, str]]:
        """Return the format and the dtype of each operand."""
        if self.front is not None:
            return self.front.stored
        return {n: (str(f), self.types[n].element) for n, f in self.formats.items()}

    @property
    def _stored_results(self) -> dict[str, tuple[str, str]]:
        """Return the format and the dtype of each result."""
        elaborated, targets = self.elaborated, self.statements.outputs
        if len(self.statements.steps) == 1:
            targets = {target: target for target in targets.values()}
        return {
            name: (str(elaborated.kinds[target].format), str(elaborated.dtypes[target]))
            for name, target in targets.items()
        }

    def _repr_html_(self) -> str:
        """Show it in a notebook: what it computes, its loops, and its C where it is unfolded."""
        from taco_py.language.notebook.kernel_page import kernel_page

        stored = {**self._stored_operands, **self._stored_results}
        facts = {"schedule": self.schedule, "target": self.options.target}
        page = (self.source, self.explain(), self.show().svg)
        return kernel_page(self._text, stored, facts, *page)

    def explain(self) -> str:
        """Explain the kernel: notation, iteration graph, loops, formats, workspaces, threads,
        compile time.

        `show()` draws the graphs, `schedule` has the loops as commands.
        """
        limit, outputs = self.options.threads or KERNELS.cores, self.statements.outputs
        report = explain(self.plan, self.compiled, limit=limit)
        if len(self.statements.steps) > 1 or not self.requested.alone:
            report = with_results(report, self.statements, self.elaborated, self.plan)
        types = {name: self.elaborated.dtypes[target] for name, target in outputs.items()}
        notes = () if self.front is None else self.front.notes
        lines = (f"{'' if at else 'reads':10}{note}" for at, note in enumerate(notes))
        return Report("\n".join((*lines, rounding_lines(types) + report)))

    def roofline(
        self,
        path: str | Path | None = None,
        operands: Mapping[str, Any] | None = None,
        /,
        **named: Any,
    ) -> Drawing:
        """Draw the roofline of the processor, and the kernel below it.

        path      an SVG file to write; the drawing is returned, which `print` shows as text
        operands, named  a call with these is timed, for a few tenths of a second; without them the
                  kernel stands where it would with those that it was planned for

        The processor is measured once, for half a second, and the figures are kept beside kernels.

        Raises CompilerError where it cannot be measured, OutputError where no file can be written.
        """
        objects = merged(operands, named)
        if self.front is not None and objects:
            kernel, objects = self.front.plain(objects)
            drawing: Drawing = kernel.roofline(path, objects)
            return drawing
        bound = self._prepared(objects).operands if objects else None
        call = (lambda: self(**objects)) if objects else None
        threads = self.options.threads
        return kernel_roofline(path, self.plan, self.compiled, threads, bound, call)

    def __call__(
        self,
        *operands: Any,
        out: Any = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        **named: Any,
    ) -> Any:
        """Compute the outputs for these operands, a tuple where several were asked for.

        A sparse result is scipy's array where operands are scipy's.

        out      where a dense result is written, or such arrays by name: under a mask, where that
                 allows it, unless `replace=True`; `y += …` begins from it, unless `y` is passed,
                 and without either from 0, `y *= …` from 1, `y min= …` from infinity
        threads  at most so many
        memory_limit  bytes that it may take at once, as in `evaluate`

        Raises as `evaluate` does, and FormatError for another format.
        """
        objects = self._bind_names(operands, named) if operands else named
        if self.front is not None:
            options = {"threads": threads, "memory_limit": memory_limit}
            return self.front.call(objects, out, options)
        if memory_limit is None and self.options.memory_limit is None:
            return self._result(objects, out, threads)
        with self._limit(memory_limit):
            return self._result(objects, out, threads)

    def _limit(self, limit: int | str | None = None) -> AbstractContextManager[None]:
        """Return the context within which a call takes no more memory than it may."""
        most = check_memory_limit(limit) or self.options.memory_limit
        return nullcontext() if most is None else KERNELS.memory.restricted_to(most)

    def _result(self, objects: dict[str, Any], out: Any, threads: int | None) -> Any:
        """Return the outputs for operands by name."""
        if not self.accumulates <= objects.keys():
            objects = self._from_identity(objects, out)
        if out is None and threads is None:
            ways = self.ways
            for call in ways.known_to_fit(objects) if KERNELS.memory.on else ways.calls:
                result = call(objects)
                if result is not None:
                    return result
            outs: Mapping[str, Array] = {}
        else:
            outs = by_output("out", out, self.requested.outputs, self.requested.outputs)
            arrays = tuple(outs[name] for name in self.requested.outputs if name in outs)
            limit = check_threads(threads) or self.options.threads or KERNELS.cores
            ways = self.writing if outs else self.ways
            for call in ways.known_to_fit(objects) if KERNELS.memory.on else ways.calls:
                result = call(objects, *arrays, limit)
                if result is not None:
                    return result
        if (taker := taker_of(objects.values())) is not None:
            return self._noted(taker, objects, out, threads)
        return self._computed(objects, outs, threads)

    def _computed(
        self, objects: dict[str, Any], outs: Mapping[str, Array], threads: int | None
    ) -> Any:
        """Return the outputs for operands by name of which no call was made before."""
        objects, _ = placed(objects, self.options.target)
        place = place_of(objects.values())
        requested = replace(self.requested, outs=outs)
        accumulators = {n: o for n, o in outs.items() if n in self.formats and n not in objects}
        objects = {**accumulators, **objects}
        prepared = self._prepared(objects)
        array = writable_out(prepared, requested, self.options)
        if outs and self.over is not None and self.over.keeps(bool(self.accumulates)):
            return self._merged(prepared, outs, threads, self.over)
        execution = self._execution(prepared, threads, array)
        results = run_outputs(prepared, execution, outs)
        ways = self.writing if outs else self.ways
        if execution.fits:
            ways.note_fit({name: obj for name, obj in objects.items() if name not in accumulators})
        if not execution.wide and self.options.is_native:
            self._remember(prepared, objects, requested, accumulators)
        results = {name: self._of_scipy(data, prepared, name) for name, data in results.items()}
        return hand_out_results(results, prepared, requested, (), "" if outs else place)

    def _merged(
        self,
        prepared: Prepared,
        outs: Mapping[str, Array],
        threads: int | None,
        over: SemiringMask,
    ) -> Any:
        """Return `out` with the result where the mask allows it."""
        results = run_outputs(prepared, self._execution(prepared, threads), {})
        (out,), (data,) = outs.values(), results.values()
        merged = over.merged(out, on_host(data).values, on_host(prepared.operands[MASK].data))
        return merged if self.requested.alone else (merged,)

    def _noted(self, taker: Any, objects: dict[str, Any], out: Any, threads: int | None) -> Any:
        """Leave the statements to a trace that an operand is of."""
        over = None if self.over is None or self.over.is_usual else self.over
        said = {"out": out, "threads": threads, "semiring": over}
        targets = [self.statements.outputs[name] for name in self.requested.outputs]
        results = targets[0] if self.requested.alone else targets
        return taken_over(taker, "tp.kernel", (self.statements.assignments, objects, results), said)

    def _from_identity(self, objects: dict[str, Any], out: Any) -> dict[str, Any]:
        """Return the operands, with the identity of the operator for a missing `y` of `y += …`.

        They stay as they are where `y` is sparse, or a size is not known.
        """
        outs = out if isinstance(out, Mapping) else {} if out is None else self.formats
        steps, operands = self.statements.steps, dict(objects)
        missing = self.accumulates - {*objects, *outs}
        if not missing:
            return operands
        shapes = {n: read_operand(obj, f"operand {n}").shape for n, obj in objects.items()}
        for step in steps:
            name, assignment = step.accumulator, step.assignment
            sizes: dict[str, int] = {}
            for access in accesses(assignment):
                sizes.update(zip(access.indices, shapes.get(access.tensor, ()), strict=False))
            indices, value = assignment.target.indices, assignment.value
            if not all(index in sizes for index in indices):
                continue
            shapes[step.target] = shape = tuple(sizes[index] for index in indices)
            if name in missing and is_full(self.formats[name]) and isinstance(value, Call):
                dtype = np.dtype(self.types[name].element)
                identity = value.operator.identity_of(dtype)
                operands = {name: np.full(shape, identity, dtype), **operands}
        return operands

    def _of_scipy(self, data: TensorData, prepared: Prepared, name: str) -> TensorData:
        """Return a result for scipy, whose arrays have no fill value: what they do not store means
        it."""
        kind = prepared.kinds[prepared.outputs[name]].kind
        return with_fill(data, 0) if data.fill and kind not in (TENSOR, ARRAY) else data

    def _remember(
        self,
        prepared: Prepared,
        objects: Mapping[str, Any],
        requested: RequestedOutputs,
        accumulators: Mapping[str, Any],
    ) -> None:
        """Remember the fast path for such operands, where they are read in place."""
        bound = prepared.operands
        if not all(reads_in_place(obj, bound[name]) for name, obj in objects.items()):
            return
        outs = requested.outs
        task = task_of(prepared, objects, outs, accumulators, (), requested.alone)
        if task is not None:
            limit = self.options.threads or KERNELS.cores
            ways = self.writing if outs else self.ways
            inputs = {name: obj for name, obj in objects.items() if name not in accumulators}
            types = tuple((name, out.dtype) for name, out in outs.items())
            ways.add(inputs, types, lambda: make_call(task, by_name, limit)[0])

    def assemble(self, *operands: Any, threads: int | None = None, **named: Any) -> Any:
        """Make the structure of the results with values of zero, for `compute`.

        operands, named  as in a call
        threads  at most so many
        """
        objects = self._bind_names(operands, named)
        if self.front is not None:
            kernel, objects = self.front.plain(objects)
            return kernel.assemble(threads=threads, **objects)
        prepared = self._prepared(objects)
        execution = self._execution(prepared, threads)
        with self._limit():
            results = assemble(self.plan, execution)
        return self._handed_out(results, prepared)

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
        objects = self._bind_names(operands, named)
        if self.front is not None:
            kernel, objects = self.front.plain(objects)
            return kernel.compute(pattern, threads=threads, **objects)
        prepared = self._prepared(objects)
        execution = self._execution(prepared, threads)
        patterns = _as_patterns(pattern, self.plan.program.results, self.requested)
        with self._limit():
            results = recompute(self.plan, execution, patterns)
        return self._handed_out(results, prepared)

    def _handed_out(self, assembled: Mapping[str, TensorData], prepared: Prepared) -> Any:
        """Return assembled or computed results as the user's objects."""
        results = {}
        for (name, target), data in zip(prepared.outputs.items(), assembled.values(), strict=True):
            data = rounded(data, prepared.dtype_of(target))
            results[name] = self._of_scipy(data, prepared, name)
        return hand_out_results(results, prepared, replace(self.requested, outs={}))

    def _execution(
        self, prepared: Prepared, threads: int | None, out: Array | None = None
    ) -> Execution:
        """Return an execution of the plan with at most so many threads."""
        limit = check_threads(threads) or self.options.threads
        return start(prepared, replace(self.options, threads=limit), out)

    def _bind_names(self, operands: tuple[Any, ...], keywords: Mapping[str, Any]) -> dict[str, Any]:
        """Return the operands of a call by name."""
        return by_place_and_name(tuple(self._stored_operands), operands, keywords)

    def _prepared(self, objects: Mapping[str, Any]) -> Prepared:
        """Return the operands checked, as the plan takes them."""
        elaborated = self.elaborated
        uses = (access for step in self.statements.assignments for access in accesses(step))
        read = [access for access in uses if access.tensor in self.formats]
        check_given(read, tuple(self.formats), objects, OPTIONS)
        objects = objects if self.over is None else unfilled(objects, self.over.semiring)
        passed = bind_operands(
            {n: typed_number(n, obj, self.types[n]) for n, obj in objects.items()}
        )
        sources = {name: name for name in self.formats}
        sources |= {alias: read.source for alias, read in elaborated.reads.items()}
        bound: dict[str, BoundOperand] = {
            name: conforming(name, passed[source], self.types[name], self.formats[source])
            for name, source in sources.items()
        }
        shapes = {name: tuple(g.data.shape) for name, g in bound.items()}
        sizes: dict[str, int] = {}
        for assignment in elaborated.source_assignments:
            check_orders(assignment, shapes)
            sizes = check_sizes(assignment, shapes)
            for index, size in self.options.static:
                if index in sizes:
                    check_static_size(index, size, sizes)
            shapes[assignment.target.tensor] = tuple(sizes[i] for i in assignment.target.indices)
        operands = {
            name: replace(facts, shape=shapes.get(name, facts.shape))
            for name, facts in elaborated.operands.items()
        }
        kinds = self._kinds({name: container(g) for name, g in bound.items()})
        elaborated = replace(elaborated, operands=operands, kinds=kinds)
        checked = Checked(self.statements, elaborated, bound, sizes, shapes)
        return Prepared(checked, self.plan, kinds, self.kernels)

    def _kinds(self, containers: Mapping[str, str]) -> dict[str, ResultKind]:
        """Return how results are handed out: sparse ones as the sparse operands are."""
        elaborated = self.elaborated
        kinds = kinds_of(elaborated.assignments, elaborated.types, containers)
        return {
            name: kind
            if kind.kind == ARRAY
            else without_halves_of_scipy(kinds[name], elaborated.dtypes[name])
            for name, kind in elaborated.kinds.items()
        }


def _as_patterns(
    pattern: Any, targets: Sequence[str], requested: RequestedOutputs
) -> dict[str, TensorData]:
    """Return the pattern of each result of a plan."""
    patterns = (pattern,) if requested.alone else pattern
    if not isinstance(patterns, tuple) or len(patterns) != len(targets):
        raise OperandTypeError(
            f"Expected {len(targets)} patterns as assemble() makes them, found "
            f"{type(pattern).__name__}",
            hint="the patterns come first: kernel.compute((B, C), A=A, …)",
        )
    return {name: _as_pattern(result) for name, result in zip(targets, patterns, strict=True)}


def _as_pattern(pattern: Any) -> TensorData:
    """Return the arrays of a pattern. Raises OperandTypeError."""
    try:
        return as_data(pattern)
    except OperandTypeError:
        raise OperandTypeError(
            f"Expected a pattern as assemble() makes it, found {type(pattern).__name__}",
            hint="the pattern comes first: kernel.compute(pattern, A=A, …)",
        ) from None


def compile_draft(drafted: Draft, options: CallOptions) -> Kernel:
    """Return the kernel of statements over operands of known formats."""
    elaborated = drafted.elaborated
    if drafted.is_single:
        (name,) = drafted.statements.outputs
        assignment = drafted.assignment
        renamed = replace(assignment, target=replace(assignment.target, tensor=name))
        options = with_commands_of_one(options, renamed)
    settings = planner_options(options, compiled=True)
    if drafted.is_single:
        goal = replace(goal_of(options, drafted.request.type), static=drafted.static)
        plan = make_plan(drafted.assignment, drafted.operands, goal, settings)
    else:
        planned = {statement.target.tensor: statement for statement in elaborated.assignments}
        commands = commands_of(options, drafted.statements, planned)
        results = tuple(drafted.statements.outputs.values())
        goal = goal_of(options, elaborated.types[results[-1]])
        plan = plan_statements(
            elaborated.assignments,
            drafted.operands,
            elaborated.types,
            goal,
            results,
            settings,
            commands,
        )
    plan = replace(plan, sizes=drafted.size_note)
    types = {name: operand.type for name, operand in drafted.operands.items()}
    facts = {n: replace(operand, entries=None) for n, operand in elaborated.operands.items()}
    return compile_plan(
        drafted.statements,
        replace(elaborated, operands=facts),
        plan,
        drafted.formats,
        types,
        replace(drafted.requested, formats={}),
        options,
        drafted.over,
    )


def compile_plan(
    statements: Statements,
    elaborated: Elaborated,
    plan: Plan,
    formats: Mapping[str, Format],
    types: Mapping[str, TensorType],
    requested: RequestedOutputs,
    options: CallOptions,
    over: SemiringMask | None = None,
) -> Kernel:
    """Return the kernel of a plan: all its parts compiled, or found where they are
    already."""
    steps = plan.kernels
    compiled = compile_recipes(plan.recipes)
    kernels = {(s.target, "evaluate"): k for s, k in zip(steps, compiled, strict=True)}
    fields = (statements, elaborated, plan, formats, types, requested, options)
    accumulates = frozenset(
        step.accumulator for step in statements.steps if step.accumulator in formats
    )
    return Kernel(*fields, compiled, kernels, over, accumulates)
