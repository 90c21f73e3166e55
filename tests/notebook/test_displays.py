"""What notebooks show: HTML, well formed and escaped, that reads as the text it is made of."""

from __future__ import annotations

import pickle
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.data.tensors.picture import squares_of
from taco_py.language.notebook.c_code import coloured
from taco_py.language.notebook.folded_report import Report, folded, sections

SPMV = "y[i] = A[i,j] * x[j]"


class Words(HTMLParser):
    """The text of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def handle_data(self, data: str) -> None:
        self.text += data


def text_of(html: str) -> str:
    words = Words()
    words.feed(html)
    return words.text


def shown(obj: Any) -> str:
    """An object's HTML, which is one well-formed element."""
    html: str = obj._repr_html_()
    ElementTree.fromstring(html)
    return html


def test_a_tensor_shows_where_its_entries_are() -> None:
    html = shown(tp.tensor(sp.csr_array(np.eye(3))))
    assert "3 × 3" in html
    assert html.count("<rect") == 4
    shown(tp.tensor(np.ones(())))
    assert squares_of((60, 120)) == [24, 48]
    assert squares_of((3, 10**6)) == [3, 48]
    assert squares_of((2, 3)) == [2, 3]


def test_a_kernel_shows_its_formats_loops_and_source() -> None:
    k = tp.compile(SPMV, A=tp.CSR, x=tp.dense(1))
    html = shown(k)
    words = text_of(html)
    assert k.source in words
    assert "y[i] = sum(j, A[i,j] * x[j])" in words
    assert "ds, float64" in words
    assert "<svg" in html
    assert str(k.schedule) in words


@pytest.mark.parametrize(
    ("text", "formats"),
    [
        ("m[i] = A[i,j] * x[j]; s = m[i] * m[i]", {"A": tp.CSR, "x": tp.dense(1)}),
        ("y[i] = x[i+k] * w[k]", {"x": "d", "w": "d"}),
        ("y[i] = (x[i] < 2) & (w[i] > 1)", {"x": "d", "w": "d"}),
    ],
)
def test_all_kinds_of_kernels_are_shown(text: str, formats: Any) -> None:
    k = tp.compile(text, formats)
    assert k.source in text_of(shown(k))


def test_schedules_programs_and_frontiers_are_shown() -> None:
    schedule = tp.Schedule.parse("reorder(i,k,j), parallelize(i)")
    assert "reorder(i,k,j)" in shown(schedule)
    assert "<svg" in shown(tp.schedule(SPMV, A=tp.CSR, x=tp.dense(1)))
    assert "B[i] = 2 * A[i]" in shown(tp.program("for t in T: B[i] = 2 * A[i]"))
    assert "schedules" in shown(tp.frontier(SPMV, A=tp.CSR, x=tp.dense(1)))


def test_an_explanation_is_text_that_folds() -> None:
    A, x = sp.csr_array(np.eye(3)), np.ones(3)
    told = tp.explain(SPMV, A=A, x=x)
    assert isinstance(told, str)
    assert told == str(told)
    html = shown(told)
    assert html.count("<details") >= 2
    words = text_of(html)
    for line in told.splitlines():
        assert all(word in words for word in line.split()), line
    assert pickle.loads(pickle.dumps(told)) == told
    assert isinstance(tp.explain("ij,j->i", A, x), Report)


def test_sections_and_escapes() -> None:
    text = "runs  1 kernel\nkernel  y = <a & b>\n  loops  i\n    j\nno pair here"
    assert [(head, len(below)) for head, below in sections(text)] == [
        ("runs  1 kernel", 0), ("kernel  y = <a & b>", 2), ("no pair here", 0),
    ]  # fmt: skip
    html = folded(text)
    ElementTree.fromstring(html)
    assert "&lt;a &amp; b&gt;" in html
    assert "<th" in html
    assert folded("") == "<div></div>"


def test_coloured_source_reads_as_before() -> None:
    source = (
        '#include "a.h"\n/* <b> & */ for (int64_t i = 0x1F; i < 2.5e-3f; i++) { c["\\"x"]; } // e'
    )
    html = coloured(source)
    assert text_of(html) == source
    ElementTree.fromstring(html)
    for word in ("for", "int64_t", "0x1F", "2.5e-3f", "// e"):
        assert f">{word}</span>" in html
    assert text_of(coloured("/* never ends")) == "/* never ends"
