"""Plans as arrays that networks read at one go: rows of all kernels, and who belongs to whom.

loops of a height stand together, so that all trees are folded one level at a time, whatever their
shapes are
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.tuning.networks.tree_and_graph import NODE_NAMES, KernelForm

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PlanForms:
    """Plans whose kernels have forms.

    forms    of different kernels
    seconds  of each kernel by the analytic price
    kernels  of each plan, their places among `forms`, in the order in which they run
    rest     seconds of each plan's copies and calls by the analytic price
    """

    forms: tuple[KernelForm, ...]
    seconds: NDArray[np.float64]
    kernels: tuple[tuple[int, ...], ...]
    rest: NDArray[np.float64]


def join_plans(parts: Sequence[PlanForms]) -> PlanForms:
    """Return the plans of all parts."""
    begins = [0, *accumulate(len(part.forms) for part in parts)]
    return PlanForms(
        tuple(chain.from_iterable(part.forms for part in parts)),
        np.concatenate([part.seconds for part in parts]),
        tuple(
            tuple(begin + kernel for kernel in kernels)
            for begin, part in zip(begins, parts, strict=False)
            for kernels in part.kernels
        ),
        np.concatenate([part.rest for part in parts]),
    )


def padded(groups: Sequence[Sequence[int]]) -> Places:
    """Return groups of places as rows of equal length, with -1 behind the last."""
    width = max(1, max((len(group) for group in groups), default=1))
    places = np.full((len(groups), width), -1, np.int64)
    for row, group in enumerate(groups):
        places[row, : len(group)] = group
    return places


def plan_arrays(plans: PlanForms) -> dict[str, Any]:
    """Return the arrays of plans that are about their kernels as a whole."""
    return {
        "kernel": np.array([form.kernel for form in plans.forms]),
        "plan kernels": padded(plans.kernels),
        "rest": np.log2(plans.rest * 1e6).astype(np.float32),
        "seconds": np.log2(np.maximum(plans.seconds, 1e-12) * 1e6).astype(np.float32),
    }


def tree_arrays(plans: PlanForms) -> dict[str, Any]:
    """Return the arrays of plans' trees of loops.

    heights     how many loops are of each height, those without loops inside first
    statements of  each loop, their places
    loops of    each loop, the places of those inside, which come before it
    roots       of each kernel, the place of its own row
    """
    forms = plans.forms
    begins = [0, *accumulate(len(form.loops) for form in forms)]
    inside: list[list[int]] = [[] for _ in range(begins[-1])]
    statements: list[list[int]] = [[] for _ in range(begins[-1])]
    heights = np.zeros(begins[-1], np.int64)
    count = 0
    for begin, form in zip(begins, forms, strict=False):
        for loop in range(len(form.loop_parent) - 1, 0, -1):
            parent = begin + int(form.loop_parent[loop])
            inside[parent].insert(0, begin + loop)
            heights[parent] = max(heights[parent], heights[begin + loop] + 1)
        for statement, parent in enumerate(form.statement_parent):
            statements[begin + int(parent)].append(count + statement)
        count += len(form.statement_parent)
    order = np.argsort(heights, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return {
        **plan_arrays(plans),
        "heights": np.bincount(heights),
        "loops": np.concatenate([form.loops for form in forms])[order],
        "statements": np.concatenate([form.statements for form in forms]),
        "statements of": padded(statements)[order],
        "loops of": padded([[int(place[loop]) for loop in inside[at]] for at in order]),
        "roots": place[begins[:-1]],
    }


def graph_arrays(plans: PlanForms) -> dict[str, Any]:
    """Return the arrays of plans' graphs of operations, all as large as the largest.

    nodes    of each kernel, zeros behind the last
    is node  whether a row is one
    from sources, from users  of each kernel, a matrix that takes the mean of neighbours
    """
    forms = plans.forms
    most = max(len(form.nodes) for form in forms)
    nodes = np.zeros((len(forms), most, len(NODE_NAMES)), np.float32)
    is_node = np.zeros((len(forms), most), np.float32)
    edges = np.zeros((len(forms), most, most), np.float32)
    for place, form in enumerate(forms):
        nodes[place, : len(form.nodes)] = form.nodes
        is_node[place, : len(form.nodes)] = 1.0
        edges[place, form.edges[:, 1], form.edges[:, 0]] = 1.0
    back = edges.transpose(0, 2, 1)
    return {
        **plan_arrays(plans),
        "nodes": nodes,
        "is node": is_node,
        "from sources": edges / np.maximum(edges.sum(2, keepdims=True), 1.0),
        "from users": back / np.maximum(back.sum(2, keepdims=True), 1.0),
    }


def column_statistics(rows: Iterable[NDArray[Any]]) -> tuple[Any, Any]:
    """Return the mean of each column, and its spread; 1 where all numbers are alike."""
    table = np.concatenate([*rows]).astype(np.float64)
    spread = table.std(axis=0)
    return (
        table.mean(axis=0).astype(np.float32),
        np.where(spread > 1e-6, spread, 1.0).astype(np.float32),
    )
