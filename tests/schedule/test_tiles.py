"""Tiles that are fused with others, or met in another order than the largest outermost."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.planner.make import Options
from tests.problems import plan, problem

pytestmark = pytest.mark.user_flags

RNG = np.random.default_rng(4)
A = sp.random_array((5, 7), density=0.6, rng=RNG, format="csr")
X = RNG.random(7)
TILES = "fuse(i,j,f), split(f,a,e,4), split(e,c,d,2)"
FUSED = (
    f"{TILES}, reorder(a,d,c), fuse(a,d,h)",
    f"{TILES}, reorder(c,a,d), fuse(c,a,h)",
    f"{TILES}, fuse(a,c,h)",
    f"{TILES}, fuse(c,d,h)",
    "split(j,a,c,3), fuse(i,a,f)",
)


@pytest.mark.parametrize("schedule", FUSED)
def test_entries_are_in_order_however_tiles_are_fused(schedule: str) -> None:
    found = tp.evaluate("C[i,j] = A[i,j] * x[j]", A=A, x=X, format="ds", schedule=schedule)
    np.testing.assert_allclose(found.toarray(), A.toarray() * X)
    assert found.has_sorted_indices


OUTSIDE = (
    "pos(j,p,A), split(p,a,e,2), reorder(i,e,a), coord(e,ec)",
    "pos(j,p,A), split(p,a,e,2), coord(e,ec), reorder(i,ec,a)",
)


@pytest.mark.parametrize("schedule", OUTSIDE)
def test_coordinates_of_a_tile_need_to_know_which(schedule: str) -> None:
    with pytest.raises(ScheduleError, match="the loop over a, which chooses the positions"):
        tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=X, schedule=schedule)


def test_coordinates_of_a_tile_are_no_matter_of_terms_without_them() -> None:
    b, schedule = np.ones(5), "pos(j,p,A), split(p,a,e,2), coord(e,ec)"
    found = tp.evaluate("y[i] = b[i] + A[i,j] * x[j]", A=A, x=X, b=b, schedule=schedule)
    np.testing.assert_allclose(found, b + A @ X)


def test_tiles_of_positions_have_no_coordinates_bounded_or_not() -> None:
    made = tp.schedule("s = x[j] * z[j]", x=tp.dense(1), z="s")
    made.apply("pos(j,p,z), split(p,a,e,2), bound(a,g,9,MaxConstraint)")
    with pytest.raises(ScheduleError, match="g counts tiles of positions"):
        made.apply("coord(g,q)")


PARTS = ("A(i,j) * x(j),i,i", "A(i,j) * x(j),i1,i1", "x(j),{i1,j},{i1,j}", "A(i,j),{i1,j},{i1,j}")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("part", PARTS)
def test_loops_in_tiles_that_read_no_positions_keep_to_the_tile(part: str, threads: int) -> None:
    """Of an index whose tiles were turned into positions of what they do not read."""
    schedule = f"divide(i,i0,i1,2), pos(i1,p,A), precompute({part},w)"
    text, listed = "y[i] = A[i,j] * x[j]", A.tocoo()
    found = tp.evaluate(text, A=listed, x=X, schedule=schedule, threads=threads)
    np.testing.assert_allclose(found, A @ X)


@pytest.mark.parametrize("schedule", ["pos(k,p,B), split(p,a,e,1)", "pos(k,p,B), split(p,a,e,2)"])
def test_tiles_of_positions_in_a_term_that_is_absent_are_left_out(schedule: str) -> None:
    """Rows that A has not, and D has: the tiles of B's entries are not looked for there."""
    rng = np.random.default_rng(0)
    a, b, d = (sp.random_array((4, 4), density=0.5, rng=rng) for _ in range(3))
    operands = {"A": a.tocoo(), "B": tp.tensor(b.tocsr(), format="ss"), "D": d.tocsc()}
    found = tp.evaluate("C[i,j] = A[i,k] * B[k,j] + D[i,j]", operands, schedule=schedule)
    np.testing.assert_allclose(found.to_numpy(), (a @ b + d).toarray())


INSIDE = (
    "split(j,j0,j1,4), pos(j1,p,A), split(p,p0,p1,2), reorder(p0,j0)",
    "split(j,j0,j1,4), pos(j1,p,A), split(j0,j00,j01,2), reorder(p,j00)",
    "split(j,j0,j1,4), pos(j1,p,A), coord(p,c), reorder(c,j0)",
)


