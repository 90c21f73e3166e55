"""Graphs as JSON: operators, sizes, constants, and what the function returned.

Of a gradient, or of a step of training, the primitives that compute it are kept beside the
operators of the function: these alone compute the function.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from codegen.records import dataclass
from taco_py.graph.capture.free_variables import FreeVariables
from taco_py.graph.capture.trace_function import Trace
from taco_py.graph.extents import compiled
from taco_py.graph.graph_call import GraphCall
from taco_py.graph.nodes import Graph
from taco_py.graph.plain_graphs import plain, plain_graph
from taco_py.graph.read_graphs import WrongGraphError, read_graph, read_trace
from taco_py.language.diagnostics.errors import FileFormatError

VERSION, OF_DERIVED = 1, 2
"""Of the layout of files: of a function's own graph, and of one that is derived from it."""

KEY, DERIVED = "taco_py graph", "derived"


@dataclass(frozen=True, slots=True, eq=False)
class SavedGraph:
    """What a file has: a trace, and the primitives of what was derived from it, if any was."""

    trace: Trace
    derived: Graph | None = None


def to_json(call: GraphCall) -> str:
    """Write the graph of a call as JSON.

    Raises OperandTypeError for constants that no file holds.
    """
    trace = call.trace
    record = {
        KEY: OF_DERIVED if call.is_derived else VERSION,
        **plain_graph(trace.graph),
        "returns": plain(trace.template),
        "holds": [
            [plain(condition), plain(value)]
            for condition, value in zip(trace.conditions, trace.expected, strict=True)
        ],
    }
    if call.is_derived:
        record[DERIVED] = plain_graph(call.primitives, trace.graph.constants)
    return json.dumps(record, indent=1)


def from_json(text: str, name: str) -> SavedGraph:
    """Read a text that `to_json` wrote. Raises FileFormatError for another text.

    name  of the file, for the message
    """
    try:
        record = json.loads(text)
        if not isinstance(record, Mapping) or KEY not in record:
            raise WrongGraphError(f"no {KEY!r}")
        if type(record[KEY]) is not int or record[KEY] not in (VERSION, OF_DERIVED):
            raise FileFormatError(
                f"Expected a graph of version {VERSION} or {OF_DERIVED} in {name}, found "
                f"{record[KEY]!r:.40}",
                hint="save it again with this version",
            )
        return _read(record)
    except (WrongGraphError, RecursionError, ValueError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise wrong_file(name, error) from error


def wrong_file(name: str, error: BaseException) -> FileFormatError:
    """Return the error of a file that has no graph, or one that cannot be computed."""
    what = "parts in each other without end" if isinstance(error, RecursionError) else error
    return FileFormatError(
        f"Expected a graph in {name}, found something else: {what}",
        hint='g.save("x.json") of the graph of a traced function writes one',
    )


def _read(record: Mapping[str, Any]) -> SavedGraph:
    graph, derived = read_graph(record), None
    if (record[KEY] == OF_DERIVED) != (DERIVED in record):
        raise WrongGraphError(f"version {record[KEY]} with or without {DERIVED!r}")
    if DERIVED in record:
        derived = read_graph(record[DERIVED], graph.constants)
        if derived.inputs != graph.inputs:
            raise WrongGraphError("a derived graph of other operands")
    results = graph.outputs if derived is None else derived.outputs
    template, conditions, expected = read_trace(record, graph, len(results))
    names = tuple(leaf.name for leaf in graph.inputs)
    guards = compiled(conditions, names) if conditions else None
    trace = Trace(graph, template, guards, expected, conditions, FreeVariables((), ()))
    return SavedGraph(trace, derived)
