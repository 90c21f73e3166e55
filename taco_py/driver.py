"""The pipeline: a problem with its loop orders → a compiled kernel.

    concretize → iteration graph → parallel loop → lower → passes → emit → build

The kernel cache is asked first; on a hit none of it is imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codegen.records import dataclass
from codegen.runtime.kernels import KernelCache
from codegen.runtime.signature import Parameter
from codegen.toolchain.errors import ToolchainError
from codegen.types import scalar
from taco_py.diagnostics.errors import CompilerError, InternalError, TacoError
from taco_py.kernels import KERNELS
from taco_py.lower.bindings import Bindings, Source, bindings_from_json, bindings_to_json
from taco_py.phase import ASSEMBLE, EVALUATE
from taco_py.problem import Problem
from taco_py.schedule.schedule import OPEN, Schedule
from taco_py.ways.strategy import Strategy

if TYPE_CHECKING:
    from codegen.ir import Module
    from codegen.runtime.kernels import KernelSource
    from codegen.target import Target
    from taco_py.iteration.graph import IterationGraph
    from taco_py.schedule.parallel import Parallelism


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that decides a kernel: a problem, a loop order for each term, which phase, a schedule.

    phase     EVALUATE; of a sparse result also ASSEMBLE or COMPUTE
    schedule  the commands that the loop orders do not say already: which loop threads share
    strategy  how the kernel is made
    """

    problem: Problem
    orders: tuple[tuple[str, ...], ...]
    phase: str = EVALUATE
    schedule: Schedule = OPEN
    strategy: Strategy = Strategy.LOOPS

    @property
    def key(self) -> str:
        """A text that no other recipe has: every node with every field, as `repr` writes them.

        What `str` prints is for reading; it leaves out a literal's dtype, for instance.
        """
        return repr(self)


@dataclass(frozen=True, slots=True)
class Report:
    """What explain() tells of one kernel.

    stored  indices of which a sparse result stores every coordinate
    """

    concrete: str
    graph: str
    parallel: str
    workspaces: tuple[str, ...]
    tiles: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CompiledKernel:
    """A kernel and what its caller must know.

    parameters    the parameters of `call`, each with the source of its argument
    requirements  (tensor, ordered, unique): what must be true of operands' coordinates
    keys          the indices of each hash workspace, which are linearised in 64 bits
    covers        whether every element of a dense result is written, so that it need not be zero
                  before
    """

    recipe: Recipe
    call: Callable[..., Any]
    parameters: tuple[tuple[Parameter, Source | None], ...]
    requirements: tuple[tuple[str, bool, bool], ...]
    covers: bool
    keys: tuple[tuple[str, ...], ...]
    threaded: bool
    source: str
    report: Report
    hit: str
    seconds: float


def compile_recipe(recipe: Recipe, cache: KernelCache = KERNELS) -> CompiledKernel:
    """The kernel of `recipe`, from the cache or made now.

    Raises CompilerError when there is no compiler or it fails, InternalError where the fault is
    ours, and ScheduleError.
    """
    if recipe.strategy.kind == Strategy.LIBRARY.kind:
        return _library_kernel(recipe)
    try:
        found = cache.get_or_build(recipe.key, lambda: _source(recipe))
    except ToolchainError as error:
        raise CompilerError(error.message, hint=error.hint) from error
    facts = json.loads(found.kernel.metadata)
    bindings: dict[str, Source] = dict(bindings_from_json(facts["bindings"]))
    (signature,) = found.kernel.signatures
    parameters = tuple((p, bindings.get(p.name)) for p in signature.parameters)
    report = facts["report"]
    return CompiledKernel(
        recipe,
        found.kernel.functions[signature.name],
        parameters,
        tuple((str(t), bool(o), bool(u)) for t, o, u in facts["requirements"]),
        facts["covers"],
        tuple(tuple(indices) for indices in facts["keys"]),
        facts["threaded"],
        found.kernel.source,
        Report(
            report["concrete"],
            report["graph"],
            report["parallel"],
            tuple(report["workspaces"]),
            tuple(report.get("tiles", ())),
            tuple(report.get("stored", ())),
        ),
        found.hit,
        found.seconds,
    )


