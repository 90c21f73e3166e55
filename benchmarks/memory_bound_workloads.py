"""The operators of `memory_bound.py` in NumPy style or as texts, with operands.

Dense ones are of `side` squared elements in float32, or as many in four dimensions; sparse ones are
matrices in CSR. A function computes with NumPy, in any type, and is what `tp.fuse` takes, unless
the operator is a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import erf

import taco_py as tp

SIDE, ENTRIES = 4096, 20_000_000
"""Rows and columns of dense operands, and entries of sparse ones: past the caches, mostly."""
EPSILON, GROUPS = 1e-5, 8
ENTRIES_OF_ROW, COLUMNS_OF_SPARSE = 50, 100_000


@dataclass(frozen=True, slots=True)
class Workload:
    """An operator, `group` "row", "network" or "sparse", of `operands(side or entries)`.

    reference  computes with NumPy or SciPy
    function   what is fused, where that is another one; None for a text
    text       a statement a line, with the names of its operands
    fill       what the first operand is where it stores nothing
    skipped    bytes of the operands that no result needs, by the operands
    per_element  the function of elements of the first operand, evaluated once for each; or none
    """

    group: str
    operands: Callable[[int], tuple[Any, ...]]
    reference: Callable[..., Any]
    function: Callable[..., Any] | None = None
    text: str = ""
    names: tuple[str, ...] = ()
    fill: float = 0.0
    skipped: Callable[..., int] = lambda *operands: 0
    per_element: str = ""


# ---------------------------------------------------------------- rows and columns of a matrix


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def layer_norm(x: Any, g: Any, b: Any) -> Any:
    apart = x - x.mean(-1, keepdims=True)
    return apart / np.sqrt((apart * apart).mean(-1, keepdims=True) + EPSILON) * g + b


def rms_norm(x: Any, g: Any) -> Any:
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * g


def bias_gelu_residual(x: Any, b: Any, r: Any) -> Any:
    z = x + b
    return r + 0.5 * z * (1 + erf(z * 0.7071067811865476))


def transposed(x: Any) -> Any:
    return np.ascontiguousarray(x.T)


def sums_of_rows(x: Any) -> Any:
    return x.sum(1)


def sums_of_columns(x: Any) -> Any:
    return x.sum(0)


def concatenated_slices(x: Any, y: Any) -> Any:
    quarter = x.shape[1] // 4
    return np.concatenate((x[:, quarter:], y[:, :quarter]), axis=1)


# ---------------------------------------------------------------- layers of networks


def instance_norm(x: Any, g: Any, b: Any) -> Any:
    apart = x - x.mean((2, 3), keepdims=True)
    spread = np.sqrt((apart * apart).mean((2, 3), keepdims=True) + EPSILON)
    return np.maximum(apart / spread * g[:, None, None] + b[:, None, None], 0)


def group_norm(x: Any, g: Any, b: Any) -> Any:
    groups = x.reshape(x.shape[0], GROUPS, x.shape[1] // GROUPS * x.shape[2] * x.shape[3])
    apart = groups - groups.mean(-1, keepdims=True)
    unit = apart / np.sqrt((apart * apart).mean(-1, keepdims=True) + EPSILON)
    return unit.reshape(x.shape) * g[:, None, None] + b[:, None, None]


def batch_norm(x: Any, g: Any, b: Any) -> Any:
    """The result, and what the backward pass and running averages want: mean and variance."""
    mean = x.mean((0, 2, 3), keepdims=True)
    variance = ((x - mean) * (x - mean)).mean((0, 2, 3), keepdims=True)
    unit = (x - mean) / np.sqrt(variance + EPSILON)
    return unit * g[:, None, None] + b[:, None, None], mean, variance


def batch_norm_backward(d: Any, x: Any, g: Any, mean: Any, inverse: Any) -> Any:
    """The gradients by x, g and b, from that by the result; `inverse` of the deviation."""
    unit = (x - mean[:, None, None]) * inverse[:, None, None]
    by_g, by_b = (d * unit).sum((0, 2, 3)), d.sum((0, 2, 3))
    count = x.shape[0] * x.shape[2] * x.shape[3]
    middle = (by_b[:, None, None] + unit * by_g[:, None, None]) / count
    return (d - middle) * (g * inverse)[:, None, None], by_g, by_b


def layer_norm_backward(d: Any, x: Any, g: Any, mean: Any, inverse: Any) -> Any:
    unit, each = (x - mean) * inverse, d * g
    middle = each.mean(-1, keepdims=True) + unit * (each * unit).mean(-1, keepdims=True)
    return (each - middle) * inverse, (d * unit).sum(0), d.sum(0)


def masked_softmax(x: Any, mask: Any) -> Any:
    s = np.where(mask, x, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rotary_embedding(x: Any, cosine: Any, sine: Any) -> Any:
    half = x.shape[-1] // 2
    u, v = x[..., :half], x[..., half:]
    return np.concatenate((u * cosine - v * sine, v * cosine + u * sine), -1)


def cross_entropy(x: Any, labels: Any) -> Any:
    most = x.max(-1, keepdims=True)
    sums = np.log(np.exp(x - most).sum(-1)) + most[:, 0]
    return (sums - x[np.arange(len(labels)), labels]).mean()


def cross_entropy_of_nn(x: Any, labels: Any) -> Any:
    return tp.nn.cross_entropy(x, labels)


# ---------------------------------------------------------------- sparse matrices


def _like(a: Any, data: Any) -> Any:
    return sp.csr_array((data, a.indices, a.indptr), a.shape)


def _of_entries(a: Any, row: Any) -> Any:
    """The number of each entry's row."""
    return np.repeat(row, np.diff(a.indptr))


