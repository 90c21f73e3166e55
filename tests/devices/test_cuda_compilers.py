"""CUDA text to binaries: nvcc and NVRTC, their reports, and what is kept of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codegen.devices.cuda import driver_library
from codegen.devices.cuda.binaries import CudaBinaries, compile_report
from codegen.devices.cuda.cuda_streams import LEGACY
from codegen.devices.cuda.device_facts import ATTRIBUTES
from codegen.devices.cuda.driver_errors import REMEDIES, STICKY
from codegen.devices.cuda.parameter_types import KINDS
from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.cuda.cuda_compilers import CudaCompiler, nearest
from codegen.toolchain.cuda.find_compiler import find_cuda_compiler
from codegen.toolchain.cuda.nvcc import Nvcc, find_nvcc
from codegen.toolchain.cuda.nvrtc import find_nvrtc
from codegen.toolchain.cuda.ptxas_report import KernelReport, parse_report
from codegen.toolchain.errors import (
    CompileError,
    KernelCacheWarning,
    NoCompilerError,
    ToolchainError,
)
from codegen.toolchain.store import Store
from tests.devices.fake_driver import SCALE, FakeCompiler, FakeDriver, with_scale
from tests.devices.kernels import CASES

TEXT = """
#include <stdint.h>
extern "C" __global__ void __launch_bounds__(128) turn(int32_t n, const float *x, float *y)
{
    __shared__ float tile[128];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[127 - threadIdx.x] * n;
}

extern "C" __global__ void stack(int n, double *y)
{
    double a[200];
    for (int i = 0; i < 200; i++)
        a[(i * n) % 200] = i * y[i];
    for (int i = 0; i < 200; i++)
        y[i] += a[(i * 7 + n) % 200];
}
"""
# More values at once than registers.
SPILL = (
    'extern "C" __global__ void __launch_bounds__(1024) spill(double *x) {\n'
    + "".join(f"    double v{i} = x[{i} * 1024 + threadIdx.x];\n" for i in range(64))
    + "    __syncthreads();\n"
    + "".join(f"    x[{(i * 37) % 64} * 1024 + threadIdx.x] = v{i} * v{63 - i};\n"
              for i in range(64))
    + "}\n"
)  # fmt: skip


def _nvcc() -> CudaCompiler:
    found = find_nvcc()
    if found is None:
        pytest.skip("no nvcc on the PATH: nothing is compiled for a GPU here")
    return found


def _nvrtc() -> CudaCompiler:
    found = find_nvrtc()
    if found is None:
        pytest.skip("no library of NVRTC: pip install 'tacopy[cuda]'")
    return found


@pytest.fixture(params=[_nvcc, _nvrtc], ids=["nvcc", "nvrtc"])
def compiler(request: pytest.FixtureRequest) -> Any:
    return request.param()


PRINTED = """\
ptxas info    : 0 bytes gmem, 64 bytes cmem[3]
ptxas info    : Compiling entry function 'm' for 'sm_80'
ptxas info    : Function properties for helper
    16 bytes stack frame, 99 bytes spill stores, 99 bytes spill loads
ptxas info    : Function properties for m
    1600 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 32 registers, used 2 barriers, 1600 bytes cumulative stack size, \
