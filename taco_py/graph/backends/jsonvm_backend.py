"""The backend `jsonvm`: regions as JSON, interpreted by NumPy in another process.

It stands for an accelerator: what it computes with has to be sent to it, and what it knows of a
region is its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from codegen.records import dataclass
from codegen.runtime.child_process import ChildEndedError, ChildProcess, ChildRestartedError
from taco_py.graph.backends.backend import Backend, Facts, ProcessDiedError
from taco_py.graph.backends.interpret_region import function_of
from taco_py.graph.backends.plain_products import products_of
from taco_py.graph.nodes import Graph, Node
from taco_py.graph.plain_graphs import plain_graph

CALLS = (
    "reshape", "concatenate", "slice", "index", "cumsum", "cumprod", "sort", "argsort", "argmax",
    "argmin", "broadcast_to",
)  # fmt: skip
"""What NumPy computes of graphs and it does, too."""

LAUNCH = 2e-4
"""Seconds of a question and its answer. Measured: 80 to 200 µs on two cores."""
BYTES_PER_SECOND = 1.0e9
"""Through pipes. Measured: 0.9 to 1.6e9."""
PRODUCT_SECONDS = 5e-11
ELEMENT_SECONDS = 1.5e-9
"""A product in a contraction, and an element that is computed. Measured: 3e-11, and 1 to 10 ns."""


@dataclass(slots=True, eq=False)
class _Compiled:
    """A region's text, and the number that the process knows it by since its start."""

    text: Mapping[str, Any]
    number: int
    sent: int = -1


@dataclass(slots=True, eq=False)
class JsonVm:
    """The process with the regions that it was sent."""

    child: ChildProcess = field(
        default_factory=lambda: ChildProcess("taco_py.graph.backends.jsonvm_worker:answer")
    )
    regions: int = 0

    def codegen(self, region: Graph, constants: Mapping[str, Any]) -> _Compiled:
        """Write a region as JSON and send it."""
        self.regions += 1
        compiled_region = _Compiled(plain_graph(region), self.regions)
        self._send(compiled_region)
        return compiled_region

    def runtime(self, compiled: _Compiled, arrays: Sequence[Any]) -> Sequence[Any]:
        """Compute a region of arrays."""
        while True:
            try:
                started = self._send(compiled)
                return self._ask({"do": "run", "region": compiled.number}, arrays, started)
            except ChildRestartedError:
                continue  # another thread did so: the new process has to be sent the region, too

    def _send(self, compiled: _Compiled) -> int:
        """Send a region to the process unless it has it; which start of the process that is."""
        started = self.child.start()
        if compiled.sent != started:
            head = {"do": "compile", "region": compiled.number, "graph": compiled.text}
            self._ask(head, (), started)
            compiled.sent = started
        return started

    def _ask(
        self, head: Mapping[str, Any], arrays: Sequence[Any], started: int | None = None
    ) -> Sequence[Any]:
        try:
            reply, results = self.child.ask(head, arrays, started)
        except ChildRestartedError:
            raise
        except ChildEndedError as error:
            raise ProcessDiedError(str(error)) from error
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return results

    def close(self) -> None:
        """End the process; it is started again when it is needed."""
        self.child.close()


def supports(node: Node, facts: Facts) -> bool:
    """Tell whether all that a primitive reads is dense, and the interpreter has it."""
    if any(facts[name].sparsity for name in node.inputs):
        return False
    if node.operator == "map":
        return function_of(node.get("function")) is not None
    if node.operator == "contract":  # a mode of size 1 may be in no operand
        return {*node.get("kept")} <= {label for group in node.get("labels") for label in group}
    return node.operator == "reduce" or node.get("call") in CALLS


def seconds(region: Graph, facts: Facts) -> float:
    """Return the seconds that the interpreter takes: each primitive makes an array."""
    total = 0.0
    for node in region.nodes:
        if node.operator == "contract":
            total += PRODUCT_SECONDS * products_of(node, facts)
        elif node.operator in ("map", "reduce", "numpy"):
            size = max([facts[node.name].size, *(facts[name].size for name in node.inputs)])
            total += ELEMENT_SECONDS * size
    return total


def make() -> Backend:
    """Make the backend. Its process is started with the first region."""
    return backend_of(JsonVm())


def backend_of(vm: JsonVm) -> Backend:
    """Make the backend that computes in a process."""
    return Backend(
        "jsonvm", (), supports, vm.codegen, vm.runtime, LAUNCH, BYTES_PER_SECOND, seconds,
        restart=vm.close,
    )  # fmt: skip
