"""What the process that runs plans answers: a call is opened once, then its plans are run."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from codegen.records import dataclass
from taco_py.tuning.bench.bench_here import BenchHere
from taco_py.tuning.bench.plan_bench import PlanBench
from taco_py.tuning.measure.operand_file import read_operands

Answer = tuple[Mapping[str, Any], Sequence[Any]]


@dataclass(slots=True, eq=False)
class _Opened:
    """The call that this process runs plans of."""

    bench: BenchHere | None = None


OPENED = _Opened()


def answer(head: Mapping[str, Any], _: Sequence[Any]) -> Answer:
    """Open a call, or build, check or time one of its plans, as a message asks."""
    if head["do"] == "open":
        warnings.simplefilter("ignore")  # the process that asks has given them
        OPENED.bench = BenchHere(PlanBench(read_operands(head["path"])))
        return {}, ()
    bench = OPENED.bench
    if bench is None:
        return {"error": "no call was opened"}, ()
    if head["do"] == "build":
        outcome = bench.build(head["text"])
    elif head["do"] == "first":
        outcome = bench.first(head["text"])
    elif head["rival"]:
        outcome = bench.turns(head["text"], head["rival"], head["last"])
    else:
        outcome = bench.alone(head["text"])
    return asdict(outcome), ()