def _library_kernel(recipe: Recipe) -> CompiledKernel:
    """The call of a library's routine, for which nothing is compiled."""
    from codegen.runtime.blas import library_product
    from taco_py.ways.library import library_parameters, product_text

    text = product_text(recipe.problem)
    if text is None:
        raise InternalError(f"Expected a product of matrices, found {recipe.problem}")
    serial = recipe.schedule.serial
    parallel = "one thread was asked for" if serial else "as the library does it"
    return CompiledKernel(
        recipe,
        library_product(text),
        library_parameters(recipe.problem, not serial),
        (),
        True,
        (),
        not serial,
        f"/* {recipe.problem}\n *\n * {text} by a library\n */\n",
        Report("", "every coordinate", parallel, ()),
        "library",
        0.0,
    )


def _source(recipe: Recipe) -> KernelSource:
    """`make_source`, where what goes wrong is a fault of ours unless it is a refusal."""
    try:
        return make_source(recipe)
    except Exception as error:
        refusals = (TacoError, ToolchainError, MemoryError)
        if isinstance(error, refusals) and not isinstance(error, InternalError):
            raise
        from taco_py.diagnostics.report import internal_error

        raise internal_error("compile", f"{recipe.problem} | {recipe.orders}", error) from error


def make_source(recipe: Recipe, name: str = "") -> KernelSource:
    """C for `recipe`, through every stage.

    name  of the function; that of the phase where none is given
    """
    from codegen.emit.c import emit_c
    from codegen.passes.notes import notes
    from codegen.passes.order import run_passes
    from codegen.runtime.kernels import KernelSource
    from codegen.runtime.signature import signature_of

    target = native_target()
    lowered = _lowered(recipe, target)
    module = _named(run_passes(lowered.module, target), name or recipe.phase)
    report = {"tiles": notes(module, _loop_names(recipe)), **lowered.facts["report"]}
    bindings = bindings_to_json(_used(lowered.bindings, module))
    facts = {**lowered.facts, "bindings": bindings, "report": report}
    signatures = tuple(signature_of(f) for f in module.exported)
    tiles = recipe.strategy.kind == Strategy.TILES.kind
    vectors = tiles and target.lanes(scalar(recipe.problem.result.dtype)) > 1
    return KernelSource(emit_c(module, target), signatures, json.dumps(facts), vectors)


def _loop_names(recipe: Recipe) -> frozenset[str]:
    """What loops are called that the notation and the schedule have."""
    words = re.findall(r"\w+", str(recipe.schedule))
    return frozenset((*(name for order in recipe.orders for name in order), *words))


def _lowered(recipe: Recipe, target: Target) -> LoweredRecipe:
    kind = recipe.strategy.kind
    if kind == Strategy.TILES.kind:
        return _tile_recipe(recipe, target)
    if target.lanes(scalar(recipe.problem.result.dtype)) > 1:
        if kind == Strategy.TRANSPOSE.kind:
            return _transpose_recipe(recipe, target)
        if kind == Strategy.STAGED.kind:
            return _staged_recipe(recipe, target)
    return lower_recipe(recipe)


def _named(module: Module, name: str) -> Module:
    """With the function that others call, of which there is one, called `name`."""
    functions = (f if f.internal else replace(f, name=name) for f in module.functions)
    return replace(module, functions=tuple(functions))


@dataclass(frozen=True, slots=True, eq=False)
class LoweredRecipe:
    """A recipe's loop IR before any pass, where its arguments come from, and what else is known."""

    module: Module
    bindings: Bindings
    facts: Mapping[str, Any]


def lower_recipe(recipe: Recipe) -> LoweredRecipe:
    """The loops of `recipe`. Raises ScheduleError."""
    from codegen.ir import Module
    from codegen.passes.phases import structure_only
    from taco_py.concrete.nodes import WorkspaceKind
    from taco_py.concrete.printer import to_text
    from taco_py.concrete.tree import workspaces_of
    from taco_py.iteration.printer import graph_text
    from taco_py.lower.lower import lower

    graph, parallel = scheduled_graph(recipe)
    statement = graph.statement
    lowered = lower(recipe.problem, graph, recipe.phase)
    function = lowered.function
    if recipe.phase == ASSEMBLE:
        function = structure_only(function)
    concrete = to_text(statement)
    workspaces = [
        f"{w.name}[{','.join(w.indices)}]: {w.kind.value}" for w in workspaces_of(statement)
    ]
    facts = {
        "requirements": [[r.tensor, r.ordered, r.unique] for r in graph.requirements],
        "covers": graph.covers_result,
        "keys": [w.indices for w in workspaces_of(statement) if w.kind is WorkspaceKind.HASH],
        "threaded": parallel.index is not None,
        "report": {
            "concrete": concrete,
            "graph": graph_text(graph),
            "parallel": _told(parallel, graph),
            "workspaces": workspaces,
            "stored": graph.stored_wholly,
        },
    }
    module = Module((function,), header=_header(recipe, concrete))
    return LoweredRecipe(module, lowered.bindings, facts)


