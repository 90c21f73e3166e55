"""Names and docstrings that a reader stumbles over: their numbers may only fall.

`python -m tests.words ROOM` lists them. Whoever mends some lowers the numbers of the room.
"""

from __future__ import annotations

from collections import Counter

import pytest

from tests.words import (
    KINDS,
    begins_with_verb,
    docstring_faults,
    faults_of,
    first_sentence,
    is_banned,
    rooms,
)

MOST: dict[str, tuple[int, int, int, int]] = {
    "taco_py/api": (9, 0, 0, 0),
    "taco_py/arguments": (1, 0, 0, 0),
    "taco_py/arrays": (0, 0, 0, 0),
    "taco_py/calls": (10, 0, 0, 0),
    "taco_py/compiler": (7, 0, 0, 0),
    "taco_py/data": (15, 0, 0, 0),
    "taco_py/graph": (0, 0, 0, 0),
    "taco_py/language": (2, 0, 0, 0),
    "taco_py/planner": (0, 0, 0, 0),
    "taco_py/report": (0, 0, 0, 0),
    "taco_py/running": (0, 0, 0, 0),
    "taco_py/tool": (0, 0, 0, 0),
    "taco_py/tuning": (6, 0, 0, 0),
    "taco_py": (0, 0, 0, 0),
    "polyhedral": (0, 0, 0, 0),
    "codegen": (0, 0, 0, 0),
}
"""The faults of each room: banned names; docstrings without a verb, too long, without a noun."""


@pytest.mark.parametrize("room", rooms())
def test_the_faults_of_a_room_only_fall(room: str) -> None:
    counts = Counter(fault.kind for fault in faults_of(room))
    found = tuple(counts[kind] for kind in KINDS)
    assert found == MOST[room], f"python -m tests.words {room} lists them; lower MOST where fewer"


def test_names_are_told_from_words() -> None:
    assert all(is_banned(name) for name in ("found", "_told", "told_place", "own_rows", "each"))
    assert not [name for name in ("founder", "reached", "owner", "keys") if is_banned(name)]


@pytest.mark.parametrize(
    ("docstring", "kinds"),
    [
        ("Return the rows.", []),
        ("The rows.", ["verb"]),
        ("Order of the loops.", ["verb"]),
        ("Order the loops by price.", []),
        ("Return what is found.", ["noun"]),
        ("Return those that are there.", ["noun"]),
        ("Return `what` and those rows.", []),
        (f"Return {'one ' * 18}row.", ["length"]),
        ("", []),
    ],
)
def test_docstrings_are_judged(docstring: str, kinds: list[str]) -> None:
    assert [kind for kind, _ in docstring_faults(docstring)] == kinds


def test_the_first_sentence_ends_at_a_stop() -> None:
    assert first_sentence("Return it; then\nmore.") == "Return it;"
    assert first_sentence("Return a\n  pair. More.\n\nEnd.") == "Return a pair."
    assert begins_with_verb("Tell whether it is.")
