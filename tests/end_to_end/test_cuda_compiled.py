"""Kernels in CUDA of the corpus and of the main operations, compiled where nvcc is at hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import taco_py as tp
from codegen.devices.cuda.binaries import compile_report
from taco_py.data.kernels import KERNELS
from tests.corpus.expressions import CASES
from tests.devices.nvcc import QUICK, needs_nvcc
from tests.end_to_end.test_cuda import GOLDEN

KERNEL_TEXTS = sorted(path for path in GOLDEN.glob("*.cu") if "__global__" in path.read_text())
"""Golden texts of kernels: those of hosts come with headers."""


@pytest.mark.rotating(3)
@needs_nvcc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.parametrize("path", KERNEL_TEXTS, ids=lambda path: path.stem)
def test_main_kernels_spill_nothing(path: Path, architecture: str) -> None:
    for report in compile_report(KERNELS, path.read_text(), architecture).values():
        assert report.spill_stores == report.spill_loads == 0, report


@needs_nvcc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_products_of_sparse_matrices_spill_nothing(architecture: str) -> None:
    source = tp.compile("C[i,k] = A[i,j] * B[j,k]", dict.fromkeys("ABC", "csr"), target="cuda")
    reports = compile_report(KERNELS, source.source, architecture).values()
    assert all(report.spill_stores == report.spill_loads == 0 for report in reports)
    assert any(report.shared_bytes > 4096 for report in reports)


@needs_nvcc
def test_the_corpus_compiles(request: pytest.FixtureRequest) -> None:
    """In one text: each kernel under names of its own; each third one, in turn."""
    texts: list[str] = []
    turn = request.config.getoption("--rotation")
    for case in CASES if turn == "all" else CASES[int(turn) % 3 :: 3]:
        formats = {
            name: ("", "d", "csr", "sss", "ssss")[len(shape)] for name, shape in case.shapes.items()
        }
        for kernel in tp.compile(case.text, formats, target="cuda").compiled:
            own = re.sub(r"\b(evaluate|taco|running)_", rf"\g<1>{len(texts)}_", kernel.source)
            texts.append(own.replace("#include <stdint.h>", ""))
    whole = "#include <stdint.h>\n" + "\n".join(texts)
    assert len(compile_report(KERNELS, whole, "sm_90", QUICK)) >= len(texts)
