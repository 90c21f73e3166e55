"""Which slabs of a dataflow graph the units of a GPU share, and what they keep between passes.

    parallel i: over j: m = reduce max X[i,j]; over j: … X[i,j] - m …
    →  threads share the elements of a row; each keeps its elements of X from pass to pass

An element is read by the thread that has written it: a slab is one row of elements, its inner
indices as one, and all passes share it alike. So only reductions go from thread to thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from codegen.records import dataclass
from taco_py.compiler.dataflow.build_dataflow import build
from taco_py.compiler.dataflow.moved_bytes import Caches
from taco_py.compiler.dataflow.nodes import (
    Dataflow,
    Load,
    Memory,
    ParallelMap,
    Pass,
    Reduce,
    Role,
    SlabIndex,
    Store,
)
from taco_py.compiler.dataflow.optimize import optimize
from taco_py.compiler.dataflow.pick_elements import pick_elements
from taco_py.compiler.dataflow.slab_form import NoSlabError, SlabForm, slab_form
from taco_py.language.notation.operators import Operator
from taco_py.language.problem import Problem

NOMINAL_SIZE = 4096.0
"""A size of each index that graphs are rewritten for: they are the same for all sizes."""

PARTIAL = "a value has some of the indices inside of slabs alone"

Key = tuple[str, tuple[str, ...]]
"""An element: its buffer and indices."""


@dataclass(frozen=True, slots=True)
class Units:
    """How many threads share slabs. All but the last two are powers of 2.

    threads    of a block
    sharing    of these that share a slab
    elements   of a slab that each of them keeps
    slabs      that they compute one after another
    """

    threads: int
    sharing: int
    elements: int
    slabs: int

    def __str__(self) -> str:
        sharing = "each has a slab" if self.sharing == 1 else f"{self.sharing} share a slab"
        count = f"{self.elements} element{'s' if self.elements > 1 else ''}"
        turns = f", for {self.slabs} slabs one after another" if self.slabs > 1 else ""
        return f"blocks of {self.threads} threads, of which {sharing}; each keeps {count}{turns}"

    @property
    def groups(self) -> int:
        """Return how many slabs a block has at a time."""
        return self.threads // self.sharing

    @property
    def row(self) -> int:
        """Return the most elements of a slab that threads keep."""
        return self.sharing * self.elements


@dataclass(frozen=True, slots=True)
class UnitGraph:
    """The graph of a problem, for units of a GPU.

    inner      the indices inside of slabs, outermost first
    registers  elements that threads keep from pass to pass
    common     elements that all slabs read
    sums       the operator of each buffer that slabs combine rows in
    totals     the operator of each buffer that slabs combine single values in
    """

    graph: Dataflow
    form: SlabForm
    inner: tuple[str, ...]
    registers: tuple[Key, ...]
    common: tuple[Key, ...]
    sums: Mapping[str, Operator]
    totals: Mapping[str, Operator]

    @property
    def map(self) -> ParallelMap:
        """Return the one map of the graph."""
        return self.graph.maps[0]

    @property
    def slab(self) -> tuple[str, ...]:
        """Return the indices of slabs, outermost first."""
        return tuple(index.name for index in self.map.slab)

    @property
    def is_across(self) -> bool:
        """Tell whether the elements of a slab are apart, and neighbours are of other slabs."""
        return self.form.order[-1] in self.slab

    @property
    def is_split(self) -> bool:
        """Tell whether blocks may have parts of a slab: nothing in it is reduced."""
        return not any(isinstance(step, Reduce) for one in self.map.passes for step in one.body)


def unit_graph(problem: Problem, inner_sums: bool = False) -> UnitGraph:
    """Return the rewritten graph of a problem for units of a GPU.

    inner_sums  as for `slab_form`

    Raises NoSlabError with the reason where units cannot share its slabs.
    """
    form = slab_form(problem, inner_sums=inner_sums)
    if not form.slab:
        raise NoSlabError("it has no slabs")
    form = replace(form, slab=tuple(SlabIndex(index.name) for index in form.slab))
    inner = tuple(index for index in form.order if index not in form.single)
    if not inner:
        raise NoSlabError("it has one index alone")
    sizes = dict.fromkeys(form.names, NOMINAL_SIZE)
    caches = Caches(float("inf"), float("inf"))
    graph = optimize(pick_elements(build(problem, form)), sizes, caches).graph
    _check(graph, form, inner)
    (map,) = graph.maps
    sums: dict[str, Operator] = {}
    totals: dict[str, Operator] = {}
    for one, step in _steps(map):
        if isinstance(step, Store) and step.operator is not None:
            (sums if one.over else totals)[step.buffer] = step.operator
    common = tuple(key for key in _loads(map) if key[1] and not form.single & {*key[1]})
    far = tuple(key for key in common if graph.buffer(key[0]).memory is Memory.DRAM)
    registers = tuple(key for key in _read_again(graph, map) if key not in far)
    return UnitGraph(graph, form, inner, registers, far, sums, totals)


def _steps(map: ParallelMap) -> Iterator[tuple[Pass, object]]:
    return ((one, step) for one in map.passes for step in one.body)


def _loads(map: ParallelMap) -> tuple[Key, ...]:
    """Return the elements that passes with loops read, in order of first use."""
    keys = (
        (step.buffer, step.indices)
        for one, step in _steps(map)
        if one.over and isinstance(step, Load)
    )
    return tuple(dict.fromkeys(keys))


def _read_again(graph: Dataflow, map: ParallelMap) -> Iterator[Key]:
    """Yield the elements in near memory, and those in main memory of several passes."""
    for key in _loads(map):
        passes = [
            number
            for number, one in enumerate(map.passes)
            for step in one.body
            if one.over and isinstance(step, Load | Store) and (step.buffer, step.indices) == key
        ]
        if graph.buffer(key[0]).memory is Memory.NEAR or len(passes) > 1:
            yield key


# ---------------------------------------------------------------- what units can share


def _check(graph: Dataflow, form: SlabForm, inner: tuple[str, ...]) -> None:
    """Raise NoSlabError with the reason where units cannot share the slabs of a graph."""
    if len(graph.maps) > 1:
        raise NoSlabError("its values have no slabs in common")
    (map,) = graph.maps
    for one, step in _steps(map):
        if one.over and one.over != inner:
            raise NoSlabError(PARTIAL)
        if isinstance(step, Load | Store):
            buffer = graph.buffer(step.buffer)
            if buffer.memory is Memory.DRAM and buffer.role is Role.TEMPORARY:
                raise NoSlabError(f"{buffer.name} does not fit into a slab")
            if buffer.memory is Memory.NEAR:
                _check_near(one, step, inner)
            elif isinstance(step, Store):
                _check_store(one, step, form, inner)
    _check_results(map)


def _check_results(map: ParallelMap) -> None:
    """Raise NoSlabError where a thread would read an element that another thread stores."""
    steps = [(one, step) for one, step in _steps(map) if isinstance(step, Load | Store)]
    stored = {step.buffer for _, step in steps if isinstance(step, Store)}
    places: dict[str, set[tuple[bool, tuple[str, ...]]]] = {}
    for one, step in steps:
        if step.buffer in stored:
            places.setdefault(step.buffer, set()).add((bool(one.over), step.indices))
            if isinstance(step, Load) and not one.over:
                raise NoSlabError(f"{step.buffer} is stored by one thread and read by others")
    for name, elements in places.items():
        if len(elements) > 1:
            raise NoSlabError(f"{name} is read at other elements than it is stored")


def _check_near(one: Pass, step: Load | Store, inner: tuple[str, ...]) -> None:
    if one.over != inner or {*step.indices} != {*inner}:
        raise NoSlabError(PARTIAL)
    if isinstance(step, Store) and step.operator is not None:
        raise NoSlabError(PARTIAL)


def _check_store(one: Pass, step: Store, form: SlabForm, inner: tuple[str, ...]) -> None:
    inside = {*step.indices} - form.single
    slabs = {*step.indices} & form.single
    if inside != ({*inner} if one.over else set()):
        raise NoSlabError(f"{step.buffer} has some of the indices inside of slabs alone")
    if slabs != form.single and (step.operator is None or (one.over and slabs)):
        raise NoSlabError(f"{step.buffer} has some of the indices of slabs alone")
