"""`tp.schedule`: commands checked one by one, taken back, listed, drawn, and used."""

from __future__ import annotations

import inspect
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.calls.kernels.builder import ScheduleBuilder
from taco_py.compiler.schedule.methods import METHODS
from taco_py.compiler.schedule.parser import syntax
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.report.show.graphs import COLOURS
from tests.interpreted import interpreted

SPMV = "y[i] = A[i,j] * x[j]"
rng = np.random.default_rng(0)
A = sp.random_array((23, 17), density=0.3, format="csr", rng=rng)
B = sp.random_array((17, 11), density=0.3, format="csr", rng=rng)
x = rng.random(17)


def spmv() -> Any:
    return tp.schedule(SPMV, A=tp.CSR, x=tp.dense(1))


# ---------------------------------------------------------------- building


def test_commands_are_recorded_in_order() -> None:
    s = spmv()
    s.split("i", "i0", "i1", 32).parallelize("i0", "threads")
    assert str(s) == "split(i,i0,i1,32), parallelize(i0,CPUThread,NoRaces)"
    assert tp.Schedule.parse(str(s)) == s.schedule
    assert str(s.loops) == "i0,i1,j"
    assert repr(s) == f"<schedule of y[i] = sum(j, A[i,j] * x[j]): {s}>"


def test_every_command_is_a_method_with_a_signature_and_a_docstring() -> None:
    for name in syntax():
        method = getattr(ScheduleBuilder, name)
        assert "ScheduleError" in method.__doc__
        assert next(iter(inspect.signature(method).parameters)) == "self"
    assert set(METHODS) <= set(syntax())
    assert str(inspect.signature(spmv().split)) == "(index, outer, inner, size)"


def test_keywords_and_words() -> None:
    s = spmv().split(index="i", outer="a", inner="b", size=4)
    assert str(s.parallelize("a", race="ignore")).endswith("parallelize(a,CPUThread,IgnoreRaces)")
    lanes = spmv().vectorize("j").schedule
    assert lanes == spmv().parallelize("j", "vector").schedule == tp.Schedule.parse("vectorize(j)")


def test_parts_are_computed_first() -> None:
    s = tp.schedule("D[i,j] = A[i,k] * B[k,j]", A=tp.CSR, B=tp.CSR, D=tp.dense(2))
    s.reorder("i", "k", "j").precompute("A(i,k)*B(k,j)", "j", "jw")
    assert str(s) == "reorder(i,k,j), precompute(A(i,k) * B(k,j),j,jw)"
    np.testing.assert_allclose(s.compile()(A=tp.tensor(A), B=tp.tensor(B)), (A @ B).toarray())
    s.undo().precompute("A(i,k)*B(k,j)", ("j",), ["jw"], workspace="w")
    assert str(s).endswith("precompute(A(i,k) * B(k,j),j,jw,w)")


REFUSED: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("split", ("k", "k0", "k1", 4), "there is no loop over k"),
    ("split", ("i", "j", "i1", 4), "the name j is taken"),
    ("split", ("i", "i0", "i1", 0), "the number must be a whole one from 1 on"),
    ("split", ("i", "i0", "i1"), "missing a required argument"),
    ("split", ("i", "i0", "i1, i2", 3), "two new names"),
    ("serial", ("i",), "too many positional arguments"),
    ("parallelize", ("i), serial(",), "Expected brackets that match"),
    ("parallelize", ("i", "GPUBlock"), "of which the CPU has none"),
    ("parallelize", ("j",), "The loop j cannot be parallel"),
    ("pos", ("i", "p", "A"), "the level of A for i is dense"),
    ("pos", ("j", "p", "Z"), "there is no operand Z"),
)


@pytest.mark.parametrize(("name", "arguments", "message"), REFUSED)
def test_a_refused_command_changes_nothing(
    name: str, arguments: tuple[Any, ...], message: str
) -> None:
    s = spmv().reorder("i", "j")
    before = s.schedule
    with pytest.raises(tp.ScheduleError) as caught:
        getattr(s, name)(*arguments)
    assert message in str(caught.value)
    assert s.schedule is before
    assert str(s.loops) == "i,j"


