"""The limits for cases: each has a reason, and they agree with each other and with the table."""

from __future__ import annotations

import doctest
import re

import pytest

from taco_py.compiler.concrete.case_counts import cases_of_sum
from taco_py.language.legal import cases
from taco_py.language.legal.cases import (
    LIMITS,
    LOOP_CASES,
    MERGED_TERMS,
    PRODUCT_CASES,
    SCHEDULED_CASES,
    SCHEDULED_TERMS,
    Limit,
)
from taco_py.language.notation.nodes import Access


def sum_of(terms: int) -> int:
    """The cases of so many sparse terms of one loop."""
    return cases_of_sum([Access(f"A{n}", ("i",)) for n in range(terms)], lambda _: 1)


def test_every_limit_is_in_the_table_with_its_number() -> None:
    rows = re.findall(r"^    ([A-Z_]+) +(\d+)  ", str(cases.__doc__), re.MULTILINE)
    limits = {name: value for name, value in vars(cases).items() if isinstance(value, Limit)}
    assert [(name, limit.most) for name, limit in limits.items()] == [(n, int(m)) for n, m in rows]
    assert tuple(limits.values()) == LIMITS
    assert all(limit.of and limit.reason for limit in LIMITS)


@pytest.mark.parametrize(
    ("terms", "count"), [(MERGED_TERMS, LOOP_CASES), (SCHEDULED_TERMS, SCHEDULED_CASES)]
)
def test_terms_that_are_allowed_have_no_more_cases_than_are(terms: Limit, count: Limit) -> None:
    assert terms.allows(terms.most) and not terms.allows(terms.most + 1)
    assert count.allows(sum_of(terms.most))
    assert not count.allows(sum_of(terms.most + 2))


def test_all_loops_of_a_product_may_have_more_cases_than_one() -> None:
    assert PRODUCT_CASES.allows(LOOP_CASES.most) and not LOOP_CASES.allows(PRODUCT_CASES.most)


def test_the_docstrings_are_true() -> None:
    tried = doctest.testmod(cases)
    assert tried.attempted > 0 and tried.failed == 0
