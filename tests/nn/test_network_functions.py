"""tp.nn: values against NumPy and SciPy, gradients against differences, in traced functions too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import special

import taco_py as tp
from tests.autodiff.differences import difference, direction, product

nn = tp.nn
rng = np.random.default_rng(0)
x, w = rng.normal(size=(6, 5)), rng.normal(size=(6, 5))
labels, weights = rng.integers(0, 5, 6), rng.random(6)
p = special.softmax(rng.normal(size=(6, 5)), -1)
scale, shift = rng.random(5) + 0.5, rng.random(5)


def picked(logits: Any) -> Any:
    return -special.log_softmax(logits, -1)[np.arange(6), labels]


def normal(a: Any, axis: Any, scale: Any = 1, shift: Any = 0) -> Any:
    apart = a - a.mean(axis, keepdims=True)
    return apart / np.sqrt(a.var(axis, keepdims=True) + 1e-5) * scale + shift


VALUES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "softmax": (lambda a: nn.softmax(a), lambda a: special.softmax(a, -1)),
    "softmax over all": (lambda a: nn.softmax(a, None), lambda a: special.softmax(a)),
    "log_softmax": (lambda a: nn.log_softmax(a, 0), lambda a: special.log_softmax(a, 0)),
    "logsumexp": (
        lambda a: nn.logsumexp(a, 1, keepdims=True),
        lambda a: special.logsumexp(a, 1, keepdims=True),
    ),
    "cross_entropy": (lambda a: nn.cross_entropy(a, labels), lambda a: picked(a).mean()),
    "of probabilities": (
        lambda a: nn.cross_entropy(a, p.astype(a.dtype), "none"),
        lambda a: -(p * special.log_softmax(a, -1)).sum(-1),
    ),
    "nll_loss": (
        lambda a: nn.nll_loss(nn.log_softmax(a), labels, "sum"),
        lambda a: picked(a).sum(),
    ),
    "layer_norm": (
        lambda a: nn.layer_norm(a, scale.astype(a.dtype), shift.astype(a.dtype)),
        lambda a: normal(a, -1, scale, shift),
    ),
    "batch_norm": (
        lambda a: nn.batch_norm(a, scale.astype(a.dtype)),
        lambda a: normal(a, 0, scale),
    ),
    "relu": (nn.relu, lambda a: np.maximum(a, 0)),
    "gelu": (nn.gelu, lambda a: a * special.ndtr(a)),
    "silu": (nn.silu, lambda a: a * special.expit(a)),
    "threshold": (lambda a: nn.threshold(a, 0.2, -1.0), lambda a: np.where(a > 0.2, a, -1)),
}  # fmt: skip


@pytest.mark.rotating(4)
@pytest.mark.parametrize("name", VALUES)
def test_values_are_those_of_numpy_also_of_large_numbers(name: str) -> None:
    function, expected = VALUES[name]
    for a, tolerance in ((x, 1e-12), (x.astype(np.float32) * 1000, 1e-4)):
        found = function(a)
        assert found.dtype == a.dtype and np.isfinite(found).all()
        wide = expected(a.astype(float))
        np.testing.assert_allclose(found, wide, tolerance, tolerance * abs(wide).max())


LOSSES: dict[str, Callable[..., Any]] = {
    "softmax": lambda x, w: (nn.softmax(x, 0) * w).sum(),
    "log_softmax": lambda x, w: (nn.log_softmax(x) * w).sum(),
    "logsumexp": lambda x, w: (nn.logsumexp(x, 1) * w[:, 0]).sum(),
    "cross_entropy": lambda x, w: (nn.cross_entropy(x, labels, "none") * w[:, 0]).sum(),
    "of probabilities": lambda x, w: nn.cross_entropy(x, w * w),
    "layer_norm": lambda x, w: (nn.layer_norm(x, w[0], w[1]) ** 2 * w).sum(),
    "batch_norm": lambda x, w: (nn.batch_norm(x, w[0], w[1]) ** 2 * w).sum(),
    "evaluated": lambda x, w: (nn.batch_norm(x, mean=w[0], variance=w[1] ** 2) * w).sum(),
    "gelu": lambda x, w: (nn.gelu(x) * nn.gelu(w, "tanh")).sum(),
    "silu": lambda x, w: (nn.silu(x) * nn.threshold(w, 0.2)).sum(),
    "dropout": lambda x, w: (nn.dropout(x * w, 0.4, key=3) ** 2).sum(),
}


@pytest.mark.rotating(3)
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_those_of_differences(name: str) -> None:
    loss = LOSSES[name]
    given = {"x": x, "w": w}
    gradients = tp.grad(loss, ("x", "w"))(x, w)
    for own, gradient in zip(given, gradients, strict=True):
        along = direction(given[own], rng)
        slope = difference(lambda each: float(loss(**each)), given, own, along)
        assert product(gradient, along) == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_images_are_normalised_by_channel() -> None:
    images = rng.normal(size=(2, 3, 4, 4))
    found = nn.batch_norm(images, np.arange(3.0), axis=(0, 2, 3))
    expected = normal(images, (0, 2, 3), np.arange(3.0)[:, None, None])
    np.testing.assert_allclose(found, expected, atol=1e-12)


# ---------------------------------------------------------------- fused


def model(W: Any, V: Any, X: Any, y: Any, key: int) -> Any:
    hidden = nn.dropout(nn.relu(nn.layer_norm(X @ W)), 0.5, key)
    return nn.cross_entropy(hidden @ V, y)


def test_a_step_of_training_is_one_kernel_call_for_all_keys() -> None:
    step = tp.train_step(model, optimizer="sgd", rate=0.5)
    W, V = rng.normal(size=(5, 8)), rng.normal(size=(8, 5))
    state = step.begin(W=W, V=V)
    losses = []
    for key in range(60):
        value, state = step(state, X=x, y=labels, key=key)
        losses.append(value)
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) / 2
    ((call,),) = step.fused.traces.values()
    assert sum(region.kernel for region in call.decision.selected.regions) == 1
    left = [n.get("call") for n in call.primitives.nodes if n.operator == "numpy"]
    assert {*left} <= {"places", "copy"}


def test_functions_are_noted_in_a_block() -> None:
    with tp.lazy() as later:
        found = nn.softmax(later(x) + 1) * 2
    np.testing.assert_allclose(found.compute(), special.softmax(x, -1) * 2)


def test_a_mask_stays_sparse() -> None:
    mask = sp.csr_array(np.eye(6, 5, k=-1) + np.eye(6, 5) != 0)
    dense = np.where(mask.toarray(), x, -np.inf)[:5]

    def attention(mask: Any, a: Any) -> Any:
        return nn.softmax(np.where(mask, a, -np.inf))

    def loss(mask: Any, a: Any) -> Any:
        return (attention(mask, a) ** 3).sum()

    found = tp.fuse(attention)(mask, x)
    assert sp.issparse(found) and found.nnz == mask.nnz
    np.testing.assert_allclose(found.toarray()[:5], special.softmax(dense, -1))
    along = rng.normal(size=x.shape)
    ahead, behind = ((special.softmax(dense + h * along[:5], -1) ** 3).sum() for h in (1e-6, -1e-6))
    last = (tp.grad(loss, "a")(mask, x) * along)[:5].sum()
    assert last == pytest.approx((ahead - behind) / 2e-6, rel=1e-5)


def test_sparse_arrays_keep_their_patterns() -> None:
    array = sp.random_array((30, 20), density=0.2, rng=rng, format="csr")
    array.data -= 0.5
    for function in (nn.relu, nn.silu, lambda a: nn.dropout(a, 0.5, 1)):
        found = function(array)
        assert sp.issparse(found) and found.nnz <= array.nnz
    dropped = nn.dropout(array, 0.5, 1).toarray()
    np.testing.assert_allclose(dropped, nn.dropout(array.toarray(), 0.5, 1))


# ---------------------------------------------------------------- dropout


def kept(shape: tuple[int, ...], rate: float, key: int) -> Any:
    """Which elements stay, written by NumPy."""
    with np.errstate(over="ignore"):
        low, high = np.uint32(key % 2**32), np.uint32(key // 2**32 % 2**32)
        z = np.arange(np.prod(shape), dtype=np.uint32) * np.uint32(0x9E3779B1)
        z = z ^ (low * np.uint32(0x7FEB352D) + np.uint32(0x7F4A7C15))
        z = (z ^ (z >> np.uint32(16))) * np.uint32(0x7FEB352D)
        z = z ^ (low * np.uint32(0x846CA68B) + high * np.uint32(0x9E3779B1))
        z = (z ^ (z >> np.uint32(15))) * np.uint32(0x846CA68B)
    return ((z ^ (z >> np.uint32(16))) >= rate * 2.0**32).reshape(shape)


def test_elements_are_kept_by_place_and_key() -> None:
    for shape in ((100,), (7, 30), (3, 4, 50)):
        a = rng.normal(size=shape)
        for key in (0, 1, 2**40 + 5, -3, np.int64(12)):
            expected = np.where(kept(shape, 0.25, int(key)), a / 0.75, 0)
            np.testing.assert_allclose(nn.dropout(a, 0.25, key), expected)


def test_keys_and_neighbours_have_nothing_in_common() -> None:
    masks = np.array([kept((1 << 14,), 0.5, key) for key in (*range(24), 2**32, 2**33)])
    pairs = np.corrcoef(masks) - np.eye(len(masks))
    assert abs(pairs).max() < 5 / 2**7
    assert abs(masks.mean(1) - 0.5).max() < 5 / 2**8
    for apart in (1, 2, 3, 16, 256):
        assert abs(np.mean(masks[:, apart:] ^ masks[:, :-apart], axis=1) - 0.5).max() < 5 / 2**8


def test_the_derivative_leaves_out_the_same_elements() -> None:
    def total(a: Any, rate: float, key: int) -> Any:
        return nn.dropout(a, rate, key).sum()

    gradient = tp.grad(total, "a")
    for rate, key in ((0.5, 1), (0.1, 1), (0.5, 2), (0.0, 2)):
        found = gradient(np.ones((20, 30)), rate, key)
        np.testing.assert_allclose(found, kept((20, 30), rate, key) / (1 - rate))
    assert sum(map(len, gradient.traces.values())) == 1


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: nn.cross_entropy(x, labels + 5), tp.OperandError, "from 0 to 4, found"),
        (lambda: nn.cross_entropy(x, labels, "max"), tp.OperandTypeError, "mean, sum, none"),
        (lambda: nn.cross_entropy(x, labels[:, None]), tp.DimensionError, "labels of 1 modes"),
        (lambda: nn.cross_entropy(x, x > 0), tp.OperandTypeError, "whole numbers, or as many"),
        (lambda: nn.softmax("x"), tp.OperandTypeError, "an array of numbers, found str"),
        (lambda: nn.softmax(x, "last"), tp.OperandTypeError, "an axis, or a tuple"),
        (lambda: nn.softmax(x, 2), tp.DimensionError, "an axis from -2 to 1"),
        (lambda: nn.dropout(x, 1.0, 0), tp.OperandError, "a rate from 0 to less than 1"),
        (lambda: nn.dropout(x, "half", 0), tp.OperandTypeError, "a number for rate"),
        (lambda: nn.dropout(x, 0.5, 1.5), tp.OperandTypeError, "a whole number as the key"),
        (lambda: nn.batch_norm(x, mean=x[0]), tp.OperandTypeError, "a mean and a variance"),
        (lambda: nn.layer_norm(x, x[None]), tp.DimensionError, "an array of 1 modes to scale"),
        (lambda: nn.gelu(x, "erf"), tp.OperandTypeError, "one of none, tanh"),
        (lambda: tp.fuse(special.softmax)(x, -1), tp.OperandTypeError, "write tp.nn.softmax"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    call: Callable[[], Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        call()


def test_lists_and_numbers_are_arrays() -> None:
    np.testing.assert_allclose(nn.softmax([0.0, 0.0]), [0.5, 0.5])
    np.testing.assert_allclose(nn.cross_entropy([[0.0, 0.0]], [1]), np.log(2))
    assert nn.relu(-2.0) == 0 and nn.relu(2.0) == 2


def test_a_label_that_is_no_class_makes_the_loss_nan() -> None:
    def loss(a: Any, y: Any) -> Any:
        return nn.cross_entropy(a, y, "none")

    found = tp.fuse(loss)(x, np.array([0, 1, -1, 5, 2, 3]))
    assert np.isnan(found).tolist() == [False, False, True, True, False, False]


def test_losses_of_sequences_are_means_over_all_rows() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 4, 3)), np.arange(8).reshape(2, 4) % 3
    logp = x - np.log(np.exp(x).sum(-1, keepdims=True))
    expected = -np.take_along_axis(logp, y[..., None], -1).mean()
    assert tp.nn.cross_entropy(x, y) == pytest.approx(expected)


def test_labels_that_are_not_those_of_rows_are_refused() -> None:
    with pytest.raises(tp.DimensionError, match=r"a label for each row, of shape \(2,\), found"):
        tp.nn.cross_entropy(np.zeros((2, 3)), np.zeros(3, int))
    with pytest.raises(tp.OperandTypeError, match="labels in an array, found a number"):
        tp.nn.cross_entropy(np.zeros(3), 1)


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_logsumexp_of_infinities() -> None:
    x = np.array([[-np.inf, -np.inf], [1, np.inf], [-np.inf, 3]])
    for function in (tp.nn.logsumexp, tp.fuse(tp.nn.logsumexp)):
        np.testing.assert_array_equal(function(x, axis=1), [-np.inf, np.inf, 3])
