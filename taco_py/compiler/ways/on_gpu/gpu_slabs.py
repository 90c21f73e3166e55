"""Values of dense tensors a slab at a time, on a GPU (`compiler.dataflow.slab_units`).

    m[i] = max(j, S[i,j]), e[i,j] = exp(S[i,j] - m[i]), P[i,j] = e[i,j] / sum(k, e[i,k])
    →  make(cuda_slabs,256,32,4,1): a warp has a row, each lane keeps 4 elements of it

Parameters: threads of a block, those that share a slab, elements that each keeps, slabs one after
another, and 1 where a slab has all terms of what it sums.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.machine.gpu import Gpu
from codegen.machine.target import Target
from codegen.records import dataclass
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.dataflow.graph_text import to_text
from taco_py.compiler.dataflow.slab_form import NoSlabError
from taco_py.compiler.dataflow.slab_units import UnitGraph, Units, unit_graph
from taco_py.compiler.dataflow.unit_sizes import Sizes, blocks_of, choose_units, sector_bytes
from taco_py.compiler.schedule.commands import Make
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.arrays import arguments_of
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe, dense_facts
from taco_py.compiler.ways.way import Offer, Question, Way
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Reduce
from taco_py.language.notation.tree import walk
from taco_py.language.problem import Problem

GPU_SLABS_WAY = "cuda_slabs"


@dataclass(frozen=True, slots=True)
class GpuSlabs:
    """How units of a GPU share a problem's slabs.

    inner_sums  as for `slab_form`
    bytes       of the sectors that this moves, about
    seconds     that it takes, about
    """

    of: UnitGraph
    units: Units
    inner_sums: bool
    bytes: float
    seconds: float

    @property
    def make(self) -> Make:
        """Return the command that names the way."""
        units = self.units
        sizes = (units.threads, units.sharing, units.elements, units.slabs)
        return Make(GPU_SLABS_WAY, (*sizes, int(self.inner_sums)))


def slabs_on_gpu(problem: Problem, sizes: Sizes, gpu: Gpu) -> GpuSlabs:
    """Return how units share slabs, of two ways to take sums the one of the least expected time.

    sizes  of the problem's indices

    Raises NoSlabError with the reason where units cannot share them.
    """
    best: list[GpuSlabs] = []
    error = NoSlabError("")
    for inner_sums in (False, True):
        try:
            best.append(_shared(problem, sizes, gpu, inner_sums))
        except NoSlabError as reason:
            error = reason
    if not best:
        raise error
    return min(best, key=lambda slabs: slabs.seconds)


def _shared(problem: Problem, sizes: Sizes, gpu: Gpu, inner_sums: bool) -> GpuSlabs:
    of = unit_graph(problem, inner_sums)
    units = choose_units(of, _of_modes(of, sizes), gpu)
    if units is None:
        raise NoSlabError("a slab is larger than what threads keep in registers")
    return _priced(of, units, inner_sums, sizes, gpu)


def _of_modes(of: UnitGraph, sizes: Sizes) -> dict[str, float]:
    return {mode: float(sizes[names[0]]) for mode, names in of.form.names.items()}


def _priced(of: UnitGraph, units: Units, inner_sums: bool, sizes: Sizes, gpu: Gpu) -> GpuSlabs:
    modes = _of_modes(of, sizes)
    sectors = sector_bytes(of, units, modes, gpu)
    threads = units.threads * blocks_of(of, units, modes)
    busy = min(1.0, 2 * threads / (gpu.block_threads * gpu.multiprocessors))
    launches = 1 + len(of.sums) + len(of.totals)
    seconds = sectors / busy / gpu.memory_bytes_per_second + launches * gpu.launch_seconds
    return GpuSlabs(of, units, inner_sums, sectors, seconds)


def priced(problem: Problem, schedule: Schedule, stats: Statistics) -> float | None:
    """Return the expected seconds of a kernel of slabs."""
    *numbers, inner_sums = schedule.make.parameters
    of = unit_graph(problem, bool(inner_sums))
    gpu = stats.machine.target.gpu
    return _priced(of, Units(*numbers), bool(inner_sums), stats.sizes, gpu).seconds


# ---------------------------------------------------------------- whether it pays


def can(question: Question) -> bool:
    """Tell whether a problem is planned for a GPU, and its slabs are shared by units."""
    if question.statistics is None or not question.stats.machine.is_gpu:
        return False
    return question.recall(_slabs_of) is not None


def _slabs_of(question: Question) -> GpuSlabs | None:
    gpu = question.stats.machine.target.gpu
    try:
        return slabs_on_gpu(question.problem, question.stats.sizes, gpu)
    except NoSlabError:
        return None


def choose(question: Question) -> Offer | None:
    """Return the offer for sums of columns, and for values of which operands have fewer indices.

    Loops read such operands for each element, and add sums of columns in memory.
    """
    if not _saves_bytes(question.problem) or not can(question):
        return None
    slabs = question.recall(_slabs_of)
    return None if slabs is None else Offer(slabs.make.parameters, str(slabs.units))


def _saves_bytes(problem: Problem) -> bool:
    """Tell whether loops of a GPU would read elements of memory several times, or write them."""
    assignment = problem.assignment
    value, target = assignment.value, assignment.target
    every, read = {*all_indices(assignment)}, accesses(value)
    largest = [access for access in read if {*access.indices} == every]
    if problem.side or not largest or len(every) < 2:
        return False
    stored = problem.type_of(largest[0].tensor).format.stored(largest[0].indices)
    sums = any(isinstance(expr, Reduce) for expr, _ in walk(value)) or every > {*target.indices}
    if sums:
        return bool(target.indices) and stored[-1] in target.indices
    return any(stored[-1] in a.indices and {*a.indices} < every for a in read)


# ---------------------------------------------------------------- how it is made


def lower(recipe: Recipe, target: Target) -> LoweredRecipe:
    """Return the loop IR of a problem in slabs."""
    from codegen.ir import Module
    from taco_py.compiler.ways.slab_kernels.emit_units import emit_units
    from taco_py.compiler.ways.slab_kernels.slab_places import Places

    problem = recipe.problem
    *numbers, inner_sums = recipe.schedule.make.parameters
    try:
        of = unit_graph(problem, bool(inner_sums))
    except NoSlabError as error:
        raise InternalError(f"Expected a problem of slabs, found {problem}: {error}") from error
    units = Units(*numbers)
    arguments = arguments_of(problem, recipe.phase)
    body = emit_units(Places(of, problem, arguments), units, target.gpu)
    function = replace(arguments.head, body=body)
    text = f"{units}\n{to_text(of.graph)}"
    facts = dense_facts(recipe, str(units), text)
    return LoweredRecipe(Module((function,), recipe.header(text)), arguments.bindings, facts)


WAY = Way(GPU_SLABS_WAY, can, choose, lower, on_gpu=True, priced=priced)
