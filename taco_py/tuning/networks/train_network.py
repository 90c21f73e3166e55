"""Fit the weights of networks to what plans took, in torch.

    loss of a program's plans, with their expected and measured logarithms of seconds:

    speed-up  mean |expected / measured speed-up over the usual plan - 1|   (Baghdadi et al. 2021)
              + SHARE * mean distance of the logarithms of seconds
    seconds   mean squared distance of the logarithms                  (Kaufman et al. 2021, fusion)
    pairs     mean of max(0, 1 - (expected_i - expected_j)) over pairs with measured_i > measured_j
    list      -log likelihood of the measured order (ListMLE, Xia et al. 2008)
    pairs and seconds   pairs + SHARE * mean distance of the logarithms

A step is the plans of a few programs; AdamW with a rate that rises and falls once (Smith 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import TuningStoreError
from taco_py.language.diagnostics.extras import library
from taco_py.tuning.networks.array_operations import Array, Operations
from taco_py.tuning.networks.network import ARCHITECTURES, Architecture, Network
from taco_py.tuning.networks.plan_arrays import PlanForms, join_plans
from taco_py.tuning.prices.model_file import Origin

SHARE = 0.5
"""Of the distance of logarithms, beside the error of speed-ups."""
LEAST_SPEED_UP = 0.01
FEWEST = 2
"""Programs from which on a network is trained."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredProgram:
    """The plans of a program, and what they took.

    seconds  of each plan
    usual    the place of the plan that is chosen without timing
    """

    plans: PlanForms
    seconds: NDArray[np.float64]
    usual: int = 0


@dataclass(frozen=True, slots=True)
class Training:
    """How a network is trained.

    loss      a name of `LOSSES`
    prior     whether the network corrects the analytic price, or knows nothing of it
    epochs    how often all programs are seen
    batch  programs of a step
    """

    loss: str = "seconds"
    prior: bool = True
    epochs: int = 30
    batch: int = 6
    rate: float = 2e-3
    decay: float = 0.05
    dropout: float = 0.25
    seed: int = 0
    progress: Callable[[int, float], None] | None = field(default=None, compare=False)


def trained_network(
    kind: str, programs: Sequence[MeasuredProgram], training: Training, origin: Origin
) -> Network:
    """Return a network that is fitted to the times of programs' plans.

    kind  a name of `ARCHITECTURES`

    Raises TuningStoreError for too few programs, MissingExtraError without torch.
    """
    if len(programs) < FEWEST:
        raise TuningStoreError(
            f"Expected the times of {FEWEST} programs at least, found {len(programs)}"
        )
    torch = library("torch", "tacopy[learn]", 'price="analytic" does without')
    architecture, loss = ARCHITECTURES[kind], LOSSES[training.loss]
    torch.manual_seed(training.seed)
    fixed = architecture.statistics(join_plans([program.plans for program in programs]))
    fixed["prior"] = np.array([float(training.prior)], np.float32)
    weights = _initial(torch, architecture.shapes(), fixed)
    free = [tensor for name, tensor in weights.items() if name not in fixed]
    numbers = Random(training.seed)
    batches = _batches(torch, architecture, programs, training.batch, numbers)
    optimizer = torch.optim.AdamW(free, lr=training.rate, weight_decay=training.decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, training.rate, total_steps=training.epochs * len(batches) + 1, pct_start=0.2
    )
    ops = torch_operations(training.dropout)
    for epoch in range(training.epochs):
        total = 0.0
        for members, arrays in numbers.sample(batches, len(batches)):
            optimizer.zero_grad()
            logs = architecture.forward(weights, arrays, ops)
            parts = logs.split([len(program.seconds) for program in members])
            pairs = zip(parts, members, strict=True)
            error = sum(loss(torch, part, program) for part, program in pairs) / len(members)
            error.backward()
            torch.nn.utils.clip_grad_norm_(free, 1.0)
            optimizer.step()
            schedule.step()
            total += float(error.detach())
        if training.progress is not None:
            training.progress(epoch, total / len(batches))
    return Network(kind, {n: t.detach().numpy().copy() for n, t in weights.items()}, origin)