def test_steps_are_taken_back() -> None:
    s = spmv().split("i", "i0", "i1", 32)
    s.apply("reorder(i1,i0), parallelize(i1)").undo()
    assert str(s) == "split(i,i0,i1,32)"
    assert str(s.undo()) == ""
    with pytest.raises(tp.ScheduleError, match="Expected a command to take back, found none"):
        s.undo()


def test_several_commands_are_one_step() -> None:
    """Between them nothing is checked: only the whole has to be legal."""
    s = tp.schedule("C[i,k] = A[i,j] * X[j,k]", A=tp.CSR, X=tp.dense(2))
    text = "split(i,i0,i1,16), pos(j,jp,A), split(jp,jp0,jp1,8), reorder(i0,i1,jp0,k,jp1)"
    assert str(s.apply(text)) == text
    with pytest.raises(tp.ScheduleError):
        s.apply("parallelize(i0), split(k,i0,k1,3)")
    assert str(s) == text
    assert str(tp.schedule("C[i,k] = A[i,j] * X[j,k]", tp.CSR, tp.dense(2)).apply(s)) == text


def test_subscripts_of_einsum() -> None:
    s = tp.schedule("ij,jk->ik", tp.CSR, tp.dense(2)).split("i", "i0", "i1", 4)
    X = rng.random((17, 3))
    np.testing.assert_allclose(tp.einsum("ij,jk->ik", A, X, schedule=s, optimize=False), A @ X)
    with pytest.raises(tp.OperandError, match="found none for op1"):
        tp.schedule("ij,jk->ik", tp.CSR)


def test_arrays_stand_for_their_formats() -> None:
    s = tp.schedule(SPMV, A=A.tocsc(), x=x)
    with pytest.raises(tp.ScheduleError, match="the loop j is summed over"):
        s.apply("reorder(j,i), parallelize(j)")
    assert "ds:1,0" in repr(s.reorder("j", "i").compile())
    with pytest.raises(tp.DimensionError):
        tp.schedule(SPMV, A=A, x=x[1:])


@pytest.mark.parametrize(("text", "form"), [("csr", "ds"), ("csc", "ds:1,0"), ("coo", "uq")])
def test_an_array_for_the_result_stands_for_its_format(text: str, form: str) -> None:
    E = A.asformat(text)
    for assignment in ("E[i,j] += A[i,j] * x[j]", "E[i,j] = A[i,j] * x[j]"):
        kernel = tp.schedule(assignment, A=A, x=x, E=E).compile()
        assert f"{kernel.assignment.target.tensor}: {form}/float64" in repr(kernel)
    s = tp.schedule("y[i] += A[i,j] * x[j]", A=A, x=x, y=np.ones(23)).split("i", "a", "b", 4)
    np.testing.assert_allclose(s.compile()(A=A, x=x, y=np.ones(23)), A @ x + 1)
    with pytest.raises(tp.DimensionError, match="24 in y"):
        tp.schedule("y[i] += A[i,j] * x[j]", A=A, x=x, y=np.ones(24))
    with pytest.raises(tp.FormatError, match="of order 1, found 'dd' of 2"):
        tp.schedule(SPMV, A=A, x=x, y=np.ones((23, 1)))


BAD_ARGUMENTS: tuple[tuple[tuple[Any, ...], dict[str, Any], type[Exception]], ...] = (
    ((SPMV,), {"A": tp.CSR}, tp.OperandError),
    ((SPMV,), {"A": 3, "x": tp.dense(1)}, tp.OperandError),
    ((SPMV,), {"A": [3], "x": tp.dense(1)}, tp.FormatError),
    ((SPMV,), {"A": tp.CSR, "x": tp.CSR}, tp.FormatError),
    ((SPMV, tp.CSR, tp.dense(1), tp.CSR), {}, tp.OperandError),
    ((SPMV, tp.CSR), {"A": tp.CSR}, tp.OperandError),
    (("y[i] = ", tp.CSR), {}, tp.NotationError),
    ((7, tp.CSR), {}, tp.OperandTypeError),
    (("ij,j->i", None, tp.dense(1)), {}, tp.FormatError),
)


