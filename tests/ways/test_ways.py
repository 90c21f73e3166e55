"""A way to make a kernel is an entry of the table: all that is done with a kernel follows."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from codegen.build import const, mul, sub
from codegen.ir import Block, For, Function, Load, Module, Store, Var
from codegen.machine.target import Target
from codegen.names import Names
from codegen.runtime.signature import Kind, Parameter
from codegen.types import FLOAT64
from taco_py.calls.call import prepare
from taco_py.compiler.lower.bindings import Source
from taco_py.compiler.schedule.commands import Make
from taco_py.compiler.ways import ways
from taco_py.compiler.ways.arrays import size_bindings, tensor_of
from taco_py.compiler.ways.recipe import LoweredRecipe, Recipe, Routine, dense_facts
from taco_py.compiler.ways.way import Offer, Question, Way
from taco_py.data import kernels
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.nodes import Access
from taco_py.running.replay import find
from tests.test_architecture import imports, inside, modules

TEXT = "y[i] = x[i]"
WHY = "the last element first"
RNG = np.random.default_rng(5)
WAYS_FOLDER = "taco_py.compiler.ways"
CALLS: list[str] = []


def can(question: Question) -> bool:
    """Copies of vectors of doubles."""
    problem = question.problem
    types = (problem.result, *(type for _, type in problem.operands))
    vectors = all(t.format.is_dense and t.format.order == 1 for t in types)
    copy = isinstance(problem.assignment.value, Access)
    return copy and vectors and {t.element for t in types} == {"float64"}


def choose(question: Question) -> Offer | None:
    """Those of some length, with a parameter."""
    long = can(question) and question.stats.sizes["i"] >= 8
    return Offer((3,), WHY) if long else None


def lower(recipe: Recipe, _: Target) -> LoweredRecipe:
    """A loop from the last element to the first."""
    problem, names = recipe.problem, Names()
    sizes, bindings = size_bindings(problem, names)
    source = problem.assignment.value
    assert isinstance(source, Access)
    y, x = (
        tensor_of(problem, tensor, names, bindings)
        for tensor in (problem.assignment.target.tensor, source.tensor)
    )
    (size,), i = sizes.values(), Var(names.fresh("i"))
    place = sub(sub(size, 1), i)
    store = Store(y.array, mul(place, y.strides[0]), Load(x.array, mul(place, x.strides[0])))
    loop = For(i, const(0), size, Block((store,)))
    scalars = tuple(v for v in (size, *y.strides, *x.strides) if isinstance(v, Var))
    function = Function(recipe.phase, (y.array, x.array), scalars, Block((loop,)), threaded=True)
    module = Module((function,), recipe.header("backwards"))
    facts = dense_facts(recipe, "nothing", f"backwards, {recipe.schedule.make.parameters[0]}")
    return LoweredRecipe(module, tuple(bindings.items()), facts)


def routine(recipe: Recipe) -> Routine:
    """A function of Python."""
    source = recipe.problem.assignment.value
    assert isinstance(source, Access)
    names = (recipe.problem.assignment.target.tensor, source.tensor)
    parameters = tuple(
        (Parameter(f"{name}_vals", kind, FLOAT64), Source("values", name))
        for name, kind in zip(names, (Kind.OUTPUT, Kind.INPUT), strict=True)
    )
    facts = {**dense_facts(recipe, "nothing"), "threaded": False}
    return Routine(f"{__name__}:backwards", "copy", parameters, facts, "/* backwards */\n")


def backwards(text: str) -> Callable[[Any, Any], None]:
    """The function that a text names."""

    def copy(y: Any, x: Any) -> None:
        CALLS.append(text)
        y[::-1] = x[::-1]

    return copy


LOWERED = Way("backwards", can, choose, lower)
CALLED = Way("backwards", can, choose, routine=routine)


@pytest.fixture(params=(LOWERED, CALLED), ids=("lowered", "called"))
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A table with one way more, and no plan from before or left for others."""
    found: Way = request.param
    monkeypatch.setattr(ways, "WAYS", {found.name: found, **ways.WAYS})
    monkeypatch.setattr(kernels, "MAKERS", kernels.MAKERS | {f"{__name__}:backwards"})
    notes: dict[str, str] = {}
    monkeypatch.setattr(KERNELS, "note", notes.get)
    monkeypatch.setattr(KERNELS, "write_note", notes.__setitem__)
    KERNELS.memo.clear()
    CALLS.clear()
    yield found
    KERNELS.memo.clear()


