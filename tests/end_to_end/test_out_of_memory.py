"""What does not fit in memory is refused before it is tried; the error says what is free."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
import taco_py.running.replay.find as short
from codegen.runtime.memory.memory_pool import Pool
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.memory_errors import bytes_text, out_of_memory

MB = 2**20
ROOT = Path(__file__).parent.parent.parent
LINUX = sys.platform.startswith("linux")


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 MB are free, of which 80 may be taken."""
    monkeypatch.setattr(Pool, "free", lambda _: 100 * MB)


@pytest.fixture(autouse=True)
def kept_as_usual() -> Iterator[None]:
    yield
    tp.set_kept_memory(None)


def refused(call: Callable[[], Any]) -> tp.OutOfMemoryError:
    with pytest.raises(tp.OutOfMemoryError) as caught:
        call()
    return caught.value


def vector(entries: int, size: int, form: str = "s") -> tp.Tensor:
    places = np.arange(entries) * (size // entries)
    return tp.Tensor.from_coo([places], np.ones(entries), (size,), format=form)


TALL, WIDE = np.ones(5000), np.ones(4000)
DENSE = {
    "outer": ("C[i,j] = x[i] * y[j]", {"x": TALL, "y": WIDE}, 160_000_000),
    "broadcast": ("C[i,j] = x[i] + y[j]", {"x": TALL, "y": WIDE}, 160_000_000),
    "scattered": (
        "C[i,j] = A[i] * y[j]",
        {"A": vector(7, 5000), "y": WIDE, "format": "dd"},
        160_000_000,
    ),
    "two kernels": (
        "y[i] = sum(k, (sum(j, (x[i] * z[j] + z[j])) * B[i,k]) * w[k])",
        {"x": TALL, "z": WIDE, "B": np.broadcast_to(np.ones(1), (5000, 4)), "w": np.ones(4)},
        0,
    ),
}


@pytest.mark.parametrize("name", ["outer", "broadcast", "scattered"])
def test_dense_results(little: None, name: str) -> None:
    text, operands, wanted = DENSE[name]
    error = refused(lambda: tp.evaluate(text, **operands))
    assert (error.wanted, error.free) == (wanted, 100 * MB)
    assert "which needs 160.0 MB, found 104.9 MB free" in error.message
    assert isinstance(error, MemoryError)


def test_what_needs_little_runs(little: None) -> None:
    text, operands, _ = DENSE["two kernels"]
    assert tp.evaluate(text, **operands).shape == (5000,)
    assert tp.evaluate("C[i,j] = x[i] * y[j]", x=TALL, y=WIDE[:1000]).shape == (5000, 1000)


def test_an_array_of_the_user_needs_no_room(little: None) -> None:
    out = np.empty((5000, 4000))
    for _ in range(2):
        assert tp.evaluate("C[i,j] = x[i] * y[j]", x=TALL, y=WIDE, out=out) is out


HUGE, LONG = 10**12, np.broadcast_to(np.ones(1), (10**9,))
LOST = tp.Tensor.from_coo(([0], [0]), [1.0], (HUGE, HUGE))
POINT = vector(1, HUGE)
BEYOND: dict[str, tuple[Callable[[], Any], int]] = {
    "array": (LOST.to_numpy, 8 * HUGE**2),
    "format": (lambda: LOST.to_format("dd"), 8 * HUGE**2),
    "rows": (lambda: LOST.to_format("ds"), 8 * HUGE),
    "scipy": (lambda: LOST.to_scipy("csr"), 8 * HUGE),
    "coordinates": (
        lambda: tp.Tensor.from_coo(([0], [0]), [1.0], (HUGE, HUGE), format="dd"),
        8 * HUGE**2,
    ),
    "tensor": (
        lambda: tp.tensor(sp.coo_array((10**9, 10**9)), format="dd"),
        8 * 10**18,
    ),
    "einsum": (lambda: tp.einsum("i,j,k->ijk", LONG, LONG, LONG), 8 * 10**27),
    "F": (lambda: tp.einsum("i,j,k->ijk", LONG, LONG, LONG, order="F"), 8 * 10**27),
    "kept order": (
        lambda: tp.evaluate("C[i,j] = x[i] * y[j]", x=LONG, y=LONG, format="dd:1,0"),
        8 * 10**18,
    ),
    "sum": (
        lambda: tp.evaluate("C[i,j] = T[i,j] + 1", T=LOST, format="dd"),
        8 * HUGE**2,
    ),
    "blocks": (
        lambda: tp.evaluate("C[i,j,k] = b[i] * b[j] * b[k]", b=POINT, format="sdd"),
        8 * HUGE**2,
    ),
    "pattern": (lambda: tp.evaluate("C[i,j] = x[i] * x[j]", x=LONG, format="ss"), 12 * 10**18),
    "oracle": (lambda: tp.evaluate_dense("C[i,j] = x[i] * x[j]", x=LONG), 8 * 10**18),
    "oracle's operand": (lambda: tp.evaluate_dense("y[i] = T[i,j]", T=LOST), 8 * HUGE**2),
    "oracle's sum": (
        lambda: tp.evaluate_dense("y[i] = (x[i] - x[j])**2", x=LONG),
        8 * 10**18,
    ),
}


@pytest.mark.parametrize("name", BEYOND)
def test_sizes_beyond_any_memory(name: str) -> None:
    call, wanted = BEYOND[name]
    error = refused(call)
    assert error.wanted is not None and 0.99 * wanted <= error.wanted <= 1.5 * wanted
    assert error.free is not None and 0 < error.free < error.wanted
    assert "free" in error.message
    assert isinstance(error, OverflowError) == (error.wanted >= 2**62)


SPARSE = [
    ("C[i,j] = a[i] * b[j]", "ss", 12 * 9_000_000),
    ("C[i,j] = a[i] * b[j]", "ds", 12 * 9_000_000 + 4 * 10_001),
    ("C[i,j] = a[i] * b[j]", "uc", 12 * 9_000_000),
    ("C[i,j] = 2 * a[i] * b[j] + c[i,j]", "ss", 12 * 9_000_000),
    ("C[i,j] = -a[i] * b[j] / d[j]", "ss", 12 * 9_000_000),
    ("C[i,j] = 3 * (a[i] / d[j])", "ss", 12 * 30_000_000),
    ("C[i,j] = a[i] * d[j]", "ss", 12 * 30_000_000),
    ("C[i,j] = c[i,j] - a[i] * d[j]", "ds", 12 * 30_000_000 + 4 * 10_001),
]


@pytest.mark.parametrize(("text", "form", "wanted"), SPARSE)
def test_products_without_a_common_index(
    little: None, monkeypatch: pytest.MonkeyPatch, text: str, form: str, wanted: int
) -> None:
    operands = {
        "a": vector(3000, 10_000),
        "b": vector(3000, 10_000),
        "c": tp.tensor(sp.eye_array(10_000, format="csr")),
        "d": np.ones(10_000),
    }
    used = {name: operand for name, operand in operands.items() if f"{name}[" in text}
    error = refused(lambda: tp.evaluate(text, **used, format=form))
    assert error.wanted is not None and 0 <= error.wanted - wanted <= 12
    kernels = "ss" if form == "uc" else str(tp.Format.parse(form))
    assert f"C in the format {kernels} with i=10000, j=10000" in error.message


COLUMN = tp.tensor(sp.csr_array(np.ones((3000, 1))))
ROW = tp.tensor(sp.csr_array(np.ones((1, 3000))))
CROSS = sp.csr_array(sp.coo_array(np.ones((3000, 1))) @ sp.coo_array(np.eye(1, 3000, 7)))
CROSS = sp.csr_array(((CROSS + CROSS.T) > 0).astype(float))
BLOCK = sp.csr_array(np.ones((20, 700)))


@pytest.mark.parametrize(
    ("text", "operands", "entries"),
    [
        ("C[i,j] = A[i,k] * B[k,j]", {"A": COLUMN, "B": ROW}, 3000**2),
        ("C[i,j] = A[i,k] * B[k,j]", {"A": CROSS, "B": CROSS}, 3000**2),
        ("C[i,j] = A[i,k] * B[j,k]", {"A": CROSS.tocsc(), "B": CROSS}, 3000**2),
        ("C[i,j,k] = A[i,j] * B[i,k]", {"A": BLOCK, "B": BLOCK}, 20 * 700**2),
        ("C[i,j,k] = A[i,j] * B[j,k]", {"A": BLOCK.T.tocoo(), "B": BLOCK}, 20 * 700**2),
    ],
)
def test_products_with_an_index_in_common(
    little: None, text: str, operands: dict[str, Any], entries: int
) -> None:
    form = "s" * text.partition("]")[0].count(",") + "s"
    for _ in range(2):
        error = refused(lambda: tp.evaluate(text, **operands, format=form))
        assert error.wanted is not None
        assert 0 <= error.wanted - 12 * entries <= 0.01 * error.wanted


def test_a_kernel_refuses_an_outer_product_of_matrices(little: None) -> None:
    kernel = tp.compile("C[i,j] = A[i,k] * B[k,j]", A="ds", B="ds", C="ds")
    for _ in range(3):
        assert kernel(A=COLUMN.to_scipy()[:9], B=ROW.to_scipy()[:, :9]).nnz == 81
    error = refused(lambda: kernel(A=COLUMN, B=ROW))
    assert error.wanted is not None and error.wanted >= 12 * 3000**2


@pytest.mark.parametrize(
    "text", ["C[i,j] = a[i] * c[i,j]", "C[i,j] = c[i,j] / (1 + d[j])", "C[i,j] = 0 * a[i] * d[j]"]
)
def test_what_is_no_product_is_tried(little: None, text: str) -> None:
    operands = {
        "a": vector(3000, 10_000),
        "c": tp.tensor(sp.eye_array(10_000, format="csr")),
        "d": np.ones(10_000),
    }
    used = {name: operand for name, operand in operands.items() if f"{name}[" in text}
    if text.startswith("C[i,j] = 0"):
        used = {"a": vector(30, 100), "d": np.ones(100)}
    assert tp.evaluate(text, **used, format="ss").nnz <= 10_000


def test_a_product_that_may_be_small_is_tried(little: None) -> None:
    a = sp.random_array((20_000, 20_000), density=0.0005, format="csr", rng=0)
    found = tp.einsum("ij,jk->ik", a, a)
    assert found.nnz == (a @ a).nnz
    assert tp.evaluate("C[i,j] = A[i,j] * B[i,j]", A=a, B=a).nnz == a.nnz


@pytest.mark.parametrize(
    "text",
    [
        "C[i,j] = a[i] * b[j] + y[j]",
        "C[i,j] = (a[i] + 2) * y[j]",
        "C[i,j] = y[j] * (a[i] + 4) * (b[j] + 1)",
        "C[i,j] = (a[i] * b[j] + 3) / y[j]",
        "C[i,j] = -((y[j] - a[i]) * 2)",
    ],
)
def test_what_is_stored_everywhere_counts_for_all_coordinates(little: None, text: str) -> None:
    """Terms that are everywhere, and an index that a term does not have: refused before anything
    grows."""

    def operands(entries: int, size: int) -> dict[str, Any]:
        known = {"a": vector(entries, size), "b": vector(entries, size), "y": np.ones(size)}
        return {name: each for name, each in known.items() if f"{name}[" in text}

    for _ in range(2):
        found = tp.evaluate(text, operands(2, 5), format="ss")
        np.testing.assert_array_equal(found.to_numpy(), tp.evaluate_dense(text, operands(2, 5)))
    error = refused(lambda: tp.evaluate(text, operands(10, 10**5), format="ss"))
    assert error.free is not None and error.wanted is not None and error.wanted >= 10**10 * 8


def test_entries_that_occur_twice_count_for_less(little: None) -> None:
    twice = np.zeros(6_000, int)
    a = sp.coo_array((np.ones(6_000), (twice, twice)), shape=(10, 10))
    b = vector(3000, 10_000)
    for _ in range(2):
        found = tp.evaluate("C[i,j,k] = A[i,j] * b[k]", A=a, b=b, format="sss")
        assert found.nnz == 3000 and found.to_coo()[1][0] == 6000.0


def test_a_kernel_refuses_later_calls(little: None) -> None:
    dense = tp.compile("C[i,j] = x[i] * y[j]", x=tp.dense(1), y=tp.dense(1), C=tp.dense(2))
    sparse = tp.compile("C[i,j] = a[i] * b[j]", a="s", b="s", C="ss")
    for _ in range(3):
        assert dense(x=TALL[:9], y=WIDE[:9]).shape == (9, 9)
        assert sparse(a=vector(9, 10), b=vector(9, 10)).nnz == 81
    for _ in range(2):
        assert refused(lambda: dense(x=TALL, y=WIDE)).wanted == 160_000_000
        assert refused(lambda: sparse(a=vector(3000, 9000), b=vector(3000, 9000))).wanted
    assert dense(x=TALL[:9], y=WIDE[:9]).shape == (9, 9)


def test_einsum_again_with_larger_operands(little: None) -> None:
    for _ in range(3):
        assert tp.einsum("i,j->ij", TALL[:50], WIDE[:50]).shape == (50, 50)
    assert refused(lambda: tp.einsum("i,j->ij", TALL, WIDE)).wanted == 160_000_000


def test_positions_of_rows_are_counted(little: None) -> None:
    tall = vector(5, 2**36)
    error = refused(
        lambda: tp.evaluate("C[i,j] = a[i] * b[j]", a=tall, b=vector(3, 9), format="ds")
    )
    assert error.wanted is not None and error.wanted >= 2**38


def test_nothing_is_added_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that adds to `out` and runs out of memory half way is not run again."""
    runs: list[int] = []
    usual = short.define

    def define(parts: Any, kernels: Any, limit: int, more: Any) -> Any:
        def failing(out: Any, *rest: Any) -> None:
            runs.append(1)
            out[:3] += 1
            raise MemoryError

        return usual(parts, [failing] * len(kernels), limit, more)

    monkeypatch.setattr(short, "define", define)
    monkeypatch.setattr("taco_py.running.replay.make_call.define", define)
    monkeypatch.setattr(short, "recall", lambda key: None)
    KERNELS.memo.clear()
    a, y = sp.eye_array(77, format="csr"), np.zeros(77)
    tp.evaluate("y[i] += A[i,j] * x[j]", A=a, x=np.ones(77), out=y)
    with pytest.raises(tp.OutOfMemoryError):
        tp.evaluate("y[i] += A[i,j] * x[j]", A=a, x=np.ones(77), out=y)
    assert runs == [1]
    KERNELS.memo.clear()


def test_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that finds no room, in the first call and in those that follow."""
    program = tp.program("for i in 0..N: y[i] = 2 * y[i]")
    y = np.ones(9)
    program(y=y, N=9)
    program(y=y, N=9)
    assert y.tolist() == [4.0] * 9

    def failing(*_: Any) -> None:
        raise MemoryError

    for known in (*KERNELS.memo._young.values(), *KERNELS.memo._old.values()):
        if type(known).__name__ == "Remembered":
            object.__setattr__(known, "call", failing)
    error = refused(lambda: program(y=y, N=9))
    assert "besides its arrays" in error.message and error.free
    monkeypatch.setattr("taco_py.calls.programs.program_call.find_call", lambda key: None)
    monkeypatch.setattr(tp.Program, "_prepared", failing)
    assert refused(lambda: program(y=y, N=9)).free
    KERNELS.memo.clear()


# ---------------------------------------------------------------- limits of a process


def process(code: str) -> str:
    begin = "import resource, sys, numpy as np, scipy.sparse as sp, taco_py as tp\n"
    done = subprocess.run(
        [sys.executable, "-c", begin + code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not LINUX, reason="reads /proc")
def test_a_growing_result_meets_the_limit_of_addresses() -> None:
    code = """
A = sp.csr_array(np.ones((50, 3000)))
text = "C[i,j,k] = A[i,j] * B[i,k] * s[i]"  # so many entries as nobody counts
s = tp.Tensor.from_coo([np.arange(50)], np.ones(50), (50,), format="s")
tp.evaluate(text, A=A[:, :9], B=A[:, :9], s=s, format="sss")
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 600 * 2**20, -1))
try:
    tp.evaluate(text, A=A, B=A, s=s, format="sss")
except tp.OutOfMemoryError as error:
    print("refused", "which is too little" in error.message)
C = tp.evaluate(text, A=A[:, :400], B=A[:, :400], s=s, format="sss")
print(C.nnz)
D = np.ones(40 * 2**20)
print("kept" if tp.evaluate("C[i] = 2 * D[i]", D=D[:9]).sum() == 18 else "lost")
"""
    assert process(code).split() == ["refused", "True", "8000000", "kept"]


@pytest.mark.skipif(not LINUX, reason="reads /proc")
def test_results_that_are_gone_leave_room_for_others() -> None:
    code = """
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 900 * 2**20, -1))
x, y = np.ones(6000), np.ones(5000)
for k in range(3):
    C = tp.evaluate("C[i,j] = x[i] * y[j]", x=x, y=y)
    del C
    C = tp.evaluate("C[i,j,k] = x[i] * y[j] * y[k]", x=x[:5], y=y[: 1500 + k])
    del C
D = tp.evaluate("C[i,j] = x[i] * y[j]", x=x, y=y)
del D
tp.clear_memory()
print(np.ones(70 * 2**20).sum() > 0)
"""
    assert process(code).split() == ["True"]


# ---------------------------------------------------------------- settings


def test_kept_memory_is_set_and_cleared() -> None:
    def held() -> int:
        array = tp.evaluate("y[i] = 2 * x[i]", x=np.ones(2 * MB))
        assert array[-1] == 2
        del array
        return KERNELS.pool.spare_bytes

    tp.clear_memory()
    assert held() > 0
    tp.clear_memory()
    assert KERNELS.pool.spare_bytes == 0
    tp.set_kept_memory(0)
    assert held() == 0
    tp.set_kept_memory(64 * MB)
    assert held() > 0
    tp.set_kept_memory(None)


def test_they_need_no_compiler() -> None:
    """Before the first call there is nothing to keep, and nothing is compiled for it."""
    code = """
from taco_py.data.kernels import KERNELS
tp.set_kept_memory(5); tp.clear_memory()
print(KERNELS._hosted, KERNELS.pool._most)
"""
    assert process(code).split() == ["None", "5"]


@pytest.mark.parametrize("size", [-1, 1.5, "1", True, [1]])
def test_sizes_that_are_none(size: Any) -> None:
    with pytest.raises(tp.OperandError, match="number of bytes") as caught:
        tp.set_kept_memory(size)
    assert repr(size) in str(caught.value)


def test_how_it_is_told() -> None:
    assert [bytes_text(n) for n in (0, 999, 1000, 3_600_000_000, 10**13, 2**63)] == [
        "0 bytes", "999 bytes", "1.0 kB", "3.6 GB", "10.0 TB", "9.2 EB",
    ]  # fmt: skip
    assert "of which four fifths may be taken" in str(out_of_memory("C", 9, 10))
    assert str(out_of_memory("C", None, 10)).endswith("found 10 bytes free, which is too little")
