"""Estimates on skewed patterns, beside exact counts and beside what independence would say."""

from __future__ import annotations

from dataclasses import replace
from math import exp, log, prod
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.arguments.operands import bind_operands
from taco_py.calls.statements.read_text import parsed
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.estimate import Statistics, result_size
from taco_py.compiler.cost.sets import One
from taco_py.compiler.cost.spread import COUNTED, MOST_JOINT_ENTRIES, Entries, Spread
from taco_py.data.storage.pack import pack_coo
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.notation.nodes import Assignment, Expr
from taco_py.planner.ir.goal import statistics

RNG = np.random.default_rng(12)
SIZE = 600


def skewed(rows: int, columns: int, entries: int, power: float, seed: int) -> Any:
    """A pattern whose rows and columns of low number have most entries: a power law."""
    rng = np.random.default_rng(seed)
    places = [
        np.minimum((size * rng.random(entries) ** power).astype(np.int64), size - 1)
        for size in (rows, columns)
    ]
    found = sp.coo_array((np.ones(entries), tuple(places)), shape=(rows, columns)).tocsr()
    found.data[:] = 1.0
    return found


def known(text: str, objects: dict[str, Any]) -> tuple[Assignment, Statistics, Statistics]:
    """The assignment, and what is known of its operands with their coordinates and without."""
    assignment = parsed(text)
    operands = {name: g.operand for name, g in bind_operands(objects).items()}
    blind = {name: replace(operand, entries=None) for name, operand in operands.items()}
    return assignment, statistics(assignment, operands), statistics(assignment, blind)


def body(assignment: Assignment) -> Expr:
    (term,) = split_terms(assignment.value)
    return term.body


def off(estimate: float, exact: float) -> float:
    """By what factor an estimate is too large or too small."""
    return exp(abs(log(max(estimate, 1e-9) / max(exact, 1e-9))))


SKEWS = (1.0, 2.0, 3.0, 4.0)
PAIRS = tuple((power, seed) for power in SKEWS for seed in range(4))


def pairs(power: float, seed: int) -> tuple[Any, Any]:
    return skewed(SIZE, SIZE, 4000, power, seed), skewed(SIZE, SIZE, 5000, power, seed + 100)


@pytest.mark.parametrize(("power", "seed"), PAIRS)
def test_products_are_counted_exactly(power: float, seed: int) -> None:
    left, right = pairs(power, seed)
    assignment, informed, _ = known("C[i,j] = A[i,k] * B[k,j]", {"A": left, "B": right})
    exact = float((left.sum(axis=0) * right.sum(axis=1)).sum())
    assert informed.iterations(body(assignment), frozenset("ijk")) == pytest.approx(exact)


def test_errors_shrink_as_patterns_get_skewed() -> None:
    """By how much estimates are off, as a mean of factors over seeds, at each skew."""
    for power in SKEWS:
        products: dict[str, list[float]] = {"informed": [], "blind": []}
        results: dict[str, list[float]] = {"informed": [], "blind": []}
        for seed in range(4):
            left, right = pairs(power, seed)
            assignment, informed, blind = known("C[i,j] = A[i,k] * B[k,j]", {"A": left, "B": right})
            flops = float((left.sum(axis=0) * right.sum(axis=1)).sum())
            stored = float((left @ right).nnz)
            for name, stats in (("informed", informed), ("blind", blind)):
                visited = stats.iterations(body(assignment), frozenset("ijk"))
                made = result_size(stats, assignment.value, ("i", "j"))
                products[name].append(log(off(visited, flops)))
                results[name].append(log(off(made, stored)))
        mean = {name: exp(float(np.mean(found))) for name, found in results.items()}
        assert exp(float(np.mean(products["informed"]))) < 1.001
        assert mean["informed"] < 1.8
        if power > 1:
            assert exp(float(np.mean(products["blind"]))) > power
            assert mean["blind"] > 1.6 * mean["informed"]


@pytest.mark.parametrize("shape", [(60, 80, 50), (60_000, 80, 50_000)])
def test_entries_that_meet_at_two_indices_together(shape: tuple[int, int, int]) -> None:
    """Entries of which each i has few k: nothing of either alone tells how often both agree."""
    rng = np.random.default_rng(3)
    i, j, s = (rng.integers(0, n, 20_000) for n in (shape[0], shape[1], 3))
    k = (i * 7919 + s) % shape[2]
    tensor = pack_coo([i, j, k], np.ones(20_000), shape, tp.CSF(3))
    stored = {(int(a), int(b), int(c)) for a, b, c in zip(i, j, k, strict=True)}
    met = np.unique([a * shape[2] + c for a, _, c in stored], return_counts=True)[1]
    exact = float((met * met).sum())
    assignment, informed, blind = known("G[j,l] = T[i,j,k] * T[i,l,k]", {"T": tp.Tensor(tensor)})
    assert off(informed.iterations(body(assignment), frozenset("ijkl")), exact) < 1.1
    assert off(blind.iterations(body(assignment), frozenset("ijkl")), exact) > 10


