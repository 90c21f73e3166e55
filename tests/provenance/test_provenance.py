"""Which loops derived variables become, and what they leave of an index."""

from __future__ import annotations

import pytest

from taco_py.compiler.schedule.parser import parse_commands
from taco_py.language.provenance.provenance import UNDERIVED, Provenance
from taco_py.language.provenance.relations import Rename


def provenance(text: str) -> Provenance:
    """The relations that `text` writes as commands."""
    return Provenance(parse_commands(text))  # type: ignore[arg-type]


TILES = "split(i,i0,i1,8), split(i1,i2,i3,3)"
FUSED = "fuse(i,j,f), split(f,f0,f1,16)"
POSITIONS = "fuse(i,j,f), pos(f,p,A), split(p,p0,p1,16)"
MIXED = "split(i,i0,i1,4), fuse(i1,j,f)"

LEAVES = (
    ("", "i", "i"),
    (TILES, "i", "i0 i2 i3"),
    (TILES, "i1", "i2 i3"),
    (TILES, "j", "j"),
    (FUSED, "i", "f0 f1"),
    (FUSED, "j", "f0 f1"),
    (POSITIONS, "j", "p0 p1"),
    (MIXED, "i", "i0 f"),
    (MIXED, "j", "f"),
)


@pytest.mark.parametrize(("text", "variable", "leaves"), LEAVES)
def test_leaves(text: str, variable: str, leaves: str) -> None:
    assert provenance(text).leaves(variable) == tuple(leaves.split())


ROOTS = ((TILES, "i3", "i"), (FUSED, "f1", "i j"), (POSITIONS, "p0", "i j"), (MIXED, "f", "i j"))


@pytest.mark.parametrize(("text", "variable", "roots"), ROOTS)
def test_roots(text: str, variable: str, roots: str) -> None:
    assert provenance(text).roots(variable) == tuple(roots.split())


def test_a_copy_derives_from_what_stays_a_loop() -> None:
    renames = (Rename("j0", "a", "w"), Rename("j1", "b", "w"), Rename("j1", "c", "v"))
    split = provenance("split(j,j0,j1,8)")
    found = split
    for rename in renames:
        found = found.with_relation(rename)
    assert found.leaves("j") == split.leaves("j") == ("j0", "j1")
    assert found.below("j1") is None
    assert found.above("b") == renames[1]
    assert found.roots("b") == found.roots("c") == ("j",)
    assert found.renamed("w") == {"j0": "a", "j1": "b"}
    assert found.renamed("v") == {"j1": "c"}
    assert not found.renamed("t")


LOOPS = (
    ("", "i j", "i j"),
    ("split(i,i0,i1,8)", "i0 i1 j", "i0 i j"),
    ("split(i,i0,i1,8)", "i0 k i1 j", "i0 k i j"),
    ("split(i,i0,i1,8)", "i1 i0", "i1 i"),  # the outer tile last: every eighth coordinate
    (TILES, "i0 i2 i3 j", "i0 i2 i j"),
    ("split(i,i0,i1,8), split(j,j0,j1,4)", "i0 j0 i1 j1", "i0 j0 i j"),
    ("fuse(i,j,f)", "f k", "i j k"),
    (FUSED, "f0 f1 k", "f0 i j k"),
    (FUSED, "f0 k f1", "f0 k i j"),
    (FUSED, "f1 f0", "f1 f0 i j"),  # neither index is met in an interval
    (POSITIONS, "p0 p1", "p0 i j"),
    (MIXED, "i0 f", "i0 i j"),
    (MIXED, "f i0", "f j i"),  # the fused loop completes j alone
    ("split(j,a,b,4), fuse(i,a,f)", "f b", "f i j"),  # and i alone: the tiles of j are left
    ("split(j,a,b,4), fuse(i,a,f)", "f k b", "f i k j"),
)


