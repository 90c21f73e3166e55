"""`einsum` the long way: from subscripts to an assignment that is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from math import inf
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.numpy_einsum import left_to_numpy
from taco_py.arguments.operands import taken
from taco_py.arguments.settings import Settings, settings_of
from taco_py.calls.call.compute import compute
from taco_py.calls.call.devices.placed import placed_operands
from taco_py.calls.call.given_path import checked_path, steps_of
from taco_py.calls.call.kept_order import kept_order
from taco_py.calls.call.over_semirings import Over, over_numbers
from taco_py.calls.call.over_semirings import computed as computed_over
from taco_py.calls.call.read_text import Understood
from taco_py.calls.call.sum_bounds import narrow_sum
from taco_py.calls.call.texts.in_blocks import (
    concerns,
    explained_over_blocks,
    facts_of,
    over_blocks,
    plain_way,
    told_plain,
)
from taco_py.calls.call.views import look_of
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.data.tensors.traced_operands import options_said, taken_over, taker_of
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


@dataclass(frozen=True, slots=True, eq=False)
class NumpyOptions:
    """The keyword arguments of `numpy.einsum`, as the user gave them."""

    out: Array | None
    dtype: Any
    order: str
    casting: str
    optimize: Any


def computed(
    operands: tuple[Any, ...],
    numpys: NumpyOptions,
    options: tuple[Any, ...],
    key: tuple[object, ...] | None,
    over: Over | None = None,
) -> Any:
    """Return the einsum of its positional arguments, by NumPy's own where that alone has such
    elements.

    options  what `settings_of` takes: format, schedule, threads, dtype, casting, static and so on;
             last the target, None for where operands are
    key, over  as `contract` has them
    """
    own = {"format": options[0], "schedule": options[1], "static": options[5]}
    masks = () if over is None else over.arrays
    if key is None and (taker := taker_of((*operands, *masks))) is not None:
        said = (options, {"dtype": numpys.dtype, "out": numpys.out}, over)
        return taken_over(taker, "tp.einsum", operands, options_said(*said))
    left = left_to_numpy(operands, numpys.dtype, own) if over is None else None
    if left is not None:
        return left.run(numpys.out, numpys.dtype, numpys.order, numpys.casting, numpys.optimize)
    operands, where = placed_operands(operands, options[-1], () if over is None else over.arrays)
    options = (*options[:-1], where)
    settings = settings_of(*options)
    return contract(operands, numpys.optimize, settings, numpys.out, key, numpys.order, over)


def contract(
    operands: tuple[Any, ...],
    optimize: Any,
    settings: Settings,
    out: Array | None,
    key: tuple[object, ...] | None,
    order: str = "K",
    over: Over | None = None,
) -> Any:
    """Return the einsum of its positional arguments.

    key    under which to remember the short way for calls like this one
    order  of a dense result: "K", or "C" for one that is contiguous as its indices are written
    over   the semiring and the mask, None for those of plain calls
    """
    subscripts, tensors = split_operands(operands)
    if concerns(tensors, settings.format):
        return _contract_blocks(subscripts, tensors, optimize, settings, out, key, order, over)
    return _contract(subscripts, tensors, optimize, settings, out, key, order, over)


def _contract_blocks(
    subscripts: Any,
    tensors: Sequence[Any],
    optimize: Any,
    settings: Settings,
    out: Array | None,
    key: tuple[object, ...] | None,
    order: str,
    over: Over | None,
) -> Any:
    """Return the einsum of operands some of which are in blocks, or whose result is to be."""
    named = {f"op{k}": t for k, t in enumerate(tensors)}
    whole = None if over is not None else _whole_of_blocks(subscripts, tensors, optimize, settings)
    if whole is not None:
        read = Understood(whole.assignment, ())
        found = over_blocks(read, whole.operands, whole.settings, None, out, key)
        if found is not None:
            return found.result
    way = plain_way(named, settings.format, () if over is None else over.arrays, key)
    settings, plain = replace(settings, format=way.format), tuple(way.objects.values())
    return way.finished(_contract(subscripts, plain, optimize, settings, out, way.key, order, over))


def _whole_of_blocks(
    subscripts: Any, tensors: Sequence[Any], optimize: Any, settings: Settings
) -> _Whole | None:
    """Return the einsum of operands in blocks; None where modes of size 1 are broadcast, or sums
    may pass a small type, of which plain ways warn."""
    datas = [facts_of(t, f"operand {k}") for k, t in enumerate(tensors)]
    assignment = parse_einsum(subscripts, tuple(len(d.shape) for d in datas))
    whole = _whole(assignment, tensors, datas, optimize, settings, False)
    warned = settings.dtype is None and narrow_sum(assignment, datas)
    return None if whole.squeezed or warned else whole


def _contract(
    subscripts: Any,
    tensors: Sequence[Any],
    optimize: Any,
    settings: Settings,
    out: Array | None,
    key: tuple[object, ...] | None,
    order: str,
    over: Over | None,
) -> Any:
    """Return the einsum of operands in plain formats."""
    datas = [taken(t, f"operand {k}") for k, t in enumerate(tensors)]
    orders = tuple(len(d.shape) for d in datas)
    if isinstance(subscripts, str):
        assignment = _parsed(subscripts, orders)
    else:
        assignment = parse_einsum(subscripts, orders)
    first, *others = tensors
    if out is None and not others and isinstance(first, np.ndarray) and over is None:
        look = look_of(assignment, first, settings)
        view = None if look is None else look.function()(first)
        if view is not None and (order == "K" or view.flags.c_contiguous):
            if look is not None and key is not None and order == "K":
                remember_shown(key, look)
            return view
    keeps = order == "K" and out is None
    whole = _whole(assignment, tensors, datas, optimize, settings, keeps, over)
    asked = whole.assignment, whole.operands, whole.settings
    short = None if whole.settings.counts else key
    warned = settings.dtype is None and (over is None or over.semiring.is_arithmetic)
    cautions = narrow_sum(assignment, datas) if warned else ()
    compute_it = compute if over is None else partial(computed_over, over)
    found = compute_it(*asked, out, whole.squeezed, short, whole.axes, cautions)
    if order == "C" and out is None and isinstance(found, np.ndarray):
        return np.asarray(found, order="C")
    return found


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
    optimize: Any,
    settings: Settings,
    seconds: float | None,
    over: Over,
) -> str:
    """Return how the einsum of these arguments is computed, and where its schedule stands."""
    from taco_py.calls.call.explain_call import explained

    subscripts, tensors = split_operands(operands)
    named, why = {f"op{k}": t for k, t in enumerate(tensors)}, over.why_plain
    notes = told_plain(named | over.named_arrays, settings, why)
    if concerns(tensors, settings.format):
        if over.is_usual:
            told, notes = _told_blocks(subscripts, tensors, optimize, settings, seconds)
            if told:
                return told
        way = plain_way(named, settings.format, (), None)
        tensors, settings = tuple(way.objects.values()), replace(settings, format=way.format)
    datas = [taken(t, f"operand {k}") for k, t in enumerate(tensors)]
    assignment = parse_einsum(subscripts, tuple(len(d.shape) for d in datas))
    whole = _whole(assignment, tensors, datas, optimize, settings, True, over)
    asked = whole.assignment, whole.operands, whole.settings
    if not over.is_usual:
        ready = over_numbers(*asked, over, whole.squeezed)
        asked = ready.assignment, ready.objects, ready.settings
    return notes + _told_order(whole, assignment) + explained(*asked, seconds, whole.squeezed)


def _told_blocks(
    subscripts: Any,
    tensors: Sequence[Any],
    optimize: Any,
    settings: Settings,
    seconds: float | None,
) -> tuple[str, str]:
    """What is planned over stored modes, "" where nothing is; then what is converted instead."""
    blocks = _whole_of_blocks(subscripts, tensors, optimize, settings)
    if blocks is None:
        named = {f"op{k}": t for k, t in enumerate(tensors)}
        why = "modes of size 1 stretch, or sums may not fit into the type of the elements"
        return "", told_plain(named, settings, why)
    read, named = Understood(blocks.assignment, ()), blocks.operands
    told = explained_over_blocks(read, named, blocks.settings, None, seconds)
    why = "this call reads plain formats alone"
    return told or "", "" if told else told_plain(named, blocks.settings, why, read)


def _told_order(whole: _Whole, assignment: Assignment) -> str:
    if not whole.axes:
        return ""
    kept = ",".join(whole.assignment.target.indices)
    stored = f"stored in the order {kept}, as the operands store these"
    return f"result    {to_text(assignment.target)} is a view of an array that is {stored}\n"


@dataclass(frozen=True, slots=True)
class _Whole:
    """An einsum as what `evaluate` computes.

    squeezed  the operands' modes of size 1 that are broadcast, and left out
    axes      of what it computes, as the result has them; () where these are the same
    """

    assignment: Assignment
    operands: dict[str, Any]
    settings: Settings
    squeezed: Squeezed
    axes: tuple[int, ...] = ()


def _whole(
    assignment: Assignment,
    tensors: Sequence[Any],
    datas: Sequence[TensorData],
    optimize: Any,
    settings: Settings,
    keeps: bool,
    over: Over | None = None,
) -> _Whole:
    """keeps  whether the result may be stored as the operands are"""
    named = {f"op{k}": t for k, t in enumerate(tensors)}
    shapes = {f"op{k}": d.shape for k, d in enumerate(datas)}
    broadcast = drop_broadcast(assignment, shapes)
    path, apart, memory = _optimize(optimize, len(tensors))
    dtype = settings.dtype
    arithmetic = over is None or over.semiring.is_arithmetic
    if dtype is None and arithmetic and len({d.dtype for d in datas}) > 1:
        dtype = common_dtype(d.dtype for d in datas)  # NumPy converts before it computes
    settings = replace(settings, dtype=dtype, path=path, contract=apart, memory=memory)
    settings = replace(settings, weak=False, wide_sums=False)
    assignment, squeezed = broadcast.assignment, broadcast.squeezed
    old = assignment.target.indices
    keeps = keeps and not squeezed and (over is None or over.mask is None)
    kept = kept_order(assignment, named, settings) if keeps else old
    if kept == old:
        return _Whole(assignment, named, settings, squeezed)
    target = replace(assignment.target, indices=kept)
    axes = tuple(map(kept.index, old))
    return _Whole(replace(assignment, target=target), named, settings, squeezed, axes)


def laid_out(order: str, operands: tuple[Any, ...], out: Any, compute: Callable[..., Any]) -> Any:
    """What `compute` returns, in the memory order that NumPy's `order` asks of dense results that
    are new arrays, not the caller's `out`."""
    if not isinstance(order, str) or order.upper() not in ORDERS:
        raise OperandError(
            f"Expected order to be one of {', '.join(ORDERS)}, found {order!r}",
            hint="K keeps the order in which the result is computed",
        )
    order = order.upper()
    if order == "A":
        arrays = [each for each in operands if isinstance(each, np.ndarray)]
        order = "F" if arrays and all(each.flags.fnc for each in arrays) else "C"
    found = compute(order="K" if order == "F" else order)
    if order != "F" or out is not None or not isinstance(found, np.ndarray):
        return found
    return np.asarray(found, order="F")


Contractions = tuple[tuple[tuple[int, ...], ...] | None, bool, float]


def _optimize(optimize: Any, count: int) -> Contractions:
    """Return the contractions of an explicit path, or None, whether products may be taken apart,
    and how many elements each intermediate may store.

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
