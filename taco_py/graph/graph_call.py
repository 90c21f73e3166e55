"""A trace with what runs for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.options import CallOptions
from taco_py.graph.backends.offload import Offload
from taco_py.graph.backends.registered import NONE, Preference
from taco_py.graph.capture.trace_function import Trace
from taco_py.graph.fission.separate_results import with_separate_results
from taco_py.graph.fission.sizes_there import with_sizes_there
from taco_py.graph.fission.split_operators import split_operators
from taco_py.graph.nodes import Graph
from taco_py.graph.passes import ALL, Passes
from taco_py.graph.rules.rewrite import rewritten
from taco_py.graph.run.graph_program import MANY_CALLS, GraphProgram, make_program
from taco_py.graph.sampling.sample_values import sample_values
from taco_py.graph.selection.strategies import DEFAULT, Decision, choose_regions
from taco_py.graph.views.with_views import with_views


@dataclass(frozen=True, slots=True, eq=False)
class GraphCall:
    """A trace, its primitives, and the program that computes them.

    program    what runs without backends
    decision   how its kernels were chosen
    offload    what runs instead at the sizes of a call, None without backends
    is_derived whether the primitives compute what was derived from the trace, as its gradients
    options    of the calls of kernels
    """

    trace: Trace
    primitives: Graph
    program: GraphProgram
    decision: Decision
    offload: Offload | None = None
    is_derived: bool = False
    options: CallOptions = MANY_CALLS

    def run(self, operands: Sequence[Any]) -> Any:
        """Compute the function's results of operands by the trace's names."""
        return self.trace.returned(self.program_of(operands).run(operands))

    def program_of(self, operands: Sequence[Any]) -> GraphProgram:
        """Return the program that runs for operands, by default the one without backends."""
        if self.offload is None or len(operands) != len(self.primitives.inputs):
            return self.program
        return self.offload.program(operands).program


def call_of(
    trace: Trace,
    operands: Sequence[Any] = (),
    strategy: str = DEFAULT,
    preferred: Preference = NONE,
    derived: Callable[[Graph], Graph] | None = None,
    passes: Passes = ALL,
    options: CallOptions = MANY_CALLS,
) -> GraphCall:
    """Split the operators of a trace, rewrite the primitives, and choose the program that runs.

    operands   of the call that it is chosen for; some strategies do without
    preferred  the backends that may compute regions of it
    derived    from the primitives to those of which results are wanted, in memory of their own
    passes     which of those that may be left out are done
    options    of the calls of kernels
    """
    unsplit = ("custom_derivative",) if derived else ()
    primitives = rewritten(split_operators(trace.graph, unsplit))
    if derived:
        primitives = derived(primitives)
    else:
        primitives = with_separate_results(trace.graph, with_views(primitives))
    primitives = with_sizes_there(sample_values(primitives))
    return planned_call(trace, primitives, operands, passes.strategy(strategy), preferred,
                        options, is_derived=derived is not None)  # fmt: skip


def planned_call(
    trace: Trace,
    primitives: Graph,
    operands: Sequence[Any] = (),
    strategy: str = DEFAULT,
    preferred: Preference = NONE,
    options: CallOptions = MANY_CALLS,
    is_derived: bool = True,
) -> GraphCall:
    """Choose the program that runs for primitives, for instance of a derivative of a trace."""
    decision = choose_regions(primitives, operands, strategy, options)
    program = make_program(primitives, lambda _: decision.selected.regions, options=options)
    offload = Offload(primitives, program, preferred, options) if preferred.backends else None
    return GraphCall(trace, primitives, program, decision, offload, is_derived, options)
