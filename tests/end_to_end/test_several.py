"""Several statements in one text give what one call after another gives, and the oracle."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck

import taco_py as tp
from taco_py.calls.call import compute
from taco_py.calls.kernels import kernel as kernel_module
from taco_py.language.diagnostics.errors import NotationError, OperandError, OutputError, TacoError
from tests.corpus.formats import MORE_OPERANDS, OPERANDS, store, to_dense
from tests.corpus.statement_lists import FLOATS, Drawn, statement_lists

ROOT = Path(__file__).parents[2]
RESIDUAL = "m[i] = A[i,j] * x[j]; r[i] = b[i] - m[i]; s = r[i] * r[i]"
SOFT = "e[i,j] = A[i,j] * 2; z[i] = sum(j, e[i,j]); P[i,j] = e[i,j] / z[i]"


def operands() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    matrix = sp.random_array((7, 5), density=0.4, format="csr", rng=rng)
    return {"A": matrix, "x": rng.random(5), "b": rng.random(7)}


def soft(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`SOFT` by NumPy: rows that are empty stay so."""
    sums = array.sum(1, keepdims=True)
    return np.divide(array, sums, out=np.zeros_like(array), where=sums != 0)


# ---------------------------------------------------------------- what a text means


def test_later_statements_read_what_earlier_ones_assign() -> None:
    given = operands()
    r = given["b"] - given["A"] @ given["x"]
    assert tp.evaluate(RESIDUAL, given) == pytest.approx(r @ r)
    found, total = tp.evaluate(RESIDUAL, given, outputs=("r", "s"))
    np.testing.assert_allclose(found, r)
    assert total == pytest.approx(r @ r)
    np.testing.assert_allclose(tp.evaluate(RESIDUAL, given, outputs="r"), r)


@pytest.mark.parametrize(
    "text",
    [
        "m[i] = A[i,j] * x[j]\nr[i] = b[i] - m[i]",
        "m[i] = A[i,j]\n   * x[j]  # a line goes on; as this one does\nr[i] = b[i]\n - m[i]\n",
        "# two statements\nm[i] = sum(j,\nA[i,j] * x[j]);\n\nr[i] = b[i] - m[i];",
        "m(i) = A(i,j) * x(j); r(i) = b(i) - m(i)",
        "r[i] = b[i]\n- A[i,j]\n* x[j]",
    ],
)
def test_semicolons_and_lines_end_statements(text: str) -> None:
    given = operands()
    expected = given["b"] - given["A"] @ given["x"]
    np.testing.assert_allclose(tp.evaluate(text, given), expected)
    np.testing.assert_allclose(tp.evaluate_dense(text, given), expected)


@pytest.mark.parametrize("name", (*OPERANDS[2], *MORE_OPERANDS[2]))
def test_every_format_of_an_operand(name: str) -> None:
    array = operands()["A"].toarray()
    given = {"A": store(array, name)}
    found, sums = tp.evaluate(SOFT, given, outputs=("P", "z"))
    np.testing.assert_allclose(to_dense(sums), array.sum(1) * 2)
    if name.startswith(("dense", "dd")):
        return  # a dense operand stores its zeros, and 0 / 0 is NaN
    np.testing.assert_allclose(to_dense(found), soft(array))


@pytest.mark.parametrize("name", (*OPERANDS[2], *MORE_OPERANDS[2]))
def test_what_is_absent_is_what_it_is_in_one_call_after_another(name: str) -> None:
    """A row without entries over a divisor of 0: 0 or NaN, as its sum is stored."""
    array = operands()["A"].toarray()
    array[3] = 0
    given = {"A": store(array, name), "d": np.zeros(7)}
    text = "m[i] = sum(j, A[i,j]); q[i] = m[i] / d[i]"
    first = tp.evaluate("m[i] = sum(j, A[i,j])", A=given["A"])
    expected = to_dense(tp.evaluate("q[i] = m[i] / d[i]", m=first, d=given["d"]))
    np.testing.assert_array_equal(to_dense(tp.evaluate(text, given)), expected)
    np.testing.assert_array_equal(tp.evaluate_dense(text, given), expected)


