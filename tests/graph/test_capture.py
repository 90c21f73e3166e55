"""What is traced, what is refused, and when a function is traced again."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.graph import fuse
from taco_py.graph.run.graph_program import make_program
from taco_py.graph.run.partition_by_stages import Region, partition_by_stages

x = np.arange(12.0).reshape(3, 4)
A = sp.csr_array(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0], [4.0, 0.0, 0.0]]))


class Pair(NamedTuple):
    one: Any
    other: Any


def operators(function: Callable[..., Any], *operands: Any) -> list[str]:
    """The operators of a function's graph, in order."""
    return [node.operator for node in tp.fuse(function).graph(*operands).operators.nodes]


def test_functions_operators_and_methods_are_noted() -> None:
    assert operators(lambda a: np.exp(a.T) + a[0].sum() / 2, x) == [
        "transpose", "exp", "slice", "sum", "divide", "add",
    ]  # fmt: skip
    assert operators(lambda a: tp.einsum("ij,kj->ik", a, a) @ np.ones(3), x) == ["einsum", "matmul"]
    assert operators(lambda a: np.concatenate([a, a[:, :2]], -1).reshape(-1), x) == [
        "slice", "concatenate", "reshape",
    ]  # fmt: skip


def test_the_graph_prints_with_sizes_types_and_lines() -> None:
    graph = tp.fuse(lambda a, M: np.where(M, a, 0) * np.float32(2)).graph(x[:, :3], A)
    first, *_, last = str(graph).splitlines()
    assert first == "a: float64[a.shape[0],a.shape[1]] = input"
    assert last == "return v1"
    assert "M: float64[M.shape[0],M.shape[1]] in ds = input" in str(graph)
    assert "multiply(v0, c1)  # test_capture.py:" in str(graph)


def test_numbers_of_sizes_are_those_of_each_call() -> None:
    fused = tp.fuse(lambda a: (a / np.sqrt(a.shape[-1])).sum() + a.size - len(a.shape))
    for size in (4, 6, 9):
        a = np.ones((3, size))
        assert fused(a) == pytest.approx(3 * size / math.sqrt(size) + 3 * size - 2)
    assert [len(traces) for traces in fused.traces.values()] == [1]


def test_a_size_that_decides_is_traced_for() -> None:
    def unrolled(a: Any) -> Any:
        found = a[0]
        for row in range(1, a.shape[0]):
            found = found + a[row]
        return found if a.shape[1] > 5 else -found

    fused = tp.fuse(unrolled)
    for shape in ((2, 4), (3, 4), (3, 7), (2, 4)):
        a = np.ones(shape)
        np.testing.assert_array_equal(fused(a), unrolled(a))
    assert [len(traces) for traces in fused.traces.values()] == [3]


def test_numbers_of_arguments_are_no_reason_to_trace_again() -> None:
    fused = tp.fuse(lambda a, factor, power=2: a * factor**power)
    np.testing.assert_array_equal(fused(x, 0.5), x * 0.25)
    np.testing.assert_array_equal(fused(x, 3.0, power=1), x * 3)
    assert [len(traces) for traces in fused.traces.values()] == [1]


def test_containers_in_containers_out() -> None:
    def function(pair: Any, flag: bool = True) -> Any:
        one, other = pair.one, pair.other
        return {"sum": one + other, "rest": [Pair(one, 3), flag, None]}

    found = tp.fuse(function)(Pair(x, x))
    np.testing.assert_array_equal(found["sum"], 2 * x)
    assert isinstance(found["rest"][0], Pair) and found["rest"][1:] == [True, None]


scale = np.ones(4)


def test_closures_are_constants_by_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.ones(4)
    fused = tp.fuse(lambda a: a * weights + scale)
    fused(x)
    weights[0] = 5.0
    np.testing.assert_array_equal(fused(x), x * weights + scale)
    weights = np.full(4, 3.0)
    monkeypatch.setitem(globals(), "scale", np.full(4, 7.0))
    np.testing.assert_array_equal(fused(x), x * 3 + 7)


