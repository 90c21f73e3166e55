"""The model against kernels that count: executed iterations are the sizes of recorded task sets.

Workspaces of two or more modes are left out: the compiler drains their hash table in one loop over
all modes, the model has a loop a mode.
"""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest

from taco_py.compiler.asymptotic.domination import Costs, assumptions
from taco_py.compiler.asymptotic.frontier_search import search
from taco_py.compiler.asymptotic.nests import nests
from taco_py.compiler.asymptotic.protocols import Directed
from taco_py.compiler.asymptotic.tasks import Recorder, Scope
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import Problem
from tests.asymptotic.counting import counted, directed_of, statement_of
from tests.asymptotic.exact_counts import Patterns, executed, work
from tests.problems import problem

SPMV = "y[i] = A[i,j] * x[j]"
PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
SDDMM = "D[i,j] = S[i,j] * U[i,k] * V[j,k]"
MTTKRP = "M[i,r] = sum(j, k, T[i,j,k] * B[j,r] * C[k,r])"

KERNELS: tuple[tuple[str, dict[str, str], str, tuple[str, ...]], ...] = (
    (SPMV, {"A": "CSR"}, "d", ("ij",)),
    (SPMV, {"A": "CSC"}, "d", ("ji",)),
    (SPMV, {"A": "DCSR"}, "d", ("ij",)),
    (SPMV, {"A": "CSR", "x": "s"}, "d", ("ij",)),
    (SPMV, {"A": "DCSR", "x": "s"}, "s", ("ij",)),
    (SPMV, {}, "d", ("ij",)),
    (PRODUCT, {"A": "CSR", "B": "CSR"}, "ds", ("ikj",)),
    (PRODUCT, {"A": "DCSR", "B": "DCSR"}, "ss", ("ikj",)),
    (PRODUCT, {"A": "CSR", "B": "CSC"}, "ds", ("ijk",)),
    (PRODUCT, {"A": "CSR", "B": "CSC"}, "dd", ("ijk",)),
    (PRODUCT, {"A": "CSC", "B": "CSR"}, "dd", ("kij",)),
    (PRODUCT, {"A": "CSR"}, "dd", ("ikj",)),
    (SDDMM, {"S": "CSR"}, "ds", ("ijk",)),
    (SDDMM, {"S": "DCSR"}, "ss", ("ijk",)),
    (MTTKRP, {"T": "CSF"}, "dd", ("ijkr",)),
    (MTTKRP, {"T": "CSF", "B": "CSR", "C": "CSR"}, "dd", ("ijkr",)),
    ("s = A[i,j] * B[i,j]", {"A": "CSR", "B": "CSR"}, "", ("ij",)),
    ("C[i,j] = A[i,j] * B[i,j]", {"A": "DCSR", "B": "DCSR"}, "ss", ("ij",)),
    ("C[i,j] = A[i,j] + B[i,j]", {"A": "CSR", "B": "CSR"}, "ds", ("ij", "ij")),
    ("C[i,j] = A[i,j] + B[i,j]", {"A": "DCSR", "B": "DCSR"}, "ss", ("ij", "ij")),
    ("C[i,j] = A[i,j] * (B[i,j] + D[i,j])", dict.fromkeys("ABD", "CSR"), "ds", ("ij",)),
    ("y[i] = a[i] * b[i] + c[i]", dict.fromkeys("abc", "s"), "s", ("i", "i")),
    ("y[i] = a[i] * (b[i] + c[i]) * d[i]", dict.fromkeys("abcd", "s"), "s", ("i",)),
    ("r[i] = b[i] - A[i,j] * x[j]", {"A": "CSR"}, "d", ("i", "ij")),
    ("r[i] = b[i] - A[i,j] * x[j]", {"A": "DCSR"}, "d", ("i", "ij")),
    ("y[i] = A[i,j] * x[j] + B[i,j] * z[j]", {"A": "CSR", "B": "CSR"}, "d", ("ij", "ij")),
)
PATTERNS = 100