def _told(parallel: Parallelism, graph: IterationGraph) -> str:
    from taco_py.concrete.nodes import Assembly

    if graph.assembly is not Assembly.INSERT:
        return parallel.reason
    return f"{parallel.reason}; entries are counted first, then written in place"


def scheduled_graph(recipe: Recipe) -> tuple[IterationGraph, Parallelism]:
    """The loops of `recipe` with all that is chosen for them, and which of them threads share.

    Raises ScheduleError.
    """
    from taco_py.concrete.verify import verify
    from taco_py.iteration.graph import build_graph
    from taco_py.schedule.apply import apply_all
    from taco_py.schedule.assembly import check_assembly
    from taco_py.schedule.assigned import assign_first
    from taco_py.schedule.lanes import check_modes
    from taco_py.schedule.loops import Loops
    from taco_py.schedule.parallel import assembly_of, choose_parallel

    loops = apply_all(Loops(recipe.problem.assignment, recipe.orders), recipe.schedule)
    parallel = choose_parallel(loops.graph(recipe.problem), recipe.schedule)
    statement = assign_first(recipe.problem, parallel.statement, loops.provenance)
    verify(recipe.problem, statement, loops.provenance)
    graph = build_graph(recipe.problem, statement, loops.provenance, loops.assembly)
    graph = replace(graph, assembly=assembly_of(graph))
    check_modes(graph)
    check_assembly(graph)
    return graph, parallel


def _tile_recipe(recipe: Recipe, target: Target) -> LoweredRecipe:
    """A contraction of dense tensors, through `polyhedral`."""
    from taco_py.ways.tiles import tile

    tiled = tile(recipe.problem, target, recipe.phase, recipe.strategy.width)
    concrete = str(tiled.plan.contraction.statement)
    facts = _dense_facts(recipe, concrete, "blocks of rows, or the batch", str(tiled.plan))
    module = replace(tiled.module, header=_header(recipe, str(tiled.plan)))
    return LoweredRecipe(module, tiled.bindings, facts)


def _transpose_recipe(recipe: Recipe, target: Target) -> LoweredRecipe:
    """A dense tensor copied in another order, through `polyhedral`."""
    from taco_py.ways.transpose import permute

    permuted = permute(recipe.problem, target, recipe.phase)
    facts = _dense_facts(recipe, "", "the outermost loop", permuted.plan)
    module = replace(permuted.module, header=_header(recipe, permuted.plan))
    return LoweredRecipe(module, permuted.bindings, facts)


def _staged_recipe(recipe: Recipe, target: Target) -> LoweredRecipe:
    """A sum of products of dense tensors in another order, through `polyhedral`."""
    from taco_py.ways.staged_sum import stage

    staged = stage(recipe.problem, target, recipe.phase)
    facts = _dense_facts(recipe, "", "the outermost loop", staged.plan)
    module = replace(staged.module, header=_header(recipe, staged.plan))
    return LoweredRecipe(module, staged.bindings, facts)


def _dense_facts(recipe: Recipe, concrete: str, shared: str, plan: str) -> dict[str, Any]:
    """The facts of a kernel that runs over every coordinate and writes all of a dense result."""
    serial = recipe.schedule.serial
    return {
        "requirements": [],
        "covers": True,
        "keys": [],
        "threaded": not serial,
        "report": {
            "concrete": concrete,
            "graph": "every coordinate",
            "parallel": "one thread was asked for" if serial else shared,
            "workspaces": [],
            "tiles": plan.splitlines(),
        },
    }


def native_target() -> Any:
    """The machine that kernels are built for."""
    from codegen.target import Target
    from codegen.toolchain.machine import cache_sizes, core_count, cpu_flags

    compiler = KERNELS.compiler
    return Target.native(
        cpu_flags(), core_count(), cache_sizes(), compiler.flags, compiler.has_openmp
    )


def _used(bindings: Bindings, module: Any) -> Bindings:
    names = {p.name for f in module.functions for p in (*f.arrays, *f.scalars)}
    return tuple((name, source) for name, source in bindings if name in names)


def _header(recipe: Recipe, concrete: str) -> str:
    return f"{recipe.problem}\n\n{concrete}"
