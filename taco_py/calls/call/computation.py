"""A call as one value: its statements, operands, options, and the results that it hands out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.options import CallOptions
from taco_py.arguments.semiring_mask import SemiringMask
from taco_py.calls.call.requested_outputs import RequestedOutputs, requested_outputs
from taco_py.calls.call.statement_commands import with_commands_of_one, with_named_commands
from taco_py.calls.statements.read_text import CheckedStatement
from taco_py.data.storage.tensor_data import Array
from taco_py.language.notation.checks import has_subscripts
from taco_py.language.notation.einsum import Squeezed
from taco_py.language.notation.nodes import Assignment


@dataclass(frozen=True, slots=True, eq=False)
class Computation:
    """Statements with their operands; conversions bring them to indices alone, over numbers.

    assignments  the assignments in order, with explicit sums
    objects      the operands by name
    requested    the outputs, with the formats and the arrays that are asked for
    squeezed     modes of size 1 that accesses of operands leave out
    axes         of the one result in the order in which they are wanted, () for that of the text
    cautions     what such calls are warned of
    place        the device that results stay on, "" for the host, None for where operands are
    over         the semiring and the mask, None where the call has neither
    """

    assignments: tuple[Assignment, ...]
    objects: Mapping[str, Any]
    options: CallOptions
    requested: RequestedOutputs
    squeezed: Squeezed = ()
    axes: tuple[int, ...] = ()
    cautions: tuple[UserWarning, ...] = ()
    place: str | None = None
    over: SemiringMask | None = None

    @classmethod
    def of_text(cls, read: Sequence[CheckedStatement], call: CallArguments) -> Computation:
        """Return the computation of a text. Raises what the options of its statements raise."""
        statements = tuple(one.assignment for one in read)
        cautions = tuple(caution for one in read for caution in one.cautions)
        if len(read) == 1 and not has_subscripts(statements[0]):  # others: with what they derive
            call = replace(call, options=with_commands_of_one(call.options, statements[0]))
        options, out = call.options, call.out
        by_name = isinstance(options.format, Mapping) or isinstance(out, Mapping)
        if len(read) == 1 and options.outputs is None and not by_name:
            return cls.of_one(statements[0], call, cautions=cautions)
        requested = requested_outputs(statements, options.outputs, options.format, out)
        options = replace(options, format=None)
        if len(read) == 1:
            options = with_named_commands(options, statements[0])
        return cls(statements, call.objects, options, requested, cautions=cautions, over=call.over)

    @classmethod
    def of_one(cls, assignment: Assignment, call: CallArguments, **more: Any) -> Computation:
        """Return the computation of one assignment, whose format and array the call has."""
        name = assignment.target.tensor
        outs = {} if call.out is None else {name: call.out}
        formats = {} if call.options.format is None else {name: call.options.format}
        requested, options = RequestedOutputs((name,), formats, outs, True), call.options
        options = with_named_commands(options, assignment)
        return cls((assignment,), call.objects, options, requested, over=call.over, **more)

    @property
    def last(self) -> Assignment:
        """Return the last assignment."""
        return self.assignments[-1]

    @property
    def outs(self) -> Mapping[str, Array]:
        """Return the arrays for results by name."""
        return self.requested.outs

    @property
    def is_single(self) -> bool:
        """Tell whether the text is one assignment."""
        return len(self.assignments) == 1

    @property
    def identity(self) -> tuple[object, ...]:
        """Return the part of a key that tells it from others with such operands and options."""
        if self.is_single:
            return (*self.assignments, self.squeezed)
        requested = self.requested
        return (*self.assignments, self.squeezed, requested.outputs, *requested.formats.items())

    @property
    def masks(self) -> tuple[Any, ...]:
        """Return the tensor of the mask, where there is one."""
        return () if self.over is None else self.over.arrays

    def with_options(self, options: CallOptions) -> Computation:
        """Return the computation with other options."""
        return replace(self, options=options)

    def with_formats(self, formats: Mapping[str, Any]) -> Computation:
        """Return the computation with other formats of results, by name."""
        options, requested = self.options, replace(self.requested, formats=formats)
        if self.is_single:
            options = replace(options, format=formats.get(self.last.target.tensor))
        return replace(self, options=options, requested=requested)