def test_patterns_that_never_meet_are_expected_to_meet_hardly_ever() -> None:
    rng = np.random.default_rng(4)
    even = sp.random_array((500, 500), density=0.02, format="csr", rng=rng)
    even.indices[:] = even.indices // 2 * 2
    even.sum_duplicates()
    odd = sp.csr_array((even.data, (even.indices + 1) % 500, even.indptr), shape=even.shape)
    assignment, informed, _ = known("C[i,j] = A[i,j] * B[i,j]", {"A": even, "B": odd})
    assert informed.iterations(body(assignment), frozenset("ij")) < 0.01 * even.nnz


def test_of_many_entries_nothing_is_told_of_several_indices() -> None:
    many = sp.random_array((2000, 2000), density=0.04, format="csr", rng=np.random.default_rng(5))
    other = sp.csr_array(many.T)
    bound = bind_operands({"A": many, "B": other, "C": many.copy()})
    a, b, c = (Entries(operand.data) for operand in bound.values())
    assert many.nnz > MOST_JOINT_ENTRIES
    assert a.meeting_together((0, 1), b, (0, 1)) is None
    for same in (a, c):  # all entries of the same coordinates meet, however many they are
        assert a.meeting_together((0, 1), same, (0, 1)) == 2000 * 2000 / many.nnz


TRIPLES = (
    ("s = A[i,j] * B[j,k] * C[i,k]", "ij,jk,ik->"),
    ("D[i,l] = A[i,j] * B[j,k] * C[k,l]", "ij,jk,kl->"),
    ("s = A[i,j] * B[i,j] * C[j,k]", "ij,ij,jk->"),
)


@pytest.mark.parametrize(("text", "subscripts"), TRIPLES)
@pytest.mark.parametrize("power", SKEWS)
def test_three_operands_are_nearer_than_by_independence(
    text: str, subscripts: str, power: float
) -> None:
    operands = [skewed(150, 150, 1500, power, seed) for seed in (1, 2, 3)]
    assignment, informed, blind = known(text, dict(zip("ABC", operands, strict=True)))
    indices = frozenset(subscripts) - frozenset(",->")
    exact = float(np.einsum(subscripts, *(a.toarray() for a in operands), optimize=True))
    estimates = [stats.iterations(body(assignment), indices) for stats in (informed, blind)]
    assert off(estimates[0], exact) < 5.0
    if power > 1:
        assert off(estimates[0], exact) < 0.5 * off(estimates[1], exact)


@pytest.mark.parametrize("power", SKEWS)
@pytest.mark.parametrize(("text", "subscripts"), TRIPLES)
def test_degree_constraints_are_never_exceeded(text: str, subscripts: str, power: float) -> None:
    rng = np.random.default_rng(int(power))
    everything = sorted(frozenset(subscripts) - frozenset(",->"))
    for seed in range(6):
        side = int(rng.integers(1, 9))
        operands = [skewed(side, side, int(rng.integers(1, 30)), power, seed + n) for n in range(3)]
        assignment, informed, _ = known(text, dict(zip("ABC", operands, strict=True)))
        informed = exactly(assignment, informed, operands)
        joint = informed.joint(body(assignment))
        for count in range(1, len(everything) + 1):
            bound = frozenset(rng.permutation(everything)[:count].tolist())
            exact = projected(subscripts, operands, bound)
            share = joint.most(One(bound))
            assert share * informed.volume(bound) >= exact * (1 - 1e-12)


def exactly(assignment: Assignment, stats: Statistics, operands: list[Any]) -> Statistics:
    """The coordinates of operands too small to be looked at."""
    objects = dict(zip("ABC", operands, strict=True))
    entries = {name: Entries(g.data) for name, g in bind_operands(objects).items()}
    patterns = {n: replace(p, entries=entries[n]) for n, p in stats.patterns.items()}
    size = float(operands[0].shape[0])
    return Statistics(dict.fromkeys(stats.sizes, size), patterns)


