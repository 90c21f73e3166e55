"""The ceilings of the processor here: measured once by a program of our own, then kept.

They are kept beside the kernels, for this processor and this number of cores, and measured again
where somebody asks for it, or the kernels are cleared.
"""

from __future__ import annotations

import json
import math
import struct
from datetime import datetime

from codegen.toolchain.errors import ToolchainError
from codegen.toolchain.processor import core_count, cpu_identity, cpu_name
from codegen.toolchain.trial import Trial
from taco_py.compiler.driver import native_target
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import CompilerError
from taco_py.report.limits.ceilings import Ceilings, Rate, Roof, from_json, higher, to_json
from taco_py.report.limits.probe_code import EACH_LEVEL, FIGURES, LEVELS, Probe, probe_source

SECONDS = 0.0015
"""For each figure, each time."""
MOST_BYTES = 1 << 26
"""Of the arrays that are measured beyond all caches."""
MEMORY_TIMES = 3
"""How many times as large as the last cache these are, where that is no more."""
SHARED_TIMES = 4
"""How many times as large as the last cache of a core the array in a shared one is, at most."""
PRIVATE_LEVELS = 2
"""The caches that each core has for itself: those beyond are shared."""


def ceilings_here(anew: bool = False) -> Ceilings:
    """Return the ceilings of this processor: kept ones, or measured now, which takes half a second.

    anew  measures them again, and keeps the higher one of each: what ran besides makes it lower

    Raises CompilerError where no compiler is there, or what is measured makes no sense.
    """
    name = f"ceilings {core_count()} {cpu_identity()}"
    if anew:
        ceilings, before = _measured(), _stored(name)
        ceilings = ceilings if before is None else higher(ceilings, before)
        KERNELS.write_text(name, json.dumps(to_json(ceilings)))
        KERNELS.memo.put(name, ceilings)
        return ceilings
    return KERNELS.recall(name, lambda: _stored(name) or ceilings_here(anew=True))


def _stored(name: str) -> Ceilings | None:
    text = KERNELS.text(name)
    if text is None:
        return None
    try:
        return from_json(json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _measured() -> Ceilings:
    """Return the ceilings, measured now."""
    threads = core_count()
    try:
        target = native_target()
    except ToolchainError as error:
        raise CompilerError(error.message, hint=error.hint) from error
    caches = target.processor.cache_bytes[: LEVELS - 1]
    alone, shared = array_bytes(caches, threads)
    arguments = struct.pack(f"{2 + 2 * LEVELS}d", threads, SECONDS, *alone, *shared)
    count = 2 * (FIGURES + EACH_LEVEL * LEVELS)
    source = probe_source(Probe(target.processor.vector_bytes, target.processor.registers))
    try:
        (trial,) = KERNELS.try_out(source, [Trial("measure", arguments, len(arguments), 8 * count)])
    except (ToolchainError, OSError) as error:
        raise CompilerError(
            f"Expected to measure what the processor can do, found {error}",
            hint="a C compiler and a folder for kernels are needed, as for every kernel",
        ) from error
    if len(trial.results) != 8 * count:
        raise CompilerError(
            f"Expected {count} figures of the processor, found {trial.stopped or 'fewer'}",
            hint="kernels run without them; explain() leaves out the roofline",
        )
    figures = struct.unpack(f"{count}d", trial.results)
    return _ceilings(
        figures, caches, threads, target.processor.vector_bytes, target.processor.registers
    )


def array_bytes(caches: tuple[int, ...], threads: int) -> tuple[list[int], list[int]]:
    """Return the bytes of a thread's array in each cache and beyond: of one thread, of several
    together.

    >>> array_bytes((32768, 1 << 20, 1 << 25), 2)[0]
    [16384, 524288, 4194304, 67108864]
    """
    alone = [size // 2 for size in caches[:PRIVATE_LEVELS]]
    near = SHARED_TIMES * max(caches[:PRIVATE_LEVELS], default=1 << 20)
    alone += [min(size // 2, near) for size in caches[PRIVATE_LEVELS:]]
    last = caches[-1] if caches else 1 << 25
    memory = min(MEMORY_TIMES * last, MOST_BYTES)
    private = len(alone[:PRIVATE_LEVELS])
    shared = [size if at < private else size // threads for at, size in enumerate(alone)]
    missing = [0] * (LEVELS - 1 - len(alone))
    pages = [amount // 4096 * 4096 for amount in (*alone, memory)]
    shares = [amount // 4096 * 4096 for amount in (*shared, memory // threads)]
    return [*pages[:-1], *missing, pages[-1]], [*shares[:-1], *missing, shares[-1]]


def _ceilings(
    figures: tuple[float, ...],
    caches: tuple[int, ...],
    threads: int,
    vector_bytes: int,
    registers: int,
) -> Ceilings:
    """Return the figures by their names. A cache is read from no slower than what is behind it."""
    half = len(figures) // 2
    one, all_threads = figures[:half], figures[half:]
    if not all(math.isfinite(figure) and figure >= 0 for figure in figures) or not all(one[:3]):
        raise CompilerError(f"Expected figures above 0 of the processor, found {figures}")
    doubles, floats, loads = (Rate(a, b) for a, b in zip(one[:3], all_threads[:3], strict=True))
    roofs: list[Roof] = []
    rate = Rate(0.0, 0.0)
    places = [*((at, f"L{at + 1}", size) for at, size in enumerate(caches))]
    for at, name, size in reversed([*places, (LEVELS - 1, "memory", 0)]):
        first = FIGURES + EACH_LEVEL * at
        rates = [max(part[first : first + EACH_LEVEL]) for part in (one, all_threads)]
        rate = Rate(max(rate.one, rates[0]), max(rate.all, rates[1]))
        roofs.insert(0, Roof(name, size, at >= PRIVATE_LEVELS, rate))
    when = datetime.now().isoformat(" ", "minutes")
    lanes = (threads, vector_bytes, registers)
    return Ceilings(cpu_name(), when, *lanes, doubles, floats, loads, tuple(roofs))


if __name__ == "__main__":
    print(json.dumps(to_json(ceilings_here(anew=True)), indent=1))
