"""Tuning tasks: descriptions of operands, files, mutation rules, and what calls ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.tuning.tasks.drawn_entries import coordinates_of
from taco_py.tuning.tasks.operand_description import OperandDescription
from taco_py.tuning.tasks.operands_like import description_of, make_operand
from taco_py.tuning.tasks.task_file import tasks_in, toml

SPMV = "y[i] = A[i,j] * x[j]"
A = {"shape": [1000, 800], "format": "csr_array", "density": 0.01}
X = {"shape": [800]}
FILE = """\
targets = ["c", "cuda"]
[options]
trials = 5

[[task]]
name = "spmv"
text = "y[i] = A[i,j] * x[j]"
operands.A = { shape = [1000, 800], format = "csr_array", density = 0.01 }
operands.x = { shape = [800] }
mutate = [ { size = "A.0", multiples = [1, 2, 4] }, { format = "A", values = ["csr_array", "ss"] } ]

[[task]]
text = "M[i,r] = T[i,k,l] * C[k,r] * D[l,r]"
options = { threads = 1, trials = 9 }
[task.operands]
T = { shape = [50, 60, 70], format = "sss", density = 0.01, rows = "power" }
C = { shape = [60, 8] }
D = { shape = [70, 8], dtype = "float32" }
[[task.mutate]]
size = "1.1"
powers = [3, 4]
"""


def described(**keys: Any) -> OperandDescription:
    return OperandDescription(**keys)


# ---------------------------------------------------------------- operands


@pytest.mark.parametrize("rows", ["random", "even", "power", "band"])
@pytest.mark.parametrize("run", [1.0, 4.0])
def test_entries_are_as_many_as_asked_and_the_same_each_time(rows: str, run: float) -> None:
    asked = described(shape=(200, 300), format="ds", density=0.02, rows=rows, run=run, seed=3)
    i, j = coordinates_of(asked)
    assert len(set(zip(i.tolist(), j.tolist(), strict=True))) == len(i) == 1200
    assert all(np.array_equal(a, b) for a, b in zip((i, j), coordinates_of(asked), strict=True))
    lengths = np.bincount(i, minlength=200)
    if rows == "even" and run == 1:
        assert lengths.max() - lengths.min() <= 4  # some fell together, and were drawn again
    if rows == "power":
        assert lengths.max() > 10 * np.median(lengths)
    if run == 4:
        assert np.mean(np.diff(j)[np.diff(i) == 0] == 1) > 0.5


def test_dense_and_huge_patterns() -> None:
    (i,) = coordinates_of(described(shape=(1000,), format="s", density=0.9))
    assert len(np.unique(i)) == 900
    columns = coordinates_of(described(shape=(2**40,) * 3, format="sss", nnz=100))
    assert len(columns[0]) == 100
    assert coordinates_of(described(shape=(0, 5), format="ds", nnz=0))[0].size == 0


@pytest.mark.parametrize(
    "obj",
    [
        sp.random_array((90, 70), density=0.1, format="csr", rng=np.random.default_rng(1)),
        sp.csc_matrix(sp.random_array((90, 70), density=0.05, rng=np.random.default_rng(1))),
        sp.random_array((90, 70), density=0.1, format="coo", rng=np.random.default_rng(1)),
        tp.Tensor.from_scipy(
            sp.random_array((90, 70), density=0.1, format="csr", rng=np.random.default_rng(1)), "ss"
        ),
        np.zeros((90, 70), np.float32),
        np.zeros((90, 70), order="F"),
    ],
    ids=["csr_array", "csc_matrix", "coo_array", "ss", "float32", "F"],
)
def test_an_operand_like_another_has_its_key(obj: Any) -> None:
    with tp.TuningStore() as store:
        x = np.ones(70)
        key = store.key(SPMV, A=obj, x=x)
        made = make_operand(description_of(obj, "A"))
        again = store.key(SPMV, A=made, x=x)
    assert type(made) is type(obj)
    assert again.problem == key.problem
    # the buckets may differ by a doubling, for a histogram says less than the entries
    assert max(abs(a - b) for a, b in zip(again.buckets, key.buckets, strict=True)) <= 1


def test_a_power_law_is_met_again() -> None:
    asked = described(shape=(2000, 1500), format="csr_array", density=0.005, rows="power")
    first = make_operand(asked)
    again = make_operand(description_of(first, "A"))
    with tp.TuningStore() as store:
        keys = [store.key(SPMV, A=each, x=np.ones(1500)) for each in (first, again)]
    apart = [abs(a - b) for a, b in zip(keys[0].buckets, keys[1].buckets, strict=True)]
    assert max(apart) <= 1
    assert sum(apart) <= 3


def test_operands_of_files(tmp_path: Path) -> None:
    tp.write(sp.eye_array(4, format="csr"), tmp_path / "a.mtx")
    asked = {"file": "a.mtx", "format": "csr_array", "dtype": "float32"}
    task = tp.tuning.task(SPMV, {"A": asked, "x": {"shape": [4]}})
    made = task.make_operands(tmp_path)["A"]
    assert (type(made), made.shape, made.dtype) == (sp.csr_array, (4, 4), np.float32)
    with pytest.raises(OSError):
        task.make_operands(tmp_path / "none")


# ---------------------------------------------------------------- tasks and files


def test_tasks_of_a_file_and_back(tmp_path: Path) -> None:
    (tmp_path / "tasks.toml").write_text(FILE)
    tasks = tp.tuning.read_tasks(tmp_path / "tasks.toml")
    assert len(tasks) == 6 + 2
    assert [each.described["A"].shape[0] for each in tasks[:6:2]] == [1000, 2000, 4000]
    assert [each.described["D"].shape for each in tasks[6:]] == [(70, 8), (70, 16)]  # r is shared
    assert dict(tasks[0].options) == {"trials": 5}
    assert dict(tasks[-1].options) == {"threads": 1, "trials": 9}
    assert tp.tuning.write_tasks(tmp_path / "again.toml", tasks) == 8
    assert tp.tuning.read_tasks(tmp_path / "again.toml") == tasks
    assert tasks_in(FILE, "")[1] == ("c", "cuda")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[800] }", "[801] }", r"line 9 of t.toml, task\[1\].operands.x.shape: Expected size 800"),
        ("0.01 }", "2 }", r"line 8 of t.toml, task\[1\].operands.A.density: .* found 2"),
        ('"power"', '"pwer"', r"line 16 of t.toml, task\[2\].operands.T.rows"),
        ("C = {", "E = {", r"task\[2\].operands: .* of C"),
        ('"1.1"', '"5.1"', r"line 19 of t.toml, task\[2\].mutate.* below 3.* found 5"),
        ("powers", "power", r"line 21 of t.toml, task\[2\].mutate\[1\].power: "),
        ("x[j]\"", "x[j\"", r"line 7 of t.toml, task\[1\].text: "),
        ("trials = 5", "trails = 5", r"line 3 of t.toml, options.trails: "),
        ("[[task]]\nname", "[[tusk]]\nname", r"line 5 of t.toml, tusk"),
        ("name = ", "name ", "an error: "),
        ('["c", "cuda"]', "3", r"line 1 of t.toml, targets: "),
    ],
)  # fmt: skip
def test_errors_of_a_file_name_line_and_key(old: str, new: str, told: str) -> None:
    assert old in FILE
    with pytest.raises(tp.FileFormatError, match=told):
        tasks_in(FILE.replace(old, new), "t.toml")


def test_rules_address_by_position() -> None:
    task = tp.tuning.task(SPMV, {"A": A, "x": X})
    many = tp.tuning.mutated(
        task,
        {"size": "0.1", "multiples": [1, 2]},
        {"density": 0, "multiples": [1, 0.1]},
        {"dtype": "*", "values": ["float64", "float32"]},
        {"option": "threads", "values": [1, 2]},
    )
    assert len(many) == 16
    assert {each.described["x"].shape for each in many} == {(800,), (1600,)}
    assert {each.described["A"].density for each in many} == {0.01, 0.001}
    assert {(a.dtype, x.dtype) for each in many for (_, a), (_, x) in [each.operands]} == {
        ("float64", "float64"),
        ("float32", "float32"),
    }
    square = tp.tuning.task(
        "y[i] = A[i,j] * A[j,k] * x[k]", {"A": {**A, "shape": [9, 9]}, "x": {"shape": [9]}}
    )
    (grown,) = tp.tuning.mutated(square, {"size": "x.0", "values": [12]})
    assert grown.described["A"].shape == (12, 12)
    for rule in ({"size": "A.7", "values": [1]}, {"size": "A"}, {"dtype": 0, "powers": [1]}):
        with pytest.raises(tp.OperandError, match="Expected"):
            tp.tuning.mutated(task, rule)


def test_a_rule_of_all_operands_takes_what_each_has() -> None:
    square = {"shape": [100, 100], "format": "csr_array"}
    given = {"A": square | {"density": 0.1}, "B": square | {"nnz": 100}, "x": {"shape": [100]}}
    task = tp.tuning.task("y[i] = A[i,j] * B[j,k] * x[k]", given)

    def changed(**rule: Any) -> list[tuple[int, int]]:
        found = tp.tuning.mutated(task, {**rule})
        assert all(each.described["x"] == task.described["x"] for each in found)
        return [(each.described["A"].entries, each.described["B"].entries) for each in found]

    assert changed(density="*", multiples=[0.5, 2]) == [(500, 50), (2000, 200)]
    assert changed(nnz="*", multiples=[0.5, 2]) == [(500, 50), (2000, 200)]
    assert changed(nnz="*", values=[70]) == [(70, 70)]
    with pytest.raises(tp.OperandError, match="sparse format"):
        changed(nnz="x", values=[70])


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (
            {"size": "A.0", "values": [2.5]},
            r"A: Expected a list of sizes from 0, found \[2.5, 800\]",
        ),
        ({"size": "A.0", "values": [-5]}, r"found \[-5, 800\]"),
        ({"size": "A.0", "values": ["big"]}, r"found \['big', 800\]"),
        ({"density": "A", "values": ["big"]}, "A: Expected a number from 0 to 1, found 'big'"),
        ({"density": "A", "values": [2]}, "found 2"),
        ({"nnz": "A", "values": [2.5]}, "A: Expected a whole number from 0, found 2.5"),
        ({"size": "A.0", "multiples": [float("inf")]}, "Expected numbers from 0, found inf"),
        ({"option": "trials", "values": ["many"]}, "Expected trials to be a whole number from 1"),
        ({"option": "threads", "values": ["many"]}, "a positive number of threads.* found 'many'"),
        ({"size": "A.0", "powers": [5000]}, r"lead to finite numbers, found 2\*\*5000"),
        ({"size": "A.0", "multiples": [1e308]}, r"lead to finite numbers, found 1e\+308"),
    ],
)
def test_values_of_rules_are_checked(rule: dict[str, Any], told: str) -> None:
    drawn = make_operand(described(shape=(1000, 800), format="csr_array", density=0.01))
    for own in (A, drawn):  # by a density, and by degrees
        with pytest.raises(tp.OperandError, match=told):
            tp.tuning.mutated(tp.tuning.task(SPMV, {"A": own, "x": X}), rule)


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("trials", "many", "trials to be a whole number from 1 on, found 'many'"),
        ("trials", 0, "found 0"),
        ("seconds", -5, "seconds to be a number of seconds above 0, found -5"),
        ("search", "modl", "search to be one of .* found 'modl'"),
        ("seed", 1.5, "seed to be a whole number, found 1.5"),
        ("threads", 0, "a positive number of threads.* found 0"),
        ("dtype", "float99", "dtype to be a dtype, found 'float99'"),
        ("casting", "sfe", "casting to be one of .* found 'sfe'"),
        ("static", {"i": "many"}, "an integer as the static size of index i, found 'many'"),
        ("libraries", "yes", "True or False, found 'yes'"),
        ("forbid", ["nonsense"], "names of rules in forbid, found 'nonsense'"),
        ("allow", ["nonsense"], "'cancellation' in allow"),
        ("semiring", "min_pls", "name of a semiring, found 'min_pls'"),
        ("format", 3, "a Format or its text, found 3"),
    ],
)
def test_options_are_checked(option: str, value: Any, told: str) -> None:
    with pytest.raises(tp.OperandError, match=told):
        tp.tuning.task(SPMV, {"A": A, "x": X}, **{option: value})
    with pytest.raises(tp.OperandError, match=told), tp.tuning.record(**{option: value}):
        pass
    text = FILE.replace("trials = 5", f"{option} = {toml(value)}")
    with pytest.raises(tp.FileFormatError, match=f"line 3 of t.toml, options.{option}: .*{told}"):
        tasks_in(text, "t.toml")


def test_options_are_those_of_the_text() -> None:
    for option, told in (({"format": "ds"}, "level letter"), ({"static": {"q": 3}}, "found 'q'")):
        with pytest.raises(tp.OperandError, match=told):
            tp.tuning.task(SPMV, {"A": A, "x": X}, **option)


def test_options_of_any_type_are_plain_in_jobs() -> None:
    """Jobs are JSON, and are told apart by what their options say."""
    given = {"dtype": np.float32, "format": tp.dense(1), "threads": np.int64(2), "seed": np.int8(3)}
    plain = {"dtype": "f4", "format": "d", "threads": 2, "seed": 3}
    ring = tp.Semiring("min", "plus")
    one = tp.tuning.task(SPMV, {"A": A, "x": X}, semiring=ring, static={"i": 1000}, **given)
    other = tp.tuning.task(SPMV, {"A": A, "x": X}, semiring="min_plus", static={"i": 1000}, **plain)
    assert one.job() == other.job()
    assert one.call_options["dtype"] == "float32"
    with pytest.raises(tp.OperandError, match="zero and one of its operators"):
        tp.tuning.task(SPMV, {"A": A, "x": X}, semiring=tp.Semiring("min", "plus", one=0))


def test_degrees_grow_with_sizes_and_densities() -> None:
    task = tp.tuning.task(
        SPMV,
        {
            "A": make_operand(described(shape=(400, 300), format="csr_array", density=0.02)),
            "x": X | {"shape": [300]},
        },
    )
    (twice,) = tp.tuning.mutated(task, {"size": "A.0", "multiples": [2]})
    assert twice.described["A"].nnz == 4800
    (dense,) = tp.tuning.mutated(task, {"nnz": "A", "multiples": [4]})
    for each, count in ((twice, 4800), (dense, 9600)):
        made = each.make_operands()["A"]
        assert abs(made.nnz - count) <= 0.02 * count


def test_hashes_depend_on_what_is_tuned() -> None:
    task = tp.tuning.task(SPMV, {"A": A, "x": X}, trials=3)
    named = tp.tuning.task(SPMV, {"x": X, "A": A}, name="spmv", trials=3)
    assert task.job().hash == named.job().hash
    others = (
        task.job("cuda"), task.with_options(trials=4).job(),
        tp.tuning.task(SPMV, {"A": {**A, "seed": 1}, "x": X}, trials=3).job(),
    )  # fmt: skip
    assert len({task.job().hash, *(each.hash for each in others)}) == 4
    with pytest.raises(tp.OperandError, match="trails"):
        tp.tuning.task(SPMV, {"A": A, "x": X}, trails=3)


def test_hashes_of_sets_are_the_same_in_each_process() -> None:
    rules = ("fuse_modes", "hoist_sum", "gallop", "contract", "look_up_row")
    hashes = {
        tp.tuning.task(SPMV, {"A": A, "x": X}, forbid=given).job().hash
        for given in (set(rules), frozenset(rules), sorted(rules))
    }
    assert len(hashes) == 1


# ---------------------------------------------------------------- what calls ask


def test_calls_of_a_script_become_tasks(tmp_path: Path) -> None:
    matrix = sp.random_array((60, 50), density=0.1, format="csr", rng=np.random.default_rng(0))
    x, tensor = np.ones(50), tp.Tensor.from_scipy(matrix)
    before = tp.evaluate(SPMV, A=matrix, x=x)  # the short way is known
    with tp.tuning.record(trials=7) as tasks:
        for _ in range(3):
            assert np.array_equal(tp.evaluate(SPMV, A=matrix, x=x), before)
        tp.evaluate(SPMV, A=matrix, x=x, semiring="min_plus", threads=1)
        tp.evaluate(SPMV, A=matrix, x=x, mask=np.ones(60, bool))
        tensor @ x
        tp.evaluate(f"z[i] = A[i,j] * x[j]; {SPMV} + z[i]", A=matrix, x=x)
    tp.evaluate(SPMV, A=matrix, x=x[:, None].ravel())  # not any more
    assert len(tasks) == 3
    assert list(tasks.counts.values()) == [3, 1, 1]
    assert dict(tasks[1].options) == {"semiring": "min_plus", "threads": 1, "trials": 7}
    assert tasks.skipped == {
        "calls with a mask have no tasks yet": 1,
        "several statements, and results by name, have no tasks yet": 1,
    }
    assert tasks[2].described["a0" if "a0" in tasks[2].described else "op0"].format == "ds"
    with tp.TuningStore() as store:
        made = store.key(tasks[0].text, tasks[0].make_operands())
        assert made == store.key(SPMV, A=matrix, x=x)
    tasks.write(tmp_path / "t.toml")
    assert tp.tuning.read_tasks(tmp_path / "t.toml") == tuple(tasks)
    assert "3 ×  y[i] = sum(j, A[i,j] * x[j])" in repr(tasks)


def test_contractions_that_no_option_of_a_task_tells_are_left_out() -> None:
    a, b = np.ones((3, 4)), np.ones((4, 5))
    with tp.tuning.record() as tasks:
        for optimize in (None, False, ("greedy", 50)):
            tp.einsum("ij,jk->ik", a, b, optimize=optimize)
    assert list(tasks.counts.values()) == [1]
    assert list(tasks.skipped.values()) == [2]
    assert "in one sweep" in next(iter(tasks.skipped))
