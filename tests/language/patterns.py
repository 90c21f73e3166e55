"""Where a text stores something, by an oracle of patterns: whatever plan computes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from taco_py.api import evaluate_dense as dense
from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.operands import read_operand
from taco_py.arguments.options import CallOptions
from taco_py.arguments.semiring_mask import semiring_mask_of
from taco_py.calls.call.semirings.over_semirings import to_arithmetic
from taco_py.calls.indexed.domains import ERROR
from taco_py.calls.indexed.indexed_statements import is_indexed
from taco_py.calls.statements.read_text import accumulated, statements_of
from taco_py.data.storage.pack import unpack
from taco_py.language import oracle
from taco_py.language.notation.rewrites.fills import with_fills

Array = np.ndarray[Any, Any]


def stored_of(
    text: str, given: Mapping[str, Any], semiring: Any = None, mask: Any = None
) -> Array | None:
    """Compute where a text stores something; None of several statements, and of subscripts that
    are more than indices.

    What is stored is that of products where all factors are, of sums where a term is, of reductions
    where an element is, of functions by their fill values, and what the mask allows.
    """
    statements = statements_of(text, given)
    assignment, over = statements[0].assignment, semiring_mask_of(semiring, mask, False)
    if len(statements) > 1 or is_indexed(assignment, ERROR, None):
        return None
    if not over.is_usual:
        array = CallOptions(format="d" * len(assignment.target.indices))
        assignment, call = to_arithmetic(assignment, CallArguments(given, array, over=over))
        given = call.objects
    sparse = {name: each for name, each in given.items() if dense._is_sparse(each)}
    arrays = {name: dense._array(each, name) for name, each in given.items()}
    places = {name: dense._places(each, name) for name, each in sparse.items()}
    fills = {name: fill for name, each in sparse.items() if (fill := dense._fill(each)) != 0}
    filled = with_fills(accumulated(assignment, given), fills)
    return oracle.evaluate_stored(filled, arrays, places)[1]


def is_stored_as(result: Any, has: Array) -> tuple[Array, Array]:
    """Find where a sparse result stores something, and where its format has places for what is
    stored at some."""
    data = read_operand(result, "the result")
    places = np.zeros(data.shape, bool)
    places[unpack(data)[0]] = True
    return places, oracle.stored_positions(np.broadcast_to(has, data.shape), data.format)
