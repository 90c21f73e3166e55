"""Compiled programs against the oracle, which runs them instance by instance."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from benchmarks.polybench_programs import KERNELS, Kernel
from codegen.machine.cpu import Processor
from polyhedral.nests.dependence import dependences
from polyhedral.nests.tile_legality import check_order
from polyhedral.programs.program_plan import plan_program
from polyhedral.programs.question import ProgramQuestion
from taco_py.compiler.affine.statements import size_names
from taco_py.compiler.driver import native_target
from tests.affine.program_oracle import run_program
from tests.codegen.test_emit import needs_compiler
from tests.machines import SERVER, on_machine

pytestmark = needs_compiler
SIZE, STEPS = 11, 4
WAYS = [(None, 1), ("auto", 1), (3, 1), ((2, 5, 7), 2)]
"""Tiles and threads."""
Arrays = Mapping[str, Any]


def expected(kernel: Kernel, program: Any, data: Arrays) -> Arrays:
    found = {name: array.copy() for name, array in data.items()}
    numbers = {name: np.asarray(value) for name, value in kernel.numbers.items()}
    sizes = kernel.sizes(SIZE, STEPS) if size_names(program.parsed) else {}
    run_program(program.parsed, {**found, **numbers}, sizes)
    return found


@pytest.mark.rotating(2)
@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_in_tiles_of_any_size(name: str) -> None:
    kernel = KERNELS[name]
    program, data = tp.program(kernel.text), kernel.data(SIZE)
    right = expected(kernel, program, data)
    for tiles, threads in WAYS:
        found = {each: array.copy() for each, array in data.items()}
        program(
            **found, **kernel.sizes(SIZE, STEPS), **kernel.numbers, tiles=tiles, threads=threads
        )
        for each, array in found.items():
            np.testing.assert_allclose(array, right[each], 1e-10, 1e-12, err_msg=str(tiles))


def with_literals(kernel: Kernel) -> str:
    """The text with numbers for its sizes: no bound of a loop has a name."""
    text = re.sub(r"\bN\b", str(SIZE), re.sub(r"\bT\b", str(STEPS), kernel.text))
    if not kernel.steps:
        return text
    return re.sub(r"^    (\w+\[([^]]*)\] -?= )", _loops_around, text, flags=re.MULTILINE)


def _loops_around(statement: re.Match[str]) -> str:
    """Loops from 1 to the last but one for the indices of a stencil."""
    indices = [each for each in statement[2].split(",") if each.isalpha()]
    loops = [f"for {index} in 1..{SIZE - 1}: " for index in indices]
    return f"    {''.join(loops)}{statement[1]}"


@pytest.mark.rotating(3)
@pytest.mark.user_flags
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_whose_sizes_are_literals(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planned for caches so small that the model has tiles of its own for them."""
    small = replace(native_target(), machine=Processor(vector_bytes=32, cache_bytes=(256, 512)))
    monkeypatch.setattr("taco_py.compiler.driver.native_target", lambda: small)
    kernel = KERNELS[name]
    program, data = tp.program(with_literals(kernel)), kernel.data(SIZE)
    right = expected(kernel, program, data)
    for tiles, threads in ((None, 2), ("auto", 1), ("auto", 2), ((2, 3), 2)):
        found = {each: array.copy() for each, array in data.items()}
        program(**found, **kernel.numbers, tiles=tiles, threads=threads)
        for each, array in found.items():
            np.testing.assert_allclose(array, right[each], 1e-10, 1e-12, err_msg=str(tiles))


@pytest.mark.parametrize("name", KERNELS)
def test_plans_of_kernels_keep_every_dependence(name: str) -> None:
    """Each pair that depends on each other, sums too, for all sizes."""
    kernel = KERNELS[name]
    nest = tp.program(kernel.text).lowered.nest
    values = {each: 64 if each == "T" else 4096 for each in nest.parameters}
    found = dependences(nest, 0)
    for tiles in (None, (4, 8, 16)):
        plan = plan_program(ProgramQuestion(nest, values, tiles=tiles), 0)
        assert check_order(nest, plan.schedule, found, 0), f"{plan.schedule}"


@pytest.mark.parametrize("name", ["jacobi-1d", "jacobi-2d", "heat-3d", "fdtd-2d", "seidel-2d"])
def test_stencils_are_bit_identical_in_all_orders(name: str) -> None:
    kernel = KERNELS[name]
    program, data = tp.program(kernel.text), kernel.data(37)
    results = []
    for tiles, threads in ((None, 1), ((4, 8, 16), 1), ((3, 5, 64), 2)):
        found = {each: array.copy() for each, array in data.items()}
        program(**found, **kernel.sizes(37, 9), tiles=tiles, threads=threads)
        results.append(found)
    for found in results[1:]:
        for each, array in found.items():
            np.testing.assert_array_equal(array, results[0][each])