def test_sparse_operands_give_sparse_results() -> None:
    found = tp.fuse(lambda M, a: (M * a[:, :3]).T @ M)(A, x)
    assert sp.issparse(found)
    np.testing.assert_allclose(found.toarray(), (A.toarray() * x[:, :3]).T @ A.toarray())
    closure = tp.fuse(lambda a: A @ a)
    np.testing.assert_allclose(closure(x), A @ x)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda a: a if a.sum() > 0 else -a, "np.where(condition, one, other)"),
        (lambda a: float(a[0, 0]), "Expected a number"),
        (lambda a: a.__setitem__(0, 1), "np.where(mask, value, x)"),
        (lambda a: np.linalg.svd(a), "np.svd"),
        (lambda a: np.fft.hfft(a), "np.fft.hfft"),
        (lambda a: np.asarray(a), "leave np.asarray away"),
        (lambda a: a[a > 0], "np.where(mask, x, y)"),
        (lambda a: a + np.ones(3), "stretch to each other"),
        (lambda a: a @ a, "(3, 4) and (3, 4)"),
        (lambda a: a.sum(2), "axis from -2 to 1"),
        (lambda a: np.add(a, 1, out=x), "out="),
        (lambda a: a.fill(0), ".fill"),
        (lambda a: a.sum(hello=1), "hello"),
        (lambda a: np.sort(a, kind="stable"), "np.sort"),
        (lambda a: a[5], "position from -3 to 2"),
        (lambda a: a.reshape(5, 2), "12 elements"),
        (lambda a: a + object(), "found object"),
        (lambda a: a + np.ma.array(x), "found MaskedArray"),
        (lambda a: [a, a][0] + [a, a], "np.stack"),
        (lambda a: lambda: a, "Expected arrays to be returned"),
        (lambda a: np.add.at(a, 0, 1), "np.add.at"),
    ],
)
def test_what_cannot_be_traced_is_refused_with_the_line(
    function: Callable[..., Any], told: str
) -> None:
    with pytest.raises(tp.TacoError) as caught:
        tp.fuse(function).graph(x)
    assert told in str(caught.value)
    assert "lambda a" in str(caught.value)


def test_in_place_operators_bind_names_anew() -> None:
    def function(a: Any) -> Any:
        a += 1
        return a * 2

    given = x.copy()
    np.testing.assert_array_equal(tp.fuse(function)(given), (x + 1) * 2)
    np.testing.assert_array_equal(given, x)


def test_arrays_of_a_trace_stay_inside() -> None:
    kept: list[Any] = []

    def function(a: Any) -> Any:
        kept.append(a)
        return a

    tp.fuse(function).graph(x)
    with pytest.raises(tp.OperandTypeError, match="used after it"):
        kept[0] + 1


def test_texts_and_programs_are_operations() -> None:
    smooth = tp.program("for i in 1..N: B[i] = 0.5 * (A[i-1] + A[i])")

    def function(a: Any) -> Any:
        b = np.zeros_like(a)
        smooth(A=a, B=b, N=a.shape[0])
        return tp.evaluate("y[i] = b[i] * a[i]; s = y[i] * y[i]", a=a, b=b)

    a = np.arange(5.0)
    b = np.zeros(5)
    smooth(A=a, B=b, N=5)
    assert tp.fuse(function)(a) == pytest.approx(((a * b) ** 2).sum())
    with pytest.raises(tp.OperandTypeError, match="copy"):
        tp.fuse(lambda a: smooth(A=a, B=a, N=3)).graph(a)


def test_lazy_arrays_are_computed_together() -> None:
    with tp.lazy() as later:
        product = later(A) @ x + 1
        T = tp.tensor(A)
        total = (T * 2).sum(0)
    np.testing.assert_allclose(product.compute(), A @ x + 1)
    np.testing.assert_allclose(np.asarray(total.compute().to_numpy()), (A * 2).sum(0))
    assert isinstance(T + T, tp.Tensor), "after it, tensors compute at once"


def test_methods_are_traced_with_their_object() -> None:
    class Layer:
        def __init__(self, weights: Any) -> None:
            self.weights = weights

        @tp.fuse
        def apply(self, a: Any) -> Any:
            return a @ self.weights

    layer = Layer(np.ones((4, 2)))
    np.testing.assert_allclose(layer.apply(x), x @ np.ones((4, 2)))
    assert layer.apply is layer.apply
    layer.weights = np.full((4, 2), 3.0)
    np.testing.assert_allclose(layer.apply(x), x @ layer.weights)
    parameters = {"scale": np.ones(4), "rest": [2.0]}
    scaled = tp.fuse(lambda a: a * parameters["scale"] + parameters["rest"][0])
    scaled(x)
    parameters["scale"] = np.full(4, 5.0)
    parameters["rest"][0] = 7.0
    np.testing.assert_allclose(scaled(x), x * 5 + 7)


