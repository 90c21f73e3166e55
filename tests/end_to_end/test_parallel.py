"""Threads compute what one thread computes, however they share the work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import taco_py as tp
from taco_py.compiler.ways.loops import lower_recipe
from taco_py.language.notation.parser import parse_assignment
from tests.codegen.interpreter import State, execute
from tests.corpus.formats import to_dense
from tests.machines import always_threads

pytestmark = pytest.mark.user_flags

RNG = np.random.default_rng(3)
ROWS, COLUMNS = 157, 89


def skewed() -> Any:
    """A matrix whose row 40 holds half of the entries; some rows are empty."""
    matrix = sp.random_array((ROWS, COLUMNS), density=0.01, rng=RNG, format="lil")
    matrix[40] = RNG.random(COLUMNS)
    return matrix.tocsr()


A = skewed()
X = RNG.random(COLUMNS)
B = RNG.random((COLUMNS, 7))
ENTRIES = "fuse(i,j,f), pos(f,p,A)"
SHARED = "parallelize(c,CPUThread,Atomics)"

SCATTERED = (
    ("y[i] = A[i,j] * x[j]", f"{ENTRIES}, split(p,c,r,16), {SHARED}"),
    ("y[i] = A[i,j] * x[j]", f"{ENTRIES}, divide(p,c,r,3), {SHARED}"),
    ("y[i] = A[i,j] * x[j]", "reorder(j,i), parallelize(j,CPUThread,Atomics)"),
    ("y[j] = A[i,j] * z[i]", "reorder(i,j), parallelize(i,CPUThread,Atomics)"),
    ("y[i] = A[i,j] * x[j]", "parallelize(j,CPUThread,Atomics)"),
    (
        "C[i,k] = A[i,j] * B[j,k]",
        f"reorder(i,j,k), {ENTRIES}, split(p,c,r,8), reorder(c,r,k), {SHARED}",
    ),
)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("text", "schedule"), SCATTERED)
def test_atomic_updates(text: str, schedule: str, threads: int) -> None:
    operands = {"A": A, "x": X, "B": B, "z": RNG.random(ROWS)}
    operands = {name: value for name, value in operands.items() if f"{name}[" in text}
    wanted = tp.evaluate_dense(
        parse_assignment(text), {n: to_dense(v) for n, v in operands.items()}
    )
    found = tp.evaluate(text, operands, schedule=schedule, threads=threads)
    assert_allclose(to_dense(found), wanted)


def test_only_rows_at_the_edges_of_tiles_are_atomic() -> None:
    schedule = f"{ENTRIES}, split(p,c,r,16), {SHARED}"
    text = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), schedule=schedule).source
    edge, plain = text.index("#pragma omp atomic"), text.index("} else {")
    assert edge < plain
    assert text.count("y_vals[i] += t;") == 2


# ---------------------------------------------------------------- pieces


@pytest.mark.parametrize(
    ("text", "formats", "work"),
    [
        ("q = x[i] * K[i,j] * y[j]", {"x": 1, "K": 2, "y": 1}, "n_i * n_j / 4096"),
        ("q = K[i,j]", {"K": 2}, "n_i * n_j / 4096"),
        ("q = T[i,j,k] * T[i,j,k]", {"T": 3}, "n_i * n_j * n_k / 4096"),
        ("q = x[i] * x[i]", {"x": 1}, "n_i / 4096"),
    ],
)
def test_sums_to_one_number_have_pieces_by_all_their_iterations(
    text: str, formats: dict[str, int], work: str
) -> None:
    """A matrix of 2000 rows is shared, though its rows alone are no work."""
    source = tp.compile(text, {name: tp.dense(order) for name, order in formats.items()}).source
    assert f"taco_min_i64({work}, 64)" in source


def sparse(rows: int, columns: int, density: float = 0.05) -> Any:
    return sp.random_array((rows, columns), density=density, rng=RNG, format="csr")


B_SPARSE, E, F = sparse(COLUMNS, 61), sparse(ROWS, COLUMNS), sparse(ROWS, COLUMNS, 0.2)
T = tp.Tensor.from_coo(
    RNG.integers(0, 40, (300, 3)), RNG.random(300), (40, 40, 40), format=tp.CSF(3)
)
V = RNG.random(40)
PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
SUM = "C[i,j] = A[i,j] + E[i,j]"

IN_PIECES: tuple[tuple[str, dict[str, Any], Any, str | None], ...] = (
    (PRODUCT, {"A": A, "B": B_SPARSE}, tp.CSR, None),
    (PRODUCT, {"A": A, "B": B_SPARSE}, tp.DCSR, None),
    (PRODUCT, {"A": A, "B": B_SPARSE}, tp.dense(2), None),
    (PRODUCT, {"A": A, "B": B_SPARSE}, tp.CSR, "split(i,i0,i1,8), parallelize(i0)"),
    (SUM, {"A": A, "E": E}, tp.CSR, None),
    (SUM, {"A": A, "E": E}, tp.CSR, "divide(i,i0,i1,9), split(i0,i2,i3,2), parallelize(i2)"),
    (SUM, {"A": A.tocoo(), "E": E.tocoo()}, tp.COO(2), None),
    (SUM, {"A": A, "E": E}, tp.dense(2), None),
    ("C[i,j] = A[i,j] + E[i,j] + F[i,j]", {"A": A, "E": E, "F": F}, tp.CSR, None),
    ("C[i,j] = A[i,j] * E[i,j]", {"A": A, "E": E}, tp.CSR, None),
    (
        "C[i,j] = A[i,j] * U[i,k] * V[j,k]",
        {"A": A, "U": RNG.random((ROWS, 5)), "V": B[:, :5]},
        tp.CSR,
        None,
    ),
    ("C[i,j] = T[i,j,k] * v[k]", {"T": T, "v": V}, tp.DCSR, None),
    ("C[i,j] = T[i,j,k] * v[k]", {"T": T, "v": V}, tp.CSR, None),
    ("C[i,j,k] = T[i,j,k] * v[k]", {"T": T, "v": V}, tp.CSF(3), None),
    ("y[i] = T[i,j,k] * v[k]", {"T": T, "v": V}, tp.CSF(1), None),
)


@pytest.fixture
def all_threads() -> Iterator[None]:
    """However little there is to do, as many threads as are allowed share it."""
    with always_threads():
        yield


@pytest.mark.rotating(3)
@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize(("text", "operands", "form", "schedule"), IN_PIECES)
def test_any_number_of_threads_gives_the_same_bits(
    text: str, operands: dict[str, Any], form: Any, schedule: str | None
) -> None:
    found = [
        tp.evaluate(text, operands, format=form, schedule=schedule, threads=threads)
        for threads in (1, 2, 3, 40)
    ]
    wanted = tp.evaluate_dense(
        parse_assignment(text), {n: to_dense(v) for n, v in operands.items()}
    )
    assert_allclose(to_dense(found[0]), wanted)
    for other in found[1:]:
        for mine, first in zip(arrays_of(other), arrays_of(found[0]), strict=True):
            assert_array_equal(mine, first)


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("heavy", [0, 700, 1999])
def test_parts_of_a_large_result_wait_for_one_that_takes_long(heavy: int) -> None:
    left = sp.random_array((2000, 2000), density=0.1, rng=RNG, format="lil")
    left[heavy] = 1.0
    right = sp.random_array((2000, 2000), density=0.1, rng=RNG, format="csr")
    for text, b in ((SUM, {"E": right}), (PRODUCT, {"B": sp.eye_array(2000, format="csr")})):
        a = {"A": left.tocsr()}
        one, two, many = (
            tp.evaluate(text, a | b, format=tp.CSR, threads=threads) for threads in (1, 2, 7)
        )
        assert_array_equal(one.toarray(), left.toarray() + (right.toarray() if "E" in b else 0))
        for other in (two, many):
            for mine, first in zip(arrays_of(other), arrays_of(one), strict=True):
                assert_array_equal(mine, first)


TALL = sp.random_array((1500, 40), density=0.3, rng=RNG, format="csr")
Z = RNG.random(1500)
ORDERED = "parallelize(c,CPUThread,Ordered)"
SUMMED: tuple[tuple[str, dict[str, Any], str | None], ...] = (
    ("s = A[i,j]", {"A": TALL}, None),
    ("s = A[i,j]", {"A": TALL.tocoo()}, None),
    ("s = z[i] + A[k,l] * z[k]", {"A": TALL, "z": Z}, None),
    ("y[j] = A[i,j] * z[i]", {"A": TALL, "z": Z}, "reorder(i,j), parallelize(i,CPUThread,Ordered)"),
    ("y[i] = A[i,j] * x[j]", {"A": A, "x": X}, f"{ENTRIES}, split(p,c,r,16), {ORDERED}"),
    ("y[i] = A[i,j] * x[j]", {"A": A, "x": X}, f"{ENTRIES}, divide(p,c,r,6), {ORDERED}"),
    ("y[i] = A[i,j] * x[j]", {"A": A.tocsc(), "x": X}, "reorder(j,i), split(j,c,k,9), " + ORDERED),
)


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize(("text", "operands", "schedule"), SUMMED)
def test_ordered_sums_give_the_same_bits(
    text: str, operands: dict[str, Any], schedule: str | None
) -> None:
    found = [
        to_dense(tp.evaluate(text, operands, schedule=schedule, threads=threads))
        for threads in (1, 2, 3, 40)
    ]
    wanted = tp.evaluate_dense(
        parse_assignment(text), {n: to_dense(v) for n, v in operands.items()}
    )
    assert_allclose(found[0], wanted)
    for other in found[1:]:
        assert_array_equal(other, found[0])


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_each_thread_adds_to_a_copy(threads: int) -> None:
    schedule = "reorder(i,j), parallelize(i,CPUThread,Temporary)"
    found = tp.evaluate("y[j] = A[i,j] * z[i]", A=TALL, z=Z, schedule=schedule, threads=threads)
    assert_allclose(found, TALL.T @ Z)


@pytest.mark.usefixtures("all_threads")
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("race", ["Temporary", "Ordered"])
def test_copies_are_made_anew_in_loops_around(race: str, threads: int) -> None:
    schedule = f"reorder(i,j,k), parallelize(j,CPUThread,{race})"
    found = tp.evaluate("C[i,k] = A[i,j] * B[j,k]", A=A, B=B, schedule=schedule, threads=threads)
    assert_allclose(found, A @ B)


def test_shares_of_a_loop_are_parts_of_its_own_length() -> None:
    schedule = "parallelize(j,CPUThread,Atomics)"
    text = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), schedule=schedule).source
    (pragma,) = (line for line in text.splitlines() if "omp parallel for" in line)
    assert "(A2_pos[i + 1] - (int64_t)A2_pos[i]) / " in pragma


def arrays_of(value: Any) -> list[Any]:
    """What a result is made of."""
    if isinstance(value, tp.Tensor):
        levels = [a for level in value.data.levels for a in (level.pos, level.crd) if a is not None]
        return [*levels, value.data.values]
    if sp.issparse(value):
        return (
            [value.indptr, value.indices, value.data]
            if value.format == "csr"
            else [*value.coords, value.data]
        )
    return [value]


# ---------------------------------------------------------------- how even it is


class Counted:
    """An array that counts how often it is read while a variable has which value."""

    def __init__(self, values: Any, state: State, variable: str) -> None:
        self.values, self.state, self.variable = values, state, variable
        self.reads: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, place: int) -> Any:
        self.reads[self.state.scalars[self.variable]] += 1
        return self.values[place]


def most_over_mean(
    schedule: str | None, matrix: Any, parts: int, variable: str = "c", threads: int = 1
) -> float:
    """How many entries the part with the most has, over the mean of all.

    variable  the parts are told apart by its value
    """
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), schedule=schedule)
    (step,) = kernel.plan.kernels
    recipe = step.recipe()
    (function,) = lower_recipe(recipe).module.functions
    rows, columns = matrix.shape
    scalars = {"n_i": rows, "n_j": columns, "threads": threads}
    scalars |= {s.name: 1 for s in function.scalars if s.name not in scalars}
    state = State(scalars)
    state.arrays = {
        "A2_pos": matrix.indptr,
        "A2_crd": matrix.indices,
        "A_vals": Counted(matrix.data, state, variable),
        "x_vals": np.ones(columns),
        "y_vals": np.zeros(rows),
    }
    execute(function.body, state)
    assert_allclose(state.arrays["y_vals"], matrix @ np.ones(columns))
    reads = state.arrays["A_vals"].reads
    assert reads.total() == matrix.nnz
    return float(max(reads.values()) * parts / matrix.nnz)


def test_entries_are_divided_evenly_where_rows_cannot_be() -> None:
    heavy = sp.random_array((100, 500), density=0.01, rng=RNG, format="lil")
    heavy[40] = 1 + RNG.random(500)
    matrix = heavy.tocsr()
    for parts in (2, 4):
        shared = f"divide(p,c,r,{parts}), parallelize(c,CPUThread,Atomics)"
        assert most_over_mean(f"{ENTRIES}, {shared}", matrix, parts) <= 1.01
        by_rows = f"divide(i,c,r,{parts}), parallelize(c)"
        assert most_over_mean(by_rows, matrix, parts) > 0.45 * parts


def test_rows_are_shared_by_their_entries_where_nobody_says_how() -> None:
    """Also where the long ones are next to each other, as in a graph sorted by degree."""
    long = sp.csr_array(RNG.random((120, 150)))
    matrix = sp.vstack([long, sp.eye_array(3880, 150)], format="csr")
    for threads in (2, 4):
        parts = 16 * threads
        assert most_over_mean(None, matrix, parts, "piece", threads) <= 2
    assert most_over_mean("divide(i,c,r,32), parallelize(c)", matrix, 32) > 25


# ---------------------------------------------------------------- among other threads


@pytest.mark.usefixtures("all_threads")
def test_kernels_with_threads_run_in_threads() -> None:
    wanted = tp.evaluate(PRODUCT, A=A, B=B_SPARSE, threads=1)
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(tp.evaluate, PRODUCT, A=A, B=B_SPARSE, threads=2) for _ in range(20)]
        for job in jobs:
            for mine, first in zip(arrays_of(job.result()), arrays_of(wanted), strict=True):
                assert_array_equal(mine, first)


FORKED = """
import os, sys
import numpy as np, scipy.sparse as sp
import taco_py as tp
from taco_py.running.execute import run
run.useful_threads = lambda step, tensors, limit, machine: limit
a = sp.random_array((200, 200), density=0.1, rng=np.random.default_rng(0), format="csr")
before = tp.evaluate("C[i,j] = A[i,k] * B[k,j]", A=a, B=a, threads=2)
child = os.fork()
after = tp.evaluate("C[i,j] = A[i,k] * B[k,j]", A=a, B=a, threads=2)
same = (after != before).nnz == 0
if child == 0:
    os._exit(0 if same else 1)