@pytest.mark.parametrize(("text", "order", "loops"), LOOPS)
def test_loops(text: str, order: str, loops: str) -> None:
    assert provenance(text).loops(order.split()) == tuple(loops.split())


COMPLETED = (
    (TILES, "i3", "i0 i2", "i"),
    (TILES, "i3", "i0", ""),
    (FUSED, "f1", "f0", "i j"),
    (MIXED, "f", "", "j"),
    (MIXED, "f", "i0", "i j"),
)


@pytest.mark.parametrize(("text", "variable", "bound", "indices"), COMPLETED)
def test_completed(text: str, variable: str, bound: str, indices: str) -> None:
    found = provenance(text).completed(variable, frozenset(bound.split()))
    assert found == tuple(indices.split())


GOES_ON = (
    (TILES, "", "i0", True),
    (TILES, "i0", "i2", True),
    (TILES, "i0 i2", "i", True),
    (TILES, "", "i2", False),
    (TILES, "i2", "i0", False),
    (FUSED, "", "f0", True),
    (FUSED, "", "f1", False),
)


@pytest.mark.parametrize(("text", "prefix", "variable", "expected"), GOES_ON)
def test_goes_on(text: str, prefix: str, variable: str, expected: bool) -> None:
    assert provenance(text).goes_on(tuple(prefix.split()), variable) is expected


NEIGHBOURS = (
    (TILES, "i", "", True),
    (TILES, "i", "i0", True),
    (TILES, "i", "i0 i2", True),
    (TILES, "i", "i2", False),  # a small tile of every large one
    (TILES, "i", "i0 i3", False),
    (TILES, "i", "i0 i2 i3", True),
    (FUSED, "i", "f0", True),
    (FUSED, "j", "f0", False),  # the end of one row and the beginning of the next
    (FUSED, "j", "f0 i", True),
    (FUSED, "i", "f1", False),
    (MIXED, "j", "f", True),
    (MIXED + ", split(f,f0,f1,3)", "j", "f0", False),  # i1 is unknown, and so are its pairs
    (MIXED + ", split(f,f0,f1,3)", "j", "f0 i", True),
    (MIXED, "i", "f", False),
    (MIXED, "i", "i0 f", True),
    ("split(i,a,b,8), fuse(a,b,c), split(c,d,e,3)", "i", "d", False),
    ("split(i,a,b,8), fuse(a,b,c)", "i", "c", True),
    (POSITIONS, "i", "p0", True),
)


@pytest.mark.parametrize(("text", "index", "bound", "expected"), NEIGHBOURS)
def test_neighbours(text: str, index: str, bound: str, expected: bool) -> None:
    found = provenance(text).are_neighbours(index, frozenset(bound.split()))
    assert found is expected


KNOWN = (
    (TILES, "i1", "i", True),  # from its index
    (TILES, "i1", "i2 i3", True),  # from its tiles
    (TILES, "i1", "i2", False),
    (FUSED, "f", "i j", True),
    (FUSED, "f", "i", False),
    (MIXED, "i1", "f", True),
    (POSITIONS, "p", "i j", False),  # whether the pair is stored is not known
)


@pytest.mark.parametrize(("text", "variable", "bound", "expected"), KNOWN)
def test_known(text: str, variable: str, bound: str, expected: bool) -> None:
    assert provenance(text).is_known(variable, frozenset(bound.split())) is expected


def test_positions() -> None:
    found = provenance(POSITIONS)
    (pos,) = (r for r in found.relations if str(r) == "pos(f,p,A)")
    assert found.position_of("i") == found.position_of("j") == pos
    assert found.positions_above("p1") == pos
    assert found.position_of("k") is None
    assert found.positions_above("f") is None


def test_nothing_is_derived_at_first() -> None:
    assert UNDERIVED.variables("ij") == ("i", "j")
    assert not UNDERIVED.is_derived("i")
    assert str(provenance(MIXED)) == "split(i,i0,i1,4), fuse(i1,j,f)"
