"""`evaluate`: one line in, a result out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from taco_py.api.over import built, read_over
from taco_py.data.tensors.byte_counts import limited
from taco_py.data.tensors.keys import COUNTS, by_outputs, call_key, options_key
from taco_py.language.diagnostics.option_table import refuse_of_other_kind
from taco_py.language.notebook.folded_report import Report
from taco_py.running.replay.find import find

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from taco_py.arguments.learned_price import Price
    from taco_py.calls.kernels.builder import ScheduleBuilder
    from taco_py.compiler.schedule.schedule import Schedule
    from taco_py.data.storage.tensor_data import Array
    from taco_py.language.formats import Format
    from taco_py.language.notation.rewrites.semirings import Semiring

USUAL = ("error", None, None, True, None, "analytic", (), ())
"""The options of most calls: border, shape, static, libraries, schedule_budget, price, forbid,
allow."""


def evaluate(
    text: str,
    operands: Mapping[str, Any] | None = None,
    /,
    *others: Any,
    format: Format | str | Mapping[str, Format | str] | None = None,
    out: Array | Mapping[str, Array] | None = None,
    dtype: DTypeLike | None = None,
    casting: str = "safe",
    schedule: ScheduleBuilder | Schedule | str | None = None,
    threads: int | None = None,
    static: Mapping[str, int] | None = None,
    libraries: bool = True,
    schedule_budget: float | None = None,
    price: Price = "analytic",
    forbid: Collection[str] | str = (),
    allow: Collection[str] | str = (),
    path: Any = None,
    outputs: Sequence[str] | str | None = None,
    border: str = "error",
    shape: Sequence[int] | int | None = None,
    semiring: Semiring | str | None = None,
    mask: Any = None,
    replace: bool = False,
    target: str | None = None,
    memory_limit: int | str | None = None,
    **named: Any,
) -> Any:
    """Compute assignments in index notation over sparse and dense operands.

    >>> A = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=x)
    array([7., 6.])
    >>> tp.evaluate("C[i,j] = 2 * A[i,j]", A=A).toarray()
    array([[2., 0., 4.],
           [0., 6., 0.]])
    >>> tp.evaluate("s = sum(i, j, A[i,j] * A[i,j])", {"A": A})
    np.float64(14.0)
    >>> tp.evaluate("m[i] = A[i,j] * x[j]; r[i] = x[j] * A[j,i] - m[i]", A=A[:, :2], x=x[:2])
    array([0., 0.])

    The result is an array, or a number, where it is dense; of scipy.sparse operands a scipy.sparse
    array, of Tensors a Tensor, where it is sparse.

    text      `+ - * / **`, parentheses, numbers, `=` and `+=`. An index that is not on the left is
              summed within each additive term that uses it, over the smallest product that holds
              its uses, or where `sum(j, …)` says so. Statements are separated by `;` or lines;
              later ones read what earlier ones assign. Subscripts may be sums of multiples of
              indices and of what operands of integers hold: x[2*i+k-1], A[p[i],0], y[p[i]] += x[i].
    operands, named  NumPy arrays, scipy.sparse arrays or matrices, Tensors and numbers, as a
              mapping or by name. They are not copied and never modified.
    others    nothing: operands go by name
    format    how to store the result; by default an index is compressed when every term
              restricts it
    out       an array of the result's shape and dtype to write into; a new array by default
    dtype     compute in this dtype; by default in the one that NumPy's promotion gives, and sums of
              small integers in 64 bits, as `numpy.sum` does
    casting   which conversions to `dtype` are allowed, in NumPy's words; "safe" by default
    schedule  scheduling commands: a text such as "reorder(i,k,j)", a Schedule, or what
              `tp.schedule` builds; "auto" to choose without timing, as where it is left out, or
              "measure" to time the best few ways once, on the operands of the first call, and
              remember the fastest, for later processes too; "tuned" takes a plan that `tune` found
    threads   at most so many threads; by default what `set_threads` says
    static    sizes to compile into the kernel, by index
    libraries False computes by generated code alone; otherwise a product of matrices may be left to
              SciPy's BLAS where that is expected to take less time, compiling included
    schedule_budget  seconds that choosing may take where no schedule is given; the best schedule
              found until then is used. It takes less than 0.05 s for up to three operands, and
              nothing where such a call was made before.
    price     by which plans are compared where no schedule is given: "analytic", the planner's own;
              "learned", trees that were trained on the times of plans, or a model of `load_price`
              or `learn`; docs/prices.md
    forbid    rules of the planner that may not be used, by the names that `explain` shows, as in
              forbid=("multiply_out",); docs/rules.md lists them
    allow     what a plan may lose: "cancellation" lets it multiply differences out, as (A - B) * x,
              whose digits may cancel then; docs/planner.md says when that pays
    path      the order in which a product's tensors are contracted, as einsum's `optimize` has it:
              [(1, 2), (0, 1)] takes two tensors out of those that are left and appends their
              product, and so on; so does numpy.einsum_path(…)[0]; by default the order of least
              expected work
    outputs   the names that are wanted of several statements, which are returned as a tuple, or one
              name; by default what the last one assigns. `format` and `out` may then be by name.
    border    what a subscript outside of its operand is: "error" by default; "fill" reads the
              fill value there, 0 of arrays, and writes nothing outside of the result
    shape     of the result, where subscripts do not say it, or less of it is wanted
    semiring  what + and * mean: a name as "min_plus", or a Semiring; docs/semirings.md
    mask      a tensor of the result's shape: the result is computed where a sparse one stores
              something, or a dense one is not 0, or elsewhere for `tp.complement(…)`, and is the
              semiring's zero where it is not computed
    replace   whether out= is set to zero where the mask leaves it out; it is kept there by default
    target    what computes it: "c" the CPU, "cuda" a GPU, "cuda-emulated" the GPU's kernels on the
              CPU, which checks each access to memory; by default the device that operands are on
              (`tp.device`), else the CPU; docs/gpu.md
    memory_limit  bytes that the call may take at once, as "2GB", "512MiB" or a number; what needs
              more is refused before it is begun. By default what `set_memory_limit` says, else
              four fifths of what is free

    Raises NotationError, OperandError, OperandTypeError, DimensionError, FormatError, OutputError,
    ScheduleError before anything is compiled; CompilerError where there is no compiler, and
    OutOfMemoryError where the result has no room.
    """
    if memory_limit is not None:
        return limited(evaluate, locals())
    objects = named if operands is None else _merge_operands(text, operands, others, named)
    schedule, over = built(schedule), read_over(semiring, mask, replace)
    values: tuple[Any, ...] = (*objects.values(),)
    single: Any = (format, out, () if out is None else (out,))
    by_names, key = (outputs is not None or type(format) is dict or type(out) is dict), None
    form, kinds, outs = by_outputs(outputs, format, out) if by_names else single
    if target in (None, "c") and type(threads) in COUNTS:
        identity: tuple[object, ...] = (text, form, casting, schedule, threads, target, *objects)
        usual = out is None and dtype is None and path is None and outputs is None
        options = (border, shape, static, libraries, schedule_budget, price, forbid, allow)
        if not usual or options != USUAL:
            identity = (*identity, options_key(kinds, dtype, path, *options))
        if over is not None:
            identity, values = (*identity, over.identity), (*values, *over.arrays)
        key = call_key(identity, values)
        if (call := find(key)) is not None and (result := call(*values, *outs)) is not None:
            return result
    from taco_py.calls.call.texts.by_text import compute_text

    return compute_text(text, objects, locals(), over, key)


def call_fast_path(text: str, names: tuple[str, ...], *operands: Any) -> Any:
    """Take the short way of `evaluate` of operands by names, without options; None where no such
    call was made."""
    call = find(call_key((text, None, "safe", None, None, None, *names), operands))
    return None if call is None else call(*operands)


def _merge_operands(
    text: str, operands: Any, rest: tuple[Any, ...], keywords: dict[str, Any]
) -> dict[str, Any]:
    """Return the operands of a call that passes some by position, in a mapping."""
    if type(operands) is dict and not rest and operands.keys().isdisjoint(keywords):
        return {**operands, **keywords}
    from taco_py.calls.statements.read_text import by_name

    return by_name(text, operands, rest, keywords)


def _operands_of(
    text: str, operands: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[dict[str, Any], bool]:
    """Return the operands by name, and whether they are einsum's, behind its subscripts."""
    if operands and isinstance(text, str) and "=" not in text:
        return {f"operand {place}": operand for place, operand in enumerate(operands)}, True
    from taco_py.calls.statements.read_text import by_name

    return by_name(text, operands[0] if operands else None, operands[1:], keywords), False


