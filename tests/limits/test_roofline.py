"""What users see: the line of explain(), and the picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.report.explanation import plan_roofline
from taco_py.report.limits import roofline

PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
DENSE = {"A": np.ones((200, 100)), "B": np.ones((100, 300))}


def line(told: str) -> str:
    return next((each for each in told.splitlines() if each.startswith("roofline")), "")


def product(**more: Any) -> tp.Kernel:
    return tp.compile(PRODUCT, A=tp.dense(2), B=tp.dense(2), threads=1, **more)


def test_explain_says_what_is_possible_and_why() -> None:
    told = line(tp.explain(PRODUCT, **DENSE))
    assert told.startswith("roofline  at most ") and "F/s here, for " in told
    assert "expected " in told and "measured last" not in told
    assert " measured 2" in told  # when the processor was


def test_copies_are_told_in_bytes() -> None:
    assert "B/s here" in line(tp.explain("C[j,i] = A[i,j]", A=np.ones((300, 400))))


def test_a_call_that_was_timed_is_told_from_then_on() -> None:
    kernel = product(static={"i": 200, "j": 300, "k": 100})
    kernel.roofline(None, DENSE)
    tensors = {name: each.data for name, each in kernel._prepared(DENSE).operands.items()}
    lines = plan_roofline.describe_roofline(kernel.plan, kernel.compiled, tensors, 1)
    told = line("\n".join(lines))
    assert "measured last" in told


def test_nothing_is_said_where_nothing_is_known() -> None:
    matrix = sp.random_array((30, 30), density=0.1, format="csr", rng=np.random.default_rng(0))
    assert not line(tp.explain(PRODUCT, A=matrix, B=matrix))


def test_explain_does_without_where_nothing_can_be_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails() -> None:
        raise tp.CompilerError("Expected to measure, found no time")

    monkeypatch.setattr(roofline, "ceilings_here", fails)
    assert "not known: Expected to measure, found no time" in line(tp.explain(PRODUCT, **DENSE))


def test_gpus_are_told_by_their_data_sheets() -> None:
    kernel = tp.compile("C[i,j,k] = A[k,j,i]", A=tp.dense(3), target="cuda-emulated")
    drawn = kernel.roofline()
    assert "from its data sheet" in drawn.svg and "the memory of the " in str(drawn)
    assert "the memory of the " in line(kernel.explain())


@pytest.mark.parametrize("text", [PRODUCT, "C[i,j] = A[j,i]"])
def test_the_picture_is_a_drawing_with_each_roof(text: str, tmp_path: Path) -> None:
    operands = DENSE if text == PRODUCT else {"A": DENSE["A"]}
    kernel = tp.compile(text, {name: tp.dense(2) for name in operands}, threads=1)
    path = tmp_path / "roofline.svg"
    drawing = kernel.roofline(path, **operands)
    tree = ElementTree.fromstring(path.read_text())
    words = " ".join(each.text or "" for each in tree.iter("{http://www.w3.org/2000/svg}text"))
    assert all(name in words for name in ("L1", "memory", "at most", "measured", "expected"))
    assert "No more is possible here" in words
    assert drawing.svg == path.read_text() and "at most" in str(drawing)


def test_without_operands_it_stands_where_it_was_planned_for(tmp_path: Path) -> None:
    words = str(product().roofline())
    assert "at most" in words and "expected" in words and "measured " not in words.split("peak")[1]


def test_several_statements_have_one_picture(tmp_path: Path) -> None:
    kernel = tp.compile("t[i] = A[i,j] * x[j]; y[i] = t[i] * t[i]", A=tp.CSR, x=tp.dense(1))
    given = {"A": sp.eye_array(300, format="csr"), "x": np.ones(300)}
    drawing = kernel.roofline(tmp_path / "several.svg", **given)
    assert (tmp_path / "several.svg").read_text() == drawing.svg
    assert "measured " in str(drawing).split("peak")[1]
    assert "measured " not in str(kernel.roofline()).split("peak")[1]


def test_texts_in_the_picture_are_escaped() -> None:
    kernel = tp.compile("c[i] = a[i] < b[i]", a=tp.dense(1), b=tp.dense(1))
    assert "&lt;" in kernel.roofline().svg


def test_bad_names_and_operands_are_refused(tmp_path: Path) -> None:
    with pytest.raises(tp.OutputError, match="SVG"):
        product().roofline(tmp_path / "roofline.png")
    with pytest.raises(tp.TacoError, match="B"):
        product().roofline(None, A=DENSE["A"])
