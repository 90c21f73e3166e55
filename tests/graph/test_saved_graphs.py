"""A graph that was saved computes what it did in memory; what others write into it is not run."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.graph.extents import Extent, compiled, const, evaluated, total
from taco_py.graph.plain_graphs import plain_graph
from taco_py.graph.read_graphs import WrongGraphError, read_graph
from taco_py.graph.samples import NUMPY_CALLS, numpy_function
from tests.readers.graph_samples import graph_of_step, saved_graphs

GRAPHS = saved_graphs()


def leaves(found: Any) -> list[Any]:
    """What a result is made of, in order."""
    if isinstance(found, dict):
        return [[*found], *(each for value in found.values() for each in leaves(value))]
    if isinstance(found, tuple | list):
        return [type(found), *(each for value in found for each in leaves(value))]
    return [found.toarray() if sp.issparse(found) else found]


def assert_equal(found: Any, expected: Any) -> None:
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        assert type(one) is type(other)
        if isinstance(other, np.ndarray | np.generic):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
        else:
            assert one == other


@pytest.mark.parametrize("name", GRAPHS)
def test_a_graph_from_a_file_computes_what_it_did(tmp_path: Path, name: str) -> None:
    graph, path = GRAPHS[name], tmp_path / "graph.json"
    graph.save(path)
    read = tp.graph.load(path)
    operands = graph.operands
    assert_equal(read(*operands), graph(*operands))
    assert str(read) == str(graph)
    assert [str(each) for each in read.primitives.nodes] == [
        str(each) for each in graph.primitives.nodes
    ]
    told, was = read.explain(*operands), graph.explain()
    assert told.splitlines()[1:3] == was.splitlines()[1:3]
    read.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == path.read_text()
    assert_equal(tp.graph.load(path, optimize="greedy")(*operands), graph(*operands))


@pytest.mark.parametrize("inner", [None, "slope"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (np.cumsum(x) ** 3 + y).sum(),
        lambda x, y: (x[::-1] * y * x).sum(),
        lambda x, y: (x + y).sum(),
        lambda x, y: (np.outer(x, y).T ** 2).sum(),
        lambda x, y: (np.concatenate([x, y]) ** 3).sum(),
        lambda x, y: (x.reshape(1, -1) ** 2).sum() + y.prod(),
    ],
    ids=["cumsum", "flipped", "broadcast twice", "transposed", "parts", "reshaped"],
)
def test_gradients_with_memory_of_their_own_are_read(
    tmp_path: Path, function: Callable[[Any, Any], Any], inner: str | None
) -> None:
    x, y = np.array([1.0, 2.0, 4.0]), np.array([0.5, -1.0, 3.0])
    gradient = tp.grad(function, ("x", "y"))
    if inner is not None:
        slopes, power = gradient, np.array([1.0, 0.0, 2.0])
        gradient = tp.grad(
            lambda x, y: sum((each * power + x).sum() for each in slopes(x, y)), ("x", "y")
        )
    graph = gradient.graph(x, y)
    graph.save(tmp_path / "gradient.json")
    found = tp.graph.load(tmp_path / "gradient.json")(x, y)
    assert_equal(found, gradient(x, y))
    assert not np.shares_memory(*found)


def test_steps_go_on_from_a_file(tmp_path: Path) -> None:
    graph, operands = graph_of_step("adam")
    graph.save(tmp_path / "step.json")
    value, parameters, moments = tp.graph.load(tmp_path / "step.json")(*operands)
    assert {*parameters} == {"W", "b"} and all({*each} == {"W", "b"} for each in moments.values())
    expected = graph(*operands)
    assert_equal((value, parameters, moments), expected)


def test_files_of_functions_have_the_layout_that_they_had(tmp_path: Path) -> None:
    GRAPHS["softmax"].save(tmp_path / "f.json")
    GRAPHS["grad cube"].save(tmp_path / "g.json")
    whole, of_gradient = (json.loads((tmp_path / n).read_text()) for n in ("f.json", "g.json"))
    assert whole["taco_py graph"] == 1 and "derived" not in whole
    assert of_gradient["taco_py graph"] == 2
    for changed in ({**of_gradient, "taco_py graph": 1}, {**whole, "taco_py graph": 2},
                    {**whole, "taco_py graph": 3}, {**whole, "taco_py graph": True}):  # fmt: skip
        (tmp_path / "h.json").write_text(json.dumps(changed))
        with pytest.raises(tp.FileFormatError, match=r"h\.json"):
            tp.graph.load(tmp_path / "h.json")


def test_results_that_no_file_holds_are_not_saved(tmp_path: Path) -> None:
    from typing import NamedTuple

    class Pair(NamedTuple):
        one: Any
        other: Any

    graph = tp.fuse(lambda x: Pair(x, x + 1)).graph(np.ones(2))
    with pytest.raises(tp.OperandTypeError, match="found Pair"):
        graph.save(tmp_path / "g.json")


# ---------------------------------------------------------------- what others write

CODE = "open({!r}, 'w').close()"


def _npy(array: Any, **options: Any) -> str:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return base64.b64encode(buffer.getvalue()).decode()


class _Pickled:
    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return open, (self.mark, "w")


def _set(*path: Any) -> Callable[..., Callable[[Any, str], None]]:
    """Put what a function of the mark gives into a place."""

    def put(value: Callable[[str], Any]) -> Callable[[Any, str], None]:
        def change(whole: Any, mark: str) -> None:
            holder = whole
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = value(mark)

        return change

    return put


def _holds(value: Callable[[str], Any]) -> Callable[[Any, str], None]:
    return _set("holds")(lambda mark: [[{"extent": value(mark)}, 1]])


def _node(operator: str, inputs: list[str], attributes: list[Any], dtype: str = "float64") -> Any:
    return ["v90", operator, inputs, attributes, [[], dtype, "", 0, False], ""]


def _saves(operator: str, *attributes: Any) -> Callable[[Any, str], None]:
    """A node that would have NumPy write a file of the mark's name, or read one."""

    def change(whole: Any, mark: str) -> None:
        whole["constants"].append(["k90", [[], "float64", "", 0, False], mark])
        whole["nodes"].append(_node(operator, ["k90", whole["inputs"][0][0]], [*attributes]))
        whole["outputs"][0] = "v90"

    return change