def _sums(a: Any, data: Any) -> Any:
    """Sums of rows, none of which is empty."""
    return np.add.reduceat(data, a.indptr[:-1])


def sparse_softmax(a: Any) -> Any:
    most = np.maximum.reduceat(a.data, a.indptr[:-1])
    e = np.exp(a.data - _of_entries(a, most))
    return _like(a, e / _of_entries(a, _sums(a, e)))


def normalized_rows(a: Any) -> Any:
    return sp.csr_array(sp.diags_array(1 / a.sum(1)) @ a)


def log_of_scaled(a: Any, r: Any) -> Any:
    scaled = sp.csr_array(sp.diags_array(r) @ a)
    return scaled.log1p()


def weighted_terms(a: Any, w: Any) -> Any:
    """Entries by the weight of their column, in rows of length 1: TF-IDF of counts."""
    terms = sp.csr_array(a @ sp.diags_array(w))
    length = np.sqrt(terms.multiply(terms).sum(1))
    return sp.csr_array(sp.diags_array(1 / length) @ terms)


SOFTMAX = """
    m[i] = max(j, A[i,j])
    e[i,j] = exp(A[i,j] - m[i])
    z[i] = sum(j, e[i,j])
    P[i,j] = e[i,j] / z[i]
"""
NORMALIZED = """
    s[i] = sum(j, A[i,j])
    P[i,j] = A[i,j] / s[i]
"""
WEIGHTED = """
    t[i,j] = A[i,j] * w[j]
    s[i] = sum(j, t[i,j] * t[i,j])
    P[i,j] = t[i,j] / sqrt(s[i])
"""


