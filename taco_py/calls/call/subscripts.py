"""`einsum` the long way: from subscripts to an assignment that is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.numpy_einsum import left_to_numpy
from taco_py.arguments.options import CallOptions
from taco_py.arguments.semiring_mask import SemiringMask
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.contraction_path import checked_path, steps_of
from taco_py.calls.call.conversions.apply_conversions import compute_converted, explain_converted
from taco_py.calls.call.conversions.block_modes import facts_of
from taco_py.calls.call.devices.placed import placed_operands
from taco_py.calls.call.kept_order import kept_order
from taco_py.calls.call.sum_bounds import narrow_sum
from taco_py.calls.call.views import look_of
from taco_py.data.storage.tensor_data import TensorData
from taco_py.data.tensors.traced_operands import explicit_options, taken_over, taker_of
from taco_py.language.diagnostics.errors import NotationError, OperandError, OperandTypeError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.notation.dtypes import common_dtype
from taco_py.language.notation.einsum import Squeezed, drop_broadcast, parse_einsum, split_operands
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.printer import to_text
from taco_py.running.replay.make_call import remember_shown

ORDERS = ("C", "F", "A", "K")
STRATEGIES = ("greedy", "optimal", "auto")


@lru_cache(maxsize=1024)
def _parsed(subscripts: str, orders: tuple[int, ...]) -> Assignment:
    return parse_einsum(subscripts, orders)


def compute_einsum(
    operands: tuple[Any, ...],
    keywords: Mapping[str, Any],
    over: SemiringMask | None,
    key: tuple[object, ...] | None,
) -> Any:
    """Return the einsum of its positional arguments, by NumPy's own where that alone has such
    elements.

    keywords  the arguments of the call by parameter, options among them as the user gave them
    key       under which to remember the short way for calls like this one
    """
    masks = () if over is None else over.arrays
    if key is None and (taker := taker_of((*operands, *masks))) is not None:
        return taken_over(taker, "tp.einsum", operands, explicit_options(keywords, over))
    left = left_to_numpy(operands, keywords) if over is None else None
    if left is not None:
        return left.run(keywords)
    operands, where = placed_operands(operands, keywords["target"], masks)
    options = CallOptions.of({**keywords, "target": where})
    subscripts, tensors = split_operands(operands)
    call = CallArguments(_name_operands(tensors), options, keywords["out"], over, key)
    return contract(subscripts, call, keywords["optimize"], keywords["order"])


def _name_operands(tensors: Sequence[Any]) -> dict[str, Any]:
    """Name operands by their places."""
    return {f"op{place}": tensor for place, tensor in enumerate(tensors)}


def contract(subscripts: Any, call: CallArguments, optimize: Any, order: str = "K") -> Any:
    """Return the einsum of operands that are named by their places.

    order  of a dense result: "K", or "C" for one that is contiguous as its indices are written
    """
    tensors, out, over = tuple(call.objects.values()), call.out, call.over
    datas = _datas(tensors)
    orders = tuple(len(d.shape) for d in datas)
    if isinstance(subscripts, str):
        assignment = _parsed(subscripts, orders)
    else:
        assignment = parse_einsum(subscripts, orders)
    first, *rest = tensors
    if out is None and not rest and isinstance(first, np.ndarray) and over is None:
        look = look_of(assignment, first, call.options)
        view = None if look is None else look.function()(first)
        if view is not None and (order == "K" or view.flags.c_contiguous):
            if look is not None and call.key is not None and order == "K":
                remember_shown(call.key, look)
            return view
    einsum = _einsum(assignment, call, datas, optimize, order == "K" and out is None)
    warned = einsum.call.options.dtype is None and (over is None or over.semiring.is_arithmetic)
    cautions = narrow_sum(assignment, datas) if warned else ()
    inner = replace(einsum.call, key=None) if einsum.call.options.counts else einsum.call
    computation = Computation.of_one(
        einsum.assignment,
        inner,
        squeezed=einsum.squeezed,
        axes=einsum.axes,
        cautions=cautions,
    )
    result = compute_converted(computation, inner.key)
    if order == "C" and out is None and isinstance(result, np.ndarray):
        return np.asarray(result, order="C")
    return result


def refuse_unknown(
    operands: Sequence[Any], unknown: Mapping[str, Any], options: Sequence[str]
) -> OperandTypeError:
    """Make the error of keywords that einsum does not have.

    options  the keywords that it has
    """
    names = ", ".join(f"{name}=" for name in unknown)
    if operands and isinstance(operands[0], str) and "=" in operands[0]:
        return OperandTypeError(
            f"Expected subscripts and operands by position, found index notation and {names}",
            hint="index notation goes to tp.evaluate, with its operands by name",
        )
    hint = f"operands go by position; the options are {', '.join(options)}"
    return OperandTypeError(
        f"Expected options of einsum, found {names}",
        hint=with_suggestion(hint, next(iter(unknown)), options),
    )


def explain_subscripts(
    operands: tuple[Any, ...],
    options: CallOptions,
    over: SemiringMask | None,
    optimize: Any,
    seconds: float | None,
) -> str:
    """Return how the einsum of these arguments is computed, and where its schedule stands.

    seconds  of the comparison with the frontier, None for as many as the search may take
    """
    subscripts, tensors = split_operands(operands)
    call, datas = CallArguments(_name_operands(tensors), options, over=over), _datas(tensors)
    assignment = parse_einsum(subscripts, tuple(len(d.shape) for d in datas))
    einsum = _einsum(assignment, call, datas, optimize, True)
    computation = Computation.of_one(einsum.assignment, einsum.call, squeezed=einsum.squeezed)
    return explain_converted(computation, seconds, _describe_order(einsum, assignment))


def _datas(tensors: Sequence[Any]) -> list[TensorData]:
    """Return the arrays of operands, or the facts about operands in blocks."""
    return [facts_of(tensor, f"operand {place}") for place, tensor in enumerate(tensors)]


def _describe_order(einsum: _Einsum, assignment: Assignment) -> str:
    if not einsum.axes:
        return ""
    order = ",".join(einsum.assignment.target.indices)
    stored = f"stored in the order {order}, as the operands store these"
    return f"result    {to_text(assignment.target)} is a view of an array that is {stored}\n"


@dataclass(frozen=True, slots=True)
class _Einsum:
    """An einsum as what `evaluate` computes.

    squeezed  the operands' modes of size 1 that are broadcast, and left out
    axes      of what it computes, as the result has them; () where these are the same
    """

    assignment: Assignment
    call: CallArguments
    squeezed: Squeezed
    axes: tuple[int, ...] = ()


def _einsum(
    assignment: Assignment,
    call: CallArguments,
    datas: Sequence[TensorData],
    optimize: Any,
    keeps: bool,
) -> _Einsum:
    """Convert an einsum to the assignment and the call that compute it.

    keeps  whether the result may be stored as the operands are
    """
    over, options = call.over, call.options
    shapes = {f"op{k}": d.shape for k, d in enumerate(datas)}
    broadcast = drop_broadcast(assignment, shapes)
    path, may_split, memory = _optimize(optimize, len(datas))
    dtype = options.dtype
    arithmetic = over is None or over.semiring.is_arithmetic
    if dtype is None and arithmetic and len({d.dtype for d in datas}) > 1:
        dtype = common_dtype(d.dtype for d in datas)  # NumPy converts before it computes
    options = replace(options, dtype=dtype, path=path, contract=may_split, memory=memory)
    options = replace(options, weak=False, wide_sums=False)
    call = replace(call, options=options)
    assignment, squeezed = broadcast.assignment, broadcast.squeezed
    old = assignment.target.indices
    keeps = keeps and not squeezed and (over is None or over.mask is None)
    order = kept_order(assignment, call.objects, options) if keeps else old
    if order == old:
        return _Einsum(assignment, call, squeezed)
    target = replace(assignment.target, indices=order)
    axes = tuple(map(order.index, old))
    return _Einsum(replace(assignment, target=target), call, squeezed, axes)


def laid_out(order: str, operands: tuple[Any, ...], out: Any, compute: Callable[..., Any]) -> Any:
    """Return the result of `compute` in the memory order that NumPy's `order` requests.

    Only dense results that are new arrays, not the caller's `out`, are reordered.
    """
    if not isinstance(order, str) or order.upper() not in ORDERS:
        raise OperandError(
            f"Expected order to be one of {', '.join(ORDERS)}, found {order!r}",
            hint="K keeps the order in which the result is computed",
        )
    order = order.upper()
    if order == "A":
        arrays = [operand for operand in operands if isinstance(operand, np.ndarray)]
        order = "F" if arrays and all(operand.flags.fnc for operand in arrays) else "C"
    result = compute(order="K" if order == "F" else order)
    if order != "F" or out is not None or not isinstance(result, np.ndarray):
        return result
    return np.asarray(result, order="F")


Contractions = tuple[tuple[tuple[int, ...], ...] | None, bool, float]


def _optimize(optimize: Any, count: int) -> Contractions:
    """Return an explicit path or None, whether products may be split, and the limit of each
    intermediate.

    count  of operands

    Raises NotationError.
    """
    if optimize is None or optimize is True or _is_strategy(optimize):
        return None, True, inf
    if optimize is False:
        return None, False, inf
    if isinstance(optimize, list | tuple):
        if len(optimize) == 2 and _is_strategy(optimize[0]) and _is_limit(optimize[1]):
            return None, True, float(optimize[1])
        steps = steps_of(optimize)
        if steps is not None:
            return checked_path(steps, count, "optimize"), True, inf
    raise NotationError(
        f"Expected optimize to be a bool, 'greedy', 'optimal' or a list of pairs, found "
        f"{optimize!r}",
        hint=with_suggestion(
            'as numpy.einsum_path returns it: ["einsum_path", (0, 1), (0, 1)]',
            str(optimize),
            STRATEGIES,
        ),
    )


def _is_strategy(optimize: Any) -> bool:
    return isinstance(optimize, str) and optimize in STRATEGIES


def _is_limit(limit: Any) -> bool:
    """Tell whether it is an upper bound for the elements of intermediates, as NumPy has it."""
    return isinstance(limit, int | float | np.integer | np.floating) and bool(limit >= 0)
