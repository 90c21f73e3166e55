"""Facts about this machine and this installation, cheap enough to ask in every process.

A compiled kernel is good only for the CPU it was tuned for, the Python that loads it, and the
sources that generated it. These are the parts of its key that say so.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path("/")
"""Where /proc and /sys are."""
DISTRIBUTION = "tacopy"
"""The name that our wheels are installed under."""
_CPU_FIELDS = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features")


def digest(*parts: str) -> str:
    """Return 32 hexadecimal digits that identify the sequence of `parts`."""
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode()
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


def _cpuinfo() -> dict[str, str]:
    """Return the fields of /proc/cpuinfo for the first processor; empty without this file."""
    try:
        # A read of one block: the whole file takes the kernel milliseconds on many cores.
        with (ROOT / "proc/cpuinfo").open("rb", buffering=0) as file:
            text = (file.read(16384) or b"").decode(errors="replace")
    except OSError:
        return {}
    first = text.split("\n\n", 1)[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def cpu_identity() -> str:
    """Return a text that differs between CPUs for which `-march=native` means different things."""
    facts = _cpuinfo()
    facts_ = [f"{name}={facts[name]}" for name in _CPU_FIELDS if name in facts]
    if not facts_:
        facts_ = [platform.processor(), platform.version()]
    return "\n".join([sys.platform, platform.machine(), *facts_])


def cpu_flags() -> frozenset[str]:
    """Return the CPU's features by their names in /proc/cpuinfo (`avx2`, `asimd`); empty where
    unknown."""
    facts = _cpuinfo()
    return frozenset((facts.get("flags") or facts.get("Features") or "").split())


def core_count() -> int:
    """Count how many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cache_sizes() -> tuple[int, ...]:
    """Return bytes of the data caches of the first processor, the nearest first; () if unknown."""
    folder = ROOT / "sys/devices/system/cpu/cpu0/cache"
    units = {"K": 1024, "M": 1024**2, "G": 1024**3}
    sizes = []
    for entry in sorted(folder.glob("index*")):
        try:
            kind = (entry / "type").read_text().strip()
            size = (entry / "size").read_text().strip()
        except OSError:
            continue
        if kind != "Instruction" and size[:-1].isdigit() and size[-1] in units:
            sizes.append(int(size[:-1]) * units[size[-1]])
    return tuple(sizes)


def python_abi() -> str:
    """Return the tag of loadable extension modules, and the version of cffi."""
    import _cffi_backend

    abi = getattr(sys, "abiflags", "")
    return f"{sys.implementation.cache_tag}{abi} cffi {_cffi_backend.__version__}"


def source_fingerprint(roots: Iterable[Path]) -> str:
    """Return a digest of the source files below `roots`: names, sizes and times.

    Reads no contents, so that it costs about 5 µs a file. A root that is absent counts as such.
    What was installed from a wheel is known by the wheel's record: edits of its files are not seen.
    """
    lines: list[str] = []
    for root in roots:
        lines.append(str(root))
        record = next(root.parent.glob(f"{DISTRIBUTION}-*.dist-info/RECORD"), None)
        if record is None:
            _list_sources(str(root), lines)
        else:
            facts = record.stat()
            lines.append(f"{record} {facts.st_size} {facts.st_mtime_ns}")
    return digest("\n".join(lines))


def _list_sources(folder: str, lines: list[str]) -> None:
    try:
        entries = sorted(os.scandir(folder), key=lambda e: e.name)
    except OSError:
        lines.append("absent")
        return
    for entry in entries:
        if entry.name.endswith((".py", ".h", ".c")):
            facts = entry.stat()
            lines.append(f"{entry.name} {facts.st_size} {facts.st_mtime_ns}")
        elif entry.is_dir() and entry.name != "__pycache__":
            lines.append(entry.name)
            _list_sources(entry.path, lines)


def cpu_name() -> str:
    """Return the processor's name and architecture: "AMD EPYC 9654, x86_64"."""
    name = _cpuinfo().get("model name") or platform.processor() or "processor"
    return f"{name}, {platform.machine()}"
