"""float16 and bfloat16: read as float32, added up in float32, the result rounded once."""

from __future__ import annotations

import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.combine import each_once
from tests.corpus.data import dense_result, initial, operands
from tests.corpus.expressions import CASES, Case
from tests.corpus.formats import operand_options, result_options

Array = np.ndarray[Any, Any]
HALVES = ("float16", "bfloat16")


def half(name: str) -> np.dtype[Any]:
    """The dtype; the test is skipped where ml_dtypes is not installed."""
    if name == "bfloat16":
        return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    return np.dtype(name)


@pytest.fixture(params=HALVES)
def dtype(request: pytest.FixtureRequest) -> np.dtype[Any]:
    return half(request.param)


def store(array: Array, form: str) -> Any:
    """The array in a format: scipy makes no sparse array of 16-bit numbers, but keeps one."""
    if array.ndim == 0:
        return array[()]
    wide = array.astype(np.float32)
    made: Any
    match form, array.ndim:
        case "dense", _:
            return array
        case "CSR", 2:
            made = sp.csr_array(wide)
        case "CSC", 2:
            made = sp.csc_array(wide)
        case "COO", _:
            made = sp.coo_array(wide)
        case _:
            return tp.tensor(array, format=form)
    made.data = made.data.astype(array.dtype)
    return made


def to_dense(result: Any) -> Array:
    """Any result as an array; scipy's own `toarray` knows no 16-bit numbers."""
    if sp.issparse(result):
        result = tp.tensor(result)
    return np.asarray(result.to_numpy() if isinstance(result, tp.Tensor) else result)


