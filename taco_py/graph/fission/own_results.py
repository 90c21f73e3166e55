"""Results have memory of their own where NumPy's have.

    x.copy(), np.exp(x), np.exp(x)   →   primitives x, e, e   →   copies of x and of the second e

Primitives leave copies out and are made once where they are equal; a caller who changes a result
must change neither an argument nor another result.
"""

from __future__ import annotations

from dataclasses import replace

from taco_py.graph.nodes import Fact, Graph, Node
from taco_py.graph.view_operators import is_view


def with_own_results(operators: Graph, primitives: Graph) -> Graph:
    """Copy the results of primitives that share memory where those of the operators do not."""
    shown = operators.by_name
    computed = primitives.by_name
    leaves = {leaf.name for leaf in primitives.leaves}
    owners: dict[str, str] = {}
    outputs: list[str] = []
    nodes: list[Node] = []
    for place, (user, name) in enumerate(zip(operators.outputs, primitives.outputs, strict=True)):
        base, known = shown_value(shown, user), shown_value(computed, name)
        owner = known if known in leaves else owners.setdefault(known, base)
        if owner != base or _is_stretched(computed, name, shown, user):
            fact = computed[name].fact if name in computed else primitives.facts[name]
            nodes.append(own_copy(name, fact, place, _place(shown, user)))
            name = nodes[-1].name
        outputs.append(name)
    return replace(primitives, nodes=(*primitives.nodes, *nodes), outputs=tuple(outputs))


def own_copy(name: str, fact: Fact, place: int, line: str = "") -> Node:
    """Copy a value, which becomes the result of a place."""
    attributes = (("call", "copy"), ("place", place))
    plain = Fact(fact.shape, fact.dtype)
    return Node(f"own{place}", "numpy", (name,), attributes, plain, line)


def shown_value(nodes: dict[str, Node], name: str) -> str:
    """Return the value whose memory a value is in."""
    while name in nodes and _shows(nodes[name]):
        name = nodes[name].inputs[0]
    return name


def _shows(node: Node) -> bool:
    """Tell whether a node is in the memory of its operand: an array that is filled has its own."""
    return is_view(node) and not node.get("filled")


def _is_stretched(computed: dict[str, Node], name: str, shown: dict[str, Node], user: str) -> bool:
    """Tell whether elements stand for several of a result that NumPy makes one by one."""
    while name in computed and is_view(computed[name]):
        if "broadcast" in (computed[name].get("call") or computed[name].operator):
            break
        name = computed[name].inputs[0]
    else:
        return False
    while user in shown and _shows(shown[user]):
        if shown[user].operator == "broadcast_to":
            return False
        user = shown[user].inputs[0]
    return True


def _place(shown: dict[str, Node], user: str) -> str:
    return shown[user].place if user in shown else ""
