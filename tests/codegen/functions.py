"""Hand-made loop IR: small kernels of each shape that the lowering produces."""

from __future__ import annotations

from codegen.build import (
    add,
    and_,
    block,
    cast,
    div,
    eq,
    increment,
    load,
    load_index,
    lt,
    minimum,
    mod,
    mul,
    sub,
)
from codegen.emit.abi import THREADS
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    AtomicStore,
    Block,
    ClearTable,
    Comment,
    Const,
    Count,
    Declare,
    Expr,
    Fill,
    For,
    Function,
    If,
    Insert,
    Key,
    LoopKind,
    Module,
    NewTable,
    Part,
    Ranked,
    Reserve,
    Role,
    SetLength,
    Sort,
    SortTable,
    Stmt,
    Storage,
    Store,
    Table,
    Team,
    Var,
    While,
)
from codegen.types import BOOL, FLOAT64, INT32, INT64, ScalarType

I, J, K, P, Q = (Var(name) for name in "ijkpq")  # noqa: E741 - the indices' own names
N_I, N_J, N_K = Var("n_i"), Var("n_j"), Var("n_k")
ZERO = Const(0.0, FLOAT64)


def const(value: int) -> Const:
    return Const(value)


def source(name: str, element: ScalarType = FLOAT64) -> Array:
    return Array(name, element, Storage.INPUT)


def result(name: str, element: ScalarType = FLOAT64) -> Array:
    return Array(name, element, Storage.OUTPUT)


def growing(name: str, element: ScalarType = FLOAT64) -> Array:
    return Array(name, element, Storage.GROWING)


def local(name: str, element: ScalarType = FLOAT64) -> Array:
    return Array(name, element, Storage.LOCAL)


POS, CRD, VALS = source("A2_pos", INT32), source("A2_crd", INT32), source("A_vals")
X, Y = source("x"), result("y")


def loop(var: Var, stop: Expr, *body: Stmt, start: Expr | None = None) -> For:
    return For(var, const(0) if start is None else start, stop, block(*body))


def segment(var: Var, pos: Array, parent: Expr, *body: Stmt) -> For:
    """A loop over the positions of one compressed segment."""
    start, stop = load_index(pos, parent), load_index(pos, add(parent, 1))
    return loop(var, stop, *body, start=start)


def dot() -> Function:
    total = Var("total", FLOAT64)
    body = block(
        Declare(total, ZERO),
        loop(I, N_I, Assign(total, mul(load(X, I), load(source("z"), I)), "+")),
        Store(Y, const(0), total),
    )
    return Function("dot", (X, source("z"), Y), (N_I,), body)


def spmv() -> Function:
    total = Var("total", FLOAT64)
    row = block(
        Declare(total, ZERO),
        segment(
            P,
            POS,
            I,
            Declare(J, load_index(CRD, P), constant=True),
            Assign(total, mul(load(VALS, P), load(X, J)), "+"),
        ),
        Store(Y, I, total),
    )
    rows = For(I, const(0), N_I, row, kind=LoopKind.PARALLEL)
    return Function("spmv", (POS, CRD, VALS, X, Y), (N_I,), Block((rows,)), threaded=True)


def spmm(columns: int | None = None, element: ScalarType = FLOAT64) -> Function:
    b, c, vals = source("B_vals", element), result("C_vals", element), source("A_vals", element)
    n: Expr = N_K if columns is None else const(columns)
    p_b, p_c = Var("p_B"), Var("p_C")
    row = block(
        Fill(c, mul(I, n), n, Const(0.0, element)),
        segment(
            P,
            POS,
            I,
            Declare(J, load_index(CRD, P), constant=True),
            loop(
                K,
                n,
                Declare(p_c, add(mul(I, n), K), constant=True),
                Declare(p_b, add(mul(J, n), K), constant=True),
                Store(c, p_c, mul(load(vals, P), load(b, p_b)), "+"),
            ),
        ),
    )
    name = "spmm" if columns is None else f"spmm_{columns}"
    scalars = (N_I, N_K) if columns is None else (N_I,)
    return Function(name, (POS, CRD, vals, b, c), scalars, Block((loop(I, N_I, row),)))


