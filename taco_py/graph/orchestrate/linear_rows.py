"""Linear programs with whole numbers, as rows of weights, solved by HiGHS.

minimize  Σ cost · variable,  least ≤ Σ weight · variable ≤ most for each row
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One linear constraint: `least ≤ Σ weight · variable ≤ most`."""

    weights: tuple[tuple[int, float], ...]
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Minimum:
    """What the solver found.

    values  of the variables, None where it found none
    bound   what the optimum is at least, -inf where that is not known
    proven  whether the values are the optimum
    """

    values: tuple[float, ...] | None
    bound: float
    proven: bool

    @property
    def ones(self) -> list[int]:
        """Return the binary variables that are 1."""
        return [n for n, value in enumerate(self.values or ()) if value > 0.5]


def minimize(
    costs: Sequence[float],
    rows: Sequence[Row],
    seconds: float,
    *,
    most: Sequence[float] | None = None,
    ints: Sequence[bool] | None = None,
) -> Minimum:
    """Minimise a sum of costs of variables that are 0 at least, when rows hold.

    most  the upper bounds of the variables; 1 where they are left out
    ints  which variables are whole numbers; all where it is left out
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    ends = np.cumsum([0, *(len(row.weights) for row in rows)])
    columns = np.array([n for row in rows for n, _ in row.weights], dtype=np.int32)
    weights = np.array([w for row in rows for _, w in row.weights])
    matrix = csr_array((weights, columns, ends), shape=(len(rows), len(costs)))
    lower, upper = np.array([row.least for row in rows]), np.array([row.most for row in rows])
    outcome = milp(
        np.array(costs),
        integrality=np.ones(len(costs), np.int8) if ints is None else np.array(ints, np.int8),
        bounds=Bounds(0, 1 if most is None else np.array(most)),
        constraints=LinearConstraint(matrix, lower, upper),
        options={"time_limit": max(seconds, 0.01), "mip_rel_gap": 0.0},
    )
    bound = outcome.mip_dual_bound
    finite_bound = float(bound) if bound is not None and np.isfinite(bound) else -np.inf
    values = None if outcome.x is None else tuple(map(float, outcome.x))
    return Minimum(values, finite_bound, outcome.status == 0)
