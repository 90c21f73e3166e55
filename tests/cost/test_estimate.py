"""Expected iteration counts under uniform, independent patterns."""

from __future__ import annotations

import pytest

from taco_py.compiler.asymptotic.queries import Atom, query
from taco_py.compiler.asymptotic.query_size import query_size
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.estimate import Pattern, Statistics
from taco_py.compiler.cost.sets import One
from taco_py.language.formats import CSF, CSR, DCSR, Format, dense
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Expr
from tests.problems import assignment

SIZES = {"i": 1000.0, "j": 1000.0, "k": 100.0, "r": 32.0}
STATISTICS = Statistics(
    SIZES,
    {
        "A": Pattern(5000.0, CSR),
        "B": Pattern(2000.0, CSR),
        "H": Pattern(500.0, DCSR),
        "T": Pattern(4000.0, CSF(3)),
        "D": Pattern(3200.0, Format.parse("sd")),
        "E": Pattern(64_000.0, Format.parse("dsd")),
        "L": Pattern(58.0, Format.parse("dds")),
        "x": Pattern(1000.0, dense(1)),
        "U": Pattern(32000.0, dense(2)),
    },
)


def body(text: str) -> Expr:
    (term,) = split_terms(assignment(text).value)
    return term.body


COUNTS = (
    # (expression, loops bound, expected rounds of the innermost)
    ("y[i] = A[i,j] * x[j]", "i", 1000.0),  # the rows of CSR are all there
    ("y[i] = A[i,j] * x[j]", "j", 1000.0),
    ("y[i] = A[i,j] * x[j]", "ij", 5000.0),
    ("y[i] = H[i,j] * x[j]", "i", 500.0),  # at most one row an entry
    ("y[i] = H[i,j] * x[j]", "ij", 500.0),
    ("C[i,j] = A[i,j] * B[i,j]", "ij", 1e6 * 0.005 * 0.002),
    ("C[i,j] = (A[i,j] + B[i,j]) * x[j]", "ij", 7000.0),
    ("C[i,r] = A[i,j] * U[j,r]", "ijr", 5000.0 * 32),
    ("s = T[i,j,k]", "i", 1000.0),
    ("s = T[i,j,k]", "ijk", 4000.0),
    # a block of D has all its 32 columns, and there are 100 of them
    ("y[i] = D[i,r] * x[r]", "i", 100.0),
    ("y[i] = D[i,r] * x[r]", "r", 32.0),
    ("y[i] = D[i,r] * x[r]", "ir", 3200.0),
    ("y[i] = E[i,j,r] * x[r]", "i", 1000.0),
    ("y[i] = E[i,j,r] * x[r]", "ij", 2000.0),
    ("y[i] = E[i,j,r] * x[r]", "ir", 32_000.0),
    ("y[i] = E[i,j,r] * x[r]", "ijr", 64_000.0),
    # loops over dense levels above a list visit all of their coordinates
    ("y[i] = L[i,j,k]", "ij", 1e6),
    ("y[i] = L[i,j,k]", "ijk", 58.0),
    ("y[i] = 0 * x[i]", "i", 1000.0),  # NaN where x is infinite
    ("y[i] = 2 * x[i]", "i", 1000.0),
    # an inner sum visits what its body does
    ("C[i,j] = A[i,j] * sum(k, B[i,k])", "ijk", 1e8 * 0.005 * 0.02),
    ("s = 1", "", 1.0),
)


@pytest.mark.parametrize(("text", "loops", "expected"), COUNTS)
def test_iterations(text: str, loops: str, expected: float) -> None:
    found = STATISTICS.iterations(body(text), frozenset(loops))
    assert found == pytest.approx(expected)


def test_more_loops_never_visit_a_larger_fraction() -> None:
    value = body("y[i] = A[i,j] * x[j]")
    fractions = [STATISTICS.fraction(value, frozenset(loops)) for loops in ("", "i", "ij")]
    assert fractions == sorted(fractions, reverse=True)


QUERIES = (
    (("i", "j"), (("A", "i j"),), 5000.0),
    # every row of B is expected to have 20 entries, so that asking for one changes nothing
    (("i", "k"), (("A", "i k"), ("B", "k j'1")), 1000 * 100 * 0.05),
    # half of the rows of H are expected to store something
    (("i",), (("H", "i j'1"),), 500.0),
    (("i", "r"), (), 32000.0),
)


@pytest.mark.parametrize(("heads", "atoms", "expected"), QUERIES)
def test_expected_sizes_of_queries(
    heads: tuple[str, ...], atoms: tuple[tuple[str, str], ...], expected: float
) -> None:
    whole = query(heads, (Atom(tensor, tuple(names.split())) for tensor, names in atoms))
    assert query_size(STATISTICS, whole) == pytest.approx(expected)


def test_empty_rows_are_visited_but_not_reached() -> None:
    few = Statistics(SIZES, {"A": Pattern(40.0, CSR), "H": Pattern(40.0, DCSR)})
    (rows,) = (a for a in accesses(body("y[i] = A[i,j]")))
    (lists,) = (a for a in accesses(body("y[i] = H[i,j]")))
    outer = One(frozenset("i"))
    assert few.access_share(rows, outer) == 1.0
    assert few.access_share(rows, outer, visited=False) == pytest.approx(0.04)
    assert few.access_share(lists, outer) == pytest.approx(0.04)
    assert few.stores_few_rows(rows) and not few.stores_few_rows(lists)
    assert not STATISTICS.stores_few_rows(rows)
