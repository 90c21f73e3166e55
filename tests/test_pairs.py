"""Pairs and triples of features: each call is right, or refused for a reason that a table has."""

from __future__ import annotations

from random import Random

import pytest

from tests.pairs.calls import STATEMENTS
from tests.pairs.features import FEATURES, Feature
from tests.pairs.refusals import REFUSALS
from tests.pairs.search import KIND, RIGHT, calls_of, outcome, pairs, triple


def drawn(features: tuple[Feature, ...], seed: int) -> str:
    """The outcome of the first text that has a place for features; "" where none has."""
    texts = Random(seed).sample(range(len(STATEMENTS)), len(STATEMENTS))
    call = next(calls_of(features, seed, texts), None)
    if call is None:
        return ""
    found = outcome(call)
    return "" if found in RIGHT else f"{call}: {found}"


@pytest.mark.rotating(12)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: " & ".join(each.name for each in pair))
def test_pairs(pair: tuple[Feature, ...]) -> None:
    assert not drawn(pair, 0)


@pytest.mark.rotating(12)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(240))
def test_triples(number: int) -> None:
    assert not drawn(triple(Random(number)), number)


def test_the_table_of_refusals_names_kinds_and_only_shrinks() -> None:
    kinds = set(KIND.values())
    assert all(each.kinds <= kinds and each.reason for each in REFUSALS)
    assert len({feature.name for feature in FEATURES}) == len(FEATURES)
