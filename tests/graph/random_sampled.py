"""Random functions of products that sparse operands sample, against the same of dense operands.

    python -m tests.graph.random_sampled 200 --seed 7

A function makes dense values of n by n elements of functions of elements, and reads each only where
one of two sparse matrices stores something, or some do in the other order of modes.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from taco_py.graph.backends.interpret_region import interpreted
from taco_py.graph.extents import evaluated
from taco_py.graph.nodes import Graph

DENSE = (
    "Q @ K.T", "x[:, None] + y[None, :]", "x[:, None] * y - Q @ K.T", "np.outer(x, y)",
    "Q @ K.T + V @ V.T", "(Q * x[:, None]) @ K.T / 2",
)  # fmt: skip
CHAINS = (
    "np.tanh({})", "np.exp(-np.abs({}))", "{} * 0.5", "1 / (1 + np.exp(-{}))", "{} + x",
    "np.where({} > 0.3, {}, 0.2 * {})", "np.maximum({}, 0.25)", "{} * y[:, None]", "{}**2",
    "np.sin({})", "np.log1p({}**2)", "{} - {} / 3", "np.sqrt({}**2 + 1)", "-{}",
)  # fmt: skip
BOTH = ("{} * {}", "{} + {}", "np.where({} > {}, x, 0.5)", "np.hypot({}, {} + 2)")
SAMPLES = (
    "M * {}", "np.where(M, {}, 0)", "{} * N", "np.where(N != 0, {}, 0.0)", "(M.T * {}.T).T",
    "(N + M) * {}", "M * N * {}", "np.where(M, {}, 0) / 3", "M / (1 + {}**2)",
    "np.where(N, np.exp({}), 0)", "P * {}", "np.where(P, {}, 0)",
)  # fmt: skip
READERS = (
    "({} @ V)", "{}.sum(0)", "({}.T @ V)", "({} / (1 + np.abs({}).sum(1)[:, None])) @ V",
    "np.where(M, {}, -np.inf).max(1)", "({}**2).sum()", "({} * {}).sum(1)",
)  # fmt: skip


@dataclass(frozen=True)
class Sampled:
    """A function's text with its operands."""

    text: str
    operands: dict[str, Any]

    def function(self) -> Callable[..., Any]:
        space: dict[str, Any] = {"np": np}
        exec(self.text, space)
        found: Callable[..., Any] = space["f"]
        return found

    @property
    def dense(self) -> dict[str, Any]:
        """The operands as arrays."""
        return {
            name: each.toarray() if sp.issparse(each) else np.asarray(each)
            for name, each in self.operands.items()
        }


def operands_of(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Matrices with n rows: M has an entry in each, N has explicit zeros and empty rows, P truths
    in the order of columns; and dense arrays."""
    M = sp.random_array((n, n), density=2 / n, rng=rng, format="lil")
    M[np.arange(n), rng.permutation(n)] = 1.5
    N = sp.random_array((n, n), density=3 / n, rng=rng, format="csr")
    N.data[::4] = 0
    P = sp.csc_array(sp.random_array((n, n), density=2 / n, rng=rng) != 0)
    dense = {name: rng.random((n, 3)) - 0.3 for name in "QKV"}
    vectors = {name: rng.random(n) + 0.1 for name in "xy"}
    return {"M": sp.csr_array(M), "N": N, "P": P, **dense, **vectors}


def make(rng: np.random.Generator, n: int = 12, wide: int = 3) -> Sampled:
    """Write a function whose value is the sum of what readers make of samples.

    wide  how many values and samples it has at most
    """

    def pick(texts: Sequence[str], *args: str) -> str:
        text = str(rng.choice(texts))
        count = text.count("{}")
        return text.format(*(args * count)[:count])

    lines, values = [], []
    for _ in range(int(rng.integers(1, wide + 1))):
        name = f"s{len(lines)}"
        if values and rng.random() < 0.6:
            text = pick(BOTH, *rng.choice(values, 2)) if rng.random() < 0.3 else ""
            lines.append(f"    {name} = {text or pick(CHAINS, str(rng.choice(values)))}")
        else:
            lines.append(f"    {name} = {pick(CHAINS, '(' + pick(DENSE) + ')')}")
        values.append(name)
    terms = []
    for _ in range(int(rng.integers(1, wide + 1))):
        name = f"t{len(lines)}"
        lines.append(f"    {name} = {pick(SAMPLES, str(rng.choice(values)))}")
        terms.append(f"(({pick(READERS, name)})**2).sum()")
    operands = operands_of(rng, n)
    text = "\n".join([f"def f({', '.join(operands)}):", *lines, f"    return {' + '.join(terms)}"])
    return Sampled(text, operands)


def read_by(sampled: Sampled) -> tuple[str, ...]:
    """The operands with gradients that the value of a function depends on."""
    live = sampled.text.rsplit("return", 1)[1]
    for line in reversed(sampled.text.splitlines()[1:-1]):
        name, value = line.strip().split(" = ", 1)
        if re.search(rf"\b{name}\b", live):
            live += value
    return tuple(n for n in sampled.operands if n != "P" and re.search(rf"\b{n}\b", live))


def on_pattern(array: Any, matrix: Any) -> Any:
    """An array where a sparse matrix stores something, also a zero."""
    coordinates = matrix.tocoo()
    found = np.zeros(matrix.shape)
    found[coordinates.row, coordinates.col] = array[coordinates.row, coordinates.col]
    return found


def compare(sampled: Sampled, optimize: str = "stages") -> Any:
    """Compare value and gradients with those of dense operands, which NumPy computes; the gradient.

    Raises AssertionError where they differ.
    """
    f, operands, dense = sampled.function(), sampled.operands, sampled.dense
    names = read_by(sampled)
    gradient = tp.value_and_grad(f, names, optimize=optimize)
    value, found = gradient(**operands)
    graph = tp.value_and_grad(f, names).graph(**dense).primitives
    expected_value, *expected = in_numpy(graph, dense)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(expected_value, f(**dense), rtol=1e-9, err_msg=sampled.text)
    np.testing.assert_allclose(value, expected_value, rtol=1e-9, err_msg=sampled.text)
    for name, one, other in zip(names, found, expected, strict=True):
        assert sp.issparse(one) == sp.issparse(operands[name]), f"{name} of\n{sampled.text}"
        if sp.issparse(one):
            one, other = one.toarray(), on_pattern(other, operands[name])
        np.testing.assert_allclose(
            one, other, rtol=1e-8, atol=1e-9, err_msg=f"{name} of\n{sampled.text}"
        )
    return gradient


def in_numpy(graph: Graph, operands: dict[str, Any]) -> list[Any]:
    """Compute a graph of primitives without a kernel."""
    constants = {each.name: each.value for each in graph.constants}
    inputs = [each.name for each in graph.inputs]
    numbers = {
        each.name: np.dtype(each.fact.dtype).type(evaluated(each.extent, operands))
        for each in graph.numbers
    }
    return interpreted(graph).run({**constants, **numbers}, [operands[n] for n in inputs])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--optimize", nargs="*", default=["stages"])
    options = parser.parse_args(arguments)
    wrong = 0
    for number in range(options.count):
        sampled = make(np.random.default_rng([options.seed, number]))
        for optimize in options.optimize:
            try:
                compare(sampled, optimize)
            except (AssertionError, Exception) as error:
                wrong += 1
                print(
                    number,
                    optimize,
                    type(error).__name__,
                    str(error)[:1500],
                    sampled.text,
                    sep="\n",
                    flush=True,
                )
    print(f"{options.count} functions, {wrong} differ")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