ROW_TEXTS: Mapping[str, tuple[tuple[str, ...], str]] = MappingProxyType(
    {
        "softmax": (
            ("x",),
            "m[i] = max(j, x[i,j]); e[i,j] = exp(x[i,j] - m[i]); z[i] = sum(j, e[i,j]); "
            "y[i,j] = e[i,j] / z[i]",
        ),
        "layer_norm": (
            ("x", "g", "b"),
            "u[i] = sum(j, x[i,j]) / n; v[i] = sum(j, (x[i,j] - u[i])**2) / n; "
            "y[i,j] = (x[i,j] - u[i]) / sqrt(v[i] + epsilon) * g[j] + b[j]",
        ),
        "rms_norm": (
            ("x", "g"),
            "v[i] = sum(j, x[i,j]**2) / n; y[i,j] = x[i,j] / sqrt(v[i] + epsilon) * g[j]",
        ),
        "bias_gelu_residual": (
            ("x", "b", "r"),
            "z[i,j] = x[i,j] + b[j]; y[i,j] = r[i,j] + 0.5 * z[i,j] * (1 + erf(z[i,j] * half))",
        ),
        "transpose": (("x",), "y[j,i] = x[i,j]"),
        "sums_of_rows": (("x",), "y[i] = x[i,j]"),
        "sums_of_columns": (("x",), "y[j] = x[i,j]"),
    }
)
"""The operators of rows and columns as texts, which run on GPUs, and the names of operands."""


def row_operands(name: str, operands: tuple[Any, ...]) -> dict[str, Any]:
    """The operands of `ROW_TEXTS` by name, with the numbers that the text reads."""
    names, text = ROW_TEXTS[name]
    side = np.float32(operands[0].shape[1])
    numbers = {"n": side, "epsilon": np.float32(EPSILON), "half": np.float32(0.5**0.5)}
    read = {key: value for key, value in numbers.items() if re.search(rf"\b{key}\b", text)}
    return {**dict(zip(names, operands, strict=True)), **read}


# ---------------------------------------------------------------- operands


def _numbers(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    return tuple(rng.standard_normal(shape, np.float32) for shape in shapes)


def _matrices(matrices: int, rows: int) -> Callable[[int], tuple[Any, ...]]:
    """So many matrices, and then rows of as many columns."""
    return lambda side: _numbers(*((side, side),) * matrices, *((side,),) * rows)


def _images(count: int) -> Callable[[int], tuple[Any, ...]]:
    """So many arrays of 16 images in channels of 64 to 128 squared, and two rows of channels."""

    def make(side: int) -> tuple[Any, ...]:
        pixels = side // 32
        channels = side * side // 16 // pixels**2
        return _numbers(*((16, channels, pixels, pixels),) * count, (channels,), (channels,))

    return make


def _of_batch_norm(side: int) -> tuple[Any, ...]:
    d, x, g, _ = _images(2)(side)
    mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3))
    return d, x, g, mean, 1 / np.sqrt(variance + np.float32(EPSILON))


def _of_layer_norm(side: int) -> tuple[Any, ...]:
    d, x, g = _matrices(2, 1)(side)
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return d, x, g, mean, 1 / np.sqrt(variance + np.float32(EPSILON))


def _scores(side: int) -> tuple[Any, ...]:
    """Scores of 16 heads, and a mask that allows what came before."""
    length = side // 4
    (x,) = _numbers((16, length, length))
    return x, np.tril(np.ones((length, length), np.bool_))


def _queries(side: int) -> tuple[Any, ...]:
    """Rows of 128 columns at positions of 16 heads, and the cosines and sines of each position."""
    length = side * side // 128 // 64
    (x,) = _numbers((4, 16, length, 128))
    angles = np.arange(length)[:, None] * 10000.0 ** (-np.arange(64) / 64)
    return x, np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def _labelled(side: int) -> tuple[Any, ...]:
    (x,) = _numbers((side, side))
    return x, np.random.default_rng(1).integers(0, side, side)


