"""Ways to choose which kernels compute a graph of primitives, by the names of `optimize=`.

    none         each primitive by itself
    operators    what operators of several primitives are made of apart from others
    stages       as many as possible in one call, by the graph alone
    greedy       kernels merged while their expected seconds become fewer
    partition    the partition inside of whose kernels the most bytes stay
    orchestrate  the kernels whose expected seconds have the least sum; they may compute again
    measure      the same with kernels timed on the operands of the call

The last four plan candidates, which takes seconds, once for a trace.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import islice
from math import inf
from types import MappingProxyType
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.learned_price import ANALYTIC, Price
from taco_py.arguments.options import CallOptions
from taco_py.data.kernels import KERNELS
from taco_py.graph.nodes import Graph, Node
from taco_py.graph.orchestrate.candidate_kernels import (
    Candidates,
    Kernel,
    Limits,
    find_candidates,
    make_kernel,
)
from taco_py.graph.orchestrate.choosers import CHOOSERS
from taco_py.graph.orchestrate.dag import bits, mask_of
from taco_py.graph.orchestrate.kernel_choice import Choice, Chooser
from taco_py.graph.orchestrate.partition.choose_partition import choose_partition
from taco_py.graph.orchestrate.partition.solution_notes import NotedSolutions
from taco_py.graph.primitives.sampled_values import operator_of
from taco_py.graph.run.graph_program import MANY_CALLS
from taco_py.graph.run.partition_by_stages import Region, partition_by_stages
from taco_py.graph.selection.graph_dag import GraphDag, dag_of_graph
from taco_py.graph.selection.operators_apart import operators_apart
from taco_py.graph.selection.region_price import RegionPrices, prices_of
from taco_py.graph.selection.saved_bytes import asked_together, traffic_of
from taco_py.graph.selection.time_kernels import KernelTimes, time_in_turns
from taco_py.language.diagnostics.errors import InternalError, ScheduleError, TacoError
from taco_py.language.diagnostics.suggest import with_suggestion

DEFAULT = "stages"

MOST_CANDIDATES = 400
"""Candidates that are planned for: some 10 ms each."""

SIZES = (32, 16, 8, 5, 3)
"""Primitives of a kernel, the most that leave few enough candidates."""

MOST_STATES = 400
"""Execution states of a window; longer graphs are cut."""

PAYS = 0.75
"""The share of the expected seconds of the stages below which other kernels are taken.

Prices tell kernels apart that differ by far. Kernels of one call share what is in the caches, and
sums that wait for nothing run together, of which prices know little.
"""

MEASURED_PAYS = 0.95
"""The same share of measured seconds."""

DENSE_RESULT_PENALTY = 1.0
"""Seconds that nobody has: for a dense value of which sparse ones ask for few elements. It is made
where no kernel does without, and else never, whatever its loops are expected to take."""

MOST_ROUNDS = 8
"""Choices of which the kernels are timed."""


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """What a way chooses.

    expected  seconds, None where nobody asked for prices
    seconds   that it took to choose
    summary   primitives, states and candidates that were looked at
    measured  whether the seconds were measured
    """

    strategy: str
    regions: tuple[Region, ...]
    expected: float | None = None
    seconds: float = 0.0
    summary: str = ""
    measured: bool = False

    @property
    def kernels(self) -> int:
        """Return the number of kernel calls."""
        return sum(region.kernel for region in self.regions)


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What runs, with what else was looked at.

    recomputed  primitives that several kernels compute
    without     the expected seconds where each is computed once
    priced      candidates that were planned, with the seconds that it took
    """

    selected: Alternative
    alternatives: tuple[Alternative, ...] = ()
    recomputed: tuple[Node, ...] = ()
    without: float | None = None
    priced: tuple[int, float] = (0, 0.0)


