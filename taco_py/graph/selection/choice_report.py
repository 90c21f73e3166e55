"""How the kernels of a graph were chosen, as text.

chosen    orchestrate: 3 kernels, expected 1.6e-04 s
  none         18 kernels, expected 2.3e-04 s
  stages        1 kernels, expected 1.8e-04 s
again     p0 multiply in kernels 1, 3: expected 1.6e-04 s; made once 1.9e-04 s
"""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.graph.nodes import Node
from taco_py.graph.selection.strategies import Alternative, Decision


def describe_choice(decision: Decision) -> Iterator[str]:
    """Describe the decision, the primitives that are computed again, and the alternatives."""
    best = decision.selected
    reason = f", for {best.summary}" if best not in decision.alternatives and best.summary else ""
    yield f"chosen    {best.strategy}: {_describe_cost(best)}{reason}"
    for alternative in decision.alternatives:
        spent = f", chosen in {alternative.seconds:.2g} s" if alternative.seconds else ""
        yield f"  {alternative.strategy:12} {_describe_cost(alternative)}{spent}"
        if alternative.summary:
            yield f"    {alternative.summary}"
    number, seconds = decision.priced
    if number:
        yield f"  planned      {number} candidates in {seconds:.2g} s"
    for node in decision.recomputed:
        yield f"again     {_describe_recomputed(node, decision)}"


def _describe_cost(one: Alternative) -> str:
    kernels = f"{one.kernels} kernel{'' if one.kernels == 1 else 's'}"
    word = "measured" if one.measured else "expected"
    return kernels if one.expected is None else f"{kernels}, {word} {one.expected:.2e} s"


def _describe_recomputed(node: Node, decision: Decision) -> str:
    """Name the kernels that compute a primitive, and the price of computing it once."""
    kernels = [region for region in decision.selected.regions if region.kernel]
    places = [str(k) for k, region in enumerate(kernels, 1) if node in region.nodes]
    what = f"{node.name} {node.get('function') or node.operator}"
    line = f"{what} in kernels {', '.join(places)}  {node.place}".rstrip()
    if decision.without is None or decision.selected.expected is None:
        return line
    return f"{line}: {decision.selected.expected:.2e} s, made once {decision.without:.2e} s"
