"""Merge lattices of expressions: which loops one index becomes."""

from __future__ import annotations

import pytest

from taco_py.compiler.iteration.graph import sparse_levels
from taco_py.compiler.iteration.lattice import Lattice, build_lattice
from taco_py.compiler.iteration.region import Regions
from taco_py.language.notation.checks import accesses
from tests.problems import problem


def lattice(text: str, sparse: str) -> Lattice:
    """Of `y[i] = text`, the tensors in `sparse` being sparse vectors."""
    whole = problem(f"y[i] = {text}", dict.fromkeys(sparse, "s"), "d")
    levels = {a: sparse_levels(whole, a) for a in accesses(whole.assignment)}
    region = Regions(levels, frozenset()).expression(whole.assignment.value, "i")
    return build_lattice(region)


TABLE = (
    ("a[i]", "a", "{a1}"),
    ("a[i]", "", "{all}"),
    ("a[i] * b[i]", "ab", "{a1,b1}"),
    ("a[i] * b[i]", "a", "{a1}"),
    ("a[i] + b[i]", "ab", "{a1,b1} {a1} {b1}"),
    ("a[i] - b[i]", "ab", "{a1,b1} {a1} {b1}"),
    ("a[i] + b[i]", "a", "{a1,all} {all}"),
    ("a[i] + b[i]", "", "{all}"),
    ("a[i] + 1", "a", "{a1,all} {all}"),
    ("2 * a[i]", "a", "{a1}"),
    ("0 * a[i]", "a", "{a1}"),
    ("a[i] + a[i]", "a", "{a1}"),
    ("a[i] * (b[i] + c[i])", "abc", "{a1,b1,c1} {a1,b1} {a1,c1}"),
    ("a[i] * (b[i] + c[i])", "ab", "{a1,b1} {a1}"),
    ("a[i] * b[i] + c[i]", "abc", "{a1,b1,c1} {a1,b1} {c1}"),
    (
        "(a[i] + b[i]) * (c[i] + d[i])",
        "abcd",
        "{a1,b1,c1,d1} {a1,b1,c1} {a1,b1,d1} {a1,c1,d1} {b1,c1,d1} {a1,c1} {a1,d1} {b1,c1} {b1,d1}",
    ),
    ("a[i] + b[i] + c[i]", "abc", "{a1,b1,c1} {a1,c1} {b1,c1} {a1,b1} {a1} {b1} {c1}"),
    ("a[i] / d[i]", "a", "{a1}"),
    ("a[i] / d[i]", "ad", "{a1,d1} {a1}"),
    ("a[i] / d[i]", "d", "{d1,all} {all}"),
    ("-a[i]", "a", "{a1}"),
)


@pytest.mark.parametrize(("text", "sparse", "expected"), TABLE)
def test_points(text: str, sparse: str, expected: str) -> None:
    assert str(lattice(text, sparse)) == expected


@pytest.mark.parametrize(("text", "sparse", "_"), TABLE)
def test_points_come_before_those_below_them(text: str, sparse: str, _: str) -> None:
    found = lattice(text, sparse)
    for place, point in enumerate(found.points):
        assert not any(point <= before and point != before for before in found.points[place + 1 :])
        assert set(point.iterators) <= set(found.iterators)
        assert found.below(point)[0] == point


def test_cases_inside_a_loop_are_the_points_below_it() -> None:
    found = lattice("a[i] * b[i] + c[i]", "abc")
    below = {str(p): [str(q) for q in found.below(p)] for p in found.points}
    assert below == {
        "{a1,b1,c1}": ["{a1,b1,c1}", "{a1,b1}", "{c1}"],
        "{a1,b1}": ["{a1,b1}"],
        "{c1}": ["{c1}"],
    }


def test_a_dense_operand_makes_the_loop_full() -> None:
    assert lattice("a[i] + b[i]", "a").full
    assert not lattice("a[i] * b[i]", "a").full


def test_points_are_one_for_each_set_of_iterators_however_long_the_text() -> None:
    text = " + ".join(["a[i] * (b[i] + 1)", *["(a[i] + c) * (a[i] * b[i] - 2)"] * 20])
    assert str(lattice(text, "ab")) == "{a1,b1,all} {a1,all} {all}"