def test_traced_functions_call_each_other() -> None:
    inner = tp.fuse(lambda a, pair: a + pair[0])
    np.testing.assert_allclose(tp.fuse(lambda a: inner(a * 2, (a,)) - 1)(x), 3 * x - 1)
    swapped = x.astype(">f8")
    np.testing.assert_allclose(tp.fuse(lambda a: a + a)(swapped), 2 * x)


def test_an_error_while_it_runs_names_the_line() -> None:
    fused = tp.fuse(lambda a: np.sort(a.reshape(a.shape[0], -1)) + 1)
    call = fused.graph(x).call
    with pytest.raises(Exception) as caught:
        call.run((object(),))
    assert any("test_capture.py:" in note for note in caught.value.__notes__)


def test_a_partition_of_ones_own_is_run() -> None:
    def one_by_one(graph: Any) -> list[Region]:
        whole = partition_by_stages(graph)
        return [
            Region((node,), (node.name,), region.kernel)
            for region in whole
            for node in region.nodes
        ]

    def function(a: Any) -> Any:
        e = np.exp(a - a.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    graph = tp.fuse(function).graph(x)
    program = make_program(graph.primitives, one_by_one)
    np.testing.assert_allclose(program.run([x])[0], function(x))
    assert len(program.steps) == 5


def test_operands_may_have_any_names() -> None:
    fused = tp.fuse(lambda p0, call, max: np.sum(a=p0 @ call, axis=0) * max)
    np.testing.assert_allclose(fused(x, x.T, 2.0), (x @ x.T).sum(0) * 2)


def test_reductions_of_ufuncs_are_over_the_first_axis() -> None:
    for function in (
        lambda a: np.add.reduce(a), lambda a: np.maximum.reduce(a, axis=None),
        lambda a: np.logaddexp.reduce(a, axis=None), lambda a: np.partition(a, 2, axis=None),
    ):  # fmt: skip
        found, expected = tp.fuse(function)(x), function(x)
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected)


def test_arguments_by_name_are_told_apart_in_any_order() -> None:
    fused = tp.fuse(lambda a, b: a - 2 * b)
    one, ten = np.ones(3), np.full(3, 10.0)
    fused(b=one, a=one)
    for _ in range(2):
        np.testing.assert_array_equal(fused(b=ten, a=one), one - 2 * ten)
        np.testing.assert_array_equal(fused(one, b=ten), one - 2 * ten)


class Scaled:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @tp.fuse
    def times(self, a: Any) -> Any:
        return a * self.factor


def test_copies_of_objects_have_methods_of_their_own() -> None:
    first = Scaled(2.0)
    first.times(x)
    for make in (copy.copy, copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))):
        other = make(first)
        other.factor = 5.0
        np.testing.assert_array_equal(other.times(x), x * 5)
        np.testing.assert_array_equal(first.times(x), x * 2)


def test_arrays_that_a_function_makes_are_made_by_each_call() -> None:
    fused = tp.fuse(lambda a: (np.zeros(4), a + 1))
    fused(x)[0][:] = 9
    np.testing.assert_array_equal(fused(x)[0], 0)


@pytest.mark.parametrize("optimize", ["stages", "greedy", "orchestrate", "none"])
def test_layouts_of_size_1_are_results_beside_what_reads_them(optimize: str) -> None:
    def function(a: Any) -> Any:
        y = np.exp(a)[:, None, :]
        return y, y * a, np.sort(a, 1), a.sum(0), a.all(0), np.count_nonzero(a, axis=0)

    one = np.linspace(0, 1, 4).reshape(1, 4)
    for found, expected in zip(
        tp.fuse(function, optimize=optimize)(one), function(one), strict=True
    ):
        np.testing.assert_allclose(found, expected)


def test_sums_of_matrices_of_scipy_are_refused() -> None:
    matrix = sp.csr_matrix(np.arange(6.0).reshape(2, 3))
    for function in (lambda m: m.sum(1), lambda m: m.T.mean(0)):
        with pytest.raises(tp.OperandTypeError, match=r"csr_array\(A\)"):
            tp.fuse(function)(matrix)
    np.testing.assert_array_equal(tp.fuse(lambda m: m.sum())(matrix), 15)


def test_traces_of_few_kinds_are_kept() -> None:
    fused = tp.fuse(lambda a, text: a + len(text))
    for number in range(2 * fuse.MOST_KINDS):
        fused(1.0, "x" * number) if number % 64 == 0 else fused.traces.setdefault((number,), [])
    fused(x, "other")
    assert len(fused.traces) <= fuse.MOST_KINDS + 1
