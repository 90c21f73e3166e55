"""What a derivative is asked of: a text, its operands, and which of them it is taken by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.arguments.device_tensor import DeviceTensor
from taco_py.arguments.operands import check_given, is_number, read_operand
from taco_py.arguments.options import CallOptions
from taco_py.arguments.semiring_mask import SemiringMask
from taco_py.calls.call.computation import Computation
from taco_py.calls.call.devices.on_device import to_device
from taco_py.calls.call.requested_outputs import RequestedOutputs, requested_outputs
from taco_py.calls.call.semirings.compute_over import arithmetic
from taco_py.calls.call.semirings.over_semirings import allowed_by
from taco_py.calls.indexed.domains import ERROR
from taco_py.calls.indexed.indexed_statements import boundary_options
from taco_py.calls.statements.read_text import statements_of
from taco_py.calls.statements.sequence import in_single_assignment
from taco_py.data.convert.remap import plain_format
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.tensors.tensor import Tensor
from taco_py.data.tensors.traced_operands import is_traced
from taco_py.language.diagnostics.cautions import issue_warnings
from taco_py.language.diagnostics.errors import DerivativeError, DimensionError, OperandError
from taco_py.language.diagnostics.option_table import options_of
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.formats import Format, RemappedFormat
from taco_py.language.notation.checks import accesses, has_subscripts, operand_names, unique
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal
from taco_py.language.notation.operators import ADD, FILLED, MUL
from taco_py.language.notation.rewrites.masks import masked
from taco_py.language.notation.tree import is_reduction_by, map_children


@dataclass(frozen=True, slots=True, eq=False)
class DifferentiatedText:
    """A text over operands.

    outputs  the targets that are differentiated
    wrt      the operands by which
    alone    whether one operand was asked for by its name, not in a sequence
    shapes   of what statements scatter to, by name, where the call says them
    border   what a subscript outside of its operand is, as `evaluate` has it
    rewritten  whether the statements are others than the text's: over a semiring, under a mask
    """

    text: str
    statements: tuple[Assignment, ...]
    objects: Mapping[str, Any]
    outputs: tuple[str, ...]
    wrt: tuple[str, ...]
    alone: bool
    shapes: Mapping[str, tuple[int, ...]]
    border: str = "error"
    rewritten: bool = False

    @property
    def sparse(self) -> frozenset[str]:
        """Return the operands that leave elements out."""
        return frozenset(n for n, operand in self.objects.items() if leaves_out(operand))

    @property
    def dense(self) -> frozenset[str]:
        """Return the operands that leave no elements out."""
        return frozenset(self.objects) - self.sparse

    @property
    def masks(self) -> frozenset[str]:
        """Return the sparse operands that are 0 where they store nothing."""
        return frozenset(n for n in self.sparse if not fill_of(self.objects[n], n))

    @property
    def is_complex(self) -> bool:
        """Tell whether an operand is complex."""
        return any(self.dtype(name).kind == "c" for name in self.objects)

    def dtype(self, name: str) -> np.dtype[Any]:
        """Return the type of an operand."""
        return dtype_of(self.objects[name], name)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of an operand, or of a statement's target without subscripts."""
        if name in self.objects:
            return tuple(np.shape(self.objects[name]))
        if name in self.shapes:
            return self.shapes[name]
        target = next(statement for statement in self.statements if statement.target.tensor == name)
        return tuple(self._size(index, target) for index in target.target.indices)

    def _size(self, index: str, statement: Assignment) -> int:
        """Return the size of an index of a statement."""
        for access in accesses(statement):
            for mode, subscript in enumerate(access.modes):
                if subscript.index == index:
                    return self.shape(access.tensor)[mode]
        raise DerivativeError(f"Expected an operand that says the size of {index}, found none")

    def check_shape(self, value: Any, name: str, what: str, of: str) -> None:
        """Raise OperandError where a tangent's or cotangent's shape is not that of its tensor.

        what, of  how the message calls both
        """
        scattered = any(target.tensor == name and target.subscripts for target in self.targets())
        if scattered and name not in self.shapes and name not in self.objects:
            return  # the cotangent says how large it is
        try:
            expected = self.shape(name)
        except DerivativeError:  # as of a convolution's output: kernels compare sizes
            return
        shape = tuple(np.shape(value))
        if shape != expected:
            raise OperandError(
                f"Expected a {what} of shape {expected} for {name}, found one of shape {shape}",
                hint=f"the {what} of {of} has its shape",
            )

    def targets(self) -> Iterator[Access]:
        """Yield the accesses that outputs are assigned by."""
        for name in self.outputs:
            yield next(s.target for s in self.statements if s.target.tensor == name)


