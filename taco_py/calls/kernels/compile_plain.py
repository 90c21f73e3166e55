"""Kernels of statements over operands in plain formats."""

from __future__ import annotations

from collections.abc import Sequence

from taco_py.calls.kernels.draft import CompileArguments, draft_written
from taco_py.calls.kernels.kernel import Kernel, compile_draft
from taco_py.calls.statements.read_text import CheckedStatement
from taco_py.language.notation.checks import has_subscripts


def compile_plain(read: Sequence[CheckedStatement], arguments: CompileArguments) -> Kernel:
    """Compile statements over operands in plain formats, at subscripts too."""
    options = arguments.options
    if options.is_bounded or any(has_subscripts(step.assignment) for step in read):
        from taco_py.calls.kernels.subscript_front import compile_subscripts

        return compile_subscripts(read, arguments)
    return compile_draft(draft_written([step.assignment for step in read], arguments), options)
