"""`compile`: from the statements of a text to its kernel."""

from __future__ import annotations

from collections.abc import Sequence

from taco_py.calls.call.draft import CompileArguments, draft_written
from taco_py.calls.call.kernel import Kernel, compile_draft
from taco_py.calls.statements.read_text import Understood
from taco_py.language.notation.checks import has_subscripts


def compile_text(read: Sequence[Understood], arguments: CompileArguments) -> Kernel:
    """Compile statements over operands of given formats, in blocks and at subscripts too."""
    from taco_py.calls.call.texts.block_front import compile_blocks, names_blocks
    from taco_py.calls.call.texts.subscript_front import compile_subscripts

    options = arguments.options
    if names_blocks(arguments.formats):
        return compile_blocks(read, arguments)
    if options.is_bounded or any(has_subscripts(each.assignment) for each in read):
        return compile_subscripts(read, arguments)
    return compile_draft(draft_written([each.assignment for each in read], arguments), options)
