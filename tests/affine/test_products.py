"""Statements of programs that run as products of matrices, against the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.compiler.affine.affine_products import products
from taco_py.compiler.affine.lower import OperandType
from tests.affine.program_oracle import run_program
from tests.codegen.test_emit import needs_compiler

pytestmark = pytest.mark.user_flags

pytestmark = needs_compiler
SHAPES = {
    "A": (7, 5),
    "At": (5, 7),
    "B": (5, 9),
    "Bt": (9, 5),
    "C": (7, 9),
    "G": (3, 3, 9),
    "H": (3, 2, 3, 3),
    "K": (3, 2, 9),
    "S": (16, 6),
    "U": (10, 5),
    "V": (5, 11),
    "W": (10, 10),
    "T": (11, 12),
}
"""Of arrays by their names; those of one shape have a number behind it."""
NUMBERS = {"alpha": 1.5, "beta": -0.25}
CONTRACTIONS = """
C[i,j] += A[i,k] * B[k,j]
C1[i,j] += B[k,j] * A[i,k]
C2[i,j] += alpha * A[i,k] * B[k,j]
C3[i,j] -= B[k,j] * (At[k,i] * (2 * alpha))
C4[i,j] -= A[i,k] * Bt[j,k]
C5[i,j] += At[k,i] * Bt[j,k]
C6[i+1,j] += A[i,k+2] * B[k+2,j-1]
for i in max(1, M)..:
    for j in M..min(N, 9):
        for k in N-M: C7[i,j] += A[i,k+M] * B[k,j]
G[a,b,c] -= beta * H[a,d,b,e] * K[e,d,c]
for strips in N:
    for block in N: C8[strips,block] = beta * C8[strips,block]
    for product in N:
        for block in N: C8[strips,block] += alpha * A[strips,product] * B[product,block]
    for block in N: C8[strips,block] = C8[strips,block] + 1
for i in 8:
    for j in M..N:
        for k in N: S[i,j] += S[i+8,k] * S[k+8,j]
for i in N:
    for j in N:
        for k in 40..P: C9[i,j] += A[i,k] * B[k,j]
"""
OTHERS = """
for i in N:
    for j in N:
        for k in N: C[i,j] += C[i,k] * B[k,j]
for t in 2:
    C1[i,j] += A[i,k] * B[k,j]
    A[i,k] = A[i,k] + 1
C3[i,j] += A[i,k] * B[k,j] * alpha
C4[i,j] += A[i,k] * (alpha * B[k,j])
C5[i,j] += alpha * A[i,k] * (beta * B[k,j])
C6[i,j] += A[i,k] * B[k,j] + 1
for i in 3:
    for j in N:
        for k in 3: C7[i,j] += At[i+k,j] * B[k,j]
for i in N:
    for k in N: C8[i,0] += A[i,k] * B[k,0]
"""


TRIANGLES = """
for i in L:
    for j in i+1:
        for k in 5: T[i,j] += alpha * U[i,k] * U[j,k]
for i in 1..L-1:
    for j in i..L:
        for k in 5: T1[i,j] -= V[k,i] * V[k,j]
for i in L:
    for j in max(i-4, 0)..min(i+3, L):
        for k in 5: T2[i,j] += U[i,k] * V[k,j]
for i in L:
    for j in L-i..L:
        for k in 5: T3[i,j] += U[i,k] * V[k,j]
for i in L:
    for j in i-3:
        for k in 5: T4[i,j] += U[i-4,k] * V[k,j+1]
for j in L:
    for i in j..L:
        for k in 5: T5[i,j] += U[i,k] * V[k,j]
for i in L:
    for j in M..i:
        for k in 5: T6[j,i] += U[j,k] * V[k,i]
for i in L:
    for j in i:
        for k in 40..P: T7[i,j] += U[i,k] * V[k,j]
"""
OTHER_TRIANGLES = """
for i in 5:
    for j in 2*i:
        for k in 5: T[i,j] += U[i,k] * V[k,j]
for i in L:
    for k in i:
        for j in L: T1[i,j] += W[k,i] * W[k,j]
for i in L:
    for j in i:
        for k in j: T2[i,j] += W[i,k] * W[k,j]
for i in L:
    for j in min(i+1, L-i):
        for k in 5: T3[i,j] += U[i,k] * V[k,j]
for i in L:
    for j in i+1..L-i:
        for k in 5: T4[i,j] += U[i,k] * V[k,j]
"""


def operands(program: Any, dtype: str = "float64") -> dict[str, Any]:
    """Random arrays, C3 of the shape of C."""
    random = np.random.default_rng(0)
    values: dict[str, Any] = {**NUMBERS, "N": 5, "M": 1, "L": 10, "P": 33}
    for name in program.operands:
        if name not in values:
            values[name] = random.random(SHAPES[name.rstrip("0123456789")]).astype(dtype)
    return {name: values[name] for name in program.operands}


def right(program: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the oracle makes of copies."""
    sizes = {name: given[name] for name in ("N", "M", "L", "P") if name in given}
    arrays = {name: np.array(given[name]) for name in given if name not in sizes}
    for name in NUMBERS.keys() & arrays.keys():
        arrays[name] = arrays[name].astype(arrays[min(arrays)].dtype)
    run_program(program.parsed, arrays, sizes)
    return arrays


