"""What operations cost on the machine, and from which amount of work on a detour pays.

The unit is one innermost scalar operation of a loop that does not vectorise: about a nanosecond.
"""

from __future__ import annotations

# ---------------------------------------------------------------- loops

VECTOR = 0.3
"""An iteration of an innermost loop that vectorises."""
MERGE = 2.0
"""A step of a loop that walks several sparse levels together: it is hard to foresee."""
SCATTER = 1.3
"""An accumulation into memory instead of a register."""
STRAY = 0.01
"""An iteration, for each dense array that outer loops do not run through as it is stored."""
ROW = 2.0
"""An accumulation into a row workspace."""
HASH = 25.0
"""An accumulation into a hash workspace."""

# ---------------------------------------------------------------- copies and temporaries

CONVERSION = 15.0
"""An entry of a matrix that is copied into another order."""
SORTING = 60.0
"""An entry of a tensor of three or more modes that is copied: its coordinates must be sorted."""
TEMPORARY = 4.0
"""An element of a temporary, written and read again."""
