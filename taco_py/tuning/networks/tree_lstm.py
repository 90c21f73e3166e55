"""A recursive network over the loops of a plan (Baghdadi et al. 2021, a deep-learning cost model).

    statement     a perceptron over its numbers
    loop          an LSTM over its statements, one over the loops inside, a perceptron over both and
                  over its own numbers; learned constants where it has none
    plan          an LSTM over its kernels, a perceptron: log2 of its microseconds

As the paper has it, but for its input: trees are those of sparse loops too, with what is known of
operands' entries, and the network may be told the analytic price, which it corrects then.
"""

from __future__ import annotations

from typing import Any

from taco_py.tuning.networks.array_operations import (
    Array,
    Arrays,
    Operations,
    dense,
    lstm,
    standard,
    take,
)
from taco_py.tuning.networks.nest_vectors import LOOP_NAMES, STATEMENT_NAMES
from taco_py.tuning.networks.plan_arrays import PlanForms, column_statistics
from taco_py.tuning.networks.tree_and_graph import KERNEL_NAMES

FIRST, HIDDEN = 128, 64
"""Numbers of the first layer over a statement, and of all others."""
KERNEL_COLUMNS = tuple(
    place
    for place, name in enumerate(KERNEL_NAMES)
    if name.startswith("way ")
    or name in ("threads", "serial", "reuses", "terms", "values", "item", "complex", "real",
                "static sizes", "rows looked up", "result dense", "result order", "lists")
)  # fmt: skip
"""What is told of a kernel besides its loops: how it is made, and of which type it is."""


def shapes() -> dict[str, tuple[int, ...]]:
    """Return the shape of each array of weights."""
    kernel = HIDDEN + len(KERNEL_COLUMNS)

    def layer(name: str, width: int, out: int) -> dict[str, tuple[int, ...]]:
        return {f"{name}.weight": (width, out), f"{name}.bias": (out,)}

    def recurrent(name: str, width: int) -> dict[str, tuple[int, ...]]:
        return {
            f"{name}.input": (width, 4 * HIDDEN), f"{name}.state": (HIDDEN, 4 * HIDDEN),
            f"{name}.bias": (4 * HIDDEN,), f"{name}.none": (HIDDEN,),
        }  # fmt: skip

    def statistics(name: str, width: int) -> dict[str, tuple[int, ...]]:
        return {f"{name}.mean": (width,), f"{name}.spread": (width,)}

    return {
        **statistics("statements", len(STATEMENT_NAMES)),
        **statistics("loops", len(LOOP_NAMES)),
        **statistics("kernel", len(KERNEL_COLUMNS)),
        **layer("statement 1", len(STATEMENT_NAMES), FIRST),
        **layer("statement 2", FIRST, HIDDEN),
        **recurrent("of statements", HIDDEN),
        **recurrent("of loops", HIDDEN),
        **layer("loop 1", 2 * HIDDEN + len(LOOP_NAMES), HIDDEN),
        **layer("loop 2", HIDDEN, HIDDEN),
        **recurrent("of kernels", kernel),
        **layer("plan 1", HIDDEN + 2, HIDDEN),
        **layer("plan 2", HIDDEN, 1),
        "prior": (1,),
    }


def forward(weights: Arrays, arrays: Arrays, ops: Operations) -> Array:
    """Return log2 of the microseconds of each plan.

    weights  arrays of `shapes`; prior is 1 where the analytic price is corrected, else 0
    arrays   those of `tree_arrays`
    """
    x = standard(weights, "statements", arrays["statements"], ops)
    x = ops.drop(ops.elu(dense(weights, "statement 1", x)))
    x = ops.drop(ops.elu(dense(weights, "statement 2", x)))
    below = lstm(weights, "of statements", x, arrays["statements of"], ops)
    numbers = standard(weights, "loops", arrays["loops"], ops)
    loops, begin = None, 0
    for count in arrays["heights"].tolist():
        level = slice(begin, begin + count)
        if loops is None:
            inner = 0.0 * below[level] + weights["of loops.none"]
        else:
            inner = lstm(weights, "of loops", loops, arrays["loops of"][level], ops)
        y = ops.join([below[level], inner, numbers[level]], 1)
        y = ops.elu(dense(weights, "loop 2", ops.elu(dense(weights, "loop 1", y))))
        loops = y if loops is None else ops.join([loops, y], 0)
        begin += count
    assert loops is not None
    kernel = standard(weights, "kernel", arrays["kernel"][:, list(KERNEL_COLUMNS)], ops)
    kernels = ops.join([loops[arrays["roots"]], kernel], 1)
    plans = lstm(weights, "of kernels", kernels, arrays["plan kernels"], ops)
    return _seconds(weights, arrays, plans, ops)


def _seconds(weights: Arrays, arrays: Arrays, plans: Array, ops: Operations) -> Array:
    """Return log2 of the microseconds of plans from their embeddings."""
    shares = take(ops.exp2(arrays["seconds"])[:, None], arrays["plan kernels"], ops)[:, :, 0]
    analytic = ops.log2(shares.sum(1) + ops.exp2(arrays["rest"]))
    prior = weights["prior"]
    y = ops.join([plans, arrays["rest"][:, None] / 8.0, prior * (analytic[:, None] - 8.0) / 8.0], 1)
    y = dense(weights, "plan 2", ops.drop(ops.elu(dense(weights, "plan 1", y))))
    return y[:, 0] + prior * analytic


def statistics_of(plans: PlanForms) -> dict[str, Any]:
    """Return the means and spreads of features in training data, by names of `shapes`."""
    tables = {
        "statements": (form.statements for form in plans.forms),
        "loops": (form.loops[1:] for form in plans.forms),
        "kernel": (form.kernel[None, list(KERNEL_COLUMNS)] for form in plans.forms),
    }
    arrays = {}
    for name, rows in tables.items():
        arrays[f"{name}.mean"], arrays[f"{name}.spread"] = column_statistics(rows)
    return arrays
