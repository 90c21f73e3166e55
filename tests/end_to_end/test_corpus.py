"""Every corpus expression in many formats gives what the dense oracle gives.

`--combinations` says how many: `few` tries each format once in each place; `pairs` tries rows in
which every two formats of every two operands, and of every operand and the result, meet, and each
rarer format in each place; `some` is `pairs` for up to two operands of up to two modes and `few`
beyond; `all` tries every combination of the usual formats, which takes hours. `few` is the default,
`some` is that of `--thorough`: each other row of it, in turn (`--rotation`).

Each row is tried with operands that store some of their elements, and with those that store none
or all of them, in turn.

One row in three is compiled with the flags that users get: over the cases, each format is. The
others are for what the generated C means.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest

import taco_py as tp
from taco_py.data.kernels import KERNELS
from tests.corpus.combine import all_rows, each_once, pairwise
from tests.corpus.data import Pattern, dense_result, initial, operands
from tests.corpus.expressions import CASES, Case
from tests.corpus.formats import OPERANDS, RESULTS, operand_options, result_options, store, to_dense

PATTERNS_OF_ROWS: tuple[tuple[Pattern, ...], ...] = (("mixed", "zero"), ("mixed", "full"))


@dataclass(frozen=True, slots=True)
class Choice:
    """A format for each operand, in the order of `Case.shapes`, and one for the result."""

    operands: tuple[str, ...]
    result: str | None


def choices(case: Case, combinations: str) -> list[Choice]:
    """The format combinations to try, each once."""
    orders = [len(shape) for shape in case.shapes.values()]
    usual = [*(OPERANDS[order] for order in orders), RESULTS[len(case.result_shape)]]
    every = [
        *(operand_options(order, more=True) for order in orders),
        result_options(len(case.result_shape), more=True),
    ]
    small = len([order for order in orders if order]) <= 2 and max(orders, default=0) <= 2
    match combinations:
        case "few":
            rows = each_once(every)
        case "some" if not small:
            rows = each_once(every)
        case "some" | "pairs":
            rest = max(len(more) - len(less) for more, less in zip(every, usual, strict=True))
            rows = pairwise(usual) + each_once(every)[-rest:]
        case _:
            rows = all_rows(usual) + each_once(every)
    return list(dict.fromkeys(Choice(tuple(map(str, row[:-1])), row[-1]) for row in rows))


def fault(case: Case, choice: Choice, patterns: tuple[Pattern, ...]) -> str | None:
    """What is wrong with this combination, in words; None when nothing is."""
    try:
        for pattern in patterns:
            check(case, choice, pattern)
    except Exception as error:  # reported with its combination, beside the others that fail
        first = str(error).strip().splitlines() or [""]
        formats = dict(zip(case.shapes, choice.operands, strict=True))
        return f"{formats} -> {choice.result}: {type(error).__name__}: {' '.join(first[:8])}"
    return None


def faults_of(case: Case, tried: list[Choice]) -> list[str]:
    patterns = [PATTERNS_OF_ROWS[place % 2] for place in range(len(tried))]
    with ThreadPoolExecutor(2) as pool:  # the C compiler runs beside Python
        found = pool.map(lambda row, each: fault(case, row, each), tried, patterns)
        return [each for each in found if each]


def check(case: Case, choice: Choice, pattern: Pattern) -> None:
    arrays = operands(case, pattern)
    start = initial(case)
    stored = {
        name: store(array, form)
        for (name, array), form in zip(arrays.items(), choice.operands, strict=True)
    }
    if start is not None:
        stored[case.target[0]] = start.copy()
    result = to_dense(tp.evaluate(case.text, stored, format=choice.result))
    expected = dense_result(case.text, arrays, start)
    assert result.shape == case.result_shape
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected, err_msg=f"pattern {pattern}")


@pytest.mark.rotating(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_expression(case: Case, request: pytest.FixtureRequest) -> None:
    combinations = request.config.getoption("--combinations")
    tried = choices(case, combinations)
    turn = request.config.getoption("--rotation")
    if combinations in ("few", "some") and turn != "all" and len(tried) > 1:
        tried = tried[(int(turn) + CASES.index(case)) % 2 :: 2]
    first = CASES.index(case) % 3
    faults = faults_of(case, [row for place, row in enumerate(tried) if place % 3 != first])
    KERNELS.compile_with(())
    faults += faults_of(case, tried[first::3])
    assert not faults, (
        f"{len(faults)} of {len(tried)} combinations of {case.text!r}:\n" + "\n".join(faults)
    )


def test_the_corpus_is_large_enough() -> None:
    assert len({case.text for case in CASES}) >= 60
    assert len({case.name for case in CASES}) == len(CASES)
    assert {len(shape) for case in CASES for shape in case.shapes.values()} == {0, 1, 2, 3, 4}
    for case in CASES:
        for name, indices in case.uses:
            assert tuple(map(case.size, indices)) == case.shapes[name], case.name


def test_pairwise_meets_every_pair() -> None:
    options = ["abcde", "xyz", "12", "pqrs"]
    rows = pairwise(options)
    for first in range(4):
        for second in range(first + 1, 4):
            met = {(row[first], row[second]) for row in rows}
            assert len(met) == len(options[first]) * len(options[second])
    assert len(rows) < len(all_rows(options)) / 3
