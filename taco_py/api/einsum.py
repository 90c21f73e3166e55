"""`einsum` with NumPy's signature and meaning, over sparse and dense operands."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from taco_py.api.over import built, read_over
from taco_py.data.tensors.byte_counts import call_again, limited
from taco_py.data.tensors.keys import COUNTS, call_key, options_key, parted
from taco_py.running.replay.find import find

USUAL = (None, True, None, "analytic", ())
"""The options of most calls: static, libraries, schedule_budget, price, forbid."""

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from taco_py.arguments.learned_price import Price
    from taco_py.calls.kernels.builder import ScheduleBuilder
    from taco_py.compiler.schedule.schedule import Schedule
    from taco_py.data.storage.tensor_data import Array
    from taco_py.language.formats import Format
    from taco_py.language.notation.rewrites.semirings import Semiring


def einsum(
    *operands: Any,
    out: Array | None = None,
    dtype: DTypeLike | None = None,
    order: str = "K",
    casting: str = "safe",
    optimize: Any = None,
    format: Format | str | None = None,
    schedule: ScheduleBuilder | Schedule | str | None = None,
    threads: int | None = None,
    static: Mapping[str, int] | None = None,
    libraries: bool = True,
    schedule_budget: float | None = None,
    price: Price = "analytic",
    forbid: Collection[str] | str = (),
    semiring: Semiring | str | None = None,
    mask: Any = None,
    replace: bool = False,
    target: str | None = None,
    memory_limit: int | str | None = None,
    **unknown: Any,
) -> Any:
    """Compute NumPy's `einsum` over sparse and dense operands.

    >>> A = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> tp.einsum("ij,j->i", A, x)
    array([7., 6.])
    >>> tp.einsum(A, [0, 1], A, [2, 1], [0, 2]).toarray()
    array([[5., 0.],
           [0., 9.]])

    Implicit output, ellipsis and repeated subscripts mean what they mean in NumPy. The result is an
    array where it is dense, else a scipy.sparse array or a Tensor, as the operands are. Dense
    operands of objects or long doubles, which no kernel computes in, are left to NumPy's einsum.

    operands   subscripts and arrays, or arrays with lists of labels: NumPy arrays, scipy.sparse
               arrays or matrices, Tensors and numbers
    out, dtype, casting  as in NumPy
    order      of a dense result: "K", the default, the order in which the operands store its
               indices, may make it a view that is not contiguous; "C", "F" or "A" as in NumPy
    optimize   False computes the product in one kernel, a list of pairs as from `numpy.einsum_path`
               contracts in that order; otherwise the order of least expected work is chosen, for
               ("greedy", n) or ("optimal", n) one whose intermediates store at most n elements each
    format, schedule, threads, static, libraries, schedule_budget, price, forbid, semiring, mask,
               replace, target, memory_limit  as in `evaluate`
    unknown    nothing: operands go by position

    Raises what `evaluate` raises; NotationError is a ValueError.
    """
    if memory_limit is not None:
        return limited(einsum, locals())
    schedule, over = built(schedule), read_over(semiring, mask, replace)
    if order not in ("K", "C") and not unknown:
        from taco_py.calls.call.subscripts import laid_out

        return laid_out(order, operands, out, partial(call_again, einsum, locals()))
    outs, key = () if out is None else (out,), None
    if target in (None, "c") and operands and not unknown and type(threads) in COUNTS:
        first, rest = parted(operands)
        identity: tuple[object, ...] = (first, format, casting, schedule, threads, target)
        usual = out is None and dtype is None and optimize is None and order == "K"
        options = (static, libraries, schedule_budget, price, forbid)
        if not usual or options != USUAL:
            seldom = options_key(out, dtype, optimize, *options)
            identity = (*identity, order, seldom)
        if over is not None:
            identity, rest = (*identity, over.identity), (*rest, *over.arrays)
        key = call_key(identity, rest)
        if (call := find(key)) is not None and (result := call(*rest, *outs)) is not None:
            return result
    from taco_py.calls.call.subscripts import compute_einsum, refuse_unknown

    if unknown:
        raise refuse_unknown(operands, unknown, tuple(einsum.__kwdefaults__ or ()))
    return compute_einsum(operands, locals(), over, key)