def test_sparse_tensors_between_statements_stay_sparse() -> None:
    shape = (100_000, 100_000)
    matrix = sp.coo_array((np.ones(4), ([0, 5, 9, 9], [1, 2, 99_999, 3])), shape=shape).tocsr()
    found, sums = tp.evaluate(SOFT, A=matrix, outputs=("P", "z"))  # 80 GB where e were dense
    assert found.nnz == 4
    assert sums[9] == 4.0
    assert "between   e[i,j] = A[i,j] * 2, stored as ds/float64/" in tp.explain(SOFT, A=matrix)


def test_a_result_is_the_object_that_one_call_returns() -> None:
    matrix = operands()["A"]
    text = "e[i,j] = A[i,j] * 2; f[i,j] = e[j,i] + e[j,i]; v[i] = sum(j, f[j,i])"
    first = tp.evaluate("e[i,j] = A[i,j] * 2", A=matrix)
    second = tp.evaluate("f[i,j] = e[j,i] + e[j,i]", e=first)
    outputs = tp.evaluate(text, A=matrix, outputs=("e", "f", "v"))
    assert [type(each) for each in outputs] == [type(first), type(second), np.ndarray]
    assert type(tp.evaluate(text, A=tp.tensor(matrix), outputs="f")) is tp.Tensor


def test_sums_are_added_to_earlier_targets_operands_and_arrays() -> None:
    given = operands()
    m, b = given["A"] @ given["x"], given["b"]
    text = "y[i] = A[i,j] * x[j]; y[i] += b[i]; t = y[i] * b[i]; y[i] += 2 * b[i]"
    y, t = tp.evaluate(text, given, outputs=("y", "t"))
    np.testing.assert_allclose(y, m + 3 * b)
    assert t == pytest.approx((m + b) @ b)
    later = "q[i] = 2 * y[i]; y[i] += A[i,j] * x[j]; y[i] += q[i] * b[i]"
    np.testing.assert_allclose(tp.evaluate(later, given, y=b, outputs="y"), b + m + 2 * b * b)
    begun = np.array(b)
    for times in (1, 2, 3):
        text = "y[i] += A[i,j] * x[j]; y[i] += b[i]"
        assert tp.evaluate(text, given, out=begun) is begun
        np.testing.assert_allclose(begun, b + times * (m + b))


def test_a_statement_that_nobody_reads_is_dropped_and_told() -> None:
    given = operands()
    text = f"{RESIDUAL}; q[i] = u[i] * b[i]"
    found = tp.evaluate(text, given, outputs=("r",))  # nor is its operand asked for
    assert len(found) == 1
    told = tp.explain(text, given, outputs=("r",))
    assert "results   r (ndarray)" in told
    assert "dropped   s = sum(i, r[i] * r[i]): nothing reads s, which is no output" in told
    assert "dropped   q[i] = u[i] * b[i]: nothing reads q, which is no output" in told
    assert "runs      1 kernel, 0 copies" in told


def test_formats_and_arrays_by_name() -> None:
    given = operands()
    sums = np.empty(7)
    for _ in range(2):
        found, z = tp.evaluate(
            SOFT, A=given["A"], outputs=("P", "z"), format={"P": "dd", "e": "ds"}, out={"z": sums}
        )
        assert z is sums
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, soft(given["A"].toarray()))
    np.testing.assert_allclose(sums, given["A"].sum(1) * 2)
    assert tp.evaluate(SOFT, A=given["A"], format="ss").format == tp.Format.parse("ss")
    single = tp.evaluate("y[i] = A[i,j] * x[j]", A=given["A"], x=given["x"], outputs=("y",))
    np.testing.assert_allclose(single[0], given["A"] @ given["x"])


