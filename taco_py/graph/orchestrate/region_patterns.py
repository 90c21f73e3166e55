"""Patterns of operators that a target computes as one: composites (Chen et al. 2021, BYOC).

A pattern is a small graph, written as a call:

    gelu(add(matmul(x, w), b))          an operator, its arguments; x, w, b match any value
    mul(c := conv(x, _), sigmoid(c))    c is one primitive, read twice; _ any value, each its own
    (relu | gelu)(add(_, _))            one of several operators;  _(x): any operator

Before → after, with the pattern add(matmul(_, _), _):  matmul 0; add 1; relu 2  →  {0, 1} {2}

A match is a composite where its root alone is read outside, and its predicate holds.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations

from codegen.records import dataclass
from taco_py.graph.orchestrate.dag import Dag, bits
from taco_py.language.diagnostics.errors import NotationError

ANY = "_"


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Matches any value: the same one for each use of its name, but for `_`."""

    name: str = ANY

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class OperatorPattern:
    """Matches a primitive by its operator and arguments; a label names it for other places.

    operators  the names it may have; none: any
    """

    operators: tuple[str, ...]
    arguments: tuple[PatternNode, ...]
    label: str | None = None

    def __str__(self) -> str:
        name = " | ".join(self.operators) or ANY
        name = f"({name})" if len(self.operators) > 1 else name
        text = f"{name}({', '.join(map(str, self.arguments))})"
        return text if self.label is None else f"({self.label} := {text})"


PatternNode = Wildcard | OperatorPattern


@dataclass(frozen=True, slots=True)
class Match:
    """A place where a pattern matches: its root, all members, and the value of each name."""

    pattern: str
    root: int
    members: int
    bindings: tuple[tuple[str, int], ...]

    def value(self, name: str) -> int:
        """Return the value that a name of the pattern matched: p a primitive, ~k the graph's input
        k.
        """
        return dict(self.bindings)[name]


def _always(dag: Dag, match: Match) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class CompositePattern:
    """An entry of a target's table: a name, a pattern, and what else has to hold of a match.

    commuting  operators of two arguments that match in either order
    """

    name: str
    root: OperatorPattern
    predicate: Callable[[Dag, Match], bool] = _always
    commuting: tuple[str, ...] = ()


def composite(
    name: str,
    text: str,
    predicate: Callable[[Dag, Match], bool] = _always,
    commuting: Sequence[str] = (),
) -> CompositePattern:
    """Make an entry of a table of patterns from the pattern's text.

    Raises NotationError where the text is no pattern.
    """
    root = parse_pattern(text)
    return CompositePattern(name, root, predicate, tuple(commuting))


def parse_pattern(text: str) -> OperatorPattern:
    """Read a pattern from its text.

    Raises NotationError where the text is no call of operators.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise _no_pattern(text, text) from error
    root = _pattern_of(tree, text)
    if not isinstance(root, OperatorPattern):
        raise _no_pattern(text, text)
    return root


def _pattern_of(tree: ast.expr, text: str) -> PatternNode:
    match tree:
        case ast.Name(id=name):
            return Wildcard(name)
        case ast.NamedExpr(target=ast.Name(id=label), value=value):
            inner = _pattern_of(value, text)
            if isinstance(inner, OperatorPattern):
                return OperatorPattern(inner.operators, inner.arguments, label)
        case ast.Call(func=called, args=arguments, keywords=[]):
            parts = tuple(_pattern_of(argument, text) for argument in arguments)
            names = _names_of(called, text)
            return OperatorPattern(() if names == (ANY,) else names, parts)
    raise _no_pattern(text, ast.unparse(tree))


def _names_of(tree: ast.expr, text: str) -> tuple[str, ...]:
    match tree:
        case ast.Name(id=name):
            return (name,)
        case ast.BinOp(left, ast.BitOr(), right):
            return (*_names_of(left, text), *_names_of(right, text))
    raise _no_pattern(text, ast.unparse(tree))


def _no_pattern(text: str, fragment: str) -> NotationError:
    return NotationError(
        f"Expected a pattern of operators, found {fragment!r} in {text!r}",
        hint="write calls of operators and names: gelu(add(matmul(x, w), b))",
    )


def find_matches(dag: Dag, pattern: CompositePattern, root: int) -> Iterator[Match]:
    """Yield the matches of a pattern at a root that can be one step."""
    for bindings, members in _match(dag, pattern.root, root, {}, 0, pattern.commuting):
        match = Match(pattern.name, root, members, tuple(sorted(bindings.items())))
        if dag.read_outside(members) == 1 << root and pattern.predicate(dag, match):
            yield match


def group_composites(
    dag: Dag, patterns: Sequence[CompositePattern], free: int | None = None
) -> tuple[Match, ...]:
    """Find disjoint composites, the patterns in the order of their table, roots from the last on.

    No two wait for each other: all members lead to the root, which alone is read outside.

    free  primitives that composites may hold: all, where it is left out
    """
    left = dag.live if free is None else free
    matches: list[Match] = []
    for pattern in patterns:
        for root in sorted(bits(left), reverse=True):
            for match in find_matches(dag, pattern, root):
                if not match.members & ~left:
                    matches.append(match)
                    left &= ~match.members
                    break
    return tuple(matches)


def _match(
    dag: Dag,
    node: PatternNode,
    value: int,
    bindings: dict[str, int],
    members: int,
    commuting: tuple[str, ...],
) -> Iterator[tuple[dict[str, int], int]]:
    """Yield the bindings of names and the matched primitives, for each way to match."""
    name = node.name if isinstance(node, Wildcard) else node.label
    if name is not None and name != ANY:
        if bindings.get(name, value) != value:
            return
        bindings = {**bindings, name: value}
    if isinstance(node, Wildcard):
        yield bindings, members
        return
    if value < 0 or (node.operators and dag.operators[value] not in node.operators):
        return
    read = dag.arguments[value]
    if len(read) != len(node.arguments):
        return
    either = len(read) == 2 and dag.operators[value] in commuting
    orders = dict.fromkeys(permutations(read)) if either else {read: None}
    for order in orders:
        yield from _match_all(dag, node.arguments, order, bindings, members | 1 << value, commuting)


def _match_all(
    dag: Dag,
    nodes: Sequence[PatternNode],
    values: Sequence[int],
    bindings: dict[str, int],
    members: int,
    commuting: tuple[str, ...],
) -> Iterator[tuple[dict[str, int], int]]:
    """Yield the ways to match arguments one after another."""
    if not nodes:
        yield bindings, members
        return
    for bound, more in _match(dag, nodes[0], values[0], bindings, members, commuting):
        yield from _match_all(dag, nodes[1:], values[1:], bound, more, commuting)
