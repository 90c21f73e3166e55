"""How long does it take to plan a product of many factors, and to call it first, against
`opt_einsum`?

Networks are planned without any array, for some could never be computed: trees and rings that are
made here and, where a folder `shared/data` lies beside the repository or above it, its instances.
The note has the multiplications of our order, times those of opt_einsum's `auto`. First calls run
in a process of their own with an empty kernel cache.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import opt_einsum
from opt_einsum.paths import linear_to_ssa

from benchmarks.measure import OURS, Record, in_turns, record
from benchmarks.processes import printed
from taco_py.compiler.cost.effort import Effort
from taco_py.language.formats import dense
from taco_py.language.notation.einsum import parse_einsum
from taco_py.language.problem import TensorType
from taco_py.planner.algebra.pair_orders import Network, cheapest_order
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import make_plan

Labels = tuple[str, ...]
CHAIN = """
import time
from functools import reduce
import numpy as np, taco_py as tp
tp.einsum("ij,j->i", np.eye(2), np.ones(2))
rng = np.random.default_rng(0)
M = {{f"M{{k}}": np.eye(2) + 0.01 * rng.random((2, 2)) for k in range({count})}}
text = "R[i0,i{count}] = " + " * ".join(f"M{{k}}[i{{k}},i{{k + 1}}]" for k in range({count}))
start = time.perf_counter()
found = tp.evaluate(text, M)
print(1e3 * (time.perf_counter() - start))
assert np.allclose(found, reduce(np.matmul, M.values()))
"""
"""The milliseconds of the first call of a chain of matrices, after one of another kernel."""
AMPLITUDES = (
    "W[a,b,i,j] + Fv[a,e]*T[e,b,i,j] + Fv[b,e]*T[a,e,i,j] + Fo[m,i]*T[a,b,m,j] + "
    "Fo[m,j]*T[a,b,i,m] + O[m,n,i,j]*T[a,b,m,n] + V[a,b,e,f]*T[e,f,i,j] + M[m,b,e,j]*T[a,e,i,m] + "
    "M[m,a,e,i]*T[e,b,m,j] + V[a,b,e,f]*S[e,i]*S[f,j] + O[m,n,i,j]*S[a,m]*S[b,n] + "
    "G[m,n,e,f]*T[a,e,i,m]*T[f,b,n,j] + G[m,n,e,f]*T[e,f,i,j]*T[a,b,m,n] + "
    "G[m,n,e,f]*S[e,i]*S[a,m]*T[f,b,n,j] + G[m,n,e,f]*S[e,i]*S[f,j]*T[a,b,m,n] + "
    "G[m,n,e,f]*S[e,i]*S[f,j]*S[a,m]*S[b,n]"
)
"""16 terms as those of coupled clusters with single and double excitations."""
SUM = f"""
import re, time
import numpy as np, taco_py as tp
text = "R[a,b,i,j] = {AMPLITUDES}"
sizes = {{**dict.fromkeys("ijmn", 6), **dict.fromkeys("abef", 10)}}
found = dict(re.findall(r"(\\w+)\\[([\\w,]+)\\]", text.partition("=")[2]))
rng = np.random.default_rng(0)
A = {{name: rng.random([sizes[i] for i in own.split(",")]) for name, own in found.items()}}
tp.einsum("ij,j->i", np.eye(2), np.ones(2))
start = time.perf_counter()
tp.evaluate(text, A)
print(1e3 * (time.perf_counter() - start))
"""
"""The milliseconds of its first call."""
PROCESSES = 3


@dataclass(frozen=True, slots=True)
class Instance:
    """A network of tensors that are never made."""

    name: str
    factors: tuple[Labels, ...]
    kept: Labels
    sizes: dict[str, int]

    @property
    def network(self) -> Network:
        return Network(self.factors, frozenset(self.kept), self.sizes)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(self.sizes[label] for label in own) for own in self.factors]

    @property
    def text(self) -> str:
        """The einsum, a letter an index."""
        letter = {label: opt_einsum.get_symbol(k) for k, label in enumerate(self.sizes)}
        terms = ["".join(letter[label] for label in own) for own in (*self.factors, self.kept)]
        return f"{','.join(terms[:-1])}->{terms[-1]}"

    def plan(self) -> Plan:
        """Our plan, from the subscripts on."""
        assignment = parse_einsum(self.text, tuple(map(len, self.factors)))
        operands = {}
        for place, shape in enumerate(self.shapes):
            elements, joined = 1.0, (True,) * max(0, len(shape) - 1)
            for size in shape:
                elements *= size
            type = TensorType(dense(len(shape)), "float64")
            operands[f"op{place}"] = Operand(type, shape, elements, None, joined)
        request = Request(TensorType(dense(len(self.kept)), "float64"))
        return make_plan(assignment, operands, request)

    def path(self) -> list[tuple[int, ...]]:
        """opt_einsum's usual order."""
        found, _ = opt_einsum.contract_path(self.text, *self.shapes, shapes=True, optimize="auto")
        return found  # type: ignore[no-any-return]


def tree(count: int) -> Instance:
    draw = random.Random(count)
    factors: list[list[str]] = [[] for _ in range(count)]
    for place in range(1, count):
        factors[place].append(f"i{place}")
        factors[draw.randrange(place)].append(f"i{place}")
    labels = [f"i{place}" for place in range(1, count)]
    own = tuple(map(tuple, factors))
    return Instance(f"tree of {count}", own, (), dict.fromkeys(labels, 4))


def ring(count: int) -> Instance:
    draw = random.Random(count)
    factors = [[f"r{k}", f"r{(k + 1) % count}"] for k in range(count)]
    for place in range(0, count - 1, 3):
        factors[place].append(f"c{place}")
        factors[draw.randrange(place + 1, count)].append(f"c{place}")
    labels = [label for own in factors for label in own]
    own = tuple(map(tuple, factors))
    return Instance(f"ring of {count} with chords", own, (), dict.fromkeys(labels, 2))


def shared() -> Iterator[Instance]:
    """The instances of `shared/data`, none where it is not there."""
    for folder in Path(__file__).resolve().parents:
        for path in sorted((folder / "shared" / "data" / "einsum").glob("*.json")):
            told = json.loads(path.read_text())
            factors = tuple(tuple(own) for own in told["inputs"])
            yield Instance(path.stem, factors, tuple(told["output"]), told["size_dict"])


def run() -> Iterator[Record]:
    for instance in (tree(20), tree(100), ring(20), ring(100), *shared()):
        network = instance.network
        ours = network.products(cheapest_order(network, Effort(), 0.5).pairs)
        usual = network.products(linear_to_ssa(instance.path()))
        times = in_turns({"opt_einsum auto": instance.path, OURS: instance.plan})
        for name, seconds in times.items():
            note = f"{ours / usual:.2f} of its multiplications" if name == OURS else ""
            milliseconds = [1e3 * each for each in seconds]
            yield record("many_factors", f"plan {instance.name}", name, milliseconds, "ms", note)
    firsts = {f"chain of {n} 2x2, first call": CHAIN.format(count=n) for n in (40, 80)}
    for name, code in {**firsts, "16 terms, first call": SUM}.items():
        calls = [partial(_first, code) for _ in range(PROCESSES)]
        yield record("many_factors", name, OURS, [call() for call in calls], "ms")


def _first(code: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        return printed(code, {"TACO_PY_CACHE_DIR": folder})
