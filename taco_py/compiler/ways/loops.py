"""Loops: concrete index notation, lowered. They compute every problem.

concretize → iteration graph → parallel loop → lower
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from codegen.machine.target import Target
from taco_py.compiler.dataflow.value_seconds import seconds_of_values
from taco_py.compiler.iteration.units_share import rows_in_blocks
from taco_py.compiler.ways.epilogues.rows_match import with_epilogue
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe
from taco_py.compiler.ways.way import Offer, Question, Way
from taco_py.language.phase import ASSEMBLE

if TYPE_CHECKING:
    from taco_py.compiler.iteration.graph import IterationGraph
    from taco_py.compiler.schedule.parallel import Parallelism
    from taco_py.compiler.schedule.schedule import Schedule

    Chooser = Callable[[IterationGraph, Schedule], Parallelism]


def can(_: Question) -> bool:
    """Return true, for every problem."""
    return True


def choose(_: Question) -> Offer:
    """Return the offer for every problem, which no earlier way accepts."""
    return Offer()


def lower(recipe: Recipe, _: Target) -> LoweredRecipe:
    """Return the loops of a recipe, which are the same on every machine. Raises ScheduleError."""
    return lower_recipe(recipe)


def lower_recipe(recipe: Recipe, choose_shared: Chooser | None = None) -> LoweredRecipe:
    """Return the loops of `recipe`. Raises ScheduleError.

    choose_shared  chooses the loops that threads share; as for the CPU where it is None
    """
    from codegen.ir import Module
    from codegen.passes.phases import structure_only
    from codegen.running_totals import totals_functions
    from taco_py.compiler.concrete.nodes import Race
    from taco_py.compiler.concrete.printer import to_text
    from taco_py.compiler.concrete.tree import workspaces_of
    from taco_py.compiler.iteration.printer import graph_text
    from taco_py.compiler.lower.lower import lower

    graph, parallel = scheduled_graph(recipe, choose_shared)
    statement = graph.statement
    lowered = lower(recipe.problem, graph, recipe.phase)
    function = lowered.function
    if recipe.phase == ASSEMBLE:
        function = structure_only(function)
    concrete = to_text(statement)
    tables = _rows_in_tables(graph)
    workspaces = [
        f"{w.name}[{','.join(w.indices)}]: {w.kind.value}{tables.get(w.name, '')}"
        for w in workspaces_of(statement)
    ]
    facts = {
        "requirements": [[r.tensor, r.ordered, r.unique] for r in graph.requirements],
        "covers": graph.covers_result,
        "keys": [w.indices for w in workspaces_of(statement) if w.is_table],
        "threaded": parallel.index is not None,
        "promised": [
            f"parallelize({graph.called(loop)},{loop.mode.unit.value},{Race.IGNORE.value})"
            for loop in graph.loops
            if loop.mode.parallel is Race.IGNORE
        ],
        "report": {
            "concrete": concrete,
            "graph": graph_text(graph),
            "parallel": _parallel_text(parallel, graph),
            "workspaces": workspaces,
            "stored": graph.stored_wholly,
        },
    }
    module = Module((*totals_functions(function), function), header=recipe.header(concrete))
    return LoweredRecipe(module, lowered.bindings, facts)


def _parallel_text(parallel: Parallelism, graph: IterationGraph) -> str:
    from taco_py.compiler.concrete.nodes import Assembly

    if graph.assembly is Assembly.COPY:
        return f"{parallel.reason}; coordinates are copied, each entry has its place"
    if graph.assembly is not Assembly.INSERT:
        return parallel.reason
    return f"{parallel.reason}; entries are counted first, then written in place"


def _rows_in_tables(graph: IterationGraph) -> dict[str, str]:
    """Return the note for each row that is a hash table, by its name."""
    from taco_py.compiler.concrete.nodes import Forall
    from taco_py.compiler.lower.threads.row_tables import table_rows

    if graph.teams or not graph.in_pieces or not isinstance(graph.statement, Forall):
        return {}
    note = ", a hash table each, as large as what is added to it asks for"
    note += "; small ones in shared memory" if rows_in_blocks(graph) else ""
    return {row.name: note for row in table_rows(graph.statement)}


def scheduled_graph(
    recipe: Recipe, choose_shared: Chooser | None = None
) -> tuple[IterationGraph, Parallelism]:
    """Return the iteration graph of `recipe` with all choices, and the loops that threads share.

    Raises ScheduleError.
    """
    from taco_py.compiler.concrete.side_results import check_side_results
    from taco_py.compiler.concrete.verify import verify
    from taco_py.compiler.iteration.graph import build_graph
    from taco_py.compiler.schedule.apply import loops_of
    from taco_py.compiler.schedule.assembly import check_assembly
    from taco_py.compiler.schedule.assigned import assign_first
    from taco_py.compiler.schedule.lanes import check_modes
    from taco_py.compiler.schedule.parallel import assembly_of, choose_parallel

    loops = loops_of(recipe.problem.assignment, recipe.schedule)
    initial = replace(loops.graph(recipe.problem), teams=choose_shared is None)
    check_side_results(recipe.problem, initial.statement, loops.provenance)
    parallel = (choose_shared or choose_parallel)(initial, recipe.schedule)
    statement = assign_first(recipe.problem, parallel.statement, loops.provenance)
    verify(loops.placed(recipe.problem), statement, loops.provenance)
    graph = build_graph(recipe.problem, statement, loops.provenance, loops.assembly)
    graph = replace(graph, teams=initial.teams)
    graph = replace(graph, assembly=assembly_of(graph))
    check_modes(graph)
    check_assembly(graph)
    return graph, parallel


WAY = Way(
    "loops", can, choose, lower, in_loops=True, epilogue=with_epilogue, priced=seconds_of_values
)
