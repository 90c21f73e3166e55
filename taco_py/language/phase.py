"""The part of a result that a kernel computes: all of it, or one half of a sparse result."""

from __future__ import annotations

EVALUATE = "evaluate"
"""Structure and values."""
ASSEMBLE = "assemble"
"""The structure alone."""
COMPUTE = "compute"
"""The values of an existing structure."""
