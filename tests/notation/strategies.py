"""Random index notation: the trees that the parser can make, and texts made of its tokens."""

from __future__ import annotations

from hypothesis import strategies as st

from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, DIV, MOST_FACTORS, MUL, NEG, SUB, power
from taco_py.language.notation.parser import factors_of_powers

INDICES = ("i", "j", "k")
# `sum` is a legal name of a tensor, and the one that the grammar has to tell from a keyword.
TENSORS = ("A", "b", "x_1", "sum")

names = st.sampled_from(INDICES)
accesses = st.builds(Access, st.sampled_from(TENSORS), st.lists(names, max_size=3).map(tuple))
numbers = st.one_of(
    st.integers(0, 2**64 - 1),
    st.floats(0, allow_nan=False, allow_infinity=False),
    st.floats(0, allow_nan=False, allow_infinity=False).map(lambda x: complex(0.0, x)),
)
literals = st.builds(Literal, numbers)


def _compound(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    binary = st.builds(
        lambda op, left, right: Call(op, (left, right)),
        st.sampled_from((ADD, SUB, MUL, DIV)),
        parts,
        parts,
    )
    negation = st.builds(lambda part: Call(NEG, (part,)), parts)
    sums = st.builds(lambda index, body: Reduce(ADD, index, body), names, parts)
    powers = st.builds(lambda part, n: Call(power(n), (part,)), parts, st.integers(0, 4))
    return st.one_of(binary, binary, negation, sums, powers)


expressions = st.recursive(accesses | literals, _compound, max_leaves=12).filter(
    lambda expr: factors_of_powers(expr) <= MOST_FACTORS
)
assignments = st.builds(Assignment, accesses, expressions, st.sampled_from((None, ADD)))

_TOKENS = (
    "y", "A", "i", "j", "sum", "[", "]", "(", ")", ",", "=", "+=", "+", "-", "*", "/", "2", ".5",
    "1e3", "3j", " ", "\n", "==", "-=", "**", "é", "@",
)  # fmt: skip
token_soup = st.lists(st.sampled_from(_TOKENS), max_size=30).map("".join)
almost_assignments = token_soup.map("y[i] = ".__add__)