def row_append() -> Function:
    """C = A + B for two CSR matrices: a merge loop that appends."""
    b_pos, b_crd, b_vals = source("B2_pos", INT32), source("B2_crd", INT32), source("B_vals")
    c_pos, c_crd, c_vals = result("C2_pos", INT32), growing("C2_crd", INT32), growing("C_vals")
    p_end, q_end, p_c = Var("p_end"), Var("q_end"), Var("p_C")
    in_a, in_b = Var("in_a", BOOL), Var("in_b", BOOL)
    j_a, j_b = Var("j_A"), Var("j_B")
    value = Var("value", FLOAT64)
    merge = block(
        Declare(j_a, load_index(CRD, P), constant=True),
        Declare(j_b, load_index(b_crd, Q), constant=True),
        Declare(J, minimum(j_a, j_b), constant=True),
        Declare(in_a, eq(j_a, J), constant=True),
        Declare(in_b, eq(j_b, J), constant=True),
        Declare(value, ZERO, role=Role.VALUES),
        If(in_a, block(Assign(value, load(VALS, P), "+", role=Role.VALUES))),
        If(in_b, block(Assign(value, load(b_vals, Q), "+", role=Role.VALUES))),
        *append(c_crd, c_vals, p_c, J, value),
        If(in_a, block(increment(P))),
        If(in_b, block(increment(Q))),
    )
    body = block(
        Comment("C[i,j] = A[i,j] + B[i,j]"),
        Declare(p_c, const(0)),
        Store(c_pos, const(0), Const(0, INT32)),
        loop(
            I,
            N_I,
            Declare(P, load_index(POS, I)),
            Declare(p_end, load_index(POS, add(I, 1)), constant=True),
            Declare(Q, load_index(b_pos, I)),
            Declare(q_end, load_index(b_pos, add(I, 1)), constant=True),
            While(and_(lt(P, p_end), lt(Q, q_end)), merge),
            rest(P, p_end, CRD, VALS, c_crd, c_vals, p_c),
            rest(Q, q_end, b_crd, b_vals, c_crd, c_vals, p_c),
            Store(c_pos, add(I, 1), cast(INT32, p_c)),
        ),
        SetLength(c_crd, p_c),
        SetLength(c_vals, p_c, Role.VALUES),
    )
    arrays = (POS, CRD, VALS, b_pos, b_crd, b_vals, c_pos, c_crd, c_vals)
    return Function("row_append", arrays, (N_I,), body)


def append(crd: Array, vals: Array, place: Var, j: Expr, value: Expr) -> tuple[Stmt, ...]:
    room = add(place, 1)
    return (
        Reserve(crd, room),
        Store(crd, place, cast(INT32, j)),
        Reserve(vals, room, Role.VALUES),
        Store(vals, place, value, role=Role.VALUES),
        increment(place),
    )


def rest(
    p: Var, end: Var, crd: Array, vals: Array, c_crd: Array, c_vals: Array, place: Var
) -> Stmt:
    body = (*append(c_crd, c_vals, place, load_index(crd, p), load(vals, p)), increment(p))
    return While(lt(p, end), block(*body))


def workspace() -> Function:
    """A sparse row times a sparse matrix, scattered into a dense row and gathered sorted."""
    w, seen, cols = local("w"), local("seen", BOOL), local("cols", INT32)
    b_pos, b_crd, b_vals = source("B2_pos", INT32), source("B2_crd", INT32), source("B_vals")
    c_crd, c_vals = growing("C2_crd", INT32), growing("C_vals")
    count, r = Var("count"), Var("r")
    scatter = segment(
        Q,
        b_pos,
        K,
        Declare(J, load_index(b_crd, Q), constant=True),
        If(
            eq(load(seen, J), Const(False, BOOL)),
            block(
                Store(seen, J, Const(True, BOOL)),
                Store(cols, count, cast(INT32, J)),
                increment(count),
            ),
        ),
        Store(w, J, mul(load(VALS, P), load(b_vals, Q)), "+"),
    )
    body = block(
        Allocate(w, N_J, zero=True),
        Allocate(seen, N_J, zero=True),
        Allocate(cols, const(4)),
        Reserve(cols, N_J),
        Declare(count, const(0)),
        segment(P, POS, const(0), Declare(K, load_index(CRD, P), constant=True), scatter),
        Sort(cols, const(0), count),
        Reserve(c_crd, count),
        Reserve(c_vals, count),
        loop(
            r,
            count,
            Declare(J, load_index(cols, r), constant=True),
            Store(c_crd, r, cast(INT32, J)),
            Store(c_vals, r, load(w, J)),
        ),
        SetLength(c_crd, count),
        SetLength(c_vals, count),
    )
    arrays = (POS, CRD, VALS, b_pos, b_crd, b_vals, c_crd, c_vals)
    return Function("workspace", arrays, (N_J,), body)


