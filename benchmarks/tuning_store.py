"""How long does a look-up in a store of 100 000 tuned plans take, by key and by operands?

    python -m benchmarks.tuning_store

hit      a key that is there, of those that are
near     a key whose sizes are not there, but others within six doublings
miss     a problem that is not there
by text  text and operands, whose key is made: the same operands each time, and fresh ones

Look-ups are spread over all keys by chance; p50, p99 and the longest are told, each in ms;
where other programs want the processor too, p99 of its own time says more.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter, thread_time

import numpy as np
import scipy.sparse as sp

import taco_py as tp
from benchmarks.measure import OURS, Record, record
from taco_py.tuning.store.tuning_record import TuningKey, TuningRecord

COUNT, PROBLEMS, PLANS = 100_000, 50, 4
ASKED = 2000
PLAN = "B: ds/float64/int32 of 3 by 3, {} entries\nreturn B"
TEXT = "y[i] = A[i,j] * x[j]"


def operands(rows: int = 20_000, seed: int = 0) -> dict[str, object]:
    """A matrix of about 200 000 entries, and a vector."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((rows, 10_000), density=1e-3, format="csr", rng=rng)  # noqa: N806
    return {"A": A, "x": np.ones(10_000)}


def keys(base: TuningKey) -> Iterator[TuningKey]:
    """Keys of many problems, whose buckets are by chance."""
    rng = np.random.default_rng(1)
    for number in range(COUNT // PLANS):
        problem = base.problem if number % PROBLEMS == 0 else f"{base.problem}\n{number % PROBLEMS}"
        moved = tuple(
            max(0, int(n)) for n in np.array(base.buckets) + rng.integers(-4, 5, len(base.buckets))
        )
        yield replace(base, problem=problem, buckets=moved)


def filled(store: tp.TuningStore, base: TuningKey) -> list[TuningKey]:
    """The keys of a store that is filled with records."""
    found = list(keys(base))
    for start in range(0, len(found), 2500):
        part = found[start : start + 2500]
        store.add(
            *(
                TuningRecord(key, PLAN.format(n), "one", 1e-3 * (n + 1), when=float(start + n))
                for key in part
                for n in range(PLANS)
            )
        )
    return found


def times(act: Callable[[int], object], count: int = ASKED) -> list[tuple[float, float]]:
    """Milliseconds of each act, by the clock and of the processor."""
    found = []
    for number in range(count):
        start, begun = perf_counter(), thread_time()
        act(number)
        found.append((1e3 * (perf_counter() - start), 1e3 * (thread_time() - begun)))
    return found


def told(what: str, samples: list[tuple[float, float]]) -> Record:
    """A line: the record has minimum and median, the note the rest."""
    wall, own = zip(*samples, strict=True)
    p99, most = float(np.percentile(wall, 99)), max(wall)
    note = f"p99 {p99:.3f}, most {most:.3f}; p99 of the processor {np.percentile(own, 99):.3f}"
    return record("tuning_store", what, OURS, wall, "ms", note)


def run() -> Iterator[Record]:
    """All look-ups in one store."""
    given = operands()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tuning.sqlite"
        with tp.TuningStore(path) as store:
            base = store.key(TEXT, given)
            start = perf_counter()
            known = filled(store, base)
            seconds = perf_counter() - start
            assert len(store) == COUNT
            yield record("tuning_store", "added, each", OURS, [1e3 * seconds / COUNT], "ms")
            store.add(TuningRecord(base, PLAN.format(0), "one", 1e-4))
        with tp.TuningStore(path) as store:
            yield from _looked_up(store, known, base, given)


def _looked_up(
    store: tp.TuningStore, known: list[TuningKey], base: TuningKey, given: dict[str, object]
) -> Iterator[Record]:
    rng = np.random.default_rng(2)
    order = rng.integers(0, len(known), ASKED)
    yield told("hit", times(lambda n: store.best(known[order[n]])))
    chosen = [known[n] for n in order]
    off = [replace(key, buckets=(key.buckets[0] + 2, *key.buckets[1:])) for key in chosen]
    yield told("near", times(lambda n: store.best(off[n])))
    other = replace(base, problem="another")
    yield told("miss", times(lambda n: store.best(other)))
    yield told("by text, same operands", times(lambda n: store.best(TEXT, given)))
    fresh = [operands(seed=n) for n in range(8)]
    yield told("by text, fresh operands", times(lambda n: store.best(TEXT, fresh[n]), len(fresh)))


def main() -> None:
    """Print the table."""
    for each in run():
        print(
            f"{each.input:<26}{each.minimum:9.4f} least {each.median:9.4f} median ms  {each.note}"
        )


if __name__ == "__main__":
    main()