def test_types_are_those_of_one_call_after_another() -> None:
    a = np.arange(-60, 60, dtype=np.int8)
    text = "t[i] = a[i] * 2; s = sum(i, t[i]); u[i] = t[i] + a[i]; v[i] = t[i] / s"
    s, u, v = tp.evaluate(text, a=a, outputs=("s", "u", "v"))
    t = a * np.int8(2)  # which wraps
    assert (s.dtype, u.dtype, v.dtype) == (np.int64, np.int8, np.float64)
    assert s == t.sum()
    np.testing.assert_array_equal(u, t + a)
    assert tp.evaluate(text, a=a, dtype="float32", outputs="s") == a.sum() * 2.0
    twice = sp.coo_array((np.array([200, 100], np.uint8), ([1, 1], [2, 2])), shape=(3, 3))
    whole, own = tp.evaluate("C[i,j] = 1.0 * A[i,j]; D[i,j] = A[i,j]", A=twice, outputs=("C", "D"))
    assert (whole.toarray()[1, 2], own.toarray()[1, 2]) == (300.0, 44)


def test_a_tensor_is_read_in_one_type_by_one_statement_and_in_another_by_the_next() -> None:
    """A plan that widens the sums of one statement leaves the tensors of others as they are."""
    A = np.array([[2, 1], [-1, 3]], dtype=np.int8)
    text = "t[i] = A[i,i]; u = A[i,i]; u += t[i] * 0.5; v = u * 0.5"
    u, v = tp.evaluate(text, A=A, outputs=("u", "v"))
    assert (u, v) == (7.5, 3.75)
    large = np.array([2**53 + 1, 1])
    text = "p = x[i] * x[j] * w[i] * w[j]; q[i] = x[i] + x[i]"
    q = tp.evaluate(text, x=large, w=np.array([0.5, 2.0]), outputs=("p", "q"))[1]
    np.testing.assert_array_equal(q, large * 2)


def test_an_index_may_have_another_size_in_another_statement() -> None:
    text = "u[i] = sum(j, A[i,j]); v[i] = x[i] * x[i]; w = u[i] * u[i]; q = sum(i, v[i]) * w"
    for rows in (7, 5, 6):  # the same class of sizes: plans and short ways are shared
        matrix = sp.random_array((rows, 5), density=0.6, format="csr", rng=rows)
        x = np.arange(6.0)
        u = matrix.sum(1)
        assert tp.evaluate(text, A=matrix, x=x) == pytest.approx((x @ x) * (u @ u))


# ---------------------------------------------------------------- calls like one before


def counted(monkeypatch: pytest.MonkeyPatch, home: Any, name: str) -> list[int]:
    """How many times a function is called from now on."""
    made, count = getattr(home, name), [0]

    def counting(*args: Any) -> Any:
        count[0] += 1
        return made(*args)

    monkeypatch.setattr(home, name, counting)
    return count


def test_a_second_call_is_not_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    count = counted(monkeypatch, compute, "prepare_within")
    for size in (40, 41, 50):
        matrix = sp.random_array((size, size), density=0.2, format="csr", rng=size)
        x, b = np.random.default_rng(size).random((2, size))
        r = b - matrix @ x
        assert tp.evaluate(RESIDUAL, A=matrix, x=x, b=b) == pytest.approx(r @ r)
    assert count[0] <= 1  # none where an earlier process has planned it
    for size in (40, 41, 50):
        matrix = sp.random_array((size, size), density=0.2, format="csr", rng=size)
        out = {"z": np.empty(size)}
        found, sums, _ = tp.evaluate(SOFT, A=matrix, outputs=("P", "z", "e"), out=out)
        np.testing.assert_allclose(found.toarray(), soft(matrix.toarray()))
        assert sums is out["z"]
    assert count[0] <= 2


