"""An assignment as all planning takes it: its sums told apart by name and by type."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from taco_py.compiler.concrete.narrow import narrow_apart
from taco_py.compiler.concrete.terms import sums_apart
from taco_py.language.notation.nodes import Assignment
from taco_py.planner.ir.nodes import Operand


def normal_form(assignment: Assignment, operands: Mapping[str, Operand]) -> Assignment:
    """Return the assignment with distinct index names and sums in one type, term by term.

    Every way into this folder begins with it, for loop orders, temporaries and what they cost are
    told by the names of indices. An assignment that went through it before is left as it is.
    """
    dtypes = {name: np.dtype(operand.type.dtype) for name, operand in operands.items()}
    return sums_apart(narrow_apart(assignment, dtypes))
