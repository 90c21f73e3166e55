"""What kernels cannot do without, on ceilings that are made up: operations, bytes, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.arguments.operands import bind_operands
from taco_py.report.limits.ceilings import Ceilings, Rate, Roof
from taco_py.report.limits.kernel_bound import Bound, bound
from taco_py.report.limits.kernel_work import Work, work_of_step
from taco_py.report.limits.operand_memory import SEPARATE, operand_memory
from taco_py.report.limits.plan_bound import least_seconds, plan_bound, step_bound, total_seconds
from taco_py.running.execute.independent_kernels import independent_groups
from taco_py.tuning.space.plan_rank import rank

RNG = np.random.default_rng(5)
ROOFS = (
    Roof("L1", 32 << 10, False, Rate(4e11, 8e11)),
    Roof("L2", 1 << 20, False, Rate(5e10, 1e11)),
    Roof("memory", 0, True, Rate(1e10, 1.5e10)),
)
PEAK = Rate(5e10, 1e11)
PROCESSOR = Ceilings(
    "made up", "2021-01-01 12:00", 2, 32, 16, PEAK, Rate(1e11, 2e11), Rate(1e10, 2e10), ROOFS
)


def planned(text: str, schedule: str | None = None, **operands: Any) -> tuple[Any, Any]:
    """The plan of a text whose matrices are as given, and their facts."""
    forms = {n: tp.CSR if sp.issparse(x) else tp.dense(np.ndim(x)) for n, x in operands.items()}
    dtype = next(iter(operands.values())).dtype.name
    kernel = tp.compile(text, forms, schedule=schedule, threads=1, dtypes=dtype)
    return kernel.plan, {name: each.operand for name, each in bind_operands(operands).items()}


def work(text: str, schedule: str | None = None, **operands: Any) -> Work:
    plan, facts = planned(text, schedule, **operands)
    (step,) = plan.kernels
    return work_of_step(step, facts)


def limits(text: str, schedule: str | None = None, threads: int = 1, **operands: Any) -> Bound:
    plan, facts = planned(text, schedule, **operands)
    (step,) = plan.kernels
    return bound(step, facts, PROCESSOR, threads)


SPARSE = sp.random_array((200, 300), density=0.05, format="csr", rng=RNG)


def test_a_product_of_matrices_by_hand() -> None:
    found = work("C[i,j] = A[i,k] * B[k,j]", A=np.ones((30, 40)), B=np.ones((40, 50)))
    assert found.flops == 2 * 30 * 40 * 50
    assert found.bytes == 8 * (30 * 40 + 40 * 50 + 30 * 50)


def test_a_sparse_operand_is_read_with_its_coordinates() -> None:
    found = work("y[i] = A[i,j] * x[j]", A=SPARSE, x=np.ones(300))
    met = len(set(SPARSE.indices.tolist()))
    assert found.flops == 2 * SPARSE.nnz
    assert found.bytes == SPARSE.nnz * (8 + 4) + 8 * 200 + 8 * met


def test_a_copy_does_nothing_but_move() -> None:
    found = work("C[j,i] = A[i,j]", A=np.ones((30, 40)))
    assert found.flops == 0 and found.bytes == 2 * 8 * 30 * 40


def test_an_operand_that_is_read_twice_counts_once() -> None:
    assert work("C[i,j] = A[i,j] * A[j,i]", A=np.ones((30, 30))).bytes == 2 * 8 * 900


def test_nothing_is_counted_where_sparse_operands_meet() -> None:
    found = work("C[i,j] = A[i,k] * B[k,j]", A=SPARSE, B=SPARSE.T.tocsr())
    assert found.several and found.flops == 0


def test_an_addition_of_a_sparse_operand_counts_no_products() -> None:
    found = work("C[i,j] = A[i,j] + D[i,j]", A=SPARSE, D=np.ones((200, 300)))
    assert found.flops <= 200 * 300


def test_registers_limit_large_products_and_memory_copies() -> None:
    size, small = np.ones((512, 512)), np.ones((32, 32))
    product = limits("C[i,j] = A[i,k] * B[k,j]", "reorder(i,k,j)", A=small, B=small)
    assert product.limited_by == "peak" and "registers of a core" in product.reason
    assert product.seconds == pytest.approx(2 * 32**3 / 5e10)
    copy = limits("C[j,i] = A[i,j]", A=size)
    assert copy.limited_by == "memory"
    assert copy.seconds == pytest.approx((copy.bytes - (1 << 20)) / 1e10)


def test_floats_have_twice_the_peak() -> None:
    size = np.ones((32, 32), np.float32)
    product = limits("C[i,j] = A[i,k] * B[k,j]", "reorder(i,k,j)", A=size, B=size)
    assert product.seconds == pytest.approx(2 * 32**3 / 1e11)


def test_threads_share_the_work_but_for_the_remainder() -> None:
    operands = {"A": np.ones((9, 512)), "B": np.ones((512, 64))}
    text, order = "C[i,j] = A[i,k] * B[k,j]", "reorder(i,k,j), parallelize(i)"
    one, two = (limits(text, order, threads, **operands) for threads in (1, 2))
    peaks = [next(e for e in each.limits if e.name == "peak") for each in (one, two)]
    assert peaks[1].seconds == pytest.approx(peaks[0].seconds * 5 / 9)
    assert "one of 2 threads has 56%" in peaks[1].reason


def test_orders_that_load_elements_one_by_one_can_do_less() -> None:
    operands = {"A": np.ones((128, 128)), "B": np.ones((128, 128))}
    text = "C[i,j] = A[i,k] * B[k,j]"
    good, bad = (limits(text, f"reorder({o})", **operands) for o in ("i,k,j", "i,j,k"))
    assert bad.seconds >= 3.9 * next(e for e in good.limits if e.name == "peak").seconds
    assert rank(0.0, good) < rank(0.0, bad)


def test_narrow_tiles_leave_lanes_empty() -> None:
    operands = {"A": np.ones((128, 128)), "B": np.ones((128, 128))}
    text = "C[i,j] = A[i,k] * B[k,j]"
    found = limits(text, "split(j,j0,j1,2), reorder(i,j0,k,j1)", **operands)
    assert "vectors are 50% full" in next(e.reason for e in found.limits if e.name == "peak")


def test_an_order_that_walks_past_a_cache_reads_again() -> None:
    """B has 2 MB, and the second cache 1 MB: it comes from memory for each eight rows at least."""
    operands = {"A": np.ones((64, 512)), "B": np.ones((512, 512))}
    text = "C[i,j] = A[i,k] * B[k,j]"
    rows, block = "reorder(i,k,j)", "split(k,k0,k1,32), reorder(k0,i,k1,j)"
    moved = [
        next(e.amount for e in limits(text, order, **operands).limits if e.name == "memory")
        for order in (rows, block)
    ]
    assert moved[0] > 3 * moved[1]
    told = [each.reason for each in limits(text, rows, **operands).limits]
    assert any("times what its arrays have" in why for why in told)


def test_orders_of_equal_bounds_are_ranked_by_all_that_they_wait_for() -> None:
    """Columns in tiles around the rows of a sparse matrix meet its entries again and again."""
    matrix = sp.random_array((40, 30), density=0.2, format="csr", rng=RNG)
    operands = {"A": matrix, "B": np.ones((30, 32))}
    text = "C[i,j] = A[i,k] * B[k,j]"
    rows, tiles = (
        limits(text, order, **operands)
        for order in ("reorder(i,k,j)", "split(j,j0,j1,8), reorder(j0,i,k,j1)")
    )
    assert rank(0.0, rows) < rank(0.0, tiles)
    assert rank(0.0, rows)[0] == pytest.approx(sum(each.seconds for each in rows.limits))


def test_a_plan_of_two_kernels_takes_both() -> None:
    size = np.ones((300, 300))
    plan, facts = planned("y[i] = A[i,j] * (B[j,k] * x[k])", A=size, B=size, x=np.ones(300))
    whole, size = plan_bound(plan, None, 1, PROCESSOR), plan.program.facts["A"].shape[0]
    assert len(plan.kernels) == 2 and whole.flops == 2 * 2 * size * size
    assert least_seconds(plan, facts, 1) > 0


def test_coordinates_count_where_something_needs_them() -> None:
    operands: dict[str, Any] = {"A": SPARSE}
    values = SPARSE.nnz * 8
    assert work("y[i] = A[i,j]", **operands).bytes == values + 8 * 200
    met = len(set(SPARSE.indices.tolist()))
    product = work("y[i] = A[i,j] * x[j]", **operands, x=np.ones(300))
    assert product.bytes == values + SPARSE.nnz * 4 + 8 * (200 + met)


def test_of_indices_that_a_sparse_operand_has_together_one_counts() -> None:
    matrix = sp.eye_array(300, format="csr")
    found = work("y[i] = A[i,j] * D[i,j]", A=matrix, D=np.ones((300, 300)))
    assert found.bytes == 300 * (8 + 4) + 300 * 8 + 300 * 8


def test_rows_without_entries_need_not_be_written() -> None:
    matrix = sp.csr_array((np.ones(3), ([5, 5, 900], [0, 1, 2])), shape=(1000, 10))
    found = work("C[i,j] = A[i,k] * B[k,j]", A=matrix, B=np.ones((10, 4)))
    assert found.bytes == 3 * (8 + 4) + 8 * 3 * 4 + 8 * 2 * 4


def test_operands_that_are_one_array_count_once() -> None:
    x = np.ones(1 << 20)
    formats = {name: tp.dense(1) for name in "ab"}
    plan = tp.compile("s = a[i] * b[i]", formats, threads=1).plan

    def seconds(a: Any, b: Any) -> float:
        given = bind_operands({"a": a, "b": b})
        memory = operand_memory({name: each.data for name, each in given.items()})
        facts = {name: each.operand for name, each in given.items()}
        return plan_bound(plan, facts, 1, PROCESSOR, memory).seconds

    apart = seconds(x, x.copy())
    assert apart == pytest.approx((2 * x.nbytes - (1 << 20)) / 1e10, rel=1e-3)
    assert seconds(x, x) == pytest.approx((x.nbytes - (1 << 20)) / 1e10, rel=1e-3)
    assert seconds(x, np.broadcast_to(x[:1], x.shape)) < 0.6 * apart


def test_bytes_of_operands_count_nothing_where_their_memory_is_unknown() -> None:
    plan, facts = planned("s = a[i] * b[i]", a=np.ones(1 << 22), b=np.ones(1 << 22))
    assert least_seconds(plan, facts, 1) < least_seconds(plan, facts, 1, SEPARATE) / 1.5


def test_facts_of_temporaries_hold_for_the_sizes_that_were_planned_alone() -> None:
    text, formats = "C[i,j] = (A[i,k] + D[i,k]) * B[k,j]", {name: tp.dense(2) for name in "ADB"}
    plan = tp.compile(text, formats, threads=1).plan
    assert len(plan.kernels) == 2
    assert plan_bound(plan, None, 1, PROCESSOR).flops > 0
    operands = {name: np.ones((20, 20)) for name in "ADB"}
    facts = {name: each.operand for name, each in bind_operands(operands).items()}
    found = plan_bound(plan, facts, 1, PROCESSOR)
    assert found.flops == 0 and found.seconds < 1e-6
    words = str(tp.compile(text, formats, threads=1).roofline(None, **operands))
    assert "F/s" not in words.split("at most")[1]


def test_kernels_that_may_run_beside_each_other_take_the_longest() -> None:
    operands = {"A": np.ones((300, 300)), "B": np.ones((200, 300))}
    plan, _ = planned("y[j] = sum(i, A[i,j]) * sum(k, B[k,j])", **operands)
    assert independent_groups(plan)
    seconds = {step.target: float(n + 1) for n, step in enumerate(plan.kernels)}
    assert total_seconds(plan, seconds) == 5.0  # of 1, 2 and 3, the first two together
    each = [step_bound(step, plan, plan.program.facts, 1, PROCESSOR) for step in plan.kernels]
    first, second, last = (found.seconds for found in each if found is not None)
    whole = plan_bound(plan, None, 1, PROCESSOR)
    assert whole.seconds == pytest.approx(max(first, second) + last)


def test_bytes_have_no_bound_where_no_cache_is_known() -> None:
    plan, facts = planned("C[j,i] = A[i,j]", A=np.ones((50, 60)))
    known = replace(PROCESSOR, roofs=PROCESSOR.roofs[-1:])
    found = plan_bound(plan, facts, 1, known)
    assert not any(limit.name == "memory" for limit in found.limits)


EMPTY = [
    ("y[i] = A[i,j] * x[j]", {"A": np.ones((0, 5)), "x": np.ones(5)}),
    ("y[i] = A[i,j] * x[j]", {"A": np.ones((5, 0)), "x": np.ones(0)}),
    ("y[i] = A[i,j] * x[j]", {"A": sp.csr_array((5, 7)), "x": np.ones(7)}),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": np.ones((3, 0)), "B": np.ones((0, 3))}),
    ("C[i,j] = A[j,i]", {"A": np.ones((0, 3))}),
    ("y[i] = a[i] * x[i]", {"a": tp.tensor(np.zeros(5), "s"), "x": np.ones(5)}),
]


@pytest.mark.parametrize(("text", "operands"), EMPTY)
def test_explain_knows_operands_without_elements(text: str, operands: dict[str, Any]) -> None:
    assert "kernel" in tp.explain(text, **operands)