def numbers(seed: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Numbers with all their digits, half of them zero."""
    random = np.random.default_rng(seed)
    return np.where(random.random(shape) < 0.5, random.normal(size=shape), 0).astype(dtype)


def same(found: Any, expected: Array) -> None:
    """Equal but for what float32 sums in another order may differ in the last digit."""
    array = to_dense(found)
    assert array.dtype == expected.dtype
    assert array.shape == expected.shape
    digits = 1e-3 if array.dtype == np.float16 else 8e-3
    np.testing.assert_allclose(array.astype(float), expected.astype(float), digits, 1e-5)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_corpus(case: Case, name: str) -> None:
    """Whole numbers: float32 sums are exact, and both round them once."""
    dtype = half(name)
    orders = [len(shape) for shape in case.shapes.values()]
    rows = each_once(
        [
            *(operand_options(order, more=True) for order in orders),
            result_options(len(case.result_shape), more=True),
        ]
    )
    *forms, result = rows[zlib.crc32(f"{case.name} {name}".encode()) % len(rows)]
    arrays, start = operands(case, "mixed", dtype), initial(case, dtype)
    stored = {n: store(a, str(f)) for (n, a), f in zip(arrays.items(), forms, strict=True)}
    if start is not None:
        stored[case.target[0]] = start.copy()
    found = to_dense(tp.evaluate(case.text, stored, format=result))
    expected = dense_result(case.text, arrays, start)
    assert expected.dtype == dtype
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.astype(float), expected.astype(float), err_msg=str(forms))


@pytest.mark.parametrize("form", ["dense", "CSR", "COO", "ss"])
def test_sums_are_of_float32(form: str, dtype: np.dtype[Any]) -> None:
    """In 16 bits, 2048 ones and more (of bfloat16, 256) would add up to that number again."""
    ones = store(np.ones((2, 5000), dtype), form)
    expected = np.full(2, 5000).astype(dtype)
    np.testing.assert_array_equal(to_dense(tp.einsum("ij->i", ones)), expected)
    np.testing.assert_array_equal(to_dense(tp.evaluate("y[i] = A[i,j]", A=ones)), expected)


def test_result_is_rounded_once(dtype: np.dtype[Any]) -> None:
    a = np.array([1.0], dtype)
    tiny = np.array([np.finfo(np.float32).eps * 256], dtype)
    text = "y[i] = (a[i] + b[i]) - a[i]"
    assert tp.evaluate(text, a=a, b=tiny) == tiny
    assert tp.evaluate_dense(text, a=a, b=tiny) == tiny


CALLS: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...] = (
    ("ij,j->i", ((30, 40), (40,))),
    ("ij,jk->ik", ((30, 40), (40, 20))),
    ("ij,jk,kl->il", ((20, 30), (30, 10), (10, 20))),
    ("ij,ij->", ((30, 40), (30, 40))),
    ("ij,ij->ij", ((30, 40), (30, 40))),
    ("ij->ji", ((30, 40),)),
    ("bij,bjk->bik", ((3, 8, 9), (3, 9, 7))),
    ("ii->i", ((20, 20),)),
    ("i,->i", ((20,), ())),
    ("ij,ij->i", ((30, 40), (1, 40))),
    ("ij,jk->ik", ((0, 4), (4, 3))),
    ("ij,jk->ik", ((3, 0), (0, 3))),
)


@pytest.mark.parametrize("form", ["dense", "CSR"])
@pytest.mark.parametrize(("text", "shapes"), CALLS, ids=[str(call) for call in CALLS])
def test_einsum(
    text: str, shapes: tuple[tuple[int, ...], ...], form: str, dtype: np.dtype[Any]
) -> None:
    arrays = [numbers(place, shape, dtype) for place, shape in enumerate(shapes)]
    expected = np.einsum(text, *(a.astype(np.float32) for a in arrays)).astype(dtype)
    first = store(arrays[0], form if arrays[0].ndim == 2 else "dense")
    for _ in range(3):  # the long way, and the short one twice
        same(tp.einsum(text, first, *arrays[1:]), expected)


def test_large_arrays_are_converted_by_a_kernel(dtype: np.dtype[Any]) -> None:
    a, b = numbers(0, (300, 200), dtype), numbers(1, (300, 200), dtype)
    wide = a.astype(np.float32), b.astype(np.float32)
    for _ in range(2):
        found = tp.einsum("ij,ij->ij", a, b)
        np.testing.assert_array_equal(found, (wide[0] * wide[1]).astype(dtype))
        same(tp.einsum("ij,kj->ik", a, b), (wide[0] @ wide[1].T).astype(dtype))
    turned = tp.einsum("ij,ij->ij", a.T, b.T)
    np.testing.assert_array_equal(turned, (wide[0] * wide[1]).astype(dtype).T)


OTHERS = ("bool", "int8", "uint8", "float32", "float64", "complex64", "complex128")


@pytest.mark.parametrize("other", OTHERS)
def test_promotion_is_numpys(other: str, dtype: np.dtype[Any]) -> None:
    a, x = np.ones((3, 4), dtype), np.ones(4, other)
    expected = np.multiply(a[0], x).dtype
    assert tp.einsum("ij,j->i", a, x).dtype == expected
    assert tp.evaluate("B[i,j] = A[i,j] * x[j]", A=store(a, "CSR"), x=x).dtype == expected


@pytest.mark.parametrize("other", ["int16", "uint16", "int32", "int64"])
def test_promotion_of_float16_and_longer_integers(other: str) -> None:
    a, x = np.ones(4, np.float16), np.ones(4, other)
    found = tp.evaluate("y[i] = a[i] * x[i]", a=a, x=x)
    assert found.dtype == (a * x).dtype
    np.testing.assert_array_equal(found, a * x)


def test_no_common_type_is_an_error_with_a_remedy() -> None:
    a, x = np.ones(4, half("bfloat16")), np.ones(4, np.int32)
    for call in (
        lambda: tp.einsum("i,i->i", a, x),
        lambda: tp.evaluate("y[i]=a[i]*x[i]", a=a, x=x),
    ):
        with pytest.raises(tp.OperandTypeError, match=r"found bfloat16 and int32(.|\n)*astype"):
            call()


def test_numbers_are_weak(dtype: np.dtype[Any]) -> None:
    a = np.array([1.0, 2.0], dtype)
    assert tp.evaluate("y[i] = 2 * a[i]", a=a).dtype == (2 * a).dtype
    assert tp.evaluate("y[i] = 2.0 * a[i]", a=a).dtype == (2.0 * a).dtype
    assert tp.evaluate("y[i] = c * a[i]", a=a, c=2.5).dtype == (2.5 * a).dtype
    assert tp.evaluate("y[i] = 2j * a[i]", a=a).dtype == np.complex64


def test_overflow_is_infinity() -> None:
    a = np.array([60000.0, -60000.0, 1.0], np.float16)
    for _ in range(2):
        np.testing.assert_array_equal(tp.einsum("i,i->i", a, a[[0, 0, 0]])[:2], [np.inf, -np.inf])
    large = np.full(10000, 300.0, np.float16)
    found = tp.einsum("i,i->i", large, large)
    assert np.isinf(found).all()
    wide = tp.einsum("i,i->i", large, large, dtype=np.float32)
    np.testing.assert_array_equal(wide, np.full(10000, 90000, np.float32))


def test_out(dtype: np.dtype[Any]) -> None:
    a, x = numbers(0, (30, 40), dtype), numbers(1, (40,), dtype)
    sums = a.astype(np.float32) @ x.astype(np.float32)
    for _ in range(3):
        out = np.zeros(30, dtype)
        assert tp.einsum("ij,j->i", a, x, out=out) is out
        same(out, sums.astype(dtype))
        single = np.zeros(30, np.float32)
        tp.einsum("ij,j->i", a, x, out=single)
        np.testing.assert_allclose(single, sums, 1e-5, 1e-6)
    with pytest.raises(tp.OutputError, match="cast"):
        tp.einsum("ij,j->i", a.astype(np.float32), x.astype(np.float32), out=out)


def test_dtype_asked_for(dtype: np.dtype[Any]) -> None:
    a, x = numbers(0, (30, 40), np.dtype(np.float32)), numbers(1, (40,), np.dtype(np.float32))
    rounded = a.astype(dtype).astype(np.float32), x.astype(dtype).astype(np.float32)
    for asked in (dtype, dtype.name):
        found = tp.einsum("ij,j->i", a, x, dtype=asked, casting="same_kind")
        same(found, (rounded[0] @ rounded[1]).astype(dtype))
    same(
        tp.evaluate("y[i] = A[i,j]", A=a.astype(dtype), dtype=np.float64), rounded[0].sum(1, float)
    )
    with pytest.raises(tp.OperandTypeError, match="cast"):
        tp.einsum("ij,j->i", a, x, dtype=dtype)


def test_what_is_added_to_keeps_its_type(dtype: np.dtype[Any]) -> None:
    y, x = np.array([1.0, 2.0], dtype), np.array([0.5, 0.25], dtype)
    found = tp.evaluate("y[i] += x[i]", y=y, x=x)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, y + x)
    tp.evaluate("y[i] += x[i]", x=x, out=y)
    np.testing.assert_array_equal(y, np.array([1.5, 2.25], dtype))


def test_kernels(dtype: np.dtype[Any], tmp_path: Path) -> None:
    a, x = numbers(0, (6, 5), dtype), numbers(1, (5,), dtype)
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), dtypes=dtype.name)
    expected = tp.evaluate_dense("y[i] = A[i,j] * x[j]", A=a, x=x)
    for _ in range(3):
        same(kernel(A=store(a, "CSR"), x=x), expected)
    assert f"x: d/{dtype.name}" in repr(kernel)
    assert f"rounds    the result to {dtype.name}" in kernel.explain()
    with pytest.raises(tp.OperandTypeError, match="astype"):
        kernel(A=store(a, "CSR"), x=x.astype(np.float32))
    same(pickle.loads(pickle.dumps(kernel))(A=store(a, "CSR"), x=x), expected)
    files = kernel.export(tmp_path, A=store(a, "CSR"), x=x)
    assert any(f"taco_{dtype.name}" in file.read_text() for file in files)


def test_sparse_results_in_two_phases(dtype: np.dtype[Any]) -> None:
    a, b = numbers(0, (6, 5), dtype), numbers(1, (6, 5), dtype)
    given = {"A": store(a, "CSR"), "B": store(b, "CSR")}
    kernel = tp.compile("C[i,j] = A[i,j] + B[i,j]", A=tp.CSR, B=tp.CSR, dtypes=dtype.name)
    pattern = kernel.assemble(**given)
    assert pattern.dtype == dtype
    same(kernel.compute(pattern, **given), tp.evaluate_dense("C[i,j] = A[i,j] + B[i,j]", A=a, B=b))


def test_bits_are_not_taken_for_numbers() -> None:
    """The kernel of bfloat16 operands reads uint16, and is not called for such arrays."""
    dtype = half("bfloat16")
    x = np.array([1.0, 2.0], dtype)
    for _ in range(2):
        np.testing.assert_array_equal(tp.einsum("i,i->i", x, x), np.array([1, 4], dtype))
    u = np.array([3, 4], np.uint16)
    np.testing.assert_array_equal(tp.einsum("i,i->i", u, u), [9, 16])
    kernel = tp.compile("y[i] = 1 * x[i]", x=tp.dense(1), dtypes="bfloat16")
    for _ in range(2):
        np.testing.assert_array_equal(kernel(x=x), x)
        with pytest.raises(tp.OperandTypeError, match="uint16"):
            kernel(x=u)


def test_tensors(dtype: np.dtype[Any], tmp_path: Path) -> None:
    a = numbers(0, (6, 5), dtype)
    for form in ("ds", "ss", "uq", "sd", "ds:1,0", "dd"):
        made = tp.tensor(a, format=form)
        assert made.dtype == dtype
        np.testing.assert_array_equal(made.to_numpy(), a)
        for other in ("ds", "ss:1,0", "dd"):
            np.testing.assert_array_equal(made.to_format(other).to_numpy(), a)
        np.testing.assert_array_equal(made.astype(np.float32).to_numpy(), a.astype(np.float32))
    path = tmp_path / "a.tns"
    tp.write(tp.tensor(a, format="ss"), path)
    np.testing.assert_array_equal(tp.read(path, dtype=dtype.name).to_numpy(), a)


def test_duplicates_are_added_up_in_float32(dtype: np.dtype[Any]) -> None:
    places = (np.zeros(5000, int), np.zeros(5000, int))
    made = tp.Tensor.from_coo(places, np.ones(5000, dtype), (1, 1))
    np.testing.assert_array_equal(made.to_numpy(), np.full((1, 1), 5000).astype(dtype))
    twice = sp.coo_array((np.ones(3), (np.array([0, 0, 1]), np.array([1, 1, 0]))), shape=(2, 2))
    twice.data = twice.data.astype(dtype)
    np.testing.assert_array_equal(
        to_dense(tp.evaluate("B[i,j] = 1 * A[i,j]", A=twice)), [[0, 2], [1, 0]]
    )


def test_what_scipy_cannot_convert_is_refused() -> None:
    made = sp.dia_array(np.eye(4, dtype=np.float32))
    made.data = made.data.astype(np.float16)
    with pytest.raises(tp.OperandTypeError, match=r"found dia(.|\n)*astype"):
        tp.evaluate("C[i,j] = A[i,j] * A[i,j]", A=made)
    np.testing.assert_array_equal(tp.einsum("ij->i", made), np.ones(4))  # in place


def test_blocks_of_scipys_are_read_as_they_are() -> None:
    made = sp.bsr_array(np.eye(4, dtype=np.float32), blocksize=(2, 2))
    made.data = made.data.astype(np.float16)
    found = tp.einsum("ij,j->i", made, np.arange(4, dtype=np.float16))
    np.testing.assert_array_equal(found, np.arange(4, dtype=np.float16))


def test_explained(dtype: np.dtype[Any]) -> None:
    a = numbers(0, (30, 40), dtype)
    told = tp.explain("y[i] = A[i,j]", A=a)
    assert f"rounds    the result to {dtype.name}" in told


def test_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    with pytest.raises(tp.MissingExtraError, match=r"tacopy\[bfloat16\]"):
        tp.evaluate("y[i] = 2 * x[i]", x=np.ones(3), dtype="bfloat16")


def test_several_statements_round_each_result() -> None:
    """1 / 3 has other digits in 16 bits, which the second statement reads."""
    text, given = "t[i] = E[i] / 3; s[i] = t[i] * 3 - E[i]", {"E": np.ones(4, np.float16)}
    third = np.float32(np.float16(1 / 3))
    wanted = np.float16(third * 3 - 1)
    for options in ({}, {"dtype": "float16", "casting": "same_kind"}):
        found = tp.evaluate(text, given, **options)
        assert found.dtype == np.float16 and wanted != 0
        np.testing.assert_array_equal(found, wanted)
    assert tp.evaluate(text, given, dtype="float32").tolist() == [0, 0, 0, 0]


SEMIRINGS = ("min_plus", "max_times", "max_plus", "max_min", "min_first", "min_second", "min_max")


@pytest.mark.rotating(3)
@pytest.mark.parametrize("form", ["dense", "CSR", "ss"])
@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_semirings_keep_the_type(semiring: str, form: str, dtype: np.dtype[Any]) -> None:
    """The result is that of the same numbers in float32, rounded."""
    a, b, x = (numbers(k, shape, dtype) for k, shape in enumerate([(5, 7), (7, 4), (4,)]))
    own = {"A": store(a, form), "B": store(b, form), "x": x}
    wide: dict[str, Any] = {"A": a, "B": b, "x": x}
    if form != "dense":
        wide = {"A": sp.csr_array(a.astype("f4")), "B": sp.csr_array(b.astype("f4")), "x": x}
    wide = {name: each.astype("f4") for name, each in wide.items()}
    mask = np.arange(20).reshape(5, 4) % 3 > 0
    for text, options in (
        ("Y[i,k] = A[i,j] * B[j,k]", {"format": "dd"}),
        ("Y[i,k] = A[i,j] * B[j,k]", {"format": "dd", "mask": mask}),
        ("y[i] = A[i,j] * B[j,k] * x[k]", {"format": "d"}),
    ):
        used = [name for name in wide if f"{name}[" in text]
        options = {**options, "semiring": semiring}
        wanted = tp.evaluate(text, {name: wide[name] for name in used}, **options)
        assert wanted.dtype == np.float32
        for _ in range(2):
            same(
                tp.evaluate(text, {name: own[name] for name in used}, **options),
                wanted.astype(dtype),
            )
        dense = {name: options[name] for name in options if name != "format"}
        same(tp.evaluate_dense(text, {n: own[n] for n in used}, **dense), wanted.astype(dtype))
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A="dd", x="d", dtypes=dtype, semiring=semiring)
    same(kernel(A=a, x=b[:, 0]), tp.einsum("ij,j->i", a, b[:, 0], semiring=semiring))