512+16 bytes smem, 368 bytes cmem[0], 16 bytes cmem[2]
ptxas info    : Compile time = 9.559 ms
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 12 registers
"""


def test_reports_are_read() -> None:
    assert parse_report(PRINTED) == (
        KernelReport("m", "sm_80", 32, 512, 8, 12, 1600, 2, 384),
        KernelReport("k", "sm_90a", 12, 0, 0, 0, 0),
    )
    assert parse_report(PRINTED)[0].spills == 20
    assert parse_report("") == ()


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_what_kernels_take(compiler: CudaCompiler, architecture: str, cache: KernelCache) -> None:
    found = compile_report(cache, TEXT, architecture, compiler=compiler)
    assert set(found) == {"turn", "stack"}
    turn, stack = found["turn"], found["stack"]
    assert (turn.architecture, turn.shared_bytes, turn.barriers) == (architecture, 512, 1)
    assert 4 < turn.registers < 64
    assert (turn.spills, turn.stack) == (0, 0)
    assert (stack.stack, stack.shared_bytes, stack.spills) == (1600, 0, 0)
    spill = compile_report(cache, SPILL, architecture, compiler=compiler)["spill"]
    assert spill.registers <= 64
    assert spill.spill_stores > 0
    assert spill.spill_loads > 0


def test_nvrtc_takes_all_texts_of_the_emulated_device(cache: KernelCache) -> None:
    for case in CASES:
        reports = compile_report(cache, case.text, "sm_90", compiler=_nvrtc())
        assert reports[case.name].spills == 0


HALF = """
#include <cuda_fp16.h>
extern "C" __global__ void halves(const __half *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = __half2float(x[i]);
}
"""


def test_headers_of_cuda_are_there(compiler: CudaCompiler, cache: KernelCache) -> None:
    assert compile_report(cache, HALF, "sm_90", compiler=compiler)["halves"].spills == 0


def test_sizes_of_parameters_are_the_compilers(compiler: CudaCompiler, cache: KernelCache) -> None:
    names = sorted(set(KINDS) - {"_Bool", "ssize_t", "ptrdiff_t"})
    checks = [f'static_assert(sizeof({name}) == {KINDS[name][1]}, "{name}");' for name in names]
    signs = [
        f'static_assert((({name})-1 < ({name})0) == {int(KINDS[name][0] == 1)}, "{name}");'
        for name in names
        if KINDS[name][0] in (1, 2)
    ]
    text = "#include <cuda_fp16.h>\n#include <stdint.h>\n" + "\n".join([*checks, *signs]) + SCALE
    assert "scale" in compile_report(cache, text, "sm_90", compiler=compiler)


def test_binaries_are_kept(compiler: CudaCompiler, cache: KernelCache) -> None:
    binary = CudaBinaries(cache, compiler).get(TEXT, "sm_90")
    assert binary.image[:4] in (b"\x50\xed\x55\xba", b"\x7fELF")  # a fat binary, or a cubin
    assert b"turn" in binary.image
    report = binary.report("turn")
    assert report is not None
    assert report.shared_bytes == 512
    assert binary.report("other") is None


def test_later_architectures_have_ptx(
    compiler: CudaCompiler, tmp_path: Path, cache: KernelCache
) -> None:
    """Of one that the compiler does not have yet, the driver compiles the nearest one's PTX."""
    compiled = compiler.compile(TEXT, "sm_199", (), tmp_path)
    assert compiled.architecture != "sm_199"
    assert compiled.reports == ()
    if isinstance(compiler, Nvcc) and (program := shutil.which("cuobjdump")):
        image = tmp_path / "new.fatbin"
        image.write_bytes(CudaBinaries(cache, compiler).get(TEXT, "sm_90").image)
        done = subprocess.run(
            [program, "-lelf", "-lptx", str(image)], capture_output=True, text=True, check=True
        )
        assert "sm_90.cubin" in done.stdout
        assert "sm_90.ptx" in done.stdout


def test_text_that_is_wrong(compiler: CudaCompiler, cache: KernelCache) -> None:
    with pytest.raises(CompileError) as caught:
        compile_report(cache, TEXT.replace("tile[127", "tiles[127"), "sm_90", compiler=compiler)
    said = str(caught.value)
    assert f"Expected {'nvcc' if isinstance(compiler, Nvcc) else 'NVRTC'} to accept" in said
    assert '"tiles" is undefined' in said
    assert Path(caught.value.source).read_text().count("tiles[127") == 1
    with pytest.raises(ToolchainError, match="an architecture like sm_90, found 'hopper'"):
        compile_report(cache, TEXT, "hopper", compiler=compiler)
    with pytest.raises(CompileError):
        compile_report(cache, TEXT, "sm_10", compiler=compiler)


def test_options_are_the_compilers(compiler: CudaCompiler, cache: KernelCache) -> None:
    few = compile_report(cache, SPILL, "sm_90", ("-maxrregcount=32",), compiler)["spill"]
    more = compile_report(cache, SPILL, "sm_90", (), compiler)["spill"]
    assert few.registers <= more.registers
    with pytest.raises(CompileError):
        compile_report(cache, TEXT, "sm_90", ("-no-such-option",), compiler)


# -------------------------------------------------------------------- without a compiler


def test_kept_binaries_need_no_compilation(tmp_path: Path) -> None:
    compiler = FakeCompiler()
    store = Store(tmp_path / "own" / "cache")
    first = CudaBinaries(KernelCache(store=store), compiler).get(SCALE, "sm_80")
    again = CudaBinaries(KernelCache(store=store), compiler)
    assert again.get(SCALE, "sm_80") == first
    assert len(compiler.texts) == 1
    again.get(SCALE, "sm_90")
    again.get(SCALE, "sm_80", ("-lineinfo",))
    again.get(SCALE + "\n", "sm_80")
    compiler.identity = "test 2"
    again.get(SCALE, "sm_80")
    assert len(compiler.texts) == 5


def test_kept_binaries_that_others_may_have_written_are_not_loaded(tmp_path: Path) -> None:
    compiler = FakeCompiler()
    store = Store(tmp_path / "own" / "cache")
    first = CudaBinaries(KernelCache(store=store), compiler).get(SCALE, "sm_80")
    (image,) = store.folder.glob("*.fatbin")
    image.write_bytes(b"something else")
    with pytest.warns(KernelCacheWarning, match="is damaged: its SHA-256"):
        assert CudaBinaries(KernelCache(store=store), compiler).get(SCALE, "sm_80") == first
    (image,) = store.folder.glob("*.fatbin")
    image.chmod(0o666)
    with pytest.warns(KernelCacheWarning, match="may be written by others"):
        store = Store(tmp_path / "own" / "cache")
        assert CudaBinaries(KernelCache(store=store), compiler).get(SCALE, "sm_80") == first
    assert len(compiler.texts) == 3
    store.clear()
    assert not list(store.folder.glob("*.fatbin"))


