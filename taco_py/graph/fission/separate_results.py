"""Results have memory of their own where NumPy's have.

    x.copy(), np.exp(x), np.exp(x)   →   primitives x, e, e   →   copies of x and of the second e

Primitives leave copies out and are made once where they are equal; a caller who changes a result
must change neither an argument nor another result.
"""

from __future__ import annotations

from dataclasses import replace

from taco_py.graph.nodes import Fact, Graph, Node
from taco_py.graph.view_operators import is_view


def with_separate_results(operators: Graph, primitives: Graph) -> Graph:
    """Copy results of primitives that share memory where the operators' results do not."""
    users = operators.by_name
    computed = primitives.by_name
    leaves = {leaf.name for leaf in primitives.leaves}
    owners: dict[str, str] = {}
    outputs: list[str] = []
    nodes: list[Node] = []
    for place, (user, name) in enumerate(zip(operators.outputs, primitives.outputs, strict=True)):
        base, value = shown_value(users, user), shown_value(computed, name)
        owner = value if value in leaves else owners.setdefault(value, base)
        if owner != base or _is_stretched(computed, name, users, user):
            fact = computed[name].fact if name in computed else primitives.facts[name]
            nodes.append(separate_copy(name, fact, place, _place(users, user)))
            name = nodes[-1].name
        outputs.append(name)
    return replace(primitives, nodes=(*primitives.nodes, *nodes), outputs=tuple(outputs))


def separate_copy(name: str, fact: Fact, place: int, line: str = "") -> Node:
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


def _is_stretched(computed: dict[str, Node], name: str, users: dict[str, Node], user: str) -> bool:
    """Tell whether elements stand for several of a result that NumPy makes one by one."""
    while name in computed and is_view(computed[name]):
        if "broadcast" in (computed[name].get("call") or computed[name].operator):
            break
        name = computed[name].inputs[0]
    else:
        return False
    while user in users and _shows(users[user]):
        if users[user].operator == "broadcast_to":
            return False
        user = users[user].inputs[0]
    return True


def _place(users: dict[str, Node], user: str) -> str:
    return users[user].place if user in users else ""
