"""Other code generators for regions of graphs: chosen by sizes, checked, left out if they fail."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.graph.backends.backend import Backend, Facts, ProcessDiedError
from taco_py.graph.backends.interpret_region import interpreted
from taco_py.graph.backends.offloaded_run import OffloadedRun
from taco_py.graph.backends.registered import REGISTERED
from taco_py.graph.nodes import Graph, Node
from taco_py.graph.plain_graphs import plain_graph
from taco_py.graph.read_graphs import read_graph
from tests.graph.blocks import BLOCKS, operands_of, reference
from tests.graph.random_programs import failures, registered_as_greedy

rng = np.random.default_rng(0)


class Recorded:
    """A backend of dense primitives that notes what it is asked, and may fail."""

    def __init__(self, name: str, **costs: Any) -> None:
        self.regions: list[Graph] = []
        self.calls: list[list[Any]] = []
        self.fail: Callable[[list[Any]], Any] = lambda results: results
        self.broken = False
        options = {"launch": 0.0, "always": True, "restart": lambda: None, **costs}
        self.backend = Backend(
            name, options.pop("patterns", ()), options.pop("supports", self.supports),
            self.codegen, self.runtime, **options,
        )  # fmt: skip
        tp.register_backend(self.backend)

    def supports(self, node: Node, facts: Facts) -> bool:
        dense = not any(facts[name].sparsity for name in node.inputs)
        return dense and node.operator in ("map", "reduce", "contract")

    def codegen(self, region: Graph, constants: Mapping[str, Any]) -> Any:
        if self.broken:
            raise NotImplementedError("no such instruction")
        self.regions.append(region)
        text = json.dumps(plain_graph(region))
        return interpreted(read_graph(json.loads(text))), dict(constants)

    def runtime(self, compiled: Any, arrays: Sequence[Any]) -> Any:
        self.calls.append([*arrays])
        return self.fail(compiled[0].run(compiled[1], arrays))


def steps_of(fused: Any, *operands: Any) -> list[str]:
    """What computes a graph, by the kinds of its steps."""
    call = fused.graph(*operands).call
    return [
        step.task.backend.name if isinstance(step, OffloadedRun) else type(step).__name__
        for step in call.program_of(operands).steps
    ]


def told_of(fused: Any, *operands: Any) -> tuple[Any, list[str]]:
    """A result, and the warnings of backends that came with it."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        found = fused(*operands)
    return found, [str(each.message) for each in given if each.category is tp.BackendWarning]


BLAS = pytest.param("blas", marks=pytest.mark.needs_blas("threads"))

# ---------------------------------------------------------------- what is offloaded


@pytest.mark.needs_blas("threads")
def test_small_products_stay_and_large_ones_go() -> None:
    for backends, last in ((("blas",), "blas"), (("blas", "own"), "blas"), (("own", "blas"), None)):
        fused = tp.fuse(lambda a, b: a @ b, backends=backends)
        small, large = rng.random((8, 8)), rng.random((512, 512))
        for a in (small, large, small, large):
            np.testing.assert_allclose(fused(a, a), a @ a, rtol=1e-12)
        assert steps_of(fused, small, small) == ["KernelRun"]
        assert steps_of(fused, large, large) == [last or "KernelRun"]
        assert len(fused.traces) == 1


def test_no_backend_is_used_where_none_is_named() -> None:
    assert steps_of(tp.fuse(lambda a: a @ a), rng.random((512, 512))) == ["KernelRun"]


@pytest.mark.rotating(5)
@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("backend", [BLAS, "recorded_block"])
def test_blocks_give_numpys_numbers(name: str, backend: str) -> None:
    if backend == "blas":
        (backend,) = registered_as_greedy(["blas"])
    else:
        Recorded(backend)
    fused = tp.fuse(BLOCKS[name], backends=(backend,))
    for size in (12, 17):
        operands = operands_of(name, size)
        for _ in range(2):
            np.testing.assert_allclose(fused(*operands), reference(name, operands), rtol=1e-9)
    products = ("linear_attention", "graph_convolution", "feed_forward")
    dense = name != "attention"  # whose values are computed where the mask has entries
    assert (backend in steps_of(fused, *operands)) == (
        name in products or (backend == "recorded_block" and dense)
    )