def explain(
    text: str,
    *operands: Any,
    format: Format | str | Mapping[str, Format | str] | None = None,
    dtype: DTypeLike | None = None,
    casting: str = "safe",
    schedule: ScheduleBuilder | Schedule | str | None = None,
    threads: int | None = None,
    static: Mapping[str, int] | None = None,
    libraries: bool = True,
    optimize: Any = None,
    schedule_budget: float | None = None,
    price: Price = "analytic",
    forbid: Collection[str] | str = (),
    allow: Collection[str] | str = (),
    frontier_budget: float | None = None,
    path: Any = None,
    outputs: Sequence[str] | str | None = None,
    border: str = "error",
    shape: Sequence[int] | int | None = None,
    semiring: Semiring | str | None = None,
    mask: Any = None,
    target: str | None = None,
    memory_limit: int | str | None = None,
    **named: Any,
) -> str:
    """Explain how `evaluate`, or `einsum`, computes its result with the same arguments.

    >>> A = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> text = tp.explain("y[i] = A[i,j] * x[j]", A=A, x=x)
    >>> print(text.splitlines()[0])
    runs      1 kernel, 0 copies
    >>> "loop order  i,j" in tp.explain("ij,j->i", A, x, frontier_budget=0)
    True

    Returns text: what runs, the expected time, the largest temporary, what limits it and what may
    differ in numbers; then notation, loops, formats, copies and workspaces, threads and compile
    time of each kernel; then, where the schedule was chosen, the schedules that no other is
    asymptotically better than, and where the chosen one stands. It computes nothing, but with
    schedule="measure" the best few schedules.

    text      index notation, or einsum's subscripts
    operands, named  operands in a mapping or by name, or behind einsum's subscripts
    optimize  einsum's
    format, dtype, casting, schedule, threads, static, libraries, schedule_budget, price, forbid,
    allow, path, outputs, border, shape, semiring, mask, target, memory_limit   as in `evaluate`
    frontier_budget  seconds that the comparison with the frontier may take, which changes no plan;
              schedule_budget where it is left out, 1 where both are; 0 leaves it out

    Raises as `evaluate`.
    """
    if memory_limit is not None:
        return limited(explain, locals())
    from taco_py.arguments.call_arguments import CallArguments
    from taco_py.arguments.numpy_einsum import left_to_numpy
    from taco_py.arguments.option_checks import check_budget
    from taco_py.arguments.options import CallOptions
    from taco_py.calls.call.devices.placed import placed
    from taco_py.calls.call.subscripts import explain_subscripts
    from taco_py.calls.call.texts.by_text import explain_text

    objects, einsums = _operands_of(text, operands, named)
    refuse_of_other_kind(einsums, named, locals())
    if einsums and (numpys := left_to_numpy((text, *operands), locals())) is not None:
        return Report(numpys.explanation)
    objects, where = placed(objects, target)
    options = CallOptions.of({**locals(), "target": where})
    seconds = check_budget(frontier_budget, "frontier_budget")
    over = read_over(semiring, mask, False)
    over = None if over is None or over.is_usual else over
    if einsums:
        every = (text, *objects.values())
        return Report(explain_subscripts(every, options, over, optimize, seconds))
    return Report(explain_text(text, CallArguments(objects, options, over=over), seconds))
