"""`compile` of several statements: kernels to call again and again on new data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.device_tensor import place_of
from taco_py.arguments.operands import Given, check_given, check_orders, check_sizes, give
from taco_py.arguments.option_checks import check_static_size, check_threads, merged
from taco_py.arguments.options import CallOptions
from taco_py.arguments.result_table import ResultKind
from taco_py.arguments.results import container, hand_out
from taco_py.calls.call.compute import check_out
from taco_py.calls.call.conform import by_place_and_name, conforming, typed_number
from taco_py.calls.call.devices.placed import placed
from taco_py.calls.call.planner_request import goal_of, planner_options
from taco_py.calls.call.prepare import Checked, Prepared, check_schedule, start
from taco_py.calls.call.several.compute_several import check_outs_apart, task_of
from taco_py.calls.call.several.draft_several import DraftOfSeveral
from taco_py.calls.call.several.explain_several import with_results
from taco_py.calls.call.several.requested_outputs import RequestedOutputs, by_output
from taco_py.calls.statements.elaborate import Elaborated, kinds_of
from taco_py.calls.statements.sequence import Statements
from taco_py.compiler.driver import CompiledKernel, compile_recipes
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import on_host
from taco_py.data.tensors.byte_counts import check_memory_limit
from taco_py.data.tensors.traced_operands import taken_over, taker_of
from taco_py.language.formats import Format
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.printer import to_text
from taco_py.language.notebook.folded_report import Report
from taco_py.language.problem import TensorType
from taco_py.planner.ir.plan import Plan
from taco_py.planner.statements import plan_statements
from taco_py.report.explanation.kernel_roofline import kernel_roofline
from taco_py.report.explanation.plan_report import explain
from taco_py.running.execute.run import run_all
from taco_py.running.replay.call_text import by_name
from taco_py.running.replay.make_call import Ways, make_call, reads_in_place

if TYPE_CHECKING:
    from taco_py.report.show.graphs import Drawing


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KernelOfSeveral:
    """Compute statements that are compiled, for operands by name or in the order of their first
    use.

    >>> text = "m[i] = A[i,j] * x[j]; s = m[i] * m[i]"
    >>> k = tp.compile(text, A=tp.CSR, x=tp.dense(1), outputs=("m", "s"))
    >>> A, x = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), np.array([1.0, 2.0, 3.0])
    >>> m, s = k(A, x)
    >>> m, s
    (array([7., 6.]), np.float64(85.0))
    """

    statements: Statements
    elaborated: Elaborated
    plan: Plan
    formats: Mapping[str, Format]
    types: Mapping[str, TensorType]
    outputs: tuple[str, ...]
    alone: bool
    options: CallOptions
    compiled: tuple[CompiledKernel, ...]
    kernels: dict[tuple[str, str], CompiledKernel]
    ways: Ways = field(default_factory=Ways)
    writing: Ways = field(default_factory=Ways)

    @property
    def source(self) -> str:
        """Return the generated C of all kernels."""
        return "\n".join(kernel.source for kernel in self.compiled)

    def explain(self) -> str:
        """Explain the kernels as `tp.explain` does."""
        limit = self.options.threads or KERNELS.cores
        told = explain(self.plan, self.compiled, limit=limit)
        return Report(with_results(told, self.statements, self.elaborated, self.plan))

    def roofline(
        self,
        path: str | Path | None = None,
        operands: Mapping[str, Any] | None = None,
        /,
        **named: Any,
    ) -> Drawing:
        """Draw what the processor can do at most, and where each kernel stands below that.

        path      an SVG file to write; the drawing is returned, which `print` shows as text
        operands, named  a call with these is timed, for a few tenths of a second

        Raises CompilerError where the processor cannot be measured, OutputError for the file.
        """
        objects = merged(operands, named)
        given = self._ready(objects).given if objects else None
        call = (lambda: self(**objects)) if objects else None
        threads = self.options.threads
        return kernel_roofline(path, self.plan, self.compiled, threads, given, call)

    def _repr_html_(self) -> str:
        """Show it in a notebook: what it computes, and its C where it is unfolded."""
        from taco_py.language.notebook.kernel_page import kernel_page

        text = "; ".join(to_text(each) for each in self.statements.assignments)
        stored = {name: (str(f), self.types[name].element) for name, f in self.formats.items()}
        facts = {"outputs": ", ".join(self.outputs), "target": self.options.target}
        return kernel_page(text, stored, facts, self.source, self.explain())

    def __repr__(self) -> str:
        """Return the statements, and each operand's format and dtype, in one line."""
        operands = (
            f"{name}: {str(form) or 'scalar'}/{self.types[name].element}"
            for name, form in self.formats.items()
        )
        text = "; ".join(to_text(each) for each in self.statements.assignments)
        wanted = ", ".join(self.outputs)
        return f"<Kernel {text} with {', '.join(operands)}, outputs {wanted}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """What to compile again: kernels are found by their recipes, functions are not stored."""
        told = (self.statements, self.elaborated, self.plan, self.formats, self.types)
        requested = RequestedOutputs(self.outputs, {}, {}, self.alone)
        return compile_plan_of_several, (*told, requested, self.options)

    def __call__(
        self,
        *operands: Any,
        out: Any = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        **named: Any,
    ) -> Any:
        """Compute the outputs for these operands, a tuple where several were asked for.

        out      where a dense result is written, or such arrays by name; `y += …` begins from it,
                 unless `y` is passed
        threads  at most so many
        memory_limit  bytes that it may take at once, as in `evaluate`

        Raises as `evaluate` does, and FormatError for another format.
        """
        given = by_place_and_name(tuple(self.formats), operands, named) if operands else named
        most = check_memory_limit(memory_limit) or self.options.memory_limit
        if most is None:
            return self._found(given, out, threads)
        with KERNELS.memory.within(most):
            return self._found(given, out, threads)

    def _found(self, given: dict[str, Any], out: Any, threads: int | None) -> Any:
        """Return the outputs for operands by name."""
        outs_by_name = by_output("out", out, self.outputs, self.outputs)
        asked = RequestedOutputs(self.outputs, {}, outs_by_name, self.alone)
        outs = tuple(asked.outs[name] for name in self.outputs if name in asked.outs)
        limit = check_threads(threads) or self.options.threads or KERNELS.cores
        ways = self.writing if outs else self.ways
        for call in ways.within(given) if KERNELS.memory.on else ways.calls:
            result = call(given, *outs, limit)
            if result is not None:
                return result
        if (taker := taker_of(given.values())) is not None:
            names = [self.statements.outputs[name] for name in self.outputs]
            wanted = names[0] if self.alone else names
            told = {"out": out, "threads": threads}
            return taken_over(
                taker, "tp.kernel", (self.statements.assignments, given, wanted), told
            )
        begun = {n: o for n, o in asked.outs.items() if n in self.formats and n not in given}
        objects, _ = placed({**given, **begun}, self.options.target)
        place = place_of(objects.values())
        prepared = self._ready(objects)
        for name, given_out in asked.outs.items():
            self._check_out(prepared, name, given_out)
        check_outs_apart(asked.outs)
        execution = start(prepared, replace(self.options, threads=limit), None)
        made = run_all(self.plan, execution)
        if execution.fits:
            ways.note_fit(given)
        if not execution.wide and self.options.is_native:
            self._remember(prepared, objects, asked, begun)
        found: list[Any] = []
        for name, target in self.statements.outputs.items():
            array = asked.outs.get(name)
            if array is not None:
                np.copyto(array, on_host(made[target]).values, casting="unsafe")
                found.append(array)
            else:
                found.append(hand_out(made[target], prepared.kinds[target], place))
        return found[0] if self.alone else tuple(found)

    def _ready(self, objects: Mapping[str, Any]) -> Prepared:
        """Return the operands checked, as the plan takes them."""
        uses = (access for each in self.statements.assignments for access in accesses(each))
        check_given([a for a in uses if a.tensor in self.formats], tuple(self.formats), objects)
        found = give({n: typed_number(n, obj, self.types[n]) for n, obj in objects.items()})
        sources = {name: name for name in self.formats}
        sources |= {alias: read.source for alias, read in self.elaborated.reads.items()}
        given: dict[str, Given] = {
            name: conforming(name, found[source], self.types[name], self.formats[source])
            for name, source in sources.items()
        }
        shapes = {name: tuple(g.data.shape) for name, g in given.items()}
        sizes: dict[str, int] = {}
        for each in self.elaborated.assignments:
            check_orders(each, shapes)
            sizes = check_sizes(each, shapes)
            for index, size in self.options.static:
                if index in sizes:
                    check_static_size(index, size, sizes)
            shapes[each.target.tensor] = tuple(sizes[i] for i in each.target.indices)
        operands = {
            name: replace(facts, shape=shapes[name]) if name in shapes else facts
            for name, facts in self.elaborated.operands.items()
        }
        kinds = self._kinds({name: container(g) for name, g in given.items()})
        elaborated = replace(self.elaborated, operands=operands, kinds=kinds)
        checked = Checked(self.statements, elaborated, given, sizes, shapes, alone=False)
        return Prepared(checked, self.plan, kinds, self.kernels)

    def _kinds(self, containers: Mapping[str, str]) -> dict[str, ResultKind]:
        """What results are handed out as: sparse ones as the sparse operands are."""
        own = self.elaborated.kinds
        found = kinds_of(self.elaborated.assignments, self.elaborated.types, containers)
        return {name: own[name] if own[name].kind == "ndarray" else found[name] for name in own}

    def _check_out(self, prepared: Prepared, name: str, out: Any) -> None:
        target = self.statements.outputs[name]
        facts = prepared.checked.elaborated.operands[target]
        kind, dtype = prepared.kinds[target], np.dtype(facts.type.dtype)
        check_out(out, kind, facts.shape, dtype, self.options.casting)

    def _remember(
        self,
        prepared: Prepared,
        objects: Mapping[str, Any],
        asked: RequestedOutputs,
        begun: Mapping[str, Any],
    ) -> None:
        """The short way for such operands, where they are read in place."""
        given = prepared.given
        alone = prepared.checked.reads_as_passed
        if not alone or not all(reads_in_place(o, given[n]) for n, o in objects.items()):
            return
        task = task_of(prepared, objects, asked, begun)
        if task is not None:
            limit = self.options.threads or KERNELS.cores
            ways = self.writing if asked.outs else self.ways
            named = {name: obj for name, obj in objects.items() if name not in begun}
            types = tuple((name, out.dtype) for name, out in asked.outs.items())
            ways.add(named, types, lambda: make_call(task, by_name, limit)[0])


def compile_several(drafted: DraftOfSeveral, options: CallOptions) -> KernelOfSeveral:
    """Return the kernels of statements over operands of known formats."""
    check_schedule(options)
    found, results = drafted.elaborated, tuple(drafted.statements.outputs.values())
    request, asked = goal_of(options, found.types[results[-1]]), planner_options(options, True)
    plan = plan_statements(
        found.assignments, drafted.operands, found.types, request, results, asked
    )
    plan = replace(plan, sizes=drafted.size_note)
    types = {name: facts.type for name, facts in drafted.operands.items()}
    told = (drafted.statements, found, plan, drafted.formats, types)
    return compile_plan_of_several(*told, drafted.requested, options)


def compile_plan_of_several(
    statements: Statements,
    elaborated: Elaborated,
    plan: Plan,
    formats: Mapping[str, Format],
    types: Mapping[str, TensorType],
    requested: RequestedOutputs,
    options: CallOptions,
) -> KernelOfSeveral:
    """Return a plan as what can be called: all its kernels compiled, or found where they are
    already."""
    steps = plan.kernels
    compiled = compile_recipes(plan.recipes)
    kernels = {(s.target, "evaluate"): k for s, k in zip(steps, compiled, strict=True)}
    told = (
        statements,
        elaborated,
        plan,
        formats,
        types,
        requested.outputs,
        requested.alone,
        options,
    )
    return KernelOfSeveral(*told, compiled, kernels)
