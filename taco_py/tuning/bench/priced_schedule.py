"""`price=`: the plan of a call by a learned price; nothing is run.

the plan by the analytic price and its neighbours   →   priced by the model   →   the cheapest,
                                                         where it is expected to be clearly faster

Where a kernel is unlike all that the model was learned from, and where none is clearly faster, the
plan by the analytic price stays. It is looked for once for operands with the same facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from taco_py.arguments.learned_price import ANALYTIC
from taco_py.arguments.operands import facts
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.prepare import check_computation
from taco_py.data.kernels import KERNELS
from taco_py.tuning.bench.call_space import space_of
from taco_py.tuning.bench.cheapest_points import PricedPoint, cheapest_points
from taco_py.tuning.bench.tuned_schedule import Resolved
from taco_py.tuning.prices.model_file import Origin
from taco_py.tuning.prices.price_choice import model_of
from taco_py.tuning.prices.price_model import LearnedModel
from taco_py.tuning.space.axis import label_of
from taco_py.tuning.store.fingerprint import target_here

PLANS, ROUNDS = 40, 1
LEAST_GAIN = 1.1
"""How many times faster than the analytic price's plan another one has to be expected to be."""


def priced(computation: Computation) -> Resolved:
    """Return the options with the plan by the learned price that they name."""
    options = computation.options
    plain = computation.with_options(replace(options, price=ANALYTIC))
    model = model_of(options.price) if options.is_native else None
    if model is None:
        reason = "has no file" if options.is_native else "knows kernels of the CPU alone"
        return Resolved(plain.options, (f"price     analytic: the learned one {reason}",))
    checked, read = check_computation(plain)
    key = ("priced", model, *plain.identity, read, facts(checked.operands, read.counts))
    return KERNELS.recall(key, lambda: _choose(computation, plain.options, model))


def _choose(computation: Computation, plain: CallOptions, model: LearnedModel) -> Resolved:
    """Return the options with the plan that is expected to be the fastest."""
    call = space_of(computation)
    rows = cheapest_points(call, PLANS, ROUNDS)
    usual = call.prices(((),))[0]
    best = rows[0] if rows else None
    head = (f"price     learned {origin_words(model.origin)}; {len(rows)} plans",)
    if best is None or usual.outside or best.expected.outside:
        reason = "  chosen       by the analytic price, for no kernel alike was measured"
        return Resolved(plain, (*head, reason))
    if best.point == () or best.expected.seconds * LEAST_GAIN > usual.seconds:
        reason = (
            "  chosen       by the analytic price: no other plan is expected to be clearly faster"
        )
        return Resolved(plain, (*head, reason, *_unsure_lines(rows, ())))
    gain = usual.seconds / best.expected.seconds
    lines = (
        f"  chosen       {label_of(best.point)}",
        f"  expected     {_seconds_words(best)}, {gain:.2g} times as fast as the plan by the "
        "analytic price",
    )
    settings = replace(plain, plan=call.space.text(best.point))
    return Resolved(settings, (*head, *lines, *_unsure_lines(rows, best.point)))


def _unsure_lines(rows: Sequence[PricedPoint], point: object) -> Iterator[str]:
    """Yield the line of a choice beside which another plan may be clearly faster."""
    mine = next((row.expected for row in rows if row.point == point), None)
    rivals = [row.expected for row in rows if row.point != point]
    if mine is not None and any(map(mine.may_lose_to, rivals)):
        yield '  unsure       another plan may be clearly faster: schedule="measure" times them'


def _seconds_words(one: PricedPoint) -> str:
    """Return the median and the quartiles of a plan."""
    expected = one.expected
    return f"{expected.seconds:.2g} s, quartiles {expected.low:.2g} to {expected.high:.2g}"


def origin_words(origin: Origin) -> str:
    """Return where a price comes from: the day, the machine, and whether it is another one."""
    target = target_here()
    is_here = (origin.processor, origin.compiler) == (target.processor, target.compiler)
    where = origin.processor or "an unknown machine"
    hint = "" if is_here else ", another machine than this, so that it is a hint"
    return f"{origin.when} on {where}{hint}"
