"""Draws pairs and triples of features, and compares each call with the oracle.

    python -m tests.pairs.search pairs [--seed S]          all pairs of features
    python -m tests.pairs.search triples [N] [--seed S]    N drawn triples
        [--part K/N]                                       the K-th of each N calls alone
    python -m tests.pairs.search one "A ds + mask csr" [--seed S] [--text N]

A call is equal to the oracle, refused for a reason of `REFUSALS`, or it is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations
from random import Random

import numpy as np

import taco_py as tp
from taco_py.data.kernels import KERNELS
from tests.pairs.calls import STATEMENTS, Call, base
from tests.pairs.features import FEATURES, Feature, applied
from tests.pairs.refusals import REFUSALS
from tests.pairs.verbs import VERBS, NotOfThisVerbError, dense, wanted, zero_of

RIGHT = ("equal", "refused", "no such call")
KIND = {feature.name: feature.kind for feature in FEATURES}
NEAR = {"float16": 2e-2, "float32": 1e-4, "complex64": 1e-4}


def outcome(call: Call) -> str:
    """ "equal", "refused", "no such call", or what is wrong."""
    try:
        right = wanted(call)
        result = VERBS[call.verb](call)
    except NotOfThisVerbError:
        return "no such call"
    except tp.InternalError as error:
        return f"a fault of ours: {error.message:.300}"
    except tp.TacoError as error:
        return "refused" if is_accepted(call, str(error)) else f"refused: {error}"
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        return "refused" if is_accepted(call, told) else told
    pairs = zip(result, right, strict=True) if isinstance(right, list) else [(result, right)]
    for one, other in pairs:
        near = max(NEAR.get(str(v.dtype), 1e-9) for v in call.values.values())
        array, right_array = dense(one, zero_of(call, one.dtype)), np.asarray(other)
        same = array.shape == right_array.shape
        if not same or not np.allclose(array, right_array, rtol=near, atol=near, equal_nan=True):
            return f"wrong: {array.tolist()} where {right_array.tolist()} is right"
    return "equal"


def is_accepted(call: Call, message: str) -> bool:
    """Whether the table has the refusal with a reason."""
    kinds = {KIND[name] for name in call.features}
    return any(kinds >= each.kinds and each.message in message for each in REFUSALS)


def calls_of(features: tuple[Feature, ...], seed: int, texts: Iterable[int]) -> Iterator[Call]:
    """The calls of texts that have a place for all of the features."""
    for number in texts:
        rng = np.random.default_rng((seed, number))
        call = applied(base(number, rng), features, rng)
        if call is not None:
            yield call


def pairs() -> Iterator[tuple[Feature, ...]]:
    """All pairs of features of two kinds."""
    for pair in combinations(FEATURES, 2):
        if pair[0].kind != pair[1].kind:
            yield pair


def triple(numbers: Random) -> tuple[Feature, ...]:
    """Three features of three kinds."""
    while True:
        drawn = tuple(numbers.sample(FEATURES, 3))
        if len({feature.kind for feature in drawn}) == len(drawn):
            return drawn


def tried(
    features: tuple[Feature, ...], seed: int, texts: Iterable[int], found: Counter[str]
) -> None:
    """Compare the first call that has a place for the features; print one that is wrong."""
    call = next(calls_of(features, seed, texts), None)
    if call is None:
        found["no place"] += 1
        return
    result = outcome(call)
    found[result if result in RIGHT else "wrong"] += 1
    if result not in RIGHT:
        print(f"{call}\n    {result}", flush=True)


def main(arguments: list[str]) -> int:
    """Try what is asked for; 1 where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.pairs.search")
    parser.add_argument("what", choices=("pairs", "triples", "one"))
    parser.add_argument("count", nargs="?", default="100")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--text", type=int)
    parser.add_argument("--part", default="0/1", help="each n-th of the calls alone: k/n")
    given = parser.parse_args(arguments)
    KERNELS.compile_with(("-Og",))
    numbers, found = Random(given.seed), Counter[str]()
    part, parts = map(int, given.part.split("/"))
    if given.what == "one":
        names = given.count.split(" + ")
        groups = [tuple(each for each in FEATURES if each.name in names)]
    elif given.what == "pairs":
        groups = list(pairs())
    else:
        groups = [triple(numbers) for _ in range(int(given.count))]
    drawn = [(each, numbers.sample(range(len(STATEMENTS)), len(STATEMENTS))) for each in groups]
    for features, texts in drawn[part::parts]:
        tried(features, given.seed, texts if given.text is None else [given.text], found)
    print(", ".join(f"{n} {what}" for what, n in found.items()))
    return int(found["wrong"] > 0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("TACO_PY_CACHE_DIR", folder)
        status = main(sys.argv[1:])
    sys.exit(status)