@pytest.mark.parametrize(("arguments", "named", "error"), BAD_ARGUMENTS)
def test_bad_arguments(
    arguments: tuple[Any, ...], named: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        tp.schedule(*arguments, **named)


# ---------------------------------------------------------------- using


def test_a_builder_is_a_schedule_wherever_one_is_taken() -> None:
    s = spmv().split("i", "i0", "i1", 5)
    kernel = tp.compile(SPMV, A=tp.CSR, x=tp.dense(1), schedule=s)
    for y in (
        tp.evaluate(SPMV, A=A, x=x, schedule=s),
        tp.evaluate(SPMV, A=A, x=x, schedule=s.schedule),
        kernel(A=A, x=x),
        s.compile(threads=2)(A=A, x=x),
    ):
        np.testing.assert_allclose(y, A @ x)
    assert "tiles" in tp.explain(SPMV, A=A, x=x, schedule=s)


def test_calls_follow_a_builder_that_goes_on() -> None:
    s = spmv()
    for _ in range(3):
        np.testing.assert_allclose(tp.evaluate(SPMV, A=A, x=x, schedule=s), A @ x)
    with pytest.raises(tp.ScheduleError, match="no operand A"):
        tp.evaluate("y[i] = D[i,j] * x[j]", D=A, x=x, schedule=s.pos("j", "p", "A"))
    np.testing.assert_allclose(tp.evaluate(SPMV, A=A, x=x, schedule=s), A @ x)
    assert "positions" in tp.explain(SPMV, A=A, x=x, schedule=s)


REPLAYED: tuple[tuple[str, dict[str, Any], str | None, str], ...] = (
    (SPMV, {"A": tp.CSR, "x": tp.dense(1)}, None, "parallelize(i,CPUThread,NoRaces)"),
    (
        "C[i,j] = A[i,k] * B[k,j]",
        {"A": tp.CSR, "B": tp.CSR},
        "reorder(i,k,j), serial()",
        "reorder(i,k,j), serial()",
    ),
    (
        SPMV,
        {"A": tp.CSR, "x": tp.dense(1)},
        "split(i,a,b,4)",
        "split(i,a,b,4), parallelize(a,CPUThread,NoRaces)",
    ),
    (SPMV, {"A": tp.CSR, "x": tp.dense(1)}, "serial()", "serial()"),
)


@pytest.mark.parametrize(("text", "formats", "asked", "ran"), REPLAYED)
def test_what_ran_can_be_replayed(
    text: str, formats: dict[str, Any], asked: str | None, ran: str
) -> None:
    kernel = tp.compile(text, **formats, schedule=asked)
    assert str(kernel.schedule) == ran
    again = tp.compile(text, **formats, schedule=kernel.schedule)
    assert again.source == kernel.source
    assert again.schedule == kernel.schedule


def test_the_race_strategy_is_replayed_too() -> None:
    kernel = tp.compile("s = A[i,j] * B[i,j]", A=tp.CSR, B=tp.CSR)
    again = tp.compile("s = A[i,j] * B[i,j]", A=tp.CSR, B=tp.CSR, schedule=kernel.schedule)
    assert again.compiled[0].report.concrete == kernel.compiled[0].report.concrete
    assert again.schedule == kernel.schedule


def test_what_no_command_says_is_left_open() -> None:
    chain = tp.compile("D[i,l] = A[i,j] * B[j,k] * C[k,l]", A=tp.CSR, B=tp.CSR, C=tp.dense(2))
    assert len(chain.plan.kernels) == 2
    assert chain.schedule == Schedule()


# ---------------------------------------------------------------- moves

T = tp.Tensor.from_coo(rng.integers(0, 5, (30, 3)), rng.random(30), (5, 5, 5), format=tp.CSF(3))
NESTS: tuple[tuple[str, dict[str, Any], str], ...] = (
    (SPMV, {"A": A, "x": x}, ""),
    (SPMV, {"A": A, "x": x}, "fuse(i,j,f), pos(f,p,A)"),
    ("C[i,j] = A[i,k] * B[k,j]", {"A": A, "B": B}, "reorder(i,k,j)"),
    ("C[i,j] = A[i,j] + E[i,j]", {"A": A, "E": A.T.tocsr().T.tocsr()}, ""),
    ("M[i,r] = T[i,k,l] * C[k,r] * D[l,r]", {"T": T, "C": rng.random((5, 3)),
                                             "D": rng.random((5, 3))}, "split(i,i0,i1,2)"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "operands", "begin"), NESTS)
def test_every_legal_move_is_legal_and_right(
    text: str, operands: dict[str, Any], begin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels are interpreted, which takes a hundredth of the time that compiling takes."""
    monkeypatch.setattr(
        "taco_py.calls.kernels.kernel.compile_recipes", lambda all: map(interpreted, all)
    )
    s = tp.schedule(text, **operands).apply(begin)
    moves = s.legal_moves()
    assert len(moves) > 5
    want = plain(tp.evaluate(text, **operands))
    for move in moves:
        got = s.apply(move).compile()(**operands)
        np.testing.assert_allclose(plain(got), want, err_msg=str(s))
        s.undo()
    assert str(s) == begin


def plain(result: Any) -> Any:
    for name in ("toarray", "to_numpy"):
        if hasattr(result, name):
            return getattr(result, name)()
    return result


def test_what_is_legal_is_listed() -> None:
    moves = set(map(str, spmv().legal_moves()))
    shared = "parallelize(i,CPUThread,NoRaces)"
    assert {"split(i,i0,i1,64)", "fuse(i,j,ij)", "pos(j,jpos,A)", shared} <= moves
    assert not {shared.replace("(i", "(j"), "pos(i,ipos,A)"} & moves


# ---------------------------------------------------------------- drawing

DRAWN = """\
assignment  y[i] = sum(j, A[i,j] * x[j])
provenance  i, j ─ fuse ─▶ f
              f ─ pos A ─▶ p
                p ─ split 16 ─▶ c, r
loops       c: tiles, threads (Atomics)
              i: all, a range of positions
                j: A2, a range of positions
paths       A: i dense ▶ j compressed
            x: j dense"""


def test_the_drawing_as_text() -> None:
    s = spmv().fuse("i", "j", "f").pos("f", "p", "A").split("p", "c", "r", 16)
    s.parallelize("c", race="atomics")
    assert str(s.show()) == DRAWN
    assert str(s.compile().show()) == DRAWN


GATHERED = """\
assignment  C[i,j] = sum(k, A[i,k] * B[k,j])
provenance  j ─ precompute w ─▶ jw
            i, j, k as written
loops       i: the whole dimension, threads
              k: A2, fills w
                j: B2, fills w as jw, unrolled 4
              j: w1
assembly    C: entries are counted first, then written in place
paths       A: i dense ▶ k compressed
            B: k dense ▶ j compressed"""


def gathered() -> Any:
    s = tp.schedule("C[i,j] = A[i,k] * B[k,j]", A=tp.CSR, B=tp.CSR, C=tp.CSR)
    return s.reorder("i", "k", "j").precompute("A(i,k)*B(k,j)", "j", "jw", "w")


def test_loops_that_fill_workspaces_and_the_assembly_are_drawn() -> None:
    s = gathered().unroll("jw", 4).assemble("C", "Insert").parallelize("i")
    drawing = s.show()
    assert str(drawing) == str(s.compile().show()) == GATHERED
    root = ElementTree.fromstring(drawing.svg)
    texts = " ".join(filter(None, (node.text for node in root.iter())))
    for words in ("jw", "precompute w", "fills w as jw, unrolled 4", "counted first"):
        assert words in texts


def test_a_path_meets_the_loops_in_which_its_operand_is_read() -> None:
    """There are two loops over j: the first fills w with elements of x, the second reads A."""
    drawing = spmv().precompute("x(j)", "j", "jw", "w").show()
    root = ElementTree.fromstring(drawing.svg)
    circles = [node.attrib for node in root.iter("{http://www.w3.org/2000/svg}circle")]
    rows = {fill: [float(c["cy"]) for c in circles if c["fill"] == fill] for fill in COLOURS[:2]}
    of_a, of_x = rows.values()
    assert str(drawing).index("fills w as jw") < str(drawing).index("i: the whole dimension")
    assert of_x[0] < of_a[0] < of_a[1]


def test_the_strategy_of_a_merge_is_drawn() -> None:
    s = tp.schedule("C[i,j] = A[i,j] * E[i,j]", A=tp.CSR, E=tp.CSR)
    assert "galloping" not in str(s.show())
    assert "merge lattice {A2,E2}, galloping" in str(s.mergeby("j").show())
    assert "merge lattice {A2,E2}, galloping" in s.show().svg


def test_the_drawing_as_svg(tmp_path: Any) -> None:
    drawing = spmv().split("i", "i0", "i1", 32).show()
    drawing.save(tmp_path / "s.svg")
    root = ElementTree.parse(tmp_path / "s.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    texts = {node.text for node in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"i", "i0", "i1", "split 32", "A", "x"} <= texts
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    for node in root.iter("{http://www.w3.org/2000/svg}circle"):
        assert 0 <= float(node.attrib["cx"]) <= width
        assert 0 <= float(node.attrib["cy"]) <= height
    assert drawing._repr_svg_() == (tmp_path / "s.svg").read_text()
    with pytest.raises(tp.OutputError, match="Expected to write the drawing to"):
        drawing.save(tmp_path / "absent" / "s.svg")


def test_indices_to_reorder_come_one_by_one_or_as_a_list() -> None:
    one, other = (tp.schedule("C[i,j] = A[i,k] * B[k,j]", A=tp.CSR, B=tp.CSR) for _ in range(2))
    assert str(one.reorder("i", "k", "j")) == str(other.reorder(["i", "k", "j"]))
    with pytest.raises(tp.ScheduleError, match="two or more different indices"):
        one.reorder([["i", "k"], "j"])


def test_several_kernels_are_drawn_one_above_the_other() -> None:
    chain = tp.compile("D[i,l] = A[i,j] * B[j,k] * C[k,l]", A=tp.CSR, B=tp.CSR, C=tp.dense(2))
    drawing = chain.show()
    assert str(drawing).count("assignment") == 2
    ElementTree.fromstring(drawing.svg)


def test_a_mark_on_a_loop_of_the_text_keeps_it_whole() -> None:
    """Though sums are better taken apart where nobody names a loop."""
    text, formats = "s = A[i,j] * x[j]", {"A": tp.CSR, "x": tp.dense(1)}
    s = tp.schedule(text, **formats)
    assert s.loops.variables == ("i", "j")
    s.parallelize("i", "threads", "ordered")
    assert s.loops.variables == ("i", "j")
    for schedule in (s, "unroll(j,4)", "parallelize(j,CPUThread,Ordered)", "mergeby(i,TwoFinger)"):
        kernel = tp.compile(text, formats, schedule=schedule)
        assert kernel(A=A, x=x) == pytest.approx((A @ x).sum())
    with pytest.raises(tp.ScheduleError, match="there is no loop over q"):
        tp.compile(text, formats, schedule="unroll(q,4)")


def test_words_of_one_parameter_are_names_elsewhere() -> None:
    """In either case, with hyphens or without; an index may be called as a word is."""
    x = tp.dense(1)
    s = tp.schedule("y[vector] = A[vector,none] * x[none]", A=tp.CSR, x=x)
    s.split("vector", "threads", "atomics", 4).reorder("threads", "none", "atomics")
    s.parallelize("threads", "threads", "temporary")
    assert str(s).endswith("parallelize(threads,CPUThread,Temporary)")
    merged = tp.schedule("C[i,j] = A[i,j] * B[i,j]", A=tp.CSR, B=tp.CSR)
    for word, meant in (("gallop", "Gallop"), ("two-finger", "TwoFinger"), ("Gallop", "Gallop")):
        assert str(merged.mergeby("j", word)).endswith(f"mergeby(j,{meant})")
    assert str(merged.assemble("C", "insert")).endswith("assemble(C,Insert)")
    assert str(merged.bound("i", "b", 9, "max-exact")).endswith("bound(i,b,9,MaxExact)")
    with pytest.raises(tp.ScheduleError, match="the strategies are"):
        merged.mergeby("j", "three-finger")


def test_an_access_is_drawn_whole() -> None:
    made = tp.schedule("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1)).apply("pos(j,p,A(i,j))")
    assert "j ─ pos A(i,j) ─▶ p" in str(made.show())


def test_nothing_to_take_back() -> None:
    with pytest.raises(tp.ScheduleError, match="hint: undo"):
        spmv().undo()


def test_a_number_may_be_given_in_place_of_a_format() -> None:
    made = tp.schedule("y[i] = d * A[i,j] * x[j]", A=tp.CSR, d=2, x=tp.dense(1))
    kernel = made.split("i", "i0", "i1", 4).compile()
    np.testing.assert_allclose(kernel(A=sp.eye_array(3, format="csr"), d=3, x=np.ones(3)), 3.0)
