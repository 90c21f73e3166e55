"""What a first step of training compiles: shared functions and equal kernels once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

STEP = """
import json
import numpy as np
from codegen.runtime import kernel_cache
from codegen.runtime.kernel_form import form_of
import taco_py as tp

units, forms = [], []
build, compile_kernel = kernel_cache.build_entry, kernel_cache.KernelCache._compile

def counted(store, key, compiler, unit, *rest):
    units.append((*unit.files[0], unit.make_late is not None))
    return build(store, key, compiler, unit, *rest)

def noted(cache, key, kernel):
    forms.append(form_of(kernel.source, kernel.names))
    return compile_kernel(cache, key, kernel)

kernel_cache.build_entry, kernel_cache.KernelCache._compile = counted, noted

def loss(W1, b1, W2, b2, W3, b3, X, y):
    H = tp.nn.relu(tp.nn.relu(X @ W1 + b1) @ W2 + b2)
    return tp.nn.cross_entropy(H @ W3 + b3, y)

rng, sizes, parameters = np.random.default_rng(0), (96, 128, 160, 10), {}
for n in (1, 2, 3):
    parameters[f"W{n}"] = rng.normal(0, 0.1, sizes[n - 1 : n + 1]).astype("f4")
    parameters[f"b{n}"] = np.zeros(sizes[n], "f4")
step = tp.train_step(loss, rate=1e-3)
X, y = rng.random((512, 96), "f4"), rng.integers(0, 10, 512)
step(step.begin(parameters), X=X, y=y)
print(json.dumps([units, len(forms), len(set(forms))]))
"""


def test_what_many_kernels_have_is_compiled_once(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", STEP],
        env={**os.environ, "TACO_PY_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    units, kernels, forms = json.loads(done.stdout)
    files = [name for name, _, _ in units]
    tiles = [text for name, text, _ in units if name == "shared.c"]
    linked = [name for name, _, shares in units if shares]
    assert len(tiles) == len(set(tiles)) <= 2, "tiles of each shape once"
    assert len(linked) >= 3 and len(linked) > len(tiles), "products are linked to them"
    assert files.count("entry.c") == forms < kernels, "a compiler for each form"