def _batches(
    torch: Any,
    architecture: Architecture,
    programs: Sequence[MeasuredProgram],
    size: int,
    numbers: Random,
) -> list[tuple[list[MeasuredProgram], dict[str, Any]]]:
    """Return the programs in random batches, each with the arrays of all its plans."""
    order = numbers.sample(programs, len(programs))
    members = [order[begin : begin + size] for begin in range(0, len(order), size)]
    return [
        (some, _tensors(torch, architecture.arrays(join_plans([one.plans for one in some]))))
        for some in members
    ]


def _initial(
    torch: Any, shapes: Mapping[str, tuple[int, ...]], fixed: Mapping[str, NDArray[Any]]
) -> dict[str, Any]:
    """Return weights to begin with: drawn so that numbers keep their spread from layer to layer."""
    weights = {}
    for name, shape in shapes.items():
        if name in fixed:
            weights[name] = torch.from_numpy(np.asarray(fixed[name], np.float32))
            continue
        most = np.sqrt(3.0 / shape[0]) if len(shape) > 1 else 0.0
        drawn = torch.empty(shape).uniform_(-most, most)
        if f"{name.removesuffix('.bias')}.state" in shapes:  # gates that are open at first
            drawn[: 3 * shape[0] // 4] = 1.0
        weights[name] = drawn.requires_grad_()
    return weights


def _tensors(torch: Any, arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {name: torch.from_numpy(np.asarray(array)) for name, array in arrays.items()}


def torch_operations(dropout: float) -> Operations:
    """Return the operations of networks over tensors of torch."""
    torch = library("torch", "tacopy[learn]")
    return Operations(
        lambda parts, axis: torch.cat(list(parts), axis),
        torch.exp2,
        torch.log2,
        torch.tanh,
        torch.sigmoid,
        torch.nn.functional.elu,
        torch.where,
        torch.amax,
        torch.clamp,
        lambda x: torch.nn.functional.dropout(x, dropout) if dropout else x,
    )


# ---------------------------------------------------------------- losses


def _measured(torch: Any, program: MeasuredProgram) -> Array:
    """Return log2 of the microseconds that plans took."""
    return torch.from_numpy(np.log2(program.seconds * 1e6).astype(np.float32))


def _of_seconds(torch: Any, logs: Array, program: MeasuredProgram) -> Array:
    return ((logs - _measured(torch, program)) ** 2).mean()


def _of_speed_ups(torch: Any, logs: Array, program: MeasuredProgram) -> Array:
    measured, usual = _measured(torch, program), program.usual
    speed_ups = torch.clamp(torch.exp2(measured[usual] - measured), min=LEAST_SPEED_UP)
    expected = torch.exp2(torch.clamp(logs[usual] - logs, -8.0, 5.0))
    error = (torch.abs(expected - speed_ups) / speed_ups).clamp(max=20.0).mean()
    return error + SHARE * torch.abs(logs - measured).mean()


def _of_pairs(torch: Any, logs: Array, program: MeasuredProgram) -> Array:
    measured = _measured(torch, program)
    is_slower = (measured[:, None] > measured[None, :]).float()
    hinge = torch.clamp(1.0 - (logs[:, None] - logs[None, :]), min=0.0)
    return (hinge * is_slower).sum() / torch.clamp(is_slower.sum(), min=1.0)


def _of_lists(torch: Any, logs: Array, program: MeasuredProgram) -> Array:
    order = torch.argsort(_measured(torch, program))
    scores = -logs[order]
    rest = torch.logcumsumexp(scores.flip(0), 0).flip(0)
    return (rest - scores).mean()


def _of_both(torch: Any, logs: Array, program: MeasuredProgram) -> Array:
    distance = torch.abs(logs - _measured(torch, program)).mean()
    return _of_pairs(torch, logs, program) + SHARE * distance


LOSSES: Mapping[str, Callable[[Any, Array, MeasuredProgram], Array]] = {
    "seconds": _of_seconds,
    "speed-up": _of_speed_ups,
    "pairs": _of_pairs,
    "list": _of_lists,
    "pairs and seconds": _of_both,
}
"""What is made small, by name: of a module torch, expected logarithms and a measured program."""
