"""`compile`: from the statements of a text to its kernel."""

from __future__ import annotations

from collections.abc import Sequence

from taco_py.calls.kernels.compile_plain import compile_plain
from taco_py.calls.kernels.draft import CompileArguments
from taco_py.calls.kernels.kernel import Kernel
from taco_py.calls.statements.read_text import CheckedStatement


def compile_text(read: Sequence[CheckedStatement], arguments: CompileArguments) -> Kernel:
    """Compile statements over operands of given formats, in blocks and at subscripts too."""
    from taco_py.calls.kernels.block_front import compile_blocks, names_blocks

    if names_blocks(arguments.formats):
        return compile_blocks(read, arguments)
    return compile_plain(read, arguments)