def test_an_index_runs_where_all_accesses_are_inside() -> None:
    a, b = np.arange(8.0), np.full(8, -1.0)
    tp.program("b[i] = a[i-2] + a[i+1]")(a=a, b=b)
    assert b.tolist() == [-1, -1, 0 + 3, 1 + 4, 2 + 5, 3 + 6, 4 + 7, -1]


def test_statements_run_in_sequence_and_see_what_came_before() -> None:
    x = np.ones(6)
    tp.program("x[i] = x[i] + x[i-1]")(x=x)
    assert x.tolist() == [1, 2, 3, 4, 5, 6]


def test_ranges_may_be_open_triangular_and_skip() -> None:
    a = np.zeros((4, 8))
    tp.program("for i in 1..: for j in max(i, 2)..min(N, 3): a[i, 2*j] = 1")(a=a, N=5)
    assert np.argwhere(a).tolist() == [[1, 4], [2, 4]]


@pytest.mark.parametrize(
    "tail", ["", "\nfor j in N: x[j] += 2", "\n    for j in 4..4: x[j] = x[i]"]
)
def test_loops_that_never_run(tail: str) -> None:
    x = np.ones(5)
    tp.program("for i in N..0:\n    x[i] = 7" + tail)(x=x, N=5)
    np.testing.assert_array_equal(x, np.full(5, 3.0 if "+=" in tail else 1.0))


@pytest.mark.parametrize("dtype", ["float32", "int16", "complex64"])
def test_other_dtypes_are_computed_as_numpy_does(dtype: str) -> None:
    generator = np.random.default_rng(0)
    a, b = generator.integers(-9, 9, (2, 7)).astype(dtype)
    program = tp.program("for t in T: b[i] += a[i-1] * a[i] - a[i+1]; a[i] = b[i]")
    ra, rb = a.copy(), b.copy()
    program(a=a, b=b, T=3)
    run_program(program.parsed, {"a": ra, "b": rb}, {"T": 3})
    np.testing.assert_array_equal(a, ra)
    np.testing.assert_array_equal(b, rb)


def test_literals_take_the_dtype_of_their_target() -> None:
    a = np.zeros(2, "u1")
    tp.program("a[i] = 200 + 50; a[i] -= 1")(a=a)
    assert a.tolist() == [249, 249]


def test_a_sum_that_is_rounded_after_each_term_stays_in_order() -> None:
    program = tp.program("y[i] += A[i,j] * x[j]")
    a, x = np.ones((9, 9)), np.ones(9)
    simd = {d: "omp simd" in program.source(A=a, x=x, y=np.zeros(9, d)) for d in ("f4", "f8")}
    assert simd == {"f4": False, "f8": True}


def test_views_of_any_strides_are_changed_in_place() -> None:
    whole = np.zeros((6, 10))
    tp.program("a[i,j] = b[j,i]")(a=whole[::-2, 1:9:2], b=np.arange(12.0).reshape(4, 3))
    np.testing.assert_array_equal(whole[::-2, 1:9:2], np.arange(12.0).reshape(4, 3).T)
    assert whole.sum() == 66


def test_a_new_size_needs_no_new_kernel() -> None:
    program = tp.program("for t in T: b[i] = a[i-1] + a[i+1]; a[i] = b[i]")
    sources = {program.source(a=np.ones(n), b=np.ones(n), T=t) for n, t in ((100, 5), (120, 7))}
    assert len(sources) == 1


def test_explain_names_planes_sizes_and_reasons() -> None:
    big = np.ones((2000, 2000))
    with on_machine(SERVER):
        text = tp.program(KERNELS["jacobi-2d"].text).explain(A=big, B=big.copy(), T=100)
    assert "tile t, " in text
    assert "planes: S0: t, i + 2*t, j + 2*t" in text
    assert "cycles an instance" in text
    assert "for sizes about those of the call, T = 128, A_n0 = 2048, A_n1 = 2048:" in text


SHARED_BY_THREADS = [
    (
        KERNELS["jacobi-2d"].text,
        "threads share: j_tile, tile by tile along diagonals of t_tile and",
    ),
    ("for a in 5: O[i,j] += K[a] * A[a+i,j] / B[i,j]", "threads share: i_tile"),
    ("for i in 64: for j in 64: A[i,j] = A[i,j] + B[j,i]", "none, for they share tiles and there"),
    ("A[i,j] += B[i,k] * C[k,j]", "threads share: blocks of the result, of contractions of"),
]


@pytest.mark.parametrize(("text", "words"), SHARED_BY_THREADS)
def test_explain_says_what_threads_share(text: str, words: str) -> None:
    program = tp.program(text)
    given: dict[str, Any] = {name: np.ones((1200, 1200)) for name in program.operands}
    given |= {"T": 50} if "T" in given else {}
    given |= {"K": np.ones(5)} if "K" in given else {}
    assert words in program.explain(**given, threads=2)
    assert "threads share" not in program.explain(**given, threads=1)


