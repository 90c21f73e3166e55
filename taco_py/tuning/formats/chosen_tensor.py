"""Matrices stored in the formats that are chosen for them, and plans of calls that read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.calls.call.prepare import prepare_computation
from taco_py.data.convert.remap import remap
from taco_py.data.storage.tensor_data import TensorData
from taco_py.data.tensors.remapped_tensor import RemappedTensor, blocks_of
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.language.formats import CSR, RemappedFormat
from taco_py.language.formats.remapped import is_remapped
from taco_py.planner.ir.printer import program_text
from taco_py.tuning.bench.text_key import keyed_computation
from taco_py.tuning.formats.choose_format import Choice, FormatPrice, Use, choose, with_plan
from taco_py.tuning.formats.product_text import text_product


def stored_as_chosen(tensor: Tensor) -> Tensor:
    """Return a matrix in the format that suits repeated products.

    A result in a remapped format has a `reason`.
    """
    return _stored(tensor, *choose(tensor.data, Use(stored=tensor.format)))


def _stored(tensor: Tensor, choice: Choice, stored: TensorData | None) -> Tensor:
    """Return a matrix in the format of a choice.

    stored  the same matrix in that format, where there is one
    """
    form = choice.format
    if not is_remapped(form):
        is_stored = tensor.format == form
        return tensor if is_stored else tensor.to_format(CSR).to_format(form)
    if isinstance(tensor, RemappedTensor) and tensor.format == form:
        return RemappedTensor(tensor.stored, form, tensor.shape, choice.reason)
    data = remap(tensor.data, form) if stored is None else stored
    return RemappedTensor(data, form, tensor.shape, choice.reason)


def choose_for(matrix: Any, use: Use, price: FormatPrice) -> Choice:
    """Choose the format of a matrix of any kind for products with vectors."""
    tensor = _tensor(matrix)
    return choose(tensor.data, replace(use, stored=tensor.format), price)[0]


def _tensor(matrix: Any) -> Tensor:
    """Return a matrix of any kind as a Tensor around its arrays."""
    blocks = blocks_of(matrix)
    return Tensor(as_data(matrix)) if blocks is None else blocks


def _are_integers(tensor: Tensor, operands: Mapping[str, Any]) -> bool:
    """Tell whether a matrix and all operands are of integers or booleans."""
    dtypes = (tensor.dtype, *(np.asarray(operand).dtype for operand in operands.values()))
    return all(dtype.kind in "iub" for dtype in dtypes)


def choose_for_text(
    matrix: Any, text: str, operands: Mapping[str, Any], use: Use, price: FormatPrice
) -> Choice:
    """Choose the format of a matrix for a text over it, with the plan of the call.

    Raises what the call raises.
    """
    product = text_product(text, operands)
    tensor = _tensor(matrix)
    if product.reason:
        choice, stored = Choice(tensor.format, f"only products are priced: {product.reason}"), None
        stored_matrix = tensor
    else:
        finite = product.plain and (use.finite or _are_integers(tensor, operands))
        use = replace(use, columns=product.columns, lists=True, stored=tensor.format, finite=finite)
        choice, stored = choose(tensor.data, use, price)
        stored_matrix = _stored(tensor, choice, stored)
    form = choice.format
    lists = not isinstance(form, RemappedFormat) and form.levels[0].is_list and not product.reason
    options: dict[str, Any] = {"format": "d" * product.order} if lists else {}
    if use.threads is not None:
        options["threads"] = use.threads
    computation = keyed_computation(text, {**operands, product.matrix: stored_matrix}, options)
    plan = program_text(prepare_computation(computation).plan.program)
    return with_plan(choice, text, plan, options, stored_matrix)
