"""Seconds of calls that were timed, for explain(): remembered in this process alone."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from taco_py.compiler.driver import CompiledKernel
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import TensorData


def note_seconds(
    kernels: Sequence[CompiledKernel],
    tensors: Mapping[str, TensorData],
    threads: int,
    seconds: float,
) -> None:
    """Remember the seconds of kernels on operands of these sizes."""
    KERNELS.memo.put(_key(kernels, tensors, threads), seconds)


def last_seconds(
    kernels: Sequence[CompiledKernel], tensors: Mapping[str, TensorData], threads: int
) -> float | None:
    """Return the last seconds of kernels, None where nobody has timed them."""
    seconds: float | None = KERNELS.memo.get(_key(kernels, tensors, threads))
    return seconds


def _key(
    kernels: Sequence[CompiledKernel], tensors: Mapping[str, TensorData], threads: int
) -> Hashable:
    operands = tuple((name, tensors[name].shape, tensors[name].nnz) for name in sorted(tensors))
    return ("seconds of", tuple(kernel.key for kernel in kernels), operands, threads)
