"""A network over the operations of each kernel (Kaufman et al. 2021, a learned performance model).

    node     its numbers and those of its kernel, a layer ("early join")
    hop      a layer over the node, the mean of its sources and the mean of its users, HOPS times
             (GraphSAGE, Hamilton et al. 2017, with edges in both directions)
    kernel   the mean and the largest of its nodes, a perceptron: log2 of its microseconds
    plan     the sum of its kernels, and of copies and calls by the analytic price

The numbers of a kernel are those that learned prices have (`FEATURES`), its analytic price among
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.tuning.networks.array_operations import (
    Array,
    Arrays,
    Operations,
    dense,
    standard,
    take,
)
from taco_py.tuning.networks.plan_arrays import PlanForms, column_statistics
from taco_py.tuning.networks.tree_and_graph import KERNEL_NAMES, NODE_NAMES

HOPS, HIDDEN = 3, 64
KERNEL_FLOOR = -20.0
"""Stands for numbers that a kernel has not, so that they are no outliers."""


def shapes() -> dict[str, tuple[int, ...]]:
    """Return the shape of each array of weights."""
    nodes, kernel = len(NODE_NAMES), len(KERNEL_NAMES)
    layers = {
        "node": (nodes + kernel, HIDDEN),
        **{f"hop {hop}": (3 * HIDDEN, HIDDEN) for hop in range(HOPS)},
        "kernel 1": (2 * HIDDEN + kernel, HIDDEN),
        "kernel 2": (HIDDEN, 1),
    }
    return {
        "nodes.mean": (nodes,), "nodes.spread": (nodes,),
        "kernel.mean": (kernel,), "kernel.spread": (kernel,),
        **{f"{name}.weight": shape for name, shape in layers.items()},
        **{f"{name}.bias": shape[1:] for name, shape in layers.items()},
        "prior": (1,),
    }  # fmt: skip


def forward(weights: Arrays, arrays: Arrays, ops: Operations) -> Array:
    """Return log2 of the microseconds of each plan.

    weights  arrays of `shapes`; prior is 1 where the analytic price is corrected, else 0
    arrays   those of `graph_arrays`
    """
    floor = ops.clip(arrays["kernel"], KERNEL_FLOOR, 1e9)
    kernel = standard(weights, "kernel", floor, ops)
    x = standard(weights, "nodes", arrays["nodes"], ops)
    early = kernel @ weights["node.weight"][len(NODE_NAMES) :]
    x = x @ weights["node.weight"][: len(NODE_NAMES)] + early[:, None] + weights["node.bias"]
    x, is_node = ops.elu(x), arrays["is node"][:, :, None]
    for hop in range(HOPS):
        near = (arrays["from sources"] @ x, arrays["from users"] @ x)
        x = ops.drop(ops.elu(dense(weights, f"hop {hop}", ops.join([x, *near], 2))))
    mean = (x * is_node).sum(1) / is_node.sum(1)
    largest = ops.largest(x * is_node - 1e4 * (1.0 - is_node), 1)
    y = ops.join([mean, largest, kernel], 1)
    y = dense(weights, "kernel 2", ops.drop(ops.elu(dense(weights, "kernel 1", y))))[:, 0]
    logs = ops.clip(y + weights["prior"] * arrays["seconds"], -20.0, 40.0)
    shares = take(ops.exp2(logs)[:, None], arrays["plan kernels"], ops)[:, :, 0]
    return ops.log2(shares.sum(1) + ops.exp2(arrays["rest"]))


def statistics_of(plans: PlanForms) -> dict[str, Any]:
    """Return the means and spreads of features in training data, by names of `shapes`."""
    arrays = {}
    kernels = (np.maximum(form.kernel[None], KERNEL_FLOOR) for form in plans.forms)
    for name, rows in (("nodes", (form.nodes for form in plans.forms)), ("kernel", kernels)):
        arrays[f"{name}.mean"], arrays[f"{name}.spread"] = column_statistics(rows)
    return arrays
