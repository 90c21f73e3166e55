"""What C is given for CUDA's text, and where addresses of the compiled object come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from codegen.devices.cuda_text import emulated_text, kernel_heads
from codegen.devices.device import DeviceError
from codegen.devices.emulation_library import load_library
from codegen.devices.line_table import SharedObject
from codegen.runtime.kernel_cache import KernelCache

_TEXT = r"""
// __global__ void no(int a) {
__device__ static inline float half_of(float x) { return x / 2; }

extern "C" __global__ void __launch_bounds__(128, 2)
one(int n, const float *__restrict__ x, float const w, unsigned long long *y)
{
    extern __shared__
        __align__(16) unsigned char raw[];
    __shared__ float tile[4][5];
    tile[0][0] = half_of(w);
    raw[0] = 1; /* extern "C" */
    y[n] = 3;
}

extern "C" __global__ void two(void)
{
}
"""


def test_heads_of_kernels() -> None:
    one, two = kernel_heads(_TEXT)
    assert (one.name, two.name) == ("one", "two")
    assert [name for name, _ in one.parameters] == ["n", "x", "w", "y"]
    assert one.parameters[1][1] == "const float *__restrict__"
    assert two.parameters == ()


def test_only_what_c_has_no_words_for_changes() -> None:
    lines = emulated_text(_TEXT).split('#line 1 "kernel.cu"\n')[1].split("\n")
    before = _TEXT.split("\n")
    changed = [i for i, line in enumerate(before) if line != lines[i]]
    assert [before[i].strip()[:20] for i in changed] == [
        "// __global__ void n", 'extern "C" __global_', "extern __shared__", "__align__(16) unsign",
        'raw[0] = 1; /* exter', 'extern "C" __global_',
    ]  # fmt: skip
    assert "unsigned char *raw = (unsigned char *)emulated_dynamic_shared;" in lines[7]
    assert lines[4] == "__global__ void __launch_bounds__(128, 2)"


def test_a_block_of_c_is_refused() -> None:
    with pytest.raises(DeviceError, match='extern "C" before each kernel'):
        emulated_text('extern "C" { __global__ void k() {} }')


def test_a_parameter_without_a_name_is_refused() -> None:
    with pytest.raises(DeviceError, match="a type and a name for each parameter, found 'int'"):
        kernel_heads('extern "C" __global__ void k(int) {}')


def test_lines_and_variables_of_the_object(cache: KernelCache) -> None:
    library = load_library(cache, _TEXT, ())
    (tile,) = library.shared
    assert (tile.name, tile.size) == ("tile", 80)
    assert library.constant == ()
    assert set(library.lines.lines) >= {0, 11, 13, 12}
    assert list(library.lines.addresses) == sorted(library.lines.addresses)
    assert library.lines.line_of(0) == 0


def test_what_is_no_object_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.so"
    path.write_text("nothing")
    with pytest.raises(ValueError, match="no 64-bit"):
        SharedObject(path)
