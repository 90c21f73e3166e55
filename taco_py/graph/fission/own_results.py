"""Results have memory of their own where NumPy's have.

    x.copy(), np.exp(x), np.exp(x)   →   primitives x, e, e   →   copies of x and of the second e

Primitives leave copies out and are made once where they are equal; a caller who changes a result
must change neither an argument nor another result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from taco_py.graph.graph_builder import LAYOUTS
from taco_py.graph.nodes import Fact, Graph, Node

VIEWS = frozenset((
    "transpose", "expand_dims", "squeeze", "reshape", "broadcast_to", "slice", "diagonal", "real",
    "imag",
))  # fmt: skip
"""Operators that show the memory of their operand, in NumPy."""


def with_own_results(operators: Graph, primitives: Graph) -> Graph:
    """Copy the results of primitives that share memory where those of the operators do not."""
    shown = operators.by_name
    computed = primitives.by_name
    leaves = {leaf.name for leaf in primitives.leaves}
    owners: dict[str, str] = {}
    outputs: list[str] = []
    nodes: list[Node] = []
    for place, (user, name) in enumerate(zip(operators.outputs, primitives.outputs, strict=True)):
        base, known = _base(shown, user, _is_view), _base(computed, name, _is_layout)
        owner = known if known in leaves else owners.setdefault(known, base)
        if owner != base or _is_stretched(computed, name, shown, user):
            fact = computed[name].fact if name in computed else primitives.facts[name]
            plain = Fact(fact.shape, fact.dtype)
            told = (("call", "copy"), ("place", place))
            nodes.append(Node(f"own{place}", "numpy", (name,), told, plain, _place(shown, user)))
            name = nodes[-1].name
        outputs.append(name)
    return replace(primitives, nodes=(*primitives.nodes, *nodes), outputs=tuple(outputs))


def _base(nodes: dict[str, Node], name: str, is_view: Callable[[Node], bool]) -> str:
    """The value whose memory a value is in."""
    while name in nodes and is_view(nodes[name]):
        name = nodes[name].inputs[0]
    return name


def _is_view(node: Node) -> bool:
    return node.operator in VIEWS and not node.get("filled")


def _is_layout(node: Node) -> bool:
    return node.operator in LAYOUTS or (node.operator == "numpy" and node.get("call") in VIEWS)


def _is_stretched(computed: dict[str, Node], name: str, shown: dict[str, Node], user: str) -> bool:
    """Whether elements stand for several of a result that NumPy makes one by one."""
    while name in computed and _is_layout(computed[name]):
        if "broadcast" in (computed[name].get("call") or computed[name].operator):
            break
        name = computed[name].inputs[0]
    else:
        return False
    while user in shown and _is_view(shown[user]):
        if shown[user].operator == "broadcast_to":
            return False
        user = shown[user].inputs[0]
    return True


def _place(shown: dict[str, Node], user: str) -> str:
    return shown[user].place if user in shown else ""
