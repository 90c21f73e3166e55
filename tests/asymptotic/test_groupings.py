"""Groupings and loop nests as tables."""

from __future__ import annotations

from itertools import islice

import pytest

from taco_py.compiler.asymptotic.frontier_search import search
from taco_py.compiler.asymptotic.groupings import Group, groupings
from taco_py.compiler.asymptotic.nests import nests
from taco_py.compiler.concrete.nodes import Statement, Where
from taco_py.compiler.concrete.printer import to_text
from taco_py.language.notation.printer import to_text as expression_text
from tests.problems import assignment

NAMES = tuple("uvwxyz")


def lines(group: Group) -> str:
    """`A = B * u; u = C * D`, with the sums in brackets."""
    sums = "".join(f"sum({i}) " for i in group.reduced)
    own = f"{expression_text(group.target)} = {sums}{expression_text(group.body)}"
    return "; ".join([own, *map(lines, group.parts)])


GROUPINGS = (
    ("a[i] = B[i,j] * c[j]", ["a[i] = sum(j) B[i,j] * c[j]"]),
    (
        "a[i] = B[i,j] * C[j,k] * d[k]",
        [
            "a[i] = sum(k) sum(j) B[i,j] * C[j,k] * d[k]",
            "a[i] = sum(j) B[i,j] * u[j]; u[j] = sum(k) C[j,k] * d[k]",
            "a[i] = sum(k) u[i,k] * d[k]; u[i,k] = sum(j) B[i,j] * C[j,k]",
            "a[i] = sum(k) sum(j) u[i,j,k] * C[j,k]; u[i,j,k] = B[i,j] * d[k]",
        ],
    ),
    # a factor of its own index may be summed before it is multiplied
    (
        "a[i] = B[i,j] * C[i,k]",
        [
            "a[i] = sum(j) sum(k) B[i,j] * C[i,k]",
            "a[i] = sum(j) B[i,j] * u[i]; u[i] = sum(k) C[i,k]",
            "a[i] = sum(k) u[i] * C[i,k]; u[i] = sum(j) B[i,j]",
            "a[i] = u[i] * v[i]; u[i] = sum(j) B[i,j]; v[i] = sum(k) C[i,k]",
        ],
    ),
    # a sum inside an expression is always made first
    ("r[i] = b[i] - A[i,j] * x[j]", ["r[i] = b[i] - u[i]; u[i] = sum(j) A[i,j] * x[j]"]),
    # what a quotient is linear in is taken apart in pairs, or summed before it is divided
    (
        "y[i] = A[i,j] * B[j,k] * x[k] / z[i]",
        [
            "y[i] = sum(k) sum(j) A[i,j] * B[j,k] * x[k] / z[i]",
            "y[i] = sum(j) A[i,j] * u[j] / z[i]; u[j] = sum(k) B[j,k] * x[k]",
            "y[i] = sum(k) sum(j) u[i,j,k] * B[j,k] / z[i]; u[i,j,k] = A[i,j] * x[k]",
            "y[i] = sum(k) u[i,k] * x[k] / z[i]; u[i,k] = sum(j) A[i,j] * B[j,k]",
            "y[i] = u[i] / z[i]; u[i] = sum(j) sum(k) A[i,j] * B[j,k] * x[k]",
            "y[i] = v[i] / z[i]; v[i] = sum(j) A[i,j] * u[j]; u[j] = sum(k) B[j,k] * x[k]",
            "y[i] = v[i] / z[i]; v[i] = sum(j) sum(k) u[i,j,k] * B[j,k]; u[i,j,k] = A[i,j] * x[k]",
            "y[i] = v[i] / z[i]; v[i] = sum(k) u[i,k] * x[k]; u[i,k] = sum(j) A[i,j] * B[j,k]",
        ],
    ),
    # products are distributed over sums, or not
    (
        "y[i] = a[i] * (b[i] + c[i])",
        [
            "y[i] = a[i] * (b[i] + c[i])",
            "y[i] = a[i] * u[i]; u[i] = b[i] + c[i]",
            "y[i] = a[i] * b[i] + a[i] * c[i]",
            "y[i] = a[i] * b[i] + u[i]; u[i] = a[i] * c[i]",
            "y[i] = u[i] + a[i] * c[i]; u[i] = a[i] * b[i]",
            "y[i] = u[i] + v[i]; u[i] = a[i] * b[i]; v[i] = a[i] * c[i]",
        ],
    ),
)


@pytest.mark.parametrize(("text", "expected"), GROUPINGS)
def test_groupings(text: str, expected: list[str]) -> None:
    assert sorted(map(lines, groupings(assignment(text), NAMES))) == sorted(expected)


COUNTS = (
    # text, loop nests of any depth, the least depth, nests of it
    ("a[i] = B[i,j] * c[j]", 2, 2, 2),
    ("a[i] = B[i,j] * C[j,k] * d[k]", 89, 2, 5),
    ("A[i,j] = B[i,k] * C[j,k]", 6, 3, 6),
    ("A[i,j] = B[i,k] * C[k,l] * D[j,l]", 932, 3, 92),
    ("A[i,j] = B[i,j] + C[i,j]", 2, 2, 2),
    ("a[i] = B[i,j] * C[j,k] * D[k,l] * e[l]", 19362, 2, 10),
)


@pytest.mark.parametrize(("text", "programs", "depth", "kept"), COUNTS)
def test_nests_of_least_depth(text: str, programs: int, depth: int, kept: int) -> None:
    found = search(assignment(text))
    assert (found.programs, found.depth) == (programs, depth)
    assert sum(skeleton.count for skeleton in found.least) == kept


def statements(text: str) -> list[Statement]:
    return [n.statement for s in search(assignment(text)).least for n in nests(s, "float64")]


def test_every_nest_is_another_one() -> None:
    for text, _, _, kept in COUNTS:
        found = statements(text)
        assert len(set(found)) == len(found) == kept


def test_temporaries_share_loops() -> None:
    texts = [to_text(s) for s in statements("a[i] = B[i,j] * C[j,k] * d[k]")]
    assert (
        """\
forall j
  forall i
    a[i] += B[i,j] * w
  where w[]: scalar workspace of float64
    forall k
      w += C[j,k] * d[k]"""
        in texts
    )


def test_loop_orders_are_made_as_they_are_asked_for() -> None:
    """There are 12! of the first grouping."""
    ends = zip("abcdefghijk", "bcdefghijkl", strict=True)
    chain = " * ".join(f"{one.upper()}[{one},{other}]" for one, other in ends)
    found = search(assignment(f"Z[a,l] = {chain}"), end=0.0)
    orders = [to_text(n.statement) for n in islice(nests(found.least[0], "float64"), 3)]
    assert len(set(orders)) == 3
    assert not found.complete


def test_nests_share_their_parts() -> None:
    """Tasks are recorded once for the same object (`Recorder`)."""
    (skeleton, *_) = search(assignment("A[i,j] = B[i,k] * C[k,l] * D[j,l]")).least
    made = [n.statement for n in nests(skeleton, "float64")]
    parts = [part for s in made if isinstance(s, Where) for part in (s.consumer, s.producer)]
    assert (len(made), len(parts), len({id(part) for part in parts})) == (36, 72, 12)
