"""The operations of networks over arrays, so that a forward pass is written once.

NumPy runs it where plans are priced, torch where weights are fitted (`train_network`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from codegen.records import dataclass

Array = Any
"""An array of NumPy or a tensor of torch."""
Arrays = Mapping[str, Any]
Padding = Any
"""Places of rows, -1 behind the last: (number of groups, most rows of a group)."""


@dataclass(frozen=True, slots=True)
class Operations:
    """Functions of arrays that libraries call differently.

    join     along an axis: of several arrays, one
    largest  along an axis
    drop     some numbers at random while weights are fitted, else nothing
    """

    join: Callable[[Sequence[Array], int], Array]
    exp2: Callable[[Array], Array]
    log2: Callable[[Array], Array]
    tanh: Callable[[Array], Array]
    sigmoid: Callable[[Array], Array]
    elu: Callable[[Array], Array]
    where: Callable[[Array, Array, Array], Array]
    largest: Callable[[Array, int], Array]
    clip: Callable[[Array, float, float], Array]
    drop: Callable[[Array], Array]


def _sigmoid(x: Array) -> Array:
    return 0.5 * (1.0 + np.tanh(0.5 * x))


NUMPY = Operations(
    lambda parts, axis: np.concatenate(parts, axis),
    np.exp2,
    np.log2,
    np.tanh,
    _sigmoid,
    lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0.0))),
    np.where,
    lambda x, axis: x.max(axis),
    np.clip,
    lambda x: x,
)


def take(rows: Array, places: Padding, ops: Operations) -> Array:
    """Return the rows at some places, zeros where a place is -1."""
    return ops.join([rows, 0.0 * rows[:1]], 0)[places]


def dense(weights: Arrays, name: str, x: Array) -> Array:
    """Return a layer's sums: x · weights + bias."""
    return x @ weights[f"{name}.weight"] + weights[f"{name}.bias"]


def standard(weights: Arrays, name: str, x: Array, ops: Operations) -> Array:
    """Return features less their mean over their spread in the training data, within bounds."""
    return ops.clip((x - weights[f"{name}.mean"]) / weights[f"{name}.spread"], -5.0, 5.0)


def lstm(weights: Arrays, name: str, x: Array, places: Padding, ops: Operations) -> Array:
    """Return the last state of an LSTM over the rows of each group (Hochreiter, Schmidhuber 1997).

    A group without rows has the learned constant `name.none`.
    """
    is_present, steps = places >= 0, take(x, places, ops)
    hidden = weights[f"{name}.none"].shape[0]
    state = memory = 0.0 * (steps[:, 0] @ weights[f"{name}.input"][:, :hidden])
    for step in range(steps.shape[1]):
        gates = steps[:, step] @ weights[f"{name}.input"] + state @ weights[f"{name}.state"]
        gates = gates + weights[f"{name}.bias"]
        put, keep, out = (
            ops.sigmoid(gates[:, place * hidden : (place + 1) * hidden]) for place in range(3)
        )
        fresh = keep * memory + put * ops.tanh(gates[:, 3 * hidden :])
        is_here = is_present[:, step, None]
        memory = ops.where(is_here, fresh, memory)
        state = ops.where(is_here, out * ops.tanh(fresh), state)
    return ops.where(is_present[:, :1], state, weights[f"{name}.none"])
