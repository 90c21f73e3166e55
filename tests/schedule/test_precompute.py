"""Parts of values computed first: the statements that this makes, results, refusals."""

from __future__ import annotations

import re

import numpy as np
import pytest

import taco_py as tp
from taco_py.compiler.concrete.printer import to_text
from taco_py.compiler.schedule.apply import apply_all
from taco_py.compiler.schedule.loop_state import Loops, textual_orders
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.parser import parse_assignment
from tests.problems import problem

RNG = np.random.default_rng(7)


def sparse(*shape: int) -> np.ndarray:
    return RNG.random(shape) * (RNG.random(shape) < 0.3)


ARRAYS = {
    "A": sparse(13, 11),
    "B": sparse(11, 17),
    "E": sparse(13, 11),
    "X": RNG.random((11, 9)),
    "U": RNG.random((13, 5)),
    "V": RNG.random((11, 5)),
    "x": RNG.random(11),
    "b": RNG.random(13),
    "T": sparse(7, 8, 9),
    "F": RNG.random((8, 5)),
    "G": RNG.random((9, 5)),
}
FORMATS = {"A": tp.CSR, "B": tp.CSR, "E": tp.CSR, "T": tp.CSF(3)}
OPERANDS = {name: tp.tensor(a, format=FORMATS.get(name)) for name, a in ARRAYS.items()}

PRODUCT, SPMV, SPMM = "C[i,j]=A[i,k]*B[k,j]", "y[i]=A[i,j]*x[j]", "C[i,k]=A[i,j]*X[j,k]"
SUM, SDDMM = "C[i,j]=A[i,j]+E[i,j]", "D[i,j]=A[i,j]*U[i,k]*V[j,k]"
MTTKRP = "M[i,r]=T[i,k,l]*G[l,r]*F[k,r]"
GUSTAVSON = "reorder(i,k,j), precompute(A(i,k)*B(k,j),j,jw,w)"
SCHEDULES = (
    (PRODUCT, GUSTAVSON),
    (PRODUCT, "reorder(i,k,j), precompute(B(k,j)*A(i,k),j,j)"),
    (PRODUCT, "reorder(i,k,j), precompute(B(k,j),j,jw,w)"),
    (PRODUCT, "reorder(i,k,j), precompute(A(i,k),k,kw,w)"),
    (PRODUCT, "reorder(k,i,j), precompute(A(i,k)*B(k,j),{i,j},{iw,jw},w)"),
    (PRODUCT, "precompute(A(i,k)*B(k,j),{},{},s)"),
    (SPMV, "precompute(x(j),j,jw,w)"),
    (SPMV, "precompute(A(i,j),j,jw,w)"),
    (SPMV, "precompute(A(i,j)*x(j),{},{},s)"),
    (SPMV, "split(j,j0,j1,4), precompute(A(i,j)*x(j),j1,jw,w)"),
    (SPMV, "split(j,j0,j1,4), reorder(j0,i,j1), precompute(x(j),j1,jw,w), vectorize(jw)"),
    ("y[i]=b[i]-A[i,j]*x[j]", "precompute(x(j),j,jw,w)"),
    ("y[i]=2*b[i]", "split(i,a,c,3), split(a,d,e,2), fuse(e,c,f), precompute(b(i),f,f,w)"),
    ("y[i]=2*b[i]", "split(i,a,c,3), split(c,d,e,2), fuse(a,d,f), precompute(b(i),e,e,w)"),
    ("W[i,k]=U[i,k]*b[i]", "split(k,a,c,2), fuse(i,a,f), precompute(U(i,k),c,c,w)"),
    ("W[i,k]=U[i,k]*b[i]", "divide(k,a,c,3), fuse(i,a,f), precompute(U(i,k),c,c,w)"),
    ("y[i]=b[i]+A[i,j]*x[j]", "reorder(j,i), precompute(A(i,j)*x(j),{j,i},{j,i},w)"),
    ("y[i]=b[i]+A[i,j]*x[j]", "reorder(j,i), precompute(A(i,j),{i,j},{i,j},w)"),
    (SPMM, "split(k,k0,k1,4), reorder(i,k0,j,k1), precompute(A(i,j)*X(j,k),k1,kw,w), unroll(kw,2)"),
    (SDDMM, "precompute(U(i,k)*V(j,k),{},{},s)"),
    (SDDMM, "precompute(U(i,k),k,kw,w)"),
    (SUM, "precompute(A(i,j)+E(i,j),{i,j},{iw,jw},w)"),
    (MTTKRP, "split(i,a,b,4), reorder(a,b,k,l,r), precompute(T(i,k,l)*G(l,r),r,r,w)"),
    (MTTKRP, "reorder(i,k,r,l), precompute(T(i,k,l)*G(l,r),{},{},w)"),
)


def used(text: str) -> dict[str, str]:
    return {name: name for name in ARRAYS if f"{name}[" in text.partition("=")[2]}


