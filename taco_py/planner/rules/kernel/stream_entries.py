"""Compute many entries in groups of rows, and write them past the caches with their coordinates.

    P[i,j] = A[i,j] / sum(k, A[i,k])    by loops(i,k,j), A and P in CSR
    → P[i,j] = A[i,j] / sum(k, A[i,k])    by loops(i,k,j), make(entry_slabs)

P has the coordinates of A: each value has its place before the loops run, so that threads write to
the result itself, and no row is copied. A group of rows is read from main memory once. What takes
long runs over all entries of a group as one loop, however short rows are.
"""

from __future__ import annotations

from dataclasses import replace

from taco_py.compiler.dataflow.build_dataflow import is_quick
from taco_py.compiler.dataflow.entry_form import EntryForm, entry_form
from taco_py.compiler.dataflow.entry_graph import EntryGraph, entry_graph
from taco_py.compiler.dataflow.moved_bytes import Caches, compulsory, traffic
from taco_py.compiler.dataflow.slab_form import NoSlabError
from taco_py.compiler.schedule.commands import Make
from taco_py.compiler.ways.entry_kernels.entry_slabs import WAY
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.tree import all_calls
from taco_py.planner.context import Context
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.program import Program
from taco_py.planner.joined_kernels import is_plain
from taco_py.planner.rules.base import (
    Numbers,
    Outcome,
    Phase,
    Refusal,
    Rewrite,
    Rule,
    Site,
    kernels,
)
from taco_py.planner.slabs.slab_choice import NEAR_BYTES, amount_text

LEAST_ENTRIES = 1 << 14
"""Entries from which on groups of rows take less time than rows that are appended."""
LEAST_ROW = 8
"""Entries of a row in the mean from which on its loops pay, where nothing takes long: of 3 entries
each, rows that are appended take 0.85 of the time."""


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Compute the entries of a result that has an operand's coordinates in groups of rows."""
    kernel = next((kernel for kernel in program.kernels if kernel.target == site.target), None)
    if kernel is None or not is_plain(kernel) or is_full(kernel.problem.result.format):
        return None
    sparse = [name for name, type in kernel.problem.operands if not is_full(type.format)]
    if len(sparse) != 1 or program.facts[kernel.source(sparse[0])].nnz < LEAST_ENTRIES:
        return None
    try:
        entries = entry_form(kernel.problem)
        graph = entry_graph(entries)
    except NoSlabError:
        return None
    sizes = sizes_of(program, kernel, entries, graph)
    calls = all_calls(kernel.problem.assignment.value)
    if sizes[graph.position] < LEAST_ROW and all(is_quick(call.operator) for call in calls):
        return Refusal("its rows are short")
    caches = Caches(NEAR_BYTES, context.goal.machine.loops.far_cache_bytes)
    dram = traffic(graph.graph, sizes, caches).dram
    reason = (
        f"the coordinates of {entries.source.tensor}, each value in its place: main memory moves "
        f"{amount_text(dram)}, {amount_text(compulsory(graph.graph, sizes))} at least"
    )
    in_groups = replace(kernel, schedule=kernel.schedule.with_way(Make(WAY.name)))
    return Rewrite(program.with_kernel(in_groups), reason)


def sizes_of(
    program: Program, kernel: KernelStep, entries: EntryForm, graph: EntryGraph
) -> dict[str, float]:
    """Return the size of each index of a graph of entries: entries of a slab in the mean."""
    facts = program.facts[kernel.source(entries.source.tensor)]
    shape = dict(zip(entries.source.indices, map(float, facts.shape), strict=True))
    modes = {new: shape[mode] for new, mode in graph.modes.items()}
    rows = 1.0
    for index in entries.above:
        rows *= shape[index]
    if not entries.in_rows:
        rows = min(rows, facts.nnz)
        modes[graph.slab[0]] = rows
    else:
        modes.update((index, shape[index]) for index in entries.above)
    return {**modes, graph.position: facts.nnz / max(rows, 1.0)}


RULE = Rule("stream_entries", Phase.KERNEL, apply, kernels, Numbers.ROUNDS, on_host=True)