def check(program: Any, given: Mapping[str, Any], rest: float = 1e-12) -> None:
    expected = right(program, given)
    program(**given)
    for each in program.changed:
        np.testing.assert_allclose(given[each], expected[each], rest, err_msg=each)


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strips of three rows, whatever they cost."""
    monkeypatch.setattr("polyhedral.programs.program_product.EDGE", 3)
    monkeypatch.setattr("polyhedral.programs.program_product.LEAST", 1)


def test_sums_of_products_run_as_contractions(low: None) -> None:
    program = tp.program(CONTRACTIONS + TRIANGLES)
    given = operands(program)
    given |= {"C9": np.full((7, 9), -0.0), "T7": np.full((11, 12), -0.0)}
    told = program.explain(**given)
    assert told.count("contraction of") == 20
    assert told.count("; 3 of ") == 8
    check(program, given)
    for name in ("C9", "T7"):
        assert np.signbit(given[name]).all()  # the range is empty: not even 0 is added


def test_other_statements_run_in_loops(low: None) -> None:
    program = tp.program(OTHERS)
    given = operands(program)
    assert "contraction of" not in program.explain(**given)
    check(program, given)


def test_threads_share_large_products_whose_terms_are_as_written() -> None:
    """(alpha * A) * B overflows in the end, alpha * (A * B) would not."""
    program = tp.program("""
C[i,j] += alpha * A[i,k] * B[k,j]
for i in N:
    for j in i+1:
        for k in N: S[i,j] -= A[i,k] * A[j,k]
""")
    a, b = np.random.default_rng(0).random((2, 260, 260))
    given = {"A": a, "B": b, "C": np.ones((260, 260)), "S": np.zeros((260, 260)), "alpha": 0.5}
    assert program.explain(**given, N=260, threads=2).count("contraction of") == 2
    program(**given, N=260, threads=2)
    np.testing.assert_allclose(given["C"], 1 + 0.5 * a @ b, 1e-12)
    np.testing.assert_allclose(given["S"], np.tril(-a @ a.T), 1e-12)
    large = {"A": np.full((260, 260), 1e200), "B": np.full((260, 260), 1e-300), "alpha": 1e200}
    program(**{**given, **large}, N=260, threads=2)
    assert np.isinf(given["C"]).all()


def test_other_shapes_run_in_loops(low: None) -> None:
    program = tp.program(OTHER_TRIANGLES)
    given = operands(program)
    assert "contraction of" not in program.explain(**given)
    check(program, given)


def test_products_of_two_types_have_functions_of_their_own(low: None) -> None:
    program = tp.program("C[i,j] += alpha * A[i,k] * B[k,j]; C1[i,j] += A1[i,k] * B1[k,j]")
    given = operands(program, "float32")
    given |= {name: given[name].astype("float64") for name in ("C1", "A1", "B1")}
    given["alpha"] = np.float32(1.5)
    assert program.explain(**given).count("contraction of") == 2
    check(program, given, rest=1e-5)


@pytest.mark.parametrize(
    ("changed", "left"),
    [({}, {"S0", "S1"}), ({"alpha": "float32"}, {"S0", "S1"}), ({"A": "float32"}, set()),
     ({"C": "float32"}, {"S1"}), (dict.fromkeys(("C1", "A", "B"), "int64"), set())],
)  # fmt: skip
def test_all_is_of_one_floating_type(changed: Mapping[str, str], left: set[str]) -> None:
    program = tp.program("C[i,j] += alpha * A[i,k] * B[k,j]; C1[i,j] += A[i,k] * B[k,j]")
    types = {name: OperandType("float64", 2) for name in program.operands}
    types["alpha"] = OperandType("float64", 0)
    types |= {name: replace(types[name], dtype=dtype) for name, dtype in changed.items()}
    assert products(program.statements, types).keys() == left


def test_a_product_has_one_kernel_for_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The predicted traffic, which is another for each, is no part of it."""
    program = tp.program("C[i,j] -= A[i,k] * B[k,j]")
    built: list[str] = []

    def build(key: str, make: Any) -> Any:
        source = make()
        built.append(f"{key} {source}")
        raise tp.CompilerError(source.source)

    monkeypatch.setattr("taco_py.compiler.affine.compile.KERNELS.get_or_build", build)
    for n, k in ((200, 10), (3000, 40)):
        given = {"A": np.ones((n, k)), "B": np.ones((k, n)), "C": np.zeros((n, n))}
        with pytest.raises(tp.CompilerError, match="contraction of A"):
            program(**given)
    assert len(built) == 2
    assert len(set(built)) == 1


def test_asked_tiles_and_small_arrays_run_in_loops() -> None:
    program = tp.program("C[i,j] += A[i,k] * B[k,j]")
    small = {name: np.ones((4, 4)) for name in "ABC"}
    assert "contraction of" not in program.explain(**small)
    large = {name: np.ones((16, 16)) for name in "ABC"}
    assert "contraction of" not in program.explain(**large, tiles=8)


def test_the_traffic_of_a_triangle_is_not_that_of_a_box() -> None:
    """Strips of 96 rows, each half as long as the longest on the average."""

    def bytes_of(text: str) -> float:
        a = np.ones((960, 960))
        told = tp.program(text).explain(A=a, C=a.copy(), N=960)
        (line,) = (line for line in told.splitlines() if "traffic: into cache 1" in line)
        return float(line.split("cache 1 ")[1].split(" bytes")[0])

    product = "for k in N: C[i,j] += A[i,k] * A[j,k]"
    box = bytes_of(f"for i in N: for j in N: {product}".replace(": for", ":\n for", 1))
    assert 0.3 * box < bytes_of(f"for i in N:\n for j in i+1: {product}") < 0.8 * box