sys.exit(os.waitpid(child, 0)[1] or not same)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_processes_assemble_in_parts() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], timeout=120, check=False)
    assert done.returncode == 0


WAITING = """
import os, subprocess, sys
import numpy as np, scipy.sparse as sp
import taco_py as tp
tp.evaluate("y[i] = A[i,j] * x[j]", A=sp.eye_array(9, format="csr"), x=np.ones(9))
told = subprocess.run(["/bin/sh", "-c", "echo $GOMP_SPINCOUNT"], capture_output=True, text=True)
print(told.stdout.strip())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="libgomp is asked what it has been told")
@pytest.mark.parametrize(
    ("given", "count"),
    [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "passive"}, "0")],
)
def test_threads_that_wait_sleep_soon(given: dict[str, str], count: str) -> None:
    """As the user says, or after a short while; what is in the environment stays as it is."""
    usual = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    environment = {**usual, "OMP_DISPLAY_ENV": "verbose", **given}
    done = subprocess.run(
        [sys.executable, "-c", WAITING],
        timeout=120,
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    if "GOMP_SPINCOUNT" in done.stderr:  # another OpenMP does not say so
        assert f"GOMP_SPINCOUNT = '{count}'" in done.stderr
    assert done.stdout.strip() == given.get("GOMP_SPINCOUNT", "")


INTERRUPTED = """
import _thread, signal, threading
import numpy as np, scipy.sparse as sp
import taco_py as tp
a = sp.random_array((2000, 2000), density=0.02, rng=np.random.default_rng(0), format="csr")
tp.evaluate("C[i,j] = A[i,k] * B[k,j]", A=a, B=a, threads=2)
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs ignore
try:
    threading.Timer(0.2, _thread.interrupt_main).start()
    while True:
        tp.evaluate("C[i,j] = A[i,k] * B[k,j]", A=a, B=a, threads=2)
