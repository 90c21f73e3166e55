"""Load one element in place of reducing those whose index is a value of the slab.

over j: v = load X[i,j]; p = position j; e = equal p l; w = where e v 0; r = reduce add w
→  once: v = pick X[i,j] where j is l else 0; r = add 0 v

(The sum of a product with a Kronecker delta is the element that the delta selects.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from codegen.names import Names
from taco_py.compiler.dataflow.nodes import (
    Compute,
    Dataflow,
    Instruction,
    Load,
    ParallelMap,
    Pass,
    Pick,
    Reduce,
    Role,
    Store,
    value_made,
    values_read,
)
from taco_py.language.notation.nodes import Literal
from taco_py.language.notation.operators import POSITION


def pick_elements(graph: Dataflow) -> Dataflow:
    """Return a graph with single loads in place of all such reductions."""
    return replace(graph, maps=tuple(_with_picks(graph, map) for map in graph.maps))


def _with_picks(graph: Dataflow, map: ParallelMap) -> ParallelMap:
    dtypes: dict[str, np.dtype[np.generic]] = {}
    names = Names(value for one in map.passes for step in one.body if (value := value_made(step)))
    blocks = {index.name for index in map.slab}  # of which a slab reduces a part alone
    passes: list[Pass] = []
    for one in map.passes:
        code = {value: step for step in one.body if (value := value_made(step))}
        is_full = len(one.over) == 1 and one.over[0] not in blocks
        for step in one.body if is_full else ():
            if isinstance(step, Reduce):
                selected = _picked(graph, one.over[0], code, step, dtypes, names)
                if selected is not None:
                    passes.append(selected)
                    one = _without(one, step)
        passes.append(one)
        dtypes.update((name, np.dtype(step.dtype)) for name, step in _values(code))
    return replace(map, passes=tuple(one for one in passes if one.body))


def _values(
    code: Mapping[str, Instruction],
) -> Iterator[tuple[str, Load | Pick | Compute | Reduce]]:
    for name, step in code.items():
        if isinstance(step, Load | Pick | Compute | Reduce):
            yield name, step


def _call(
    code: Mapping[str, Instruction], value: str | Literal, name: str
) -> tuple[str | Literal, ...] | None:
    """Return the arguments of a value that an operator of a name makes; None of another one."""
    step = code.get(value) if isinstance(value, str) else None
    return step.args if isinstance(step, Compute) and step.operator.name == name else None


def _label(
    index: str,
    code: Mapping[str, Instruction],
    step: Reduce,
    dtypes: Mapping[str, np.dtype[np.generic]],
) -> str | None:
    """Return the value that a reduction wants its index to be; None where it reduces others too."""
    choice = _call(code, step.arg, "where")
    if choice is None or not _is_identity(step, choice[2]):
        return None
    compared = _equal(code, choice[0])
    for one, other in (compared, compared[::-1]) if compared else ():
        position = _call(code, one, POSITION.name)
        vector = code.get(position[0]) if position and isinstance(position[0], str) else None
        if not isinstance(vector, Load) or vector.indices != (index,):
            continue
        if isinstance(other, str) and other in dtypes and _counts(dtypes[other]):
            return other
    return None


def _equal(
    code: Mapping[str, Instruction], condition: str | Literal
) -> Sequence[str | Literal] | None:
    """Return the two values that a condition compares; None where it compares none."""
    compared = _call(code, condition, "not_equal")
    if compared is not None and not isinstance(compared[1], str) and compared[1].value == 0:
        condition = compared[0]
    return _call(code, condition, "equal")


def _counts(dtype: np.dtype[np.generic]) -> bool:
    """Tell whether all numbers of a type are integers of 64 bits."""
    return dtype.kind == "i" or (dtype.kind == "u" and dtype.itemsize < 8)


def _is_identity(step: Reduce, number: str | Literal) -> bool:
    identity = step.operator.identity_of(np.dtype(step.dtype))
    return not isinstance(number, str) and identity is not None and number.value == identity


def _picked(
    graph: Dataflow,
    index: str,
    code: Mapping[str, Instruction],
    step: Reduce,
    dtypes: Mapping[str, np.dtype[np.generic]],
    names: Names,
) -> Pass | None:
    """Return the pass that picks the one element of a reduction; None where it reduces others, or
    values that are computed.

    dtypes  of the values that passes before have made
    """
    label = _label(index, code, step, dtypes)
    if label is None:
        return None
    choice = _call(code, step.arg, "where")
    assert choice is not None
    _, value, otherwise = choice
    assert not isinstance(otherwise, str)  # an identity, as `_label` looks
    element = code.get(value) if isinstance(value, str) else None
    if not isinstance(element, Load) or index not in element.indices:
        return None
    if graph.buffer(element.buffer).role is not Role.OPERAND or element.dtype != step.dtype:
        return None
    single = names.fresh(element.value)
    pick = Pick(single, element.dtype, element.buffer, element.indices, index, label, otherwise)
    combined = Compute(step.value, step.dtype, step.operator, (otherwise, single))
    return Pass((), (pick, combined))


def _without(one: Pass, step: Reduce) -> Pass:
    """Return a pass with loops without a reduction, nor values that it alone reads."""
    live: set[str] = set()
    body: list[Instruction] = []
    for other in reversed(one.body):
        if other != step and (isinstance(other, Reduce | Store) or value_made(other) in live):
            live |= {*values_read(other)}
            body.append(other)
    return replace(one, body=tuple(reversed(body)))
