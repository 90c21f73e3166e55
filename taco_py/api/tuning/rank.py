"""`rank`: the plans of a call by what they are expected to take."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from taco_py.tuning.bench.ranked_plans import RankedPlan, ranked
from taco_py.tuning.tasks.search_options import checked_search_option

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from taco_py.arguments.learned_price import Price
    from taco_py.language.formats import Format
    from taco_py.language.notation.rewrites.semirings import Semiring


def rank(
    text: str,
    operands: Mapping[str, Any] | None = None,
    /,
    *,
    price: Price = "analytic",
    limit: int = 40,
    seconds: float = 1.0,
    format: Format | str | Mapping[str, Format | str] | None = None,
    outputs: Sequence[str] | str | None = None,
    dtype: DTypeLike | None = None,
    casting: str = "safe",
    threads: int | None = None,
    static: Mapping[str, int] | None = None,
    libraries: bool = True,
    schedule_budget: float | None = None,
    forbid: Collection[str] | str = (),
    allow: Collection[str] | str = (),
    semiring: Semiring | str | None = None,
    mask: Any = None,
    **keywords: Any,
) -> list[RankedPlan]:
    """Return plans of a call in the order of their prices, cheapest first; nothing is compiled.

    >>> A = sp.eye_array(50, format="csr")
    >>> rows = tp.rank("y[i] = A[i,j] * x[j]", A=A, x=np.ones(50), limit=3)
    >>> len(rows), rows[0].seconds <= rows[1].seconds
    (3, True)

    text     index notation, of several statements too
    price    "analytic", "learned", or a model of `load_price` or `learn`
    limit    plans that are returned at most
    seconds  after which no more options are combined
    operands, keywords, format, outputs, dtype, casting, threads, static, libraries,
    schedule_budget, forbid, allow, semiring, mask   as in `evaluate`

    Raises what `evaluate` raises.
    """
    options = locals()
    from taco_py.arguments.option_checks import merged

    limit = checked_search_option("limit", limit)
    seconds = checked_search_option("seconds", seconds)
    return ranked(text, merged(operands, keywords), options, limit, seconds)
