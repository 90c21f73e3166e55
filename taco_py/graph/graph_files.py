"""Graphs as JSON: operators, sizes, constants, and what the function returned."""

from __future__ import annotations

import json

from taco_py.diagnostics.errors import FileFormatError
from taco_py.graph.capture.free_variables import FreeVariables
from taco_py.graph.capture.trace_function import Trace
from taco_py.graph.extents import compiled
from taco_py.graph.plain_graphs import plain, plain_graph, read, read_graph

VERSION = 1
"""Of the layout of files."""


def to_json(trace: Trace) -> str:
    """Write a trace. Raises OperandTypeError for constants that no file holds."""
    whole = {
        "taco_py graph": VERSION,
        **plain_graph(trace.graph),
        "returns": plain(trace.template),
        "holds": [
            [plain(condition), plain(value)]
            for condition, value in zip(trace.conditions, trace.expected, strict=True)
        ],
    }
    return json.dumps(whole, indent=1)


def from_json(text: str, name: str) -> Trace:
    """Read a trace that `to_json` wrote. Raises FileFormatError for another text.

    name  of the file, for the message
    """
    try:
        whole = json.loads(text)
        if whole["taco_py graph"] != VERSION:
            raise FileFormatError(
                f"Expected a graph of version {VERSION} in {name}, found another",
                hint="save it again with this version",
            )
        graph = read_graph(whole)
        conditions = tuple(read(each) for each, _ in whole["holds"])
        expected = tuple(read(each) for _, each in whole["holds"])
        names = tuple(each.name for each in graph.inputs)
        guards = compiled(conditions, names) if conditions else None
        free = FreeVariables((), ())
        return Trace(graph, read(whole["returns"]), guards, expected, conditions, free)
    except (KeyError, TypeError, ValueError, json.JSONDecodeError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(
            f"Expected a graph in {name}, found something else: {error}",
            hint='g.save("x.json") of the graph of a traced function writes one',
        ) from None