def test_operands_that_do_not_fit_are_refused_in_later_calls_too() -> None:
    given = operands()
    tp.evaluate(RESIDUAL, given)
    with pytest.raises(TacoError, match="Expected one size for index i, found 6 in b"):
        tp.evaluate(RESIDUAL, {**given, "b": np.ones(6)})
    outs = {"r": np.ones(7), "s": np.ones(())}
    for _ in range(2):
        tp.evaluate(RESIDUAL, given, outputs=("r", "s"), out=outs)
    with pytest.raises(OutputError, match=r"Expected out= of shape \(7,\), found \(6,\)"):
        tp.evaluate(RESIDUAL, given, outputs=("r", "s"), out={**outs, "r": np.ones(6)})
    with pytest.raises(OutputError, match="Expected memory of its own for each result"):
        text = "u[i] = 2 * b[i]; v[i] = 3 * b[i]"
        both = np.ones(7)
        tp.evaluate(text, b=given["b"], outputs=("u", "v"), out={"u": both, "v": both})


CODE = f"""
import sys, numpy as np, scipy.sparse as sp, taco_py as tp
A, x, b = sp.eye_array(20, format="csr") * 2.0, np.ones(20), np.zeros(20)
r, s = tp.evaluate({RESIDUAL!r}, A=A, x=x, b=b, outputs=("r", "s"))
assert s == 80 and r[0] == -2
P, = tp.evaluate({SOFT!r}, A=A, outputs=("P",))
assert P[3, 3] == 1
print("taco_py.planner.make" in sys.modules)
"""


def test_a_later_process_finds_what_an_earlier_one_planned(tmp_path: Path) -> None:
    env = {**os.environ, "TACO_PY_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", CODE]
    printed = [
        subprocess.run(
            command, capture_output=True, text=True, cwd=ROOT, env=env, check=True
        ).stdout
        for _ in range(2)
    ]
    assert printed == ["True\n", "False\n"]


# ---------------------------------------------------------------- inlined


def test_what_is_read_once_over_its_own_indices_is_computed_where_it_is_read() -> None:
    matrix = operands()["A"]
    text = "e[i,j] = A[i,j] * 2; f[j,i] = e[i,j] * A[i,j]; z[i] = sum(j, f[j,i])"
    told = tp.explain(text, A=matrix)
    assert "runs      1 kernel, 0 copies" in told
    assert "inlined   e[i,j] = A[i,j] * 2: computed where f reads it, once for each" in told
    assert "kernel    z[i] = sum(j, A[i,j] * 2 * A[i,j])" in told
    assert "rounding (inline_statement)" in told
    for _ in range(2):
        np.testing.assert_allclose(tp.evaluate(text, A=matrix), 2 * matrix.power(2).sum(1))
    apart = ("inline_statement", "inline_temporary")
    assert "runs      3 kernels" in tp.explain(text, A=matrix, forbid=apart)
    assert "runs      3 kernels" in tp.explain(text, A=matrix, outputs=("e", "f", "z"))


@pytest.mark.parametrize(
    "text",
    [
        "e[i,j] = A[i,j] * 2; y[i] = sum(j, e[i,j]); q[i] = sum(j, e[i,j] * A[i,j]) - y[i]",
        "e[i,j] = A[i,j] * 2; y[i,k] = e[i,j] * B[j,k]",  # each of e would be computed for every k
        "e[i,j] = A[i,j] * 2; t = e[i,i]",
        "e[i] = a[i] * 2; y[i] = e[i] * x[i]",  # a wraps in int8, the product does not
        "e[i] = sum(j, A[i,j]); y[i] = e[i] * x[i]",
    ],
)
def test_what_is_not_computed_where_it_is_read(text: str) -> None:
    rng = np.random.default_rng(1)
    given = {n: sp.random_array((6, 6), density=0.4, format="csr", rng=rng) for n in "AB"}
    given |= {"x": rng.random(6), "a": np.array([100, 1, 2, -100, 3, 4], dtype=np.int8)}
    given = {name: each for name, each in given.items() if f"{name}[" in text}
    assert "inlined" not in tp.explain(text, given)
    np.testing.assert_allclose(to_dense(tp.evaluate(text, given)), tp.evaluate_dense(text, given))


