"""Which object a result is and how it is stored, by what the operands are: one table.

The first row that fits decides. `docs/formats.md` shows the same rows, as `markdown` writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from codegen.records import dataclass
from taco_py.language.formats import COO, CSC, CSR, Format, dense
from taco_py.language.legal.stored import is_full, is_sparse
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.notation.tree import has_reductions
from taco_py.planner.ir.formats import compressed_indices, levels_of, unordered_last
from taco_py.planner.ir.result_format import result_format

TENSOR, ARRAY = "tensor", "ndarray"


@dataclass(frozen=True, slots=True)
class ResultKind:
    """`format` is what is computed, `kind` what it is handed out as: "ndarray", "tensor", or a
    scipy class's name."""

    format: Format
    kind: str


@dataclass(frozen=True, slots=True)
class Question:
    """What a row is looked up by.

    formats     of the operands, by name
    containers  what they are: "tensor", "ndarray", "sparse_array" or "sparse_matrix"
    requested      the format that the caller asks for, or None
    vast        the indices whose sizes outnumber the entries of the operands by far
    """

    assignment: Assignment
    formats: Mapping[str, Format]
    containers: Mapping[str, str]
    requested: Format | None
    vast: frozenset[str] = frozenset()

    @property
    def order(self) -> int:
        """Return the number of modes of the result."""
        return len(self.assignment.target.indices)

    @property
    def used(self) -> frozenset[str]:
        """Return the containers of the operands that the value reads."""
        return frozenset(self.containers[a.tensor] for a in accesses(self.assignment))

    @property
    def scipy(self) -> frozenset[str]:
        """Return the families of scipy's among them; none where there is a Tensor too."""
        return frozenset() if TENSOR in self.used else self.used - {ARRAY}

    def scipy_class(self, form: str) -> str:
        """Return a scipy class of this form: of the family of matrices where all operands are."""
        matrices = self.order == 2 and all(kind.endswith("_matrix") for kind in self.scipy)
        return f"{form}_matrix" if matrices else f"{form}_array"

    @property
    def restricted(self) -> frozenset[str]:
        """Return the result's indices that a sparse operand restricts in every term."""
        levels = levels_of(self.assignment, self.formats, every=True)
        return compressed_indices(self.assignment, levels)


@dataclass(frozen=True, slots=True)
class Row:
    """operands, when, container and stored are the docs' words for `kind`.

    kind  what a result is, None where the row does not fit
    """

    operands: str
    when: str
    container: str
    stored: str
    kind: Callable[[Question], ResultKind | None]


def look_up(question: Question) -> ResultKind:
    """Find the kind of a result in the table."""
    return next(kind for row in TABLE if (kind := row.kind(question)) is not None)


def _where(
    fits: Callable[[Question], bool], kind: Callable[[Question], ResultKind]
) -> Callable[[Question], ResultKind | None]:
    """Give the kind where a question fits, and None for others."""
    return lambda question: kind(question) if fits(question) else None


# ---------------------------------------------------------------- format= is given


def _requested(question: Question) -> Format:
    assert question.requested is not None
    return question.requested


def _asks_for_array(question: Question) -> bool:
    requested = question.requested
    return requested is not None and is_full(requested) and _in_order(requested)


def _scipy_form(form: Format) -> str | None:
    """Return SciPy's name of a format: "csr", "csc", "coo", or None."""
    if form.is_coo and _in_order(form):
        return "coo"
    return {CSR: "csr", CSC: "csc"}.get(form)


def _in_order(form: Format) -> bool:
    return form.mode_order == tuple(range(form.order))


def _asks_for_scipy(question: Question) -> bool:
    requested = question.requested
    return requested is not None and bool(question.scipy) and _scipy_form(requested) is not None


# ---------------------------------------------------------------- modes permuted


def permuted(assignment: Assignment, form: Format) -> Format | None:
    """Give the format of an operand whose modes an assignment permutes, None where it does more, or
    nothing.

    B[j,i] = A[i,j]    A in ds   →   ds:1,0
    """
    access, target = assignment.value, assignment.target.indices
    if not isinstance(access, Access) or assignment.operator is not None:
        return None
    if len(target) != len(access.indices) or {*target} != {*access.indices}:
        return None
    if len(access.indices) != form.order or len({*target}) < len(target):
        return None
    if access.indices == target:
        return None
    return Format(form.levels, tuple(target.index(access.indices[m]) for m in form.mode_order))


def _permuted_format(question: Question) -> Format | None:
    """Return the format of the one operand, permuted, where nothing else is done to it."""
    value = question.assignment.value
    form = question.formats[value.tensor] if isinstance(value, Access) else None
    return permuted(question.assignment, form) if form is not None and is_sparse(form) else None


def _permuted_scipy(question: Question) -> ResultKind | None:
    form = _permuted_format(question)
    if form is None or not question.scipy:
        return None
    if form.is_coo:
        return ResultKind(COO(form.order), question.scipy_class("coo"))
    return ResultKind(form, question.scipy_class("csc" if form == CSC else "csr"))


def _permuted_tensor(question: Question) -> ResultKind | None:
    form = _permuted_format(question)
    return ResultKind(form, TENSOR) if form is not None and TENSOR in question.used else None


# ---------------------------------------------------------------- Tensors


def _is_full_tensor(question: Question) -> bool:
    return TENSOR in question.used and is_full(_of_tensors(question).format)


