"""Functions that many modules share go through passes and are written once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codegen.build import block
from codegen.emit.c import emit_c
from codegen.ir import Function, Invoke, Module
from codegen.machine.target import Target
from codegen.passes.order import run_passes
from codegen.shared_work import SharedWork, shared_function
from codegen.types import FLOAT32
from codegen.verify import IRError, verify
from polyhedral.products.micro_kernel import tile_function
from polyhedral.products.register_tile import Tile

TILE, TARGET = Tile(2, 2, 4), Target()


def tiles(comment: str = "") -> Module:
    functions = tuple(tile_function(rows, TILE, FLOAT32) for rows in (1, 2))
    return Module((*functions, Function("evaluate", (), (), block())), comment)


def test_work_is_done_once_for_a_shared_function() -> None:
    calls = []
    work = SharedWork(lambda function, argument: calls.append(argument) or function.name)
    function = tile_function(1, TILE, FLOAT32)
    assert [work(function, n) for n in (1, 1, 2, 1)] == ["tile_1"] * 4
    assert calls == [1, 2]
    alone = replace(function, shared=False)
    assert [work(alone, 1), work(alone, 1)] == ["tile_1"] * 2
    assert calls == [1, 2, 1, 1]


def test_equal_arguments_give_one_function() -> None:
    make = shared_function(lambda name: Function(name, (), (), block(), internal=True))
    assert make("f") is make("f")
    assert make("f").shared
    assert make("g") != make("f")


def test_modules_have_the_same_functions_after_passes() -> None:
    one, other = (run_passes(tiles(text), TARGET) for text in ("one", "other"))
    assert [f.name for f in one.functions] == ["tile_1", "tile_2", "evaluate"]
    assert one.functions[0] is other.functions[0]
    assert one.functions[1] is other.functions[1]
    assert one.header != other.header


def test_shared_functions_are_written_as_others_are() -> None:
    module = tiles()
    alone = replace(module, functions=tuple(replace(f, shared=False) for f in module.functions))
    text = emit_c(run_passes(module, TARGET), TARGET)
    assert text == emit_c(run_passes(alone, TARGET), TARGET)
    assert "typedef float taco_float32x4" in text


def test_shared_functions_call_no_other() -> None:
    called = Function("called", (), (), block(), internal=True)
    caller = Function("caller", (), (), block(Invoke("called", ())), internal=True, shared=True)
    verify(Module((called, replace(caller, shared=False))))
    with pytest.raises(IRError, match="the shared caller calls another"):
        verify(Module((called, caller)))