def test_random_programs_give_numpys_numbers() -> None:
    assert not [*failures(6, seed=300, backends=registered_as_greedy(["jsonvm", "blas"]))]


def test_what_a_sparse_mask_asks_few_elements_of_is_never_made_dense() -> None:
    Recorded("masked")
    M = sp.random_array((40, 40), density=0.05, rng=rng, format="csr")
    Q, K = rng.random((40, 8)), rng.random((40, 8))
    fused = tp.fuse(lambda M, Q, K: M * (Q @ K.T), backends=("masked",))
    assert steps_of(fused, M, Q, K) == ["KernelRun"]
    np.testing.assert_allclose(fused(M, Q, K).toarray(), M.toarray() * (Q @ K.T))


def test_the_diamond_is_three_functions_where_regions_are_limited() -> None:
    """The published figure: two branches of 2n primitives, and the one that joins them."""

    def diamond(x: Any) -> Any:
        left, right = x, x
        for k in range(4):
            left, right = left * (k + 2.5), right + (k + 1.5)
        return left @ right

    x = rng.random((6, 6))
    for most, regions in ((None, 1), (9, 1), (8, 2), (5, 2)):
        own = Recorded("figure", most_primitives=most)
        fused = tp.fuse(diamond, backends=("figure",))
        np.testing.assert_allclose(fused(x), diamond(x))
        assert steps_of(fused, x) == ["figure"] * regions
        assert sorted(len(each.nodes) for each in own.regions) == ([9] if regions == 1 else [4, 5])
    told = fused.graph(x).explain()
    assert "one of 2 parts of 9 primitives, always" in told


def test_composites_are_found_by_patterns_and_facts() -> None:
    text = "maximum(y := add(contract(x, w), b), _)"
    rows: list[Any] = []

    def holds(nodes: Mapping[str, Node], facts: Facts) -> bool:
        rows.append((facts["x"].shape, facts["b"].dtype, nodes["y"].operator))
        return facts["x"].shape[0] > 4

    own = Recorded("npu", patterns=(tp.Pattern("dense_relu", text, holds),), supports=None)
    fused = tp.fuse(lambda x, w, b: np.maximum(x @ w + b, 0), backends=("npu",))
    w, b = rng.random((3, 2)) - 0.5, rng.random(2)
    for size in (4, 5, 4):
        x = rng.random((size, 3)) - 0.5
        np.testing.assert_allclose(fused(x, w, b), np.maximum(x @ w + b, 0))
    assert rows[0] == ((4, 3), "float64", "map") and len(own.calls) == 1
    assert "as dense_relu" in fused.graph(rng.random((5, 3)), w, b).explain()


def test_a_region_is_a_graph_of_its_own_for_all_sizes() -> None:
    own = Recorded("alone", supports=lambda node, facts: node.get("function") == "multiply")
    fused = tp.fuse(
        lambda x, y: np.cumsum(x * 2, 1) * (y[:, None] * x.shape[1]), backends=("alone",)
    )
    for shape in ((2, 3), (4, 3), (3, 5)):
        x, y = rng.random(shape), rng.random(shape[0])
        np.testing.assert_allclose(fused(x, y), np.cumsum(x * 2, 1) * (y[:, None] * shape[1]))
    for region in own.regions:
        names = {each.name for each in region.inputs}
        read = {name for node in region.nodes for name in node.inputs}
        assert read - {n.name for n in region.nodes} <= names | {c.name for c in region.constants}
        assert not region.numbers
        assert str(read_graph(json.loads(json.dumps(plain_graph(region))))) == str(region)
    assert len(own.regions) <= 2