def _of_tensors(question: Question) -> ResultKind:
    return ResultKind(result_format(question.assignment, question.formats), TENSOR)


# ---------------------------------------------------------------- scipy's arrays


def _is_sparse(question: Question) -> bool:
    """Tell whether each index is restricted; a vector that is a sum is dense, as scipy's are."""
    value, indices = question.assignment.value, question.assignment.target.indices
    sums = has_reductions(value)
    if not question.scipy or not indices or (len(indices) == 1 and sums):
        return False
    return question.restricted == frozenset(indices)


def _has_columns_first(question: Question) -> bool:
    """Tell whether operands store the second index before the first.

    Where neither order prevails, tell whether all are in CSC.
    """
    first, second = question.assignment.target.indices
    before: set[tuple[str, str]] = set()
    forms = []
    for access in accesses(question.assignment):
        form = question.formats[access.tensor]
        if is_sparse(form):
            forms.append(form)
            before.update(() if form.is_coo else pairwise(form.stored(access.indices)))
    rows, columns = _leads(before, first, second), _leads(before, second, first)
    return (columns and not rows) or (columns == rows and all(form == CSC for form in forms))


def _leads(before: set[tuple[str, str]], start: str, end: str) -> bool:
    """Tell whether steps from an index to one stored below it lead from `start` to `end`."""
    reached, pending = {start}, [start]
    while pending:
        index = pending.pop()
        successors = {below for above, below in before if above == index} - reached
        reached |= successors
        pending += successors
    return end in reached


def _is_sparse_matrix(question: Question) -> bool:
    return question.order == 2 and _is_sparse(question)


def _is_csc(question: Question) -> bool:
    return _is_sparse_matrix(question) and _has_columns_first(question)


def _is_hypersparse(question: Question) -> bool:
    """Tell whether an array along one of the restricted indices would outnumber all entries by far:
    that of a matrix's rows, or columns in CSC; any that a dense result has."""
    if not question.scipy or not question.vast & question.restricted:
        return False
    if not _is_sparse(question):
        return True
    first, *rest = question.assignment.target.indices
    outer = rest[0] if _is_csc(question) else first
    return question.order == 2 and outer in question.vast


def _scipy_kind(form: Format, name: str) -> Callable[[Question], ResultKind]:
    return lambda question: ResultKind(form, question.scipy_class(name))


# ---------------------------------------------------------------- the table

TABLE: tuple[Row, ...] = (
    Row(
        "any", "`format=` dense, its modes in order", "`ndarray`", "as asked",
        _where(_asks_for_array, lambda q: ResultKind(_requested(q), ARRAY)),
    ),
    Row(
        "SciPy's, no Tensor", "`format=` CSR, CSC or COO", "`csr_array`, `csc_array`, `coo_array`",
        "as asked", _where(
            _asks_for_scipy,
            lambda q: ResultKind(_requested(q), q.scipy_class(_scipy_form(_requested(q)) or "")),
        ),
    ),
    Row(
        "any", "any other `format=`", "Tensor", "as asked",
        _where(lambda q: q.requested is not None, lambda q: ResultKind(_requested(q), TENSOR)),
    ),
    Row(
        "one of SciPy's", "its modes permuted: `B[j,i] = A[i,j]`",
        "`csc_array` of CSR, `csr_array` of CSC, `coo_array` of COO", "in the operand's own arrays",
        _permuted_scipy,
    ),
    Row(
        "one sparse Tensor", "its modes permuted", "Tensor",
        "in the operand's own arrays, with another mode order",
        _permuted_tensor,
    ),
    Row(
        "a Tensor among them", "no index compressed", "`ndarray`", "dense",
        _where(_is_full_tensor, lambda q: ResultKind(dense(q.order), ARRAY)),
    ),
    Row(
        "a Tensor among them", "some index compressed", "Tensor",
        "an index that every term restricts: compressed, or dense where operands store it so; "
        "others: dense",
        _where(lambda q: TENSOR in q.used, _of_tensors),
    ),
    Row(
        "SciPy's", "its rows, or another dense mode, outnumber the entries by far", "`coo_array`",
        "COO", _where(_is_hypersparse, lambda q: ResultKind(COO(q.order), q.scipy_class("coo"))),
    ),
    Row(
        "SciPy's", "every index restricted in every term; columns stored first", "`csc_array`",
        "CSC", _where(_is_csc, _scipy_kind(unordered_last(CSC), "csc")),
    ),
    Row(
        "SciPy's", "every index restricted in every term; a matrix", "`csr_array`", "CSR",
        _where(_is_sparse_matrix, _scipy_kind(unordered_last(CSR), "csr")),
    ),
    Row(
        "SciPy's", "every index restricted in every term; another order, no sum that is a vector",
        "`coo_array`", "COO",
        _where(_is_sparse, lambda q: ResultKind(COO(q.order), "coo_array")),
    ),
    Row(
        "any", "otherwise", "`ndarray`", "dense",
        lambda q: ResultKind(dense(q.order), ARRAY),
    ),
)  # fmt: skip


def markdown() -> str:
    """Write the table as the documentation has it."""
    head = "| operands | when | result | stored |\n|---|---|---|---|\n"
    rows = (f"| {r.operands} | {r.when} | {r.container} | {r.stored} |\n" for r in TABLE)
    return head + "".join(rows)
