"""A compiler of CUDA C++: nvcc of the toolkit, else NVRTC, whichever is found first.

compiler = find_cuda_compiler()
compiled = compiler.compile(text, "sm_90", (), folder)
compiled.image                       # for the driver: code of sm_90, and PTX for later ones
compiled.reports[0].registers
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from codegen.toolchain.cuda.cuda_compilers import CudaCompiler
from codegen.toolchain.cuda.nvcc import find_nvcc
from codegen.toolchain.cuda.nvrtc import find_nvrtc
from codegen.toolchain.errors import NoCompilerError


def find_cuda_compiler(environ: Mapping[str, str] = os.environ) -> CudaCompiler:
    """Find nvcc, else NVRTC. Raises NoCompilerError, with what was tried."""
    compiler = find_nvcc(environ) or find_nvrtc(environ)
    if compiler is None:
        raise NoCompilerError(
            "Expected a compiler of CUDA, found none: tried $NVCC, nvcc on PATH "
            f"({environ.get('PATH', '')}), in $CUDA_HOME, $CUDA_PATH and /usr/local/cuda, then the "
            "library NVRTC of the toolkit and of the wheel nvidia-cuda-nvrtc",
            hint="pip install 'tacopy[cuda]', or install the CUDA toolkit",
        )
    return compiler