def test_sizes_are_numbers_for_backends_that_want_them() -> None:
    own = Recorded("sized", sized=True)
    fused = tp.fuse(lambda x: x * 2 + x[0], backends=("sized",))
    for rows in (3, 5, 3):
        x = rng.random((rows, 2))
        np.testing.assert_allclose(fused(x), x * 2 + x[0])
    shapes = [[e.constant for e in region.nodes[-1].shape] for region in own.regions]
    assert shapes == [[3, 2], [5, 2]]


def test_constants_are_bound_when_a_region_is_compiled() -> None:
    W = rng.random((3, 3))
    own = Recorded("binds")
    fused = tp.fuse(lambda x: x @ W, backends=("binds",))
    x = rng.random((2, 3))
    for _ in range(2):
        np.testing.assert_allclose(fused(x), x @ W)
    assert [len(call) for call in own.calls] == [1, 1] and len(own.regions) == 1
    W[0, 0] += 1
    np.testing.assert_allclose(fused(x), x @ W)
    assert len(own.regions) == 2


def test_kernels_and_backends_share_memory() -> None:
    own = Recorded("shared", supports=lambda node, facts: node.operator == "contract")
    fused = tp.fuse(lambda x: np.cumsum((x @ x) * 2, 1), backends=("shared",))
    x = rng.random((5, 5))
    made: list[int] = []  # what a backend keeps itself is copied: where it lies is all that is kept
    own.fail = lambda results: made.extend(each.ctypes.data for each in results) or results
    fused(x)
    assert own.calls[0][0].ctypes.data == x.ctypes.data and not own.calls[0][0].flags.writeable
    call = fused.graph(x).call
    values = call.program.begin((x,))
    program = call.program_of((x,))
    program.steps[0].run(program.graph, values)
    (name,) = program.steps[0].outputs
    assert values[name].ctypes.data == made[-1]


# ---------------------------------------------------------------- what fails


def wrong_shape(results: list[Any]) -> Any:
    return [each[1:] for each in results]


def wrong_dtype(results: list[Any]) -> Any:
    return [each.astype("float32") for each in results]


def raises(results: list[Any]) -> Any:
    raise FloatingPointError("the device is on fire")


FAILURES = {
    "a result of shape (3, 4) instead of (4, 4)": wrong_shape,
    "a result of float32 instead of float64": wrong_dtype,
    "0 results instead of 1": lambda results: [],
    "a result that is NoneType, not a sequence": lambda results: None,
    "a result that is list, no array": lambda results: [each.tolist() for each in results],
    "FloatingPointError: the device is on fire": raises,
}


@pytest.mark.parametrize("told", FAILURES)
def test_what_fails_is_told_once_and_computed_by_the_host(told: str) -> None:
    own = Recorded("failing")
    own.fail = FAILURES[told]
    fused = tp.fuse(lambda x: np.exp(x @ x) - 1, backends=("failing",))
    x = rng.random((4, 4))
    found, given = told_of(fused, x)
    np.testing.assert_allclose(found, np.exp(x @ x) - 1)
    assert len(given) == 1 and told in given[0] and "p0, p1, p2" in given[0]
    assert "test_backends.py" in given[0] and "hint: the host computes it" in given[0]
    found, given = told_of(fused, x)
    np.testing.assert_allclose(found, np.exp(x @ x) - 1)
    assert not given and len(own.calls) == 1
    assert steps_of(fused, x) == ["KernelRun"]
    assert f"host: {told}" in fused.graph(x).explain()


def test_a_region_that_does_not_compile_is_told_once() -> None:
    own = Recorded("broken")
    own.broken = True
    fused = tp.fuse(lambda x: x * 2 + 1, backends=("broken",))
    x = rng.random(4)
    for expected in (1, 0, 0):
        found, given = told_of(fused, x)
        np.testing.assert_allclose(found, x * 2 + 1)
        assert len(given) == expected
    assert "host: NotImplementedError: no such instruction" in fused.graph(x).explain()


def test_errors_of_the_users_are_not_taken_for_a_backends() -> None:
    Recorded("innocent")
    fused = tp.fuse(lambda x, y: x @ y, backends=("innocent",))
    with pytest.raises(ValueError, match="as many columns as the other has rows"):
        fused(rng.random((2, 3)), rng.random((2, 3)))


