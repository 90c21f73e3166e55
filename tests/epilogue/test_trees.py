"""From graphs of values to trees: lowest common ancestors, and what trees print as."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taco_py.compiler.epilogue.build_tree import build_tree, lowest_common_ancestors
from taco_py.compiler.epilogue.tree_text import tree_lines
from taco_py.compiler.epilogue.value_graph import Output, Product, outputs_of
from taco_py.compiler.epilogue.visitors import Topological
from taco_py.language.notation.nodes import Expr
from taco_py.language.notation.tree import exchange, walk
from taco_py.planner.ir.parser import parse_typed

SUM = parse_typed("P[i,j] = sum(k, X[i,k] * W[k,j])").value
PRODUCT = Product(SUM, "i", "j")


def outputs(*texts: str) -> tuple[Output, ...]:
    """What texts make of the product P and of each other."""
    values: dict[str, Expr] = {"P": SUM}
    found = {}
    for text in texts:
        made = parse_typed(text)
        value = made.value
        while True:
            read = (e for e, _ in walk(value) if getattr(e, "tensor", "") in values)
            access = next(read, None)
            if access is None:
                break
            value = exchange(value, access, values[access.tensor])
        values[made.target.tensor] = value
        if not made.target.tensor.startswith("v"):
            found[made.target] = value
    return outputs_of(PRODUCT, found)


TREES = (
    # (texts, lines)
    (("H[i,j] = P[i,j] + b[j]",), ("accumulator → + b[j] → store H[i,j]",)),
    (("H[i,j] = max(P[i,j] + b[j], 0)", "s[j] = sum(i, H[i,j])"),
     ("accumulator → + b[j] → max(·, 0) → store H[i,j] → sum of rows s[j]",)),
    (("H[i,j] = P[i,j] * d[i]", "t[i] = sum(j, H[i,j])"),
     ("accumulator → * d[i] → store H[i,j] → sum of columns t[i]",)),
    (("u = sum(i, sum(j, P[i,j] * P[i,j]))",), ("accumulator → · * · → sum u",)),
    (("vz[i,j] = P[i,j] + b[j]", "H[i,j] = tanh(vz[i,j]) * vz[i,j] + R[i,j]"),
     ("(v0 = accumulator → + b[j]; v0 → tanh(·) → * v0) → + R[i,j] → store H[i,j]",)),
    (("Z[i,j] = P[i,j] + b[j]", "H[i,j] = max(Z[i,j], 0)", "G[i,j] = tanh(Z[i,j])"),
     ("v0 = accumulator → + b[j] → store Z[i,j]", "v0 → max(·, 0) → store H[i,j]",
      "v0 → tanh(·) → store G[i,j]")),
    (("P2[i,j] = P[i,j]", "s[j] = sum(i, P[i,j])"),
     ("accumulator → store P2[i,j] → sum of rows s[j]",)),
)  # fmt: skip


@pytest.mark.parametrize(("texts", "lines"), TREES, ids=range(len(TREES)))
def test_trees_of_texts(texts: tuple[str, ...], lines: tuple[str, ...]) -> None:
    assert tree_lines(build_tree(PRODUCT, outputs(*texts))) == lines


def test_what_is_read_twice_is_one_step_below_its_lowest_common_ancestor() -> None:
    tree = build_tree(
        PRODUCT,
        outputs("vz[i,j] = P[i,j] + b[j]", "vt[i,j] = tanh(vz[i,j])",
                "H[i,j] = vt[i,j] * vz[i,j] + (1 - vt[i,j] * vt[i,j])"),
    )  # fmt: skip
    found = [node for node in _below(tree) if isinstance(node, Topological)]
    assert [len(node.steps) for node in found] == [3]


def _below(node: object) -> list[object]:
    below = [getattr(node, "value", None), *getattr(node, "args", ()), *getattr(node, "steps", ())]
    return [node, *(each for child in below if child is not None for each in _below(child))]


def test_values_that_are_not_of_elements_are_refused() -> None:
    made = Output(parse_typed("H[i,j] = 0").target, parse_typed("x = sum(l, Y[l])").value)
    with pytest.raises(ValueError, match="values of elements"):
        build_tree(PRODUCT, (made,))


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    """For each node the earlier ones that it reads; all are read by some later one but the last."""
    count = draw(st.integers(2, 8))
    reads = [draw(st.lists(st.integers(0, n - 1), max_size=3)) if n else [] for n in range(count)]
    unread = set(range(count - 1)) - {each for read in reads for each in read}
    reads[-1] += sorted(unread)
    return reads


@given(graphs())
def test_lowest_common_ancestors_are_on_every_way(reads: list[list[int]]) -> None:
    found = lowest_common_ancestors(reads)
    last = len(reads) - 1
    for node in range(last):
        ways = _ways(reads, node, last)
        common = set.intersection(*map(set, ways)) - {node}
        assert found[node] == min(common)


def _ways(reads: list[list[int]], node: int, last: int) -> list[list[int]]:
    if node == last:
        return [[node]]
    readers = [each for each, read in enumerate(reads) if node in read]
    return [[node, *way] for reader in readers for way in _ways(reads, reader, last)]