def test_explain_has_the_numbers_of_the_call_where_they_lead_to_the_same_loops() -> None:
    program = tp.program("y[i] += A[i,j] * x[j]")
    for n, taken in ((1000, 16112), (600, 9712)):  # two vectors of 8 n bytes, and of a line's rest
        text = program.explain(A=np.ones((n, n)), x=np.ones(n), y=np.ones(n))
        assert f"used again: y, x, {taken} bytes" in text
        assert "for sizes about" not in text


def test_a_small_budget_of_isl_leaves_the_loops_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("polyhedral.isl.limits.BUDGET", 50)
    a = np.ones(9)
    program = tp.program("for t in T: a[i] = a[i-1] + 2.0 * a[i] + a[i+1]")
    assert "as written: Expected ISL to answer within 50" in program.explain(a=a, T=2)
    expected = np.ones(9)
    run_program(program.parsed, {"a": expected}, {"T": 2})
    program(a=a, T=2)
    np.testing.assert_array_equal(a, expected)


def test_the_scheduler_of_isl_has_a_budget_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """This took minutes within the budget of a whole question, for its steps are long ones."""
    text = """
    for i in 2..5:
        for j in 0..N:
            A[j+3,j+j+3] += A[j+2,j+1] * A[i+j+2,i+3]
            A[i+4,j+4] += A[2*j+4,i+1]
        for k in 0..M:
            A[1,i+4] += A[k+3,k+3]
            A[k+3,k+5] -= s
    """
    program, sizes = tp.program(text), {"N": 3, "M": 2}
    data = {"A": np.random.default_rng(0).random((24, 24)), "s": np.array(0.5)}
    right = {name: array.copy() for name, array in data.items()}
    run_program(program.parsed, right, sizes)
    for allowed in (75_000, 1000):
        monkeypatch.setattr("polyhedral.isl.bands.SCHEDULING", allowed)
        found = {name: array.copy() for name, array in data.items()}
        tp.program(text)(**found, **sizes)
        np.testing.assert_allclose(found["A"], right["A"], 1e-12)
    assert "as written: Expected ISL to answer within 1000 operations" in tp.program(text).explain(
        **data, **sizes
    )


def test_tiles_along_diagonals_are_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops over the sum of skewed tiles' numbers take ISL minutes; those over tiles do not."""
    monkeypatch.setattr("polyhedral.isl.limits.BUDGET", 300_000)
    smooth = tp.program(
        "for t in T: B[i,j] = 0.5 * (A[i-1,j] + A[i,j+1]); A[i,j] = B[i,j] + A[i,j-1]"
    )
    start = np.random.default_rng(0).random((300, 300))
    one, two = start.copy(), start.copy()
    smooth(A=one, B=start.copy(), T=10, threads=1)
    smooth(A=two, B=start.copy(), T=10, threads=2)
    np.testing.assert_array_equal(one, two)
    told = smooth.explain(A=one, B=two, T=10, threads=2)
    assert "tile t, " in told and "operations" not in told


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_an_element_that_is_changed_and_read_by_another_subscript(dtype: str) -> None:
    """gcc 12 kept it in a register where the loops were inlined into what calls them."""
    program = tp.program("y[1] -= 3*y[a]*C[a+3,a+1] - 2*y[2*a+4] + y[1]")
    rng = np.random.default_rng(1)
    data = {"y": rng.integers(-2, 3, 24).astype(dtype), "C": rng.integers(-2, 3, (24, 24))}
    data["C"] = data["C"].astype(dtype)
    right = {name: array.copy() for name, array in data.items()}
    run_program(program.parsed, right, {})
    for tiles in (None, 2, 3, 5, "auto"):
        found = {name: array.copy() for name, array in data.items()}
        program(**found, tiles=tiles)
        np.testing.assert_array_equal(found["y"], right["y"])


MANY = """
for i in 0..N-1:
    for j in 2..N:
        for k in j+1..i+3:
            for l in k+1..N:
                A[l+1,i] -= 0.25*A[j,i] + B[k+1,j]*C[j] + C[i]*A[k+1,l]
            for m in 0..i+3:
                B[j,2] += 0.25*B[2*k,m]*x[k] + 0.25*C[m] + C[m+1]
                A[m,i] += A[m+3,2*k]*C[m] + C[m]
    for n in 0..5:
        for p in n..N:
            for q in 0..p+3:
                A[q,n] -= C[p+3]*C[q] + x[i] + 0.25*B[i,n+3]
"""


def test_the_code_of_jammed_triangles_is_bounded() -> None:
    many = tp.program(MANY)
    data = {"A": np.ones((30, 30)), "B": np.ones((30, 30)), "C": np.ones(30), "x": np.ones(30)}
    right = {name: array.copy() for name, array in data.items()}
    assert many.source(**data, N=8).count("omp simd") <= 40
    with on_machine(SERVER):
        assert many.source(**data, N=8).count("omp simd") <= 40
        assert "jammed: one at most above a vector loop, for " in many.explain(**data, N=8)
    many(**data, N=8)
    run_program(many.parsed, right, {"N": 8})
    for name, array in data.items():
        np.testing.assert_allclose(array, right[name], 1e-9)
