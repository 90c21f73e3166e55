"""Losses of predictions and labels: whole numbers of classes, or probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.graph.capture.traced_line import refuse
from taco_py.graph.nn.network_function import (
    check_choice,
    derivative_by,
    network_function,
    positions,
    recorders,
)
from taco_py.language.diagnostics.errors import DimensionError, OperandError, OperandTypeError

REDUCTIONS = ("mean", "sum", "none")


@network_function
def _nll_loss(logp: Any, labels: Any, reduction: str) -> Any:
    is_label = _is_label(logp, labels)
    losses = -np.where(is_label, logp, logp.dtype.type(0)).sum(-1)
    return _reduced(_of_classes(losses, logp, labels), reduction)


@network_function
def _cross_entropy(logits: Any, labels: Any, reduction: str) -> Any:
    most, last = logits.max(-1, keepdims=True), (logits.ndim - 1,)
    shifted = logits - most
    total = np.log(np.exp(shifted).sum(-1, keepdims=True))
    logp = shifted - total
    _check_array(labels)
    if labels.dtype.kind in "iu":
        is_label = _is_label(logits, labels)
        label_logits = np.where(is_label, logits, logits.dtype.type(0)).sum(-1, keepdims=True)
        losses = (total - (label_logits - most)).squeeze(last)
        result = derivative_by("cross_entropy", losses, logits, logp, is_label, axes=last)
        return _reduced(_of_classes(result, logits, labels), reduction)
    _check_probabilities(logits, labels)
    losses = -(labels * logp).sum(-1)
    return _reduced(losses, reduction)


def _is_label(x: Any, labels: Any) -> Any:
    """Tell whether each class is that of a label: where indices, as numbers, are equal."""
    _check_array(labels)
    if labels.dtype.kind not in "iu" or labels.ndim != x.ndim - 1:
        refuse(
            f"Expected labels of {x.ndim - 1} modes, whole numbers, found {labels.dtype} of "
            f"{labels.ndim}",
            "the label of each row, or for cross_entropy a probability for each element",
            DimensionError,
        )
    return positions(x, -1) == np.expand_dims(labels, -1)


def _check_array(labels: Any) -> None:
    if not hasattr(labels, "dtype"):
        refuse(
            "Expected labels in an array, found a number",
            "np.array(…) of it is the label of one row",
            OperandTypeError,
        )


def _check_probabilities(logits: Any, labels: Any) -> None:
    if labels.dtype.kind != "f" or labels.ndim != logits.ndim:
        refuse(
            f"Expected labels to be whole numbers, or as many probabilities as logits, found "
            f"{labels.dtype} of {labels.ndim} modes",
            "convert them first",
            OperandTypeError,
        )


def _of_classes(losses: Any, x: Any, labels: Any) -> Any:
    """Return the losses of rows whose label is a class, NaN of others."""
    is_class = (labels >= 0) & (labels < x.shape[-1])
    return np.where(is_class, losses, losses.dtype.type(np.nan))


def _reduced(losses: Any, reduction: str) -> Any:
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


def _check(x: Any, labels: Any, reduction: str) -> None:
    """Refuse other reductions, and labels of arrays that are no class. Raises OperandError."""
    check_choice("reduction", reduction, REDUCTIONS)
    if next(recorders((x, labels)), None) is not None or np.asarray(labels).dtype.kind not in "iu":
        return
    if np.ndim(labels) and np.ndim(labels) == np.ndim(x) - 1:
        _check_rows(np.shape(x), np.shape(labels))
    classes = np.shape(x)[-1] if np.ndim(x) else 0
    wrong = np.flatnonzero((np.asarray(labels) < 0) | (np.asarray(labels) >= classes))
    if len(wrong):
        raise OperandError(
            f"Expected labels from 0 to {classes - 1}, found {np.ravel(labels)[wrong[0]]} in row "
            f"{wrong[0]}",
            hint="classes are counted from 0",
        )


def _check_rows(shape: tuple[int, ...], labels: tuple[int, ...]) -> None:
    if labels != shape[:-1]:
        raise DimensionError(
            f"Expected a label for each row, of shape {shape[:-1]}, found labels of shape {labels}",
            hint="the classes are along the last axis of what the labels are of",
        )


def nll_loss(logp: Any, labels: Any, reduction: str = "mean") -> Any:
    """Compute the negative logarithms of probabilities that labels have.

    >>> logp = np.log(np.array([[0.5, 0.5], [0.25, 0.75]]))
    >>> tp.nn.nll_loss(logp, np.array([0, 1]), reduction="none")
    array([0.69314718, 0.28768207])
    >>> float(tp.nn.nll_loss(logp, np.array([0, 1]), reduction="sum"))
    0.9808292530117262

    logp       logarithms of probabilities, the classes along the last axis
    labels     a class for each row, a whole number
    reduction  "mean", "sum", or "none" for a loss of each row

    Raises OperandError for labels of arrays that are no class; in a traced function their loss is
    NaN.
    """
    _check(logp, labels, reduction)
    return _nll_loss(logp, labels, reduction)


def cross_entropy(logits: Any, labels: Any, reduction: str = "mean") -> Any:
    """Compute the cross entropy of labels and the softmax of logits.

    >>> logits = np.array([[0.0, 0.0], [1000.0, 0.0]])
    >>> tp.nn.cross_entropy(logits, np.array([0, 1]), reduction="none")
    array([6.93147181e-01, 1.00000000e+03])
    >>> tp.grad(tp.nn.cross_entropy, wrt="logits")(logits, np.array([0, 1]))
    array([[-0.25,  0.25],
           [ 0.5 , -0.5 ]])

    logits     any numbers, the classes along the last axis
    labels     a class for each row, a whole number, or a probability for each element of logits
    reduction  "mean", "sum", or "none" for a loss of each row

    Raises OperandError for labels of arrays that are no class; in a traced function their loss is
    NaN, and their gradient 0.
    """
    _check(logits, labels, reduction)
    return _cross_entropy(logits, labels, reduction)