@dataclass(slots=True, eq=False)
class _Choosing:
    """A graph whose kernels are chosen, for the operands of a call."""

    dag: GraphDag
    operands: Sequence[Any]
    prices: RegionPrices
    candidates: Candidates
    stages: tuple[Region, ...]
    planning: float = 0.0
    priced: set[Kernel] = field(default_factory=set)

    def price(self, kernel: Kernel) -> float:
        """Return the expected seconds of a kernel, plus the penalty that keeps choosers from it."""
        return self.expected(kernel) + self.kept_from(kernel)

    def kept_from(self, kernel: Kernel) -> float:
        """Return seconds for dense values that need not be."""
        return DENSE_RESULT_PENALTY * self.prices.count_dense_results(self.dag.region(kernel))

    def expected(self, kernel: Kernel) -> float:
        """Return the expected seconds of a kernel."""
        start = time.perf_counter()
        seconds = self.prices.of(self.dag.region(kernel))
        self.priced.add(kernel)
        self.planning += time.perf_counter() - start
        return seconds

    def kernels(self, regions: Sequence[Region]) -> tuple[Kernel, ...]:
        """Return the kernels that regions are, without views."""
        return tuple(k for k in map(self.dag.kernel, regions) if k is not None)

    def fixed(self, name: str, regions: Sequence[Region]) -> Alternative:
        """Return a choice that asks for no price, with its price."""
        return Alternative(name, tuple(regions), sum(map(self.expected, self.kernels(regions))))

    def alternative(self, name: str, chooser: Chooser | None = None) -> tuple[Choice, Alternative]:
        """Run a chooser, by default the named one, and return its choice, also as an
        alternative.
        """
        start = time.perf_counter()
        choice = (chooser or CHOOSERS[name])(self.dag.dag, self.candidates, self.price)
        spent = time.perf_counter() - start
        summary = str(choice.statistics)
        expected = sum(map(self.expected, choice.kernels))
        regions = self.dag.regions(choice.kernels)
        return choice, Alternative(name, regions, expected, spent, summary)

    def if_it_pays(
        self,
        choice: Choice,
        candidate: Alternative,
        alternatives: Sequence[Alternative],
        stages: Alternative,
        share: float = PAYS,
    ) -> Decision:
        """Take a choice where it takes a share of the stages' seconds at most, else these."""
        assert stages.expected is not None and candidate.expected is not None
        if candidate.expected < share * stages.expected or stages.expected == inf:
            return self.decide(candidate, [*alternatives, candidate], choice.recomputed)
        reason = f"{candidate.strategy} finds none that take less than {share:.0%} of that"
        selected = replace(stages, summary=reason)
        return self.decide(selected, [*alternatives, candidate], 0)

    def decide(self, best: Alternative, rivals: Sequence[Alternative], recomputed: int) -> Decision:
        """Return the decision, with the price of computing nothing twice."""
        without = None
        if recomputed:
            choice, _ = self.alternative("once")
            without = choice.cost
        recomputed_nodes = tuple(self.dag.nodes[p] for p in bits(recomputed))
        priced = (len(self.priced), self.planning)
        return Decision(best, tuple(rivals), recomputed_nodes, without, priced)


def _by_itself(dag: GraphDag) -> tuple[Region, ...]:
    """Return each primitive as a region."""
    return dag.regions(make_kernel(dag.dag, 1 << p, 1 << p) for p in range(len(dag.nodes)))


