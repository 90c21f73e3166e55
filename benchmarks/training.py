"""How long does a step of training take, beside torch?

Four models (`training_models.py`) in float32, each step the loss, its gradients and Adam: a
perceptron of three layers, a graph convolutional network of two on the graph of pubmed with
generated features, a classifier of sparse documents with thousands of labels, and a block of a
transformer. Ours takes part as it is, and with each primitive a kernel of its own
(`optimize="none"`), dense products by SciPy's BLAS; torch, where it is installed, eager and
compiled, sparse operands as its sparse CSR. Two threads; those of OpenMP that wait go to sleep
soon, for all alike (`GOMP_SPINCOUNT`). Contenders take turns; the load of the machine is beside
each figure, and the time that all threads computed ("ms busy"). `python -m benchmarks.training
ablation` fills the table of passes.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import OURS, Compute, Record, in_threads, in_turns, record
from benchmarks.training_models import Model, models
from taco_py.graph.passes import NAMES, without

THREADS, RATE, STEPS, ROUNDS = 2, 1e-3, 5, 12
TOLERANCE = 2e-3  # of losses in float32, relative
SECONDS = 20.0


def run() -> Iterator[Record]:
    with in_threads(THREADS):
        for model in models():
            yield from compared(model)


def compared(model: Model) -> Iterator[Record]:
    """The times of a step by all contenders, with the load before and after."""
    contenders = dict(of_ours(model)) | dict(of_torch(model))
    notes = check(contenders)
    before = os.getloadavg()[0]
    times = in_turns(contenders, SECONDS)
    load = f"load {before:.1f} to {os.getloadavg()[0]:.1f}"
    for name, seconds in times.items():
        note = f"{load} {notes[name]}".strip()
        yield record("training", model.name, name, [1e3 * t for t in seconds], "ms", note)
    yield from busy("training", model.name, contenders)


def busy(question: str, title: str, contenders: dict[str, Compute]) -> Iterator[Record]:
    """The time of all threads together, in turns: what others compute meanwhile changes it less."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, go_on in contenders.items():
            go_on()
            before = time.process_time()
            go_on()
            times[name].append(1e3 * (time.process_time() - before))
    for name, samples in times.items():
        yield record(question, title, name, samples, "ms busy")


def check(contenders: dict[str, Compute]) -> dict[str, str]:
    """Take some steps of each, and say whose losses are not those of the first."""
    losses = {name: [float(step()) for _ in range(STEPS)] for name, step in contenders.items()}
    expected = next(iter(losses.values()))
    return {
        name: "" if np.allclose(found, expected, rtol=TOLERANCE) else f"WRONG: {found}"
        for name, found in losses.items()
    }


def of_ours(model: Model) -> Iterator[tuple[str, Compute]]:
    yield OURS, stepping(tp.train_step(model.loss, rate=RATE), model)
    alone = tp.train_step(model.loss, rate=RATE, optimize="none")
    yield f"{OURS} unfused", stepping(alone, model)


def stepping(step: Any, model: Model) -> Compute:
    """A function that goes on by one step, and returns the loss."""
    states = [step.begin(model.parameters)]

    def go_on() -> Any:
        value, states[0] = step(states[0], **model.data)
        return value

    return go_on


def of_torch(model: Model) -> Iterator[tuple[str, Compute]]:
    """Torch's steps; none where it is not installed."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(THREADS)
    data = {name: in_torch(torch, each) for name, each in model.data.items()}
    yield "torch", stepping_in_torch(torch, model.in_torch, model, data)
    compiled = torch.compile(model.in_torch)
    yield "torch.compile", stepping_in_torch(torch, compiled, model, data)


def in_torch(torch: Any, value: Any) -> Any:
    """A tensor of torch: labels dense, for its losses take no sparse ones; the rest as it is."""
    if not sp.issparse(value):
        return torch.from_numpy(np.ascontiguousarray(value))
    if value.shape[0] == 256 and value.data.max() == 1:
        return torch.from_numpy(value.toarray())
    parts = (torch.from_numpy(each) for each in (value.indptr, value.indices, value.data))
    return torch.sparse_csr_tensor(*parts, size=value.shape)


def stepping_in_torch(
    torch: Any, loss: Callable[..., Any], model: Model, data: dict[str, Any]
) -> Compute:
    own = {
        name: torch.from_numpy(each.copy()).requires_grad_()
        for name, each in model.parameters.items()
    }
    adam = torch.optim.Adam([*own.values()], lr=RATE)

    def go_on() -> Any:
        adam.zero_grad()
        value = loss(**own, **data)
        value.backward()
        adam.step()
        return value.detach()

    return go_on


# ---------------------------------------------------------------- what each pass is worth


def ablation() -> Iterator[Record]:
    """The gradients of each model, without one pass at a time (Chen et al. 2024, figure 12).

    full              the gradients alone, kernels by `optimize="partition"`
    without …         the same without loss elimination, decomposition, reduction elimination
    without partition kernels by "greedy"
    without compiler  each primitive a kernel of its own
    """
    with in_threads(THREADS):
        for model in models():
            yield from without_passes(model)


def without_passes(model: Model) -> Iterator[Record]:
    """The times of the gradients of a model by all ways."""
    ways = dict(passes_of(model))
    notes = check_gradients(ways)
    before = os.getloadavg()[0]
    for name, seconds in in_turns(ways, SECONDS).items():
        note = f"load {before:.1f} to {os.getloadavg()[0]:.1f} {notes[name]}".strip()
        yield record("ablation", model.name, name, [1e3 * t for t in seconds], "ms", note)
    yield from busy("ablation", model.name, ways)


def passes_of(model: Model) -> Iterator[tuple[str, Compute]]:
    names = tuple(model.parameters)

    def gradients(optimize: str) -> Any:
        return tp.grad(model.loss, names, optimize=optimize)

    def calling(function: Any) -> Compute:
        return lambda: function(**model.parameters, **model.data)

    yield "full", calling(gradients("partition"))
    for name in NAMES:
        yield f"without {name}", calling(without(gradients("partition"), name))
    yield "without partition", calling(gradients("greedy"))
    yield "without compiler", calling(gradients("none"))
    yield "stages", calling(gradients("stages"))


def check_gradients(ways: dict[str, Compute]) -> dict[str, str]:
    """Say whose gradients are not those of the first."""
    found = {name: compute()[-len(ways["full"]()) :] for name, compute in ways.items()}
    expected = found["full"]
    return {
        name: ""
        if all(
            np.allclose(one, other, atol=TOLERANCE * float(np.abs(other).max()))
            for one, other in zip(each, expected, strict=True)
        )
        else "WRONG"
        for name, each in found.items()
    }


def main() -> None:
    """Print the table of steps, or that of passes."""
    from benchmarks.run import printed as table

    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__)
    parser.add_argument("question", nargs="?", choices=("steps", "ablation"), default="steps")
    for _ in table(ablation() if parser.parse_args().question == "ablation" else run()):
        pass


if __name__ == "__main__":
    main()
