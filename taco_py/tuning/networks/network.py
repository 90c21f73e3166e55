"""A network that prices plans, and its file of arrays: read as data, checked, run by NumPy alone.

tree   recursive, over the loops of a plan (`tree_lstm`)
graph  over the operations of each kernel (`graph_sage`)
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import FileFormatError
from taco_py.tuning.networks import graph_sage, tree_lstm
from taco_py.tuning.networks.array_operations import NUMPY, Array, Arrays, Operations
from taco_py.tuning.networks.nest_vectors import LOOP_NAMES, STATEMENT_NAMES
from taco_py.tuning.networks.plan_arrays import PlanForms, graph_arrays, tree_arrays
from taco_py.tuning.networks.tree_and_graph import KERNEL_NAMES, NODE_NAMES
from taco_py.tuning.prices.model_file import ModelFile, Origin, origin_in, write_model_file
from taco_py.tuning.prices.price_model import LearnedModel

VERSION = 1


@dataclass(frozen=True, slots=True)
class Architecture:
    """What networks of a kind have in common.

    names    of the features that it reads: a file has those that it was trained on
    shapes   of its weights by name
    forward  log2 of the microseconds of plans, from weights and the arrays of plans
    arrays   of plans
    statistics  means and spreads of features in training data, which are weights too
    """

    names: tuple[str, ...]
    shapes: Callable[[], dict[str, tuple[int, ...]]]
    forward: Callable[[Arrays, Arrays, Operations], Array]
    arrays: Callable[[PlanForms], dict[str, Any]]
    statistics: Callable[[PlanForms], dict[str, Any]]


ARCHITECTURES: Mapping[str, Architecture] = {
    "tree": Architecture(
        (*STATEMENT_NAMES, *LOOP_NAMES, *KERNEL_NAMES),
        tree_lstm.shapes, tree_lstm.forward, tree_arrays, tree_lstm.statistics_of,
    ),
    "graph": Architecture(
        (*NODE_NAMES, *KERNEL_NAMES),
        graph_sage.shapes, graph_sage.forward, graph_arrays, graph_sage.statistics_of,
    ),
}  # fmt: skip
"""The kinds of networks by name."""


@dataclass(frozen=True, slots=True, eq=False)
class Network(LearnedModel):
    """A network with its weights.

    kind    a name of `ARCHITECTURES`
    origin  of the times that it was trained on
    digest  of its weights
    """

    kind: str
    weights: Mapping[str, NDArray[np.float32]]
    origin: Origin = Origin()
    digest: str = ""

    def __post_init__(self) -> None:
        if not self.digest:
            numbers = b"".join(self.weights[name].tobytes() for name in sorted(self.weights))
            digest = hashlib.sha256(self.kind.encode() + numbers).hexdigest()[:16]
            object.__setattr__(self, "digest", digest)

    def seconds(self, plans: PlanForms) -> NDArray[np.float64]:
        """Return the expected seconds of plans."""
        architecture = ARCHITECTURES[self.kind]
        logs = architecture.forward(self.weights, architecture.arrays(plans), NUMPY)
        seconds: NDArray[np.float64] = np.exp2(np.clip(logs.astype(float), -20.0, 40.0)) * 1e-6
        return seconds

    def save(self, path: str | Path) -> None:
        """Write the network to a file of arrays."""
        names = list(ARCHITECTURES[self.kind].names)
        words = {"version": VERSION, "kind": self.kind, "features": names}
        arrays = {f"weight {name}": array for name, array in self.weights.items()}
        write_model_file(path, {**words, "origin": asdict(self.origin)}, arrays)


def network_in(file: ModelFile) -> Network:
    """Return the network of a file that `Network.save` wrote.

    Raises FileFormatError for a file of something else, or of a release with other features.
    """
    kind, version = file.words.get("kind"), file.words["version"]
    if version != VERSION or not isinstance(kind, str) or kind not in ARCHITECTURES:
        raise FileFormatError(
            f"Expected version {VERSION} of a network, {' or '.join(ARCHITECTURES)}, found "
            f"version {version!r:.20} of {kind!r:.20} in {file.path}",
            hint="train it again",
        )
    architecture = ARCHITECTURES[kind]
    file.check_features(architecture.names)
    weights = _checked_weights(file.arrays, architecture, file.path)
    return Network(kind, weights, origin_in(file))


def _checked_weights(
    arrays: Mapping[str, NDArray[Any]], architecture: Architecture, path: str
) -> dict[str, NDArray[np.float32]]:
    """Return the weights of a file. Raises FileFormatError for shapes and numbers that are none."""
    weights = {}
    for name, shape in architecture.shapes().items():
        array = arrays.get(f"weight {name}")
        if array is None or array.shape != shape or array.dtype != np.float32:
            raise FileFormatError(f"Expected {shape} numbers of float32 in {name} of {path}")
        if not np.isfinite(array).all() or (name.endswith(".spread") and (array <= 0).any()):
            raise FileFormatError(f"Expected numbers in {name} of {path}, found infinity or NaN")
        weights[name] = array
    return weights