def test_zeros_that_a_temporary_stores_stay_where_they_are() -> None:
    """A temporary with a dense level stores zeros, over which 0 / 0 is NaN; one in ds does not."""
    array = np.array([[1.0, 0.0], [0.0, 0.0]])
    text = "e[i,j] = A[i,j] * 2; y[i,j] = e[i,j] / d[j,i]"
    for name, inlined in (("sd", False), ("CSR", True), ("ss", True), ("dense", True)):
        given = {"A": store(array, name), "d": np.zeros((2, 2))}
        assert ("inlined" in tp.explain(text, given)) is inlined
        expected = tp.evaluate_dense(text, given)
        np.testing.assert_array_equal(to_dense(tp.evaluate(text, given)), expected)


# ---------------------------------------------------------------- compiled


def test_compiled_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    given = operands()
    kernel = tp.compile(RESIDUAL, A="ds", x="d", b="d", outputs=("r", "s"))
    count = counted(monkeypatch, kernel_module, "task_of")
    r = given["b"] - given["A"] @ given["x"]
    for _ in range(3):
        found, total = kernel(given["A"], given["x"], given["b"])
        np.testing.assert_allclose(found, r)
        assert total == pytest.approx(r @ r)
        found, _ = pickle.loads(pickle.dumps(kernel))(**given, threads=1)
        np.testing.assert_allclose(found, r)
    assert count == [4]  # each kernel that was unpickled finds its own way
    out = {"r": np.empty(7)}
    for _ in range(2):
        assert kernel(**given, out=out)[0] is out["r"]
        np.testing.assert_allclose(out["r"], r)
    assert "results   r (ndarray), s (ndarray)" in kernel.explain()
    assert "taco" in kernel.source
    assert repr(kernel).endswith("b: d/float64, r: d/float64, s: scalar/float64>")


def test_compiled_results_are_as_their_operands_and_formats_are() -> None:
    matrix = operands()["A"]
    kernel = tp.compile(SOFT, A="ds", P="ss", outputs=("P", "e"))
    found, e = kernel(matrix)
    assert found.format == tp.Format.parse("ss")
    assert type(e) is sp.csr_array
    assert type(kernel(tp.tensor(matrix))[1]) is tp.Tensor
    np.testing.assert_allclose(to_dense(found), soft(matrix.toarray()))
    adding = tp.compile("y[i] += A[i,j]; y[i] += b[i]", A="ds", b="d")
    y = np.ones(7)
    for times in (1, 2, 3):
        assert adding(A=matrix, b=np.ones(7), out=y) is y
        np.testing.assert_allclose(y, 1 + times * (matrix.sum(1) + 1))
    with pytest.raises(OperandError, match="Expected an operand b, found A, y"):
        adding(A=matrix, y=y)


# ---------------------------------------------------------------- mistakes


