"""The frontier against the published one, and its parts against looking at everything.

Ahrens, Kjolstad and Amarasinghe 2022, figure 7: the sizes of universe and frontier. Differences of
the enumeration, none of which shows in these four: one factor may be summed by itself; a temporary
is not kept unsummed where it could be summed early; no loop repeats what does not depend on it.
"""

from __future__ import annotations

from itertools import product

import pytest

from taco_py.compiler.asymptotic.domination import Costs, assumptions
from taco_py.compiler.asymptotic.frontier_search import Frontier, frontier, search
from taco_py.compiler.asymptotic.nests import nests
from taco_py.compiler.asymptotic.protocols import Directed
from taco_py.compiler.asymptotic.tasks import Recorder, Scope
from taco_py.language.notation.checks import accesses
from tests.problems import assignment, formats

KERNELS = {
    "SpMV": ("a[i] = B[i,j] * c[j]", {"B": "CSR"}),
    "SpMV2": ("a[i] = B[i,j] * C[j,k] * d[k]", {"B": "CSR", "C": "CSR"}),
    "SpGEMM": ("A[i,j] = B[i,k] * C[j,k]", {"B": "CSR", "C": "CSR"}),
    "SpGEMM2": ("A[i,j] = B[i,k] * C[k,l] * D[j,l]", dict.fromkeys("BCD", "CSR")),
    "SpGEMMH": ("A[i,j] = B[i,k] * C[j,k] * D[j,k]", dict.fromkeys("BCD", "CSR")),
    "SDDMM": ("A[i,j] = B[i,j] * C[i,k] * D[j,k]", {"B": "CSR"}),
    "add": ("A[i,j] = B[i,j] + C[i,j]", {"B": "CSR", "C": "CSR"}),
    "residual": ("r[i] = b[i] - A[i,j] * x[j]", {"A": "CSR"}),
    "union": ("A[i,j] = B[i,j] * (C[i,j] + D[i,j])", dict.fromkeys("BCD", "CSR")),
}


def found(name: str, scope: Scope = Scope.ALL) -> Frontier:
    text, names = KERNELS[name]
    return frontier(assignment(text), formats(text, names), scope)


PUBLISHED = (("SpMV", 8, 4), ("SpMV2", 144, 28), ("SpGEMM", 96, 12), ("SpGEMM2", 20736, 292))


@pytest.mark.parametrize(("name", "universe", "size"), PUBLISHED)
def test_sizes_are_the_published_ones(name: str, universe: int, size: int) -> None:
    whole = found(name)
    assert (whole.universe, len(whole)) == (universe, size)


MINIMAL = (
    ("SpMV", {"reading the operands"}),
    ("SpMV2", {"reading the operands"}),
    ("SpGEMM", {"Σ over {(i,k,j) | B[i,k] ∧ C[j,k]}"}),
    (
        "SpGEMM2",  # (B·C)·D and B·(C·D), either with products left out that meet no third factor
        {
            "Σ over {(i,k,j) | B[i,k] ∧ (∃l′ C[k,l′] ∧ D[j,l′])} ∪ {(k,l,j) | C[k,l] ∧ D[j,l]}",
            "Σ over {(i,k,j) | B[i,k] ∧ (∃i′,k′,l′′ B[i′,k′] ∧ C[k′,l′′] ∧ D[j,l′′]) ∧ "
            "∃l′ C[k,l′]} ∪ {(k,l,j) | C[k,l] ∧ D[j,l] ∧ ∃i′ B[i′,k]}",
            "Σ over {(i,k,l) | B[i,k] ∧ C[k,l]} ∪ {(j,l,i) | D[j,l] ∧ (∃k′ B[i,k′] ∧ C[k′,l])}",
            "Σ over {(i,k,l) | B[i,k] ∧ C[k,l] ∧ ∃j′ D[j′,l]} ∪ {(j,l,i) | D[j,l] ∧ "
            "(∃j′,k′,l′ B[i,k′] ∧ C[k′,l′] ∧ D[j′,l′]) ∧ ∃k′′ C[k′′,l]}",
        },
    ),
    ("SpGEMMH", {"Σ over {(i,k,j) | B[i,k] ∧ C[j,k] ∧ D[j,k]}"}),
    ("SDDMM", {"Σ over {(i,j,k) | B[i,j]}"}),
    ("add", {"reading the operands"}),
)


@pytest.mark.parametrize(("name", "expected"), MINIMAL)
def test_minimal_costs(name: str, expected: set[str]) -> None:
    assert set(map(str, found(name).costs)) == expected


def test_a_workspace_known_round_by_round_leaves_fewer_schedules() -> None:
    """That a schedule skips empty slices shows only when entries of one round are told apart."""
    exact = found("SpGEMM2", Scope.ROUND)
    assert (exact.universe, len(exact), len(exact.costs)) == (20736, 8, 2)


SMALL = ("SpMV", "SpMV2", "SpGEMM", "SDDMM", "add", "residual", "union")


@pytest.mark.rotating(2)
@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("scope", Scope)
def test_pruning_early_loses_nothing(name: str, scope: Scope) -> None:
    text, names = KERNELS[name]
    whole = assignment(text)
    read = tuple(dict.fromkeys(accesses(whole)))
    sparse = tuple(a for a in read if not formats(text, names)[a.tensor].is_dense)
    costs = Costs(assumptions(sparse, (whole.target, *read)))
    recorder = Recorder(scope)
    every = []
    for skeleton in search(whole).least:
        for nest in nests(skeleton, "float64"):
            open_ = (*sparse, *nest.temporaries)
            for choice in product(*(subsets(a.indices) for a in open_)):
                directed = Directed(nest.statement, dict(zip(open_, choice, strict=True)))
                every.append((directed, costs.union(recorder.queries(directed))))
    unions = dict.fromkeys(union for _, union in every)
    best = {u for u in unions if not any(costs.strictly_below(low, u) for low in unions)}
    expected = {(d.statement, str(d)) for d, union in every if union in best}
    mine = found(name, scope)
    assert mine.universe == len(every)
    assert {(c.statement, c.protocols) for c in mine} == expected


def subsets(indices: tuple[str, ...]) -> list[frozenset[str]]:
    flags = product((False, True), repeat=len(indices))
    return [frozenset(i for i, on in zip(indices, row, strict=True) if on) for row in flags]


def test_explanation() -> None:
    text = found("SpGEMM").explain()
    for line in (
        "schedules of A[i,j] = sum(k, B[i,k] * C[j,k])",
        "candidates        6 loop nests of 1 groupings",
        "least depth       6 loop nests of depth 3",
        "with protocols    96",
        "after domination  12, of 1 different costs",
        "12 schedules: Σ over {(i,k,j) | B[i,k] ∧ C[j,k]}",
        "schedules pruned: at least Σ over {(i,k,j) | B[i,k]}",
        "    by Σ over {(i,k,j) | B[i,k] ∧ C[j,k]}",
    ):
        assert line in text


def test_a_candidate_prints() -> None:
    first = found("SpGEMM")[0]
    assert str(first.cost) == "Σ over {(i,k,j) | B[i,k] ∧ C[j,k]}"
    assert "A[i: append, j: insert]" in {c.protocols.rpartition("; ")[2] for c in found("SpGEMM")}
