r"""Candidate kernels: differences of two execution states, with the values that they make.

A kernel with the outputs O computes a set K of primitives that lie on paths to O. Let D₂ be O with
all it depends on: K = D₂ \ D₁ for an execution state D₁, so K is convex (Hu et al. 2024, Korch,
algorithm 1). What K needs and does not hold is read; what it holds and does not write may be
computed by another kernel again. Before → after, for `0 → 1 → 2`, results {2}:

    {0}  {0,1}→1  {1}→1  {0,1,2}→2  {1,2}→2  {2}→2

Rules of a table leave out kernels that would not pay: a rule that `grows` fails for all larger
kernels too, so none of these is looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from codegen.records import dataclass
from taco_py.graph.orchestrate.dag import Dag, bits, mask_of
from taco_py.graph.orchestrate.execution_states import Window, windows, windows_across


@dataclass(frozen=True, slots=True)
class Kernel:
    """Primitives that run as one step: `members` from the values `inputs` to those `outputs`."""

    members: int
    inputs: int
    outputs: int

    def __str__(self) -> str:
        sets = (self.inputs, self.members, self.outputs)
        read, members, outputs = (", ".join(map(str, bits(mask))) for mask in sets)
        return f"{read or '·'} → {{{members}}} → {outputs}"


@dataclass(frozen=True, slots=True)
class Limits:
    """What kernels and windows may hold.

    heavy       heavy primitives of a kernel, linear transformations say
    primitives  primitives of a kernel
    outputs     values that a kernel writes
    states      execution states of a window
    candidates  candidates of all windows, beyond which none is looked for across windows
    """

    heavy: int = 1
    primitives: int = 16
    outputs: int = 1
    states: int = 2000
    candidates: int = 6000


@dataclass(frozen=True, slots=True)
class KernelRule:
    """A rule that a candidate keeps, or is left out.

    grows  whether a kernel that fails it fails it with more members too
    """

    name: str
    reason: str
    keeps: Callable[[Dag, int, Limits], bool]
    grows: bool = True


def _few_heavy(dag: Dag, members: int, limits: Limits) -> bool:
    return (members & dag.flagged("heavy")).bit_count() <= limits.heavy


def _small(dag: Dag, members: int, limits: Limits) -> bool:
    return members.bit_count() <= limits.primitives


def _alone(dag: Dag, members: int, limits: Limits) -> bool:
    return not members & dag.flagged("alone") or members.bit_count() == 1


def _connected(dag: Dag, members: int, limits: Limits) -> bool:
    """Tell whether members hang together by edges, or by arguments that they share."""
    first = next(bits(members))
    reached, wave = 1 << first, [first]
    while wave:
        p = wave.pop()
        near = dag.predecessors[p] | dag.successors[p]
        read = set(dag.arguments[p])
        for q in bits(members & ~reached):
            if near >> q & 1 or not read.isdisjoint(dag.arguments[q]):
                reached |= 1 << q
                wave.append(q)
    return reached == members


def _keep_once(dag: Dag, members: int, limits: Limits) -> bool:
    """Tell whether no member reads another that is to be computed once: that is read from the
    kernel that makes it, and no kernel makes it for itself."""
    return not any(dag.successors[p] & members for p in bits(members & dag.flagged("once")))


RULES = (
    KernelRule("heavy", "two linear transformations rarely share loops", _few_heavy),
    KernelRule("size", "large kernels keep more values than there are registers", _small),
    KernelRule("alone", "a primitive that nobody can fuse is a kernel", _alone),
    KernelRule("connected", "what shares no value gains nothing as one", _connected, grows=False),
)
"""What kernels keep, the cheapest test first."""
CANDIDATE_RULES = (
    *RULES,
    KernelRule("once", "two kernels round what is compared with itself in two ways", _keep_once),
)
"""What candidates keep, of which several may compute a primitive."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """All kernels that may be chosen, with how they were found.

    windows  consecutive windows that hold all needed primitives
    states   execution states of these windows
    left     how often each rule left a kernel out, by its name
    """

    kernels: tuple[Kernel, ...]
    windows: tuple[Window, ...]
    states: int
    left: tuple[tuple[str, int], ...]


def make_kernel(dag: Dag, members: int, outputs: int | None = None) -> Kernel:
    """Make a kernel of these primitives; without outputs it writes all that is read outside."""
    results = dag.read_outside(members) if outputs is None else outputs
    return Kernel(members, dag.reads(members), results)


def find_candidates(
    dag: Dag, limits: Limits | None = None, rules: Sequence[KernelRule] = CANDIDATE_RULES
) -> Candidates:
    """Find the candidate kernels of a graph, window by window and across their boundaries.

    Each needed primitive is a kernel by itself, whatever the rules say: so there is a choice.
    """
    limits = limits if limits is not None else Limits()
    cut = windows(dag, limits.states)
    left = {rule.name: 0 for rule in rules}
    kernels = {make_kernel(dag, 1 << p, 1 << p): None for p in bits(dag.live)}
    for window in cut:
        kernels |= dict.fromkeys(_in_window(dag, window.members, limits, rules, left))
    if len(kernels) <= limits.candidates:
        for window in windows_across(dag, cut, limits.states):
            kernels |= dict.fromkeys(_in_window(dag, window.members, limits, rules, left))
    states = sum(window.states for window in cut) - len(cut) + 1
    return Candidates(tuple(kernels), cut, states, tuple(left.items()))


def _in_window(
    dag: Dag, window: int, limits: Limits, rules: Sequence[KernelRule], left: dict[str, int]
) -> Iterator[Kernel]:
    """Yield the kernels of a window, by their outputs, that keep all rules."""
    last = [rule for rule in rules if not rule.grows]
    for count in range(1, limits.outputs + 1):
        for values in combinations(bits(window), count):
            outputs = mask_of(values)
            for members in _with_outputs(dag, window, outputs, limits, rules, left):
                failed = next((r for r in last if not r.keeps(dag, members, limits)), None)
                if failed is None:
                    yield Kernel(members, dag.reads(members), outputs)
                else:
                    left[failed.name] += 1


def _with_outputs(
    dag: Dag,
    window: int,
    outputs: int,
    limits: Limits,
    rules: Sequence[KernelRule],
    left: dict[str, int],
) -> Iterator[int]:
    """Yield each set of primitives between a state and these outputs that the growing rules keep.

    A set grows by a primitive that it reads, once it holds all of the window that reads this one
    and leads to the outputs: so it stays the difference of two states.
    """
    growing = [rule for rule in rules if rule.grows]
    region = (outputs | dag.before(outputs)) & window
    start = outputs | dag.after(outputs) & dag.before(outputs) & window
    visited, waiting = {start}, [start]
    while waiting:
        members = waiting.pop()
        failed = next((r for r in growing if not r.keeps(dag, members, limits)), None)
        if failed is not None:
            left[failed.name] += 1
            continue
        yield members
        for p in bits(dag.reads(members) & window):
            larger = members | 1 << p
            if not dag.successors[p] & region & ~members and larger not in visited:
                visited.add(larger)
                waiting.append(larger)