@pytest.mark.parametrize("deaths", [1, 2, 3])
def test_a_process_that_dies_is_restarted_once(deaths: int) -> None:
    restarts: list[int] = []
    own = Recorded("mortal", restart=lambda: restarts.append(1))
    left = [deaths]

    def fail(results: list[Any]) -> Any:
        if left[0]:
            left[0] -= 1
            raise ProcessDiedError("signal 9")
        return results

    own.fail = fail
    fused = tp.fuse(lambda x: x * 2 + 1, backends=("mortal",))
    x = rng.random(4)
    found, given = told_of(fused, x)
    np.testing.assert_allclose(found, x * 2 + 1)
    assert len(restarts) == 1 and len(own.regions) == 2
    if deaths == 1:
        assert not given and steps_of(fused, x) == ["mortal"]
        return
    assert len(given) == 1 and "its process ended 2 times: ProcessDiedError: signal 9" in given[0]
    found, given = told_of(fused, x)
    np.testing.assert_allclose(found, x * 2 + 1)
    assert not given and len(own.calls) == 2 and steps_of(fused, x) == ["KernelRun"]
    assert "mortal    is left out: its process ended" in fused.graph(x).explain()
    again = tp.fuse(lambda x: x * 3, backends=("mortal",))
    assert told_of(again, x)[1] == [] and steps_of(again, x) == ["KernelRun"]


# ---------------------------------------------------------------- what users state


def chain(x: Any) -> Any:
    return np.sqrt(np.exp(x) + np.cumsum(np.exp(x)))


def test_users_state_regions() -> None:
    own = Recorded("stated", launch=1.0, always=False)
    x = rng.random(5)
    fused = tp.fuse(chain, backends=("stated",), regions={"stated": [("p0",)]})
    np.testing.assert_allclose(fused(x), chain(x))
    assert len(own.calls) == 1
    assert "stated by the user" in fused.graph(x).explain()
    made = tp.fuse(
        chain, backends=("stated",),
        regions=lambda graph: {"stated": [[graph.nodes[-1].name]]},
    )  # fmt: skip
    np.testing.assert_allclose(made(x), chain(x))
    assert [node.get("function") for node in own.regions[-1].nodes] == ["sqrt"]


def test_lazy_arrays_are_computed_by_backends() -> None:
    recorded = Recorded("noted_later")
    x = rng.random((5, 4))
    with tp.lazy(backends=("noted_later",)) as later:
        y = np.exp(later(x)).sum(0)
    np.testing.assert_allclose(y.compute(), np.exp(x).sum(0))
    assert len(recorded.calls) == 1
    with pytest.raises(tp.ScheduleError, match="noted_nowhere"):
        tp.lazy(backends=("noted_nowhere",))


def test_regions_that_wait_for_themselves_are_refused_with_the_path() -> None:
    Recorded("stated")
    x = rng.random(5)
    fused = tp.fuse(chain, backends=("stated",), regions={"stated": [("p0", "p2")]})
    with pytest.raises(tp.ScheduleError, match=r"found the path 0 exp → 1 .* → 2 add"):
        fused(x)

    def crossed(x: Any) -> Any:
        a, b = np.exp(x), np.sqrt(x)
        return np.cumsum(a) * b, np.cumsum(b) * a

    names = [["exp", "multiply"], ["sqrt", "multiply"]]

    def regions(graph: Graph) -> dict[str, list[list[str]]]:
        found = {
            n: [e.name for e in graph.nodes if e.get("function") == n] for n in names[0] + names[1]
        }
        first, second = found["multiply"]
        return {"stated": [[*found["exp"], first], [*found["sqrt"], second]]}

    with pytest.raises(tp.ScheduleError, match=r"regions that do not wait for each other|convex"):
        tp.fuse(crossed, backends=("stated",), regions=regions)(x)


