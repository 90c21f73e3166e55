"""Values of the entries of a sparse operand in one kernel (`compiler.dataflow.entry_graph`).

P[i,j] = A[i,j] / sum(k, A[i,k])   A, P: ds
→  parallel i:  over p: sum of A[i,p];  over p: P[i,p], past the caches

The result has the operand's coordinates, which are copied, so that each value has its place before
the kernel runs: threads share rows and write to the result itself. The kernel of a structure alone,
or of values for a structure, is that of loops.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.machine.target import Target
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.dataflow.entry_form import EntryForm, entry_form
from taco_py.compiler.dataflow.entry_graph import EntryGraph, entry_graph
from taco_py.compiler.dataflow.graph_seconds import seconds_of_graph
from taco_py.compiler.dataflow.slab_form import NoSlabError
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways import loops
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe
from taco_py.compiler.ways.way import Offer, Question, Way
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.phase import EVALUATE
from taco_py.language.problem import Problem


def can(question: Question) -> bool:
    """Tell whether a problem is of values of entries, as `entry_form` says."""
    try:
        entry_graph(entry_form(question.problem))
    except NoSlabError:
        return False
    return True


def choose(_: Question) -> Offer | None:
    """Return None, as `stream_entries` names the way."""
    return None


def lower(recipe: Recipe, target: Target) -> LoweredRecipe:
    """Return the loop IR of values of entries."""
    if recipe.phase != EVALUATE:
        return loops.lower(recipe, target)
    from codegen.ir import Module
    from taco_py.compiler.dataflow.graph_text import to_text
    from taco_py.compiler.ways.entry_kernels.emit_entries import emit_entries
    from taco_py.compiler.ways.entry_kernels.entry_arrays import entry_arrays

    problem = recipe.problem
    try:
        entries = entry_form(problem)
        graph = entry_graph(entries)
    except NoSlabError as error:
        raise InternalError(f"Expected values of entries, found {problem}: {error}") from error
    arrays = entry_arrays(entries, recipe.phase)
    function = replace(arrays.head, body=emit_entries(entries, graph, arrays, target))
    text = to_text(graph.graph)
    serial, ordered = recipe.schedule.serial, all(level.ordered for level in entries.levels)
    facts = {
        "requirements": [[entries.source.tensor, ordered, True]],
        "covers": True,
        "keys": [],
        "threaded": not serial,
        "report": {
            "concrete": "",
            "graph": f"the entries of {entries.source.tensor}",
            "parallel": "one thread was asked for" if serial else "pieces of rows and entries",
            "workspaces": [],
            "tiles": text.splitlines(),
        },
    }
    return LoweredRecipe(Module((function,), recipe.header(text)), arrays.bindings, facts)


def priced(problem: Problem, _: Schedule, stats: Statistics) -> float | None:
    """Return the seconds of the graph of entries; None where a problem has none."""
    try:
        entries = entry_form(problem)
        graph = entry_graph(entries)
    except NoSlabError:
        return None
    return seconds_of_graph(graph.graph, _sizes(entries, graph, stats), stats.machine)


def _sizes(entries: EntryForm, graph: EntryGraph, stats: Statistics) -> dict[str, float]:
    """Return the size of each index of a graph: entries of a slab in the mean."""
    stored = stats.patterns[entries.source.tensor].nnz
    sizes = {new: stats.sizes[mode] for new, mode in graph.modes.items()}
    rows = stats.volume(entries.above)
    if entries.in_rows:
        sizes.update((index, stats.sizes[index]) for index in entries.above)
    else:
        rows = sizes[graph.slab[0]] = min(rows, stored)
    return {**sizes, graph.position: stored / max(rows, 1.0)}


WAY = Way("entry_slabs", can, choose, lower, priced=priced)
