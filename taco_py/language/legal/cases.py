"""Limits on how many cases loops may have, each with its reason.

A loop over operands that need not all be present has a case for each set of operands that may be.
`concrete.cases` counts the cases of an expression; these limits say when there are too many.

    limit             most  of
    MERGED_TERMS         4  sparse terms that one loop adds up
    LOOP_CASES          32  cases of one loop
    PRODUCT_CASES       64  cases of all loops of a product together
    SCHEDULED_TERMS      6  sparse terms of a kernel whose loops the user names
    SCHEDULED_CASES     64  cases of each term of such a kernel
"""

from __future__ import annotations

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Limit:
    """The largest number of a kernel's parts of one kind, with the reason for the limit.

    >>> MERGED_TERMS.allows(4), MERGED_TERMS.allows(5)
    (True, False)
    """

    most: int
    of: str
    reason: str

    def allows(self, count: int) -> bool:
        """Tell whether a count is within the limit."""
        return count <= self.most


MERGED_TERMS = Limit(
    4,
    "sparse terms that one loop adds up where they need not all be",
    "n of them have 2^n - 1 cases: a loop of 4 takes a second to compile, one of 6 ten",
)
LOOP_CASES = Limit(
    1 << (MERGED_TERMS.most + 1),
    "cases of one loop whose terms have several each, as products of sums do",
    "about those of one term more than may be added up",
)
PRODUCT_CASES = Limit(
    2 * LOOP_CASES.most,
    "cases of all loops of a product, each of which has those of the loops inside it",
    "gcc takes 12 s for 81 in one loop, and a minute for 96 in three",
)
SCHEDULED_TERMS = Limit(
    6,
    "sparse terms of a kernel whose loops the user names",
    "no temporary may take some of them, so that the wait of ten seconds is the user's choice",
)
SCHEDULED_CASES = Limit(
    1 << SCHEDULED_TERMS.most,
    "cases of each term of such a kernel",
    "about as many as that many terms have together",
)
LIMITS = (MERGED_TERMS, LOOP_CASES, PRODUCT_CASES, SCHEDULED_TERMS, SCHEDULED_CASES)
