"""Conjunctive queries as tables: how they print, which contains which, their smallest forms."""

from __future__ import annotations

import pytest

from taco_py.compiler.asymptotic import containment, homomorphism
from taco_py.compiler.asymptotic.containment import contained, smallest
from taco_py.compiler.asymptotic.domination import Costs, Incumbents, assumptions
from taco_py.compiler.asymptotic.queries import Atom, Query, query
from taco_py.language.notation.nodes import Access


def q(heads: str, *atoms: str) -> Query:
    """Make a query of atoms in words: the head "ik" with "B i k" and "C k j'1"."""
    return query(heads, (Atom(a.split()[0], tuple(a.split()[1:])) for a in atoms))


TEXTS = (
    (q("i"), "{i}"),
    (q("ij"), "{(i,j)}"),
    (q(""), "{()}"),
    (q("ikj", "B i k", "C k j"), "{(i,k,j) | B[i,k] ∧ C[k,j]}"),
    (q("ik", "B i k", "C k j'1"), "{(i,k) | B[i,k] ∧ ∃j′ C[k,j′]}"),
    (q("i", "B i k'1", "C k'1 j'1"), "{i | (∃j′,k′ B[i,k′] ∧ C[k′,j′])}"),
)


@pytest.mark.parametrize(("whole", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_a_query_prints(whole: Query, text: str) -> None:
    assert str(whole) == text


CONTAINED = (
    (q("i", "B i j'1"), q("ij", "B i j"), True),
    (q("ij", "B i j"), q("i", "B i j'1"), False),
    (q("ij", "B i j", "C i j"), q("ij", "B i j"), True),
    (q("ij", "B i j"), q("ij", "B i j", "C i j"), False),
    (q("ij", "B i j"), q("ij"), True),
    (q("ij"), q("ij", "B i j"), False),
    # Gustavson's product is never larger than inner products, which may be
    (q("ijk", "B i k", "C k j"), q("ijk", "B i k", "C k'1 j"), True),
    (q("ijk", "B i k", "C k'1 j"), q("ijk", "B i k", "C k j"), False),
    # one quantified variable may stand for two
    (q("i", "B i j'1"), q("i", "B i j'1", "B i j'2"), True),
    (q("i", "B i j'1", "B i j'2"), q("i", "B i j'1"), True),
    # a path of three edges maps to one of two and back, a loop only one way
    (q("", "E i'1 i'1"), q("", "E i'1 i'2", "E i'2 i'3"), True),
    (q("", "E i'1 i'2", "E i'2 i'3"), q("", "E i'1 i'1"), False),
    # heads range over dimensions
    (q("i"), q("j"), False),
    (q("i"), q("ij"), True),
)


@pytest.mark.parametrize(("low", "high", "expected"), CONTAINED)
def test_containment(low: Query, high: Query, expected: bool) -> None:
    assert contained(low, high, {}) is expected


def test_indices_of_one_dimension_stand_for_one_another() -> None:
    assert contained(q("i"), q("j"), {"j": "i"})
    assert contained(q("i", "B i k'1"), q("j", "B j k'1"), {"j": "i"})
    assert not contained(q("i", "B i k'1"), q("j", "B k'1 j"), {"j": "i"})


SMALLEST = (
    (q("i", "B i j'1", "B i j'2"), q("i", "B i j'1")),
    (q("ij", "B i j", "B i j'2"), q("ij", "B i j")),
    (q("ij", "B i j", "C k'3 l'9"), q("ij", "B i j")),  # C is not empty
    (q("ij", "B i j", "C i k'7"), q("ij", "B i j", "C i k'1")),
    (q("ij", "B i j", "C k'2 k'2"), q("ij", "B i j", "C k'1 k'1")),
    (q("i", "D i j'4", "B i j'2", "C j'2 k'5"), q("i", "B i j'1", "C j'1 k'1", "D i j'2")),
)


@pytest.mark.parametrize(("whole", "expected"), SMALLEST)
def test_the_smallest_form(whole: Query, expected: Query) -> None:
    assert smallest(whole, frozenset("BCD")) == smallest(expected, frozenset("BCD"))
    assert len(smallest(whole, frozenset("BCD")).atoms) == len(expected.atoms)


def test_names_of_quantified_variables_do_not_matter() -> None:
    one = q("i", "B i j'1", "C i j'2", "D j'1 k'1", "D j'2 k'2")
    two = q("i", "B i j'5", "C i j'3", "D j'5 k'2", "D j'3 k'1")
    assert smallest(one, frozenset()) == smallest(two, frozenset())


# ---------------------------------------------------------------- unions

B, C = Access("B", ("i", "k")), Access("C", ("k", "j"))


def costs() -> Costs:
    return Costs(assumptions((B, C), (Access("A", ("i", "j")), B, C)))


def test_what_is_implied_together_goes_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """∃j',k' A[i,j'] ∧ B[j',k'] ∧ C[k',l] thirty times over, and the same with j for j'."""
    tried: list[object] = []

    def counted(*args: object) -> object:
        tried.append(args)
        return mapped(*args)  # type: ignore[arg-type]

    mapped = containment.mapped
    monkeypatch.setattr(containment, "mapped", counted)
    kept = (Atom("A", ("i", "j")), Atom("B", ("j", "k'0")), Atom("C", ("k'0", "l")))
    copies = [
        atom
        for n in range(1, 31)
        for atom in (
            Atom("A", ("i", f"j'{n}")),
            Atom("B", (f"j'{n}", f"k'{n}")),
            Atom("C", (f"k'{n}", "l")),
        )
    ]
    found = smallest(query(("i", "j", "l"), (*kept, *copies)), frozenset())
    assert len(found.atoms) == 3
    assert found == smallest(query(("i", "j", "l"), kept), frozenset())
    assert 0 < len(tried) < 45  # not once for each of 90 atoms


def test_parts_and_chains_are_mapped_without_going_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten chains of edges that end in marked places, each apart from the others: what is chosen for
    the one says nothing of the other, and the ends say which edges there may be."""
    tried: list[object] = []

    def counted(*args: object) -> object:
        tried.append(args)
        return unified(*args)  # type: ignore[arg-type]

    unified = homomorphism._unified
    monkeypatch.setattr(homomorphism, "_unified", counted)
    edges = [Atom("E", (f"v'{a}", f"v'{b}")) for a in range(6) for b in range(6) if a != b]
    target = [*edges, Atom("M", ("v'5",))]
    chains = [
        atom
        for n in range(10)
        for atom in (
            *(Atom("E", (f"w'{10 * n + k}", f"w'{10 * n + k + 1}")) for k in range(4)),
            Atom("M", (f"w'{10 * n + 4}",)),
        )
    ]
    assert homomorphism.mapped(chains, target, {}) is not None
    assert len(tried) < 40 * len(chains)
    tried.clear()
    assert homomorphism.mapped([*chains, Atom("N", ("w'0",))], target, {}) is None
    away = [*target, Atom("N", ("u'1",)), Atom("E", ("u'1", "u'2"))]
    assert homomorphism.mapped([*chains, Atom("N", ("w'0",))], away, {}) is None
    assert len(tried) < 40 * len(chains)


def test_what_is_sunk_does_not_count() -> None:
    found = costs()
    assert found.union([q("i"), q("ik", "B i k"), q("k", "B i'1 k")]) == frozenset()
    assert found.union([q("ij")]) != frozenset()


def test_a_union_keeps_its_largest_queries() -> None:
    found = costs()
    whole = found.union([q("ij", "B i k'1"), q("ij"), q("ijk", "B i k", "C k j")])
    texts = [str(query) for query in found.readable(whole)]
    assert texts == ["{(i,k,j) | B[i,k] ∧ C[k,j]}", "{(i,j)}"]


def test_incumbents_are_never_below_one_another() -> None:
    found = costs()
    low = found.union([q("ijk", "B i k", "C k j")])
    high = found.union([q("ijk", "B i k")])
    other = found.union([q("ij")])
    best = Incumbents(found)
    for cost in (high, other, low, low):
        best.add(cost)
    assert best.best == [other, low]
    assert best.below(high) == low
    assert best.below(low) is None


def test_indices_of_one_mode_share_a_dimension() -> None:
    twice = (Access("A", ("i", "j")), Access("A", ("j", "k")), Access("B", ("k", "l")))
    dimensions = assumptions((), twice).dimensions
    assert len({dimensions[i] for i in "ijk"}) == 1
    assert dimensions["l"] == "l"
