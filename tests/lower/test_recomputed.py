"""Values for a structure that is given: the same as evaluated, and never at other places."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.ir import Reserve, Sort, Storage, Store
from codegen.passes.dead_code import clean
from codegen.toolchain.compiler import find_compiler
from codegen.tree import find
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.loops import lower_recipe
from taco_py.compiler.ways.recipe import Recipe
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.phase import COMPUTE
from tests.corpus.formats import to_dense
from tests.lower.test_inserted import ADD, CASES, PRODUCT, arrays, first_loop, operands
from tests.machines import always_threads
from tests.problems import problem

TABLE = ("C[i,j] = A[i,k] * B[k,j]", {"A": "CSC", "B": "CSR"}, "ss", "reorder(k,i,j), ")
CASES = (*CASES, TABLE)


def stored(text: str, formats: dict[str, str]) -> dict[str, Any]:
    """Operands of which the result is a Tensor, in any format."""
    return {name: tp.tensor(operand) for name, operand in operands(text, formats).items()}


def compiled(
    text: str, given: dict[str, Any], result: str, schedule: str, threads: int
) -> tp.Kernel:
    formats = {name: tp.tensor(operand).format for name, operand in given.items()}
    loop = first_loop(text, schedule) if "(k,i,j)" not in schedule else None
    shared = "serial()" if loop is None else f"parallelize({loop})"
    formats[text[0]] = result
    return tp.compile(text, formats, schedule=f"{schedule}{shared}", threads=threads)


@always_threads()
@pytest.mark.parametrize(("text", "formats", "result", "schedule"), CASES)
def test_the_same_values_as_evaluated(
    text: str, formats: dict[str, str], result: str, schedule: str
) -> None:
    given = stored(text, formats)
    for threads in (1, 3):
        kernel = compiled(text, given, result, schedule, threads)
        expected = kernel(**given)
        found = kernel.compute(kernel.assemble(**given), **given)
        for one, other in zip(arrays(found), arrays(expected), strict=True):
            np.testing.assert_array_equal(one, other)


def changed(data: TensorData) -> list[TensorData]:
    """Patterns that differ from `data` in one coordinate, edge or entry, and are patterns still."""
    found = []
    for number, level in enumerate(data.levels):
        mode = data.format.mode_order[number]
        for name in ("pos", "crd"):
            array = getattr(level, name)
            if array is None:
                continue
            inner = range(1, len(array) - 1) if name == "pos" else range(len(array))
            for place in inner:
                other = array.copy()
                if name == "crd":
                    other[place] = (other[place] + 1) % data.shape[mode]
                elif array[place] < array[place + 1]:
                    other[place] += 1
                else:
                    continue
                levels = list(data.levels)
                levels[number] = replace(level, **{name: other})
                found.append(replace(data, levels=tuple(levels)))
    return [*found, *shorter(data)]


def shorter(data: TensorData) -> Iterator[TensorData]:
    """`data` without its last entry."""
    *above, last = data.levels
    if last.pos is not None and last.crd is not None and data.nnz:
        level = replace(last, pos=np.minimum(last.pos, data.nnz - 1), crd=last.crd[:-1])
        yield replace(data, levels=(*above, level), values=data.values[:-1])


@always_threads()
@pytest.mark.parametrize(("text", "formats", "result", "schedule"), CASES)
def test_every_other_structure_is_refused(
    text: str, formats: dict[str, str], result: str, schedule: str
) -> None:
    given = stored(text, formats)
    for threads in (1, 3):
        kernel = compiled(text, given, result, schedule, threads)
        pattern = tp.tensor(kernel.assemble(**given))
        others = changed(pattern.data)
        assert others or not pattern.nnz
        for data in others[:: max(1, len(others) // 20)]:
            with pytest.raises(tp.StructureError, match=r"Expected (the|a) pattern"):
                kernel.compute(tp.Tensor(data), **given)


@pytest.mark.parametrize("shared", ["parallelize(i)", "serial()"])
def test_nothing_is_assembled(shared: str) -> None:
    """No array grows, nothing is sorted, and of a row there is no list of what was written."""
    whole = problem(PRODUCT, {"A": "CSR", "B": "CSR"}, "ds")
    schedule = Schedule.of_orders([("i", "k", "j")]).then(Schedule.parse(shared))
    recipe = Recipe(whole, schedule, COMPUTE)
    (function,) = lower_recipe(recipe).module.functions
    kinds = {array.name: array.storage for array in function.arrays}
    assert kinds["C2_pos"] is kinds["C2_crd"] is Storage.INPUT
    assert kinds["C_vals"] is Storage.OUTPUT
    assert not list(find(function, Reserve)) and not list(find(function, Sort))
    assert not any(store.array.name == "w_list" for store in find(clean(function), Store))


def test_a_row_is_read_in_the_order_of_the_pattern() -> None:
    given = {name: sp.csr_array(to_dense(a)) for name, a in stored(*CASES[0][:2]).items()}
    kernel = tp.compile(PRODUCT, A=tp.CSR, B=tp.CSR, C=tp.CSR)
    whole = kernel(**given)
    backward = whole.copy()
    for start, stop in pairwise(backward.indptr):
        backward.indices[start:stop] = whole.indices[start:stop][::-1]
    backward.has_sorted_indices = False
    found = kernel.compute(backward, **given)
    assert np.shares_memory(found.indices, backward.indices)
    np.testing.assert_array_equal(found.toarray(), whole.toarray())


@pytest.mark.parametrize("index_dtype", ["int32", "int64"])
def test_a_pattern_has_the_index_type_that_it_has(index_dtype: str) -> None:
    """It is handed out as it came, whatever the kernel counts in."""
    given = {name: sp.csr_array(to_dense(a)) for name, a in stored(*CASES[0][:2]).items()}
    kernel = tp.compile(PRODUCT, A=tp.CSR, B=tp.CSR, C=tp.CSR)
    whole = kernel(**given)
    pattern = whole.copy()
    pattern.indptr, pattern.indices = (
        array.astype(index_dtype) for array in (whole.indptr, whole.indices)
    )
    for compiled_for in ("int32", "int64"):
        kernel = tp.compile(PRODUCT, A=tp.CSR, B=tp.CSR, C=tp.CSR, index_dtype=compiled_for)
        found = kernel.compute(pattern, **given)
        assert np.shares_memory(found.indices, pattern.indices)
        assert found.indptr.dtype == found.indices.dtype == index_dtype
        np.testing.assert_array_equal(found.toarray(), whole.toarray())


def malformed(data: TensorData) -> Iterator[TensorData]:
    """`data` with one edge or coordinate that no pattern has."""
    for number, level in enumerate(data.levels):
        if level.pos is None or level.crd is None:
            continue
        last, size = len(level.pos) - 1, data.shape[data.format.mode_order[number]]
        for name, place, value in (
            *(("pos", place, value) for place in (0, 1, last) for value in (-1, 3, 10**8)),
            *(("pos", place, -1) for place in range(2, last)),
            *(("crd", 0, value) for value in (-1, size, 10**6, 2**31 - 1, -(2**31))),
        ):
            wrong = getattr(level, name).copy()
            wrong[place] = value
            if not np.array_equal(wrong, getattr(level, name)):
                levels = list(data.levels)
                levels[number] = replace(level, **{name: wrong})
                yield replace(data, levels=tuple(levels))


FIBRES = "C[i,j,k] = A[i,j,k] * b[k]"


def refuse_malformed_patterns(text: str, threads: int) -> None:
    """Raises AssertionError where one is taken."""
    if text == FIBRES:
        dense = np.arange(1, 61).reshape(3, 4, 5) % 3
        given = {"A": tp.tensor(dense, format="dss"), "b": tp.tensor(np.arange(1, 6), format="s")}
        schedule = "parallelize(i)"
    else:
        given = stored(text, {"A": "CSR", "B": "CSR"})
        schedule = f"parallelize({first_loop(text, '')})"
    formats = {name: operand.format for name, operand in given.items()}
    formats["C"] = "ds" if len(given["A"].shape) == 2 else "dss"
    dtypes = {name: str(operand.dtype) for name, operand in given.items()}
    kernel = tp.compile(text, formats, schedule=schedule, threads=threads, dtypes=dtypes)
    pattern = kernel(**given)
    for data in malformed(pattern.data):
        with pytest.raises(tp.StructureError):
            kernel.compute(tp.Tensor(data), **given)


@always_threads()
@pytest.mark.parametrize("text", [PRODUCT, ADD, FIBRES])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_malformed_pattern_is_refused(text: str, threads: int) -> None:
    refuse_malformed_patterns(text, threads)


SANITISED = """
from tests.lower.test_recomputed import ADD, FIBRES, PRODUCT, refuse_malformed_patterns
from tests.machines import always_threads
always_threads().start()
for text in (PRODUCT, ADD, FIBRES):
    refuse_malformed_patterns(text, 2)
