"""Regions that backends compute: compiled once, carried out as steps of a graph.

What fails is computed by the host, told once, and left out from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.options import CallOptions
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.tensors.tensor import Tensor
from taco_py.graph.backends.backend import Backend, ProcessDiedError
from taco_py.graph.backends.read_only import detach_results, read_only
from taco_py.graph.backends.region_graph import RegionGraph
from taco_py.graph.nodes import Graph
from taco_py.graph.run.graph_program import (
    MANY_CALLS,
    GraphProgram,
    RegionRun,
    make_program,
    places_of,
)
from taco_py.language.diagnostics.cautions import BackendWarning, caution, issue_warnings

MOST_DEATHS = 1
"""Of a backend's process after which it is restarted."""

Result = tuple[tuple[int, ...], np.dtype[Any]]
"""The shape and the type of a result."""


class WrongResultError(Exception):
    """A backend gave something else than the results of a region."""


@dataclass(slots=True, eq=False)
class OffloadedTask:
    """A region as a backend compiled it, for calls of any sizes that it was compiled for.

    options   of the calls of the host's kernels
    failed    why it is left out, "" while it is not
    compiled  what the backend made of it, with the constants' elements and the restarts then
    calls     how often the backend computed it
    """

    backend: Backend
    part: RegionGraph
    options: CallOptions = MANY_CALLS
    failed: str = ""
    compiled: tuple[Any, tuple[bytes, ...], int] | None = None
    calls: int = 0
    _host: GraphProgram | None = None

    def compute(self, arrays: Sequence[Any], results: Sequence[Result]) -> Sequence[Any]:
        """Compute the region, by the host where the backend cannot."""
        while not self.is_left_out:
            restarts = self.backend.health.restarts
            try:
                return self._by_backend(arrays, results)
            except ProcessDiedError as error:
                self._restart(error, restarts)
            except Exception as error:
                self._leave_out(error)
        return self.by_host(arrays)

    @property
    def is_left_out(self) -> bool:
        """Tell whether the host computes it."""
        return bool(self.failed or self.backend.health.out)

    def by_host(self, arrays: Sequence[Any]) -> list[Any]:
        """Compute the region by the host's kernels."""
        if self._host is None:
            self._host = make_program(self.part.graph, options=self.options)
        return self._host.run(arrays)

    def prepare(self) -> tuple[Any, tuple[bytes, ...], int]:
        """Compile the region, where it was not, its constants changed, or the backend restarted."""
        elements = tuple(map(_elements, self.part.arrays))
        compiled, restarts = self.compiled, self.backend.health.restarts
        if compiled is None or compiled[1:] != (elements, restarts):
            views = tuple(replace(e, value=read_only(e.value)) for e in self.part.graph.constants)
            graph = replace(self.part.graph, constants=views)
            code = self.backend.codegen(graph, {e.name: e.value for e in views})
            compiled = self.compiled = code, elements, restarts
        return compiled

    def _by_backend(self, arrays: Sequence[Any], results: Sequence[Result]) -> Sequence[Any]:
        inputs = [read_only(array) for array in arrays]
        outputs = [self.backend.runtime(self.prepare()[0], inputs)]
        if len(results) != 1 or not isinstance(outputs[0], np.ndarray | np.generic):
            (outputs,) = outputs
        _check(outputs, results)
        self.calls += 1
        return detach_results(outputs, arrays)

    def _restart(self, error: Exception, restarts: int) -> None:
        """Restart a backend whose process ended, or leave it out, once for all threads.

        restarts  how often it had been restarted when its process was asked
        """
        health, name = self.backend.health, self.backend.name
        with health.lock:
            if health.out or health.restarts != restarts:
                return  # another thread did
            health.deaths += 1
            if health.deaths > MOST_DEATHS:
                health.out = f"its process ended {health.deaths} times: {_line(error)}"
                tell(f"Expected the backend {name} to go on, found that {health.out}")
                return
            try:
                if self.backend.restart is not None:
                    self.backend.restart()
            except Exception as other:
                self._leave_out(other)
            health.restarts += 1

    def _leave_out(self, error: Exception) -> None:
        name, graph = self.backend.name, self.part.graph
        self.failed = _line(error)
        computed = ", ".join(node.name for node in graph.nodes)
        tell(
            f"Expected the backend {name} to compute {computed} ({places_of(graph.nodes)}), found "
            f"{self.failed}"
        )


@dataclass(slots=True, eq=False)
class OffloadedRun(RegionRun):
    """A region of a graph that a backend computes.

    results  what it has to give, for the sizes of the call
    numbers  from the graph's operands to the numbers that are inputs of the region
    """

    task: OffloadedTask
    results: tuple[Result, ...]
    numbers: Callable[..., tuple[Any, ...]] | None = None

    def run(self, graph: Graph, values: dict[str, Any]) -> None:
        """Compute the results of the region and put them among the values."""
        part = self.task.part
        arrays = [values[name] for name in part.reads]
        expected = all(
            type(value) is np.ndarray or bool(leaf.fact.sparsity) == _is_sparse(value)
            for leaf, value in zip(part.graph.inputs, arrays, strict=False)
        )
        if self.numbers is not None:
            arrays += self.numbers(*(values[leaf.name] for leaf in graph.inputs))
        task = self.task
        outputs = task.compute(arrays, self.results) if expected else task.by_host(arrays)
        for name, value in zip(self.region.outputs, outputs, strict=True):
            values[name] = value


def _is_sparse(value: Any) -> bool:
    return is_scipy_sparse(value) or isinstance(value, Tensor)


def _elements(constant: Any) -> bytes:
    return np.asarray(constant.value).tobytes()


def _check(outputs: Any, results: Sequence[Result]) -> None:
    if isinstance(outputs, str | bytes) or not isinstance(outputs, Sequence):
        raise WrongResultError(f"a result that is {type(outputs).__name__}, not a sequence")
    if len(outputs) != len(results):
        raise WrongResultError(f"{len(outputs)} results instead of {len(results)}")
    for value, (shape, dtype) in zip(outputs, results, strict=True):
        if type(value) is not np.ndarray and not isinstance(value, np.generic):
            raise WrongResultError(f"a result that is {type(value).__name__}, no array")
        if value.shape != shape:
            raise WrongResultError(f"a result of shape {value.shape} instead of {shape}")
        if value.dtype != dtype:
            raise WrongResultError(f"a result of {value.dtype} instead of {dtype}")


def _line(error: Exception) -> str:
    """Return the message of an error in one line."""
    text = str(error).splitlines()
    first = text[0] if text else ""
    return first if isinstance(error, WrongResultError) else f"{type(error).__name__}: {first}"


def tell(message: str) -> None:
    """Warn that the host computes a region in place of a backend."""
    hint = "the host computes it instead; results are as without the backend"
    issue_warnings([caution(BackendWarning, message, None, hint)])
