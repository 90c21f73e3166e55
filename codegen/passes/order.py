"""The passes over loop IR, in order, and why each stands where it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from codegen.ir import Function, Module
from codegen.machine.target import Target
from codegen.passes.blocks.block_panels import tile_block_panels
from codegen.passes.blocks.empty_rows import skip_empty_rows
from codegen.passes.blocks.hold_blocks import hold_blocks
from codegen.passes.blocks.hold_lanes import hold_lanes
from codegen.passes.blocks.hold_turns import hold_turns
from codegen.passes.copy_propagation import propagate_copies
from codegen.passes.counted_places import count_places
from codegen.passes.dead_code import remove_dead_code
from codegen.passes.device_names import rename_words
from codegen.passes.fixed_casts import hoist_fixed_casts
from codegen.passes.full_tiles import separate_full_tiles
from codegen.passes.function_chains import split_function_chains
from codegen.passes.gpu.counting_loops import count_at_once
from codegen.passes.gpu.lane_runs import add_in_runs
from codegen.passes.gpu.one_writer import write_once
from codegen.passes.gpu.short_integers import count_in_short
from codegen.passes.gpu.slices import cut_slices
from codegen.passes.gpu.unit_places import count_by_units
from codegen.passes.gpu.unit_sums import sum_in_units
from codegen.passes.jam import jam_rows
from codegen.passes.kept_functions import keep_functions
from codegen.passes.outline_kernels import outline_kernels
from codegen.passes.panels import tile_panels
from codegen.passes.parameters import prune_parameters
from codegen.passes.past_caches import write_past_caches
from codegen.passes.simplify import simplify
from codegen.passes.sums.accumulators import split_accumulators
from codegen.passes.sums.long_sums import widen_sums
from codegen.passes.sums.vector_sums import split_sums_of_streams, split_vector_sums
from codegen.passes.vectorize import vectorize
from codegen.records import dataclass
from codegen.shared_work import SharedWork
from codegen.tree import fixpoint

Pass = Callable[[Module, Target], Module]


@dataclass(frozen=True, slots=True)
class Step:
    """A pass and the reason for its place."""

    name: str
    run: Pass
    reason: str


def _for_any_target(run: Callable[[Module], Module]) -> Pass:
    return lambda module, target: run(module)


def tidy(module: Module) -> Module:
    """Simplify, propagate copies and remove dead code until nothing changes any more."""
    simple: dict[int, Any] = {}

    def simplify_rest(module: Module) -> Module:
        return simplify(module, simple)

    return fixpoint(module, simplify_rest, propagate_copies, remove_dead_code)


_TIDY = _for_any_target(tidy)

C_PASSES: tuple[Step, ...] = (
    Step("tidy", _TIDY, "later passes match simple shapes and compare places"),
    Step("full_tiles", _for_any_target(separate_full_tiles), "marked loops are the user's so far"),
    Step("held_lanes", _for_any_target(hold_lanes), "before vectorize, for its loops have lanes"),
    Step("held_turns", _for_any_target(hold_turns), "before accumulators, which split its sum"),
    Step("held_blocks", _for_any_target(hold_blocks), "before panels, which would hold one row"),
    Step("empty_rows", _for_any_target(skip_empty_rows), "before jam, which joins rows"),
    Step("block_panels", tile_block_panels, "before panels, which would hold one row"),
    Step("panels", tile_panels, "before vectorize, which would mark the loop over columns"),
    Step("tidy_panels", _TIDY, "a static number of columns leaves few panels"),
    Step("jam", _for_any_target(jam_rows), "before vectorize: it makes loops with several sums"),
    Step("past_caches", write_past_caches, "before vectorize, which would mark the rows written"),
    Step("counted_places", _for_any_target(count_places), "before vectorize, which marks them"),
    Step("kept_functions", _for_any_target(keep_functions), "after places are counted, which meet"),
    Step("vectorize", _for_any_target(vectorize), "marks what is left to the C compiler"),
    Step("fixed_casts", _for_any_target(hoist_fixed_casts), "takes the loops that are marked"),
    Step("long_sums", _for_any_target(widen_sums), "takes the loops that are marked, too"),
    Step(
        "function_chains", _for_any_target(split_function_chains), "takes the loops that are marked"
    ),
    Step("vector_sums", split_sums_of_streams, "takes the sums that are marked"),
    Step("accumulators", _for_any_target(split_accumulators), "takes the sums vectorize refused"),
    Step("tidy_sums", _TIDY, "blocks and bounds that the splitting left"),
    Step("parameters", _for_any_target(prune_parameters), "last: all dead uses are gone"),
)

NEST_PASSES: tuple[Step, ...] = (
    Step("tidy", _TIDY, "later passes match simple shapes and compare places"),
    Step("vectorize", _for_any_target(vectorize), "what the planner of the loops has not marked"),
    Step("fixed_casts", _for_any_target(hoist_fixed_casts), "takes the loops that are marked"),
    Step("vector_sums", split_vector_sums, "takes the sums that are marked"),
    Step("parameters", _for_any_target(prune_parameters), "last: all dead uses are gone"),
)
"""For loops that were planned as a whole: their order, tiles and panels stay as they are."""


CUDA_PASSES: tuple[Step, ...] = (
    Step("tidy", _TIDY, "kernels are compared and read by people"),
    Step("kept_functions", _for_any_target(keep_functions), "as for C"),
    Step("slices", cut_slices, "teams are loops that kernels are made of"),
    Step("tidy_slices", _TIDY, "counting loops may have nothing else in them"),
    Step("counting_loops", _for_any_target(count_at_once), "each thread has a loop of one round"),
    Step("unit_places", _for_any_target(count_by_units), "loops that only count are gone"),
    Step("tidy_counts", _TIDY, "names of what had a round of its own"),
    Step("parameters", _for_any_target(prune_parameters), "all dead uses are gone"),
    Step("kernels", outline_kernels, "the passes before know functions alone"),
    Step("unit_sums", _for_any_target(sum_in_units), "of kernels: which units share a loop"),
    Step("lane_runs", _for_any_target(add_in_runs), "of what is not one element for a whole loop"),
    Step("one_writer", write_once, "sums leave one number to be written"),
    Step("short_integers", _for_any_target(count_in_short), "no pass behind it makes a loop"),
    Step("device_names", _for_any_target(rename_words), "kernels and their launches share names"),
)
"""For GPUs: their threads are many, and each does little."""

PASSES = {"c": C_PASSES, "cuda": CUDA_PASSES}


def passes_for(target: Target) -> tuple[Step, ...]:
    """Return the passes for the language of `target`, in order. Raises ValueError for an unknown
    one."""
    if target.language not in PASSES:
        languages = " or ".join(map(repr, PASSES))
        raise ValueError(f"Expected the language {languages}, found {target.language!r}")
    return PASSES[target.language]


def run_passes(module: Module, target: Target) -> Module:
    """Return `module` after every pass for `target`; those of a shared function run once."""
    shared = [_passed_alone(function, target) for function in module.functions if function.shared]
    if not shared:
        return _passed(module, target)
    rest = tuple(function for function in module.functions if not function.shared)
    passed = _passed(replace(module, functions=rest), target)
    by_name = {function.name: function for function in (*shared, *passed.functions)}
    names = dict.fromkeys((*(function.name for function in module.functions), *by_name))
    return replace(passed, functions=tuple(by_name[name] for name in names))


def _pass_alone(function: Function, target: Target) -> Function:
    """Return a function that calls no other after every pass for `target`."""
    (passed,) = _passed(Module((function,)), target).functions
    return passed


_passed_alone = SharedWork(_pass_alone)


def _passed(module: Module, target: Target) -> Module:
    """Return `module` after every pass; what is tidy already is not tidied again."""
    tidied: Module | None = None
    for step in passes_for(target):
        if step.run is not _TIDY:
            module = step.run(module, target)
        elif module is not tidied:
            module = tidied = tidy(module)
    return module


def run_nest_passes(module: Module, target: Target) -> Module:
    """Return `module`, whose loops were planned as a whole, after the passes that leave them in
    place."""
    for step in NEST_PASSES:
        module = step.run(module, target)
    return module