def read_text(
    text: str,
    objects: Mapping[str, Any],
    wrt: str | Iterable[str] | None,
    outputs: Any,
    shape: Any = None,
    border: Any = "error",
    over: SemiringMask | None = None,
) -> DifferentiatedText:
    """Read a text that a derivative is asked of.

    shape  of what a statement scatters to, or shapes by name
    border what a subscript outside of its operand is
    over   the semiring and the mask, None where there is neither

    Raises NotationError and OperandError of texts, DerivativeError for operands that have none.
    """
    checked = statements_of(text, objects)
    issue_warnings(caution for statement in checked for caution in statement.cautions)
    statements = tuple(statement.assignment for statement in checked)
    used = {name for statement in statements for name in operand_names(statement)}
    used |= {statement.target.tensor for statement in statements if statement.operator is not None}
    assigned = {statement.target.tensor for statement in statements}
    accumulated = [statement.target for statement in statements if statement.operator is not None]
    read = [access for statement in statements for access in accesses(statement)] + accumulated
    missing = [access for access in read if access.tensor not in assigned]
    required = unique(a.tensor for a in read if a.tensor not in assigned or a in accumulated)
    check_given(missing, required, objects, options_of("vjp"))
    border = boundary_options(border, None).border
    requested = requested_outputs(statements, outputs)
    if over is not None and not over.is_usual:
        statements, objects = _over_numbers(statements, objects, over, requested)
    names = _select_wrt(wrt, objects, used, [*requested.outputs])
    statements, targets = _assigned_once(statements, requested.outputs, objects)
    shapes = _shapes(shape, statements, border)
    alone = isinstance(wrt, str)
    rewritten = over is not None and not over.is_usual
    return DifferentiatedText(
        text, statements, objects, targets, names, alone, shapes, border, rewritten
    )


def _over_numbers(
    statements: tuple[Assignment, ...],
    objects: Mapping[str, Any],
    over: SemiringMask,
    requested: RequestedOutputs,
) -> tuple[tuple[Assignment, ...], dict[str, Any]]:
    """Return statements over a semiring, under a mask, as those over numbers, and their operands.

    Raises DerivativeError for semirings of truths, and for subscripts that are more than indices
    over other semirings, or on the left under a mask.
    """
    if over.semiring.computes_truths:
        raise DerivativeError(
            f"Expected a semiring of numbers for a derivative, found {over.semiring.name}",
            hint="truths have no derivative; leave semiring= out, or take one as max_times",
        )
    at_subscripts = [statement for statement in statements if has_subscripts(statement)]
    if at_subscripts and over.semiring.is_arithmetic:
        return _under_mask(statements, objects, over, requested)
    for statement in at_subscripts:
        raise DerivativeError(
            "Expected indices alone as subscripts under semiring= in a derivative, found others",
            statement.span,
            "read the operand at positions before",
        )
    computation = Computation(statements, objects, CallOptions(), requested, over=over)
    computation, _ = arithmetic(computation)
    rewritten = (replace(e, value=_where_stored(e.value)) for e in computation.assignments)
    return tuple(rewritten), dict(computation.objects)


def _under_mask(
    statements: tuple[Assignment, ...],
    objects: Mapping[str, Any],
    over: SemiringMask,
    requested: RequestedOutputs,
) -> tuple[tuple[Assignment, ...], dict[str, Any]]:
    """Return statements of which the output is masked, and their operands, the mask among them.

    C[i,j] = A[p[i],j]    →    C[i,j] = kept(A[p[i],j], stored(mask[i,j]))
    """
    assert over.mask is not None
    over.check_outputs(requested.outputs, statements[-1])
    last = next(s for s in reversed(statements) if s.target.tensor == requested.outputs[0])
    if last.target.subscripts:
        raise DerivativeError(
            "Expected indices alone on the left under mask= in a derivative, found others",
            last.target.span,
            "multiply by the mask in the text",
        )
    names = {name for s in statements for name in (s.target.tensor, *operand_names(s))}
    element = Access(Names({*objects, *names}).fresh("mask"), last.target.indices)
    allowed, array = allowed_by(over.mask, element, CallOptions())
    restricted = masked(last, allowed, None, np.dtype(np.float64))
    rewritten = tuple(restricted if statement is last else statement for statement in statements)
    return rewritten, {**objects, element.tensor: array}


