"""Names, trees, variables, smart constructors and the printer."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from codegen import build
from codegen.ir import (
    FALSE,
    TRUE,
    Assign,
    Binary,
    Block,
    Cast,
    Const,
    Declare,
    Expr,
    For,
    Function,
    If,
    Load,
    Role,
    Store,
    Var,
)
from codegen.machine.cpu import Processor
from codegen.machine.target import Target
from codegen.names import Names, identifier
from codegen.pretty import pretty
from codegen.tree import children, find, fixpoint, map_children, rewrite, rewrite_again, walk
from codegen.types import BOOL, FLOAT32, FLOAT64, INT32, INT64
from codegen.variables import (
    assigned_vars,
    count_reads,
    declared_vars,
    free_vars,
    rename,
    substitute,
    variables_read,
)
from tests.codegen.functions import (
    CRD,
    N_I,
    ZERO,
    I,
    J,
    X,
    Y,
    all_functions,
    const,
    loop,
    row_append,
)

# ---------------------------------------------------------------- names


def test_names_are_new_and_repeatable() -> None:
    def hand_out() -> list[str]:
        names = Names(["i"])
        return [names.fresh(wish) for wish in ("i", "i", "j", "j", "i_1", "double", "taco_x")]

    assert hand_out() == ["i_1", "i_2", "j", "j_1", "i_1_1", "double_1", "v_taco_x"]
    assert hand_out() == hand_out()


def test_words_of_the_headers_are_not_handed_out() -> None:
    names = Names(["A"])
    wishes = ("INT64_MAX", "INT64_MAX", "O_RDONLY", "linux", "WNOHANG", "A", "A_B2", "A_x")
    found = [names.fresh(wish) for wish in wishes]
    assert found[:3] == ["INT64_MAX_1", "INT64_MAX_2", "O_RDONLY_1"]
    assert found[3:] == ["linux_1", "WNOHANG_1", "A_1", "A_B2_1", "A_x"]


def test_taken_names_are_not_handed_out() -> None:
    names = Names(("p",))
    assert names.fresh("p") == "p_1"
    assert not names.is_free("p")


@pytest.mark.parametrize(
    ("text", "name"),
    [("i", "i"), ("i'", "i_"), ("2x", "v2x"), ("_t", "t"), ("é", "v"), ("", "v"), ("a b", "a_b")],
)
def test_identifier(text: str, name: str) -> None:
    assert identifier(text) == name


# ---------------------------------------------------------------- trees


@dataclass(frozen=True, slots=True)
class Leaf:
    number: int


@dataclass(frozen=True, slots=True)
class Pair:
    left: Leaf | Pair
    others: tuple[Leaf | Pair, ...] = ()
    name: str = ""


TREE = Pair(Leaf(1), (Leaf(2), Pair(Leaf(3), name="inner")))


def test_walk_goes_parents_first_and_in_order() -> None:
    assert [n.number for n in walk(TREE) if isinstance(n, Leaf)] == [1, 2, 3]
    assert list(children(TREE)) == [TREE.left, *TREE.others]
    assert next(walk(TREE)) is TREE


def test_rewrite_replaces_from_below() -> None:
    def grow(node: object) -> object:
        return Leaf(node.number + 1) if isinstance(node, Leaf) else node

    assert rewrite(TREE, grow) == Pair(Leaf(2), (Leaf(3), Pair(Leaf(4), name="inner")))


def test_unchanged_trees_are_the_same_object() -> None:
    assert rewrite(TREE, lambda node: node) is TREE
    assert map_children(TREE, lambda node: node) is TREE
    for function in all_functions():
        assert rewrite(function, lambda node: node) is function


def test_what_a_rule_keeps_is_looked_at_once() -> None:
    seen: list[object] = []

    def halve(node: object) -> object:
        seen.append(node)
        return Leaf(1) if node == Leaf(2) else node

    shared, normal_forms = Leaf(5), {}
    tree = Pair(shared, (Leaf(2), Pair(shared, name="inner")))
    after = rewrite_again(tree, halve, normal_forms)
    assert after == rewrite(tree, halve) == Pair(Leaf(5), (Leaf(1), Pair(Leaf(5), name="inner")))
    seen.clear()
    assert rewrite_again(after, halve, normal_forms) is after
    assert seen == [Leaf(1), after]


def test_fixpoint_stops_or_says_that_it_does_not() -> None:
    def shrink(leaf: Leaf) -> Leaf:
        return Leaf(leaf.number - 1) if leaf.number > 0 else leaf

    assert fixpoint(Leaf(5), shrink) == Leaf(0)
    with pytest.raises(RuntimeError, match="no fixpoint of"):
        fixpoint(Leaf(5), lambda leaf: Leaf(leaf.number + 1))


def test_types_are_no_nodes() -> None:
    assert list(children(I)) == []


# ---------------------------------------------------------------- variables


def test_substitute_leaves_targets_alone() -> None:
    before = block(Declare(I, J), Assign(I, build.add(I, J), "+"), Store(Y, J, ZERO))
    after = block(Declare(I, const(3)), Assign(I, build.add(I, 3), "+"), Store(Y, const(3), ZERO))
    assert substitute(before, {J: const(3)}) == after
    assert substitute(before, {N_I: const(3)}) is before


def block(*body: object) -> Block:
    return Block(body)  # type: ignore[arg-type]


def test_rename_takes_targets_along() -> None:
    assert rename(block(Declare(I, J), Store(Y, I, ZERO)), {I: N_I}) == block(
        Declare(N_I, J), Store(Y, N_I, ZERO)
    )


def test_what_a_loop_does_with_variables() -> None:
    nest = loop(I, N_I, Declare(J, build.load_index(CRD, I)), Assign(Var("t"), J, "+"))
    assert declared_vars(nest) == {I, J}
    assert assigned_vars(nest) == {Var("t")}
    assert free_vars(nest) == {N_I, Var("t")}
    assert variables_read(nest) == {N_I, I, J}
    assert count_reads(nest)[I] == 1


# ---------------------------------------------------------------- build


def test_numbers_stand_for_constants() -> None:
    assert build.add(I, 1) == Binary("+", I, Const(1))
    assert build.add(1, 2, I) == Binary("+", I, Const(3))
    assert build.and_(True, build.lt(I, J)) == build.lt(I, J)
    assert build.or_(True, build.lt(I, J)) == TRUE
    assert build.not_(build.ge(I, J)) == build.lt(I, J)
    assert build.and_() == TRUE
    assert build.or_() == FALSE
    assert build.add() == const(0)
    assert build.mul() == const(1)


def test_constants_have_their_type() -> None:
    assert build.zero(FLOAT64) == ZERO
    assert isinstance(build.one(FLOAT32).value, float)
    assert build.const(True).type == BOOL
    assert build.const(1).type == INT64


def test_indices_are_loaded_at_full_width() -> None:
    assert build.load_index(CRD, I) == Cast(INT64, Load(CRD, I))
    assert build.cast(INT32, build.cast(INT32, I)) == Cast(INT32, I)


def test_block_flattens() -> None:
    store = Store(Y, I, ZERO)
    assert build.block(store, None, Block((store, Block((store,))))) == Block((store,) * 3)


def test_if_takes_the_known_branch() -> None:
    store = Store(Y, I, ZERO)
    assert build.if_(True, store) is store
    assert build.if_(False, store) == Block()
    assert build.if_(build.lt(I, J), store) == If(build.lt(I, J), Block((store,)))


def test_increment() -> None:
    assert build.increment(I) == Assign(I, const(1), "+")
    assert build.increment(I, J, Role.VALUES) == Assign(I, J, "+", Role.VALUES)


def test_minimum_of_several() -> None:
    expected: Expr = Binary("min", Binary("min", I, J), N_I)
    assert build.minimum(I, J, N_I) == expected
    assert build.maximum(3, 4) == const(4)


# ---------------------------------------------------------------- printer and target


def test_pretty_shows_a_merge_loop() -> None:
    text = pretty(row_append())
    assert text.startswith("row_append(A2_pos: in int32[], ")
    assert "C2_crd: growing int32[]" in text
    assert "    while p < p_end && q < q_end:" in text
    assert "      j: int64 = min(j_A, j_B)" in text
    assert "      reserve C_vals p_C + 1  !values" in text
    assert "      C2_crd[p_C] = j" in text.splitlines()


def test_pretty_keeps_the_structure_of_expressions() -> None:
    assert pretty(Binary("*", Binary("+", I, J), N_I)) == "(i + j) * n_i"
    assert pretty(Binary("-", I, Binary("-", J, N_I))) == "i - (j - n_i)"
    assert pretty(build.select(build.lt(I, J), I, J)) == "i < j ? i : j"
    assert pretty(build.cast(FLOAT64, I)) == "float64(i)"


@pytest.mark.parametrize("function", all_functions(), ids=lambda f: f.name)
def test_pretty_prints_every_loop(function: Function) -> None:
    loops = len(list(find(function, For)))
    assert pretty(function).count(" for ") >= loops


@pytest.mark.parametrize(
    ("flags", "width", "registers"),
    [({"sse2"}, 16, 16), ({"avx2"}, 32, 16), ({"avx2", "avx512f"}, 64, 32), ({"asimd"}, 16, 32)],
)
def test_the_processor_follows_the_cpu(flags: set[str], width: int, registers: int) -> None:
    cpu = Processor.of_flags(frozenset(flags), cores=4)
    assert (cpu.vector_bytes, cpu.registers, cpu.cores) == (width, registers, 4)


def test_lanes() -> None:
    target = Target(machine=Processor(vector_bytes=32))
    assert target.lanes(FLOAT64) == 4
    assert target.lanes(FLOAT32) == 8
    assert target.lanes(INT64) == 1
    assert Target(machine=Processor(vector_bytes=0)).lanes(FLOAT64) == 1


def test_the_result_of_a_load_of_x_is_its_element() -> None:
    assert build.load(X, I).array.element == FLOAT64