@pytest.mark.rotating(2)
@pytest.mark.parametrize("result", ["sparse", "dense"])
@pytest.mark.parametrize(("text", "schedule"), SCHEDULES)
def test_results(text: str, schedule: str, result: str) -> None:
    operands = {name: OPERANDS[name] for name in used(text)}
    expected = tp.evaluate_dense(parse_assignment(text), {n: ARRAYS[n] for n in used(text)})
    form = tp.dense(expected.ndim) if result == "dense" or expected.ndim < 2 else tp.CSR
    for threads in (1, 2):
        found = tp.evaluate(text, schedule=schedule, format=form, threads=threads, **operands)
        found = found.to_numpy() if isinstance(found, tp.Tensor) else np.asarray(found)
        np.testing.assert_allclose(found, expected)


STATEMENTS = (
    (
        PRODUCT,
        GUSTAVSON,
        "forall i\n"
        "  forall j\n"
        "    C[i,j] += w[j]\n"
        "  where w[j]: row workspace of float64\n"
        "    forall k\n"
        "      forall j\n"
        "        w[j] += A[i,k] * B[k,j]",
    ),
    (
        SPMV,
        "precompute(x(j),j,jw,w)",
        "forall i\n"
        "  y[i] = t\n"
        "  where t[]: scalar workspace of float64\n"
        "    forall j\n"
        "      t += A[i,j] * w[j]\n"
        "where w[j]: dense workspace of float64\n"
        "  forall j\n"
        "    w[j] = x[j]",
    ),
    (
        SPMV,
        "precompute(A(i,j)*x(j),{},{},s)",
        "forall i\n"
        "  y[i] = s\n"
        "  where s[]: scalar workspace of float64\n"
        "    forall j\n"
        "      s += A[i,j] * x[j]",
    ),
)


def scheduled(text: str, schedule: str, result: str | None = None) -> str:
    names = {name: str(FORMATS[name]) for name in used(text) if name in FORMATS}
    whole = problem(text, names, result)
    loops = Loops(whole.assignment, textual_orders(whole.assignment))
    return to_text(apply_all(loops, Schedule.parse(schedule)).statement(whole))


@pytest.mark.parametrize(("text", "schedule", "statement"), STATEMENTS)
def test_statements(text: str, schedule: str, statement: str) -> None:
    order = text.partition("=")[0].count(",") + 1
    assert scheduled(text, schedule, "d" * order) == statement


def test_the_row_of_mttkrp_is_dense() -> None:
    schedule = "reorder(i,k,l,r), precompute(T(i,k,l)*G(l,r),r,rw,w), vectorize(rw)"
    formats = {"T": tp.CSF(3), "G": tp.dense(2), "F": tp.dense(2), "M": tp.dense(2)}
    concrete = tp.compile(MTTKRP, formats, schedule=schedule).source
    for line in ("M[i,r] += w[r] * F[k,r]", "w[r]: dense workspace", "forall r vector"):
        assert line in concrete


def test_a_workspace_over_tiles_has_a_tiles_size() -> None:
    schedule = "split(k,k0,k1,4), reorder(i,k0,j,k1), precompute(A(i,j)*X(j,k),k1,kw,w)"
    kernel = tp.compile(SPMM, {"A": tp.CSR, "X": tp.dense(2)}, schedule=schedule)
    assert "double w[4];" in kernel.source
    assert "w[k - w_k]" in kernel.source


REFUSED = (
    (SPMV, "precompute(x(i),i,iw,w)", "x[i] is not read in y[i]"),
    (SPMV, "precompute(x(j),k,kw,w)", "there is no loop over k"),
    (SPMV, "precompute(x(j),j,i,w)", "the name i is taken"),
    (SPMV, "precompute(x(j),j,jw,A)", "the name A is taken"),
    (SPMV, "precompute(x(j)+A(i,j),j,jw,w)", "it is no part of what is assigned"),
    (SPMV, "precompute(x(j),j,jw,w), split(j,a,b,2)", "has taken the loops over j apart"),
    (SPMV, "precompute(x(j),j,jw,w), reorder(j,i)", "has taken the loops over j apart"),
    (SPMV, "precompute(x(j),j,jw,w), split(jw,a,b,2)", "has taken the loops over j apart"),
    (SPMV, "precompute(x(j),j,jw,w), precompute(A(i,j),j,jw,v)", "the name jw is taken"),
    (
        SPMV,
        "split(j,j0,j1,4), precompute(x(j),j,jw,w), unroll(jw,2)",
        "jw stands for j, which is no loop any more",
    ),
    (PRODUCT, "precompute(A(i,k)*B(k,j),i,iw,w)", "no loop over i is right around it"),
    (
        SPMV,
        "fuse(i,j,f), precompute(A(i,j)*x(j),f,fw,w)",
        "f goes through i and j, which are not",
    ),
    (SUM, "precompute(A(i,j),j,jw,w)", "C would store every j"),
)


@pytest.mark.parametrize(("text", "schedule", "reason"), REFUSED)
def test_refusals(text: str, schedule: str, reason: str) -> None:
    order = text.partition("=")[0].count(",") + 1
    with pytest.raises(ScheduleError) as caught:
        scheduled(text, schedule, "ds" if order == 2 else "d")
    assert reason in caught.value.message
    assert caught.value.hint


