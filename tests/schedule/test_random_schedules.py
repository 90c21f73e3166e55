"""Any legal schedule gives the same result; what is not legal is refused in words.

`--thorough` and `--examples 10000` search for longer, and so does
`python -m tests.schedule.random_schedules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from tests.corpus.formats import store
from tests.corpus.programs import Program
from tests.schedule import all_schedules
from tests.schedule.random_schedules import Scheduled, Tally, results, same, search

PARTS = 4
INTERPRETED, COMPILED = 160, 6
THOROUGH = 500, 12
"""How many schedules are interpreted and compiled, without --thorough and with it."""


@pytest.mark.rotating(2)
@pytest.mark.parametrize("seed", range(1, 1 + PARTS))
def test_random_schedules_as_their_loops_say(
    seed: int, request: pytest.FixtureRequest, thorough: bool
) -> None:
    """In parts, which run side by side."""
    least = THOROUGH[0] if thorough else INTERPRETED
    count = max(least, request.config.getoption("--examples")) // PARTS
    tally = Tally()
    search(count, tally, compiled=False, seed=seed)
    assert tally.ran >= count
    assert 2 * tally.applied.total() >= tally.ran  # what is drawn differs with hypothesis' version


def test_random_schedules_compiled(request: pytest.FixtureRequest, thorough: bool) -> None:
    least = THOROUGH[1] if thorough else COMPILED
    count = max(least, request.config.getoption("--examples") // 10)
    search(count, Tally(), compiled=True)


def program(text: str, forms: Mapping[str, str], result: str | None = None) -> Program:
    """`text` over operands of these formats, all of whose sizes are 4, half of them stored."""
    arrays, stored = {}, {}
    for name, form in forms.items():
        random = np.random.default_rng(ord(name))
        order = text.split(f"{name}[", 1)[1].split("]")[0].count(",") + 1
        shape = (4,) * order
        arrays[name] = random.integers(1, 4, shape) * (random.random(shape) < 0.6) * 1.0
        stored[name] = store(arrays[name], form)
    return Program(text, arrays, stored, dict(forms), result)


def run(case: Program, schedule: str) -> Any:
    """The result, when it is right."""
    scheduled = Scheduled(case, (), False)
    for result in results(scheduled, Schedule.parse(schedule), compiled=False):
        same(result, case.expected())


# Schedules that once gave a wrong result or an internal error.
FIXED = (
    # tiles fused again: the outer one is computed, it has no loop of its own
    (
        "R[j] = T[j] * x[j]", {"T": "s", "x": "dense"}, "s",
        "split(j,a,b,3), split(a,c,d,1), fuse(c,d,e)",
    ),
    (
        "R[i,j] = A[i,j]", {"A": "dense"}, None,
        "split(i,a,b,2), fuse(b,j,f), split(f,c,d,3), reorder(d,a,c)",
    ),
    # both indices of a fused loop are met at one step of it
    (
        "R[i,j] = A[i,j] + B[i,j]", {"A": "dense", "B": "dense"}, "dd",
        "fuse(i,j,f), split(f,g,h,3), reorder(h,g)",
    ),
    # a loop over tiles of one index and all of another is no loop over the first
    (
        "y[i] = A[i,k] * x[k]", {"A": "dense", "x": "dense"}, "d",
        "split(i,a,b,2), reorder(b,a,k), fuse(a,k,f)",
    ),
    # a coordinate list's level takes no loop, in which names would be declared
    (
        "y[i] = A[i,j] * x[j]", {"A": "COO", "x": "dense"}, None,
        "precompute(A(i,j)*x(j),j,j,w)",
    ),
    # a row that turns out to be empty has no edge, where there is room for entries alone
    ("C[i,j] = A[i,j]", {"A": "CSR"}, "ss", "assemble(C,Insert)"),
    # an inner sum's index is fused with no other
    ("R = A[k,l] / b[j]", {"A": "ss", "b": "dense"}, None, "fuse(k,l,v)"),
    # sums inside products come in any order
    (
        "M[i,r] = T[i,k,l] * C[k,r] * D[l,r]", {"T": "sss", "C": "dense", "D": "dense"}, None,
        "reorder(i,k,l,r), split(i,a,b,2)",
    ),
    # two terms read one operand in different orders
    (
        "R = A[k,l] - (B[l,k] + C[l,k]) * A[k,l]", {"A": "ss:1,0", "B": "dense", "C": "ss"}, None,
        "split(l,a,b,2)",
    ),
    # tiles of positions where the operand is absent
    (
        "R[l] = T[l,j,i] - A[i,k]", {"T": "sss", "A": "CSR"}, "s",
        "pos(j,p,T), divide(p,a,b,2)",
    ),
    # a workspace's coordinates are met in the order of the loops, whatever order was written
    ("s = A[i,j] * B[i,j]", {"A": "dense", "B": "CSR"}, None, "precompute(B(i,j),{j,i},{j,i},w)"),
    # both loops of a fused variable fill the workspace over it
    (
        "s = A[i,j] * B[i,j]", {"A": "COO", "B": "CSR"}, None,
        "fuse(i,j,f), precompute(B(i,j),f,f,w)",
    ),
    # a loop that reads a workspace's list is shared by no default
    ("s = A[l] * 1", {"A": "COO"}, None, "precompute(A(l),l,l,w)"),
    # a sum that an absent factor annihilates is not computed, its loops walk nothing there
    (
        "R[j,i] = B[j,i] + (A[j,k] + z[i]) * x[i]",
        {"B": "dense", "A": "ss", "z": "dense", "x": "s"}, "dd", "reorder(i,j)",
    ),
    # a workspace that is read in tiles has no list of coordinates
    (
        "C[i,j] = T[i,j] + S[i,j]", {"T": "dense", "S": "ss"}, "dd",
        "split(j,a,b,2), precompute(T(i,j) + S(i,j),{a,b},{a,b},w)",
    ),
    (
        "C[i,j] = A[i,j] * x[j]", {"A": "CSR", "x": "dense"}, "dd",
        "split(j,a,b,2), precompute(A(i,j) * x(j),{a,b},{a,b},w)",
    ),
    # a table is walked alone, and so is a list, which need not be in order
    (
        "C[i,j] = A[i,j] + D[i,j]", {"A": "dense", "D": "CSR"}, None,
        "precompute(D(i,j),{i,j},{i,j},w)",
    ),
    # a workspace over tiles is read again in its consumer's, by each of which all of it once
    (
        "y[i] = A[i,k] * b[k]", {"A": "CSR", "b": "dense"}, "d",
        "pos(k,p,A), split(p,p0,p1,2), precompute(A(i,k)*b(k),p1,p1,w)",
    ),
    # what counts has no sums for vector lanes to share
    ("y[i] = A[i,j] * x[j]", {"A": "dense", "x": "dense"}, "s", "vectorize(j), assemble(y,Insert)"),
    # a consumer reads the workspaces around it
    (
        "y[i] = A[i,j] * x[i] + B[i,j] * z[j]",
        {"A": "CSR", "B": "CSR", "x": "dense", "z": "dense"}, "d", "fission(i), fission(i)",
    ),
    # a parallel loop inside a serial one
    ("R[i,j] = A[j,i]", {"A": "CSR"}, "dd", "reorder(j,i), parallelize(i)"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "forms", "result", "schedule"), FIXED)
def test_fixed(text: str, forms: dict[str, str], result: str | None, schedule: str) -> None:
    run(program(text, forms, result), schedule)


def test_a_workspace_beside_dense_operands_need_not_be_filled_in_order() -> None:
    case = program("C[i,j] = A[i,j] + D[i,j]", {"A": "dense", "D": "CSR"})
    rows = case.stored["D"]
    backwards = sp.csr_array(
        (rows.data[::-1].copy(), rows.indices[::-1].copy(), rows.nnz - rows.indptr[::-1]),
        shape=rows.shape,
    )
    arrays = {**case.arrays, "D": backwards.toarray()}
    case = replace(case, arrays=arrays, stored={**case.stored, "D": backwards})
    run(case, "precompute(D(i,j),j,j,w)")


REFUSED = (
    (
        "C[i,j] = A[i,j] * B[j,i]", {"A": "CSR", "B": "CSR"}, "dd",
        "split(i,a,b,3), fuse(b,j,f), precompute(B(j,i),f,f,w), split(a,c,d,1)",
        "has taken the loops over f apart",
    ),
    (
        "R[i,j] = A[i,j] * U[i,k]", {"A": "dense", "U": "CSR"}, None,
        "pos(k,p,U), fuse(j,p,f)", "p runs over positions",
    ),
    (
        "R[j] = x[j] * sum(i, T[j,i]) / y[j]", {"x": "dense", "T": "CSR", "y": "dense"}, None,
        "reorder(i,j)", "Expected the loop over i inside the one over j",
    ),
    (
        "R[j] = y[j] / sum(i, T[j,i])", {"T": "CSR", "y": "dense"}, None,
        "fuse(j,i,f)", "the sum over i has loops of its own",
    ),
    (
        "R[i,j] = A[i,j] * B[i,j]", {"A": "CSR", "B": "CSR"}, "dd",
        "pos(j,p,A), split(p,q,r,2), reorder(r,q)",
        "The loop over j would meet every so-many-th position of A, but it walks A2, B2 together",
    ),
    # tiles of positions that one side of a workspace does not read: all coordinates in each
    (
        "y[i] = A[i,k] * b[k]", {"A": "CSR", "b": "dense"}, "d",
        "pos(k,p,A), split(p,p0,p1,2), precompute(A(i,k)*b(k),{p0,p1},{p0,p1},w)",
        "p0 counts tiles of the positions of A, which what is left does not read",
    ),
    (
        "y[i] = A[i,k] * b[k]", {"A": "CSR", "b": "dense"}, "d",
        "pos(k,p,A), divide(p,p0,p1,2), precompute(b(k),{p0,p1},{p0,p1},w)",
        "p0 counts tiles of the positions of A, which what is precomputed does not read",
    ),
    # copies of a row of which a loop around is at one element
    (
        "R[i] = x[i] * (y[i] * z[j] * b[i])", {"x": "dense", "y": "dense", "z": "dense", "b": "s"},
        None,
        "split(j,p,q,1), parallelize(p,CPUThread,Temporary), fission(i)",
        "whose loop is around it, and copies of whole lists are not made",
    ),
    (
        "C[i,j] = A[j,i]", {"A": "sd"}, "ds:1,0", "fuse(i,j,f), loopfuse(f)",
        "so come to the elements in different orders",
    ),
    (
        "C[i,j] = x[i] * z[j]", {"x": "dense", "z": "dense"}, "dd",
        "vectorize(i), parallelize(j)", "threads share the loop j inside it",
    ),
    (
        "R[j,i] = b[j] - T[j,i]", {"b": "dense", "T": "ss"}, None,
        "pos(i,p,T)", "a term has values where T stores nothing",
    ),
)  # fmt: skip


@pytest.mark.parametrize(("text", "forms", "result", "schedule", "reason"), REFUSED)
def test_refused(
    text: str, forms: dict[str, str], result: str | None, schedule: str, reason: str
) -> None:
    with pytest.raises(ScheduleError) as caught:
        run(program(text, forms, result), schedule)
    assert reason in caught.value.message
    assert caught.value.hint


def test_each_command_after_tiles_and_positions(thorough: bool) -> None:
    """Some of `tests.schedule.all_schedules --depth 1`."""
    every = 60 if thorough else 120
    tally, failed = all_schedules.search(1, every)
    assert not failed
    assert tally.ran > 6000 // every