except KeyboardInterrupt:
    again = tp.evaluate("C[i,j] = A[i,k] * B[k,j]", A=a, B=a, threads=2)
    assert abs(again - a @ a).max() < 1e-9
    print("interrupted")
"""


def test_an_interrupt_stops_after_the_kernel() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED],
        timeout=120,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "interrupted\n", done.stderr


def test_rows_that_entries_choose_are_shared_and_have_the_same_bits() -> None:
    """The weights of a layer that reads sparse features, backward."""
    rng = np.random.default_rng(0)
    x = sp.random_array((9000, 40), density=0.2, format="csr", rng=rng)
    g = rng.random((9000, 16))
    text = "T[j,k] = sum(i, X[i,j] * G[i,k])"
    one, two, three = (tp.evaluate(text, X=x, G=g, threads=n) for n in (1, 2, 3))
    np.testing.assert_allclose(one, x.T @ g)
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)
    told = tp.explain(text, X=x, G=g, threads=2)
    assert "forall i parallel (Ordered)" in told and "share_row_scatter" in told
    assert "parallel (" not in tp.explain(text, X=x, G=g, forbid=("share_row_scatter",))
    tall = sp.random_array((50, 9000), density=0.2, format="csr", rng=rng)
    assert "parallel (" not in tp.explain(text, X=tall, G=g[:50])


def test_rows_that_are_added_up_are_shared_and_have_the_same_bits() -> None:
    """Sums of columns: ranges of whole rows, four at a time, where there are 64 to a range."""
    x = np.random.default_rng(0).random((1100, 1000), dtype=np.float32)
    text = "y[j] = sum(i, x[i,j])"
    one, two, three = (tp.evaluate(text, x=x, threads=n) for n in (1, 2, 3))
    np.testing.assert_allclose(one, x.sum(0, dtype=np.float64), rtol=1e-6)
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)
    source = tp.compile(text, x=x).source
    assert "n_i * 64) / 4096, 8)" in source and "(i + 3) * x1_stride" in source
    assert "vector_size" not in source  # no panels, which read rows in pieces
    assert "share_row_scatter" in tp.explain(text, x=x, threads=2)
    assert "parallel (" not in tp.explain(text, x=x[:900], threads=2)  # in the caches
    for shape in ((100, 11_000), (11_000, 100)):  # few rows, and short ones
        assert "parallel (" not in tp.explain(text, x=x.reshape(shape), threads=2)
