"""Results assembled by insertion: the same arrays as by appending, and no room but for entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taco_py as tp
from codegen.ir import Function, Part, Reserve, Sort, Team
from codegen.tree import find
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.loops import lower_recipe
from taco_py.compiler.ways.recipe import Recipe
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.parser import parse_assignment
from tests.corpus.formats import store
from tests.machines import always_threads
from tests.problems import problem

PRODUCT, ADD = "C[i,j] = A[i,k] * B[k,j]", "C[i,j] = A[i,j] + B[i,j]"
Row = tuple[str, dict[str, str], str, str]
CASES: tuple[Row, ...] = (
    (PRODUCT, {"A": "CSR", "B": "CSR"}, "ds", "reorder(i,k,j), "),
    (PRODUCT, {"A": "ss", "B": "CSR"}, "ds", "reorder(i,k,j), "),  # rows are left out
    (PRODUCT, {"A": "ss", "B": "ss"}, "ss", "reorder(i,k,j), "),
    (PRODUCT, {"A": "CSR", "B": "CSR"}, "uc", "reorder(i,k,j), "),
    (PRODUCT, {"A": "CSR", "B": "CSR"}, "ds", "split(i,i0,i1,3), reorder(i0,i1,k,j), "),
    (ADD, {"A": "ss", "B": "ss"}, "ss", ""),
    (ADD, {"A": "CSR", "B": "CSR"}, "ds", "split(i,i0,i1,4), "),
    ("C[i,j] = A[i,j] * x[j]", {"A": "CSR"}, "sd", ""),
    ("y[i] = a[i] + b[i]", {"a": "s", "b": "s"}, "s", ""),
    ("y[i] = A[j,i] * x[j]", {"A": "CSR", "x": "s"}, "s", "reorder(j,i), "),
    ("C[i,j] = A[i,j]", {"A": "ds"}, "ss", ""),  # rows that turn out to be empty
    ("C[i,j,k] = A[i,j,k]", {"A": "dds"}, "sss", ""),
    ("C[i,j,k] = A[i,j,k] + B[i,j,k]", {"A": "sss", "B": "sss"}, "dss", ""),
    ("C[i,j,k] = A[i,j,k] + B[i,j,k]", {"A": "sss", "B": "sss"}, "sss", ""),
    ("C[i,j,k] = A[i,j,k] * B[i,j,k]", {"A": "sss", "B": "sss"}, "dds", ""),
)
POSITIONS = "fuse(i,j,f), pos(f,p,A), split(p,i0,i1,3), "
CASES += (  # tiles that begin within rows
    ("C[i,j] = A[i,j] * U[i,k] * V[j,k]", {"A": "CSR"}, "ds", POSITIONS),
    ("C[i,j] = A[i,j] * U[i,k] * V[j,k]", {"A": "ss"}, "ds", POSITIONS),
    ("C[i,j] = A[i,j] * x[j]", {"A": "uc"}, "ds", POSITIONS),
    ("C[i,j] = A[i,j] * B[i,j]", {"A": "CSR", "B": "CSR"}, "ds", POSITIONS),
    ("C[i,j] = A[i,j]", {}, "ds", "fuse(i,j,f), split(f,i0,i1,3), "),
    ("C[i,j] = A[i,j]", {"A": "ss"}, "ds", "pos(i,p,A), split(p,i0,i1,2), "),
    ("C[i,j] = A[i,j]", {"A": "ss"}, "ss", "pos(i,p,A), split(p,i0,i1,2), "),
    ("C[i,j,k] = A[i,j,k] * x[k]", {"A": "sss"}, "dss", POSITIONS),
    (
        "C[i,j,k] = A[i,j,k] * x[k]", {"A": "sss"}, "dds",
        "fuse(i,j,f), fuse(f,k,g), pos(g,p,A), split(p,i0,i1,4), ",
    ),
)  # fmt: skip
SIZES = {"i": 11, "j": 7, "k": 5}


def operands(text: str, formats: dict[str, str]) -> dict[str, Any]:
    """Sparse operands are a third full; of matrices rows are empty, at the end too."""
    random = np.random.default_rng(5)
    found = {}
    for access in accesses(parse_assignment(text).value):
        array = random.integers(1, 5, tuple(SIZES[i] for i in access.indices)) * 1.0
        if access.tensor in formats:
            array *= random.random(array.shape) < 0.35
            array[[2, 3, -1] if array.ndim > 1 else [-1]] = 0
        found[access.tensor] = store(array, formats.get(access.tensor, "dense"))
    return found


def arrays(tensor: Any) -> list[np.ndarray[Any, Any]]:
    """All that is stored, in the order of the levels."""
    data = tp.tensor(tensor).data
    stored = [array for level in data.levels for array in (level.pos, level.crd)]
    return [np.asarray(array) for array in (*stored, data.values) if array is not None]


def first_loop(text: str, schedule: str) -> str | None:
    """The loop to share: none where the entries of the result are not those of one loop."""
    if schedule.startswith("reorder(j,i)"):
        return None
    return "i0" if "split" in schedule else "i"


@always_threads()
@pytest.mark.parametrize(("text", "formats", "result", "schedule"), CASES)
def test_the_same_arrays_as_by_appending(
    text: str, formats: dict[str, str], result: str, schedule: str
) -> None:
    given, target = operands(text, formats), text[0]
    loop = first_loop(text, schedule)
    shared = "serial()" if loop is None else f"parallelize({loop})"
    expected = tp.evaluate(text, given, format=result, schedule=f"{schedule}serial()")
    for threads in (1, 3):
        found = tp.evaluate(
            text,
            given,
            format=result,
            schedule=f"{schedule}assemble({target},Insert), {shared}",
            threads=threads,
        )
        for one, other in zip(arrays(found), arrays(expected), strict=True):
            np.testing.assert_array_equal(one, other)


def lowered(schedule: str) -> Function:
    whole = problem(PRODUCT, {"A": "CSR", "B": "CSR"}, "ds")
    orders = (("i", "k", "j"),)
    recipe = Recipe(whole, Schedule.of_orders(orders).then(Schedule.parse(schedule)))
    (function,) = lower_recipe(recipe).module.functions
    return function


@pytest.mark.parametrize("shared", ["parallelize(i)", "serial()"])
def test_there_is_room_for_entries_once_they_are_counted(shared: str) -> None:
    """Each array is made once, and threads have no parts of it; only what is written is sorted."""
    function = lowered(f"assemble(C,Insert), {shared}")
    reserved = [r.array.name for r in find(function, Reserve)]
    assert sorted(reserved) == ["C2_crd", "C2_pos", "C_vals"]
    assert not list(find(function, Part))
    assert len(list(find(function, Sort))) == 1
    assert len(list(find(function, Team))) == (2 if shared != "serial()" else 0)
    assert list(find(lowered(f"assemble(C,Append), {shared}"), Reserve)) == list(
        find(lowered(shared), Reserve)
    )


def test_threads_share_tiles_of_entries() -> None:
    """Tiles begin within rows, so that their entries are counted first; nobody has to say so."""
    kernel = tp.compile(
        "C[i,j] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), C=tp.CSR, schedule=f"{POSITIONS}"
    )
    assert "loop i0: each iteration writes its own part of the result; entries are counted " in (
        kernel.explain()
    )
