"""Memory-bound texts on an emulated GPU: one launch, whole sectors, results as in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from benchmarks.memory_bound import DIGITS, compulsory_bytes, difference, exact, parts
from benchmarks.memory_bound_workloads import ROW_TEXTS, WORKLOADS, row_operands
from codegen.devices.emulated import EmulatedDevice
from codegen.devices.launch_record import Launch
from taco_py.compiler.devices import device_of
from taco_py.data.kernels import KERNELS

EMULATED = "cuda-emulated"
pytestmark = pytest.mark.skipif(
    KERNELS.compiler.kind != "gcc", reason="no gcc: kernels of CUDA are not emulated here"
)
MOST_SECTORS = 1.1


def counted(text: str, operands: dict[str, Any], **options: Any) -> tuple[Any, list[Launch]]:
    """The results of a text, and its launches."""
    device = device_of(EMULATED)
    assert isinstance(device, EmulatedDevice)
    with device.counted_launches() as launches:
        results = tp.evaluate(text, operands, target=EMULATED, **options)
    return results, launches


@pytest.mark.parametrize("name", ROW_TEXTS)
def test_operators_move_no_more_than_they_cannot_do_without(name: str) -> None:
    workload = WORKLOADS[name]
    operands = workload.operands(512)
    expected = workload.reference(*map(exact, operands))
    compulsory = compulsory_bytes(workload, operands, workload.reference(*operands))
    result, launches = counted(ROW_TEXTS[name][1], row_operands(name, operands))
    assert difference(result, parts(expected)) < DIGITS
    assert len(launches) == 1
    assert sum(launch.sector_bytes for launch in launches) <= MOST_SECTORS * compulsory


# ---------------------------------------------------------------- results


def numbers(dtype: str, *shape: int) -> Any:
    rng = np.random.default_rng(shape[0])
    values = rng.integers(-9, 10, shape) if dtype == "int32" else rng.standard_normal(shape)
    return values.astype(dtype)


def softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def centred(x: Any, axis: int) -> tuple[Any, Any, Any]:
    low = x.min(axis, keepdims=True)
    total = (x - low).sum(axis)
    return total, (x - low).max(axis), x - low


def shifted_with_sums(x: Any, axis: int) -> tuple[Any, Any]:
    """A value of each element, and its sums across the slabs of the other one."""
    y = x - x.max(axis, keepdims=True)
    return y, y.sum(1 - axis)


TOLERANCE = {"float32": (1e-5, 1e-4), "float64": (1e-12, 1e-12), "int32": (0, 0)}
Reference = Callable[[Any, int], Any]
TEXTS: dict[str, tuple[str, tuple[str, ...], Reference, tuple[str, ...]]] = {
    "softmax": (
        "m[{a}] = max({b}, x[i,j]); e[i,j] = exp(x[i,j] - m[{a}]); z[{a}] = sum({b}, e[i,j]); "
        "y[i,j] = e[i,j] / z[{a}]",
        ("y",),
        softmax,
        ("float32", "float64"),
    ),
    "several outputs": (
        "l[{a}] = min({b}, x[i,j]); d[i,j] = x[i,j] - l[{a}]; s[{a}] = sum({b}, d[i,j]); "
        "m[{a}] = max({b}, d[i,j])",
        ("s", "m", "d"),
        centred,
        ("float32", "float64", "int32"),
    ),
    "sums across slabs": (
        "m[{a}] = max({b}, x[i,j]); y[i,j] = x[i,j] - m[{a}]; s[{b}] = sum({a}, y[i,j])",
        ("y", "s"),
        shifted_with_sums,
        ("float32", "float64", "int32"),
    ),
}
CASES = [
    (name, dtype, axis, columns)
    for name, (*_, dtypes) in TEXTS.items()
    for dtype in dtypes
    for axis in (0, 1)
    for columns in (1, 31, 33, 1000)
]


@pytest.mark.rotating(2)
@pytest.mark.parametrize(("name", "dtype", "axis", "columns"), CASES)
def test_results_along_both_axes(name: str, dtype: str, axis: int, columns: int) -> None:
    text, outputs, reference, _ = TEXTS[name]
    x = numbers(dtype, 37, columns)
    text = text.format(a="ij"[1 - axis], b="ij"[axis])
    results = tp.evaluate(text, {"x": x}, target=EMULATED, outputs=outputs)
    expected = reference(exact(x), axis)
    pairs = zip(
        results if isinstance(results, tuple) else (results,),
        expected if isinstance(expected, tuple) else (expected,),
        strict=True,
    )
    for result, wanted in pairs:
        relative, absolute = TOLERANCE[dtype]
        np.testing.assert_allclose(result, wanted, relative, absolute)


def test_normal_forms_of_planes_with_rows_of_channels() -> None:
    """Two indices inside of slabs, and numbers that each slab has one of."""
    rng = np.random.default_rng(0)
    x, g = rng.standard_normal((3, 5, 6, 7)), rng.standard_normal(5)
    text = (
        "u[n,c] = sum(h, sum(w, x[n,c,h,w])) / k; d[n,c,h,w] = x[n,c,h,w] - u[n,c]; "
        "v[n,c] = sum(h, sum(w, d[n,c,h,w] * d[n,c,h,w])) / k; "
        "y[n,c,h,w] = max(d[n,c,h,w] / sqrt(v[n,c] + 0.1) * g[c], 0)"
    )
    result, launches = counted(text, {"x": x, "g": g, "k": 42.0})
    d = x - x.mean((2, 3), keepdims=True)
    spread = np.sqrt((d * d).mean((2, 3), keepdims=True) + 0.1)
    np.testing.assert_allclose(result, np.maximum(d / spread * g[:, None, None], 0), 1e-12, 1e-12)
    assert len(launches) == 1


def test_elements_of_16_bits() -> None:
    x = np.random.default_rng(0).standard_normal((20, 65)).astype(np.float16)
    text = TEXTS["softmax"][0].format(a="i", b="j")
    result, launches = counted(text, {"x": x})
    assert result.dtype == np.float16 and len(launches) == 1
    np.testing.assert_allclose(result, softmax(x.astype(float), 1), 4e-3, 1e-4)


def test_sums_across_slabs_have_the_same_bits_each_time() -> None:
    x = np.random.default_rng(0).standard_normal((300, 130), np.float32)
    text = TEXTS["sums across slabs"][0].format(a="i", b="j")
    options = {"target": EMULATED, "forbid": "atomic_sums", "outputs": ("y", "s")}
    (_, first), (_, second) = (tp.evaluate(text, {"x": x}, **options) for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_explain_names_the_threads_of_a_slab() -> None:
    x = np.ones((64, 100), np.float32)
    text = str(tp.explain(TEXTS["softmax"][0].format(a="i", b="j"), {"x": x}, target=EMULATED))
    assert "kernels as one, which computes y slab by slab over i" in text
    assert "blocks of 256 threads, of which 32 share a slab" in text


def test_the_rule_may_be_forbidden() -> None:
    x = np.random.default_rng(0).standard_normal((8, 9))
    text = TEXTS["softmax"][0].format(a="i", b="j")
    result, launches = counted(text, {"x": x}, forbid="fuse_slab")
    np.testing.assert_allclose(result, softmax(x, 1), 1e-12)
    assert len(launches) > 1


# ---------------------------------------------------------------- copies in another order


@pytest.mark.rotating(2)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "complex128", "bool"])
@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("y[j,i] = x[i,j]", (33, 31)),
        ("y[j,i] = x[i,j]", (1000, 1)),
        ("y[j,i] = x[i,j]", (2, 77)),
        ("y[k,j,i] = x[i,j,k]", (5, 33, 40)),
        ("y[i,k,j] = x[i,j,k]", (3, 65, 33)),
        ("y[j,i,k] = x[i,j,k]", (9, 11, 5)),
        ("y[l,i,k,j] = x[i,j,k,l]", (3, 4, 5, 6)),
    ],
)
def test_copies_in_another_order(text: str, shape: tuple[int, ...], dtype: str) -> None:
    x = (np.arange(np.prod(shape)).reshape(shape) % 251).astype(dtype)
    target, source = (part[2:-1].split(",") for part in text.replace(" ", "").split("="))
    result, launches = counted(text, {"x": x})
    np.testing.assert_array_equal(result, x.transpose([source.index(i) for i in target]))
    assert len(launches) == 1


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("y[k,j,i] = x[i,j,k]", (32, 5, 64)),
        ("y[i,k,j] = x[i,j,k]", (4, 32, 96)),
        ("y[j,i] = x[i,j]", (4000, 4)),
        ("y[j,i] = x[i,j]", (4, 4000)),
    ],
)
def test_copies_in_another_order_touch_whole_sectors(text: str, shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float32)
    _, (launch,) = counted(text, {"x": x})
    assert launch.sector_bytes == 2 * x.nbytes
