"""The schedule, the semiring and the mask of a call, for the front ends that take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taco_py.arguments.semiring_mask import SemiringMask
    from taco_py.language.notation.nodes import Assignment


def built(schedule: Any) -> Any:
    """Return the schedule that a builder has built so far, and any other schedule unchanged.

    Schedules of several statements become pairs.
    """
    if schedule is None or type(schedule) is str:
        return schedule
    if isinstance(schedule, Mapping):
        return tuple((name, built(value)) for name, value in schedule.items())
    return getattr(schedule, "schedule", schedule)


def read_over(semiring: Any, mask: Any, replace: bool) -> SemiringMask | None:
    """Read semiring=, mask= and replace=; None where a call leaves all of them out."""
    if semiring is None and mask is None and replace is False:
        return None
    from taco_py.arguments.semiring_mask import semiring_mask_of

    return semiring_mask_of(semiring, mask, replace)


def as_mask(mask: Any, assignment: Assignment) -> Any:
    """Return the mask that letters or the name of a format are meant as, and any other itself.

    "csr"  →  Mask(CSR);  complement("coo")  →  Mask(COO(2), complement=True)

    assignment  whose result has as many modes, which names as "coo" do not say
    """
    from taco_py.language.notation.rewrites.masks import Mask

    form = mask.array if isinstance(mask, Mask) else mask
    if not isinstance(form, str):
        return mask
    from taco_py.language.formats.format import format_named

    stored = format_named(form, len(assignment.target.modes))
    return replace(mask, array=stored) if isinstance(mask, Mask) else Mask(stored)