@pytest.mark.parametrize(
    ("regions", "message"),
    [
        ({"stated": [("p9",)]}, "to name primitives, found 'p9'"),
        ({"other": [("p0",)]}, "regions= of stated, found 'other'"),
        ({"stated": [("p1",)]}, "a region that stated computes, found p1 numpy cumsum"),
        ({"stated": [("p0",), ("p0", "p2")]}, "disjoint regions"),
        ({"stated": [()]}, "to compute something"),
    ],
)
def test_regions_that_are_none_are_refused(regions: Any, message: str) -> None:
    Recorded("stated")
    with pytest.raises(tp.ScheduleError, match=message):
        tp.fuse(chain, backends=("stated",), regions=regions)(rng.random(5))


def test_names_that_are_none_are_refused() -> None:
    with pytest.raises(tp.ScheduleError, match=r"found 'blass'(.|\n)*blas"):
        tp.fuse(chain, backends=("blass",))
    with pytest.raises(tp.ScheduleError, match="found 'blas' twice"):
        tp.fuse(chain, backends=("blas", "blas"))
    with pytest.raises(tp.OperandTypeError, match=r"Expected a tp.Backend"):
        tp.register_backend("blas")  # type: ignore[arg-type]
    with pytest.raises(tp.ScheduleError, match="identifier but 'own'"):
        replace(REGISTERED.find("blas"), name="own")
    with pytest.raises(tp.OperandTypeError, match="codegen of x to be a function"):
        Backend("x", (), None, None, None)  # type: ignore[arg-type]
    with pytest.raises(tp.NotationError, match="pattern of operators"):
        tp.Pattern("x", "a + b")


def test_graphs_that_were_read_are_computed_by_backends(tmp_path: Any) -> None:
    own = Recorded("loaded")
    x = rng.random((3, 3))
    graph = tp.fuse(lambda x: np.exp(x @ x)).graph(x)
    graph.save(tmp_path / "x.json")
    found = tp.graph.load(tmp_path / "x.json", backends=("loaded",))
    np.testing.assert_allclose(found(x), np.exp(x @ x))
    assert len(own.calls) == 1


def test_pictures_and_reports_show_who_computes() -> None:
    Recorded("shown", supports=lambda node, facts: node.get("function") == "exp")
    x = rng.random(4)
    graph = tp.fuse(chain, backends=("shown",)).graph(x)
    assert "step 1: shown" in graph._repr_svg_()
    told = graph.explain()
    assert "regions of backends" in told and "step 1    shown computes p0" in told
    assert "shown     p0 exp  test_backends.py" in told and "always" in told


def test_functions_that_say_what_a_backend_computes_may_fail() -> None:
    def broken(*given: Any) -> bool:
        raise KeyError("no entry")

    plain = Recorded("plain")
    for change in ({"supports": broken}, {"seconds": broken, "always": False}):
        backend = replace(plain.backend, name="broken", **change)  # type: ignore[arg-type]
        tp.register_backend(backend)
        found, given = told_of(tp.fuse(lambda x: np.exp(x) + 1, backends=("broken",)), np.ones(4))
        np.testing.assert_allclose(found, np.exp(np.ones(4)) + 1)
        assert len(given) == 1 and "KeyError" in given[0]


def test_results_of_a_backend_are_never_the_arguments() -> None:
    tp.register_backend(
        tp.Backend(
            "mirror", (), lambda node, facts: node.get("function") == "exp",
            lambda region, constants: None, lambda compiled, arrays: [arrays[0].view()],
            always=True,
        )
    )  # fmt: skip
    x = np.ones(5)
    found = tp.fuse(lambda a: np.exp(a), backends=("mirror",))(x)
    assert found.flags.writeable and not np.shares_memory(found, x)


@pytest.mark.parametrize(
    ("backends", "regions"),
    [(("blas",), [("p0",)]), ((), {"blas": [["p0"]]}), (("blas",), {"blas": ["p0"]})],
)
def test_regions_of_another_kind_are_refused(backends: Any, regions: Any) -> None:
    with pytest.raises(tp.ScheduleError, match="lists of names by one of backends="):
        tp.fuse(lambda x: x @ x, backends=backends, regions=regions)