def _entries(count: int) -> Any:
    """A matrix of `count` positive entries, as many in each row, in columns that ascend; fewer
    columns where entries are fewer, so that caches hold the same part of them."""
    rng = np.random.default_rng(0)
    rows = count // ENTRIES_OF_ROW
    gap = max(1, COLUMNS_OF_SPARSE * count // ENTRIES // ENTRIES_OF_ROW)
    first = gap * np.arange(ENTRIES_OF_ROW, dtype=np.int32)
    columns = (rng.integers(0, gap, (rows, ENTRIES_OF_ROW), np.int32) + first).ravel()
    values = rng.random(len(columns), np.float32) + np.float32(0.1)
    pos = np.arange(0, len(columns) + 1, ENTRIES_OF_ROW, np.int32)
    return sp.csr_array((values, columns, pos), (rows, gap * ENTRIES_OF_ROW))


def _with_rows(count: int) -> tuple[Any, ...]:
    a = _entries(count)
    return a, np.random.default_rng(1).random(a.shape[0], np.float32) + 1


def _with_columns(count: int) -> tuple[Any, ...]:
    a = _entries(count)
    return a, np.random.default_rng(1).random(a.shape[1], np.float32) + 1


def _unread_slices(x: Any, y: Any) -> int:
    return int(x[:, : x.shape[1] // 4].nbytes + y[:, x.shape[1] // 4 :].nbytes)


WORKLOADS: Mapping[str, Workload] = MappingProxyType(
    {
        "softmax": Workload("row", _matrices(1, 0), softmax, softmax, per_element="exp"),
        "layer_norm": Workload("row", _matrices(1, 2), layer_norm, layer_norm),
        "rms_norm": Workload("row", _matrices(1, 1), rms_norm, rms_norm),
        "bias_gelu_residual": Workload(
            "row",
            lambda side: tuple(_matrices(2, 1)(side)[at] for at in (0, 2, 1)),
            bias_gelu_residual,
            bias_gelu_residual,
            per_element="erf",
        ),
        "transpose": Workload(
            "row", _matrices(1, 0), transposed, text="y[j,i] = x[i,j]", names=("x",)
        ),
        "sums_of_rows": Workload("row", _matrices(1, 0), sums_of_rows, sums_of_rows),
        "sums_of_columns": Workload("row", _matrices(1, 0), sums_of_columns, sums_of_columns),
        "concatenated_slices": Workload(
            "row",
            _matrices(2, 0),
            concatenated_slices,
            concatenated_slices,
            skipped=_unread_slices,
        ),
        "instance_norm": Workload("network", _images(1), instance_norm, instance_norm),
        "group_norm": Workload("network", _images(1), group_norm, group_norm),
        "batch_norm": Workload("network", _images(1), batch_norm, batch_norm),
        "batch_norm_backward": Workload(
            "network", _of_batch_norm, batch_norm_backward, batch_norm_backward
        ),
        "layer_norm_backward": Workload(
            "network", _of_layer_norm, layer_norm_backward, layer_norm_backward
        ),
        "masked_softmax": Workload(
            "network", _scores, masked_softmax, masked_softmax, per_element="exp"
        ),
        "rotary_embedding": Workload("network", _queries, rotary_embedding, rotary_embedding),
        "cross_entropy": Workload(
            "network", _labelled, cross_entropy, cross_entropy_of_nn, per_element="exp"
        ),
        "sparse_softmax": Workload(
            "sparse",
            lambda count: (_entries(count),),
            sparse_softmax,
            text=SOFTMAX,
            names=("A",),
            fill=-np.inf,
            per_element="exp",
        ),
        "normalized_rows": Workload(
            "sparse",
            lambda count: (_entries(count),),
            normalized_rows,
            text=NORMALIZED,
            names=("A",),
        ),
        "log_of_scaled": Workload(
            "sparse",
            _with_rows,
            log_of_scaled,
            text="P[i,j] = log1p(A[i,j] * r[i])",
            names=("A", "r"),
            per_element="log1p",
        ),
        "weighted_terms": Workload(
            "sparse", _with_columns, weighted_terms, text=WEIGHTED, names=("A", "w")
        ),
    }
)