def random_patterns(whole: Problem, rng: np.random.Generator) -> Patterns:
    """Sizes of 1 to 6 and patterns of any density, empty and full ones among them."""
    every = (whole.assignment.target, *accesses(whole.assignment))
    indices = dict.fromkeys(i for access in every for i in access.indices)
    sizes = {index: int(rng.integers(1, 7)) for index in indices}
    stored = {}
    for access in accesses(whole.assignment):
        if not whole.type_of(access.tensor).format.is_dense:
            density = rng.choice([0.0, 0.1, 0.3, 0.6, 1.0])
            cells = product(*(range(sizes[i]) for i in access.indices))
            stored[access.tensor] = frozenset(c for c in cells if rng.random() < density)
    return Patterns(sizes, stored)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k[0]} {k[1]} {k[3]}")
def test_kernels_execute_the_recorded_tasks(
    kernel: tuple[str, dict[str, str], str, tuple[str, ...]],
) -> None:
    text, formats, result, orders = kernel
    whole = problem(text, formats, result)
    statement = statement_of(whole, orders)
    directed = directed_of(whole, statement)
    rng = np.random.default_rng(7)
    for _ in range(PATTERNS):
        patterns = random_patterns(whole, rng)
        expected: Counter[str] = Counter()
        for place, count in executed(directed, patterns).items():
            expected[str(place[-2])] += count
        found = counted(whole, statement, patterns)
        assert +found == +expected, patterns


PAIRS = (
    (SPMV, {"A": "CSR"}),
    (PRODUCT, {"A": "CSR", "B": "CSR"}),
    ("y[i] = A[i,j] * B[j,k] * x[k]", {"A": "CSR", "B": "CSR"}),
    (SDDMM, {"S": "CSR"}),
    ("r[i] = b[i] - A[i,j] * x[j]", {"A": "CSR"}),
    ("C[i,j] = A[i,j] + B[i,j]", {"A": "CSR", "B": "CSR"}),
)


@pytest.mark.rotating(2)
@pytest.mark.parametrize(("text", "formats"), PAIRS)
def test_a_cost_below_another_means_less_work(text: str, formats: dict[str, str]) -> None:
    """a ⪯ b derived => work(a) <= c * (work(b) + sunk), c the number of queries of a."""
    whole = problem(text, formats)
    read = tuple(dict.fromkeys(accesses(whole.assignment)))
    sparse = [a for a in read if not whole.type_of(a.tensor).format.is_dense]
    given = assumptions(sparse, (whole.assignment.target, *read))
    costs = Costs(given)
    recorder = Recorder(Scope.ROUND)
    rng = np.random.default_rng(3)
    every = sampled(whole, sparse, rng)
    unions = [costs.union(recorder.queries(d)) for d in every]
    pairs = [
        (a, b)
        for a, low in enumerate(unions)
        for b, high in enumerate(unions)
        if a != b and costs.below(low, high)
    ]
    assert pairs
    for _ in range(PATTERNS):
        patterns = nonempty(whole, random_patterns(whole, rng))
        sunk = sum(len(patterns.solutions(q, q.heads)) for q in given.sunk)
        done = [work(d, patterns) for d in every]
        for a, b in pairs:
            sets = len(recorder.tasks(every[a]))
            assert done[a] <= sets * (done[b] + sunk), (str(every[a]), str(every[b]), patterns)


def sampled(whole: Problem, sparse: list[Access], rng: np.random.Generator) -> list[Directed]:
    """A dozen schedules of the problem's universe."""
    every = []
    for skeleton in search(whole.assignment).least:
        for nest in nests(skeleton, "float64"):
            read = (*sparse, *nest.temporaries)
            steps = {a: frozenset(i for i in a.indices if rng.random() < 0.5) for a in read}
            every.append(Directed(nest.statement, steps))
            every.append(Directed(nest.statement, {a: frozenset(a.indices[-1:]) for a in read}))
    chosen = rng.permutation(len(every))[:12]
    return [every[place] for place in chosen]


def nonempty(whole: Problem, patterns: Patterns) -> Patterns:
    """The patterns with one entry in each tensor that had none, as costs assume."""
    orders = {a.tensor: len(a.indices) for a in accesses(whole.assignment)}
    stored = {
        name: entries or frozenset({(0,) * orders[name]})
        for name, entries in patterns.stored.items()
    }
    return Patterns(patterns.sizes, stored)
