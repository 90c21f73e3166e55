"""What a kernel is asked for: the whole result, or one of its two halves where it is sparse."""

from __future__ import annotations

EVALUATE = "evaluate"
"""Structure and values."""
ASSEMBLE = "assemble"
"""The structure alone."""
COMPUTE = "compute"
"""The values of a structure that is given."""