@pytest.mark.parametrize("schedule", INSIDE)
def test_tiles_of_coordinates_are_outside_the_positions_in_them(schedule: str) -> None:
    with pytest.raises(ScheduleError, match=r"the loop over j0\d?, which chooses coordinates of A"):
        tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=X, schedule=schedule)
    commands, _, last = schedule.rpartition(", ")
    made = tp.schedule("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1)).apply(commands)
    assert last not in map(str, made.legal_moves())


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_rows_that_tiles_cut_are_computed_again(size: int) -> None:
    schedule = f"fuse(i,j,f), split(f,a,b,{size}), assemble(C,Append)"
    kernel = tp.compile("C[i,j] = 2 * A[i,j]", A=tp.CSR, C=tp.CSR, schedule=schedule)
    found = kernel.compute(kernel.assemble(A=A), A=A)
    np.testing.assert_allclose(found.toarray(), 2 * A.toarray())


@pytest.mark.parametrize("schedule", ["reorder(i,j)", "split(i,a,b,4)"])
def test_narrow_sums_in_a_product_are_not_moved(schedule: str) -> None:
    """Programs may have such sums; in texts they are widened, whatever the schedule."""
    text = "y[i] = A[i,j] * z[i]"
    narrow = problem(text, dtypes={"A": "int8", "z": "int32"})
    with pytest.raises(ScheduleError, match="narrower integer type"):
        plan(narrow, options=Options(schedule=Schedule.parse(schedule)))
    operands = {"A": np.array([[100, 100]], np.int8), "z": np.array([3], np.int32)}
    for each in (None, "serial()", schedule):
        assert tp.evaluate(text, operands, schedule=each) == 600


TILES = ("split(j,j0,j1,3), pos(j1,p,A)", "split(j,j0,j1,3), fuse(i,j0,f), pos(j1,p,A)")
OVER = ("p,p", "{j0,p},{j0,p}", "{i,j0,p},{i,j0,p}", "j,jw")


@pytest.mark.parametrize("format", ["ds", "ss"])
@pytest.mark.parametrize("over", OVER)
@pytest.mark.parametrize("tiles", TILES)
def test_a_workspace_beside_the_positions_of_a_tile(tiles: str, over: str, format: str) -> None:
    """What is left meets every coordinate of the tile, and rows that the operand does not have."""
    dense = np.array([[1.0, 0, 2, 0, 3, 0], [0, 0, 0, 0, 0, 0], [0, 4, 0, 5, 0, 6]])
    found = tp.evaluate(
        "C[i,j] = 2 * A[i,j] + A[i,j] * 3",
        A=tp.tensor(sp.csr_array(dense), format=format),
        format="dd",
        schedule=f"{tiles}, precompute(A(i,j) * 3,{over},w)",
    )
    np.testing.assert_allclose(found, 5 * dense)


def test_tiles_of_positions_beside_every_coordinate() -> None:
    schedule = "pos(j,p,A), split(p,p0,p1,2), precompute(A(i,j) * 3,p1,p1,w)"
    with pytest.raises(ScheduleError, match="every coordinate for each tile of positions"):
        tp.evaluate("C[i,j] = 2 * A[i,j] + A[i,j] * 3", A=A, format="dd", schedule=schedule)


UNSORTED = (
    "split(j,j0,j1,4), pos(j1,p,A), precompute(x(j),p,p,w)",
    "split(j,j0,j1,4), pos(j1,p,A), coord(p,q), precompute(x(j),q,q,w)",
    "split(j,j0,j1,4), pos(j1,p,A), split(p,p0,p1,2), precompute(x(j),p1,p1,w)",
    "split(j,j0,j1,6), split(j1,j2,j3,2), pos(j3,p,A), precompute(x(j),{j2,p},{j2,p},w)",
)


@pytest.mark.parametrize("schedule", UNSORTED)
def test_positions_of_a_tile_of_coordinates_want_them_sorted(schedule: str) -> None:
    coordinates = np.array([7, 0, 5, 2])
    a = sp.csr_array((np.arange(1.0, 5), coordinates, np.array([0, 4])), shape=(1, 8))
    x, text = np.arange(1.0, 9), "y[i] = A[i,j] * x[j]"
    np.testing.assert_allclose(tp.evaluate(text, A=a, x=x, schedule=schedule), a @ x)
    assert "relies on   A sorted" in tp.explain(text, A=a, x=x, schedule=schedule)
    shared = "reorder(i,j), split(j,j0,j1,4), pos(j1,p,A), reorder(j0,i,p)"
    told = tp.explain("y[j] = A[i,j] * x[i]", A=a, x=np.ones(1), schedule=shared)
    assert "relies on   A sorted" in told


HALF_OF_THE_DUPLICATES = (
    ("C[i,j] = A[i,j] * x[j]", "pos(j,p,A), split(p,p0,p1,2), precompute(A(i,j)*x(j),p1,p1,w)"),
    ("C[i,j] = A[i,j] * x[j]", "pos(j,p,A), divide(p,p0,p1,2), precompute(A(i,j)*x(j),p1,p1,w)"),
    ("C[i,j] = A[i,j] * U[i,k] * U[j,k]", "fuse(i,j,f), pos(f,p,A), split(p,p0,p1,2), fission(p1)"),
    ("C[i,j] = A[i,j] * A[i,j]", "pos(j,p,A), split(p,p0,p1,2), precompute(A(i,j),p1,p1,w)"),
)


@pytest.mark.parametrize("format", ["dd", "ds"])
@pytest.mark.parametrize(("text", "schedule"), HALF_OF_THE_DUPLICATES)
def test_duplicates_in_two_tiles_of_positions(text: str, schedule: str, format: str) -> None:
    """A workspace of each tile adds up those that lie in it, and the next begins anew."""
    a = sp.csr_array((np.arange(1.0, 5), np.array([2, 2, 2, 0]), np.array([0, 4, 4, 4])), (3, 3))
    others = {"x": np.arange(1.0, 4), "U": np.arange(6.0).reshape(3, 2)}
    read = {name: each for name, each in others.items() if f"{name}[" in text}
    found = tp.evaluate(text, A=a, format=format, schedule=schedule, **read)
    expected = tp.evaluate_dense(text, A=a.toarray(), **read)
    np.testing.assert_allclose(found if format == "dd" else found.toarray(), expected)
    assert "without duplicates" in tp.explain(text, A=a, format=format, schedule=schedule, **read)


@pytest.mark.parametrize("format", ["dd", "ds"])
@pytest.mark.parametrize("tiles", ["pos(j,p,A)", "fuse(i,j,f), pos(f,p,A)"])
def test_what_is_left_does_not_walk_another_operand_for_each_tile(tiles: str, format: str) -> None:
    schedule = f"{tiles}, split(p,p0,p1,2), precompute(A(i,j),p1,p1,w)"
    with pytest.raises(ScheduleError, match="would walk B again for each tile p0"):
        tp.evaluate("C[i,j] = A[i,j] * B[i,j]", A=A, B=A, format=format, schedule=schedule)
