"""`python -m benchmarks.run [names]`: run benchmarks, print a table of each, keep the figures as
JSON.

Names are those of the files here: spmv spmm add spgemm sddmm mttkrp ttv import_time first_call
call_overhead memory gallop rewrites autoschedule chosen gemm contractions streams batched parallel
polybench stencils tile_sizes costs many_factors elementwise ulps row_epilogues semirings
convolution graphs attention formats conversions fused limits norms tuned epilogues gathers
training gradients sampled memory_bound graph_prices. Nothing is asserted about time; results are
checked and marked when wrong.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import groupby
from pathlib import Path

from benchmarks.measure import OURS, REFERENCE, Record

NAMES = (
    "spmv", "spmm", "add", "spgemm", "sddmm", "mttkrp", "ttv", "import_time", "first_call",
    "call_overhead", "memory", "gallop", "rewrites", "autoschedule", "chosen", "gemm",
    "contractions", "streams", "batched", "parallel", "polybench", "stencils", "tile_sizes",
    "costs", "many_factors", "elementwise", "ulps", "row_epilogues", "semirings", "convolution",
    "graphs", "attention", "formats", "conversions", "fused", "limits", "norms", "tuned",
    "epilogues", "gathers", "training", "gradients", "sampled", "memory_bound",
    "graph_prices",
)  # fmt: skip
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name")
    chosen = parser.parse_args().names or NAMES
    if unknown := [name for name in chosen if name not in NAMES]:
        parser.error(f"Expected names out of {' '.join(NAMES)}, found {' '.join(unknown)}")
    RESULTS.mkdir(exist_ok=True)
    for name in chosen:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n{name}: {str(module.__doc__).strip().splitlines()[0]}")
        records = list(printed(module.run()))
        path = RESULTS / f"{name}.json"
        path.write_text(json.dumps(document(records), indent=1) + "\n")
        print(f"  kept in {path.relative_to(RESULTS.parent.parent)}")


def printed(records: Iterable[Record]) -> Iterator[Record]:
    """Print the contenders of each input as it is done, with their speed relative to scipy."""
    for name, group in groupby(records, key=lambda record: record.input):
        print(f"  {name}", flush=True)
        contenders = list(group)
        reference = next((one for one in contenders if one.contender == REFERENCE), None)
        for one in contenders:
            print(f"    {line(one, reference)}", flush=True)
        yield from contenders


def line(record: Record, reference: Record | None) -> str:
    figures = f"{record.minimum:>11.3f} {record.unit}   median {record.median:>11.3f}"
    name = f"{record.contender:<18}"
    if reference is None or record is reference or record.unit not in ("ms", "us"):
        return f"{name}{figures}  {record.note}"
    ratio = reference.minimum / record.minimum
    return f"{name}{figures}   {ratio:6.2f} x {REFERENCE}'s speed  {record.note}"


def document(records: list[Record]) -> dict[str, object]:
    """The figures with what they depend on."""
    import numpy
    import scipy

    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "machine": {"cpu": processor(), "cores": os.cpu_count(), "system": platform.platform()},
        "versions": {
            "python": platform.python_version(),
            "numpy": numpy.__version__,
            "scipy": scipy.__version__,
        },
        "ours": OURS,
        "records": [asdict(record) for record in records],
    }


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


if __name__ == "__main__":
    main()
