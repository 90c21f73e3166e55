"""Groups of a warp's lanes: each has an iteration of a loop, its lanes share the loop inside."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

SPMV = "y[i] = A[i,j] * x[j]"
IN_GROUPS = (
    "split(i,block,rest,{}), split(rest,warp,row,{}), parallelize(block,GPUBlock,{r}), "
    "parallelize(warp,GPUWarp,{r}), parallelize(row,GPUThread,{r}), "
    "parallelize(j,GPUThread,Atomics)"
)
RANDOM = np.random.default_rng(4)
A = sp.random_array((75, 60), density=0.2, format="csr", rng=RANDOM)
A.data = RANDOM.integers(1, 3, A.nnz) * 1.0


@pytest.mark.parametrize("rows", [2, 4, 8, 16])
@pytest.mark.parametrize("dtype", ["float64", "int32", "bool"])
def test_rows_by_groups(rows: int, dtype: str) -> None:
    schedule = IN_GROUPS.format(8 * rows, rows, r="NoRaces")
    operands = {"A": A.astype(dtype), "x": (np.arange(60) % 3).astype(dtype)}
    found = tp.evaluate(SPMV, operands, schedule=schedule, target="cuda-emulated")
    np.testing.assert_array_equal(found, tp.evaluate_dense(SPMV, operands))
    source = tp.compile(SPMV, {"A": "csr", "x": "d"}, schedule=schedule, target="cuda").source
    assert f"taco_lanes{32 // rows}_add_f64" in source
    assert f"threadIdx.x % 32 / {32 // rows}" in source
    assert "atomic" not in source


SUMS = ("s = A[i,j] * x[j]", "m = max(i, j, D[i,j])", "y[j] = A[i,j]", "C[i,j] = A[i,j] * x[j]")


@pytest.mark.parametrize("text", SUMS)
def test_what_groups_have_in_common(text: str) -> None:
    """Lanes of a group come to a sum once, not each of them."""
    race = "NoRaces" if text.startswith("C") else "Atomics"
    schedule = IN_GROUPS.format(32, 4, r=race)
    if text.startswith("y"):
        schedule = "reorder(i,j), " + schedule
    every = {"A": A, "D": A.toarray(), "x": np.arange(60.0)}
    given = {name: each for name, each in every.items() if f"{name}[" in text.split("=")[1]}
    order = {"y": "d", "C": "dd"}.get(text[0])
    found = tp.evaluate(text, given, schedule=schedule, format=order, target="cuda-emulated")
    np.testing.assert_allclose(found, tp.evaluate_dense(text, given))


REFUSED = {
    IN_GROUPS.format(24, 3, r="NoRaces"): "of 2, 4, 8, 16 iterations, for groups of lanes",
    "split(i,block,row,8), parallelize(block,GPUBlock), parallelize(row,GPUThread), "
    "parallelize(j,GPUThread,Atomics)": "Expected a loop of GPUWarp around row",
    "split(j,j0,lane,16), reorder(i,j0,lane), " + IN_GROUPS.format(32, 4, r="NoRaces").replace(
        "parallelize(j,", "parallelize(lane,"
    ): "at most 8 iterations of lane, for the lanes of a group, found 16",
}  # fmt: skip


@pytest.mark.parametrize("schedule", REFUSED)
def test_what_makes_no_groups_is_refused(schedule: str) -> None:
    with pytest.raises(tp.ScheduleError) as refusal:
        tp.evaluate(SPMV, A=A, x=np.ones(60), schedule=schedule, target="cuda-emulated")
    assert REFUSED[schedule] in str(refusal.value)
    assert refusal.value.hint


def test_short_rows_are_taken_by_groups() -> None:
    rows = 100000
    pos = np.arange(0, 20 * rows + 1, 20)
    crd = np.tile(np.arange(20), rows)
    short = sp.csr_array((np.ones(20 * rows), crd, pos), shape=(rows, rows))
    told = str(tp.explain(SPMV, A=short, x=np.ones(rows), target="cuda-emulated"))
    assert "lanes of a warp for each i, over j" in told.split("not ")[0]
    assert "is shared by groups of lanes of a warp" in told
