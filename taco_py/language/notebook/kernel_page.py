"""A kernel as HTML: its assignments, formats, schedule, a drawing of its loops, and its C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taco_py.language.notebook.c_code import coloured
from taco_py.language.notebook.folded_report import folded
from taco_py.language.notebook.markup import block, fold, table


def kernel_page(
    computes: str,
    stored: Mapping[str, tuple[str, str]],
    facts: Mapping[str, Any],
    source: str,
    explanation: str,
    drawing: str = "",
) -> str:
    """Return the page of a kernel.

    computes  its assignments
    stored    the format and type of each operand and of the result
    facts     further rows, as the schedule
    source    its C, or CUDA C++
    explanation, drawing  the text of its `explain`, and the SVG of its `show`
    """
    rows = [("computes", computes)]
    rows += [(name, f"{format or 'scalar'}, {dtype}") for name, (format, dtype) in stored.items()]
    rows += [(name, str(fact)) for name, fact in facts.items() if str(fact)]
    lines = source.count("\n") + 1
    return block(
        table(rows),
        fold("loops", drawing, is_open=True) if drawing else "",
        fold(f"C, {lines} lines", coloured(source)),
        fold("explanation", folded(explanation)),
    )
