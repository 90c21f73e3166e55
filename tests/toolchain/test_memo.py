"""The bounded memory of the kernel cache."""

from __future__ import annotations

from codegen.runtime.memo import Memo


def test_values_are_found_again() -> None:
    memo = Memo(3)
    memo.put("a", 1)
    assert memo.get("a") == 1
    assert memo.get("b") is None
    memo.clear()
    assert memo.get("a") is None


def test_it_is_bounded_and_forgets_what_nobody_asks_for() -> None:
    memo = Memo(4)
    memo.put("asked for", 1)
    for number in range(100):
        memo.put(number, number)
        assert memo.get("asked for") == 1
        assert len(memo) <= 8
    assert memo.get(0) is None
    assert memo.get(99) == 99


def test_keys_that_cannot_be_hashed_are_not_remembered() -> None:
    memo = Memo(4)
    memo.put(["a"], 1)
    assert memo.get(["a"]) is None
    assert len(memo) == 0
