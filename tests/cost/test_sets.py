"""What is known of many sets of indices at a time is what is known of each alone."""

from __future__ import annotations

from itertools import compress

import numpy as np
import pytest

from taco_py.arguments.operands import bind_operands
from taco_py.calls.statements.read_text import parsed
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.sets import One, Sets, every_set, sets_near
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.formats import CSF
from taco_py.language.notation.checks import accesses
from taco_py.planner.ir.goal import statistics

EXPRESSIONS = (
    "s = A[i,j,k] * B[k,l] * C[l,i]",
    "s = (A[i,j,k] + B[k,l]) * C[l,i]",
    "s = A[i,j,k] * B[k,j] / C[l,i]",
    "s = C[l,i] / (0 * B[i,l])",
    "s = A[i,j,k] * B[k,l] * C[l,i] * D[i,l] * E[j,k]",
)


@pytest.mark.parametrize("text", EXPRESSIONS)
@pytest.mark.parametrize("power", (1.0, 3.0))
def test_many_sets_at_a_time(text: str, power: float) -> None:
    rng = np.random.default_rng(5)
    assignment = parsed(text)
    orders = {access.tensor: len(access.indices) for access in accesses(assignment)}
    objects = {}
    for name, order in orders.items():
        entries = int(rng.integers(1, 400))
        places = [(90 * rng.random(entries) ** power).astype(np.int64) for _ in range(order)]
        objects[name] = Tensor.from_coo(places, np.ones(entries), (90,) * order, format=CSF(order))
    known = statistics(assignment, {name: g.operand for name, g in bind_operands(objects).items()})
    (term,) = split_terms(assignment.value)
    indices = tuple(dict.fromkeys(i for access in accesses(term.body) for i in access.indices))
    sets = Sets(indices, every_set(len(indices)).has)
    found = np.broadcast_to(known.share(term.body, sets), sets.count)
    joint = known.joint(term.body)
    most = np.broadcast_to(joint.most(sets), sets.count)
    for place, bits in enumerate(sets.has.T):
        bound = frozenset(compress(indices, bits))
        assert found[place] == pytest.approx(known.fraction(term.body, bound))
        assert most[place] == pytest.approx(joint.most(One(bound)))
        assert 0.0 <= found[place] <= 1.0


def test_an_operand_of_less_than_one_expected_entry_says_nothing_before_its_loops() -> None:
    assignment = parsed("y[i] = x[i] * B[i,j]")
    bound = bind_operands({"x": np.ones(9), "B": np.ones((9, 9))})
    operands = {n: g.operand for n, g in bound.items()}
    known = statistics(assignment, operands)
    rare = known.patterns["B"].__class__(0.25, CSF(2))
    known = known.__class__(known.sizes, {**known.patterns, "B": rare})
    (access,) = (a for a in accesses(assignment) if a.tensor == "B")
    sets = Sets(("i", "j"), every_set(2).has)
    volumes = np.array([1.0, known.sizes["i"], known.sizes["j"], known.volume("ij")])
    expected = np.where(volumes == 1.0, 1.0, 0.25 / volumes)
    assert np.allclose(known.access_share(access, sets), expected)


@pytest.mark.parametrize(("count", "width"), ((0, 2), (1, 3), (4, 2), (7, 3), (15, 6)))
def test_sets_near_an_order_are_few_and_lead_to_all(count: int, width: int) -> None:
    near = sets_near(count, width)
    assert len(near.sets) <= max(1, count - width + 1) << width
    assert all((1 << begin) - 1 in near.place for begin in range(count + 1))
    for place, number in enumerate(near.sets[:-1]):
        inner = [near.inside[k, place] for k in range(count) if not near.ends[k, place]]
        assert inner
        assert all(near.sets[k].bit_count() == number.bit_count() + 1 for k in inner)
        assert all(near.sets[k] & number == number for k in inner)
    assert near.full == (len(near.sets) == 2**count)