def projected(subscripts: str, operands: list[Any], bound: frozenset[str]) -> float:
    """The tuples over `bound` that each operand, restricted to them, stores somewhere."""
    size = operands[0].shape[0]
    names = sorted(bound)
    found = np.ones((size,) * len(names), bool)
    for labels, operand in zip(subscripts[:-2].split(","), operands, strict=True):
        kept = [i for i in labels if i in bound]
        dropped = tuple(place for place, i in enumerate(labels) if i not in bound)
        stored = (operand.toarray() != 0).any(axis=dropped)
        stored = stored.transpose([kept.index(i) for i in names if i in kept])
        found &= stored.reshape([size if i in kept else 1 for i in names])
    return float(found.sum())


# ---------------------------------------------------------------- one operand


def spread_of(modes: list[Any], shape: tuple[int, ...], format: str, mode: int) -> Spread:
    return Entries(packed(modes, shape, format)).spread(mode)


def packed(modes: list[Any], shape: tuple[int, ...], format: str) -> TensorData:
    from taco_py.language.formats import Format

    return pack_coo(modes, np.ones(len(modes[0])), shape, Format.parse(format))


FORMATS = ("sss", "dss", "dds", "ssd", "uqq", "sds:2,0,1", "sss:2,1,0", "dsd")


@pytest.mark.parametrize("format", FORMATS)
def test_spreads_are_those_of_the_coordinates(format: str) -> None:
    shape = (5, 7, 4)
    chosen = np.sort(RNG.choice(prod(shape), 30, replace=False))
    data = packed(list(np.unravel_index(chosen, shape)), shape, format)
    stored = {tuple(e) for e in stored_positions(data)}
    for mode in range(3):
        counts = np.bincount([e[mode] for e in stored], minlength=shape[mode])
        found = Entries(data).spread(mode)
        assert found.entries == counts.sum() == data.nnz
        assert found.distinct == (counts > 0).sum()
        assert found.most == counts.max()
        assert found.mean == pytest.approx(counts[counts > 0].mean())
        assert found.square == pytest.approx((counts**2).sum() / counts.sum())
        assert sum(count for count, _ in found.groups) == found.distinct
        assert sum(count * each for count, each in found.groups) == pytest.approx(found.entries)


def stored_positions(data: TensorData) -> list[tuple[int, ...]]:
    """The coordinates of every position of the last level, explicit zeros included."""
    found: list[tuple[int, ...]] = [()]
    parents = [0]
    for arrays, mode in zip(data.levels, data.format.mode_order, strict=True):
        size, below = data.shape[mode], []
        for parent, outer in zip(parents, found, strict=True):
            if arrays.pos is not None:
                places = range(arrays.pos[parent], arrays.pos[parent + 1])
            else:
                places = range(parent, parent + 1)
            if arrays.crd is None:
                below += [(parent * size + c, (*outer, c)) for c in range(size)]
            else:
                below += [(p, (*outer, int(arrays.crd[p]))) for p in places]
        parents, found = [p for p, _ in below], [e for _, e in below]
    order = np.argsort(data.format.mode_order)
    return [tuple(e[place] for place in order) for e in found]


def test_a_sample_of_a_large_tensor_is_near_and_its_bound_holds() -> None:
    size, entries = 20_000, COUNTED + 50_000
    columns = np.minimum((size * RNG.random(entries) ** 3).astype(np.int64), size - 1)
    rows = np.sort(RNG.integers(0, size, entries))
    data = packed([rows, columns], (size, size), "uc")
    found = Entries(data).spread(1)
    crd = data.levels[1].crd
    assert crd is not None
    counts = np.bincount(crd, minlength=size)  # what was given twice is stored once
    entries = data.nnz
    assert entries > COUNTED
    assert off(found.square, float((counts**2).sum()) / entries) < 1.1
    assert off(found.distinct, float((counts > 0).sum())) < 2.5
    assert counts.max() <= found.most
    assert sum(count * each for count, each in found.groups) == pytest.approx(entries)


def test_empty_and_vast_tensors_say_nothing_wrong() -> None:
    none = [np.zeros(0, np.int64)] * 2
    found = spread_of(none, (3, 4), "ds", 1)
    assert (found.distinct, found.most, found.square, found.groups) == (0.0, 0, 0.0, ())
    vast = Entries(packed([np.array([1, 5])] * 2, (2**40, 9), "ss"))
    assert not vast.has_counts(0)
    assert vast.has_counts(1)
