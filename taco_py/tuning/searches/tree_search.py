"""A tree of choices, an axis a level, that is searched where prices are low; the best points run.

    node        a point whose first axes are decided; the others are as planned
    walk        down to a node with an option that was not tried, by the least price below a child,
                less where it was visited seldom (UCT, Kocsis and Szepesvári 2006)
    new child   its price, which all nodes above learn
    every WALKS walks the cheapest point that did not run is measured

(Monte Carlo tree search with a learned price: Baghdadi et al. 2021, section 5.)
"""

from __future__ import annotations

from math import inf, log, sqrt

from taco_py.tuning.searches.search_protocol import Search, SearchContext
from taco_py.tuning.space.axis import Point, point_of

WALKS = 24
"""Walks before a point is measured."""
FIRST_WALKS = 160
"""Walks before the first one is."""
CURIOSITY = 0.5
"""How much seldom visits count, in logarithms of prices."""
IDLE = 400
"""Walks without a new point after which there are taken to be no more."""


class Node:
    """A point whose axes before `place` are decided, and what is known of those below it."""

    __slots__ = ("best", "children", "place", "point", "untried", "visits")

    def __init__(self, point: Point, place: int) -> None:
        self.point, self.place = point, place
        self.children: list[Node] = []
        self.untried: list[Point] | None = None
        self.visits, self.best = 0, inf


def search(context: SearchContext) -> Search:
    """Yield the plan as it is, then the cheapest points that the tree has shown."""
    prices: dict[Point, float] = {(): context.price(())}
    ran: set[Point] = {()}
    yield ()
    root = Node((), 0)
    walks, idle, until = 0, 0, FIRST_WALKS
    while idle < IDLE and not context.is_over():
        before = len(prices)
        _walk(root, context, prices)
        walks, idle = walks + 1, 0 if len(prices) > before else idle + 1
        if walks >= until:
            until = walks + WALKS
            waiting = [p for p, price in prices.items() if p not in ran and price < inf]
            if waiting:
                point = min(waiting, key=lambda p: (prices[p], p))
                ran.add(point)
                yield point
    for point in sorted(prices, key=lambda p: (prices[p], p)):
        if point not in ran and prices[point] < inf:
            yield point


def _walk(root: Node, context: SearchContext, prices: dict[Point, float]) -> None:
    """Walk down to a node that is new, price its point, and tell all nodes on the way."""
    path = [root]
    while True:
        node = path[-1]
        if node.untried is None:
            node.untried = _options(node, context)
        if node.untried:
            child = Node(node.untried.pop(), node.place + 1)
            node.children.append(child)
            path.append(child)
            break
        if not node.children:
            break
        path.append(_promising(node))
    point = path[-1].point
    if point not in prices:
        prices[point] = context.price(point)
    for node in path:
        node.visits += 1
        node.best = min(node.best, prices[point])


def _options(node: Node, context: SearchContext) -> list[Point]:
    """Return the points that differ in the option of the axis that a node decides."""
    axes = context.space.axes(node.point)
    if node.place >= len(axes):
        return []
    axis = axes[node.place]
    points = (point_of({**dict(node.point), axis.name: option.name}) for option in axis.options)
    fresh = list(dict.fromkeys(context.space.normalize(point) for point in points))
    context.numbers.shuffle(fresh)
    return fresh


def _promising(node: Node) -> Node:
    """Return the child with the least price below it, less where it was visited seldom."""

    def value(child: Node) -> float:
        price = log(max(child.best, 1e-12)) if child.best < inf else 50.0
        return price - CURIOSITY * sqrt(log(node.visits) / child.visits)

    return min(node.children, key=value)