def _where_stored(expr: Expr) -> Expr:
    """Mark products by operators other than * as 0 where nothing is stored.

    sum(k, A[i,k] + B[k,j])  →  sum(k, filled(A[i,k] + B[k,j], 0))    for sparse A: as * is
    """
    if is_reduction_by(expr, ADD) and isinstance(expr.body, Call):
        body = expr.body
        if (
            body.operator != FILLED
            and body.operator != MUL
            and any(zero is not None for zero in body.operator.annihilators)
        ):
            return replace(expr, body=Call(FILLED, (body, Literal(0)), body.span))
    return map_children(expr, _where_stored)


def _shapes(
    shape: Any, statements: Sequence[Assignment], border: str
) -> dict[str, tuple[int, ...]]:
    """Return the shapes that a call specifies, by the names of scatter targets.

    Beyond a border, the target of the one statement may have a shape too.
    """
    scattered = dict.fromkeys(s.target.tensor for s in statements if s.target.subscripts)
    if border != ERROR and len(statements) == 1:
        scattered = {statements[0].target.tensor: None}
    if shape is None:
        return {}
    if not isinstance(shape, Mapping):
        if len(scattered) != 1:
            raise OperandError(
                f"Expected shape= by name, or a text with one scatter, found {len(scattered)} "
                "scatters",
                hint="as in shape={'y': 4} for y[p[i]] += x[i]; other shapes follow from operands",
            )
        shape = dict.fromkeys(scattered, shape)
    for name in shape:
        if name not in scattered:
            raise OperandError(
                f"Expected names that the text scatters to in shape=, found {name!r}",
                hint=with_suggestion(
                    f"it scatters to {', '.join(scattered) or 'none'}", str(name), [*scattered]
                ),
            )
    return {name: _sizes(value) for name, value in shape.items()}


