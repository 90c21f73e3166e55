"""`compile`: a kernel for operands of given formats, without data."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace as with_fields
from typing import TYPE_CHECKING, Any

from numpy.typing import DTypeLike

from taco_py.api.over import as_mask, read_over
from taco_py.arguments.learned_price import ANALYTIC
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.devices.placed import placed
from taco_py.calls.kernels.compile_text import compile_text
from taco_py.calls.kernels.draft import CompileArguments
from taco_py.calls.kernels.kernel import Kernel
from taco_py.calls.statements.read_text import by_name, statements_of
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.data.tensors.byte_counts import check_memory_limit
from taco_py.language.diagnostics.cautions import issue_warnings
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.formats import Format, RemappedFormat

if TYPE_CHECKING:
    from taco_py.calls.kernels.builder import ScheduleBuilder
    from taco_py.language.notation.rewrites.semirings import Semiring


def compile(
    text: str,
    formats: Mapping[str, Format | str] | None = None,
    /,
    *others: Any,
    dtypes: Mapping[str, DTypeLike] | DTypeLike | None = None,
    index_dtype: str = "int32",
    static: Mapping[str, int] | None = None,
    schedule: ScheduleBuilder | Schedule | str | None = None,
    threads: int | None = None,
    libraries: bool = True,
    schedule_budget: float | None = None,
    price: str = "analytic",
    forbid: Collection[str] | str = (),
    allow: Collection[str] | str = (),
    outputs: Sequence[str] | str | None = None,
    semiring: Semiring | str | None = None,
    mask: Any = None,
    replace: bool = False,
    border: str = "error",
    shape: Sequence[int] | int | None = None,
    target: str | None = None,
    memory_limit: int | str | None = None,
    **named: Format | RemappedFormat | str,
) -> Kernel:
    """Compile assignments for operands of given formats, without data.

    >>> spmv = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1))
    >>> A = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    >>> spmv(A=A, x=np.array([1.0, 2.0, 3.0]))
    array([7., 6.])
    >>> add = tp.compile("C[i,j] = A[i,j] + B[i,j]", {"A": "csr", "B": "csr"}, dtypes="float32")
    >>> print(add.schedule)
    parallelize(i,CPUThread,NoRaces)

    Returns a `Kernel`, to be called with operands of these formats and any sizes.

    text         index notation
    formats, named  the format of each operand, and of the result unless it is to be chosen, as a
                 mapping or by name: a Format, its letters or its name, as in "bsr(3,3)"
    others       nothing: formats go by name
    dtypes       one for all operands, or by name; float64 where not given
    index_dtype  "int32" or "int64": of pos and crd arrays
    static       sizes that the kernel is specialised for, by index
    schedule, threads, libraries, schedule_budget, forbid, allow, outputs, semiring, target
                 as in `evaluate`
    price        "analytic": learned prices count the entries of operands, which are not known here
    mask         the format of a mask, or `tp.complement` or `tp.by_value` of one: calls name it
                 mask=
    border, shape  as in `evaluate`: of all calls
    memory_limit  bytes that a call of the kernel may take at once, as in `evaluate`
    replace      True where out= of calls may be written where the mask leaves it out too

    Raises NotationError, OperandError, FormatError, OperandTypeError, ScheduleError, CompilerError.
    """
    all_formats, where = placed(by_name(text, formats, others, named, "formats"), target)
    options = CallOptions.of_kernel({**locals(), "target": where})
    if options.is_priced:
        raise ScheduleError(
            f'Expected price="{ANALYTIC}" for formats alone, found one that counts entries',
            hint="evaluate and einsum have operands; tp.rank shows plans, whose loops "
            "schedule= takes",
        )
    options = with_fields(options, memory_limit=check_memory_limit(memory_limit))
    statements = statements_of(text, all_formats)
    over = read_over(semiring, as_mask(mask, statements[-1].assignment), replace)
    for statement in statements:
        issue_warnings(statement.cautions)
    arguments = CompileArguments(all_formats, dtypes, index_dtype, static, over, options)
    return compile_text(statements, arguments)