def candidates_of(dag: GraphDag, stages: Sequence[Region]) -> Candidates:
    """Find candidates, few enough to plan each; the stages are among them, and kernels that compute
    what they would read again."""
    for size in SIZES:
        limits = Limits(heavy=size, primitives=size, states=MOST_STATES, candidates=MOST_CANDIDATES)
        pool = find_candidates(dag.dag, limits)
        if len(pool.kernels) <= MOST_CANDIDATES:
            break
    first = pool.kernels[: max(MOST_CANDIDATES, len(dag.nodes))]  # primitives alone come first
    staged = (kernel for kernel in map(dag.kernel, stages) if kernel is not None)
    recomputing = islice(computing_again(dag, first), MOST_CANDIDATES // 4)
    return replace(pool, kernels=tuple(dict.fromkeys((*first, *staged, *recomputing))))


def computing_again(dag: GraphDag, kernels: Iterable[Kernel]) -> Iterator[Kernel]:
    """Yield kernels with a value that they read computed in them, where others read it too.

    S = sqrt(A);  r = cumsum(sum(S, 1));  y = S @ r
    →  {sqrt, @} of A and r: no difference of two states, for r depends on S
    """
    graph, maps = dag.dag, mask_of(p for p, n in enumerate(dag.nodes) if operator_of(n) == "map")
    alone = graph.flagged("alone")
    for kernel in kernels:
        for p in bits(kernel.inputs & maps) if not kernel.members & alone else ():
            if graph.successors[p].bit_count() > 1 or graph.outputs >> p & 1:
                chain = wave = 1 << p
                while wave:
                    wave = graph.reads(chain) & maps
                    chain |= wave
                yield make_kernel(graph, kernel.members | chain, kernel.outputs)


def _none(graph: Graph, operands: Sequence[Any], options: CallOptions) -> Decision:
    return Decision(Alternative("none", _by_itself(dag_of_graph(graph))))


def _stages(graph: Graph, operands: Sequence[Any], options: CallOptions) -> Decision:
    return Decision(Alternative("stages", partition_by_stages(graph)))


def _operators(graph: Graph, operands: Sequence[Any], options: CallOptions) -> Decision:
    return Decision(Alternative("operators", operators_apart(graph)))


def _prepare_choice(
    graph: Graph, operands: Sequence[Any], options: CallOptions
) -> tuple[_Choosing, list[Alternative]]:
    """Prepare the prices and candidates of a graph, and the alternatives that need no search."""
    dag, stages = dag_of_graph(graph), partition_by_stages(graph)
    prices = prices_of(dag, operands, options.price)
    choosing = _Choosing(dag, operands, prices, candidates_of(dag, stages), stages)
    first = choosing.fixed("none", _by_itself(dag)), choosing.fixed("stages", stages)
    return choosing, [*first]


def _greedy(graph: Graph, operands: Sequence[Any], options: CallOptions) -> Decision:
    choosing, alternatives = _prepare_choice(graph, operands, options)
    return choosing.if_it_pays(*choosing.alternative("greedy"), alternatives, alternatives[1])


def _partition(graph: Graph, operands: Sequence[Any], options: CallOptions) -> Decision:
    """Partition the graph so that values move the fewest bytes between kernels."""
    choosing, rivals = _prepare_choice(graph, operands, options)
    chooser = partial(
        choose_partition,
        traffic=traffic_of(choosing.dag, choosing.prices),
        required_pairs=tuple(asked_together(choosing.dag, choosing.prices)),
        solver=NotedSolutions(KERNELS.text, KERNELS.write_text),
    )
    return choosing.if_it_pays(*choosing.alternative("partition", chooser), rivals, rivals[1])


def _orchestrate(graph: Graph, operands: Sequence[Any], options: CallOptions) -> Decision:
    choosing, rivals = _prepare_choice(graph, operands, options)
    _, greedy = choosing.alternative("greedy")
    return choosing.if_it_pays(*choosing.alternative("orchestrate"), [*rivals, greedy], rivals[1])


def _measure(graph: Graph, operands: Sequence[Any], options: CallOptions) -> Decision:
    """Time the kernels of the best choices until the best choice has only timed ones; then that
    choice as a whole against the stages."""
    choosing, alternatives = _prepare_choice(graph, operands, options)
    start = time.perf_counter()
    dag = choosing.dag
    times = KernelTimes(dag, operands, choosing.expected, options)
    stages = choosing.kernels(choosing.stages)
    times.time(stages)
    greedy, alternative = choosing.alternative("greedy")
    times.time(greedy.kernels)
    orchestrate = partial(CHOOSERS["orchestrate"], dag.dag, choosing.candidates)
    for _ in range(MOST_ROUNDS):
        choice = orchestrate(lambda k: times.scaled(k) + choosing.kept_from(k))
        if not times.time(choice.kernels):
            break
    choice = orchestrate(lambda k: times.measured(k) + choosing.kept_from(k))
    regions = dag.regions(choice.kernels)
    first, last = time_in_turns(graph, operands, (choosing.stages, regions), options)
    summary = f"{choice.statistics}, {len(times.seconds)} kernels timed"
    measured = Alternative("measure", regions, last, time.perf_counter() - start, summary, True)
    timed = Alternative("stages", choosing.stages, first, measured=True)
    return choosing.if_it_pays(choice, measured, [*alternatives, alternative], timed, MEASURED_PAYS)


Strategy = Callable[[Graph, Sequence[Any], CallOptions], Decision]

STRATEGIES: Mapping[str, Strategy] = MappingProxyType({
    "none": _none, "stages": _stages, "greedy": _greedy, "partition": _partition,
    "operators": _operators, "orchestrate": _orchestrate, "measure": _measure,
})  # fmt: skip
"""From a graph of primitives, a call's operands and the options of its kernels to what runs."""


def with_expected(
    decision: Decision, graph: Graph, operands: Sequence[Any], price: Price = ANALYTIC
) -> Decision:
    """Return a decision with the expected seconds of its selected regions by a price.

    None where there are no prices, as for operands that do not fit together.
    """
    selected = decision.selected
    if selected.expected is not None or len(operands) != len(graph.inputs):
        return decision
    try:
        prices = prices_of(dag_of_graph(graph), operands, price)
        expected = sum(map(prices.of, selected.regions))
    except InternalError:
        raise
    except TacoError:
        return decision
    if expected == inf:
        return decision
    return replace(decision, selected=replace(selected, expected=expected))


def check_strategy(name: Any) -> str:
    """Return the name of a way to choose kernels. Raises ScheduleError for others."""
    if not isinstance(name, str) or name not in STRATEGIES:
        names = ", ".join(STRATEGIES)
        raise ScheduleError(
            f"Expected optimize= to be one of {names}, found {name!r}",
            hint=with_suggestion("leave it out for the default", str(name), STRATEGIES),
        )
    return name


def choose_regions(
    graph: Graph, operands: Sequence[Any], strategy: str, options: CallOptions = MANY_CALLS
) -> Decision:
    """Choose the regions that run for a graph of primitives, with operands like a call's.

    options  of the calls of kernels, of which the price compares candidates

    It is the stages where there are no prices, as for operands that do not fit together: the call
    says so with the user's line.
    """
    try:
        return STRATEGIES[strategy](graph, operands, options)
    except InternalError:
        raise
    except TacoError as error:
        decision = _stages(graph, operands, options)
        summary = f"there are no prices: {error.message.splitlines()[0]}"
        return replace(decision, selected=replace(decision.selected, summary=summary))
