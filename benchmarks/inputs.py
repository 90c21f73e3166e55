"""Matrices and tensors to measure on: generated ones, and real ones where a data folder lies at
hand.

Real data is looked for in `shared/data` beside the repository or beside a folder above it. It is
for measurement only and no part of the project; without it the benchmarks run on generated inputs.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

from taco_py.tool.inputs import pde27, poisson, rmat, tensor_coordinates, uniform

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 6
SpMatrix = Any
Tensor = tuple[Any, Any, tuple[int, ...]]


def matrices() -> Iterator[tuple[str, SpMatrix]]:
    """Names and CSR matrices of float64 with int32 indices: four made here, then the largest real
    ones.
    """
    yield "pde27 (60 cubed)", pde27(60)
    yield "poisson (700 squared)", poisson(700)
    yield "uniform (200k, 10 a row)", uniform(200_000, 200_000, 10)
    yield "rmat (scale 16)", rmat(16, 10)
    loader = shared_loader()
    if loader is not None:
        for name in loader.names("matrix")[:LARGEST]:
            yield name, sp.csr_array(loader.matrix(name).astype(np.float64))


def tensors() -> Iterator[tuple[str, Tensor]]:
    """Names and order-3 tensors: coordinates (nnz, 3), values, shape."""
    for name, skew in (("uniform", 0.0), ("skew", 2.0)):
        shape = (2000, 2000, 2000)
        coordinates, values = tensor_coordinates(shape, 1_000_000, skew)
        yield name, (np.stack(coordinates, axis=1), values, shape)
    loader = shared_loader()
    if loader is not None:
        for name in loader.names("tensor"):
            coordinates, values, shape = loader.tensor(name)
            if len(shape) == 3:
                yield name, (coordinates, values, shape)


def shared_loader() -> ModuleType | None:
    """The data folder's own reader, or None where there is no such folder."""
    for folder in ROOT.parents:
        path = folder / "shared" / "data" / "load.py"
        if path.exists():
            spec = importlib.util.spec_from_file_location("shared_data_load", path)
            if spec is not None and spec.loader is not None:
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
    return None
