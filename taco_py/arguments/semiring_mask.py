"""The semiring that a call computes over, and the mask of its result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.data.storage.pack import to_dense, unpack
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.diagnostics.errors import OperandError, OperandTypeError
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.rewrites.masks import Mask, mask_of
from taco_py.language.notation.rewrites.semirings import Semiring, semiring_of

ARITHMETIC = Semiring("plus", "times")


@dataclass(frozen=True, slots=True, eq=False)
class SemiringMask:
    """What + and * of a call mean, and the mask of its result.

    replace  whether elements of out= that the mask leaves out are set to the semiring's zero
    """

    semiring: Semiring
    mask: Mask | None
    replace: bool

    @property
    def identity(self) -> tuple[object, ...]:
        """Return the part of a call's key that is about its semiring and mask."""
        mask = self.mask
        kind = None if mask is None else (mask.by_value, mask.complement)
        return ("semiring", self.semiring, *self.semiring.functions, kind, self.replace)

    @property
    def is_usual(self) -> bool:
        """Tell whether a call computes its text over numbers, everywhere."""
        return self.semiring.is_arithmetic and self.mask is None

    def check_outputs(self, outputs: Sequence[str], last: Assignment) -> None:
        """Raise OperandError for a mask of several outputs, each of which has a shape of its
        own."""
        if self.mask is not None and len(outputs) > 1:
            raise OperandError(
                f"Expected one output under mask=, found {', '.join(outputs)}",
                last.span,
                hint="compute the others in a call without the mask, or multiply by it in the text",
            )

    def keeps(self, accumulates: bool) -> bool:
        """Tell whether elements of out= that the mask leaves out keep their value.

        accumulates  whether the statement is `y += …`, whose value is `y` there
        """
        return self.mask is not None and not self.replace and not accumulates

    def merged(self, out: Array, values: Any, mask: TensorData) -> Array:
        """Return `out` with the result where the mask, stored in `mask`, allows it."""
        assert self.mask is not None
        if mask.format.is_dense:
            allowed = mask.values != 0
        elif self.mask.by_value:
            allowed = to_dense(mask) != 0
        else:
            allowed = np.zeros(mask.shape, bool)
            allowed[unpack(mask)[0]] = True
        np.copyto(out, values, casting="unsafe", where=allowed != self.mask.complement)
        return out

    @property
    def why_plain(self) -> str:
        """Say why operands are read in plain formats, where there is a semiring or a mask."""
        what = "under masks" if self.semiring.is_arithmetic else "over semirings"
        return f"calls {what} read plain formats alone"

    @property
    def named_arrays(self) -> dict[str, Any]:
        """Return the mask's tensor by its name in reports, where there is one."""
        return {} if self.mask is None else {"mask": self.mask.array}

    @property
    def arrays(self) -> tuple[Any, ...]:
        """Return the mask's tensor, where there is one."""
        return () if self.mask is None else (self.mask.array,)


def semiring_mask_of(semiring: Any, mask: Any, replace: Any) -> SemiringMask:
    """Read the arguments of a call. Raises NotationError, OperandTypeError or OperandError."""
    if not isinstance(replace, bool):
        raise OperandTypeError(
            f"Expected replace to be True or False, found {replace!r}",
            hint="True sets what the mask leaves out of out= to zero",
        )
    if replace and mask is None:
        raise OperandError(
            "Expected a mask with replace=True, found none",
            hint="without a mask all of out= is written; leave replace= out",
        )
    read = ARITHMETIC if semiring is None else semiring_of(semiring)
    return SemiringMask(read, None if mask is None else mask_of(mask), replace)
