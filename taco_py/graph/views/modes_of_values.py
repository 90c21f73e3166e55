"""The modes of the values of a graph as terms, and which reshapes are layouts of them.

    y = reshape(x: (n, c, h, w)) to (n, c, h * w);  m = sum(y over 2)
    →   x has the modes n, c, h, w;  y has n, c, h × w;  the sum is over h and w

A reshape that splits and merges modes by common factors is one, where nothing reads what it splits
as a larger: arrays that are sparse, positions, texts and what NumPy computes.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.records import dataclass
from taco_py.graph.graph_builder import is_layout
from taco_py.graph.nodes import Fact, Graph, Node
from taco_py.graph.rules.slice_tiles import FULL_SLICE
from taco_py.graph.views.mode_terms import DisagreementError, ModeTerms

Modes = tuple[int | None, ...]
"""For each mode of a value its variable, None of one of size 1."""


@dataclass(frozen=True, slots=True, eq=False)
class ModesOfValues:
    """The modes of each value.

    reshapes  the nodes that are layouts
    """

    terms: ModeTerms
    modes: dict[str, Modes]
    reshapes: frozenset[str]


def is_reshape(node: Node) -> bool:
    """Tell whether a node is a reshape whose modes have common factors before and after."""
    return node.get("call") == "reshape" and node.get("factors") is not None


def modes_of_values(graph: Graph) -> ModesOfValues:
    """Find the modes that values have in common, and the reshapes that split or merge them."""
    terms = ModeTerms()
    modes: dict[str, Modes] = {}
    for leaf in graph.leaves:
        modes[leaf.name] = _fresh(terms, leaf.fact, firm=bool(leaf.fact.sparsity))
    for node in graph.nodes:
        numpy = node.operator == "numpy" and not is_reshape(node) and not is_cut(node)
        firm = numpy or node.operator == "notation"
        modes[node.name] = _modes_of(terms, node, modes, firm)
        if firm:
            for name in node.inputs:
                terms.firm.update(terms.root(v) for v in modes[name] if v is not None)
    reshapes = set()
    for node in filter(is_reshape, graph.nodes):
        attempt = terms.copy()
        try:
            _split(attempt, node, modes)
        except DisagreementError:
            continue
        terms = attempt
        reshapes.add(node.name)
    return ModesOfValues(terms, modes, frozenset(reshapes))


def _fresh(terms: ModeTerms, fact: Fact, firm: bool = False) -> Modes:
    return tuple(None if size.constant == 1 else terms.fresh(size, firm) for size in fact.shape)


def _split(terms: ModeTerms, node: Node, modes: dict[str, Modes]) -> None:
    """Make the modes of a reshape and of its operand products of the same factors."""
    factors = node.get("factors")
    variables = [terms.fresh(size) for group in factors[0] for size in group]
    for groups, name in zip(factors, (node.inputs[0], node.name), strict=True):
        rest = iter(variables)
        for group, variable, _ in zip(groups, modes[name], groups, strict=True):
            parts = [next(rest) for _ in group]
            if variable is None and not parts:
                continue
            if variable is None or not parts:
                raise DisagreementError
            terms.split(variable, parts)


def _modes_of(terms: ModeTerms, node: Node, modes: dict[str, Modes], firm: bool) -> Modes:
    """Return the modes of a node's result: those of its operands where it says so."""
    result = _fresh(terms, node.fact, firm)
    if firm or is_reshape(node):
        return result
    for one, other in pairs_of_modes(node, modes, result):
        if one is not None and other is not None:
            terms.unify(one, other)
    if node.operator in ("gather", "scatter"):
        _hold_positions(terms, node, modes, result)
    if is_cut(node):
        _hold_cut(terms, node, modes, result)
    return result


def is_cut(node: Node) -> bool:
    """Tell whether a node slices arrays, or puts them together, along some of their modes."""
    if node.get("call") == "concatenate":
        return node.operator == "numpy"
    is_slice = node.operator == "numpy" and node.get("call") == "slice"
    return is_slice and ("new",) not in node.get("key")