def test_a_loop_that_both_depend_on_stays_outside() -> None:
    text = "C[i,j]=X[i,j]*U[i,j]"
    with pytest.raises(ScheduleError, match="the loop over j, on which both"):
        scheduled(text.replace("C[i,j]", "C[j]"), "reorder(i,j), precompute(X(i,j),i,iw,w)", "d")


POSITIONS = (
    ("precompute(A(i,j)*x(j),a,a,w)", "a counts tiles of the positions of A, which what is left"),
    ("precompute(x(j),a,a,w)", "a counts tiles of the positions of A, which what is precomputed"),
)


@pytest.mark.parametrize(("command", "words"), POSITIONS)
def test_tiles_of_positions_that_are_not_read_are_refused(command: str, words: str) -> None:
    """Also where the loop over the last of them is called like the index."""
    schedule = f"pos(j,p,A), split(p,a,e,2), reorder(i,e,a), {command}"
    with pytest.raises(ScheduleError, match=re.escape(words)):
        tp.evaluate(SPMV, A=OPERANDS["A"], x=ARRAYS["x"], schedule=schedule)


def test_a_shared_loop_over_positions_reads_them() -> None:
    made = tp.schedule(SPMV, A=tp.CSR, x="s", y=tp.dense(1)).apply("pos(j,p,A)")
    made.apply("precompute(A(i,j),p,q,w)")
    with pytest.raises(ScheduleError, match="over positions of A, which it does not read"):
        made.apply("parallelize(p,CPUThread,Temporary)")
    made.legal_moves()


def test_rows_that_are_looked_up_stay_rows() -> None:
    """What is looked up in them is asked for along one index."""
    made = tp.schedule(SPMV, A=tp.CSR, x="s", y=tp.dense(1)).apply("precompute(A(i,j),j,q,w)")
    with pytest.raises(ScheduleError, match="is read together with other coordinates of i"):
        made.apply("fission(i)")


NARROW = (
    ("x[i] * B[i,j] * c[j]", "B(i,j)*c(j)", "float32", "computed in float32"),
    ("x[i] * B[i,j] * c[j]", "B(i,j)*c(j)", "complex64", "computed in complex64"),
    ("x[i] * B[i,j]", "B(i,j)", "float32", "be rounded elsewhere"),
)


@pytest.mark.parametrize(("value", "part", "dtype", "words"), NARROW)
def test_parts_that_are_rounded_elsewhere_are_refused(
    value: str, part: str, dtype: str, words: str
) -> None:
    """1e25 * 1e25 is no float32, and neither is the sum of 2^24 ones and one more."""
    operands = {"x": np.ones(3), "B": np.full((3, 4), 1e25, dtype), "c": np.full(4, 1e25, dtype)}
    read = {name: array for name, array in operands.items() if f"{name}[" in value}
    with pytest.raises(ScheduleError, match=words):
        tp.evaluate(f"y[i] = {value}", read, schedule=f"precompute({part},{{}},{{}},w)")


def test_a_part_in_a_narrower_type_that_is_exact_is_none_the_less_computed_first() -> None:
    x, b = np.ones(3), np.full((3, 4), 1e25, np.float32)
    found = tp.evaluate("C[i,j] = x[i] * B[i,j]", x=x, B=b, schedule="precompute(B(i,j),j,jw,w)")
    np.testing.assert_array_equal(found, x[:, None] * b)


def test_integers_that_wrap_elsewhere_are_refused() -> None:
    small = ARRAYS["A"].astype(np.int8)
    with pytest.raises(ScheduleError, match="computed in int8"):
        tp.evaluate(
            "C[i,j] = A[i,j] * x[j] * z[j]",  # in sums all would be widened
            schedule="precompute(A(i,j)*x(j),j,jw,w)",
            A=tp.tensor(small, format=tp.CSR),
            x=np.ones(11, np.int8),
            z=np.ones(11, np.int32),
        )


TEXTS = (
    "precompute(A(i,k) * B(k,j),j,jw,w)",
    "precompute((A(i,k) + E(i,k)) * x(k),{},{},s)",
    "precompute(((A(i,k) + E(i,k)) * x(k)),{i,k},{iw,kw})",
)


@pytest.mark.parametrize("text", TEXTS)
def test_what_prints_parses_back(text: str) -> None:
    schedule = Schedule.parse(text)
    assert Schedule.parse(str(schedule)) == schedule


@pytest.mark.parametrize("text", ["precompute(A(i,,j,jw,w)", "precompute(x(j),j)", "precompute()"])
def test_mistakes_in_the_text(text: str) -> None:
    with pytest.raises(ScheduleError):
        Schedule.parse(text)


def test_a_loop_over_a_workspaces_entries_is_not_shared() -> None:
    schedule = "reorder(k,i,j), precompute(A(i,k)*B(k,j),{i,j},{iw,jw},w), parallelize(i)"
    operands = {name: OPERANDS[name] for name in "AB"}
    with pytest.raises(ScheduleError, match=r"walks the workspace w|of the workspace w"):
        tp.evaluate(PRODUCT, schedule=schedule, format=tp.dense(2), **operands)