def hashed() -> Function:
    """Sum values by key, one table in each iteration of a parallel loop."""
    table, entry, r, out = Table("t"), Var("e"), Var("r"), result("out")
    sums = local("sums")
    body = block(
        NewTable(table),
        Allocate(sums, N_J, zero=True),
        segment(
            P,
            POS,
            I,
            Insert(table, load_index(CRD, P), entry),
            Store(sums, entry, load(VALS, P), "+"),
        ),
        SortTable(table),
        loop(
            r,
            Count(table),
            Store(
                out,
                add(mul(I, N_J), Key(table, Ranked(table, r))),
                load(sums, Ranked(table, r)),
            ),
        ),
        ClearTable(table),
    )
    rows = For(I, const(0), N_I, body, kind=LoopKind.PARALLEL)
    arrays = (POS, CRD, VALS, out)
    return Function("hashed", arrays, (N_I, N_J), Block((rows,)), threaded=True)


def team() -> Function:
    """The entries of A in even columns, by pieces of rows; each thread has an array of its own."""
    c_pos, c_crd, c_vals = growing("C2_pos", INT32), growing("C2_crd", INT32), growing("C_vals")
    seen, piece, first, last = local("seen", BOOL), Var("piece"), Var("first"), Var("last")
    p_c, even = Var("p_C"), Var("even", BOOL)
    pieces = mul(2, cast(INT64, THREADS))
    entry = block(
        Declare(J, load_index(CRD, P), constant=True),
        Store(seen, J, eq(mod(J, 2), 0)),
        Declare(even, load(seen, J), constant=True),
        If(even, block(*append(c_crd, c_vals, p_c, J, load(VALS, P)))),
    )
    body = block(
        Declare(first, div(mul(N_I, piece), pieces), constant=True),
        Declare(last, div(mul(N_I, add(piece, 1)), pieces), constant=True),
        Declare(p_c, const(0)),
        Reserve(c_pos, add(sub(last, first), 1)),
        Store(c_pos, const(0), Const(0, INT32)),
        loop(
            I,
            last,
            segment(P, POS, I, *entry.body),
            Store(c_pos, add(sub(I, first), 1), cast(INT32, p_c)),
            start=first,
        ),
        SetLength(c_pos, add(sub(last, first), 1)),
        SetLength(c_crd, p_c),
        SetLength(c_vals, p_c, Role.VALUES),
    )
    parts = (
        Part(c_pos, c_crd),
        Part(c_crd, limit=1000),
        Part(c_vals, role=Role.VALUES),
    )
    work = Team(piece, pieces, block(Allocate(seen, N_J)), body, parts)
    arrays = (POS, CRD, VALS, c_pos, c_crd, c_vals)
    return Function("team", arrays, (N_I, N_J), Block((work,)), threaded=True)


def scatter() -> Function:
    """y += the values of A, each at its column: threads meet at the same elements."""
    column = load_index(CRD, P)
    entries = For(
        P,
        const(0),
        load_index(POS, N_I),
        block(AtomicStore(Y, column, load(VALS, P), "+")),
        kind=LoopKind.PARALLEL,
    )
    return Function("scatter", (POS, CRD, VALS, Y), (N_I,), Block((entries,)), threaded=True)


def mttkrp() -> Function:
    """M[i,r] += T[i,k,l] C[k,r] D[l,r] over a CSF tensor: a nest of two sums around columns."""
    pos2, crd2, pos3, crd3 = (source(n, INT32) for n in ("T2_pos", "T2_crd", "T3_pos", "T3_crd"))
    vals, c, d, m = source("T_vals"), source("C_vals"), source("D_vals"), result("M_vals")
    r, n_r, k, low = Var("r"), Var("n_r"), Var("k"), Var("l")
    terms = mul(mul(load(vals, Q), load(c, add(mul(k, n_r), r))), load(d, add(mul(low, n_r), r)))
    columns = loop(r, n_r, Store(m, add(mul(I, n_r), r), terms, "+"))
    fibre = segment(Q, pos3, P, Declare(low, load_index(crd3, Q), constant=True), columns)
    rows = loop(I, N_I, segment(P, pos2, I, Declare(k, load_index(crd2, P), constant=True), fibre))
    arrays = (pos2, crd2, pos3, crd3, vals, c, d, m)
    return Function("mttkrp", arrays, (N_I, n_r), Block((rows,)))


def all_functions() -> tuple[Function, ...]:
    sparse = (row_append(), workspace(), hashed(), mttkrp(), scatter(), team())
    return (dot(), spmv(), spmm(), spmm(32), *sparse)


def all_in_one() -> Module:
    return Module(all_functions(), "Kernels of the tests")
