"""A target is a language, a machine and what runs the code: another one is four lines of tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.emit.c import emit_c
from codegen.ir import Module
from codegen.languages import LANGUAGES, Language, emit_no_host
from codegen.machine.cpu import Processor
from codegen.machine.target import TARGETS, Target, Where
from codegen.passes.order import C_PASSES, PASSES
from taco_py.compiler.ways.ways import WAYS

SPMV = ("y[i] = A[i,j] * x[j]", {"A": "CSR", "x": "d"})
CORPUS = (
    SPMV,
    ("C[i,j] = A[i,k] * B[k,j]", {"A": "dd", "B": "dd"}),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": "CSR", "B": "CSR"}),
    ("s = A[i,j] * A[i,j]", {"A": "CSR"}),
)


def emit_upper(module: Module, target: Target) -> str:
    """Return the C of a module in which sizes have other names."""
    return re.sub(r"\bn_(\w+)\b", r"SIZE_\1", emit_c(module, target))


@pytest.fixture
def upper(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a target for the CPU whose language is C with other names."""
    target = Target("upper", "upper-c", Processor(), Where.NATIVE)
    for table, name, value in (
        (TARGETS, target.name, target),
        (PASSES, target.language, C_PASSES),
        (LANGUAGES, target.language, Language(emit_upper, emit_no_host)),
    ):
        monkeypatch.setitem(table, name, value)  # type: ignore[arg-type]
    yield target.name


def operands(formats: Mapping[str, str]) -> dict[str, Any]:
    """Return arrays of 70 by 70, or 70, in their formats."""
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {}
    for name, form in formats.items():
        full = rng.integers(-3, 4, (70,) if form == "d" else (70, 70)).astype(float)
        given[name] = sp.csr_array(full) if form == "CSR" else full
    return given


@pytest.mark.parametrize(("text", "formats"), CORPUS)
def test_a_target_in_another_language(upper: str, text: str, formats: dict[str, str]) -> None:
    given = operands(formats)
    result = tp.evaluate(text, **given, target=upper)
    full = result.toarray() if sp.issparse(result) else result
    np.testing.assert_allclose(full, tp.evaluate_dense(text, **given))
    kernel, plain = (tp.compile(text, formats, target=name) for name in (upper, "c"))
    assert [s.schedule for s in kernel.plan.kernels] == [s.schedule for s in plain.plan.kernels]
    for one, other in zip(kernel.compiled, plain.compiled, strict=True):
        assert one.target == upper and one.key != other.key
        assert one.source == re.sub(r"\bn_(\w+)\b", r"SIZE_\1", other.source)
        assert "SIZE_" in one.source and "SIZE_" not in other.source
    assert kernel.explain()


def test_a_target_is_refused_by_its_name_where_it_is_not_in_the_table() -> None:
    with pytest.raises(tp.OperandTypeError, match="c, cuda, cuda-emulated, found 'upper'"):
        tp.compile(*SPMV, target="upper")


def test_each_way_is_for_all_targets_of_a_kind_of_machine() -> None:
    gpu = tp.compile(*SPMV, target="cuda-emulated").plan
    (step,) = gpu.kernels
    assert step.schedule.make.way == "cuda" and gpu.machine.target.where is Where.EMULATED
    assert {way.name for way in WAYS.values() if way.on_gpu} == {
        "cuda", "cuda_slabs", "cuda_tiles", "cuda_transpose",
    }  # fmt: skip
    real, emulated = (step.recipe(target=name) for name in ("cuda", "cuda-emulated"))
    assert real.source_key == emulated.source_key and real.key != emulated.key
