"""The searches by name: a line each, with what it is for.

exhaustive     small spaces, whole
random         a baseline
evolutionary   large spaces, where prices say little
model          the usual one: prices first, then what measurements correct
beam           where prices are trusted: few plans run
beam by time   what a beam finds without prices, each plan measured
mcts           many axes, where options pay together only
"""

from __future__ import annotations

from collections.abc import Mapping

from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.tuning.searches import (
    beam_search,
    evolutionary,
    exhaustive,
    model_then_measure,
    random_points,
    tree_search,
)
from taco_py.tuning.searches.search_protocol import Start

USUAL_SEARCH = "model"
SEARCHES: Mapping[str, Start] = {
    "exhaustive": exhaustive.search,
    "random": random_points.search,
    "evolutionary": evolutionary.search,
    "model": model_then_measure.search,
    "beam": beam_search.search_by_price,
    "beam by time": beam_search.search_by_time,
    "mcts": tree_search.search,
}


def search_of(name: str) -> Start:
    """Return the search of a name. Raises ScheduleError where there is none."""
    start = SEARCHES.get(name) if isinstance(name, str) else None
    if start is None:
        raise ScheduleError(
            f"Expected search to be one of {', '.join(SEARCHES)}, found {name!r}",
            hint=with_suggestion(f'"{USUAL_SEARCH}" is the usual one', str(name), SEARCHES),
        )
    return start
