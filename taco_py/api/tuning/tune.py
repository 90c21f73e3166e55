"""`tune` and `tuning_store`: plans searched for and timed, and where calls find them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taco_py.tuning.bench.tuned_plans import ActiveStore, TunedCall, tuned_call
from taco_py.tuning.bench.tuning_store import TuningStore

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from taco_py.arguments.learned_price import Price
    from taco_py.language.formats import Format
    from taco_py.language.notation.rewrites.semirings import Semiring


def tune(
    text: str,
    operands: Mapping[str, Any] | None = None,
    /,
    *,
    trials: int = 100,
    seconds: float = 60.0,
    search: str = "model",
    seed: int = 0,
    store: TuningStore | str | Path | None = None,
    progress: bool | None = None,
    format: Format | str | Mapping[str, Format | str] | None = None,
    outputs: Sequence[str] | str | None = None,
    dtype: DTypeLike | None = None,
    casting: str = "safe",
    threads: int | None = None,
    static: Mapping[str, int] | None = None,
    libraries: bool = True,
    schedule_budget: float | None = None,
    price: Price = "analytic",
    forbid: Collection[str] | str = (),
    allow: Collection[str] | str = (),
    semiring: Semiring | str | None = None,
    mask: Any = None,
    **named: Any,
) -> TunedCall:
    """Search for the fastest plan of a call, time it on these operands, and keep it.

    >>> A = sp.eye_array(50, format="csr")
    >>> with tp.TuningStore() as store:
    ...     best = tp.tune("y[i] = A[i,j] * x[j]", A=A, x=np.ones(50), trials=2, store=store)
    >>> best.trials
    2
    >>> best.speedup >= 1.0
    True

    Each plan is run in a process of its own, checked against NumPy on small operands, and takes
    turns with the best so far. One that crashes, hangs or is wrong is ended and written down. The
    plan that is chosen without timing stays unless another one beats it clearly. An interrupt
    (Ctrl-C) ends the search, and what was found is kept.

    text      index notation, of several statements too
    trials    plans that are run at most
    seconds   for the search, compiling included
    search    "model" measures the best by price first, and corrects prices by what it sees;
              "evolutionary", "random", "exhaustive"
    seed      of its random choices
    store     a TuningStore or the path of one, where calls of this process look from then on unless
              `tuning_store` names another; by default one beside the compiled kernels, where calls
              of all processes look
    progress  whether a line on the standard error shows how it goes; by default on a terminal
    operands, named, format, outputs, dtype, casting, threads, static, libraries, schedule_budget,
    price, forbid, allow, semiring, mask   as in `evaluate`; the price orders what is measured

    Raises what `evaluate` raises, and TuningStoreError.
    """
    options = {
        "format": format, "outputs": outputs, "dtype": dtype, "casting": casting,
        "threads": threads, "static": static, "libraries": libraries,
        "schedule_budget": schedule_budget, "price": price, "forbid": forbid, "allow": allow,
        "target": "c", "semiring": semiring, "mask": mask,
    }  # fmt: skip
    from taco_py.arguments.option_checks import merged

    objects = merged(operands, named)
    searched = {"trials": trials, "seconds": seconds, "search": search, "seed": seed}
    return tuned_call(text, objects, options, searched, store, progress)


def tuning_store(store: TuningStore | str | Path | None = None) -> ActiveStore:
    """Let calls with schedule="tuned" look into a store, from here on or in a `with` block.

    >>> A = sp.eye_array(50, format="csr")
    >>> with tp.TuningStore() as store, tp.tuning_store(store):
    ...     y = tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=np.ones(50), schedule="tuned")
    >>> float(y.sum())
    50.0

    store  a TuningStore or the path of one, made where there is none; None for the one beside the
           compiled kernels, as at the beginning

    Raises TuningStoreError.
    """
    return ActiveStore(store)
