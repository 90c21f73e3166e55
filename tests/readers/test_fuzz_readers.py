"""Each reader takes some hundred inputs that others may have written; `fuzz_readers` takes more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.readers.fuzz_readers import Fuzzer
from tests.readers.mutations import WORD, Mutator, payloads
from tests.readers.readers import READERS, Reader

COUNT = 60
"""Inputs of the readers that are fast."""


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzer]:
    yield Fuzzer(tmp_path_factory.mktemp("readers"), 20)


@pytest.mark.parametrize("reader", READERS, ids=lambda each: each.name)
def test_nothing_of_a_file_is_run_and_what_is_wrong_is_told(fuzzer: Fuzzer, reader: Reader) -> None:
    for module in reader.needs:
        pytest.importorskip(module)
    for _ in range(max(3, COUNT // reader.slow)):
        fuzzer.one(reader)
    failures, fuzzer.failures = fuzzer.failures, []
    assert not failures


def test_the_fuzzer_sees_what_is_run(tmp_path: Path) -> None:
    fuzzer = Fuzzer(tmp_path, 1)

    def reader(name: str, read: object) -> Reader:
        return Reader(name, ".txt", lambda folder: {}, Mutator.written, read)  # type: ignore[arg-type]

    def runs(path: Path) -> None:
        exec(path.read_text())

    harmful = payloads(str(fuzzer.mark))[0].encode()
    assert "THE MARK IS THERE" in fuzzer.failure(reader("runs", runs), harmful)
    assert not fuzzer.mark.exists()
    unfinished = f"if {WORD}:".encode()
    assert "RUN: compile" in fuzzer.failure(reader("compiles", runs), unfinished)
    raised = fuzzer.failure(reader("raises", lambda path: {}["x"]), b"")
    assert "KeyError" in raised
    assert not fuzzer.failure(reader("reads", Path.read_text), harmful)