PROGRAM = "a value that is computed from its earlier one is tp.program's"
MISTAKES = [
    (
        "m[i] = x[i]; y[i] = y[i] + m[i]",
        "Expected a value that does not read what it assigns, found y on both sides\n"
        "  m[i] = x[i]; y[i] = y[i] + m[i]\n"
        "                      ^^^^\n"
        f"hint: write y[…] += … to add to it, or give the result another name; {PROGRAM}",
    ),
    (
        "a[i] = x[i] * c[i]\nc[i] = 2 * a[i]",
        "Expected c to be assigned before it is read, found its statement further on\n"
        "  a[i] = x[i] * c[i]\n"
        "                ^^^^\n"
        f"hint: write the statement of c first; {PROGRAM}",
    ),
    (
        "m[i] = x[i]; m[i] = 2 * x[i]",
        "Expected each name to be assigned once, found m a second time\n"
        "  m[i] = x[i]; m[i] = 2 * x[i]\n"
        "               ^^^^\n"
        f"hint: give it another name, or write += to add to m; {PROGRAM}",
    ),
    (
        "m[i] = x[i]; s = m[i,j]",
        "Expected m with 1 index, as where it is assigned, found it with 2\n"
        "  m[i] = x[i]; s = m[i,j]\n"
        "                   ^^^^^^\n"
        "hint: give two tensors two names",
    ),
    (
        "m[i] = x[i] *\ns = m[i]",
        "Expected a tensor, a number or '(', found the end of the line\n"
        "  m[i] = x[i] *\n"
        "               ^",
    ),
    (
        "m[i] = (x[i]; s = m[i]",
        "Expected ')' for this '(', found ';'\n"
        "  m[i] = (x[i]; s = m[i]\n"
        "         ^\n"
        "hint: close it with ')'",
    ),
    (
        "m[i] = x[i];; s = m[i]",
        "Expected the name of the result, found ';'\n"
        "  m[i] = x[i];; s = m[i]\n"
        "              ^\n"
        'hint: an example of the notation is "y[i] = A[i,j] * x[j] + 2.5 * b[i]"',
    ),
    (
        "m[i] = x[i]\ns m[i]",
        "Expected an operator or the end of the text, found 's'\n"
        "  s m[i]\n"
        "  ^\n"
        "hint: a line goes on with the statement before it unless it begins as y[i] = does",
    ),
    (
        "m[i] = x[i]; s = m[i] * q[i]",
        "Expected an operand q, found x\n"
        "  m[i] = x[i]; s = m[i] * q[i]\n"
        "                          ^^^^\n"
        "hint: pass it by name: q=…",
    ),
    (
        "x[i] = w[i]; s = x[i]",
        "Expected operands that the text does not assign, found x\n"
        "  x[i] = w[i]; s = x[i]\n"
        "  ^^^^\n"
        "hint: leave x= out, or write += to add to what is passed",
    ),
    (
        "s = 2 * y[i]; y[i] += x[i]; t = y[i] * s",
        "Expected an operand y, found x\n"
        "  s = 2 * y[i]; y[i] += x[i]; t = y[i] * s\n"
        "          ^^^^\n"
        "hint: pass it by name: y=…",
    ),
    (
        "m[i] = x[i]; s = m[i] * m[j,j]",
        "Expected m with 1 index, as where it is assigned, found it with 2\n"
        "  m[i] = x[i]; s = m[i] * m[j,j]\n"
        "                          ^^^^^^\n"
        "hint: give two tensors two names",
    ),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES, ids=lambda each: str(each)[:20])
@pytest.mark.parametrize("call", [tp.evaluate, tp.evaluate_dense, tp.explain])
def test_mistakes_in_a_text(call: Callable[..., Any], text: str, message: str) -> None:
    with pytest.raises(TacoError) as error:
        call(text, {"x": np.ones(3)})
    assert str(error.value) == message