HARMS: dict[str, Callable[[Any, str], None]] = {
    "name of an input": _set("inputs", 0, 0)(lambda mark: f"x=({CODE.format(mark)})"),
    "name of an operand": _set("inputs", 0, 0)(lambda mark: f"x, y={CODE.format(mark)}"),
    "name of a node": _set("nodes", 0, 0)(lambda mark: f"v0 = {CODE.format(mark)}\n"),
    "keyword": _set("inputs", 0, 0)(lambda mark: "lambda"),
    "other letters": _set("nodes", 0, 0)(lambda mark: "ñ"),
    "operator of a size": _holds(lambda mark: [f"(lambda *a: {CODE.format(mark)})", 1]),
    "function of a size": _holds(lambda mark: ["np.save", mark, ["const", 1]]),
    "function of NumPy": _holds(lambda mark: [f"np.{CODE.format(mark)}", ["const", 1]]),
    "value": _holds(lambda mark: ["value", CODE.format(mark)]),
    "size": _holds(lambda mark: ["size", f"({CODE.format(mark)} or np.ones(1))", 0]),
    "axis": _holds(lambda mark: ["size", "x", f"0 if {CODE.format(mark)} else 0"]),
    "constant": _holds(lambda mark: ["const", CODE.format(mark)]),
    "attribute of a size": _holds(lambda mark: ["value", "x.__class__"]),
    "shape": _set("inputs", 0, 1, 0, 0)(lambda mark: {"extent": ["value", CODE.format(mark)]}),
    "operator": _set("nodes", 0, 1)(lambda mark: f"exp or {CODE.format(mark)}"),
    "NumPy's save": _saves("save"),
    "NumPy's load": _saves("load"),
    "fromfile": _saves("fromfile"),
    "a call of save": _saves("call", ["function", "save"], ["options", {"tuple": []}]),
    "a call of a module": _saves("call", ["function", "lib.format"], ["options", {"tuple": []}]),
    "a primitive": _saves("numpy", ["call", "save"]),
    "a map": _saves("map", ["function", "save"]),
    "dtype": _set("inputs", 0, 1, 1)(lambda mark: "O"),
    "dtype of records": _set("inputs", 0, 1, 1)(lambda mark: "i4,(99999999,)f8"),
    "format": _set("inputs", 0, 1, 2)(lambda mark: CODE.format(mark)),
    "pickle": _set("constants")(lambda mark: [
        ["k90", [[{"extent": ["const", 1]}], "object", "", 0, False],
         {"array": _npy(np.array([_Pickled(mark)], object), allow_pickle=True)}]]),
    "a class of SciPy": _set("constants")(lambda mark: [
        ["k90", [[], "float64", "", 0, False],
         {"sparse": ["random_array", [2], _npy(np.zeros(1, int)), _npy(np.ones(1))]}]]),
    "the place of a result": _set("returns")(lambda mark: {"output": -1}),
    "a result that is not there": _set("returns")(lambda mark: {"output": 7}),
    "a key that is no value": _set("returns")(lambda mark: {"dict": [[{"list": []}, 1]]}),
    "a result": _set("outputs", 0)(lambda mark: CODE.format(mark)),
    "an input": _set("nodes", 0, 2, 0)(lambda mark: CODE.format(mark)),
    "a power": _holds(lambda mark: ["**", {"extent": ["const", 10]}, {"extent": ["const", 10**9]}]),
    "no list": _set("nodes")(lambda mark: {"a": 1}),
    "no object": _set("derived")(lambda mark: []),
    "no rows": _set("holds")(lambda mark: [1]),
    "a number": _set("numbers")(lambda mark: [
        ["n90", [[], "int", "", 0, True], {"extent": ["value", CODE.format(mark)]}]]),
}  # fmt: skip


