"""What a code generator of another's says of itself (Chen et al. 2021, BYOC).

patterns, supports   which operators of a graph it computes
codegen              from a region of a graph to what computes it, once for each region
runtime              computes a region of arrays
launch, …            what it costs, by which calls are told for which it pays
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import prod
from typing import Any

from codegen.records import dataclass
from taco_py.graph.nodes import Graph, Node
from taco_py.graph.orchestrate.region_patterns import CompositePattern, Wildcard, parse_pattern
from taco_py.language.diagnostics.errors import OperandTypeError, ScheduleError

HOST = "own"
"""The name of this compiler among backends."""

UNKNOWN = "unknown"
"""The format of what may be sparse, as NumPy's functions of sparse arrays give it."""


@dataclass(frozen=True, slots=True)
class ValueFacts:
    """What is known of a value in a call, before it is computed.

    shape     its sizes
    dtype     NumPy's name of the type of its elements
    sparsity  the format of what is stored sparse, "" of what is dense, "unknown" of what may be
              either
    entries   the number of elements that are stored
    number    of a number that is the same in all calls, None of all else
    fill      what it is where it stores nothing
    """

    shape: tuple[int, ...]
    dtype: str
    sparsity: str = ""
    entries: float = 0.0
    number: Any = None
    fill: Any = 0

    @property
    def size(self) -> int:
        """Return the number of its elements."""
        return prod(self.shape)


Facts = Mapping[str, ValueFacts]
"""Facts of values by their names."""


def _always(nodes: Mapping[str, Node], facts: Facts) -> bool:
    return True


class ProcessDiedError(RuntimeError):
    """The process that a backend computes in has ended: it is restarted once."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Operators that a backend computes as one, written as a call.

    >>> tp.Pattern("gelu", "multiply(add(x, erf(x)), _)").name
    'gelu'
    >>> tp.Pattern("affine", "add(contract(x, w), b)", lambda nodes, facts: facts["b"].size == 1)
    Pattern(name='affine', ...)

    name       what it is called where regions are told
    text       a call of operators as graphs of primitives have them; other names match any value,
               `_` a value each, and `(c := exp(x))` is one that is read several times
    holds      whether a match counts, of the nodes and the facts of values by their names in the
               text; the operator that gives the result is "root"
    commuting  operators of two arguments that match in either order
    """

    name: str
    text: str
    holds: Callable[[Mapping[str, Node], Facts], bool] = _always
    commuting: tuple[str, ...] = ("add", "multiply", "maximum", "minimum")

    def __post_init__(self) -> None:
        parse_pattern(self.text)

    def compiled(self, holds: Callable[..., bool]) -> CompositePattern:
        """Return the pattern that graphs are searched for, with a predicate of its matches."""
        return CompositePattern(self.name, parse_pattern(self.text), holds, self.commuting)


@dataclass(slots=True, eq=False)
class Health:
    """Whether a backend works in this process.

    deaths    how often its process ended by itself
    restarts  how often it was restarted
    out       why it is left out, "" while it is not
    """

    deaths: int = 0
    restarts: int = 0
    out: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True, eq=False)
class Backend:
    """A code generator for regions of graphs: what it computes, how, and at what cost.

    >>> def codegen(region, constants):
    ...     return [node.get("function") for node in region.nodes]
    >>> def runtime(functions, arrays):
    ...     for each in functions:
    ...         arrays = [getattr(np, each)(*arrays)]
    ...     return arrays
    >>> chains = tp.Backend(
    ...     "chains", patterns=(), supports=lambda node, facts: node.get("function") == "sqrt",
    ...     codegen=codegen, runtime=runtime, launch=1e-9,
    ... )
    >>> tp.register_backend(chains)
    >>> tp.fuse(lambda x: np.sqrt(np.sqrt(x)), backends=("chains",))(np.full(3, 81.0))
    array([3., 3., 3.])

    name       by which `tp.fuse(f, backends=…)` calls it
    patterns   operators that it computes as one, tried before single ones
    supports   whether it computes a primitive, of a node and the facts of its operands and result
               by their names; None: it computes what patterns match alone
    codegen    from a region, a graph of its own, and its constants by their names to anything
    runtime    from what `codegen` gave and the values of the region's inputs to its results: a
               sequence in the order of its outputs, or the array alone where it is one
    launch     seconds that a call takes besides
    bytes_per_second  of what is moved to it and back; 0: it computes in the memory of this process
    seconds    that a region is expected to take, of its graph and the facts of its values; without
               it nothing besides launch and transfer
    most_primitives   of a region; larger ones are split
    sized      whether `codegen` is called anew for other sizes, with regions in which sizes are
               numbers
    binds      whether arrays that the function reads from outside are constants of regions, which
               are compiled again where their elements change; else they are inputs
    always     whether it has all that it computes, whatever that takes
    restart    makes a new process after `ProcessDiedError`, once
    """

    name: str
    patterns: tuple[Pattern, ...]
    supports: Callable[[Node, Facts], bool] | None
    codegen: Callable[[Graph, Mapping[str, Any]], Any]
    runtime: Callable[[Any, Sequence[Any]], Any]
    launch: float = 1e-5
    bytes_per_second: float = 0.0
    seconds: Callable[[Graph, Facts], float] | None = None
    most_primitives: int | None = None
    sized: bool = False
    binds: bool = True
    always: bool = False
    restart: Callable[[], None] | None = None
    health: Health = field(default_factory=Health, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier() or self.name == HOST:
            raise ScheduleError(
                f"Expected a backend's name to be an identifier but {HOST!r}, found {self.name!r}",
                hint="call it by one word",
            )
        for pattern in self.patterns:
            if not isinstance(pattern, Pattern):
                raise OperandTypeError(
                    f"Expected patterns of {self.name} to be tp.Pattern, found {pattern!r}",
                    hint='write tp.Pattern("name", "add(contract(x, w), b)")',
                )
        calls = {"codegen": self.codegen, "runtime": self.runtime}
        calls |= {"supports": self.supports} if self.supports is not None else {}
        for name, call in calls.items():
            if not callable(call):
                raise OperandTypeError(
                    f"Expected {name} of {self.name} to be a function, found {call!r}"
                )
        costs = (self.launch, self.bytes_per_second)
        if not all(isinstance(cost, int | float) and cost >= 0 for cost in costs):
            raise ScheduleError(
                f"Expected launch and bytes_per_second of {self.name} to be 0 or more, found "
                f"{self.launch!r} and {self.bytes_per_second!r}",
                hint="seconds of a call, and bytes that are moved in a second",
            )
        most = self.most_primitives
        if most is not None and not (isinstance(most, int) and most >= 1):
            raise ScheduleError(
                f"Expected regions of {self.name} of at least 1 primitive, found {most!r}",
                hint="most_primitives is a whole number, or None for regions of any size",
            )

    def move_seconds(self, size: float) -> float:
        """Return seconds to move so many bytes."""
        return size / self.bytes_per_second if self.bytes_per_second else 0.0


def labels_of(pattern: CompositePattern) -> frozenset[str]:
    """Return the names that a pattern binds."""
    labels: set[str] = set()
    waiting: list[Any] = [pattern.root]
    while waiting:
        node = waiting.pop()
        labels.add(node.name if isinstance(node, Wildcard) else node.label or "")
        waiting += () if isinstance(node, Wildcard) else node.arguments
    return frozenset(labels - {""})