def refuse(*_: Any) -> Any:
    raise AssertionError("a call was planned again")


def test_a_way_of_the_table_is_chosen_run_and_explained(way: Way) -> None:
    x = RNG.random(20)
    told = tp.explain(TEXT, x=x)
    assert f"backwards   {WHY}" in told
    np.testing.assert_array_equal(tp.evaluate(TEXT, x=x), x)
    assert (["copy"] if way.routine else []) == CALLS
    hit = r"as it is in the library" if way.routine else r"(built now|found in)"
    assert re.search(rf"compiled .* ms, {hit}", told)
    assert ("tiles       backwards, 3" in told) == (way.lower is not None)


def test_it_is_chosen_where_it_offers_alone(way: Way) -> None:
    for x in (RNG.random(5), RNG.random((20, 3))[:, 1].astype("float32"), np.arange(20)):
        np.testing.assert_array_equal(tp.evaluate(TEXT, x=x), x)
        assert "backwards" not in tp.explain(TEXT, x=x)
    assert not CALLS


def test_it_is_replayed(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    tp.evaluate(TEXT, x=RNG.random(20))
    CALLS.clear()
    monkeypatch.setattr(prepare, "make_plan", refuse)
    monkeypatch.setattr("taco_py.calls.call.compute.prepare_within", refuse)
    x = RNG.random(25)
    np.testing.assert_array_equal(tp.evaluate(TEXT, x=x), x)
    KERNELS.memo.clear()  # as in a new process, which finds the call on disk
    monkeypatch.setattr(find, "no_short_way", refuse)
    np.testing.assert_array_equal(tp.evaluate(TEXT, x=x), x)
    assert (["copy", "copy"] if way.routine else []) == CALLS


def test_it_is_compiled_shown_and_exported(way: Way, tmp_path: Path) -> None:
    kernel = tp.compile(TEXT, x=tp.dense(1))
    x = RNG.random(200)
    np.testing.assert_array_equal(kernel(x=x), x)
    assert ("backwards" in kernel.source) and ("backwards" in kernel.explain())
    assert str(kernel.schedule) == ""  # loops alone are commands
    files = {path.name: path.read_text() for path in kernel.export(tmp_path)}
    assert ("backwards" in files["kernel.c"]) == (way.lower is not None)


def test_commands_on_loops_ask_for_loops(way: Way) -> None:
    x = RNG.random(20)
    for schedule in ("split(i,i0,i1,4)", "parallelize(i,CPUThread,NoRaces)"):
        np.testing.assert_array_equal(tp.evaluate(TEXT, x=x, schedule=schedule), x)
        assert "backwards" not in tp.explain(TEXT, x=x, schedule=schedule)


def test_every_way_is_found_by_its_name() -> None:
    for name, each in ways.WAYS.items():
        assert ways.way_of(Make(name)) is each
        assert (each.lower is None) != (each.routine is None)
    with pytest.raises(InternalError, match="found swift"):
        ways.way_of(Make("swift"))


def test_the_last_way_makes_everything() -> None:
    *_, last = ways.WAYS.values()
    assert last.in_loops
    assert Make().way == last.name
    of_cpu = [way for way in ways.WAYS.values() if not way.on_gpu]
    assert [way.name for way in of_cpu if way.in_loops] == [last.name]


def test_nobody_else_names_a_way() -> None:
    """What depends on the way is asked of it, so that a new one needs no edit elsewhere."""
    files = {name for name in ways.WAYS if name != Make().way}
    for module, tree in modules().items():
        if inside(module, "taco_py") and not inside(module, "taco_py.compiler.ways"):
            named = [
                ast.unparse(node)
                for node in ast.walk(tree)
                if isinstance(node, ast.Compare)
                and any(
                    isinstance(part, ast.Attribute) and part.attr == "way"
                    for part in ast.walk(node)
                )
            ]
            assert not named, module
    used = [str(found) for found in imports()
            if not inside(found.module, WAYS_FOLDER)
            if any(inside(found.name, f"{WAYS_FOLDER}.{file}") for file in files)]  # fmt: skip
    assert not used


def test_facts_are_found_once() -> None:
    asked: list[Question] = []

    def fact(question: Question) -> int:
        asked.append(question)
        return len(asked)

    question = Question(None)  # type: ignore[arg-type]
    assert [question.recall(fact), replace(question, libraries=None).recall(fact)] == [1, 1]
    with pytest.raises(InternalError, match="statistics"):
        _ = question.stats
