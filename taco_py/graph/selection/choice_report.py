"""How the kernels of a graph were chosen, as text.

chosen    orchestrate: 3 kernels, expected 1.6e-04 s
  none         18 kernels, expected 2.3e-04 s
  stages        1 kernels, expected 1.8e-04 s
again     p0 multiply in kernels 1, 3: expected 1.6e-04 s; made once 1.9e-04 s
"""

from __future__ import annotations

from collections.abc import Iterator

from taco_py.graph.nodes import Node
from taco_py.graph.selection.strategies import Alternative, Chosen


def told_choice(chosen: Chosen) -> Iterator[str]:
    """Say what was chosen, what is computed again and why, and what the alternatives were."""
    taken = chosen.taken
    why = f", for {taken.told}" if taken not in chosen.alternatives and taken.told else ""
    yield f"chosen    {taken.strategy}: {_told(taken)}{why}"
    for each in chosen.alternatives:
        spent = f", chosen in {each.seconds:.2g} s" if each.seconds else ""
        yield f"  {each.strategy:12} {_told(each)}{spent}"
        if each.told:
            yield f"    {each.told}"
    number, seconds = chosen.priced
    if number:
        yield f"  planned      {number} candidates in {seconds:.2g} s"
    for node in chosen.again:
        yield f"again     {_again(node, chosen)}"


def _told(one: Alternative) -> str:
    kernels = f"{one.kernels} kernel{'' if one.kernels == 1 else 's'}"
    word = "measured" if one.measured else "expected"
    return kernels if one.expected is None else f"{kernels}, {word} {one.expected:.2e} s"


def _again(node: Node, chosen: Chosen) -> str:
    """Name the kernels that compute a primitive, and what it would take to make it once."""
    kernels = [region for region in chosen.taken.regions if region.kernel]
    places = [str(k) for k, region in enumerate(kernels, 1) if node in region.nodes]
    what = f"{node.name} {node.get('function') or node.operator}"
    found = f"{what} in kernels {', '.join(places)}  {node.place}".rstrip()
    if chosen.without is None or chosen.taken.expected is None:
        return found
    return f"{found}: {chosen.taken.expected:.2e} s, made once {chosen.without:.2e} s"
