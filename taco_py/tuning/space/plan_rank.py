"""What plans of one call are ordered by before any is timed.

    rank(price, bound)   =   expected seconds + the seconds of each thing that the plan waits for

The price knows searches, meetings of sparse operands, copies and strides, but nothing of the caches
that tiles are for; the limits of a bound know those, and of sparse kernels little. Neither alone
tells the schedules of all kernels apart.
"""

from __future__ import annotations

from math import fsum

from taco_py.report.limits.kernel_bound import Bound


def rank(price: float, bound: Bound) -> tuple[float, float]:
    """Return the seconds of a plan if nothing overlapped, which is no bound; then the bound.

    price  the expected seconds of the plan
    """
    return price + fsum(limit.seconds for limit in bound.limits), bound.seconds
