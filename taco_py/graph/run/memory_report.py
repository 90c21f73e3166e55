"""What a program holds at once, as text: told once its steps ran, of values as they are then.

memory    14.4 MB at most at once, in step 2: 7.2 MB that steps before made, 7.2 MB of its own
          apart all values of this call take 28.8 MB
order     steps 1, 3, 2, 4: as the graph has them they hold 21.6 MB between them, so 14.4 MB
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from codegen.records import dataclass
from taco_py.graph.run.graph_program import GraphProgram, KernelRun, NumpyRun
from taco_py.graph.run.order_of_steps import bytes_of
from taco_py.graph.view_operators import is_view
from taco_py.language.diagnostics.memory_errors import bytes_text


@dataclass(frozen=True, slots=True)
class StepMemory:
    """Bytes at a step: of values that steps before made, its own at once, its own all together."""

    number: int
    earlier: int
    peak: int
    total: int


@dataclass(slots=True, eq=False)
class MemorySeen:
    """What steps hold, noted one by one while they run.

    sizes  the bytes of the values that exist, which steps before made
    """

    program: GraphProgram
    sizes: dict[str, int] = field(default_factory=dict)
    steps: list[StepMemory] = field(default_factory=list)

    def note(self, number: int, step: Any, before: Mapping[str, Any], last: Any) -> None:
        """Note the memory of a step that ran, given all values after it."""
        earlier = sum(self.sizes.values())
        parts = step.joins.parts if isinstance(step, KernelRun) else ()
        results = {
            name: _new_bytes(step, before[name])
            for name in step.outputs
            if name in before and name not in parts
        }
        peak = total = sum(results.values())
        if isinstance(step, KernelRun):
            peak, total = (max(peak, size) for size in step.peak(self.program.graph, before))
        self.steps.append(StepMemory(number, earlier, peak, total))
        self.sizes |= results
        for name in last:
            self.sizes.pop(name, None)

    def describe(self) -> Iterator[str]:
        """Say at which step memory is highest, and how much the order of steps saves."""
        if not self.steps:
            return
        most = max(self.steps, key=lambda step: step.earlier + step.peak)
        where = f", in step {most.number}" if len(self.steps) > 1 else ""
        before = f"{bytes_text(most.earlier)} that steps before made, " if most.earlier else ""
        parts = f": {before}{bytes_text(most.peak)} of its own" if before else ""
        yield f"memory    {bytes_text(most.earlier + most.peak)} at most at once{where}{parts}"
        total = sum(step.total for step in self.steps)
        yield f"          each value in memory of its own would take {bytes_text(total)}"
        order = self.program.order
        if order is not None and order.peak < order.as_given:
            numbers = ", ".join(str(number + 1) for number in order.numbers)
            yield (
                f"order     steps {numbers} of the graph: values between them take "
                f"{bytes_text(order.peak)}, as written {bytes_text(order.as_given)}"
            )


def _new_bytes(step: Any, value: Any) -> int:
    """Return the bytes that the value of a step takes; none of views."""
    return 0 if isinstance(step, NumpyRun) and is_view(step.node) else bytes_of(value)
