"""The one kernel cache of a process."""

from __future__ import annotations

from pathlib import Path

import polyhedral
from codegen.runtime.kernels import KernelCache

KERNELS = KernelCache(sources=(Path(__file__).parent, Path(polyhedral.__file__).parent))
"""Every kernel of this process; `KERNELS.clear()` forgets them, on disk too."""
