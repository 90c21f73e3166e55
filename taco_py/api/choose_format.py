"""`choose_format`: the format of a matrix that is used many times, and why."""

from __future__ import annotations

from typing import Any

from taco_py.data.convert.choose_format import Choice, choose
from taco_py.data.tensors.remapped_tensor import blocks_of
from taco_py.data.tensors.tensor import as_data


def choose_format(A: Any) -> Choice:  # noqa: N803 - the field's name
    """Choose a format for a matrix that products read many times; `format="auto"` stores it so.

    >>> A = sp.diags_array([np.ones(99999), np.ones(100000)], offsets=[1, 0])
    >>> tp.choose_format(A).format.name
    'SDIA(8)'

    A  a matrix of any kind; other tensors keep their format

    Returns the format, the reason, and what each other one is expected to take. What is stored is
    counted in a sample of the rows, which takes tens of milliseconds as a rule; of blocks, in all.
    """
    blocks = blocks_of(A)
    return choose(as_data(A) if blocks is None else blocks.data)[0]
