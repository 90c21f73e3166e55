"""The arguments of a call besides its text: operands, options, and where results are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.options import CallOptions
from taco_py.arguments.semiring_mask import SemiringMask


@dataclass(frozen=True, slots=True, eq=False)
class CallArguments:
    """The arguments of a call besides its text.

    objects  the operands by name
    options  as they are checked
    out      an array for the result, or arrays by name, None for new ones
    over     the semiring and the mask, None where the call has neither
    key      under which the fast path of calls like this one is remembered, None for nowhere
    """

    objects: Mapping[str, Any]
    options: CallOptions
    out: Any = None
    over: SemiringMask | None = None
    key: tuple[object, ...] | None = None

    @property
    def masks(self) -> tuple[Any, ...]:
        """Return the tensor of the mask, where there is one."""
        return () if self.over is None else self.over.arrays