def _sizes(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple. Raises DimensionError for what is none."""
    sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    if not all(isinstance(size, Integral) and int(size) >= 0 for size in sizes):
        raise DimensionError(
            f"Expected sizes in shape=, found {shape!r}", hint="as in shape=4, or shape=(4, 3)"
        )
    return tuple(map(int, sizes))


def _assigned_once(
    statements: tuple[Assignment, ...], outputs: tuple[str, ...], objects: Mapping[str, Any]
) -> tuple[tuple[Assignment, ...], tuple[str, ...]]:
    """Return statements of which each has a target of its own, and the targets that outputs stand
    for.

    Derivatives read what a statement has read, also where its name is assigned again later.
    """
    targets = [statement.target.tensor for statement in statements]
    if len({*targets}) == len(targets):
        return statements, outputs
    for statement in statements:
        target = statement.target
        if target.subscripts:
            raise DerivativeError(
                f"Expected names that are assigned once beside a scatter to {target.tensor}, "
                "found one that is assigned twice",
                target.span,
                "give each value a name of its own",
            )
    single = in_single_assignment(statements, outputs, objects)
    return single.assignments, tuple(single.outputs[name] for name in outputs)


def _select_wrt(
    wrt: str | Iterable[str] | None,
    objects: Mapping[str, Any],
    used: set[str],
    outputs: Sequence[str],
) -> tuple[str, ...]:
    """Return the operands that a derivative is taken by."""
    if wrt is None:
        floats = [n for n, o in objects.items() if dtype_of(o, n).kind in "fc" and n in used]
        if not floats:
            raise DerivativeError(
                f"Expected a real or complex operand that {', '.join(outputs)} depends on, found "
                f"{_types(objects)}",
                hint="integers and booleans have no derivative; pass x.astype(float)",
            )
        return tuple(floats)
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    for name in names:
        if name not in objects:
            raise DerivativeError(
                f"Expected names of operands in wrt=, found {name!r}",
                hint=with_suggestion(f"operands are {', '.join(objects)}", str(name), [*objects]),
            )
        if dtype_of(objects[name], name).kind not in "fc":
            raise DerivativeError(
                f"Expected real or complex operands in wrt=, found {name} of type "
                f"{dtype_of(objects[name], name)}",
                hint=f"integers and booleans have no derivative; pass {name}.astype(float)",
            )
    return names


def _types(objects: Mapping[str, Any]) -> str:
    return ", ".join(f"{n} of type {dtype_of(obj, n)}" for n, obj in objects.items()) or "none"


def dtype_of(obj: Any, name: str) -> np.dtype[Any]:
    """Return the type of an operand's elements."""
    if is_number(obj):
        return np.asarray(obj).dtype
    if is_traced(obj):
        dtype: np.dtype[Any] = obj.dtype
        return dtype
    return read_operand(obj, f"operand {name}").dtype


def fill_of(obj: Any, name: str) -> Any:
    """Return the fill value of an operand; 0 or none for most."""
    return obj.fact.fill if is_traced(obj) else read_operand(obj, name).fill


def leaves_out(obj: Any) -> bool:
    """Tell whether an operand is sparse."""
    if is_traced(obj):
        return bool(obj.fact.sparsity)
    tensor = isinstance(obj, Tensor | DeviceTensor)
    return is_scipy_sparse(obj) or (tensor and not obj.format.is_dense)


def like(obj: Any, value: Any) -> Any:
    """Return a cotangent as the operand is: its class, its type; zeros where there is none.

    That of a symmetric matrix is in CSR: an element is not that across the diagonal.
    """
    dtype = dtype_of(obj, "operand")
    if is_traced(obj) or is_traced(value):
        return np.zeros_like(obj) if value is None else value.astype(dtype)
    if isinstance(value, DeviceTensor):
        same = isinstance(obj, DeviceTensor) and value.dtype == dtype
        if same and leaves_out(obj) == leaves_out(value) and value.kind == obj.kind:
            return value
        value = value.to_host()
    if isinstance(obj, DeviceTensor):
        return to_device(like(obj.to_host(), value), obj.target)
    value = zeros_like(obj) if value is None else value
    if not leaves_out(obj):
        return _dense(obj, value, dtype)
    if dtype.kind != "c" and value.dtype.kind == "c":
        value = value.real
    if isinstance(obj, Tensor):
        tensor = value if isinstance(value, Tensor) else Tensor(read_operand(value, "cotangent"))
        form: Format | RemappedFormat = obj.format
        if isinstance(form, RemappedFormat) and form.is_symmetric:
            form = plain_format(form.order)
        return tensor.to_format(form).astype(dtype)
    value = value.to_scipy() if isinstance(value, Tensor) else value
    matrix = value.asformat(obj.format) if is_scipy_sparse(value) else value
    return (matrix if type(matrix) is type(obj) else type(obj)(matrix)).astype(dtype, copy=False)


def _dense(obj: Any, value: Any, dtype: np.dtype[Any]) -> Any:
    """Return a cotangent as a dense operand is."""
    if is_scipy_sparse(value):
        value = value.toarray()
    elif isinstance(value, Tensor):
        value = value.to_numpy()
    value = np.asarray(value)
    if dtype.kind != "c" and value.dtype.kind == "c":
        value = value.real
    if is_number(obj):
        return value.item()
    array = np.array(value, dtype)
    return Tensor(read_operand(array, "cotangent")) if isinstance(obj, Tensor) else array


def zeros_like(obj: Any) -> Any:
    """Return an operand of zeros; of a sparse one a Tensor that stores what it stores."""
    dtype = dtype_of(obj, "operand")
    if not leaves_out(obj):
        return 0.0 if is_number(obj) else np.zeros(np.shape(obj), dtype)
    if is_traced(obj):
        return obj * 0
    data = read_operand(obj.to_host() if isinstance(obj, DeviceTensor) else obj, "operand")
    return Tensor(replace(data, values=np.zeros(data.values.shape, dtype), fill=""))