def test_the_nearest_architecture() -> None:
    assert nearest("sm_90", (75, 80, 90, 100)) == 90
    assert nearest("sm_90a", (75, 80, 90)) == 90
    assert nearest("sm_89", (75, 80, 90)) == 80
    assert nearest("sm_70", (75, 80)) is None


def test_where_compilers_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "toolkit" / "bin"
    folder.mkdir(parents=True)
    program = folder / "nvcc"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for environ in (
        {"NVCC": str(program)}, {"PATH": str(folder)}, {"CUDA_HOME": str(folder.parent)},
        {"CUDA_PATH": str(folder.parent)},
    ):  # fmt: skip
        found = find_nvcc({"PATH": "", **environ})
        assert found is not None
        assert found.path == str(program)
        assert find_cuda_compiler({"PATH": "", **environ}) == found
    with pytest.raises(NoCompilerError, match="NVCC to name nvcc, found '/nowhere/nvcc'"):
        find_nvcc({"NVCC": "/nowhere/nvcc"})
    with pytest.raises(NoCompilerError, match="TACO_PY_NVRTC to name the library of NVRTC"):
        find_nvrtc({"TACO_PY_NVRTC": "libc.so.6"})
    monkeypatch.setattr("codegen.toolchain.cuda.find_compiler.find_nvcc", lambda environ: None)
    monkeypatch.setattr("codegen.toolchain.cuda.find_compiler.find_nvrtc", lambda environ: None)
    with pytest.raises(NoCompilerError, match=r"Expected a compiler of CUDA.*\n.*tacopy\[cuda\]"):
        find_cuda_compiler()


def test_what_nvcc_makes_is_what_the_driver_is_given(fake: FakeDriver) -> None:
    """All of the way but the GPU: the text, nvcc's binary, the launch."""
    with_scale(fake)
    device = fake.device(compiler=_nvcc())
    module = device.load(SCALE)
    report = module.binary.report("scale")
    assert report is not None
    assert report.architecture == device.facts.architecture
    assert module.kernels == ("scale",)


def _header() -> tuple[str, Path]:
    """gcc, and the folder of the toolkit's headers."""
    nvcc, gcc = find_nvcc(), shutil.which("gcc")
    roots = [] if nvcc is None else [Path(nvcc.path).resolve().parent.parent]
    roots += sorted(Path("/usr/local").glob("cuda*"))
    found = [root / "include" for root in roots if (root / "include" / "cuda.h").exists()]
    if not found or gcc is None:
        pytest.skip("no cuda.h or no gcc: the declarations are compared where they are")
    return gcc, found[0]


def _accepts(gcc: str, folder: Path, include: Path, text: str) -> str:
    """What gcc says of `text` behind cuda.h; "" where it accepts it."""
    (folder / "both.c").write_text(f"#include <cuda.h>\n{text}\n")
    command = [gcc, "-fsyntax-only", f"-I{include}", str(folder / "both.c")]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_declarations_are_those_of_cuda(tmp_path: Path) -> None:
    """A function that is declared twice is an error of C where its types differ."""
    gcc, include = _header()
    ours = Path(driver_library.__file__).parent / "cuda_driver.h"
    lines = [line for line in ours.read_text().splitlines() if not line.startswith("typedef")]
    text = "\n".join(lines)
    assert text.count("CUresult cu") > 30
    assert _accepts(gcc, tmp_path, include, text) == ""
    wrong = text.replace(
        "cuMemAlloc_v2(CUdeviceptr *, size_t)", "cuMemAlloc_v2(CUdeviceptr *, int)"
    )
    assert "conflicting types" in _accepts(gcc, tmp_path, include, wrong)


def test_numbers_are_those_of_cuda(tmp_path: Path) -> None:
    gcc, include = _header()
    header = (include / "cuda.h").read_text()
    numbers = {f"CU_DEVICE_ATTRIBUTE_{name}": value for name, value in ATTRIBUTES.items()}
    numbers |= {
        "CUDA_ERROR_OUT_OF_MEMORY": 2,
        "CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK": 0, "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES": 1,
        "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES": 3, "CU_FUNC_ATTRIBUTE_NUM_REGS": 4,
        "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES": 8, "CU_EVENT_DISABLE_TIMING": 2,
        "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL": 9, "CU_POINTER_ATTRIBUTE_CONTEXT": 1,
        "CU_JIT_ERROR_LOG_BUFFER": 5,
        "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES": 6, "CU_STREAM_DEFAULT": 0,
    }  # fmt: skip
    numbers |= {"(unsigned long)CU_STREAM_LEGACY": LEGACY}
    checks = [f'_Static_assert({name} == {value}, "{name}");' for name, value in numbers.items()]
    assert _accepts(gcc, tmp_path, include, "\n".join(checks)) == ""
    known = {int(number) for number in re.findall(r"CUDA_ERROR_\w+\s*=\s*(\d+)", header)}
    assert known >= set(REMEDIES) | STICKY
