"""What a call of a traced function computes, to look at, to keep, and to call again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from taco_py.arguments.learned_price import ANALYTIC, Price
from taco_py.graph.backends.registered import NONE, preference_of
from taco_py.graph.capture.signature_of_call import kind_of
from taco_py.graph.graph_call import GraphCall, call_of, planned_call
from taco_py.graph.graph_files import from_json, to_json, wrong_file
from taco_py.graph.graph_picture import draw_graph
from taco_py.graph.graph_report import explain_graph
from taco_py.graph.nodes import Fact, Graph
from taco_py.graph.run.graph_program import MANY_CALLS
from taco_py.graph.selection.strategies import DEFAULT, check_strategy
from taco_py.language.diagnostics.errors import (
    FileFormatError,
    InternalError,
    OperandError,
    OutOfMemoryError,
    TacoError,
)


class TracedGraph:
    """The graph of a call: its operators, its primitives, and what runs.

    waiting  chooses what runs for the first operands that it is called with, None once it has
    file     that it was read from, "" of a graph that was traced here
    """

    def __init__(
        self,
        call: GraphCall,
        operands: Sequence[Any],
        name: str,
        waiting: Callable[[Sequence[Any]], GraphCall] | None = None,
        file: str = "",
    ) -> None:
        self.call = call
        self.operands = tuple(operands)
        self.name = name
        self.waiting = waiting
        self.file = file

    @property
    def operators(self) -> Graph:
        """Return the operators that the function calls."""
        return self.call.trace.graph

    @property
    def primitives(self) -> Graph:
        """Return the primitives that they were split into."""
        return self.call.primitives

    def __call__(self, *operands: Any) -> Any:
        """Compute the graph for operands, by default for the operands of its trace.

        Raises OperandError where it was made for others, FileFormatError where it was read from a
        file and cannot be computed.
        """
        inputs = operands or self.operands
        with believed(self.file):
            self._check(inputs)
            return self._call_for(inputs).run(inputs)

    def _call_for(self, operands: Sequence[Any]) -> GraphCall:
        """Return the call, planned for operands where it waits for some."""
        if self.waiting is not None:
            self.call, self.waiting = self.waiting(operands), None
        return self.call

    def _check(self, operands: Sequence[Any]) -> None:
        inputs = self.operators.inputs
        if len(operands) != len(inputs):
            names = ", ".join(leaf.name for leaf in inputs)
            raise OperandError(
                f"Expected {len(inputs)} operands, found {len(operands)}", hint=f"pass {names}"
            )
        for leaf, value in zip(inputs, operands, strict=True):
            if not _fits(leaf.fact, value):
                raise OperandError(
                    f"Expected {leaf.name} to be {leaf.fact}, found {_describe_operand(value)}",
                    hint="trace the function again for such operands",
                )
        guards, expected = self.call.trace.guards, self.call.trace.expected
        if guards is not None and guards(*operands) != expected:
            conditions = zip(self.call.trace.conditions, expected, guards(*operands), strict=True)
            extent, required, other = next(row for row in conditions if row[1] != row[2])
            raise OperandError(
                f"Expected operands for which {extent} is {required}, found {other}",
                hint="trace the function again for such operands",
            )

    def explain(self, *operands: Any) -> str:
        """Describe the graph and its program for operands, by default the operands of its trace.

        Raises OperandError where it was made for others, or was read from a file, which has none.
        """
        inputs = operands or self.operands
        if not inputs and self.operators.inputs:
            names = ", ".join(leaf.name for leaf in self.operators.inputs)
            raise OperandError(
                "Expected operands to explain a graph for, found none: it was read from a file",
                hint=f"write g.explain({names}); print(g) shows its operators",
            )
        with believed(self.file):
            self._check(inputs)
            return explain_graph(self._call_for(inputs), inputs, self.name)

    def save(self, file: str | Path) -> None:
        """Write the graph to a file: in JSON, or as a picture in SVG.

        Raises FileFormatError for another ending.
        """
        path = Path(file)
        if path.suffix == ".svg":
            draw_graph(self.call, self.name, self.operands).save(path)
        elif path.suffix == ".json":
            path.write_text(to_json(self.call), encoding="utf-8")
        else:
            raise FileFormatError(
                f"Expected a file that ends in .json or .svg, found {path.name}",
                hint="tp.graph.load reads g.save('x.json'); g.save('x.svg') is a picture",
            )

    def _repr_svg_(self) -> str:
        """Return the picture, which notebooks show."""
        return draw_graph(self.call, self.name, self.operands).svg

    def __str__(self) -> str:
        """Write the operators, a line each."""
        return str(self.operators)


def load(
    file: str | Path,
    optimize: str = DEFAULT,
    backends: Sequence[str] = (),
    price: Price = ANALYTIC,
) -> TracedGraph:
    """Read a graph that `TracedGraph.save` wrote.

    optimize  how its kernels are chosen, as `tp.fuse` has it, for the operands of its first call
    backends  names of code generators that may compute parts of it, as `tp.fuse` has them
    price     by which plans are compared, as `tp.fuse` has it

    Raises FileFormatError for another file, ScheduleError for another `optimize`, OperandTypeError
    for another price.
    """
    path, strategy = Path(file), check_strategy(optimize)
    options = MANY_CALLS.with_price(price)
    preferred = preference_of(backends) if backends else NONE
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise wrong_file(path.name, error) from error
    with believed(path.name, reading=True):
        saved = from_json(text, path.name)
        planned: Callable[..., GraphCall] = (
            partial(call_of, saved.trace)
            if saved.derived is None
            else partial(planned_call, saved.trace, saved.derived)
        )
        plan = partial(planned, strategy=strategy, preferred=preferred, options=options)
        waiting = None if strategy == DEFAULT else plan
        call = planned(preferred=preferred, options=options)
        return TracedGraph(call, (), path.stem, waiting, path.name)


@contextmanager
def believed(file: str, reading: bool = False) -> Iterator[None]:
    """Raise FileFormatError for errors that only a file with a wrong graph causes.

    file     "" of a graph that was traced here, whose faults are ours
    reading  whether no operands are there yet, whose faults other errors say
    """
    try:
        yield
    except (OutOfMemoryError, FileFormatError):
        raise
    except MemoryError as error:
        if not file:
            raise
        raise OutOfMemoryError(
            f"Expected memory for what the graph in {file} computes, found too little",
            hint="pass smaller operands; a size in the file may be wrong",
        ) from error
    except Exception as error:
        ours = isinstance(error, TacoError) and not isinstance(error, InternalError)
        if not file:
            raise
        if (ours and not reading) or isinstance(error, np.linalg.LinAlgError):
            error.add_note(f"in the graph of {file}")
            raise
        raise wrong_file(file, error) from error


def _fits(fact: Fact, value: Any) -> bool:
    """Tell whether an operand is of the kind that a graph was made for."""
    if fact.weak:
        return type(value).__name__ == fact.dtype
    shape = np.shape(value)
    if len(shape) != fact.order or not hasattr(value, "dtype"):
        return False
    units = tuple(size == 1 for size in shape)
    kind = kind_of(value)
    sparsity = "" if kind[0] is np.ndarray or isinstance(value, np.generic) else _format(kind)
    return units == fact.units and str(value.dtype) == fact.dtype and sparsity == fact.sparsity


def _format(kind: tuple[Any, ...]) -> str:
    form = kind[1].format
    return "" if form.is_dense and not kind[1].fill else str(form)


def _describe_operand(value: Any) -> str:
    return f"{type(value).__name__} of shape {np.shape(value)} and {getattr(value, 'dtype', '')}"