OPTIONS: list[tuple[dict[str, Any], str]] = [
    (
        {"outputs": ("r", "z")},
        "Expected outputs among the names that the text assigns, m, r, s, found 'z'\n"
        'hint: as in outputs=("s",)',
    ),
    ({"outputs": ("r", "r")}, "Expected each output once, found r twice\nhint: leave one r out"),
    (
        {"outputs": ()},
        "Expected a name in outputs, found none\nhint: leave outputs= away for the last one",
    ),
    (
        {"outputs": 3},
        'Expected outputs to be names, found 3\nhint: as in outputs=("P", "z")',
    ),
    (
        {"outputs": ("r", "s"), "format": "d"},
        "Expected format= by name for several outputs, found one for all of them\n"
        'hint: as in format={"r": …}',
    ),
    (
        {"format": {"q": "d"}},
        "Expected names among m, r, s in format=, found 'q'\nhint: leave it out",
    ),
    (
        {"out": {"r": np.ones(7)}},
        "Expected names among s in out=, found 'r'\nhint: leave it out",
    ),
    (
        {"schedule": "serial()"},
        "Expected schedules by name for several statements, each of which has loops of its own, "
        'found one for all of them\nhint: as in schedule={"y": "reorder(i,j)"}; "measure" and '
        '"tuned" are for all',
    ),
    (
        {"path": [(0, 1)]},
        "Expected paths by name for several statements, found one for all of them\n"
        'hint: as in path={"y": [(0, 1), (0, 1)]}',
    ),
    (
        {"schedule": {"q": "serial()"}},
        "Expected schedule= of m, r, s, found one of q\nhint: leave it out",
    ),
    (
        {"static": {"k": 3}},
        "Expected static sizes of the indices i, j, found 'k'\n"
        "hint: leave it out of static=, or use it in the expression",
    ),
]


@pytest.mark.parametrize(("options", "message"), OPTIONS, ids=lambda each: str(each)[:20])
def test_mistakes_in_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TacoError) as error:
        tp.evaluate(RESIDUAL, operands(), **options)
    assert str(error.value) == message


def test_what_takes_one_statement_says_so() -> None:
    formats = {"A": "ds", "x": "d", "b": "d"}
    for call in (tp.schedule, tp.frontier):
        with pytest.raises(NotationError, match="Expected one assignment, found another one"):
            call(RESIDUAL, **formats)
    np.testing.assert_array_equal(tp.evaluate("y[i] = 2 * x[i];", x=np.ones(2)), [2.0, 2.0])


# ---------------------------------------------------------------- random texts


def check(drawn: Drawn) -> None:
    """Both calls, the one that plans and the next, give what the oracle gives, or all refuse."""
    try:
        expected = tp.evaluate_dense(drawn.text, drawn.operands, outputs=drawn.outputs)
    except TacoError as error:
        with pytest.raises(type(error)):
            tp.evaluate(drawn.text, drawn.operands, outputs=drawn.outputs)
        return
    for _ in range(2):
        found = tp.evaluate(drawn.text, drawn.operands, outputs=drawn.outputs)
        for name, one, other in zip(drawn.outputs, found, expected, strict=True):
            array = to_dense(one)
            assert array.dtype == other.dtype, name
            np.testing.assert_allclose(array, other, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.filterwarnings("ignore::taco_py.NotationWarning")
@pytest.mark.parametrize("strategy", [statement_lists(), statement_lists(FLOATS)])
def test_random_statements_give_what_the_oracle_gives(
    strategy: Any, request: pytest.FixtureRequest
) -> None:
    count = request.config.getoption("--examples")
    settings = hypothesis.settings(
        max_examples=count, deadline=None, suppress_health_check=list(HealthCheck)
    )
    settings(hypothesis.given(strategy)(check))()


def test_one_statement_with_outputs_has_a_plan_of_its_own() -> None:
    """A plan may fuse the modes of one result, which statements hand out by their names."""
    A, B = np.eye(3, 4), sp.csr_array(np.eye(2, 5))
    text = "T[i,k,j,l] = A[i,j] * B[k,l]"
    plain = tp.evaluate(text, A=sp.coo_array(A), B=B)
    for outputs in ("T", ("T",)):
        found = tp.evaluate(text, A=sp.coo_array(A), B=B, outputs=outputs)
        found = found[0] if isinstance(found, tuple) else found
        assert type(found) is type(plain)
        wanted = np.einsum("ij,kl->ikjl", A, B.toarray())
        dense = found.to_numpy() if isinstance(found, tp.Tensor) else np.asarray(found.todense())
        assert np.array_equal(dense, wanted)
