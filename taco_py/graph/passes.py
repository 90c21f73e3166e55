"""The passes of graphs that may be left out, to measure what each is worth.

    without(tp.grad(loss, "W"), "decomposition")(W, X, y)

(Chen et al. 2024, EVT: Accelerating Deep Learning Training with Epilogue Visitor Tree, section 3.)
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from codegen.records import dataclass
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.diagnostics.suggest import with_suggestion


@dataclass(frozen=True, slots=True)
class Passes:
    """Which passes are done.

    loss_elimination       the value is computed only where somebody asks for it
    decomposition          the parts of operators are fused with those of others
    reduction_elimination  sums of derivatives that cancel, or are known, are not computed
    """

    loss_elimination: bool = True
    decomposition: bool = True
    reduction_elimination: bool = True

    def strategy(self, name: str) -> str:
        """Return how kernels are chosen, where `name` is asked for."""
        return name if self.decomposition else "operators"


ALL = Passes()

NAMES: Mapping[str, str] = MappingProxyType({
    name.replace("_", " "): name
    for name in ("loss_elimination", "decomposition", "reduction_elimination")
})  # fmt: skip
"""The fields of `Passes` by what they are called."""


def without(function: Any, *passes: str) -> Any:
    """Copy a traced function, its gradient or a step of training, with passes left out.

    passes  "loss elimination", "decomposition", "reduction elimination"

    For measuring alone: results are the same but for rounding. Raises ScheduleError for other
    names.
    """
    for name in passes:
        if name not in NAMES:
            raise ScheduleError(
                f"Expected passes among {', '.join(NAMES)}, found {name!r}",
                hint=with_suggestion("no others can be left out", str(name), NAMES),
            )
    variant = copy(function)
    if hasattr(variant, "fused"):
        variant.fused = without(variant.fused, *passes)
        return variant
    variant.traces, variant.routes = {}, {}
    KERNELS.derived.add(variant)
    variant.passes = replace(variant.passes, **{NAMES[name]: False for name in passes})
    return variant
