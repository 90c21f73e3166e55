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
    held: int
    own: int
    apart: int


@dataclass(slots=True, eq=False)
class MemorySeen:
    """What steps hold, noted one by one while they run.

    sizes  the bytes of the values that exist, which steps before made
    """

    program: GraphProgram
    sizes: dict[str, int] = field(default_factory=dict)
    steps: list[StepMemory] = field(default_factory=list)

    def note(self, number: int, step: Any, before: Mapping[str, Any], last: Any) -> None:
        """Note a step that ran, given the values with what it made."""
        held = sum(self.sizes.values())
        made = {n: _own_bytes(step, before[n]) for n in step.outputs if n in before}
        own = apart = sum(made.values())
        if isinstance(step, KernelRun):
            own, apart = (max(own, each) for each in step.peak(self.program.graph, before))
        self.steps.append(StepMemory(number, held, own, apart))
        self.sizes |= made
        for name in last:
            self.sizes.pop(name, None)

    def told(self) -> Iterator[str]:
        """Say where most is held, and what the order of steps saves."""
        if not self.steps:
            return
        most = max(self.steps, key=lambda each: each.held + each.own)
        where = f", in step {most.number}" if len(self.steps) > 1 else ""
        before = f"{bytes_text(most.held)} that steps before made, " if most.held else ""
        own = f": {before}{bytes_text(most.own)} of its own" if before else ""
        yield f"memory    {bytes_text(most.held + most.own)} at most at once{where}{own}"
        apart = sum(each.apart for each in self.steps)
        yield f"          each value in memory of its own would take {bytes_text(apart)}"
        order = self.program.order
        if order is not None and order.peak < order.as_given:
            numbers = ", ".join(str(number + 1) for number in order.numbers)
            yield (
                f"order     steps {numbers} of the graph: values between them take "
                f"{bytes_text(order.peak)}, as written {bytes_text(order.as_given)}"
            )


def _own_bytes(step: Any, value: Any) -> int:
    """Return the bytes of what a step made; none of views."""
    return 0 if isinstance(step, NumpyRun) and is_view(step.node) else bytes_of(value)
