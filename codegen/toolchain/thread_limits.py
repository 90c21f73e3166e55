"""How many threads a process should use: what its user, its scheduler and its container allow.

    OMP_NUM_THREADS=8,2  →  8, for the threads of a kernel start no others
    OMP_THREAD_LIMIT=6   →  6
    sched_setaffinity    →  the processors of the mask: taskset, Slurm, cpuset of a container
    cpu.max 250000 100000, or cpu.cfs_quota_us and cpu.cfs_period_us  →  3: 2.5, rounded up

The least of them counts. A variable with another content is ignored with a warning, as OpenMP does.
A quota of a control group holds for those below it.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from codegen.toolchain.processor import core_count
from codegen.user_line import warn_user

_GROUPS = "sys/fs/cgroup"
_COUNT = r"\s*\+?0*[1-9]\d{0,17}\s*"
_COUNTS = {
    "OMP_NUM_THREADS": (f"{_COUNT}(,{_COUNT})*", "some with commas between"),
    "OMP_THREAD_LIMIT": (_COUNT, ""),
}


def thread_limit(environ: Mapping[str, str] = os.environ, root: Path = Path("/")) -> int:
    """Count how many threads this process should use; warns of variables that are no counts.

    root  where /proc and /sys are
    """
    counts = [count for name in _COUNTS if (count := _count_in(name, environ)) is not None]
    quota = cpu_quota(root)
    shared = [] if quota is None else [max(1, math.ceil(quota))]
    return min(core_count(), *counts, *shared) if counts or shared else core_count()


def _count_in(name: str, environ: Mapping[str, str]) -> int | None:
    """Return the count in the variable `name`, of the outermost level; None where there is none."""
    value = environ.get(name, "")
    if not value.strip():
        return None
    pattern, or_else = _COUNTS[name]
    if re.fullmatch(pattern, value):
        return int(value.partition(",")[0])
    expected = "a positive integer" + (f", or {or_else}" if or_else else "")
    warn_user(
        RuntimeWarning(
            f"The environment variable {name} is ignored: expected {expected}, found {value!r}"
        )
    )
    return None


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Count how many processors the control groups allow, None for as many as there are."""
    shares = []
    for folder, version in _groups(str(root)):
        if version == 2:
            quota, _, period = _read(f"{folder}/cpu.max").strip().partition(" ")
        else:
            quota = _read(f"{folder}/cpu.cfs_quota_us").strip()
            period = _read(f"{folder}/cpu.cfs_period_us").strip()
        if quota.isdigit() and period.isdigit() and int(quota) > 0 and int(period) > 0:
            shares.append(int(quota) / int(period))
    return min(shares, default=None)


def _groups(root: str) -> Iterator[tuple[str, int]]:
    """Yield the folders of the control groups that this process is in, and their version.

    In a container without a name space for groups, the path is that of the host, and the group's
    folder is the mount itself: the way up ends there.
    """
    base = f"{root.rstrip('/')}/{_GROUPS}"
    lines = _read(f"{root.rstrip('/')}/proc/self/cgroup").splitlines() or ["0::/", "1:cpu:/"]
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            tops, version = (base, f"{base}/unified"), 2
        elif "cpu" in controllers.split(","):
            tops, version = (f"{base}/{controllers}", f"{base}/cpu"), 1
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for top in dict.fromkeys(tops):
            for depth in range(len(parts), -1, -1):
                yield "/".join((top, *parts[:depth])), version


def _read(path: str) -> str:
    """Return the content of a system file, "" where there is none."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return ""
    try:
        return os.read(handle, 16384).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(handle)
