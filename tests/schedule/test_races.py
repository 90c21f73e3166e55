"""Race strategies on loops at any depth: sums are right for any number of threads and pieces."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.compiler.lower.threads import value_ranges as apart
from taco_py.compiler.schedule.schedule import Schedule
from tests.corpus.programs import Program
from tests.schedule.random_schedules import Scheduled, results, same
from tests.schedule.test_random_schedules import program

SPMV, SPMV_FORMS = "y[i] = A[i,j] * x[j]", {"A": "CSR", "x": "dense"}
PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
SAMPLED = "C[i,j] = A[i,j] * U[i,k] * V[j,k]"
SAMPLED_FORMS = {"A": "CSR", "U": "dense", "V": "dense"}
CONTRACTED = "C[i,j] = T[i,j,k] * z[k]"
Row = tuple[str, dict[str, str], str | None, str]

# The last loop of each schedule is shared with every strategy.
SUMMING: tuple[Row, ...] = (
    (SPMV, SPMV_FORMS, None, "parallelize(j"),
    (SPMV, SPMV_FORMS, None, "split(j,a,b,3), parallelize(a"),
    (SPMV, SPMV_FORMS, None, "split(j,a,b,3), parallelize(b"),
    (SPMV, {"A": "dense", "x": "dense"}, None, "split(j,a,b,3), reorder(b,a), parallelize(a"),
    (SPMV, SPMV_FORMS, None, "pos(j,p,A), parallelize(p"),
    (SPMV, SPMV_FORMS, None, "pos(j,p,A), split(p,a,b,2), parallelize(a"),
    (SPMV, SPMV_FORMS, None, "pos(j,p,A), split(p,a,b,2), parallelize(b"),
    (SPMV, SPMV_FORMS, None, "pos(j,p,A), split(p,a,b,2), reorder(b,a), parallelize(a"),
    (SPMV, SPMV_FORMS, None, "fuse(i,j,f), pos(f,p,A), parallelize(p"),
    (SPMV, SPMV_FORMS, None, "fuse(i,j,f), pos(f,p,A), split(p,a,b,3), parallelize(b"),
    (SPMV, SPMV_FORMS, None, "parallelize(i"),
    ("y[i] = A[i,j] * E[i,j]", {"A": "CSR", "E": "CSR"}, None, "parallelize(j"),
    ("y[i] = A[i,j] + E[i,j]", {"A": "CSR", "E": "dense"}, None, "parallelize(j"),
    (PRODUCT, {"A": "CSR", "B": "dense"}, None, "reorder(i,k,j), parallelize(k"),
    (PRODUCT, {"A": "CSR", "B": "dense"}, None, "reorder(i,k,j), parallelize(i"),
    (PRODUCT, {"A": "CSC", "B": "dense"}, None, "reorder(k,j,i), parallelize(k"),
    (PRODUCT, {"A": "CSR", "B": "dense"}, None, "reorder(j,i,k), parallelize(k"),
    (
        PRODUCT, {"A": "CSR", "B": "dense"}, None,
        "split(i,a,b,2), reorder(a,k,b,j), parallelize(k",
    ),
    (
        PRODUCT, {"A": "CSR", "B": "dense"}, None,
        "split(j,a,b,2), reorder(i,b,k,a), parallelize(k",
    ),
    (SAMPLED, SAMPLED_FORMS, "ds", "parallelize(k"),
    (SAMPLED, SAMPLED_FORMS, "ds", "split(k,a,b,3), reorder(b,a), parallelize(a"),
    (SAMPLED, SAMPLED_FORMS, "ds", "assemble(C,Insert), parallelize(k"),
    (CONTRACTED, {"T": "sss", "z": "dense"}, "dd", "fuse(j,k,f), pos(f,p,T), parallelize(p"),
    (
        "y[j] = T[i,j,k] * z[k]", {"T": "sss", "z": "dense"}, "d",
        "reorder(i,j,k), fuse(j,k,f), pos(f,p,T), split(p,a,b,2), parallelize(a",
    ),
)  # fmt: skip
STRATEGIES = ("Atomics", "Temporary", "Ordered")


@pytest.fixture(params=[4096, 2], autouse=True)
def grain(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also little work comes in several pieces."""
    monkeypatch.setattr(apart, "GRAIN", request.param)


def check(case: Program, schedule: str) -> None:
    for result in results(Scheduled(case, (), False), Schedule.parse(schedule), compiled=False):
        same(result, case.expected())


@pytest.mark.rotating(2)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(("text", "forms", "result", "schedule"), SUMMING)
def test_summing(
    text: str, forms: dict[str, str], result: str | None, schedule: str, strategy: str
) -> None:
    check(program(text, forms, result), f"{schedule},CPUThread,{strategy})")


# Copies of whole workspaces, and loops that need workspaces or ranges of their own.
OTHERS: tuple[Row, ...] = (
    (PRODUCT, {"A": "CSR", "B": "CSR"}, "ds", "reorder(i,k,j), parallelize(k,CPUThread,Temporary)"),
    (PRODUCT, {"A": "CSR", "B": "CSR"}, "ds", "reorder(i,k,j), parallelize(k,CPUThread,Ordered)"),
    (
        PRODUCT, {"A": "CSR", "B": "dense"}, "dd",
        "reorder(i,k,j), precompute(A(i,k)*B(k,j),j,j,w), parallelize(k,CPUThread,Temporary)",
    ),
    (
        PRODUCT, {"A": "CSR", "B": "dense"}, "dd",
        "reorder(i,k,j), precompute(A(i,k)*B(k,j),j,j,w), parallelize(k,CPUThread,Atomics)",
    ),
    ("C[i,j] = A[i,j] + E[i,j]", {"A": "CSR", "E": "CSR"}, "dd", "parallelize(j)"),
    ("C[i,j] = A[i,j] * E[i,j]", {"A": "CSR", "E": "CSR"}, "dd", "parallelize(j)"),
    ("C[i,j,k] = T[i,j,l] * A[l,k]", {"T": "sss", "A": "CSR"}, "ddd", "parallelize(j)"),
)  # fmt: skip