def _hold_cut(terms: ModeTerms, node: Node, modes: dict[str, Modes], result: Modes) -> None:
    """Keep the modes along which arrays are cut or put together as they are."""
    variables: list[int | None]
    if node.get("call") == "concatenate":
        axis = node.get("axis")
        variables = [result[axis], *(modes[name][axis] for name in node.inputs)]
    else:
        uncut = {axis for axis, _ in uncut_modes(node)}
        variables = [v for axis, v in enumerate(modes[node.inputs[0]]) if axis not in uncut]
        after = {axis for _, axis in uncut_modes(node)}
        variables += [v for axis, v in enumerate(result) if axis not in after]
    terms.firm.update(terms.root(v) for v in variables if v is not None)


def uncut_modes(node: Node) -> list[tuple[int, int]]:
    """Return the modes of which a slice reads all, before and after."""
    pairs, after = [], 0
    for axis, entry in enumerate(node.get("key")):
        if entry == FULL_SLICE:
            pairs.append((axis, after))
        after += entry[0] != "at"
    return pairs


def _hold_positions(terms: ModeTerms, node: Node, modes: dict[str, Modes], result: Modes) -> None:
    """Keep the modes that positions are of, and that they select, as they are."""
    selected = modes[node.inputs[0]] if node.operator == "gather" else result
    variables = [v for name in node.inputs[1:] for v in modes[name]]
    for variable, entry in zip(selected, node.get("modes"), strict=True):
        if not isinstance(entry, int):
            variables.append(variable)
    terms.firm.update(terms.root(v) for v in variables if v is not None)


Pairs = Sequence[tuple[int | None, int | None]]
"""Modes that are the same, None of those of size 1."""


def pairs_of_modes(node: Node, modes: dict[str, Modes], result: Modes) -> Pairs:
    """Return the pairs of modes of operands, and of the result, that a primitive makes the same."""
    operands = [modes[name] for name in node.inputs]
    if is_cut(node):
        return _pairs_of_cut(node, operands, result)
    if node.operator == "map":
        arrays = [operand for operand in operands if operand]
        return [pair for array in arrays for pair in zip(array, result, strict=True)]
    if is_layout(node):
        sources = zip(node.get("source"), result, strict=True)
        return [(operands[0][axis], mode) for axis, mode in sources if axis is not None]
    if node.operator == "reduce":
        axes = node.get("axes")
        rest = [mode for axis, mode in enumerate(operands[0]) if axis not in axes]
        return [*zip(rest, result, strict=True)]
    if node.operator == "contract":
        return _pairs_of_product(node, operands, result)
    return _pairs_of_gather(node, operands, result)


def _pairs_of_cut(node: Node, operands: Sequence[Modes], result: Modes) -> Pairs:
    if node.get("call") == "slice":
        return [(operands[0][axis], result[after]) for axis, after in uncut_modes(node)]
    places = [place for place in range(len(result)) if place != node.get("axis")]
    return [(operand[place], result[place]) for operand in operands for place in places]


def _pairs_of_product(node: Node, operands: Sequence[Modes], result: Modes) -> Pairs:
    groups = [*zip(node.get("labels"), operands, strict=True), (node.get("kept"), result)]
    first: dict[int, int] = {}
    pairs: list[tuple[int | None, int | None]] = []
    for labels, variables in groups:
        for label, variable in zip(labels, variables, strict=True):
            if variable is not None:
                pairs.append((first.setdefault(label, variable), variable))
    return pairs


def _pairs_of_gather(node: Node, operands: Sequence[Modes], result: Modes) -> Pairs:
    is_gather = node.operator == "gather"
    larger, part = (operands[0], result) if is_gather else (result, operands[0])
    pairs: list[tuple[int | None, int | None]] = []
    for variable, entry in zip(larger, node.get("modes"), strict=True):
        if isinstance(entry, int):
            pairs.append((variable, part[entry]))
        else:
            place, lines = entry
            pairs += zip(operands[place][:-1], (part[line] for line in lines), strict=True)
            pairs.append((operands[place][-1], variable))
    return pairs