"""


def test_kernels_stay_within_a_malformed_pattern(tmp_path: Path) -> None:
    """Whatever its arrays hold: as the compiler's own checks of memory see it."""
    compiler = find_compiler()
    asked = [*compiler.command, "-print-file-name=libasan.so"]
    library = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    if not Path(library).is_file():
        pytest.skip("this compiler has no AddressSanitizer")
    environ = {
        **os.environ,
        "CC": shlex.join([*compiler.command, "-fsanitize=address"]),
        "TACO_PY_CACHE_DIR": str(tmp_path),
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
    }
    words = [sys.executable, "-c", SANITISED]
    run = subprocess.run(words, env=environ, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_what_is_no_pattern_is_refused() -> None:
    given = {"A": sp.eye_array(3, format="csr"), "B": sp.eye_array(3, format="csr")}
    kernel = tp.compile(ADD, A=tp.CSR, B=tp.CSR, C=tp.CSR)
    for pattern in (None, "C", {}):
        with pytest.raises(tp.OperandTypeError, match="Expected a pattern as assemble"):
            kernel.compute(pattern, **given)
    for pattern in (1.0, np.eye(3), sp.csr_array((4, 3)), sp.csc_array((3, 3))):
        with pytest.raises(tp.StructureError, match=r"Expected a pattern of shape \(3, 3\) in the"):
            kernel.compute(pattern, **given)
    found = kernel.compute(kernel.assemble(**given, threads=1), **given, threads=1)
    np.testing.assert_array_equal(found.toarray(), 2 * np.eye(3))


def test_a_row_that_is_read_again_and_again_is_read_as_it_was_written() -> None:
    """What has been read of it cannot be told, so that a coordinate given twice would pass."""
    text = "C[i,l,j] = B[i,l] * sum(k, A[i,k] * D[k,j])"
    random = np.random.default_rng(1)
    given = {
        name: tp.tensor(sp.csr_array(random.integers(1, 4, shape) * (random.random(shape) < 0.6)))
        for name, shape in (("A", (4, 5)), ("B", (4, 3)), ("D", (5, 6)))
    }
    kernel = tp.compile(text, A="ds", B="ds", D="ds", C="dss", dtypes="int64")
    pattern = kernel(**given)
    found = kernel.compute(pattern, **given)
    for one, other in zip(arrays(found), arrays(pattern), strict=True):
        np.testing.assert_array_equal(one, other)
    for data in changed(pattern.data):
        with pytest.raises(tp.StructureError):
            kernel.compute(tp.Tensor(data), **given)
