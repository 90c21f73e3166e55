"""Programs of `tp.program` in a traced function: one operation each, on copies of its arrays.

smooth(A=x, B=y, T=2)   →   program(x, y), of which x and y are parts from then on
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taco_py.calls.programs.program_call import Program
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.traced_line import refuse


def program(
    recorder: Recorder, called: Program, operands: Mapping[str, Any], threads: Any = None
) -> None:
    """Note a program; from then on its changed arrays stand for its results.

    Raises OperandTypeError where it would change an array that is not the function's own.
    """
    traced_class = recorder.operations["TracedArray"]
    for name in sorted(called.changed):
        operand = operands.get(name)
        if not isinstance(operand, traced_class) or not operand.owned:
            refuse(
                f"Expected {name}, which the program changes, to be made in the traced function, "
                "found another array",
                f"pass a copy: {name} = {name}.copy(), or np.zeros_like({name})",
            )
        if [value for value in operands.values() if value is operand] != [operand]:
            refuse(f"Expected {name}, which changes, once, found it twice", "pass a copy")
    names = [name for name in called.operands if name in operands]
    inputs = [recorder.name_of(operands[name]) for name in names]
    attributes = {"text": called.text, "names": tuple(names), "threads": threads}
    outputs = sorted(called.changed)
    facts = [recorder.facts[operands[name].name] for name in outputs]
    for name, fact in zip(outputs, facts, strict=True):
        result = recorder.add("program", inputs, fact.shape, fact.dtype, part=name, **attributes)
        operands[name].name = result.name