TILES = "fuse(i,j,f), pos(f,p,A), split(p,a,b,3), parallelize(a)"
ALL_ENTRIES = "fuse(i,j,f), fuse(f,k,g), pos(g,p,T), split(p,a,b,3), parallelize(a)"

# Entries that threads share, where tiles or the whole begin anywhere, with a sparse result.
ASSEMBLED: tuple[Row, ...] = (
    *((SAMPLED, {**SAMPLED_FORMS, "A": form}, "uq", TILES) for form in ("CSR", "ss", "COO")),
    (SAMPLED, SAMPLED_FORMS, "uq", f"{TILES}, assemble(C,Insert)"),
    (SAMPLED, SAMPLED_FORMS, "ss", TILES),
    *(
        ("C[i,j,k] = T[i,j,k] * z[k]", {"T": form, "z": "dense"}, result, ALL_ENTRIES)
        for form in ("sss", "COO")
        for result in ("uqq", "duq")
    ),
    *(
        (SAMPLED, {**SAMPLED_FORMS, "A": "ss"}, form, "fuse(i,j,f), pos(f,p,A), parallelize(p)")
        for form in ("ss", "uq", "ds")
    ),
)


@pytest.mark.parametrize(("text", "forms", "result", "schedule"), (*OTHERS, *ASSEMBLED))
def test_others(text: str, forms: dict[str, str], result: str | None, schedule: str) -> None:
    check(program(text, forms, result), schedule)


@pytest.mark.parametrize(
    "schedule",
    ["parallelize(i,CPUThread,Temporary)", "reorder(k,i,j), parallelize(i,CPUThread,Ordered)"],
)
def test_what_was_in_the_memory_of_the_result_is_not_added_to(schedule: str) -> None:
    a = sp.random_array((50, 40), density=0.2, rng=np.random.default_rng(0), format="csr")
    b = np.ones((40, 7))
    out = np.full((50, 7), 1000.0)
    tp.evaluate(PRODUCT, A=a, B=b, out=out, threads=2, schedule=f"reorder(i,k,j), {schedule}")
    np.testing.assert_allclose(out, a @ b)


INSIDE = (
    ("y[i] = A[i,j] * x[j]", "fission(p1)"),
    ("y[i] = A[i,j] * B[j,k] * x[k]", "precompute(B(j,k)*x(k),k,k,w)"),
)


@pytest.mark.parametrize("race", ["Temporary", "Ordered"])
@pytest.mark.parametrize(("text", "command"), INSIDE)
def test_tiles_of_positions_with_workspaces_of_their_own(
    text: str, command: str, race: str
) -> None:
    a = sp.random_array((9, 9), density=0.4, format="csr", rng=np.random.default_rng(2))
    x = np.arange(9.0)
    schedule = (
        f"fuse(i,j,f), pos(f,p,A), split(p,p0,p1,4), {command}, parallelize(p0,CPUThread,{race})"
    )
    operands = {"A": a, "x": x} | ({"B": a} if "B[" in text else {})
    expected = a @ (a @ x) if "B[" in text else a @ x
    for threads in (1, 2, 3):
        found = tp.evaluate(text, operands, schedule=schedule, threads=threads)
        np.testing.assert_allclose(found, expected)


LISTS = ("split(p,p0,p1,4)", "divide(p,p0,p1,3)", "split(p,p0,q,8), split(q,q0,q1,4)")


@pytest.mark.parametrize("race", ["", "Atomics", "Temporary", "Ordered"])
@pytest.mark.parametrize("tiles", LISTS)
def test_tiles_of_a_list_may_have_rows_in_common(tiles: str, race: str) -> None:
    text, marked = "y[i] = A[i,j] * x[j]", f", parallelize(p0,CPUThread,{race})" if race else ""
    kernel = tp.compile(
        text, A=tp.COO(2), x=tp.dense(1), y=tp.dense(1), schedule=f"pos(i,p,A), {tiles}{marked}"
    )
    told = kernel.explain()
    assert "writes its own part" not in told
    assert ("atomic" in kernel.source) is (race == "Atomics")
    with pytest.raises(tp.ScheduleError, match="may have coordinates in common"):
        tp.compile(
            text,
            A=tp.COO(2),
            x=tp.dense(1),
            y=tp.dense(1),
            schedule=f"pos(i,p,A), {tiles}, parallelize(p0)",
        )


def test_threads_that_add_to_elements_of_their_own_want_distinct_entries() -> None:
    for text, schedule in (
        ("y[i] = A[j,i] * x[j]", "parallelize(i)"),
        ("y[i] = A[j,i] * x[j]", "parallelize(i,CPUThread,Atomics)"),
    ):
        schedule = f"reorder(j,i), {schedule}"
        told = tp.compile(text, A=tp.CSR, x=tp.dense(1), y=tp.dense(1), schedule=schedule)
        assert "A without duplicates" in told.explain()
    free = tp.compile(
        "y[i] = A[j,i] * x[j]", A=tp.CSR, x=tp.dense(1), y=tp.dense(1), schedule="serial()"
    )
    assert "without duplicates" not in free.explain()