@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.parametrize("name", HARMS)
def test_what_a_file_says_is_never_run(tmp_path: Path, name: str, derived: bool) -> None:
    graph, path, mark = (
        GRAPHS["grad cube" if derived else "softmax"],
        tmp_path / "g.json",
        tmp_path / "m",
    )
    graph.save(path)
    whole = json.loads(path.read_text())
    HARMS[name](whole, str(mark))
    if derived and name not in ("no object", "the place of a result", "a result that is not there"):
        HARMS[name](whole["derived"], str(mark))
    path.write_text(json.dumps(whole))
    with pytest.raises(tp.FileFormatError, match=r"g\.json"):
        tp.graph.load(path)(*graph.operands)
    assert not mark.exists()


OTHERS = (
    "[" * 5000, '{"taco_py graph": 1, "inputs": ' + "[" * 5000 + "]" * 5000 + "}", "", "1", "null",
    "\xff\xfe\x00", '{"taco_py graph": "1"}', '{"taco_py graph": [1]}',
)  # fmt: skip


@pytest.mark.parametrize("text", OTHERS)
def test_other_texts_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.json"
    path.write_bytes(text.encode("latin1"))
    with pytest.raises(tp.FileFormatError, match=r"other\.json"):
        tp.graph.load(path)


def test_arrays_are_as_long_as_they_say(tmp_path: Path) -> None:
    graph = GRAPHS["constant"]
    graph.save(tmp_path / "g.json")
    whole = json.loads((tmp_path / "g.json").read_text())
    place = next(k for k, each in enumerate(whole["constants"]) if isinstance(each[2], dict))
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,), }"
    lies = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(16)
    whole["constants"][place][2] = {"array": base64.b64encode(lies).decode()}
    (tmp_path / "g.json").write_text(json.dumps(whole))
    with pytest.raises(tp.FileFormatError, match="16 bytes for an array"):
        tp.graph.load(tmp_path / "g.json")


# ---------------------------------------------------------------- the generator by itself


WRONG = (
    Extent("value", ("open('m','w')",)), Extent("size", ("a", "0].x[0")),
    Extent("np.save", (const(1),)), Extent("(lambda: 1)", ()), Extent("size", ("b", 0)),
    Extent("+", (const(1),)),
)  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_generator_writes_nothing_but_names_of_its_own(wrong: Extent) -> None:
    with pytest.raises(tp.InternalError):
        compiled((wrong,), ("a",))


def test_names_of_operands_are_replaced() -> None:
    name = "__import__('os').abort()"
    sizes = (Extent("size", (name, 0)), Extent("np.sqrt", (Extent("size", (name, 1)),)), const(-2),
             const(float("nan")), const(2**70), Extent("np.expit", (const(0.0),)))  # fmt: skip
    found = compiled(sizes, (name,))(np.ones((3, 4)))
    assert found[:3] == (3, 2.0, -2) and np.isnan(found[3]) and found[4:] == (2**70, 0.5)


def test_numbers_of_many_parts_are_computed() -> None:
    parts = [
        Extent("size", ("a", 0)),
        *(Extent("+", (const(k), Extent("size", ("a", 0)))) for k in range(300)),
    ]
    assert evaluated(total(parts), {"a": np.ones(2)}) == 2 + sum(k + 2 for k in range(300))


def test_only_functions_of_the_table_are_called() -> None:
    for name in ("save", "load", "lib", "linalg", "testing.measure"):
        with pytest.raises(tp.InternalError):
            numpy_function(name)
    assert all(callable(numpy_function(name)) for name in NUMPY_CALLS)


def test_regions_of_other_processes_are_read_the_same_way() -> None:
    for graph in GRAPHS.values():
        for each in (graph.operators, graph.primitives):
            assert str(read_graph(json.loads(json.dumps(plain_graph(each))))) == str(each)
    for wrong in (None, [], {}, {"inputs": [["x"]]}):
        with pytest.raises(WrongGraphError):
            read_graph(wrong)
