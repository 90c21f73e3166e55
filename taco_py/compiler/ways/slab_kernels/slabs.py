"""Several values of dense tensors in one kernel, a slab at a time (`compiler.dataflow`).

m[i] = max(j, S[i,j]), e[i,j] = exp(S[i,j] - m[i]), P[i,j] = e[i,j] / sum(k, e[i,k])
→  parallel i:  over j: m;  over j: e, kept near, and its sum;  over j: P

The parameter of `make(slabs,64)` is how many neighbours a slab has along the contiguous index,
where slabs have that one: sums over the rows of a matrix that values of its columns read.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.machine.target import Target
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.dataflow.rewritten_graph import rewritten
from taco_py.compiler.dataflow.slab_form import BLOCKS, NoSlabError, slab_form
from taco_py.compiler.dataflow.value_seconds import seconds_in_slabs
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.arrays import arguments_of
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe, dense_facts
from taco_py.compiler.ways.way import Offer, Question, Way
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.problem import Problem


def can(question: Question) -> bool:
    """Tell whether a problem has side results or sums inside of values, all of dense tensors."""
    try:
        form = slab_form(question.problem)
    except NoSlabError:
        return False
    return bool(form.slab)


def choose(_: Question) -> Offer | None:
    """Return None, as `fuse_slab` names the way."""
    return None


def lower(recipe: Recipe, target: Target) -> LoweredRecipe:
    """Return the loop IR of a problem in slabs."""
    from codegen.ir import Module
    from taco_py.compiler.dataflow.graph_text import to_text
    from taco_py.compiler.ways.slab_kernels.emit_loops import emit_loops

    problem = recipe.problem
    try:
        form = slab_form(problem, *recipe.schedule.make.parameters)
    except NoSlabError as error:
        raise InternalError(f"Expected a problem of slabs, found {problem}: {error}") from error
    graph = rewritten(problem, form).graph
    arguments = arguments_of(problem, recipe.phase)
    body = emit_loops(graph, form, problem, arguments, target)
    function = replace(arguments.head, body=body)
    text = to_text(graph)
    facts = dense_facts(recipe, "blocks of slabs, of a number that depends on sizes alone", text)
    return LoweredRecipe(Module((function,), recipe.header(text)), arguments.bindings, facts)


def priced(problem: Problem, schedule: Schedule, stats: Statistics) -> float | None:
    """Return the seconds of the rewritten graph; None where a problem has no slabs."""
    try:
        form = slab_form(problem, *schedule.make.parameters)
    except NoSlabError:
        return None
    return seconds_in_slabs(rewritten(problem, form).graph, form, stats)


WAY = Way(
    "slabs",
    can,
    choose,
    lower,
    in_slabs=True,
    priced=priced,
    tuning_parameters=tuple((block,) for block in BLOCKS),
)
